"""Damaged, deleted and refused key filters, and deaths where they are written or removed: rows are right whatever becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glue_jobs.aws.clients import worker_s3
from glue_jobs.aws.objects import read_bytes, write_bytes
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.key_filter import FOLDER
from glue_jobs.core.paths import changes_folder
from glue_jobs.protocol.forget import look
from glue_jobs.protocol.verify import Place
from glue_jobs.spark import key_filters
from glue_jobs.spark.place import CLIENT_VARIABLES
from tests.aws.faults import Injected, s3_error
from tests.protocol.runs import LONG_LEASE, die, forget_lease
from tests.protocol.wire import Killed, Wire, once
from tests.spark.filtered_tables import COLUMNS, FILES, Source, filter_keys, filtered_paths, loaded, of_filters
from tests.work_tables import IN_PROCESS, MakeTable


@pytest.fixture
def source(new_table: MakeTable) -> Source:
    return Source(loaded(new_table(COLUMNS, partition_key="part")))


DAMAGES: dict[str, Any] = {
    "truncated in the index": lambda data: data[:100],
    "truncated in the filters": lambda data: data[:-500],
    "empty": lambda data: b"",
    "of others": lambda data: b"DMSKEYS0" + data[8:],
    "another index": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "another bit in a filter": lambda data: data[:-40] + bytes([data[-40] ^ 4]) + data[-39:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_filter_is_as_none(source: Source, damage: str) -> None:
    """Rows are right, the change says what was wrong, and the batch after it has whole filters again."""
    source.change(range(2))
    (key,) = filter_keys(source.table)
    data = read_bytes(source.table.clients.s3, "lake", key)
    write_bytes(source.table.clients.s3, "lake", key, DAMAGES[damage](data))

    searched, spared, trouble = source.change(range(2, 5))  # not what the first one wrote, whose filters are the last ones

    source.check()
    assert searched + spared >= FILES
    assert (0 < spared < FILES - 3) if damage.endswith(("a filter", "the filters")) else spared == 0
    assert key.rsplit("/")[-1] in trouble
    assert len(filtered_paths(source.table)) >= FILES
    assert source.change(range(3))[0] == 3
    source.check()


def test_filters_may_be_deleted_at_any_time(source: Source) -> None:
    """Then they are made again. Objects of others in the folder stay where they are."""
    source.change(range(2))
    s3, folder = source.table.clients.s3, changes_folder(source.table.out_path).join(FOLDER)
    for key in filter_keys(source.table):
        s3.delete_object(Bucket="lake", Key=key)
    write_bytes(s3, "lake", folder.key + "notes.txt", b"of others")

    assert source.change(range(2))[1:] == (0, "")

    source.check()
    assert source.change(range(2))[0] == 2
    source.check()
    assert s3.get_object(Bucket="lake", Key=folder.key + "notes.txt")["Body"].read() == b"of others"


@pytest.mark.parametrize(("operation", "spared"), [("ListObjectsV2", 0), ("GetObject", 0), ("PutObject", FILES - 2)])
def test_a_refused_request_for_filters_stops_nothing(source: Source, operation: str, spared: int) -> None:
    """The batch is applied, and its details say what was refused; the next one goes on with what is there."""
    source.change(range(2))
    worker = worker_s3((name, IN_PROCESS[name]) for name in CLIENT_VARIABLES if name in IN_PROCESS)

    refusing = True

    def refuse(request: Any) -> Any:
        return s3_error(403, "AccessDenied") if refusing and "key_filters" in request.url else None

    Injected(worker, operation, *[refuse] * 200)
    _, found, trouble = source.change(range(2))
    refusing = False

    source.check()
    assert (found, "AccessDenied" in trouble) == (spared, True)
    assert source.change(range(2))[0] <= 4
    source.check()


def test_a_large_index_is_read_by_two_requests_and_filters_by_more(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of the latter is refused, the files of its filters are opened."""
    source.change(range(2))
    monkeypatch.setattr(key_filters, "HEAD_BYTES", 24)
    assert source.change(range(2))[1:] == (FILES - 2, "")
    worker = worker_s3((name, IN_PROCESS[name]) for name in CLIENT_VARIABLES if name in IN_PROCESS)
    asked, of_index, refusing = 0, 2 * len(filter_keys(source.table)), True

    def refuse(request: Any) -> Any:
        nonlocal asked
        asked += "key_filters" in request.url
        return s3_error(403, "AccessDenied") if refusing and "key_filters" in request.url and asked > of_index else None

    Injected(worker, "GetObject", *[refuse] * 400)
    searched, spared, trouble = source.change(range(2))
    refusing = False

    source.check()
    assert (searched, spared, "AccessDenied" in trouble) == (FILES, 0, True)


def test_an_erase_leaves_no_filter_in_any_version(quick_table: MakeTable, tmp_path: Path) -> None:
    """Neither visible nor hidden ones: they have bits of hashes of the keys. The next batches make new ones."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    table, s3 = source.table, source.table.clients.s3
    for _ in range(2):
        source.change(range(2))
    folder = changes_folder(table.out_path).join(FOLDER)
    assert len(list(held_versions(s3, folder.bucket, folder.key))) == 2
    erased = next(row for row in source.rows.values() if row[1] == 7)
    keys = tmp_path / "keys.csv"
    keys.write_text(f"id\n{erased[0]}\n")

    assert table.run("Erase", erase_keys=str(keys)) == 0, table.item()["LastRun"]

    assert list(held_versions(s3, folder.bucket, folder.key)) == []
    del source.rows[erased[0]]
    source.check()
    assert source.change(range(2))[1] == 0
    assert source.change(range(2))[0] == 2
    source.check()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_may_die_where_it_writes_filters(quick_table: MakeTable, number: int, after: bool) -> None:
    """Before or after it puts the new object, or hides those that it took in: the next run does the batch, and rows are right."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    source.change(range(2))
    wire = Wire()

    def dies(forward: Any) -> Any:
        if after:
            forward()
        return wire.kill()

    wire.rule = once(of_filters, dies, skip=number)
    with wire.connected(), pytest.raises(Killed):
        source.change(range(3), lease_seconds=LONG_LEASE)
    forget_lease(source.table)

    assert source.table.run(small_file_bytes="0") == 0, source.table.last_run()
    source.check()
    assert source.change(range(2))[0] <= 4
    source.check()


@pytest.mark.parametrize("after", [False, True])
def test_an_erase_may_die_where_it_removes_filters(quick_table: MakeTable, tmp_path: Path, after: bool) -> None:
    """The item says that the erase is not over; who resumes it leaves none."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    table, s3 = source.table, source.table.clients.s3
    source.change(range(2))
    erased = next(row for row in source.rows.values() if row[1] == 7)
    keys = tmp_path / "keys.csv"
    keys.write_text(f"id\n{erased[0]}\n")
    wire = Wire()

    def dies(forward: Any) -> Any:
        if after:
            forward()
        return wire.kill()

    die(wire, table, "Erase", once(of_filters, dies), erase_keys=str(keys))

    assert "Erasing" in table.item()
    assert table.run("Erase", resume="true") == 0, table.item()["LastRun"]
    folder = changes_folder(table.out_path).join(FOLDER)
    assert list(held_versions(s3, folder.bucket, folder.key)) == []
    assert "Erasing" not in table.item()
    del source.rows[erased[0]]
    source.check()


def test_a_purge_hides_filters_too(quick_table: MakeTable) -> None:
    """They are the table's, and no foreign objects."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    source.change(range(2))
    table = source.table
    place = Place(table.clients.s3, table.clients.glue, table.state_table, table.environment["DMSLAKE_DATABASE"])
    plan = look(place, table.state(), purge=True)
    assert plan.foreign == ()

    assert table.forget(plan).code == 0

    assert filter_keys(table) == []
