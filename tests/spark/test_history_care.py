"""A history table is looked after as the lake table is: verified, repaired, erased from, undone, staged, taken back."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.removal import held_versions
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import of_living
from glue_jobs.protocol.history import last_published
from glue_jobs.protocol.history_table import uploads_of
from glue_jobs.protocol.recover import recover
from glue_jobs.protocol.table_run import TableRun
from glue_jobs.protocol.verify_folder import list_folder
from glue_jobs.spark.verify_history import check_history as check_files
from infra.local.dms_files import DmsRow, load_file_name
from tests.spark.histories import check_history, history_of, versions
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_history_table import at, batch, changes, given, keeping, load
from tests.work_tables import MakeTable


def kept(new_table: MakeTable, **attributes: Any) -> WorkTable:
    """Two months of three keys, of which one is deleted."""
    table = keeping(new_table, **attributes)
    load(table, 0, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    table.sync()
    batch(table, (800, "U", (1, "A", 1)), (801, "D", (2, None, None)))
    table.sync()
    assert len(history_of(table).files) == 2
    return table


def recovered(table: WorkTable) -> None:
    """A recover asks for a catalog step, which a person takes away from a table that is in no catalog, as these are."""
    recover(table.clients, table.state_table, table.path, False, Limits())
    table.remove("CatalogPending")


def folder(table: WorkTable) -> S3Uri:
    return history_lake(table.out_path)


# --- verify and repair


def test_damage_to_the_history_s_files_is_found_and_repaired(new_table: MakeTable) -> None:
    """Hidden by somebody, written over, superseded and visible again; what others put there is told and left."""
    table = kept(new_table)
    s3, lake = table.clients.s3, folder(table)
    assert table.verify() == []
    before = versions(table)
    first = sorted(history_of(table).files)[0]
    gone = next(path for path in superseded(table) if path not in history_of(table).files)

    s3.delete_object(Bucket=lake.bucket, Key=lake.key + first)
    assert table.verify() == ["missing-file"]
    assert table.repair().code == 0
    assert (table.verify(), check_history(table)) == ([], before)

    first = sorted(history_of(table).files)[0]
    s3.put_object(Bucket=lake.bucket, Key=lake.key + first, Body=b"not ours")
    assert len(table.verify()) == 1
    assert table.repair().code == 0
    assert (table.verify(), versions(table)) == ([], before)

    versions_there = s3.list_object_versions(Bucket=lake.bucket, Prefix=lake.key + gone)
    marker = versions_there["DeleteMarkers"][0]["VersionId"]
    s3.delete_object(Bucket=lake.bucket, Key=lake.key + gone, VersionId=marker)
    s3.put_object(Bucket=lake.bucket, Key=lake.key + "theirs.txt", Body=b"x")
    assert table.verify() == ["foreign-file", "stray-file"]
    assert table.repair().code == 0
    assert table.verify() == ["foreign-file"]
    s3.delete_object(Bucket=lake.bucket, Key=lake.key + "theirs.txt")
    assert check_history(table) == before


def superseded(table: WorkTable) -> set[str]:
    """The paths of all files that the history ever had."""
    lake = folder(table)
    return {held.key[len(lake.key) :] for held in held_versions(table.clients.s3, lake.bucket, lake.key)}


def test_damage_is_repaired_after_an_erase_that_the_history_had_no_part_in(new_table: MakeTable, tmp_path: Path) -> None:
    """Its record is the table's alone."""
    table = keeping(new_table)
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.edit(History="false")
    table.sync()
    assert table.run("Erase", erase_keys=given(tmp_path, "gone", pa.schema([("id", pa.int64())]), (2,))) == 0, table.last_run()
    table.edit(History="true")
    table.sync()
    before, (path,) = versions(table), history_of(table).files
    assert table.snapshot().erases
    lake = folder(table)
    table.clients.s3.delete_object(Bucket=lake.bucket, Key=lake.key + path)

    assert table.verify() == ["missing-file"]
    assert table.repair().code == 0

    assert (table.verify(), check_history(table)) == ([], before)


def test_the_last_change_is_found_where_the_history_s_record_is_gone(new_table: MakeTable) -> None:
    """As after a purge that broke off: of a change of the history alone nothing else tells whether it was published."""
    table = kept(new_table)
    before = table.head().id
    batch(table, (900, "I", (9, "new", 9)), (901, "D", (9, None, None)))
    table.sync()
    head = table.head()
    assert (head.parent, head.added, head.superseded) == (before, (), ())
    assert last_published(table.clients.s3, table.out_path) == head.id
    records = changes_folder(folder(table))
    gone = f"{records.key}{history_of(table).change}.json"
    table.clients.s3.delete_object(Bucket=records.bucket, Key=gone)

    assert last_published(table.clients.s3, table.out_path) == before


def test_a_history_that_is_behind_is_a_note(new_table: MakeTable) -> None:
    table = kept(new_table)
    table.edit(History="false")
    batch(table, (900, "U", (3, "C", 3)))
    table.sync()
    table.edit(History="true")

    found = table.verified()

    assert "history-behind" in [each.code for each in found.findings]
    assert not found.differences
    table.sync()
    assert "history-behind" not in [each.code for each in table.verified().findings]


def test_versions_that_contradict_themselves_are_found(new_table: MakeTable) -> None:
    """In files that are as the records say: flags, intervals, months, two open versions of a key, a range that leaves open ones out."""
    table = kept(new_table)
    snapshot = history_of(table)
    old, new = sorted(snapshot.files.values(), key=lambda file: file.partition)
    assert told(table, snapshot) == []
    rows = rows_of(table, new)
    wrong = {
        "versions that say otherwise": [{**rows[0], "validity_flag": 0}, *rows[1:]],
        "versions that end before they begin": [{**rows[0], "validity_flag": 0, "valid_to": at(1)}, *rows[1:]],
        "versions of another month": [{**rows[0], "valid_from": at(5000)}, *rows[1:]],
        "other values": [{**rows[0], "operation": "upsert"}, *rows[1:]],
        "2 times": [*rows, rows[0]],
    }
    for expected, changed in wrong.items():
        found = told(table, with_file(table, snapshot, new, changed))
        assert any(expected in text for text in found), (expected, found)
    no_range = replace(snapshot, files={**snapshot.files, old.path: replace(old, low=None, high=None)})
    assert any("pass over" in text for text in told(table, no_range))
    narrow = replace(snapshot, files={**snapshot.files, old.path: replace(old, low=(9,), high=(9,))})
    assert any("outside" in text for text in told(table, narrow))


@pytest.mark.parametrize("time", ["0000-01-01 00:00:00", "9999-12-31 23:59:59.999999"])
def test_versions_of_any_year_are_verified(new_table: MakeTable, time: str) -> None:
    """Python has no year 0. A version in a folder of another month is still found."""
    table = keeping(new_table)
    table.put_raw(load_file_name(1), table.parquet([DmsRow("I", (1, "a", 1), time)]))
    table.sync()
    snapshot = history_of(table)
    (file,) = snapshot.files.values()
    elsewhere = replace(file, partition=("2024", "5"))

    assert table.verify() == []
    assert any("another month" in text for text in told(table, replace(snapshot, files={file.path: elsewhere})))


def test_open_versions_must_be_the_table_s_rows(new_table: MakeTable) -> None:
    """By number, and by a checksum of the keys."""
    table = kept(new_table)
    snapshot, history = table.snapshot(), history_of(table)
    report = check_files(table.clients.s3, folder(table), history, there(table))
    assert (report.living, report.rows) == (2, 5)

    one_less, other = replace(report, living=1), replace(report, key_sum=report.key_sum + 1)

    assert not list(of_living("", snapshot, history, report, report))
    assert [each.code for each in of_living("", snapshot, history, report, one_less)] == ["history-differs"]
    assert [each.code for each in of_living("", snapshot, history, report, other)] == ["history-differs"]


def there(table: WorkTable) -> dict[str, Any]:
    return list_folder(table.clients.s3, folder(table))


def told(table: WorkTable, snapshot: Snapshot) -> list[str]:
    return [each.found for each in check_files(table.clients.s3, folder(table), snapshot, there(table)).findings]


def rows_of(table: WorkTable, file: DataFile) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(read_bytes(table.clients.s3, folder(table).bucket, folder(table).key + file.path))).to_pylist()


def with_file(table: WorkTable, snapshot: Snapshot, file: DataFile, rows: list[dict[str, Any]]) -> Snapshot:
    """The snapshot with other bytes under the file's name, of which the record knows."""
    lake, out = folder(table), io.BytesIO()
    columns = pq.read_schema(io.BytesIO(read_bytes(table.clients.s3, lake.bucket, lake.key + file.path)))
    pq.write_table(pa.Table.from_pylist(rows, columns), out)
    etag = table.clients.s3.put_object(Bucket=lake.bucket, Key=lake.key + file.path, Body=out.getvalue())["ETag"].strip('"')
    other = replace(file, size_bytes=len(out.getvalue()), etag=etag, rows=len(rows))
    return replace(snapshot, files={**snapshot.files, file.path: other})


# --- erase


def held(table: WorkTable, value: int) -> list[str]:
    """The keys of all versions of whatever S3 keeps in both folders and beside the records that hold a row of this id."""
    s3, found = table.clients.s3, []
    for lake in (table.out_path, folder(table)):
        for prefix in (lake, changes_folder(lake)):
            for version in held_versions(s3, prefix.bucket, prefix.key):
                if version.key.endswith(".parquet"):
                    body = s3.get_object(Bucket=prefix.bucket, Key=version.key, VersionId=version.version)["Body"].read()
                    ids = pq.read_table(io.BytesIO(body), partitioning=None).to_pylist()
                    found += [version.key for row in ids if row.get("id") == value]
    return sorted(set(found))


def test_after_an_erase_nothing_holds_the_key(new_table: MakeTable, tmp_path: Path) -> None:
    """Neither a version in either folder nor the rows beside a record, though the row was deleted long ago; all else can be undone."""
    table = kept(new_table)
    person = pa.schema([("committed", pa.string()), *SHOP])
    rows = given(tmp_path, "new", person, ("2024-05-01 00:00:00", 1, "person", 1), ("2024-05-01 00:00:00", 3, "person", 3))
    assert table.run("Apply", key="id", updates=rows) == 0, table.last_run()
    assert table.run("Rollback", to="previous", resume="true") == 0, table.last_run()
    for gone, count in ((2, 2), (1, 1)):
        keys = tmp_path / f"keys{gone}.csv"
        keys.write_text(f"id\n{gone}\n")
        assert held(table, gone)

        assert table.run("Erase", erase_keys=str(keys)) == 0, table.last_run()

        assert held(table, gone) == []
        details = table.head().details
        assert details["history_rows_erased"] >= count
        assert details["history_files_rewritten"] >= 1
        assert {row["id"] for row in check_history(table)} == {1, 2, 3} - ({2} if gone == 2 else {1, 2})
        assert table.verify() == []
    before = versions(table)
    batch(table, (900, "U", (3, "C", 3)), (901, "I", (4, "d", 4)))
    table.sync()
    check_history(table)
    assert table.run("Rollback", to="previous", resume="true") == 0, table.last_run()
    assert check_history(table) == before
    assert table.verify() == []


# --- back and forth, staged, lost, recovered


def test_what_is_undone_staged_or_recovered_takes_the_history_along(new_table: MakeTable) -> None:
    """Each step leaves the history of the rows that the table then has, in its folder too."""
    table = kept(new_table)
    full = check_history(table)
    assert table.run("Rollback", to="previous", resume="true") == 0, table.last_run()
    assert {row["validity_flag"] for row in check_history(table)} == {1}
    assert table.run("Rollback", reapply="all", resume="true") == 0, table.last_run()
    assert check_history(table) == full

    for end in ("commit", "discard"):
        batch(table, (900, "U", (3, end, 3)))
        assert table.run(stage="true") == 0, table.last_run()
        assert check_history(table) == full
        change = table.last_run()["staged"]
        assert uploads(table)
        ended = table.commit(change) if end == "commit" else table.discard(change)
        assert ended.code == 0, ended.error
        assert not uploads(table)
        table.remove("Paused")
        if end == "commit":
            full = check_history(table)
            assert full[-1]["name"] == "commit"
    table.sync()
    full = check_history(table)
    assert full[-1]["name"] == "discard"

    head = table.item()["Head"]
    table.edit(Head=changes(table)[0].id)
    recovered(table)
    assert table.item()["Head"] == head
    table.remove("Paused")
    batch(table, (950, "D", (3, None, None)))
    table.sync()
    assert check_history(table)[: len(full) - 1] == full[:-1]
    assert table.verify() == []


def test_a_history_that_a_committed_change_began_is_found_by_a_recover(new_table: MakeTable) -> None:
    """The change leaves the lake table as it is; the record of what it uploaded is the staged change's, in the history's folder."""
    table = keeping(new_table)
    table.edit(History="false")
    load(table, 0, (1, "a", 1), (2, "b", 2))
    table.sync()
    first = table.item()["Head"]
    table.edit(History="true")
    assert table.run(stage="true") == 0, table.last_run()
    assert recover(table.clients, table.state_table, table.path, True).head == first, "what waits was not published"
    ended = table.commit(table.last_run()["staged"])
    assert ended.code == 0, ended.error
    head = table.item()["Head"]
    assert table.head().kind == "history"

    table.edit(Head=first)
    assert table.blocked()["code"] == "state-went-back"
    recovered(table)

    assert table.item()["Head"] == head
    batch(table, (900, "U", (1, "A", 1)))
    table.sync()
    assert [row["name"] for row in check_history(table)] == ["a", "A", "b"]
    assert table.verify() == []


def uploads(table: WorkTable) -> list[str]:
    lake = folder(table)
    return [upload.key for upload in list_open_uploads(table.clients.s3, lake.bucket, lake.key)]


class Died(BaseException):
    """The end of a process."""


def die(*_: object, **__: object) -> None:
    raise Died


def test_lost_uploads_take_both_folders_back(served_table: MakeTable) -> None:
    """The history's uploads are gone: the change is taken back in both folders, and its file is applied again."""
    table = kept(served_table)
    before = versions(table)
    batch(table, (900, "U", (3, "C", 3)), (901, "I", (4, "d", 4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableRun, "_publish", die)
        with pytest.raises(Died):
            table.run()
    lost = table.head()
    for key, upload in uploads_of(table.clients.s3, table.out_path, lost):
        if key.startswith(folder(table).key):
            table.clients.s3.abort_multipart_upload(Bucket=table.out_path.bucket, Key=key, UploadId=upload.id)

    table.sync()

    assert [(record.kind, record.lost) for record in changes(table)][-2][1] == lost.id
    assert len(check_history(table)) == len(before) + 2
    assert len(table.rows()) == 3
    assert not uploads(table)
