"""The scenario load, two batches, rollback, re-apply, with one fault at one request, for every request.

Each job starts from the same kept state, so a point costs the job and what comes after it. Runs of which the same writes took effect
leave the same behind: what comes after them is tried for the first of them only. To be imported after `hurry()`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from glue_jobs.aws.clients import make_clients
from tests.lake import LakeTable
from tests.protocol.faults import FOR_GOOD, KILLS, PASSING, Fault, kinds_at
from tests.protocol.in_process import LAKE, RAW, InProcessAws
from tests.protocol.runs import LONG_LEASE, everything, forget_lease, run_on
from tests.protocol.wire import Killed, Request, Wire

NARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])
WIDE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("size", pa.int64())])
SHORT_LEASE = 0.01
SORTS = (PASSING, KILLS, tuple(FOR_GOOD))


@dataclass(frozen=True)
class Stage:
    """A job of the scenario. kept: all that is stored before it; expected: what is true after it; needs: the requests that it sends."""

    name: str
    job: str
    wish: dict[str, str]
    kept: bytes
    expected: dict[str, Any]
    needs: tuple[Request, ...]


class Scenario:
    """The table, and its stages in order."""

    def __init__(self) -> None:
        self.aws = InProcessAws()
        environment = self.aws.environment()
        self.table = LakeTable(environment, RAW, LAKE, NARROW, partition_key="name", table="orders", shared=make_clients(environment))
        self.stages = list(self._play())

    def _play(self) -> Iterator[Stage]:
        table = self.table
        table.load([(1, "a"), (2, "b"), (3, "b")])
        yield self._stage("load", "LoadInitial")
        table.cdc([("U", (1, "a")), ("D", (2, "b")), ("I", (4, "b"))])
        yield self._stage("first batch", "LoadIncremental")
        table.cdc([("U", (3, "a", 30)), ("D", (4, "b", None)), ("I", (5, "b", 50)), ("I", (6, "c", 60))], columns=WIDE)
        yield self._stage("second batch", "LoadIncremental")
        _, first, _ = (record.id for record in reversed(list(table.lineage().back())))
        yield self._stage("rollback", "Rollback", to=first)
        yield self._stage("re-apply", "Rollback", reapply="all")

    def _stage(self, name: str, job: str, **wish: str) -> Stage:
        """Plays the job undisturbed; the table is left in the state after it."""
        kept, wire = self.aws.keep(), Wire()
        assert run_on(wire, self.table, job, lease_seconds=LONG_LEASE, **wish) == 0, self.table.item().get("LastRun")
        self._check_quiet()
        return Stage(name, job, wish, kept, everything(self.table), tuple(wire.requests))

    def check(self, stage: Stage, fault: Fault, seen: set[tuple[str, ...]]) -> None:
        """AssertionError unless the table ends where an undisturbed run takes it. seen: what faults of this sort have left so far."""
        self.aws.put_back(stage.kept)
        code = self._disturbed(stage, fault)
        assert fault.hit, "the run did not come to that request"
        left = (*sorted(fault.effects), str(self.table.item().get("Blocked")))
        is_new = left not in seen
        seen.add(left)
        if fault.kind in PASSING:
            assert code == 0, f"exit code {code}: {self.table.item().get('LastRun')}"
        elif is_new:
            assert code != 0 or self.table.rows() == stage.expected["rows"], "the run says that it did what it did not do"
            forget_lease(self.table, SHORT_LEASE)
            self._recover(stage, fault)
        if is_new:
            self._check_quiet()
        if is_new or (fault.kind in PASSING and stage.needs[fault.number].is_write):
            self._compare(stage)

    def _compare(self, stage: Stage) -> None:
        found = everything(self.table)
        wrong = {name: (found[name], stage.expected[name]) for name in found if found[name] != stage.expected[name]}
        assert not wrong, f"(found, expected): {wrong}"

    def _disturbed(self, stage: Stage, fault: Fault) -> int | None:
        wire = Wire()
        try:
            return run_on(wire, self.table, stage.job, fault.rule(wire), lease_seconds=LONG_LEASE, **stage.wish)
        except Killed:
            assert fault.kind in KILLS
            return None

    def _recover(self, stage: Stage, fault: Fault) -> None:
        """What the controller and, after a rollback, the person do next; who of them comes first differs from point to point."""
        if stage.job != "Rollback":
            landed = str(self.table.item().get("Head", "")) != "" or stage.job == "LoadIncremental"
            self._run("LoadIncremental" if landed else "LoadInitial")
        elif fault.number % 2:
            self._run("LoadIncremental")
            self._ask_again(stage)
        else:
            self._ask_again(stage)
            self._run("LoadIncremental")

    def _run(self, job: str, **wish: str) -> None:
        code = self.table.run(job, **wish)
        assert code == 0, f"the next {job} has exit code {code}: {self.table.item().get('LastRun')}"

    def _ask_again(self, stage: Stage) -> None:
        """The same rollback again. A re-apply that landed is refused then: nothing is undone any more."""
        code = self.table.run(stage.job, **stage.wish)
        said = self.table.item()["LastRun"].get("error", {}).get("code", "")
        is_done = stage.name == "re-apply" and said == "nothing-to-reapply"
        assert code == (2 if is_done else 0), f"the repeated {stage.name} has exit code {code}: {self.table.item()['LastRun']}"

    def _check_quiet(self) -> None:
        """A run more writes nothing but its lease and its result."""
        wire = Wire()
        assert run_on(wire, self.table, "LoadIncremental") == 0
        writes = [(request.service, request.operation) for request in wire.requests if request.is_write]
        assert writes == [("dynamodb", "UpdateItem")] * 3, writes


def faults_of(stage: Stage) -> Iterator[Fault]:
    """All faults of a stage: every request, each with all kinds that make sense for it."""
    for number, request in enumerate(stage.needs):
        for kind in kinds_at(number, request):
            yield Fault(kind, number)


def shares(stages: list[Stage], parts: int) -> list[list[tuple[Stage, list[Fault]]]]:
    """All faults in so many parts of about the same length, those of a stage that leave the same things together."""
    sorts = [(stage, [fault for fault in faults_of(stage) if fault.kind in kinds]) for stage in stages for kinds in SORTS]
    shared: list[list[tuple[Stage, list[Fault]]]] = [[] for _ in range(parts)]
    for sort in sorted(sorts, key=lambda sort: -len(sort[1])):
        min(shared, key=lambda share: sum(len(faults) for _, faults in share)).append(sort)
    return shared


def check_all(part: int, parts: int) -> dict[str, Any]:
    """A part of all faults: how many of which stage and kind, how many left something else, the seconds, and what went wrong."""
    started, told = time.monotonic(), Told()
    with contextlib.redirect_stderr(io.StringIO()):
        scenario = Scenario()
    gc.freeze()
    gc.set_threshold(100_000)
    for stage, faults in shares(scenario.stages, parts)[part]:
        seen: set[tuple[str, ...]] = set()
        for fault in faults:
            told.check(scenario, stage, fault, seen)
        told.different[f"{stage.name}: {faults[0].kind} …"] = len(seen)
    return {
        "counts": told.counts,
        "different": told.different,
        "wrong": told.wrong,
        "requests": {stage.name: len(stage.needs) for stage in scenario.stages},
        "seconds": round(time.monotonic() - started, 1),
    }


@dataclass
class Told:
    """What is said of the points at the end: all of them are tried, whatever went wrong before."""

    counts: Counter[str] = field(default_factory=Counter)
    different: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, scenario: Scenario, stage: Stage, fault: Fault, seen: set[tuple[str, ...]]) -> None:
        self.counts[f"{stage.name}: {fault.kind}"] += 1
        log = io.StringIO()
        try:
            with contextlib.redirect_stderr(log):
                scenario.check(stage, fault, seen)
        except Exception as error:  # noqa: BLE001 - an error that nobody foresaw is told like a wrong result
            request = stage.needs[fault.number]
            where = f"{stage.name}: {fault.kind} at request {fault.number} ({request.operation} {request.key})"
            self.wrong.append(f"{where}: {type(error).__name__}: {error}\n{log.getvalue()[-3000:]}")


def main(argv: list[str]) -> int:
    print(json.dumps(check_all(int(argv[0]), int(argv[1]))))
    return 0
