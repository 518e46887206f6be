"""Random deliveries, edits and runs: the planner drives a table that is a dict, and nothing is lost, doubled or reordered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glue_jobs.core.actions import Action, Rest, Rewrite, TakeBatch, TakeLoad
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import RawFile, cdc_name
from glue_jobs.core.record import ChangeRecord, Generation
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot, apply, checkpoint_of
from glue_jobs.core.state import read_state
from tests.core.records import minimal
from tests.core.tables import FOLDER, NOW, OLD, PATH, cdc, cdc_key, cursor, item_of, listing_of, taken

KEYS, FILES = 3, 8
Row = tuple[str, int, int]  # operation, key, value
Rows = dict[int, int]
LIMITS = replace(Limits(), batch_files=2)


def changed(rows: Rows, changes: Iterable[Row], keys: set[int] | None = None) -> Rows:
    """The rows after the changes, in their order; only those of `keys` if given."""
    after = dict(rows)
    for operation, key, value in changes:
        if keys is not None and key not in keys:
            continue
        if operation == "D":
            after.pop(key, None)
        else:
            after[key] = value
    return after


def last_changes(changes: Iterable[Row], keys: set[int]) -> list[Row]:
    """The winner of each of `keys`."""
    return list({row[1]: row for row in changes if row[1] in keys}.values())


@dataclass
class Table:
    """Raw files with their rows, the item, the snapshot and the lake as a dict; `run` does what the planner says."""

    content: dict[int, list[Row]]
    raw: dict[str, RawFile] = field(default_factory=dict)
    load_rows: Rows = field(default_factory=dict)
    load_from: int = 0
    loads: int = 0
    lake: Rows = field(default_factory=dict)
    base: Rows = field(default_factory=dict)  # the rows of the generation's load
    snapshot: Snapshot = Snapshot()
    item: dict[str, Any] = field(default_factory=lambda: item_of(Snapshot()))
    changes: int = 0
    may_skip: set[str] = field(default_factory=set)

    def rows_of(self, files: Iterable[RawFile]) -> list[Row]:
        ordered = sorted(files, key=lambda file: file.base)
        return [row for file in ordered for row in self.content[self.number(file.key)]]

    def number(self, key: str) -> int:
        return next(number for number in range(FILES) if cdc_key(number + 1) == key)

    # --- what may happen

    def deliver(self, number: int) -> None:
        self.raw.setdefault(cdc_key(number + 1), cdc(number + 1))

    def load(self, rows: Rows, first: int) -> None:
        self.loads += 1
        self.load_rows, self.load_from = rows, first
        key = f"{FOLDER}LOAD00000001.parquet"
        self.raw[key] = RawFile(key, 10, f"l{self.loads}", OLD)

    def move(self, number: int) -> None:
        """The cursor to a file, or (0) to none."""
        before = read_state(self.item).cursor
        self.item["LastIncrementalFile"] = cursor(number) if number else f"{PATH}0.parquet"
        if not self.snapshot.change:
            self.item["LastIncrementalFile"] = f"{PATH}0.parquet"
        self.may_skip.update(key for key in map(cdc_key, range(1, number + 1)) if f"{PATH.bucket}/{key}" > before)

    def skip(self, number: int) -> None:
        """By name, and only what was not applied: skipping doesn't take back."""
        key = cdc_key(number + 1)
        if key not in self.snapshot.applied:
            names = {*filter(None, str(self.item.get("SkipFiles", "")).split(",")), key.rsplit("/", 1)[-1]}
            self.item["SkipFiles"] = ",".join(sorted(names))
            self.may_skip.add(key)

    def widen(self) -> None:
        """A rewrite, which takes no file."""
        if self.snapshot.change:
            self.item["Request"] = "repartition"

    # --- what the program does

    def run(self) -> None:
        for _ in range(60):
            state = read_state(self.item)
            action = plan_table(state, self.snapshot, listing_of(*self.raw.values()), NOW, LIMITS)
            if isinstance(action, Rest):
                return
            self.commit(action)
        raise AssertionError(f"the plan never comes to rest: {action}")

    def commit(self, action: Action) -> None:
        self.changes += 1
        state = read_state(self.item)
        record = minimal(
            id=str(ChangeId(1, self.changes, "0000000a")),
            parent=self.snapshot.change,
            schema=(Column("id", "int"),),
            primary_key=("id",),
            chain=self.snapshot.chain,
            cursor_before=state.cursor,
        )
        if isinstance(action, TakeLoad):
            record = self.taken_load(record, action)
        elif isinstance(action, Rewrite):
            record = replace(record, kind=action.kind, generation=self.snapshot.generation, cursor_after=self.snapshot.cursor)
            del self.item["Request"]
        else:
            assert isinstance(action, TakeBatch), action
            record = self.taken_batch(record, action, state.cursor)
        if record.inputs:
            self.item["LastIncrementalFile"] = record.cursor_after or f"{PATH}0.parquet"
        self.item["Head"] = record.id
        record = replace(record, checkpoint=checkpoint_of(apply(self.snapshot, record), 24.0))
        self.snapshot = apply(Snapshot(), record)

    def taken_load(self, record: ChangeRecord, action: TakeLoad) -> ChangeRecord:
        self.lake = self.base = dict(self.load_rows)
        name = cdc_name(cdc_key(self.load_from + 1))
        assert name is not None
        inputs = tuple(map(taken, action.files))
        first = name.digits[:14] if action.reload else ""
        generation = Generation(self.snapshot.generation.number + 1, inputs, first)
        return replace(record, kind="full-load", generation=generation, inputs=inputs)

    def taken_batch(self, record: ChangeRecord, action: TakeBatch, at: str) -> ChangeRecord:
        rows = self.rows_of(action.files + action.context)
        if action.late:
            keys = {key for _, key, _ in self.rows_of(action.files)}
            self.lake = changed(self.lake, last_changes(rows, keys))
        else:
            self.lake = changed(self.lake, rows)
        return replace(
            record,
            kind="late" if action.late else "incremental",
            generation=self.snapshot.generation if self.snapshot.change else Generation(1),
            inputs=tuple(map(taken, action.files)),
            context=tuple(map(taken, action.context)),
            skipped=tuple(map(taken, action.skipped)),
            cursor_after=at if action.late else f"{PATH.bucket}/{action.files[-1].key}",
        )

    # --- what must hold at rest

    def check(self) -> None:
        state = read_state(self.item)
        applied, skipped = set(self.snapshot.applied), set(self.snapshot.skipped)
        assert not applied & skipped, "a file has two fates"
        assert skipped <= self.may_skip, "a file was skipped that nobody asked to skip"
        waiting = state.cursor != self.snapshot.cursor  # a moved cursor is put on record with the next batch
        for key in self.raw:
            name = cdc_name(key)
            if name is None or name.digits < self.snapshot.generation.cdc_from or key in applied | skipped:
                continue
            passed = key.rsplit("/", 1)[-1] in state.skip_files or (waiting and f"{PATH.bucket}/{key}" <= state.cursor)
            assert passed, f"{key} was lost"
            assert key in self.may_skip, f"{key} was passed over"
        files = [self.raw[key] for key in applied if cdc_name(key)]
        assert self.lake == changed(self.base, self.rows_of(files))


ROWS = st.lists(st.tuples(st.sampled_from("IUD"), st.integers(0, KEYS - 1), st.integers(0, 99)), max_size=4)
CONTENT = st.fixed_dictionaries(dict.fromkeys(range(FILES), ROWS))
NUMBER = st.integers(0, FILES - 1)
LOADS = st.tuples(st.just("load"), st.dictionaries(st.integers(0, KEYS - 1), st.integers(100, 199)), NUMBER)
DELIVERIES = st.tuples(st.just("deliver"), NUMBER)
RUNS = st.just(("run",))
EDITS = st.one_of(st.tuples(st.just("move"), NUMBER), st.tuples(st.just("skip"), NUMBER), st.just(("widen",)))


def play(content: dict[int, list[Row]], events: list[tuple[Any, ...]]) -> Table:
    table = Table(content)
    for name, *arguments in [*events, ("run",)]:
        getattr(table, name)(*arguments)
        if name == "run":
            table.check()
    return table


@settings(max_examples=300)
@given(CONTENT, st.lists(st.one_of(DELIVERIES, DELIVERIES, DELIVERIES, RUNS, LOADS), max_size=25))
def test_whatever_order_files_come_in_the_table_is_the_source(content: dict[int, list[Row]], events: list[tuple[Any, ...]]) -> None:
    """Late files, reloads, bounded batches: every file of the generation is applied, none is skipped."""
    table = play(content, events)

    assert not table.snapshot.skipped


DELIVER_ALL = [("deliver", number) for number in range(FILES)]


@settings(max_examples=500)
@given(CONTENT, st.lists(st.one_of(DELIVERIES, DELIVERIES, RUNS, EDITS, LOADS), max_size=30))
@example({number: [("U", 0, number)] for number in range(FILES)}, [*DELIVER_ALL, ("run",), ("move", 2), ("run",)])
@example(
    {number: [("U", 0, number)] for number in range(FILES)}, [("load", {}, 0), ("run",), *DELIVER_ALL, ("move", 3), ("widen",), ("run",)]
)
def test_a_persons_edits_lose_nothing_by_themselves(content: dict[int, list[Row]], events: list[tuple[Any, ...]]) -> None:
    """Cursors moved on and back, files skipped by name, rewrites between: each file has one fate, and the table is what was applied."""
    play(content, events)


def test_a_replay_in_bounded_batches_ends_where_it_began() -> None:
    """Eight files, two a batch, from the second on: the first batch alone would leave the table in the past."""
    content: dict[int, list[Row]] = {number: [("U", 0, number)] for number in range(FILES)}

    table = play(content, [*DELIVER_ALL, ("run",), ("move", 1), ("run",)])

    assert (table.lake, table.snapshot.cursor) == ({0: FILES - 1}, cursor(FILES))


@pytest.mark.parametrize("late", range(FILES - 1))
def test_a_late_file_does_not_bring_back_a_removed_row(late: int) -> None:
    """The last file removes the row; the late one would insert it."""
    content: dict[int, list[Row]] = {number: [("I", 0, number)] for number in range(FILES - 1)}
    content[FILES - 1] = [("D", 0, 0)]
    others = [event for event in DELIVER_ALL if event[1] != late]

    table = play(content, [*others, ("run",), ("deliver", late), ("run",)])

    assert (table.lake, len(table.snapshot.applied)) == ({}, FILES)
