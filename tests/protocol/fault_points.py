"""Load, two batches, rollback, re-apply; apply, stage, commit, discard, erase; adopt; a batch with a history; one that joins files: with
one fault at one request, for every request.

Each job starts from the same kept state, so a point costs the job and what comes after it. Runs of which the same writes took effect
leave the same behind: what comes after them is tried for the first of them only. To be imported after `hurry()`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from glue_jobs.aws.clients import make_clients
from glue_jobs.core.record import DataFile
from tests.lake import LakeTable
from tests.protocol.deeds import Adopt, Apply, Batch, Commit, Deed, Discard, Erase, Kept, Load, Rollback, Staging
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
    """What is done. kept: all that is stored before it; expected: what is true after it; needs: the requests that it sends; brief: with
    fewer faults at what it reads."""

    name: str
    deed: Deed
    kept: bytes
    expected: dict[str, Any]
    needs: tuple[Request, ...]
    brief: bool


class Scenario:
    """The tables, and what is done to them in order."""

    def __init__(self) -> None:
        self.aws = InProcessAws()
        nothing = self.aws.keep()
        self.stages = list(self._load_and_go_back())
        for play in (self._correct, self._adopt, self._keep_history, self._join):
            self.aws.put_back(nothing)
            self.stages.extend(play())

    def _table(self, columns: pa.Schema = NARROW, **values: Any) -> LakeTable:
        environment = self.aws.environment()
        return LakeTable(environment, RAW, LAKE, columns, table="orders", shared=make_clients(environment), **values)

    def _load_and_go_back(self) -> Iterator[Stage]:
        table = self._table(partition_key="name")
        table.load([(1, "a"), (2, "b"), (3, "b")])
        yield self._stage("load", Load(table, "LoadInitial"))
        table.cdc([("U", (1, "a")), ("D", (2, "b")), ("I", (4, "b"))])
        yield self._stage("first batch", Load(table, "LoadIncremental"))
        table.cdc([("U", (3, "a", 30)), ("D", (4, "b", None)), ("I", (5, "b", 50)), ("I", (6, "c", 60))], columns=WIDE)
        yield self._stage("second batch", Load(table, "LoadIncremental"))
        _, first, _ = (record.id for record in reversed(list(table.lineage().back())))
        yield self._stage("rollback", Rollback(table, "Rollback", {"to": first}))
        yield self._stage("re-apply", Rollback(table, "Rollback", {"reapply": "all"}))

    def _correct(self) -> Iterator[Stage]:
        table = self._table()
        table.load([(1, "a"), (2, "b"), (3, "b"), (4, "c")])
        assert table.run("LoadInitial") == 0
        deletes, updates = _given(table, "deletes", "name\nb\n"), _given(table, "updates", "id,name\n4,c\n8,c\n9,d\n")
        keys = _given(table, "keys", "id\n1\n")
        yield self._stage("apply", Apply(table, "Apply", {"key": "name", "deletes": deletes, "updates": updates}))
        table.cdc([("U", (1, "e")), ("I", (5, "f"))])
        yield self._stage("stage", Staging(table, "LoadIncremental", {"stage": "true"}))
        table.cdc([("I", (6, "g"))])
        assert table.run(stage="true") == 0
        yield self._stage("commit", Commit(table, "", {"change": table.item()["LastRun"]["staged"]}))
        table.cdc([("I", (7, "h"))])
        assert table.run(stage="true") == 0
        yield self._stage("discard", Discard(table, "", {"change": table.item()["LastRun"]["staged"]}))
        yield self._stage("erase", Erase(table, "Erase", {"erase_keys": keys}))

    def _adopt(self) -> Iterator[Stage]:
        table = self._table()
        table.load([(1, "a"), (2, "b")])
        table.edit(LastFullLoadDate="2999-01-01 00:00:00")
        for path, rows in (("part-0.parquet", [("I", (1, "a"))]), ("part-1.parquet", [("I", (2, "b"))])):
            table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, Body=table.parquet(rows))
        yield self._stage("adopt", Adopt(table, "Adopt"))

    def _keep_history(self) -> Iterator[Stage]:
        table = self._table()
        table.edit(History="true")
        table.load([(1, "a"), (2, "b")])
        assert table.run("LoadInitial") == 0
        table.cdc([("U", (1, "c")), ("D", (2, "b")), ("I", (3, "d"))])
        yield self._stage("history", Kept(table, "LoadIncremental"))

    def _join(self) -> Iterator[Stage]:
        """Small neighbours become one file, a file without a changed key parts them, and one loses all its rows. Eight that no key is for
        become one besides."""
        table = self._table()
        for start in range(0, 32, 2):
            table.cdc([("I", (start, "a")), ("I", (start + 1, "b"))])
        assert table.run(batch_files=1, small_file_bytes=0) == 0
        before = _by_key(table)
        table.cdc([("U", (key, "c")) for key in (0, 3, 4, 8, 10, 12)] + [("D", (key, None)) for key in (2, 8, 9)])
        yield self._stage("joined", Batch(table, "LoadIncremental"))
        after = _by_key(table)
        assert [file.rows for file in before] == [2] * 16
        assert [file.rows for file in after] == [5, 2, 4, 16, 2], after
        assert after[1] == before[3]

    def _stage(self, name: str, deed: Deed) -> Stage:
        """Does it undisturbed; the table is left in the state after it."""
        kept, wire = self.aws.keep(), Wire()
        with wire.connected():
            assert deed.do(lease_seconds=LONG_LEASE) == 0, deed.table.item().get("LastRun")
        deed.settle()
        _check_quiet(deed.table)
        return Stage(name, deed, kept, _whole(deed.table), tuple(wire.requests), brief=not isinstance(deed, (Load, Rollback)))

    def check(self, stage: Stage, fault: Fault, seen: set[tuple[str, ...]]) -> None:
        """AssertionError unless the table ends where an undisturbed run takes it. seen: what faults of this sort have left so far."""
        self.aws.put_back(stage.kept)
        deed, table = stage.deed, stage.deed.table
        code = _disturbed(deed, fault)
        assert fault.hit, "the run did not come to that request"
        left = (*sorted(fault.effects), str(table.item().get("Blocked")))
        is_new = left not in seen
        seen.add(left)
        if fault.kind in PASSING:
            assert code == 0, f"exit code {code}: {table.item().get('LastRun')}"
        elif is_new:
            forget_lease(table, SHORT_LEASE)
            assert code != 0 or self._is_done(stage), "the run says that it did what it did not do"
            deed.again(fault.number)
        compared = is_new or (fault.kind in PASSING and stage.needs[fault.number].is_write)
        if compared:
            deed.settle()
        if is_new:
            _check_quiet(table)
        if compared:
            _compare(stage, fault)

    def _is_done(self, stage: Stage) -> bool:
        """Whether the rows are those that are wanted, once all that comes anyway has come."""
        kept = self.aws.keep()
        stage.deed.settle()
        done = stage.deed.table.rows() == stage.expected["rows"]
        self.aws.put_back(kept)
        return done


def _by_key(table: LakeTable) -> list[DataFile]:
    return sorted(table.snapshot().files.values(), key=lambda file: file.low or ())


def _given(table: LakeTable, name: str, text: str) -> str:
    """The address of a CSV file with rows that a person gives."""
    bucket, prefix = RAW[5:].split("/", 1)
    table.clients.s3.put_object(Bucket=bucket, Key=f"given/{prefix}{name}.csv", Body=text.encode())
    return f"s3://{bucket}/given/{prefix}{name}.csv"


def _whole(table: LakeTable) -> dict[str, Any]:
    """All that must be the same, and how many versions of data files there are."""
    versions = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=table.out_path.key).get("Versions", [])
    return {**everything(table), "versions": len(versions), "erasing": "Erasing" in table.item()}


def _compare(stage: Stage, fault: Fault) -> None:
    """As it would be without the fault; but files that need not have been joined may stay as they are where S3 goes on to refuse one."""
    found = _whole(stage.deed.table)
    is_given_up = fault.kind in FOR_GOOD and "tidy_trouble" in stage.deed.table.head().details
    free = ("files", "changes", "versions") if is_given_up else ()
    wrong = {name: (found[name], stage.expected[name]) for name in found if name not in free and found[name] != stage.expected[name]}
    assert not wrong, f"(found, expected): {wrong}"


def _disturbed(deed: Deed, fault: Fault) -> int | None:
    wire = Wire()
    wire.rule = fault.rule(wire)
    try:
        with wire.connected():
            return deed.do(lease_seconds=LONG_LEASE)
    except Killed:
        assert fault.kind in KILLS
        return None


def _check_quiet(table: LakeTable) -> None:
    """A run more writes nothing but its lease, and its result as it gives it back."""
    wire = Wire()
    assert run_on(wire, table, "LoadIncremental", lease_seconds=LONG_LEASE) == 0
    writes = [(request.service, request.operation) for request in wire.requests if request.is_write]
    assert writes == [("dynamodb", "UpdateItem")] * 2, writes


def faults_of(stage: Stage) -> Iterator[Fault]:
    """All faults of a stage: every request, each with all kinds that make sense for it."""
    for number, request in enumerate(stage.needs):
        for kind in kinds_at(number, request, stage.brief):
            yield Fault(kind, number)


@dataclass(frozen=True)
class Sort:
    """Faults of one stage that leave the same things behind, so that one process tries them together."""

    stage: Stage
    faults: tuple[Fault, ...]


def sorts_of(stages: list[Stage]) -> dict[str, Sort]:
    """All faults, those that take longest first.

    By names that every process gives them. Their order differs: threads send requests in an order of their own, and which faults a
    request gets goes by its number, so one process's place in it would be another sort of the other's.
    """
    sorts = {
        f"{stage.name}: {', '.join(kinds)}": Sort(stage, tuple(fault for fault in faults_of(stage) if fault.kind in kinds))
        for stage in stages
        for kinds in SORTS
    }
    return dict(sorted(sorts.items(), key=lambda named: -len(named[1].faults) * len(named[1].stage.needs)))


def serve() -> None:
    """Says what there is to try, then tries each sort whose name comes in, and says how that ended; a line of JSON each."""
    with contextlib.redirect_stderr(io.StringIO()):
        scenario = Scenario()
    gc.freeze()
    gc.set_threshold(100_000)
    sorts = sorts_of(scenario.stages)
    print(json.dumps({"sorts": list(sorts), "requests": {stage.name: len(stage.needs) for stage in scenario.stages}}), flush=True)
    for line in sys.stdin:
        told = try_all(scenario, sorts[json.loads(line)])
        print(json.dumps({"counts": told.counts, "wrong": told.wrong}), flush=True)


def try_all(scenario: Scenario, sort: Sort) -> Told:
    """Every fault of the sort, whatever went wrong before."""
    told, seen = Told(), set[tuple[str, ...]]()
    for fault in sort.faults:
        told.check(scenario, sort.stage, fault, seen)
    return told


@dataclass
class Told:
    """What is said of points: how many of which stage and kind, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
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
