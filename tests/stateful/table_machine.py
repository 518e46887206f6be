"""One small table, driven through the real jobs by whatever may happen to it, beside the oracle that says what it must be."""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from glue_jobs.aws.clients import Clients
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.record import ChangeRecord
from infra.local.dms_files import DmsRow, cdc_file_name
from tests.lake import JOBS, START, LakeTable
from tests.protocol.runs import LONG_LEASE, forget_lease
from tests.protocol.wire import Killed, Request
from tests.quick_aws import QuickAws
from tests.stateful.oracle import LOAD, Correction, Op, Oracle, RawFile, Refusal, Row, Step, Wish, digits
from tests.stateful.traffic import Point, Sleeper, Traffic, death
from tests.stateful.world import World

COLUMNS = pa.schema([("id", pa.int64()), ("part", pa.string()), ("name", pa.string())])
KEYS, PARTS = 4, "ab"
TIME = "2024-05-01 12:00:00.000000"  # of all CDC rows
LATE_STEPS = 40  # a late file is named so many tenths of a second, at most, before the last second
BOTH = (Op("LoadInitial"), Op("LoadIncremental"))

ROW = st.tuples(st.sampled_from("IUUD"), st.integers(0, KEYS - 1), st.sampled_from(PARTS))
ROWS = st.lists(ROW, min_size=1, max_size=3)
STAGES = ["is_record", "is_commit", "is_completion", "is_completion", "is_hide", "is_copy"]
POINTS = st.one_of(
    st.builds(Point, st.just(""), st.integers(3, 45), st.booleans()),
    st.builds(Point, st.sampled_from(STAGES), st.integers(0, 1), st.booleans()),
)
PICK = st.integers(0, 30)
FEW = st.sampled_from([False, False, False, True])
DISTURBED = st.one_of(st.none(), st.none(), POINTS)
KEY_SETS = st.sets(st.integers(0, KEYS - 1), min_size=1, max_size=2)
LOADS = st.dictionaries(st.integers(0, KEYS - 1), st.sampled_from(PARTS), min_size=1)
DrawnRow = tuple[str, int, str]  # operation, key, part
GOALS = st.sampled_from(["previous", "previous", "to", "to", "undo", "reapply-all", "reapply-all", "reapply", "before"])


@dataclass
class Zombie:
    """A run that sleeps. planned: the change that it was about to make when it fell asleep; fence: of its lease, None if it has none."""

    name: str
    op: Op
    sleeper: Sleeper
    planned: Step | Refusal | None
    head: str
    fence: int | None


@dataclass(frozen=True)
class Staged:
    """A staged change: what it does once it is committed, and what was when it was made. quiet: of the item, as its text."""

    step: Step
    head: str
    cursor: str
    quiet: str


class TableMachine(RuleBasedStateMachine):
    """The rules are what people, DMS, S3's lifecycle and crashes do; the invariants hold after each of them."""

    aws: QuickAws
    clients: Clients
    traffic: Traffic
    seen: Counter[str]  # what happened, over all examples

    def __init__(self) -> None:
        super().__init__()
        self.table = LakeTable(
            self.aws.environment(),
            self.aws.raw,
            self.aws.lake,
            COLUMNS,
            partition_key="part",
            timestamp_column="ts",
            shared=self.clients,
        )
        # An adopted table's files don't tell: all files here are as young as each other, as in a folder that was copied.
        self.table.edit(LoadQuietMinutes="0", TimestampColumn="ts")
        self.world = World(self.table)
        self.oracle = Oracle()
        self.zombies: list[Zombie] = []
        self.aborted: set[str] = set()
        self.staged: dict[str, Staged] = {}
        self.discarded: set[str] = set()
        self.erased: dict[str, frozenset[int]] = {}
        self.second = 0
        self.named = 0

    def teardown(self) -> None:
        """Whatever happened, plain runs bring the table to where it must be. (Not looked at after another failure.)"""
        try:
            if sys.exc_info()[0] is not None:
                return
            while self.zombies:
                self._wake(0)
            self._activate()
            self._run_both()
            assert self.table.run("Erase", resume="true", lease_seconds=LONG_LEASE) == 0
            self.check_everything()
            assert "Erasing" not in self.world.item
            assert self.table.verify() == []
        finally:
            for zombie in self.zombies:
                zombie.sleeper.wake()

    # --- DMS

    @initialize(load=LOADS, first=ROWS, second=ROWS, adopted=FEW)
    def begin(self, load: dict[int, str], first: list[DrawnRow], second: list[DrawnRow], adopted: bool) -> None:
        """A load, or another program's files that have its rows, and two batches, applied one by one."""
        self._put_load(load)
        if adopted:
            self._put_others()
        self._finish(Op("Adopt") if adopted else BOTH[0])
        for rows in (first, second):
            self.deliver(rows, False, 0)
            self._finish(BOTH[1])

    def _put_others(self) -> None:
        """The load's rows as another program keeps them, which says in the item how far it came."""
        s3, lake = self.clients.s3, self.table.out_path
        for part in PARTS:
            rows = [DmsRow(op, (key, *values), TIME) for op, key, values in self.oracle.raw[LOAD].rows if values[0] == part]
            if rows:
                data = pq.read_table(pa.BufferReader(self.table.parquet(rows))).drop_columns(["part"])
                sink = pa.BufferOutputStream()
                pq.write_table(data, sink)
                s3.put_object(Bucket=lake.bucket, Key=f"{lake.key}part={part}/part-0.parquet", Body=sink.getvalue().to_pybytes())
        self.table.edit(LastFullLoadDate=f"{datetime.now(timezone.utc) + timedelta(seconds=1):%Y-%m-%d %H:%M:%S}")

    @rule(rows=ROWS, again=st.booleans(), pick=PICK)
    def deliver(self, rows: list[DrawnRow], again: bool, pick: int) -> None:
        """A CDC file after all others; or the content of an earlier one under a new name, as a resumed DMS task writes it."""
        self.second += 1
        name = cdc_file_name(START + timedelta(seconds=self.second))
        known = self._cdc_names()
        self._put_cdc(name, self.oracle.raw[known[pick % len(known)]].rows if again and known else self._named(rows))

    @rule(rows=ROWS, tenths=st.integers(1, LATE_STEPS))
    def deliver_late(self, rows: list[DrawnRow], tenths: int) -> None:
        """A CDC file named before the last one, perhaps before the load."""
        self.named += 1
        moment = START + timedelta(seconds=self.second) - timedelta(milliseconds=100 * tenths - self.named % 100)
        name = cdc_file_name(moment)
        if moment > START and name not in self.oracle.raw:
            self._put_cdc(name, self._named(rows))

    @precondition(lambda self: not self.world.publishing and all(zombie.op.job != "LoadInitial" for zombie in self.zombies))
    @rule(rows=LOADS)
    def reload(self, rows: dict[int, str]) -> None:
        """DMS loads the table anew."""
        self._put_load(rows)

    # --- runs

    @rule()
    def run(self) -> None:
        """Both jobs, to their end."""
        self._run_both()

    @rule(rows=ROWS, late=st.integers(2, 20), lift=st.booleans())
    def deliver_and_run(self, rows: list[DrawnRow], late: int, lift: bool) -> None:
        """What happens every hour, with a late file at times."""
        self.deliver(rows, False, 0)
        if late > 10:  # before the file before: that one is applied already
            self.deliver_late(rows, late)
        if lift:
            self._activate()
        self._run_both()

    @rule(rows=ROWS, job=st.sampled_from(["LoadInitial", "LoadIncremental", "LoadIncremental"]), point=POINTS, visited=st.booleans())
    def crash(self, rows: list[DrawnRow], job: str, point: Point, visited: bool) -> None:
        """A run dies; another one may start while its lease still looks held."""
        self.deliver(rows, False, 0)
        self._crash(Op(job), point)
        if visited and "LeaseOwner" in self.world.item:
            self._second_writer(BOTH[1])

    @rule(rows=ROWS)
    def lose(self, rows: list[DrawnRow]) -> None:
        """A run dies before anything of its change is visible, and nobody comes for days."""
        self.deliver(rows, False, 0)
        self._activate()
        self._crash(BOTH[1], Point("is_completion", 0, False))
        self.uploads_expire()

    @rule(goal=GOALS, pick=PICK, resume=st.booleans(), skip=FEW, point=POINTS)
    def crash_in_rollback(self, goal: str, pick: int, resume: bool, skip: bool, point: Point) -> None:
        """A rollback dies."""
        self._crash(self._rollback(goal, pick, resume, skip), point)

    @precondition(lambda self: len(self.zombies) < 2)
    @rule(rows=ROWS, job=st.sampled_from(["LoadInitial", "LoadIncremental", "LoadIncremental"]), point=POINTS)
    def fall_asleep(self, rows: list[DrawnRow], job: str, point: Point) -> None:
        """A run stops in the middle, for a garbage collection or a closed laptop."""
        self.deliver(rows, False, 0)
        self._fall_asleep(Op(job), point)

    @precondition(lambda self: len(self.zombies) < 2)
    @rule(goal=GOALS, pick=PICK, resume=st.booleans(), skip=FEW, point=POINTS)
    def fall_asleep_in_rollback(self, goal: str, pick: int, resume: bool, skip: bool, point: Point) -> None:
        """A rollback stops in the middle."""
        self._fall_asleep(self._rollback(goal, pick, resume, skip), point)

    @precondition(lambda self: self.zombies)
    @rule(pick=PICK)
    def wake_up(self, pick: int) -> None:
        """The sleeper goes on, whatever has happened to the table since."""
        self._wake(pick % len(self.zombies))

    def _second_writer(self, op: Op) -> None:
        """A run starts while another one holds the lease and shows signs of life: it leaves, and nothing is changed."""
        self.table.edit(LeaseSeconds=0.2)
        before, looks = self.table.item(), 0

        def sign_of_life(request: Request, send: Any) -> Any:
            nonlocal looks
            looks += request.operation == "GetItem"
            if looks == 2:
                looks += 1
                self.table.edit(LeaseBeat=int(before.get("LeaseBeat", 0)) + 1)
            return send()

        self.traffic.rules["second"] = sign_of_life
        assert self._start(op, "second") == 4
        assert self.table.item() == {**before, "LeaseBeat": int(before.get("LeaseBeat", 0)) + 1}
        self.seen["turned away"] += 1

    # --- back and forth

    @rule(goal=GOALS, pick=PICK, resume=st.booleans(), skip=FEW)
    def roll_back(self, goal: str, pick: int, resume: bool, skip: bool) -> None:
        """To any change, or from one, or forth again."""
        self._finish(self._rollback(goal, pick, resume, skip))

    # --- corrections

    @precondition(lambda self: self.oracle.state.loaded)
    @rule(gone=st.sampled_from(["", *PARTS]), keys=KEY_SETS, disturbed=DISTURBED)
    def apply(self, gone: str, keys: set[int], disturbed: Point | None) -> None:
        """The rows of one part go, those of the other one are replaced; the part is a column that many rows have the same of."""
        self._do(self._correction(gone, keys), disturbed)

    @precondition(lambda self: self.oracle.state.loaded)
    @rule(keys=KEY_SETS, disturbed=DISTURBED)
    def erase(self, keys: set[int], disturbed: Point | None) -> None:
        """Some keys go for good."""
        text = "\n".join(["id", *map(str, sorted(keys))])
        self._do(Op("Erase", erased=frozenset(keys), given={"erase_keys": self._give(text)}), disturbed)

    @precondition(lambda self: len(self.zombies) < 2 and self.oracle.state.loaded)
    @rule(keys=KEY_SETS, is_erase=st.booleans(), point=POINTS)
    def fall_asleep_in_correction(self, keys: set[int], is_erase: bool, point: Point) -> None:
        """A correction or an erase stops in the middle."""
        text = "\n".join(["id", *map(str, sorted(keys))])
        erase = Op("Erase", erased=frozenset(keys), given={"erase_keys": self._give(text)})
        self._fall_asleep(erase if is_erase else self._correction("a", keys), point)

    def _correction(self, gone: str, keys: set[int]) -> Op:
        other = PARTS[1] if gone == PARTS[0] else PARTS[0]
        self.named += 1
        updates = {key: (other, f"n{self.named}.{key}") for key in sorted(keys)}
        rows = [f"{key},{part},{name},{TIME}" for key, (part, name) in updates.items()]
        given = {"key": "part", "updates": self._give("\n".join(["id,part,name,ts", *rows]))}
        if gone:
            given["deletes"] = self._give(f"part\n{gone}")
        return Op("Apply", correction=Correction(frozenset({gone} - {""}), updates), given=given)

    def _give(self, text: str) -> str:
        """The address of a CSV file."""
        self.named += 1
        bucket, key = self.table.path.bucket, f"given/{self.table.table}/{self.named}.csv"
        self.clients.s3.put_object(Bucket=bucket, Key=key, Body=f"{text}\n".encode())
        return f"s3://{bucket}/{key}"

    def _do(self, op: Op, disturbed: Point | None) -> None:
        if disturbed is None:
            self._finish(op)
        else:
            self._crash(op, disturbed)

    # --- staged changes

    @rule(rows=ROWS, lift=st.booleans())
    def stage(self, rows: list[DrawnRow], lift: bool) -> None:
        """The next change is prepared up to its commit."""
        self.deliver(rows, False, 0)
        if lift:
            self._activate()
        forget_lease(self.table)
        self._look_at_clock()
        op = BOTH[0] if not self.oracle.item.paused and self.oracle.load_due() else BOTH[1]
        code = self._start(replace(op, given={"stage": "true"}))
        self.world.look()
        self._settle(op, [])
        self._look_at_clock()
        expected = self.oracle.predict(op)
        staged = self._last_run().get("staged", "")
        if not staged:
            assert (code, expected is None or (isinstance(expected, Step) and expected.kind == "waits")) == (0, True), self._last_run()
            return
        assert isinstance(expected, Step)
        assert _described(self.world.record(staged)) == _expected(expected)
        self.staged[staged] = Staged(expected, self.oracle.head, self.oracle.item.cursor, self.world.item["LoadQuietMinutes"])
        self.oracle.item = replace(self.oracle.item, waits=staged)
        self.seen["staged"] += 1

    @precondition(lambda self: self.staged)
    @rule(pick=PICK, disturbed=DISTURBED)
    def commit(self, pick: int, disturbed: Point | None) -> None:
        """A staged change is committed, or refused because something has changed since."""
        change = self._staged(pick)
        forget_lease(self.table)
        refused: set[str] = set()
        if disturbed is None:
            ended = self.table.commit(change, lease_seconds=LONG_LEASE)
            refused = {ended.error.code} if ended.error else set()
            why = str(ended.error)
        else:
            self._die(disturbed, lambda table: table.commit(change, lease_seconds=LONG_LEASE).code)
        self.world.look()
        before = self.oracle.head
        was_committed = self._settle(Op("Commit"), [self._commit_of(change)])
        if disturbed is None:
            assert was_committed != bool(refused - {"staged-gone"}), (refused, self.staged[change])
            if refused:
                assert refused <= self._why_refused(change, before), (why, self._why_refused(change, before))
            self.seen["committed" if was_committed else f"refused {min(refused)}"] += 1

    def _commit_of(self, change: str) -> Step:
        """The step that commits a staged change now. Its pause is lifted, another one stays."""
        staged, item = self.staged[change], self.oracle.item
        lifts = item.waits == change and not item.ours
        return replace(staged.step, item=replace(item, cursor=staged.step.item.cursor, waits="" if lifts else item.waits), lifts=lifts)

    def _why_refused(self, change: str, head: str) -> set[str]:
        staged, record = self.staged[change], self.world.record(change)
        why = {
            "already-committed": any(self.world.record(each.id).staged_as == change for each in self.oracle.back(self.oracle.head)),
            "already-discarded": change in self.discarded,
            "staged-overtaken": head != staged.head,
            "staged-edited": (self.oracle.item.cursor, self.world.item["LoadQuietMinutes"]) != (staged.cursor, staged.quiet),
            "staged-gone": bool({file.path for file in record.added} & self.aborted),
        }
        return {code for code, holds in why.items() if holds}

    @precondition(lambda self: self.staged)
    @rule(pick=PICK, disturbed=DISTURBED)
    def discard(self, pick: int, disturbed: Point | None) -> None:
        """A staged change is discarded; the files are pending again."""
        change = self._staged(pick)
        forget_lease(self.table)
        code, refused = None, set()
        if disturbed is None:
            ended = self.table.discard(change, lease_seconds=LONG_LEASE)
            code, refused = ended.code, {ended.error.code} if ended.error else set()
        else:
            code = self._die(disturbed, lambda table: table.discard(change, lease_seconds=LONG_LEASE).code)
        self.world.look()
        self._settle(Op("Commit"), [])
        if code == 0:
            assert "already-committed" not in self._why_refused(change, self.oracle.head)
            self.seen["discarded"] += 1
        elif disturbed is None:
            assert refused == {"already-committed"}
            assert refused <= self._why_refused(change, self.oracle.head)
        item = self.oracle.item
        lifted = item.waits == change and not item.ours and (code == 0 or "Paused" not in self.world.item)
        self.oracle.item = replace(item, waits="") if lifted else item
        self.discarded.add(change)  # perhaps: it died
        paths = {file.path for file in self.world.record(change).added}
        self.aborted |= paths if code == 0 or code is None else set()

    def _staged(self, pick: int) -> str:
        names = list(self.staged)
        return names[-1 - pick % len(names)]

    # --- edits by hand

    @precondition(lambda self: self.oracle.state.loaded and self._own_names())
    @rule(pick=PICK)
    def move_cursor(self, pick: int) -> None:
        """Forward skips what lies between, back replays."""
        names = ["", *self._own_names()]
        name = names[pick % len(names)]
        self.table.edit(LastIncrementalFile=f"{self.table.path}{name or '0.parquet'}")
        self.oracle.item = replace(self.oracle.item, cursor=name)

    @rule(what=st.sampled_from(["activate", "activate", "pause", "quiet", "quick", "put unchanged"]), pick=PICK)
    def edit(self, what: str, pick: int) -> None:
        """A pause or its end; how long a reload waits (here all files are younger than that); or a file is put once more."""
        if what == "activate":
            self._activate()
        elif what == "pause" and not self.oracle.item.paused:
            self.table.edit(Paused="waiting for the audit")
            self.oracle.item = replace(self.oracle.item, own=True)
        elif what == "put unchanged" and self._cdc_names():
            names = self._cdc_names()
            file = self.oracle.raw[names[pick % len(names)]]
            self._put_cdc(file.name, file.rows)
        elif what in ("quiet", "quick"):
            self.table.edit(LoadQuietMinutes="900" if what == "quiet" else "0")

    def _activate(self) -> None:
        self.table.remove("Paused")
        self.oracle.item = self.oracle.item.active

    # --- S3

    @rule(pick=PICK, wanted=st.booleans())
    def versions_expire(self, pick: int, wanted: bool) -> None:
        """The lifecycle rule removes what was hidden long ago; then somebody wants it back."""
        names = [name for name, change in self.oracle.changes.items() if not change.lost]
        name = names[pick % len(names)]
        self.world.expire(name)
        if wanted:
            wish = Wish(to=name)
            self._finish(Op("Rollback", wish, self.oracle.goal(wish)))

    @precondition(lambda self: self.world.publishing or self.zombies or self.staged)
    @rule()
    def uploads_expire(self) -> None:
        """The lifecycle rule aborts uploads that were never completed: of a change that is not published yet, staged, or of a sleeper.

        Not those of a load whose file DMS has replaced since: without its input a lost change blocks the table.
        """
        if not self.world.publishing or self.oracle.raw[LOAD].etag == self.oracle.state.generation[1]:
            self.aborted |= self.world.abort_uploads()

    @precondition(lambda self: self._awaited())
    @rule(pick=PICK)
    def awaited_file_vanishes(self, pick: int) -> None:
        """Raw loses a file that a rollback made pending again: nothing is applied over the gap. Then it is put back."""
        self._activate()
        self._finish(Op("LoadInitial"))
        if not self._awaited() or self.oracle.load_due() is not None:
            return  # a load came first
        name = self._awaited()[pick % len(self._awaited())]
        rows = self.oracle.raw[name].rows
        self.table.delete_raw(name)
        code = self._start(Op("LoadIncremental"))
        self.world.look()
        assert (code, self._last_run()["error"]["code"]) == (1, "awaited-file-gone")
        assert self.world.head == self.oracle.head
        self._put_cdc(name, rows)
        self.table.remove("Blocked")  # as `dmslake unblock` does; otherwise it stands there up to the next change
        self.seen["blocked"] += 1

    # --- what holds after every step

    @invariant()
    def check_everything(self) -> None:
        """Lake, item and records are what the oracle says; see `World.look` for what may never have happened."""
        self.world.look()
        oracle, world = self.oracle, self.world
        assert world.head == oracle.head, "a change took effect that nobody saw"
        self._check_item()
        self.seen["steps"] += 1
        if world.publishing:
            self.seen["unfinished"] += 1
            before = world.snapshot(oracle.changes[oracle.head].parent).files
            assert world.visible <= {*before, *world.snapshot(oracle.head).files}
        else:
            assert world.visible == set(world.snapshot(oracle.head).files), "the folder is not the head's snapshot"
            assert world.rows_visible() == _flat(oracle.state.rows), "readers see other rows than the oracle"
        for change in oracle.changes.values():
            if change.lost or (world.publishing and change.id == oracle.head):
                continue
            world.check_data(change.id)
            if world.is_unread(change.id):
                continue
            assert world.rows_of(change.id) == _flat(change.state.rows), f"the snapshot of {change.id} has other rows"
        self._check_erased()

    def _check_erased(self) -> None:
        """After an erase is finished nothing from before it that S3 keeps has a key of it."""
        world = self.world
        if world.publishing or "Erasing" in world.item:
            return
        for erase in world.erases():
            assert world.holding(self.erased[erase], before=erase) == [], f"keys that {erase} erased are kept"

    def _check_item(self) -> None:
        item, expected = self.world.item, self.oracle.item
        assert _name(item["LastIncrementalFile"]) == expected.cursor
        paused = str(item.get("Paused", ""))
        ours, own = paused.startswith("rolled back"), "audit" in paused or "taken back" in paused
        waits = next((change for change in self.staged if f"change {change} is staged" in paused), "")
        assert (ours, own, waits) == (expected.ours, expected.own, expected.waits), paused

    # --- doing

    def _start(self, op: Op, name: str = "", table: LakeTable | None = None) -> int:
        """Run a job to its end; its exit code. name: its requests pass through this rule of the traffic."""
        table = table or copy.copy(self.table)
        if name:
            table.environment = self.traffic.environment(self.table.environment, name)
        arguments = op.wish.arguments() if op.wish else {}
        return table.run(op.job, lease_seconds=LONG_LEASE, **arguments, **op.given)

    def _finish(self, op: Op) -> None:
        """A run that nothing disturbs, and what it must have done."""
        forget_lease(self.table)
        before = int(self.table.item().get("Fence", 0))
        code = self._start(op)
        self.world.look()
        done = self._settle(op, [])
        last = self._last_run()
        assert int(self.world.item["Fence"]) > before
        unfinished = {"Publishing", "CatalogPending", "LeaseOwner", "Blocked"} & set(self.world.item)
        if not isinstance(op.goal, Refusal):
            assert not unfinished, (unfinished, code, last)
        assert not (op.job == "Erase" and "Erasing" in self.world.item), last
        self._look_at_clock()
        expected = None if op.is_asked_once and done else self.oracle.predict(op)
        if isinstance(expected, Step) and expected.kind == "waits":
            expected = None
        error = last.get("error", {}).get("code", "")
        if error in ("version-gone", "version-erased"):
            assert isinstance(op.goal, str)
            assert self.oracle.changes[op.goal].lost or self.world.is_expired(op.goal), last
            self.seen[f"refused {error}"] += 1
        elif op.erased and not done:
            assert (error, self.world.holding(op.erased)) == ("no-key-found", []), last
            self.seen[f"refused {error}"] += 1
        elif isinstance(expected, Refusal):
            assert (code != 0, error in expected.codes) == (True, True), (expected, last)
            self.seen[f"refused {error}"] += 1
        else:
            assert (code, expected) == (0, None), last

    def _last_run(self) -> dict[str, Any]:
        last = self.world.item["LastRun"]
        return dict(last if isinstance(last, dict) else json.loads(last))

    def _run_both(self) -> None:
        for op in BOTH:
            self._finish(op)
        self._check_at_rest()

    def _check_at_rest(self) -> None:
        """Every file has one fate, and the rows are those of all that was applied, in order, on the load."""
        oracle, state = self.oracle, self.oracle.state
        self._look_at_clock()
        if oracle.item.paused or oracle.load_due() is not None:
            return
        pending, late, passed = oracle.sort_out()
        assert (pending, late) == ([], [])
        assert not state.applied & state.skipped
        assert set(self._own_names()) == state.applied | state.skipped | set(passed)
        rows = dict(state.base)
        for operation, key, values in oracle.rows_of(state.applied):
            if operation == "D":
                rows.pop(key, None)
            else:
                rows[key] = values
        if oracle.item.cursor == state.cursor and not state.corrected:
            assert rows == state.rows

    def _crash(self, op: Op, point: Point) -> None:
        forget_lease(self.table)
        self._die(point, lambda table: self._start(op, table=table))
        self.world.look()
        self._settle(op, [])

    def _die(self, point: Point, work: Callable[[LakeTable], int]) -> int | None:
        """The exit code of what dies at that point, unless it ends before; None if it died."""
        self.traffic.rules["crash"] = death(point)
        table = copy.copy(self.table)
        table.environment = self.traffic.environment(self.table.environment, "crash")
        try:
            code = work(table)
        except Killed:
            _say("died")
            self.seen["died"] += 1
            return None
        _say(f"ended with {code}")
        return code

    def _fall_asleep(self, op: Op, point: Point) -> None:
        forget_lease(self.table)
        fence = self.table.item().get("Fence")
        name = next(name for name in ("sleeper0", "sleeper1") if all(zombie.name != name for zombie in self.zombies))
        sleeper = Sleeper(point, lambda: self._start(op, name))
        self.traffic.rules[name] = sleeper.rule
        asleep = sleeper.start()
        self.world.look()
        self._settle(op, [])
        if asleep:
            item = self.world.item
            self._look_at_clock()
            taken = int(item["Fence"]) if item.get("Fence") != fence else None
            self.zombies.append(Zombie(name, op, sleeper, self.oracle.predict(op), self.oracle.head, taken))
        else:
            sleeper.wake()

    def _wake(self, number: int) -> None:
        zombie = self.zombies.pop(number)
        forget_lease(self.table)
        before = self.table.item()
        op = zombie.op
        if zombie.fence is None and op.wish:  # it starts only now
            op = replace(op, goal=self.oracle.goal(op.wish))
        zombie.sleeper.wake()
        self.world.look()
        taken_over = zombie.fence is not None and int(before["Fence"]) != zombie.fence
        _say(f"{zombie.name} woke {'after another run' if taken_over else 'unharmed'} and ended with {zombie.sleeper.code}")
        self.seen["woke after another run" if taken_over else "woke unharmed"] += 1
        if taken_over:
            assert self.world.item == before, "a run whose lease was taken over changed the item"
        self._settle(op, [zombie.planned] if zombie.head == self.oracle.head else [])

    def _settle(self, op: Op, planned: list[Step | Refusal | None]) -> bool:
        """Take note of the changes that took effect: each is the one that had to come. Returns whether a rollback was done."""
        done = False
        for record in self.world.landed_since(self.oracle.head):
            if record.kind == "lost":
                self._check_lost(record)
                self.oracle.take_back(record.id)
            else:
                assert not (op.is_asked_once and done), "a rollback, a correction or an erase made two changes"
                done = True
                self._look_at_clock()
                steps = [step for step in [*planned, self.oracle.predict(op)] if isinstance(step, Step)]
                found = _described(record)
                fitting = next((step for step in steps if _expected(step) == found), None)
                assert fitting is not None, f"a run of {op} made the change {found}, expected {[_expected(step) for step in steps]}"
                self.oracle.land(record.id, fitting)
                if op.erased:
                    self.erased[record.id] = op.erased
            self._check_bookkeeping(record.id)
            self.seen[f"change {record.kind}"] += 1
        return done

    def _check_lost(self, record: ChangeRecord) -> None:
        lost = self.world.record(record.lost)
        assert record.lost == self.oracle.head
        assert {file.path for file in lost.added} & self.aborted, f"{record.lost} was taken back though no upload was gone"

    def _check_bookkeeping(self, change: str) -> None:
        snapshot, expected = self.world.snapshot(change), self.oracle.changes[change].state
        found = {
            "applied": {_name(key) for key in snapshot.applied} - {LOAD},
            "skipped": {_name(key) for key in snapshot.skipped} - {LOAD},
            "awaited": {(_name(key), item.etag) for key, item in snapshot.awaited.items()},
            "cursor": _name(snapshot.cursor),
            "loaded": not snapshot.is_empty,
        }
        wanted = {name: getattr(expected, name) for name in found}
        assert found == wanted, f"change {change}: found {found}, expected {wanted}"

    def _look_at_clock(self) -> None:
        """Whether a reload waits: S3's own times decide, which are seconds."""
        minutes = self.table.item().get("LoadQuietMinutes")
        raw = self.table.path.raw
        listed = self.clients.s3.list_objects_v2(Bucket=raw.bucket, Prefix=raw.key).get("Contents", [])
        loads = [entry["LastModified"] for entry in listed if cdc_name(entry["Key"]) is None]
        newer = any(entry["LastModified"] > max(loads) for entry in listed if cdc_name(entry["Key"])) if loads else False
        self.oracle.item = replace(self.oracle.item, reload_waits=minutes != "0" and not newer)

    # --- names and files

    def _rollback(self, goal: str, pick: int, resume: bool, skip: bool) -> Op:
        wish = self._wish(goal, pick, resume, skip)
        return Op("Rollback", wish, self.oracle.goal(wish))

    def _wish(self, goal: str, pick: int, resume: bool, skip: bool) -> Wish:
        names = list(self.oracle.changes)
        name = names[-1 - pick % len(names)]
        wishes = {
            "previous": Wish(to="previous", resume=resume, skip=skip),
            "to": Wish(to=name, resume=resume, skip=skip),
            "undo": Wish(undo=name, resume=resume, skip=skip),
            "before": Wish(undo=names[0], resume=resume),
            "reapply": Wish(reapply=name, resume=resume),
            "reapply-all": Wish(reapply="all", resume=resume),
        }
        return wishes[goal]

    def _cdc_names(self) -> list[str]:
        return sorted(set(self.oracle.raw) - {LOAD})

    def _own_names(self) -> list[str]:
        """The CDC files of the head's generation."""
        return [name for name in self._cdc_names() if digits(name) >= self.oracle.state.generation[2]]

    def _awaited(self) -> list[str]:
        return sorted(name for name, _ in self.oracle.state.awaited if name != LOAD and name > self.oracle.item.cursor)

    def _named(self, rows: list[DrawnRow]) -> tuple[Row, ...]:
        """Rows with a name of their own each."""
        self.named += 1
        return tuple((op, key, () if op == "D" else (part, f"n{self.named}.{at}")) for at, (op, key, part) in enumerate(rows))

    def _put_cdc(self, name: str, rows: tuple[Row, ...]) -> None:
        self._put(name, rows, TIME, "")

    def _put_load(self, rows: dict[int, str]) -> None:
        self.second += 1
        start = START + timedelta(seconds=self.second) if LOAD in self.oracle.raw else START
        named = self._named([("I", key, part) for key, part in sorted(rows.items())])
        self._put(LOAD, named, f"{start:%Y-%m-%d %H:%M:%S}.000000", f"{start:%Y%m%d%H%M%S}")

    def _put(self, name: str, rows: tuple[Row, ...], time: str, first: str) -> None:
        data = self.table.parquet(DmsRow(op, (key, *(values or (None, None))), time) for op, key, values in rows)
        key = self.table.path.raw.key + name
        answer = self.clients.s3.put_object(Bucket=self.table.path.bucket, Key=key, Body=data)
        self.oracle.raw[name] = RawFile(name, answer["ETag"].strip('"'), rows, first)


def _say(text: str) -> None:
    """For the report of a failing example."""
    if currently_in_test_context():
        note(text)


def _flat(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((key, *values) for key, values in rows.items())


def _name(key: str) -> str:
    """The file's name in a key or cursor, '' for the cursor of none."""
    name = key.rsplit("/", 1)[-1]
    return "" if name == "0.parquet" else name


def _described(record: ChangeRecord) -> tuple[Any, ...]:
    target = record.target if record.kind in ("rollback", "reapply") else None
    return record.kind, tuple(sorted(_name(file.key) for file in record.inputs)), _name(record.cursor_after), target


def _expected(step: Step) -> tuple[Any, ...]:
    return step.kind, tuple(sorted(step.inputs)), step.after.cursor, step.rows_of


__all__ = ["JOBS", "TableMachine"]
