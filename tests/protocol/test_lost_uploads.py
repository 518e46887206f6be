"""A committed change whose uploads are gone (a lifecycle rule aborts old ones): it is taken back and done again."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.record import ChangeRecord
from glue_jobs.protocol import table_run
from glue_jobs.protocol.converge import abort_uploads
from glue_jobs.protocol.history import ancestors
from glue_jobs.protocol.publish import given_back
from glue_jobs.rows import insert_rows
from tests.core.records import minimal
from tests.core.tables import loaded as loaded_snapshot
from tests.core.tables import state_of
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import LONG_LEASE, die, facts, run_on
from tests.protocol.test_converge import committed, die_after
from tests.protocol.wire import Request, Wire, die_at


def lose(table: LakeTable, record: ChangeRecord, which: slice = slice(None)) -> None:
    """What S3 does by itself some days later."""
    abort_uploads(table.clients.s3, table.out_path, record.added[which])


def kinds(table: LakeTable) -> list[str]:
    """The kinds of the table's changes, the oldest first."""
    return [record.kind for record in ancestors(table.clients.s3, table.out_path, table.item()["Head"])][::-1]


def check_finished(table: LakeTable) -> None:
    table.check_folder()
    assert list(list_open_uploads(table.clients.s3, table.out_path.bucket, table.out_path.key)) == []


def test_a_lost_batch_is_taken_back_and_applied_again(loaded: LakeTable, wire: Wire) -> None:
    """In the same run, and the report says so."""
    lose(loaded, committed(wire, loaded))

    code = loaded.run("LoadIncremental")

    assert (code, loaded.rows(), kinds(loaded)) == (0, AFTER, ["full-load", "incremental", "lost", "incremental"])
    assert "were gone before they were published" in loaded.item()["LastRun"]["warnings"][0]
    check_finished(loaded)


def test_a_lost_load_is_taken_back_and_loaded_again(table: LakeTable, wire: Wire) -> None:
    """At once, like any first load, with the key and the layout that the item has."""
    lose(table, committed(wire, table, "LoadInitial"))

    code = table.run("LoadInitial")

    assert (code, table.rows(), kinds(table)) == (0, BEFORE, ["full-load", "lost", "full-load"])
    assert table.head().generation.cdc_from == ""
    check_finished(table)


@pytest.mark.parametrize("partition_key", ["null", "name"])
def test_a_lost_first_batch_of_a_table_without_load_is_applied_again(make_table: TableMaker, wire: Wire, partition_key: str) -> None:
    """Partitioned as the item says."""
    table = make_table(partition_key=partition_key)
    table.cdc([("I", row) for row in BEFORE])
    lose(table, committed(wire, table))

    code = table.run("LoadIncremental")

    assert (code, table.rows(), kinds(table)) == (0, BEFORE, ["incremental", "lost", "incremental"])
    assert all(path.startswith("name=") == (partition_key == "name") for path in table.visible())
    check_finished(table)


@pytest.mark.usefixtures("names_of_any_age")
def test_a_lost_reload_leaves_the_old_table_until_it_is_loaded_again(loaded: LakeTable, wire: Wire) -> None:
    """The files that it superseded were never hidden."""
    assert loaded.run("LoadIncremental") == 0
    loaded.load([(9, "nine")])
    loaded.edit(LoadQuietMinutes="0")
    lose(loaded, committed(wire, loaded, "LoadInitial"))

    first = loaded.run("LoadIncremental")
    between = loaded.rows()
    second = loaded.run("LoadInitial")

    assert (first, between, second, loaded.rows()) == (0, AFTER, 0, [(9, "nine")])
    check_finished(loaded)


@pytest.mark.parametrize("which", [slice(1), slice(1, 2), slice(2, None)])
def test_a_change_of_which_some_uploads_are_gone_is_taken_back_whole(make_table: TableMaker, wire: Wire, which: slice) -> None:
    """Never half a change: what was completed is hidden again."""
    table = make_table(partition_key="name")
    table.load([(number, f"p{number}") for number in range(3)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (0, "p1")), ("U", (1, "p2")), ("U", (2, "p0"))])
    lose(table, committed(wire, table), which)

    assert table.run("LoadIncremental") == 0

    assert (table.rows(), kinds(table)[-2:]) == ([(0, "p1"), (1, "p2"), (2, "p0")], ["lost", "incremental"])
    check_finished(table)


def test_an_edit_of_the_cursor_meanwhile_refuses_nothing(loaded: LakeTable, wire: Wire) -> None:
    """The table goes back to before the change and takes its file again."""
    lose(loaded, committed(wire, loaded))
    loaded.cdc([("I", (5, "five"))])

    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, sorted([*AFTER, (5, "five")], key=repr))
    check_finished(loaded)


@pytest.fixture
def stranded(loaded: LakeTable, wire: Wire) -> LakeTable:
    """A table whose head lost its uploads and the CDC file that it was made from."""
    record = committed(wire, loaded)
    lose(loaded, record)
    loaded.delete_raw(record.inputs[0].key.rsplit("/", 1)[-1])
    return loaded


def test_without_its_inputs_a_lost_change_blocks_the_table(stranded: LakeTable) -> None:
    """The head stays, readers have the old files, and the way out is a reload."""
    head = stranded.item()["Head"]

    code = stranded.run("LoadIncremental")

    item = stranded.item()
    assert (code, item["LastRun"]["error"]["code"], item["Head"], stranded.rows()) == (1, "reload-needed", head, BEFORE)
    assert "dmslake reload" in item["LastRun"]["error"]["todo"]


def test_a_changed_input_is_as_bad_as_a_missing_one(loaded: LakeTable, wire: Wire) -> None:
    """It would apply something else in the same place."""
    record = committed(wire, loaded)
    lose(loaded, record)
    loaded.cdc([("D", (1, None))], name=record.inputs[0].key.rsplit("/", 1)[-1])

    assert (loaded.run("LoadIncremental"), loaded.item()["LastRun"]["error"]["code"]) == (1, "reload-needed")


def test_a_stranded_table_can_be_reloaded(stranded: LakeTable) -> None:
    """The very way out that the block names."""
    assert stranded.run("LoadIncremental") == 1
    stranded.load([(7, "seven")])
    stranded.edit(Request="reload", LoadQuietMinutes="0")

    codes = [stranded.run(job) for job in ("LoadIncremental", "LoadInitial", "LoadIncremental")]

    assert (codes, stranded.rows()) == ([0, 0, 0], [(7, "seven")])
    check_finished(stranded)


def test_a_run_may_die_anywhere_while_it_takes_a_change_back(make_table: TableMaker) -> None:
    """After every request that changes something: the next run ends like an undisturbed one.

    Up to the point where the change is taken back and its file is applied like any other.
    """

    def lost_table() -> LakeTable:
        table = make_table()
        table.load(BEFORE)
        assert table.run("LoadInitial") == 0
        table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
        lose(table, committed(Wire(), table))
        table.remove("LeaseOwner", "LeaseSeconds", "LeaseBeat")  # how often a run looks at it is chance, and requests are counted here
        return table

    counting, table = Wire(), lost_table()
    assert run_on(counting, table, "LoadIncremental", lease_seconds=LONG_LEASE) == 0
    expected: Any = facts(table)
    wrong = []
    applied_again = next(number for number, request in enumerate(counting.requests) if request.operation == "CreateMultipartUpload")
    points = [(number, request) for number, request in enumerate(counting.requests[:applied_again]) if request.is_write]
    for number, request in points:
        table, dying = lost_table(), Wire()
        die(dying, table, "LoadIncremental", die_at(dying, number, after=True))
        code = table.run("LoadIncremental")
        if (code, facts(table)) != (0, expected):
            wrong.append((number, request.operation, request.key[-60:], code, table.item().get("LastRun"), facts(table)))

    assert expected["rows"] == AFTER
    assert len(points) > 6
    assert not wrong, wrong[:2]


def test_dying_between_the_completions_and_the_hiding_is_no_loss(loaded: LakeTable, wire: Wire) -> None:
    """All uploads are objects by then: an abort has nothing to abort."""
    die(wire, loaded, "LoadIncremental", die_after(wire, Request.is_hide, 0))
    lose(loaded, loaded.head())

    assert (loaded.run("LoadIncremental"), loaded.rows(), "lost" in kinds(loaded)) == (0, AFTER, False)


def test_keys_come_back_from_a_lost_rollback_unless_they_were_edited_since() -> None:
    """What a person has set after the rollback is their wish for the next run."""
    lost = minimal(kind="rollback", primary_key=("id",), details={"before": {"PrimaryKey": "old", "Paused": "audit"}})

    untouched = given_back(state_of(loaded_snapshot(), PrimaryKey="id"), lost)
    edited = given_back(state_of(loaded_snapshot(), PrimaryKey="mine"), lost)

    assert (untouched["PrimaryKey"], "PrimaryKey" in edited) == ("old", False)
    assert "was taken back" in untouched["Paused"]


def insert(table: LakeTable, key: int) -> str:
    """A row that a person gives, in this process."""
    row = {"id": key, "name": str(key)}
    return insert_rows(str(table.path), [row], environment=table.environment, driver_bytes="1000000000")


def test_an_edit_is_made_after_a_lost_one_was_taken_back(loaded: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same run: what takes the other one back is no work of its own."""
    with monkeypatch.context() as patched:
        patched.setattr(table_run, "converge", lambda *_, **__: 1 // 0)
        with pytest.raises(DmslakeError, match="ZeroDivisionError"):
            insert(loaded, 8)
    lose(loaded, loaded.head())

    change = insert(loaded, 9)

    assert loaded.rows() == [*BEFORE, (9, "9")]
    assert (loaded.head().id, kinds(loaded)) == (change, ["full-load", "edit", "lost", "edit"])
    check_finished(loaded)


def test_an_edit_that_is_taken_back_fails(loaded: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for it is told so."""
    real = table_run.converge

    def losing(s3: Any, lake: Any, record: ChangeRecord, **options: Any) -> None:
        if record.kind == "edit":
            lose(loaded, record)
        real(s3, lake, record, **options)

    monkeypatch.setattr(table_run, "converge", losing)

    with pytest.raises(DmslakeError) as caught:
        insert(loaded, 9)

    assert (caught.value.code, kinds(loaded), loaded.rows()) == ("uploads-gone", ["full-load", "edit", "lost"], BEFORE)
    check_finished(loaded)


def test_a_rollback_that_is_taken_back_fails(loaded: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the table is as it was, paused with what happened."""
    assert loaded.run("LoadIncremental") == 0
    real = table_run.converge

    def losing(s3: Any, lake: Any, record: ChangeRecord, **options: Any) -> None:
        if record.kind == "rollback":
            lose(loaded, record)
        real(s3, lake, record, **options)

    monkeypatch.setattr(table_run, "converge", losing)

    code = loaded.run("Rollback", to="previous")

    assert (code, loaded.item()["LastRun"]["error"]["code"], loaded.rows()) == (1, "uploads-gone", AFTER)
    assert "was taken back" in loaded.item()["Paused"]
    assert loaded.verify() == []
