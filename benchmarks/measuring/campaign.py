"""A campaign: every contender on every workload, over and over, the repetitions interleaved; what fails is said, and the rest goes on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.contenders.contender import Contender, World
from benchmarks.contenders.registry import contender
from benchmarks.data.base import Base
from benchmarks.data.digest import Digest
from benchmarks.data.prepared import Prepared, prepare
from benchmarks.data.workloads import APPLY, CORRECT, LOAD, UNDO, WORKLOADS
from benchmarks.folders import LOGS
from benchmarks.measuring.process import Step, StepFailed, Worker
from benchmarks.server.stand import Stand

COLD, WARM = "cold", "warm"
SCAN, POINT = "scan", "point"
TRUTH, BEFORE = "truth", "before"
WRONG_ROWS = "WRONG ROWS"
Say = Callable[[str], None]


@dataclass
class Outcome:
    """One repetition of one contender on one workload. measures: by what was measured, such as `cold` or `scan`.
    not_run: why there are none; failed: what went wrong. run: when it began, and at which commit; program: the state of its code then."""

    workload: str
    contender: str
    title: str
    repetition: int
    measures: dict[str, Any] = field(default_factory=dict)
    files: list[int] = field(default_factory=list)
    not_run: str = ""
    failed: str = ""
    run: str = ""
    program: str = ""


@dataclass(frozen=True)
class Campaign:
    """What is to be measured. first: which contender begins, in the first repetition; in each later one it is the next."""

    workloads: Sequence[str]
    contenders: Sequence[str]
    base: Base
    repetitions: int
    first: int = 0


def run(campaign: Campaign, stand: Stand, say: Say) -> Iterator[Outcome]:
    """The outcomes as they come. The data is made and put on the server first."""
    say(f"{stand.title}; {campaign.base.rows:,} rows in {campaign.base.files} files, keys: {campaign.base.keys}")
    stand.put_base(campaign.base)
    prepared = {name: prepare(WORKLOADS[name], campaign.base) for name in campaign.workloads}
    for one in prepared.values():
        stand.put_changes(one)
    for repetition in range(1, campaign.repetitions + 1):
        first = (campaign.first + repetition - 1) % len(campaign.contenders)  # the machine need not be the same at all times
        for workload in campaign.workloads:
            for name in (*campaign.contenders[first:], *campaign.contenders[:first]):
                outcome = one_outcome(stand, name, prepared[workload], repetition)
                say(line(outcome))
                yield outcome


def one_outcome(stand: Stand, name: str, prepared: Prepared, repetition: int) -> Outcome:
    """One contender on one workload: make two tables, apply to the first (cold) and the second (warm), read, compare."""
    outcome = Outcome(prepared.workload, name, name, repetition)
    try:
        kind = contender(name)
    except ImportError as error:
        outcome.not_run = str(error)
        return outcome
    outcome.title = kind.title
    outcome.not_run = kind.refusal(WORKLOADS[prepared.workload])
    if outcome.not_run:
        return outcome
    try:
        _measure(stand, kind, prepared, outcome)
    except StepFailed as error:
        outcome.failed = str(error)
    return outcome


@dataclass(frozen=True)
class Act:
    """Something measured, in a process of its own, and the rows that must be there after it."""

    do: str
    rows: str


@dataclass(frozen=True)
class Course:
    """made: what is done with each table first, unmeasured; then the acts, one after the other."""

    made: tuple[str, ...]
    acts: tuple[Act, ...]


COURSES = {
    APPLY: Course(("make", "before"), (Act("apply", TRUTH),)),
    UNDO: Course(("make", "before", "apply"), (Act("undo", BEFORE), Act("redo", TRUTH))),
    LOAD: Course(("before_load",), (Act("load", TRUTH),)),
    CORRECT: Course(("make",), (Act("correct", TRUTH),)),
}


def _measure(stand: Stand, kind: type[Contender], prepared: Prepared, outcome: Outcome) -> None:
    mark = secrets.token_hex(4)
    tables = {state: f"{prepared.workload.lower()}_{state}_{mark}" for state in (COLD, WARM)}
    log = LOGS / f"{prepared.base.name}-{prepared.workload}-{kind.name}-{outcome.repetition}.log"

    def worker() -> Worker:
        return Worker(stand, kind.name, prepared, log)

    try:
        _in_course(worker, tables, kind, stand, prepared, outcome)
    finally:
        stand.drop(mark)


def _in_course(
    worker: Callable[[], Worker], tables: Mapping[str, str], kind: type[Contender], stand: Stand, prepared: Prepared, outcome: Outcome
) -> None:
    course = COURSES[WORKLOADS[prepared.workload].kind]
    with worker() as making:
        for table in tables.values():
            for action in course.made:
                making.ask(action, table)
    for act in course.acts:
        with worker() as acting:
            for state, table in tables.items():
                name = state if act is course.acts[0] else f"{state} {act.do}"
                outcome.measures[name] = _measures(list(_steps(acting, act, table, len(prepared.changes))))
        with worker() as reading:
            if act is course.acts[-1] and kind.is_whole:
                for what in (SCAN, POINT):  # the same of the other table: what a first query costs a reader is no matter of the table
                    reading.ask(what, tables[COLD])
                _read(reading, tables[WARM], prepared, outcome)
            for state, table in tables.items():
                _compare(reading.ask("digest", table), kind, stand, prepared, act.rows, f"{act.do}, {state}, read by Spark")
            if WORKLOADS[prepared.workload].kind == LOAD:
                reading.ask("check_order", tables[WARM])
            if kind.name == "ours":
                _compare(reading.ask("digest_by_duckdb", tables[WARM]), kind, stand, prepared, act.rows, f"{act.do}, read by DuckDB")


def _steps(worker: Worker, act: Act, table: str, batches: int) -> Iterator[Step]:
    """One step, or one for each batch."""
    if act.do != "apply":
        yield worker.ask(act.do, table)
        return
    for batch in range(batches):
        if batch:  # the first one's is part of making
            worker.ask("before", table, batch)
        yield worker.ask("apply", table, batch)


def _read(worker: Worker, table: str, prepared: Prepared, outcome: Outcome) -> None:
    """What the table costs its readers now."""
    for what, rows in ((SCAN, prepared.truth.rows), (POINT, 1)):
        step = worker.ask(what, table)
        if step.value != rows:
            raise StepFailed(f"{WRONG_ROWS} ({what}): {step.value}, expected {rows}")
        outcome.measures[what] = _measures([step])
    outcome.files = sorted(worker.ask("files", table).value)


def _compare(step: Step, kind: type[Contender], stand: Stand, prepared: Prepared, rows: str, how: str) -> None:
    """StepFailed if the rows are not the right ones: a time for wrong rows is no time."""
    found = Digest(**step.value)
    expected = prepared.base_rows if rows == BEFORE else kind(World(stand.environment, prepared)).expected()
    if found != expected:
        raise StepFailed(
            f"{WRONG_ROWS} ({how}): {found.rows:,} rows, expected {expected.rows:,}; digest {found.total}, not {expected.total}"
        )


def _measures(steps: Sequence[Step]) -> dict[str, Any]:
    """Of one table: all batches together, and each of them where there are several."""
    counted = [step.counts for step in steps if step.counts is not None]
    return {
        "seconds": sum(step.seconds for step in steps),
        "each": [step.seconds for step in steps] if len(steps) > 1 else [],
        "peak_bytes": max(step.peak_bytes for step in steps),
        "requests": sum(counts.request_count for counts in counted) if counted else None,
        "received_bytes": sum(counts.received_bytes for counts in counted) if counted else None,
        "sent_bytes": sum(counts.sent_bytes for counts in counted) if counted else None,
        "operations": asdict(counted[0])["requests"] if len(counted) == 1 else {},
    }


def line(outcome: Outcome) -> str:
    """An outcome in a line."""
    start = f"{outcome.workload} {outcome.contender} ({outcome.repetition}): "
    if outcome.not_run or outcome.failed:
        return start + (f"not run: {outcome.not_run}" if outcome.not_run else f"FAILED: {outcome.failed}")
    seconds = {name: measure["seconds"] for name, measure in outcome.measures.items()}
    return start + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()) + f"; {len(outcome.files)} files; rows are right"
