"""Rollback and re-apply: rows, cursor, pause, records and catalog go together, and come back together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.catalog_partitions import read_partitions
from glue_jobs.core.undo import root
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import run_on
from tests.protocol.wire import Wire

LOADED = [(1, "one"), (2, "two"), (3, "three")]
FIRST = [(1, "ONE"), (3, "three"), (4, "four")]
SECOND = [(1, "ONE"), (3, "THREE"), (5, "five")]


@pytest.fixture
def history(make_table: TableMaker) -> LakeTable:
    """A table with a load and two batches, all applied."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    assert table.run() == 0
    table.cdc([("U", (3, "THREE")), ("D", (4, None)), ("I", (5, "five"))])
    assert table.run() == 0
    assert table.rows() == SECOND
    return table


def changes(table: LakeTable) -> list[str]:
    """All change ids, the first one first."""
    return [record.id for record in reversed(list(table.lineage().back()))]


def rolled_back(table: LakeTable, **wish: Any) -> dict[str, Any]:
    """The item after a rollback that must work; the folder is checked."""
    assert table.run("Rollback", **wish) == 0, table.item()["LastRun"]
    table.check_folder()
    return table.item()


def refused(table: LakeTable, **wish: Any) -> dict[str, str]:
    """The error of a rollback that is refused; nothing was changed."""
    before = {name: value for name, value in table.item().items() if name not in ("LastRun", "Fence")}
    rows = table.rows()
    assert table.run("Rollback", **wish) != 0
    after = {name: value for name, value in table.item().items() if name not in ("LastRun", "Fence")}
    assert (after, table.rows(), table.open_uploads()) == (before, rows, [])
    error: dict[str, str] = table.item()["LastRun"]["error"]
    return error


def test_undo_of_the_last_change_takes_files_cursor_and_pause_together(history: LakeTable) -> None:
    """The rows are those before the change, the cursor is that of the change before, and the table is paused with the reason."""
    second = changes(history)[1]

    item = rolled_back(history, to="previous")

    record = history.head()
    assert history.rows() == FIRST
    assert item["LastIncrementalFile"].endswith("20240501-120000000.parquet")
    assert item["Paused"].startswith(f"rolled back to change {second}; `dmslake activate {history.path}` applies 1 raw file(s) again")
    assert (record.kind, record.target, record.parent, record.counts.table_rows) == ("rollback", second, changes(history)[2], 3)
    assert record.details["undone"] == [changes(history)[2]]


def test_a_paused_table_is_left_alone_until_it_is_activated(history: LakeTable) -> None:
    """A run after a rollback does nothing; without the pause the next one applies the files again."""
    rolled_back(history, to="previous")
    assert history.run() == 0
    assert history.rows() == FIRST

    history.remove("Paused")
    assert history.run() == 0

    assert history.rows() == SECOND
    assert history.snapshot().awaited == {}


def test_rollback_with_resume_leaves_the_table_active(history: LakeTable) -> None:
    """With --resume there is no pause: the next run applies the files again."""
    item = rolled_back(history, to="previous", resume="true")
    assert history.run() == 0

    assert "Paused" not in item
    assert history.rows() == SECOND


def test_rollback_with_skip_drops_the_batch_for_good(history: LakeTable) -> None:
    """With --skip the cursor stays, the record lists the dropped file, and it comes back neither as pending nor as late."""
    cursor = history.item()["LastIncrementalFile"]
    item = rolled_back(history, to="previous", skip="true", resume="true")
    history.cdc([("I", (9, "nine"))])

    assert history.run() == 0

    dropped = [file.key.rsplit("/", 1)[-1] for record in history.lineage().back() for file in record.skipped]
    assert (item["LastIncrementalFile"], dropped) == (cursor, [cursor.rsplit("/", 1)[-1]])
    assert history.rows() == [*FIRST, (9, "nine")]


def test_undo_after_a_skip_keeps_the_skip(history: LakeTable) -> None:
    """Going back one change to a state with dropped files keeps them dropped: the state is the whole one, not only its rows."""
    rolled_back(history, to="previous", skip="true", resume="true")
    skipping = changes(history)[-1]
    history.cdc([("I", (9, "nine"))])
    assert history.run() == 0

    rolled_back(history, to="previous", resume="true")
    assert history.rows() == FIRST
    assert history.run() == 0

    assert history.rows() == [*FIRST, (9, "nine")]
    assert history.lineage()(changes(history)[-2]).details["state_of"] == skipping


def test_a_reload_of_the_same_load_keeps_the_skip(history: LakeTable) -> None:
    """What was left out for good is not in it: the table is as before."""
    rolled_back(history, to="previous", skip="true", resume="true")
    history.cdc([("U", (4, "four"))])
    assert history.run() == 0
    history.edit(Request="reload")

    assert history.run("LoadInitial", load_quiet_minutes=0, load_start_margin_minutes=99999999) == 0
    assert [history.run(batch_files=1) for _ in range(2)] == [0, 0]

    assert history.snapshot().generation.number == 2
    assert history.rows() == FIRST
    history.cdc([("I", (9, "nine"))])
    assert history.run() == 0
    assert history.rows() == [*FIRST, (9, "nine")]


@pytest.mark.parametrize("moves_back", [False, True])
def test_a_cursor_moved_while_a_reload_catches_up_keeps_the_skip(history: LakeTable, moves_back: bool) -> None:
    """What was left out for good lies beyond the cursor, to wherever a person moves that: on over a file that can't be read, say."""
    first, second = (history.snapshot(change).cursor for change in changes(history)[1:3])
    rolled_back(history, to="previous", skip="true", resume="true")
    last, rows = history.next_name(), [("U", (4, "last"))]
    history.cdc(rows, name=last)
    assert history.run() == 0
    history.edit(Request="reload")
    assert history.run("LoadInitial", load_quiet_minutes=0, load_start_margin_minutes=99999999) == 0
    if moves_back:
        history.put_raw(last, b"damaged")
        assert history.run(batch_files=1) == 1
        history.cdc(rows, name=last)
    assert history.snapshot().cursor == (first if moves_back else "")

    history.edit(LastIncrementalFile=f"{history.path}0.parquet" if moves_back else first)
    assert [history.run() for _ in range(2)] == [0, 0]

    assert second in {f"{history.path.bucket}/{key}" for key in history.snapshot().skipped}
    assert history.rows() == ([(1, "ONE"), (3, "three"), (4, "last")] if moves_back else [*LOADED, (4, "last")])


@pytest.mark.usefixtures("names_of_any_age")
def test_skip_over_a_reload_keeps_its_load_and_files_out(history: LakeTable) -> None:
    """Dropping a reload for good: neither its load files nor the CDC files before it are taken afterwards."""
    history.load([(7, "seven")])
    assert history.run("LoadInitial", load_quiet_minutes=0) == 0
    assert history.rows() == [(7, "seven")]

    rolled_back(history, to="previous", skip="true", resume="true")
    assert [history.run("LoadInitial", load_quiet_minutes=0), history.run()] == [0, 0]

    assert history.rows() == SECOND


def test_a_rollback_undoes_all_later_changes_together(history: LakeTable) -> None:
    """Back to the load: both batches go in one change, and both files are pending again."""
    load = changes(history)[0]

    item = rolled_back(history, to=load)

    assert history.rows() == LOADED
    assert item["LastIncrementalFile"].endswith("/0.parquet")
    assert [key.rsplit("/", 1)[-1] for key in history.snapshot().awaited] == ["20240501-120000000.parquet", "20240501-120001000.parquet"]


def test_undo_of_a_change_goes_back_to_its_parent(history: LakeTable) -> None:
    """--undo names the first change that goes."""
    rolled_back(history, undo=changes(history)[1])

    assert history.rows() == LOADED


def test_rollback_before_the_first_change_is_the_empty_table(history: LakeTable) -> None:
    """No rows and no files; once the pause is lifted the table is loaded and brought up again."""
    item = rolled_back(history, undo=changes(history)[0])
    empty = (history.visible(), item["LastFullLoadDate"], history.snapshot().is_empty)

    history.remove("Paused")
    assert [history.run("LoadInitial"), history.run()] == [0, 0]

    assert empty == (set(), "1900-01-01 00:00:00", True)
    assert history.rows() == SECOND


def test_re_apply_brings_back_the_whole_undone_tail(history: LakeTable) -> None:
    """After two rollbacks a re-apply restores rows, cursor and applied files of the last change, and lifts the pause."""
    before = history.item()
    rolled_back(history, to="previous")
    rolled_back(history, to="previous")
    assert history.rows() == LOADED

    item = rolled_back(history, reapply="all")

    assert history.rows() == SECOND
    assert (item["LastIncrementalFile"], "Paused" in item) == (before["LastIncrementalFile"], False)
    assert history.run() == 0
    assert history.item()["LastRun"]["outcome"] == "nothing"


def test_re_apply_of_one_change_leaves_the_later_ones_undone(history: LakeTable) -> None:
    """Part of the tail comes back; the table stays paused, and its reason says how much is still pending."""
    load, first, _ = changes(history)
    rolled_back(history, to=load)

    item = rolled_back(history, reapply=first)

    assert history.rows() == FIRST
    assert "applies 1 raw file(s) again" in item["Paused"]


def test_a_correction_that_stays_undone_keeps_the_pause(history: LakeTable) -> None:
    """No raw file is pending for it: but the next batch would make it impossible to bring it back."""
    second = changes(history)[-1]
    history.edit(PrimaryKey="id,name")
    assert history.run() == 0
    rolled_back(history, undo=second)

    item = rolled_back(history, reapply=second)
    assert item.get("Paused")

    assert "Paused" not in rolled_back(history, reapply="all")


@pytest.mark.parametrize("asked", [{"Request": "reload"}, {"LastFullLoadDate": "1900-01-01 00:00:00"}])
def test_a_reload_brings_the_new_key(history: LakeTable, asked: dict[str, str]) -> None:
    """Asked for beside another PrimaryKey, it comes, and once: the rows are not made over first."""
    history.edit(PrimaryKey="id,name", **asked)

    assert history.run("LoadInitial", load_quiet_minutes=0) == 0
    assert history.run("LoadInitial", load_quiet_minutes=0) == 0

    kinds = [record.kind for record in history.lineage().back()]
    assert kinds == ["full-load", "incremental", "incremental", "full-load"]
    assert history.snapshot().primary_key == ("id", "name")


def test_a_rollback_can_be_rolled_back(history: LakeTable) -> None:
    """--undo of a rollback is the state before it."""
    rolled_back(history, to="previous")

    rolled_back(history, undo=changes(history)[-1])

    assert history.rows() == SECOND


def test_re_apply_is_refused_once_other_changes_came(history: LakeTable) -> None:
    """A re-apply would drop them; the error names the rollback that says so."""
    last = changes(history)[-1]
    rolled_back(history, to="previous", skip="true", resume="true")
    history.cdc([("I", (9, "nine"))])
    assert history.run() == 0

    error = refused(history, reapply=last)

    assert error["code"] == "not-in-tail"
    assert f"dmslake rollback {history.path} --to {last} --dry-run" in error["todo"]


def test_rollback_to_an_undone_change_drops_what_came_since(history: LakeTable) -> None:
    """What re-apply refuses, rollback --to does: the later change goes, its file is pending again."""
    last = changes(history)[-1]
    rolled_back(history, to="previous", skip="true", resume="true")
    history.cdc([("I", (9, "nine"))])
    assert history.run() == 0

    rolled_back(history, to=last, resume="true")
    assert history.rows() == SECOND
    assert history.run() == 0

    assert history.rows() == [*SECOND, (9, "nine")]


@pytest.mark.parametrize("form", ["iso", "epoch"])
def test_rollback_to_a_time_is_the_state_as_of_it(history: LakeTable, form: str) -> None:
    """The newest change that is not later stays."""
    moment = datetime.fromisoformat(history.lineage()(changes(history)[1]).time.replace("Z", "+00:00"))

    rolled_back(history, to=moment.isoformat() if form == "iso" else f"{moment.timestamp():.6f}")

    assert history.rows() == FIRST


def test_rollback_to_where_the_table_is_does_nothing(history: LakeTable) -> None:
    """No change is made, and the run says why."""
    before = changes(history)

    rolled_back(history, to=before[-1])

    assert (changes(history), history.item()["LastRun"]["note"]) == (before, "nothing to do: the table already has that state")


def test_a_dry_run_changes_nothing(history: LakeTable) -> None:
    """Neither item (the lease's fence aside) nor records nor folder."""
    before, files = changes(history), history.visible()

    assert history.run("Rollback", to="previous", dry_run="true") == 0

    assert (changes(history), history.visible(), history.rows()) == (before, files, SECOND)
    assert "Paused" not in history.item()


def test_no_byte_of_a_data_file_passes_through_a_rollback(history: LakeTable, wire: Wire) -> None:
    """Hidden files come back by server-side copies; nothing is read but records, and no part is sent."""
    assert run_on(wire, history, "Rollback", to=changes(history)[0], lease_seconds=60) == 0

    read = [request.key for request in wire.of("GetObject") if "/_changes/" not in request.key]
    copies = wire.of("UploadPartCopy")
    assert (read, wire.of("UploadPart"), len(copies)) == ([], [], 1)
    assert history.rows() == LOADED


def test_copies_remember_the_file_that_was_written(history: LakeTable) -> None:
    """Back and forth twice: a copy of a copy has the first file as its origin, and no key becomes visible twice."""
    load, first, second = changes(history)
    written = {change: {file.path for file in history.snapshot(change).files.values()} for change in (load, first, second)}
    seen: list[set[str]] = []
    for goal in (load, second, first, second, load):
        rolled_back(history, to=goal)
        snapshot = history.snapshot()
        assert {root(file) for file in snapshot.files.values()} == written[goal]
        seen.append(set(snapshot.files))

    assert all(not (one & other) for at, one in enumerate(seen) for other in seen[:at])


def test_columns_and_catalog_go_back(make_table: TableMaker) -> None:
    """A column that a later change added is gone from rows, record and catalog, and back after the re-apply."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    wide = table.columns.append(pa.field("qty", pa.int32()))
    table.cdc([("I", (4, "four", 40))], columns=wide)
    assert table.run() == 0

    rolled_back(table, to="previous")
    back = (table.rows(), [column["Name"] for column in table.catalog_table()["StorageDescriptor"]["Columns"]])
    rolled_back(table, reapply="all")

    assert back == (LOADED, ["id", "name"])
    assert [column["Name"] for column in table.catalog_table()["StorageDescriptor"]["Columns"]] == ["id", "name", "qty"]
    assert table.rows()[-1] == (4, "four", 40)


def test_layout_goes_back_with_the_items_partition_key(make_table: TableMaker) -> None:
    """Undo of a repartition: files, PartitionKey and the catalog's partitions are those of before; the next run is not blocked."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.edit(PartitionKey="name", Request="repartition")
    assert table.run() == 0
    assert table.item()["PartitionKey"] == "name"

    item = rolled_back(table, to="previous", resume="true")
    flat = (item["PartitionKey"], table.catalog_table()["PartitionKeys"])
    assert table.run() == 0
    rolled_back(table, reapply="all")

    name = table.item()["CatalogTable"]
    partitions = sorted(each.values for each in read_partitions(table.clients.glue, table.environment["DMSLAKE_DATABASE"], name))
    assert flat == ("null", [])
    assert (table.item()["PartitionKey"], partitions, table.rows()) == ("name", [("one",), ("three",), ("two",)], LOADED)


def test_primary_key_goes_back_with_the_item(make_table: TableMaker) -> None:
    """Undo of a change of the key: the item has the old key, so that the next run does not change it again."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.edit(PrimaryKey="name")
    assert table.run() == 0

    item = rolled_back(table, to="previous", resume="true")
    assert table.run() == 0

    assert (item["PrimaryKey"], table.snapshot().primary_key, table.item()["LastRun"]["outcome"]) == ("id", ("id",), "nothing")


@pytest.mark.usefixtures("names_of_any_age")
def test_rollback_over_a_reload_makes_the_reload_due_again(history: LakeTable) -> None:
    """The old generation's rows are back; after the pause the same load is taken again."""
    history.load([(7, "seven")])
    assert history.run("LoadInitial", load_quiet_minutes=0) == 0

    rolled_back(history, to="previous")
    old = history.rows()
    history.remove("Paused")
    assert history.run("LoadInitial", load_quiet_minutes=0) == 0

    assert (old, history.rows()) == (SECOND, [(7, "seven")])


def test_a_late_change_that_is_undone_is_pending_again(history: LakeTable) -> None:
    """The late file is awaited below the cursor, and taken as late again."""
    history.cdc([("I", (8, "eight"))], name="20240501-120000500.parquet")
    assert history.run() == 0
    late = history.rows()

    rolled_back(history, to="previous", resume="true")
    undone = (history.rows(), [key[-26:] for key in history.snapshot().awaited])
    assert history.run() == 0

    assert undone == (SECOND, ["20240501-120000500.parquet"[-26:]])
    assert history.rows() == late == [*SECOND, (8, "eight")]


def test_unfinished_work_is_finished_before_a_rollback(history: LakeTable) -> None:
    """A change that was committed and not published is published first, then undone."""
    history.edit(Publishing=history.item()["Head"])

    rolled_back(history, to="previous")

    assert history.rows() == FIRST


def test_an_inactive_table_can_be_rolled_back(history: LakeTable) -> None:
    """ActiveFlag is about runs of the controller."""
    history.edit(ActiveFlag="false")

    rolled_back(history, to="previous")

    assert history.rows() == FIRST


def test_a_persons_own_pause_is_not_forgotten(history: LakeTable) -> None:
    """The reason of the rollback names it, and a re-apply does not lift it."""
    history.edit(Paused="waiting for the audit")

    rolled_back(history, to="previous")
    item = rolled_back(history, reapply="all")

    assert "paused before: waiting for the audit" in history.lineage()(changes(history)[-1]).details["before"]["Paused"]
    assert item["Paused"] == "waiting for the audit"


__all__ = ["changes", "history", "refused", "rolled_back"]
