"""One run at a time: the lease, its fence, and the deadline that stops a run which lost it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from glue_jobs.aws.clients import Clients, Deadline, make_clients
from glue_jobs.aws.records import write_record
from glue_jobs.aws.state_table import Commit, StateTable
from glue_jobs.core.errors import LeaseHeld, LeaseLost
from glue_jobs.core.ids import ChangeId
from glue_jobs.protocol.lease import Lease, take_lease
from tests.core.records import minimal
from tests.lake import LakeTable
from tests.protocol.conftest import BEFORE, TableMaker
from tests.protocol.until import until
from tests.protocol.wire import Request, Wire, once, read_request


def held(table: LakeTable, seconds: float = 1.0, deadline: Deadline | None = None, state_table: StateTable | None = None) -> Lease:
    """The table's lease, taken for somebody who renews it."""
    return take_lease(state_table or table.state_table, deadline or Deadline(), table.item(), "somebody", seconds, lambda: 1, no_wait)


def no_wait(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s for a free lease")


def taken_by_the_dead(table: LakeTable, seconds: float = 0.1) -> dict[str, Any]:
    """The item with a lease whose owner gives no sign of life."""
    item = table.item()
    assert table.state_table.take_lease(str(table.path), item, "dead", int(item.get("Fence", 0)) + 1, seconds)
    return table.item()


@contextmanager
def holding(lease: Lease) -> Iterator[Lease]:
    try:
        yield lease
    finally:
        lease.release()


def test_every_run_has_a_greater_fence_and_gives_the_lease_back(table: LakeTable) -> None:
    """The fence stays in the item, the lease doesn't."""
    fences = []
    for job in ("LoadInitial", "LoadIncremental", "LoadIncremental"):
        assert table.run(job) == 0
        fences.append(table.item()["Fence"])

    assert fences == [1, 2, 3]
    assert not {"LeaseOwner", "LeaseSeconds", "LeaseBeat"} & set(table.item())


def test_a_lease_that_is_renewed_is_left_alone(table: LakeTable) -> None:
    """Exit 4, and nothing of the table has changed."""
    with holding(held(table, seconds=0.6)):
        before = {name: value for name, value in table.item().items() if name != "LeaseBeat"}

        code = table.run("LoadInitial")

        after = {name: value for name, value in table.item().items() if name != "LeaseBeat"}

    assert (code, after, table.visible()) == (4, before, set())


def test_a_dead_owners_lease_is_taken_over_after_its_length(table: LakeTable) -> None:
    """With a greater fence."""
    fence = taken_by_the_dead(table)["Fence"]

    code = table.run("LoadInitial")

    assert (code, table.item()["Fence"], table.rows()) == (0, fence + 1, BEFORE)


def watching(table: LakeTable, meanwhile: Callable[[], Any], seconds: float = 0.2) -> Lease:
    """Takes the lease of a dead owner; while it is watched, something happens once."""
    item = taken_by_the_dead(table, seconds)
    pending = [meanwhile]
    pause = threading.Event()

    def wait(seconds: float) -> None:
        if pending:
            pending.pop()()
        pause.wait(seconds)

    return take_lease(table.state_table, Deadline(), item, "me", 5.0, lambda: 1, wait)


@pytest.mark.parametrize("sign", ["renewed", "released", "taken over"])
def test_any_sign_of_life_means_that_the_lease_is_held(table: LakeTable, sign: str) -> None:
    """A changed value, not a clock: the owner may be on a machine whose time is wrong."""
    path, states = str(table.path), table.state_table
    signs: dict[str, Callable[[], Any]] = {
        "renewed": lambda: states.renew(path, "dead", 1, 2),
        "released": lambda: states.release(path, "dead", 1),
        "taken over": lambda: states.take_lease(path, table.item(), "third", 2, 5.0),
    }

    with pytest.raises(LeaseHeld, match="another run works on"):
        watching(table, signs[sign])

    assert table.item().get("LeaseOwner") != "me"


def test_without_a_sign_of_life_the_lease_is_taken(table: LakeTable) -> None:
    """The owner is dead, or so slow that its writes are refused from now on."""
    with holding(watching(table, lambda: None)) as lease:
        assert (lease.fence, table.item()["LeaseOwner"]) == (2, "me")


def test_of_two_that_take_over_one_wins(table: LakeTable) -> None:
    """Both have watched; the second to write finds another fence."""
    item = taken_by_the_dead(table)
    assert table.state_table.take_lease(str(table.path), item, "first", 2, 5.0)

    assert not table.state_table.take_lease(str(table.path), item, "second", 2, 5.0)

    assert table.item()["LeaseOwner"] == "first"


@pytest.mark.parametrize("nothing", [None, "", "null", "None"])
def test_a_new_items_fence_starts_above_its_records(table: LakeTable, nothing: str | None) -> None:
    """The item was deleted and made again, maybe with what people write for nothing: change ids must go on growing."""
    if nothing is not None:
        table.edit(Fence=nothing)
    write_record(table.clients.s3, table.out_path, minimal(id=str(ChangeId(7, 1, "0000000a")), table=str(table.path)))

    code = table.run("LoadInitial")

    assert (code, table.item()["Fence"]) == (0, 8)


def test_giving_back_leaves_another_owners_lease(table: LakeTable) -> None:
    """A run that woke up late ends; its successor works on."""
    lease = held(table, seconds=30)
    assert table.state_table.take_lease(str(table.path), table.item(), "successor", 2, 30.0)

    lease.release()

    assert table.item()["LeaseOwner"] == "successor"


def test_a_fence_that_moved_is_known_although_the_answer_was_lost(table: LakeTable, wire: Wire) -> None:
    """The request that is sent again is refused, since the first has moved what it asks for. Another owner's fence is not ours."""

    def lose(send: Callable[[], Any]) -> Any:
        send()
        raise ConnectionClosedError(endpoint_url="dynamodb")

    with holding(held(table, seconds=60.0)) as lease:
        before = lease.fence
        wire.rule = once(lambda request: request.operation == "UpdateItem", lose)
        with wire.connected():
            moved = lease.move_on(above=before + 5)

        assert (moved, lease.fence, table.item()["Fence"]) == (True, before + 6, before + 6)
        assert len(wire.of("UpdateItem")) == 2
        table.edit(Fence=before + 7, LeaseOwner="another")
        assert (lease.move_on(), lease.fence) == (False, before + 6)


@pytest.fixture
def deadline() -> Deadline:
    return Deadline()


@pytest.fixture
def owned(table: LakeTable, deadline: Deadline, clients: Clients) -> StateTable:
    """The state table as a run has it: its writes stop after the deadline."""
    stopped = make_clients(clients.environment, deadline)
    return StateTable(stopped, table.state_table.name)


def is_over(deadline: Deadline) -> bool:
    try:
        deadline.check()
    except LeaseLost:
        return True
    return False


def commit_of(table: LakeTable, fence: int) -> Commit:
    return Commit(fence=fence, parent="", change=str(ChangeId(fence, 1, "0000000a")))


def test_a_run_that_cannot_renew_writes_nothing_any_more(table: LakeTable, owned: StateTable, deadline: Deadline, wire: Wire) -> None:
    """Its own monotonic clock says so, before anybody else could have taken over."""

    def no_renewals(request: Request, forward: Callable[[], Any]) -> Any:
        if b'"LeaseBeat"' in request.body and request.operation == "UpdateItem":
            raise ConnectionClosedError(endpoint_url="the embedded AWS")
        return forward()

    lease = held(table, seconds=0.3, deadline=deadline, state_table=owned)
    wire.rule = no_renewals
    with wire.connected(), holding(lease):
        until(lambda: is_over(deadline), "the deadline passes")

        with pytest.raises(LeaseLost, match="deadline"):
            owned.commit(str(table.path), commit_of(table, lease.fence))

    assert "Head" not in table.item()


def test_a_connection_that_hangs_does_not_cost_the_lease(
    table: LakeTable, owned: StateTable, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first renewal has no answer for as long as its client waits for one; the next goes another way, and the run commits."""
    real, hanging, ended = URLLib3Session.send, threading.Event(), threading.Event()

    def send(session: Any, request: Any) -> Any:
        if hanging.is_set() or b'"LeaseBeat"' not in read_request(request).body:
            return real(session, request)
        hanging.set()
        ended.wait(session._timeout.read_timeout)
        raise ReadTimeoutError(endpoint_url=request.url)

    lease = held(table, seconds=1.2, deadline=deadline, state_table=owned)
    monkeypatch.setattr(URLLib3Session, "send", send)
    with holding(lease):
        until(lambda: table.item()["LeaseBeat"] > 1 or is_over(deadline), "a renewal after the one that hangs")
        ended.set()

        assert owned.commit(str(table.path), commit_of(table, lease.fence))

    assert (hanging.is_set(), "Head" in table.item()) == (True, True)


def test_a_run_that_slept_with_its_machine_writes_nothing_any_more(
    table: LakeTable, owned: StateTable, deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease, its renewals and the deadline go by the same clock, which counts the sleep; timers don't."""
    real, slept = time.clock_gettime, [1000.0]
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + sum(slept))
    with holding(held(table, seconds=60.0, deadline=deadline, state_table=owned)) as lease:
        lease.check()

        slept.append(61.0)

        with pytest.raises(LeaseLost, match="deadline"):
            owned.commit(str(table.path), commit_of(table, lease.fence))


def test_a_run_that_renews_may_write_for_longer_than_its_lease(table: LakeTable, owned: StateTable, deadline: Deadline) -> None:
    """The deadline moves on with every renewal."""
    with holding(held(table, seconds=2.0, deadline=deadline, state_table=owned)) as lease:
        until(lambda: table.item()["LeaseBeat"] >= 5, "four renewals, which is more than the lease's length")

        assert owned.commit(str(table.path), commit_of(table, lease.fence))


def test_a_run_whose_lease_was_taken_over_stops_at_once(table: LakeTable, owned: StateTable, deadline: Deadline) -> None:
    """The next renewal is refused, and from then on no write is sent."""
    lease = held(table, seconds=0.6, deadline=deadline, state_table=owned)
    assert table.state_table.take_lease(str(table.path), table.item(), "successor", 2, 30.0)

    with holding(lease):
        until(lambda: is_over(deadline), "a refused renewal")

        with pytest.raises(LeaseLost):
            owned.commit(str(table.path), commit_of(table, lease.fence))

    assert table.item()["LeaseOwner"] == "successor"


def test_sixteen_runs_at_once_are_one_run(make_table: TableMaker, wire: Wire) -> None:
    """One works, the others exit 4; the table has one change."""
    table = make_table()
    table.load(BEFORE)
    codes: list[int] = []
    all_others = threading.Event()

    def run() -> None:
        codes.append(table.run("LoadInitial", lease_seconds=3))
        if len(codes) == 15:
            all_others.set()

    def hold_the_winner(request: Request, forward: Callable[[], Any]) -> Any:
        if request.is_data_part():
            assert all_others.wait(60)
        return forward()

    wire.rule = hold_the_winner
    threads = [threading.Thread(target=run) for _ in range(16)]
    with wire.connected():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert codes == [4] * 15 + [0]
    assert (table.rows(), len(wire.of("UploadPart")), table.head().parent) == (BEFORE, 1, "")
    table.check_folder()
