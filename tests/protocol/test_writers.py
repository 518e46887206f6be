"""Several writers on one table: of sixteen that start at once one works; one that slept through its successor's work changes nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.aws.faults import s3_error
from tests.lake import LakeTable
from tests.protocol.conftest import COLUMNS, TableMaker
from tests.protocol.runs import LONG_LEASE, everything, forget_lease
from tests.protocol.wire import Request, Wire

Forward = Callable[[], Any]
Starts = list[tuple[str, dict[str, str]]]
LOADED = [(1, "a"), (2, "b"), (3, "b")]
SECOND = [(1, "a", None), (3, "a", 30), (5, "b", 50)]
THIRD = [(1, "b", 10, "red"), (3, "a", 30, None), (5, "b", 50, None), (6, "a", 60, "blue")]
WIDER = COLUMNS.append(pa.field("size", pa.int64()))
WIDEST = WIDER.append(pa.field("color", pa.string()))
WAIT_SECONDS = 60


@pytest.fixture
def history(make_table: TableMaker) -> LakeTable:
    """A table of two partitions with a load and a batch, and a second batch, with a column more, that is not taken yet."""
    table = make_table(partition_key="name")
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("D", (2, "b")), ("I", (4, "b"))])
    assert table.run() == 0
    table.cdc([("U", (3, "a", 30)), ("D", (4, "b", None)), ("I", (5, "b", 50))], columns=WIDER)
    return table


def start_all(wire: Wire, table: LakeTable, starts: Starts) -> list[tuple[int, str]]:
    """Runs all of them at once, and holds the one that works until the others have ended; (exit code, job) in the order of their ends."""
    ended: list[tuple[int, str]] = []
    all_others = threading.Event()

    def run(job: str, wish: dict[str, str]) -> None:
        ended.append((table.run(job, lease_seconds=3, **wish), job))
        if len(ended) == len(starts) - 1:
            all_others.set()

    def hold_the_winner(request: Request, forward: Forward) -> Any:
        if request.is_data_part() or request.is_copy():
            assert all_others.wait(WAIT_SECONDS)
        return forward()

    wire.rule = hold_the_winner
    threads = [threading.Thread(target=run, args=start) for start in starts]
    with wire.connected():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ended


def test_sixteen_rollbacks_at_once_are_one_rollback(history: LakeTable, wire: Wire) -> None:
    """One works, fifteen leave with exit code 4 and have written nothing but what the table's one change needs."""
    first, lineage = history.item()["Head"], list(history.lineage().back())

    ended = start_all(wire, history, [("Rollback", {"to": "previous"})] * 16)

    assert ended == [(4, "Rollback")] * 15 + [(0, "Rollback")]
    assert (history.rows(), history.head().parent, len(list(history.lineage().back()))) == (LOADED, first, len(lineage) + 1)
    written = Counter(request.operation for request in wire.requests if request.is_write and request.service != "dynamodb")
    assert written["PutObject"] == written["DeleteObjects"] == 1
    assert written["CreateMultipartUpload"] == written["UploadPartCopy"] == written["CompleteMultipartUpload"] == len(history.head().added)
    history.check_folder()


def test_sixteen_different_starts_at_once_are_one_of_them(history: LakeTable, wire: Wire) -> None:
    """Rollbacks and the regular job: whoever takes the lease works, and no other's wish is mixed in."""
    before = history.item()

    ended = start_all(wire, history, [("Rollback", {"to": "previous"}), ("LoadIncremental", {})] * 8)

    code, winner = ended[-1]
    kind, rows = {"Rollback": ("rollback", LOADED), "LoadIncremental": ("incremental", SECOND)}[winner]
    head, item = history.head(), history.item()
    assert (code, {code for code, _ in ended[:-1]}) == (0, {4})
    assert (head.kind, history.rows(), head.parent, item["Fence"]) == (kind, rows, before["Head"], before["Fence"] + 1)
    assert ("Paused" in item, item["LastRun"]["changes"]) == (winner == "Rollback", [head.id])
    history.check_folder()


# A run that sleeps. moment: (the request at which it falls asleep, whether that takes effect before)
MOMENTS: dict[str, tuple[Callable[[Request], bool], bool]] = {
    "before its commit": (Request.is_commit, False),
    "after its commit": (Request.is_commit, True),
    "before it completes": (Request.is_completion, False),
    "before it hides": (Request.is_hide, False),
    "before the catalog": (lambda request: request.operation == "GetTable", False),
}


class Sleeper:
    """A run that falls asleep at one of its requests, and whose renewals sleep with it. Within it, the run is asleep.

    lease: seconds; a long one has not run out when it wakes up, because the clock of a machine that is suspended may stand still.
    """

    def __init__(self, wire: Wire, table: LakeTable, job: str, wish: dict[str, str], moment: str, lease: str) -> None:
        self.asleep, self.woken = threading.Event(), threading.Event()
        self.code: int | None = None
        self._table = table
        self._matches, self._takes_effect = MOMENTS[moment]
        self._completed: set[str] = set()
        self._lock = threading.Lock()
        wire.rule = self._rule
        self._thread = threading.Thread(target=lambda: setattr(self, "code", table.run(job, lease_seconds=lease, **wish)))

    def __enter__(self) -> Sleeper:
        self._thread.start()
        assert self.asleep.wait(WAIT_SECONDS)
        forget_lease(self._table)
        return self

    def __exit__(self, *_: Any) -> None:
        self.wake()

    def wake(self) -> int | None:
        """Its exit code, when it has ended."""
        self.woken.set()
        self._thread.join()
        return self.code

    def _rule(self, request: Request, forward: Forward) -> Any:
        if self.asleep.is_set() and _is_renewal(request):
            self.woken.wait(WAIT_SECONDS)  # only the sleeper's: the leases of all others are long
        with self._lock:
            falls_asleep = self._matches(request) and not self.asleep.is_set()
            answer = self._sent(request, forward) if falls_asleep and self._takes_effect else None
            if falls_asleep:
                self.asleep.set()
        if falls_asleep:
            self.woken.wait(WAIT_SECONDS)
        return answer or self._sent(request, forward)

    def _sent(self, request: Request, forward: Forward) -> Any:
        """As AWS answers it: an upload that was completed is no more, where the embedded one would make a second version of it."""
        if request.is_completion():
            if request.key in self._completed:
                return s3_error(404, "NoSuchUpload")
            self._completed.add(request.key)
        return forward()


def _is_renewal(request: Request) -> bool:
    return request.operation == "UpdateItem" and b'"LeaseBeat"' in request.body and b'"LeaseSeconds"' not in request.body


def go_on(table: LakeTable) -> None:
    """What the successor does: whatever was left undone, the files that are pending, and then one more, with one more column."""
    table.remove("Paused")
    assert table.run(lease_seconds=LONG_LEASE) == 0, table.item()["LastRun"]
    if "Paused" in table.item():
        table.remove("Paused")
    table.cdc([("U", (1, "b", 10, "red")), ("I", (6, "a", 60, "blue"))], columns=WIDEST)
    assert table.run(lease_seconds=LONG_LEASE) == 0, table.item()["LastRun"]
    assert table.rows() == THIRD


def go_on_and_roll_back(table: LakeTable) -> None:
    """And then it goes back to the load, whose files and whose key ranges are those that the sleeper started from."""
    go_on(table)
    load = list(table.lineage().back())[-1].id
    assert table.run("Rollback", to=load, lease_seconds=LONG_LEASE) == 0, table.item()["LastRun"]
    assert table.rows() == LOADED


CASES = [
    *((meanwhile, moment, "LoadIncremental", LONG_LEASE) for moment in MOMENTS for meanwhile in (go_on, go_on_and_roll_back)),
    *((go_on_and_roll_back, moment, "Rollback", LONG_LEASE) for moment in MOMENTS),
    *((go_on, moment, "LoadIncremental", "1") for moment in ("before its commit", "after its commit")),
]


@pytest.mark.parametrize(("meanwhile", "moment", "job", "lease"), CASES)
def test_a_run_that_slept_through_its_successors_work_changes_nothing(
    history: LakeTable, wire: Wire, meanwhile: Callable[[LakeTable], None], moment: str, job: str, lease: str
) -> None:
    """Readers, item, records and catalog are as the successor left them; the sleeper's run has failed; and the table goes on."""
    wish = {"to": "previous"} if job == "Rollback" else {}
    with wire.connected(), Sleeper(wire, history, job, wish, moment, lease) as sleeper:
        meanwhile(history)
        before = seen(history)

        code = sleeper.wake()

    assert (seen(history), code) == (before, 1)
    history.check_folder()
    assert (history.run(), history.rows()) == (0, before["rows"])


def seen(table: LakeTable) -> dict[str, Any]:
    """All that readers and the next run see."""
    return {**everything(table), "item": table.item(), "visible": table.visible(), "Glue": table.catalog_table()}
