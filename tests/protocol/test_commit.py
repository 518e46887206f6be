"""The commit point: refused when anything moved since the plan, and known to have landed or not, whatever the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import IncompleteReadError

from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.core.errors import RetryLater
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE
from tests.protocol.runs import die, run_on
from tests.protocol.wire import Request, Rule, Wire, once

Forward = Callable[[], Any]


def broken_answer() -> Any:
    """What botocore raises, and does not try again, when an answer ends in its middle."""
    raise IncompleteReadError(actual_bytes=1, expected_bytes=2)


def effect(do: Callable[[], Any]) -> Callable[[Forward], Any]:
    """Does something, then sends the request."""

    def then(forward: Forward) -> Any:
        do()
        return forward()

    return then


def check_nothing_happened(table: LakeTable) -> None:
    """Rows, head and cursor as before, and no upload is left."""
    assert (table.rows(), table.item()["LastRun"]["error"]["code"]) == (BEFORE, "commit-refused")
    assert list(list_open_uploads(table.clients.s3, table.out_path.bucket, table.out_path.key)) == []
    table.check_folder()


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("ActiveFlag", "false"),
        ("Paused", "let me look"),
        ("LastIncrementalFile", "20240501-130000000.parquet"),
        ("LastFullLoadDate", "1900-01-01 00:00:00"),
        ("PrimaryKey", "id,name"),
        ("PartitionKey", "name"),
        ("out_path", "s3://dmslake-lake/elsewhere/shop/orders/"),
        ("SkipFiles", "20240501-120000000.parquet"),
        ("Request", "reload"),
        ("Blocked", "wait for Bob"),
        ("CatalogTable", "orders_of_mine"),
    ],
)
def test_a_persons_edit_between_plan_and_commit_refuses_the_commit(loaded: LakeTable, wire: Wire, attribute: str, value: str) -> None:
    """What was planned is not what is wanted any more; the next run plans anew."""
    before = loaded.item()

    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_record, effect(lambda: loaded.edit(**{attribute: value}))))

    item = loaded.item()
    assert (code, item["Head"], item[attribute]) == (1, before["Head"], value)
    loaded.edit(out_path=before["out_path"])
    check_nothing_happened(loaded)


def test_an_attribute_that_vanishes_refuses_the_commit_too(loaded: LakeTable, wire: Wire) -> None:
    """Absent is a value."""
    loaded.edit(SkipFiles="none.parquet")

    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_record, effect(lambda: loaded.remove("SkipFiles"))))

    assert code == 1
    check_nothing_happened(loaded)


def test_after_a_refused_commit_the_next_run_goes_on(loaded: LakeTable, wire: Wire) -> None:
    """Nothing was changed, so nothing is to repair."""
    run_on(wire, loaded, "LoadIncremental", once(Request.is_record, effect(lambda: loaded.edit(SkipFiles="none.parquet"))))

    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)
    loaded.check_folder()


def test_a_block_by_hand_holds_from_the_moment_it_is_written(loaded: LakeTable, wire: Wire) -> None:
    """The run that did not see it is refused, the next one is blocked, and when it is lifted the files are taken."""
    run_on(wire, loaded, "LoadIncremental", once(Request.is_record, effect(lambda: loaded.edit(Blocked="wait for Bob"))))

    codes = [loaded.run("LoadIncremental"), loaded.run("LoadIncremental")]
    item = loaded.item()
    loaded.remove("Blocked")

    assert (codes, item["Blocked"], item["LastRun"]["error"]["code"]) == ([1, 1], "wait for Bob", "by-hand")
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)


EDITS: dict[str, Callable[[LakeTable], None]] = {
    "written by hand": lambda table: table.edit(Blocked="wait for Bob"),
    "lifted": lambda table: table.remove("Blocked"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_persons_word_stays_where_the_run_blocks_the_table(loaded: LakeTable, wire: Wire, edit: str) -> None:
    """What it read as Blocked is not what stands there any more. Its result is written all the same, and the lease given back."""
    name = loaded.next_name()
    loaded.put_raw(name, b"no Parquet")
    assert (loaded.run("LoadIncremental"), "Blocked" in loaded.item()) == (1, True)
    loaded.put_raw(name, b"no Parquet either")
    is_read = once(lambda request: request.operation == "GetObject" and request.key.endswith(name), effect(lambda: EDITS[edit](loaded)))

    code = run_on(wire, loaded, "LoadIncremental", is_read)

    item = loaded.item()
    assert (code, item.get("Blocked"), "LeaseOwner" in item) == (1, {"written by hand": "wait for Bob"}.get(edit), False)
    assert (item["LastRun"]["outcome"], item["LastRun"]["error"]["code"]) == ("blocked", "bad-raw-file")


def test_another_runs_lease_refuses_the_commit(loaded: LakeTable, wire: Wire) -> None:
    """The fence moved: whoever took over decides what happens to the table."""

    def take_over() -> None:
        item = loaded.item()
        assert loaded.state_table.take_lease(str(loaded.path), item, "successor", item["Fence"] + 1, 0.05)

    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_record, effect(take_over)), lease_seconds=60)

    assert (code, loaded.item()["LeaseOwner"], loaded.rows()) == (1, "successor", BEFORE)
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)


def lost(forward: Forward) -> Any:
    """It landed, and nobody was told."""
    forward()
    return broken_answer()


def test_a_commit_whose_answer_was_lost_counts(loaded: LakeTable, wire: Wire) -> None:
    """It is read back: the head is the change, so the run goes on and publishes it."""
    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_commit, lost))

    assert (code, loaded.rows(), loaded.item()["LastRun"]["outcome"]) == (0, AFTER, "committed")
    loaded.check_folder()


def test_a_commit_that_was_sent_twice_counts_once(loaded: LakeTable, wire: Wire) -> None:
    """botocore sends it again when an answer is lost, and the second one is refused: the first one was ours."""

    def twice(forward: Forward) -> Any:
        forward()
        return forward()

    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_commit, twice))

    assert (code, loaded.rows()) == (0, AFTER)
    loaded.check_folder()


def test_a_commit_that_never_arrived_is_dropped(loaded: LakeTable, wire: Wire) -> None:
    """The fence is moved on before its uploads are aborted, because it could still arrive."""
    fence = loaded.item()["Fence"] + 1

    code = run_on(wire, loaded, "LoadIncremental", once(Request.is_commit, lambda forward: broken_answer()))

    assert (code, loaded.item()["Fence"]) == (1, fence + 1)
    check_nothing_happened(loaded)


def test_a_commit_that_arrives_after_it_was_dropped_is_refused(loaded: LakeTable, wire: Wire) -> None:
    """The network may hold a request back for minutes."""
    delayed: list[Forward] = []

    def hold_back(forward: Forward) -> Any:
        delayed.append(forward)
        return broken_answer()

    assert run_on(wire, loaded, "LoadIncremental", once(Request.is_commit, hold_back)) == 1
    head = loaded.item()["Head"]

    assert (delayed[0]().status_code, loaded.item()["Head"]) == (400, head)
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)
    loaded.check_folder()


def test_a_commit_that_arrives_while_it_is_looked_for_counts(loaded: LakeTable, wire: Wire) -> None:
    """Between the first look and the move of the fence: the second look finds it."""
    delayed: list[Forward] = []

    def rule(request: Request, forward: Forward) -> Any:
        if request.is_commit() and not delayed:
            delayed.append(forward)
            return broken_answer()
        if delayed and request.operation == "UpdateItem" and len(delayed) == 1:
            delayed.append(forward)
            assert delayed[0]().status_code == 200
        return forward()

    code = run_on(wire, loaded, "LoadIncremental", rule)

    assert (code, loaded.rows(), len(delayed)) == (0, AFTER, 2)
    loaded.check_folder()


def test_a_record_is_written_before_the_head_names_it(loaded: LakeTable, wire: Wire) -> None:
    """And uploads are completed after that: the order is the protocol."""
    run_on(wire, loaded, "LoadIncremental")

    places = [number for kind in KINDS for number, request in enumerate(wire.requests) if kind(request)]

    assert places == sorted(places)
    assert len(places) == len(KINDS)


KINDS: tuple[Callable[[Request], bool], ...] = (
    Request.is_data_part, Request.is_record, Request.is_commit, Request.is_completion, Request.is_hide,
)  # fmt: skip


def fail_record(forward: Forward) -> Any:
    return broken_answer()


def test_a_record_that_could_not_be_written_ends_the_change(loaded: LakeTable, wire: Wire) -> None:
    """Without a record there is no commit."""
    rule: Rule = once(Request.is_record, fail_record)

    code = run_on(wire, loaded, "LoadIncremental", rule)

    assert (code, loaded.rows(), [request for request in wire.requests if request.is_commit()]) == (1, BEFORE, [])
    assert (loaded.run("LoadIncremental"), loaded.rows()) == (0, AFTER)


def test_a_block_that_can_not_be_written_holds_no_lease(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run need not wait, and finds the block anew."""
    table.put_raw("LOAD00000002.parquet", b"no Parquet")

    def fail(*_: Any, **__: Any) -> bool:
        raise RetryLater("DynamoDB is busy", "aws-busy")

    with monkeypatch.context() as patch:
        patch.setattr(StateTable, "write_under_fence", fail)
        assert table.run("LoadInitial") == 1

    assert not {"LeaseOwner", "Blocked"} & set(table.item())
    assert table.run("LoadInitial") == 1
    assert "bad-raw-file" in table.item()["Blocked"]


@pytest.mark.parametrize("moment", ["before the block", "after the block", "after the lease was given back"])
def test_a_run_that_dies_at_its_block(table: LakeTable, wire: Wire, moment: str) -> None:
    """Block and result are two writes: whichever is there, the next run ends as this one would have, and the table waits for a person."""
    table.put_raw("LOAD00000002.parquet", b"no Parquet")

    def ends(request: Request) -> bool:
        return request.operation == "UpdateItem" and (b'"Blocked"' if "block" in moment else b'"LastRun"') in request.body

    def last(forward: Forward) -> Any:
        if moment.startswith("after"):
            forward()
        return wire.kill()

    die(wire, table, "LoadInitial", once(ends, last))
    left = {"Blocked", "LastRun", "LeaseOwner"} & set(table.item())
    assert (
        left
        == {
            "before the block": {"LeaseOwner"},
            "after the block": {"LeaseOwner", "Blocked"},
            "after the lease was given back": {"Blocked", "LastRun"},
        }[moment]
    )

    assert (table.run("LoadInitial"), table.item()["LastRun"]["error"]["code"], "LeaseOwner" in table.item()) == (1, "bad-raw-file", False)
    assert "bad-raw-file" in table.item()["Blocked"]
    assert table.visible() == set()
