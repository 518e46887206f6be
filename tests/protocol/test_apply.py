"""Corrections by a key that need not be unique, in whole runs of the job Apply; the oracle is a list of rows."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import read_attachment, read_record
from glue_jobs.core.limits import Limits
from glue_jobs.core.record import ChangeRecord, Counts
from glue_jobs.spark import data_file_writer, open_file
from glue_jobs.spark.change_feed import change_feed
from glue_jobs.spark.group_search import GroupSearch
from glue_jobs.spark.reading import reading_place
from tests.lake import LakeTable
from tests.spark.tables import WorkTable
from tests.work_tables import IN_PROCESS, MakeTable

LINES = pa.schema([("id", pa.int64()), ("order_id", pa.int64()), ("shop", pa.string()), ("qty", pa.int32())])
Row = tuple[Any, ...]
# Order n has 1 + n % 5 lines.
ORDERS = [(10 * order + line, order, "abc"[order % 3], line) for order in range(40) for line in range(1 + order % 5)]
TEN = [*range(9), 18]  # with 29 lines


@pytest.fixture
def make(in_process: Clients) -> MakeTable:
    """Makes tables whose runs, those of Apply too, take place in this process."""

    def make(columns: pa.Schema = LINES, rows: Iterable[Row] = ORDERS, **attributes: Any) -> WorkTable:
        environment = {**IN_PROCESS, "DMSLAKE_DATABASE": ""}
        table = WorkTable(environment, "s3://raw/dms/", "s3://lake/lake/", columns, shared=in_process, **attributes)
        table.load(rows)
        assert table.run("LoadInitial") == 0
        return table

    return make


def given(folder: Path, name: str, rows: Sequence[Row], columns: Sequence[str] = LINES.names) -> str:
    """A Parquet file with these rows of the order lines."""
    path = folder / f"{name}.parquet"
    types = pa.schema([LINES.field(column) for column in columns])
    pq.write_table(pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], types), path)
    return str(path)


def deletes(folder: Path, orders: Iterable[int]) -> str:
    return given(folder, "deletes", [(order,) for order in orders], ["order_id"])


def applied(table: LakeTable, **arguments: Any) -> ChangeRecord:
    """The record of a correction that must work; folder, files and figures are checked."""
    before, rows = table.snapshot(), table.rows()
    assert table.run("Apply", **arguments) == 0, table.item()["LastRun"]
    record = table.head()
    assert (record.kind, record.counts.table_rows) == ("apply", len(table.rows()))
    assert len(table.rows()) == len(rows) + record.counts.inserted - record.counts.deleted
    assert {*before.files} - {*record.superseded} <= {*table.snapshot().files}
    table.check_folder()
    assert table.open_uploads() == []
    return record


def refused(table: LakeTable, **arguments: Any) -> tuple[int, str, str]:
    """(exit code, code, message) of a correction that is refused; nothing was changed, and the table does not wait for a person."""
    before = unmoved(table)
    code = table.run("Apply", **arguments)
    error = table.item()["LastRun"]["error"]
    assert unmoved(table) == before
    return code, error["code"], error["message"]


def unmoved(table: LakeTable) -> Any:
    item = {name: value for name, value in table.item().items() if name not in ("LastRun", "Fence")}
    return item, table.visible(), table.open_uploads()


def expected(rows: Iterable[Row], gone: Iterable[Any], new: Sequence[Row], at: int = 1) -> list[Row]:
    """The rows after a correction by the column at `at`, in plain Python."""
    rows = list(rows)
    there = {row[at] for row in rows}
    dropped = {*gone, *(row[at] for row in new)}
    return sorted([*(row for row in rows if row[at] not in dropped), *(row for row in new if row[at] in there)], key=repr)


def attached(table: LakeTable, name: str) -> list[Row]:
    data = read_attachment(table.clients.s3, table.out_path, name)
    return [tuple(row.values()) for row in pq.read_table(io.BytesIO(data)).to_pylist()]


def test_every_row_of_a_deleted_key_goes(make: MakeTable, tmp_path: Path) -> None:
    """Ten order ids match 29 lines; the keys that took effect stand beside the record, those that no row has are counted."""
    table = make()

    record = applied(table, key="order_id", deletes=deletes(tmp_path, [*TEN, 77, 78]))

    assert table.rows() == expected(ORDERS, TEN, [])
    assert record.counts == Counts(deleted=29, table_rows=len(ORDERS) - 29)
    assert record.given is not None
    assert (record.given.key, record.given.updates) == (("order_id",), "")
    assert attached(table, record.given.deletes) == [(order,) for order in TEN]
    found = {name: record.details[name] for name in ("rows_matched_before", "rows_after", "keys_deleted", "keys_updated", "keys_not_found")}
    assert found == {"rows_matched_before": 29, "rows_after": 0, "keys_deleted": 10, "keys_updated": 0, "keys_not_found": 2}
    assert record.details["keys_not_found_first"] == ["77", "78"]
    assert "2 key(s) stand in no row" in table.item()["LastRun"]["warnings"][0]


def test_rows_of_an_updated_key_are_replaced(make: MakeTable, tmp_path: Path) -> None:
    """More or fewer than before; a row given for an unknown key is not inserted; a row may move to another partition, also to a new one."""
    table = make(partition_key="shop")
    new = [(41, 4, "b", 9), (31, 3, "a", 8), (32, 3, "z", 8), (3_3, 3, "c", 8), (34, 3, None, 8), (35, 3, "a", 8), (990, 99, "a", 1)]

    record = applied(table, key="order_id", updates=given(tmp_path, "updates", new), deletes=deletes(tmp_path, [5]))

    assert table.rows() == expected(ORDERS, [5], new)
    table.check_files()
    # Order 4: one line for five; order 3: five for four; order 5: one line gone.
    assert (record.counts.updated, record.counts.inserted, record.counts.deleted) == (1 + 4, 1, 4 + 1)
    assert record.given is not None
    assert sorted(attached(table, record.given.updates), key=repr) == sorted(new[:-1], key=repr)
    assert table.verify() == []


def test_only_files_with_hits_are_written_anew(make: MakeTable, tmp_path: Path) -> None:
    """Of three partitions the one that holds the key."""
    table = make(partition_key="shop")

    record = applied(table, key="order_id,shop", deletes=given(tmp_path, "deletes", [(1, "b"), (2, "a")], ["order_id", "shop"]))

    assert {path.split("/")[0] for path in record.superseded} == {file.path.split("/")[0] for file in record.added} == {"shop=b"}
    assert (record.details["files_rewritten"], record.counts.deleted, record.details["keys_not_found_first"]) == (1, 2, ["2, 'a'"])


def test_a_file_without_rows_left_goes(make: MakeTable, tmp_path: Path) -> None:
    """By a key that is the partition itself, no row is left to write."""
    table = make(partition_key="shop")

    record = applied(table, key="shop", deletes=given(tmp_path, "deletes", [("a",)], ["shop"]))

    assert (record.added, len(record.superseded)) == ((), 1)
    assert {row[2] for row in table.rows()} == {"b", "c"}


def test_a_table_without_primary_key(make: MakeTable, tmp_path: Path) -> None:
    """Equal rows are kept as often as they are given."""
    rows = [(1, 1, "a", 1), (1, 1, "a", 1), (2, 2, "a", 2)]
    table = make(rows=rows, primary_key="null")
    new = [(7, 2, "b", 7), (7, 2, "b", 7)]

    record = applied(table, key="order_id", updates=given(tmp_path, "updates", new))

    assert table.rows() == expected(rows, [], new)
    assert (record.counts.updated, record.counts.inserted) == (1, 1)


def test_files_that_are_read_in_pieces(make: MakeTable, tmp_path: Path) -> None:
    """The rows that stay keep their order, those that are given come behind them."""
    table = make()
    new = [(71, 7, "b", 1), (70, 7, "b", 2)]

    applied(table, key="order_id", updates=given(tmp_path, "updates", new), deletes=deletes(tmp_path, [3]), stream_file_bytes="0")

    assert table.rows() == expected(ORDERS, [3], new)
    assert table.verify() == []
    table.cdc([("D", (71, None, None, None)), ("U", (390, 39, "a", 5))])
    table.sync()
    assert table.rows() == expected(expected(ORDERS, [3], new), [71], [(390, 39, "a", 5)], at=0)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Row groups of ten rows, and the numbers of those that are copied as they stand."""
    monkeypatch.setattr(data_file_writer, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    copied: list[int] = []
    stored = GroupSearch._stored
    monkeypatch.setattr(GroupSearch, "_stored", lambda self, number, found: (copied.append(number), stored(self, number, found))[1])
    return copied


@pytest.mark.parametrize("primary_key", ["id", "null"])
def test_row_groups_without_a_given_key_are_copied(small_groups: list[int], make: MakeTable, tmp_path: Path, primary_key: str) -> None:
    table = make(primary_key=primary_key)
    new = [(71, 7, "b", 1), (70, 7, "b", 2)]
    groups = [{at // 10 for at, row in enumerate(ORDERS) if row[1] == order} for order in (3, 7)]

    applied(table, key="order_id", updates=given(tmp_path, "updates", new), deletes=deletes(tmp_path, [3]), stream_file_bytes="0")

    assert small_groups == [number for number in range(len(ORDERS) // 10) if number not in groups[0] | groups[1]]
    assert table.rows() == expected(ORDERS, [3], new)
    table.check_files(ordered=False)
    assert table.verify() == []


def test_a_correction_is_undone_and_brought_back(make: MakeTable, tmp_path: Path) -> None:
    """Like any other change; the cursor is where it was."""
    table = make()
    table.cdc([("D", (0, None, None, None))])
    table.sync()
    before, cursor = table.rows(), table.item()["LastIncrementalFile"]
    record = applied(table, key="order_id", deletes=deletes(tmp_path, TEN), updates=given(tmp_path, "updates", [(90, 9, "x", 0)]))
    after = table.rows()

    assert table.run("Rollback", undo=record.id, resume="true") == 0
    assert (table.rows(), table.item()["LastIncrementalFile"]) == (before, cursor)
    assert table.run("Rollback", reapply="all", resume="true") == 0

    assert (table.rows(), table.item()["LastIncrementalFile"]) == (after, cursor)
    assert after == expected(before, TEN, [(90, 9, "x", 0)])


def test_later_changes_of_the_source_come_on_top(make: MakeTable, tmp_path: Path) -> None:
    """What DMS writes for a corrected row counts again; files that were pending stay pending."""
    table = make(partition_key="shop")
    table.cdc([("U", (10, 1, "b", 77)), ("I", (1000, 2, "c", 1))])

    applied(table, key="order_id", deletes=deletes(tmp_path, [1, 2]))
    corrected = table.rows()
    table.sync()

    assert corrected == expected(ORDERS, [1, 2], [])
    assert table.rows() == sorted([*corrected, (10, 1, "b", 77), (1000, 2, "c", 1)], key=repr)


def test_what_a_person_has_asked_for_stays(make: MakeTable, tmp_path: Path) -> None:
    """A cursor and a load date that were set back, a request, a pause: all of them wait for the next run."""
    table = make()
    first = table.cdc([("U", (10, 1, "b", 77))])
    table.sync()
    wishes = {
        "LastIncrementalFile": f"{table.path}0.parquet",
        "LastFullLoadDate": "2000-01-01 00:00:00",
        "Paused": "wait",
        "Request": "widen",
    }
    table.edit(**wishes)

    record = applied(table, key="order_id", deletes=deletes(tmp_path, [1]))

    assert {name: table.item()[name] for name in wishes} == wishes
    assert first in record.cursor_after


@pytest.mark.parametrize("attributes", [{"ActiveFlag": "false"}, {"Paused": "a reason"}, {"Source": "none"}, {"Blocked": "by hand"}])
def test_any_table_with_rows_can_be_corrected(make: MakeTable, tmp_path: Path, attributes: dict[str, str]) -> None:
    """Inactive, paused, without a source, blocked: a correction may be the way out."""
    table = make()
    table.edit(**attributes)

    applied(table, key="order_id", deletes=deletes(tmp_path, [1]))

    assert {name: table.item()[name] for name in attributes} == attributes


def test_errors_leave_all_as_it_was(make: MakeTable, tmp_path: Path) -> None:
    """Unknown keys, a primary key of a row that stays, columns that are not the table's, a head that moved."""
    table = make(partition_key="shop")
    some = deletes(tmp_path, [1, 77])
    text = tmp_path / "rows.csv"
    text.write_text("id,order_id,shop\n1,2,a\n")

    assert refused(table, key="order_id", deletes=some, strict="true")[:2] == (1, "keys-not-found")
    code, name, message = refused(table, key="order_id", updates=given(tmp_path, "unknown", [(1, 77, "a", 1)]))
    assert (code, name, "77" in message) == (1, "no-key-found", True)
    code, name, message = refused(table, key="order_id", updates=given(tmp_path, "taken", [(20, 1, "b", 1), (21, 1, "b", 1)]))
    assert (code, name, "20; 21" in message) == (1, "key-taken", True)
    assert refused(table, key="order_id", updates=str(text))[:2] == (2, "given-columns")
    text.write_text("order_id\n1\n0x10\n")
    code, name, message = refused(table, key="order_id", deletes=str(text))
    assert (code, name, "row 1; expected: bigint; found: '0x10'" in message) == (2, "given-value", True)
    assert refused(table, key="nope", deletes=some)[:2] == (2, "unknown-column")
    assert refused(table, key="order_id", deletes=some, from_change="0000000001-000001-00000000")[:2] == (1, "moved-on")
    assert refused(table, key="order_id", deletes=some, apply_bytes="1")[:2] == (2, "too-much-given")
    empty = WorkTable({**IN_PROCESS, "DMSLAKE_DATABASE": ""}, "s3://raw/dms/", "s3://lake/lake/", LINES, shared=table.clients)
    assert refused(empty, key="order_id", deletes=some)[:2] == (2, "not-loaded")


def test_the_primary_key_of_a_row_that_goes_may_be_given_again(make: MakeTable, tmp_path: Path) -> None:
    """To the same or to another key of the correction."""
    table = make()
    new = [(20, 1, "b", 1), (10, 1, "b", 2)]

    applied(table, key="order_id", updates=given(tmp_path, "updates", new), deletes=deletes(tmp_path, [2]), strict="true")

    assert table.rows() == expected(ORDERS, [2], new)


def test_a_dry_run_changes_nothing(make: MakeTable, tmp_path: Path) -> None:
    """It only looks."""
    table = make()
    before = unmoved(table)

    assert table.run("Apply", key="order_id", deletes=deletes(tmp_path, [1]), dry_run="true") == 0

    assert unmoved(table) == before
    assert "dry run" in table.item()["LastRun"]["note"]


def test_row_changes_tell_the_correction(make: MakeTable, tmp_path: Path) -> None:
    """What lies between the states before and after is what was given: no row of another order."""
    table = make()
    before = table.snapshot()
    new = [(10, 1, "b", 100), (12, 1, "b", 1)]

    record = applied(table, key="order_id", updates=given(tmp_path, "updates", new), deletes=deletes(tmp_path, [2]))

    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    (feed,) = change_feed(place, str(table.path), [before, table.snapshot()])
    found = [tuple(row.values())[:5] for row in feed.to_pylist()]
    assert found == [
        (10, 1, "b", 0, "update_preimage"),
        (10, 1, "b", 100, "update_postimage"),
        (11, 1, "b", 1, "delete"),
        (12, 1, "b", 1, "insert"),
        *((20 + line, 2, "c", line, "delete") for line in range(3)),
    ]
    assert {row["_commit_version"] for row in feed.to_pylist()} == {record.id}


def test_a_staged_correction_waits_with_its_row_changes(make: MakeTable, tmp_path: Path) -> None:
    """Readers see nothing, the schedule is not stopped; committed, it is the same change."""
    table = make()
    new = [(10, 1, "b", 100), (12, 1, "b", 1)]
    arguments = {"key": "order_id", "updates": given(tmp_path, "updates", new), "deletes": deletes(tmp_path, [2, 3])}

    assert table.run("Apply", **arguments, stage="true") == 0
    staged = read_record(table.clients.s3, table.out_path, table.item()["LastRun"]["staged"])

    assert (table.rows(), table.item().get("Paused")) == (sorted(ORDERS, key=repr), None)
    assert (staged.staged, staged.counts.deleted, staged.counts.updated) == (True, 7, 2)
    changes = attached(table, f"{staged.id}.rows.parquet")
    assert Counter(row[-1] for row in changes) == {"update_preimage": 1, "update_postimage": 1, "insert": 1, "delete": 8}
    assert table.commit(staged.id).code == 0
    assert table.rows() == expected(ORDERS, [2, 3], new)
    assert table.head().given == staged.given


def test_a_look_at_a_large_staged_correction_is_bounded(make: MakeTable, tmp_path: Path) -> None:
    """Whole keys, the first ones, as far as the limit goes."""
    table = make()

    assert table.run("Apply", key="order_id", deletes=deletes(tmp_path, [4, 3, 2]), stage="true", sample_rows="9") == 0

    changes = attached(table, f"{table.item()['LastRun']['staged']}.rows.parquet")
    assert Counter(row[1] for row in changes) == {4: 5, 3: 4}


def test_an_erased_key_that_a_correction_brings_back_is_reported(make: MakeTable, tmp_path: Path) -> None:
    """It is done all the same, and a correction that brings none back says nothing."""
    table = make()
    assert table.run("Erase", erase_keys=deletes(tmp_path, [3]), key="order_id") == 0, table.item()["LastRun"]

    quiet = applied(table, key="id", updates=given(tmp_path, "quiet", [(20, 2, "c", 9)]))
    told = applied(table, key="id", updates=given(tmp_path, "back", [(20, 3, "c", 9), (21, 3, "c", 9)]))

    assert ("erased_keys_back" in quiet.details, told.details["erased_keys_back"]) == (False, 1)
    assert any("erased" in text for text in table.item()["LastRun"]["warnings"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small_groups")
def test_any_corrections_one_after_the_other(make: MakeTable, tmp_path: Path, seed: int) -> None:
    """With and without partitions and a primary key, in memory and in pieces: always the oracle's rows."""
    choose = random.Random(seed)
    keyed = seed % 2 == 0
    table = make(rows=ORDERS[:40], partition_key="shop" if seed < 2 else "null", primary_key="id" if keyed else "null")
    rows = sorted(ORDERS[:40], key=repr)
    for number in range(4):
        orders = choose.sample(range(18), 6)
        new = [
            (10_000 * (number + 1) + at, choose.choice(orders[3:]), choose.choice(["a", "b", "d", None]), at)
            for at in range(choose.randrange(7))
        ]
        after = expected(rows, orders[:3], new)
        files = {"deletes": deletes(tmp_path, orders[:3]), "updates": given(tmp_path, "updates", new)}
        if {row[1] for row in rows} & {*orders[:3], *(row[1] for row in new)}:
            applied(table, key="order_id", **files, stream_file_bytes=choose.choice(["0", "1000000"]))
        else:
            assert refused(table, key="order_id", **files)[1] == "no-key-found"
        assert table.rows() == after
        rows = after
    assert table.verify() == []
