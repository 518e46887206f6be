"""Going back and forth in a history of records: what goes, what comes back, and what a person may ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.actions import TakeBatch, TakeLoad
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.partitioning import PartitionField, parse_partition_key, partition_key_text
from glue_jobs.core.record import ChangeRecord, DataFile, Generation, Input
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.core.undo import Older, UndoPlan, Wish, asks_older, parse_to, plan_undo, rows_apart, rows_path, undone_tail
from tests.core.records import minimal
from tests.core.tables import cdc, cdc_key, cursor, listing_of, load, loaded, plan, state_of, taken


def change(number: int) -> str:
    return str(ChangeId(number, 1, f"{number:08x}"))


class History:
    """Records by number; `c` adds an ordinary change, `r` one that goes to the rows of another."""

    def __init__(self) -> None:
        self.records: dict[str, ChangeRecord] = {}

    def _add(self, kind: str, target: str = "", lost: str = "") -> str:
        number = len(self.records) + 1
        parent = change(number - 1) if self.records else ""
        self.records[change(number)] = replace(minimal(), id=change(number), parent=parent, kind=kind, target=target, lost=lost)
        return change(number)

    def c(self) -> str:
        return self._add("incremental")

    def r(self, target: str, kind: str = "rollback", lost: str = "") -> str:
        return self._add(kind, target, lost)

    def __call__(self, name: str) -> ChangeRecord:
        return self.records[name]

    @property
    def head(self) -> ChangeRecord:
        return list(self.records.values())[-1]

    def path(self, name: str) -> list[str]:
        return [record.id for record in rows_path(self, name)]


def test_the_rows_of_a_change_after_a_rollback_are_built_on_its_target() -> None:
    """What was undone is no part of them."""
    history = History()
    one, two = history.c(), history.c()
    history.r(one)
    four = history.c()

    assert history.path(four) == [four, one]
    assert [[record.id for record in part] for part in rows_apart(history, four, two)] == [[four], [two]]


@given(st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=12))
def test_going_somewhere_and_what_it_undoes_agree(steps: list[int | None]) -> None:
    """In any history: the path from here, without what goes and with what comes back, is the path to there."""
    history = History()
    ordinary = [history.c()]
    for step in steps:
        if step is None:
            ordinary.append(history.c())
        else:
            history.r(ordinary[step % len(ordinary)])
    for here in ordinary:
        for there in ordinary:
            undone, redone = rows_apart(history, here, there)
            kept = history.path(here)[len(undone) :]
            assert [*reversed(kept), *(record.id for record in redone)] == list(reversed(history.path(there)))
            assert [record.id for record in undone] == history.path(here)[: len(undone)]


def tail(history: History) -> list[str]:
    return [record.id for record in undone_tail(history, history.head)]


def test_the_undone_tail_is_what_only_rollbacks_came_after() -> None:
    """Oldest first; a part that was re-applied is no longer in it, and an ordinary change ends it."""
    history = History()
    one, two, three = history.c(), history.c(), history.c()
    history.r(one)
    all_undone = tail(history)
    history.r(two, kind="reapply")
    part = tail(history)
    history.c()

    assert (all_undone, part, tail(history)) == ([two, three], [three], [])


def test_a_lost_change_is_not_re_applied() -> None:
    """It was never published; what was before it may have been undone."""
    history = History()
    one, two = history.c(), history.c()
    three = history.c()
    history.r(two, kind="lost", lost=three)
    without = tail(history)
    history.r(one)

    assert (without, tail(history)) == ([], [two])


def test_a_repair_stands_for_what_it_repairs() -> None:
    """It is no change of the rows."""
    history = History()
    one, two = history.c(), history.c()
    history.r(two, kind="repair")

    assert (tail(history), history.path(history.head.target)) == ([], [two, one])


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T12:00:00Z", datetime(2024, 5, 1, 12, tzinfo=timezone.utc)),
        ("2024-05-01 12:00:00.5+02:00", datetime(2024, 5, 1, 10, 0, 0, 500000, tzinfo=timezone.utc)),
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=timezone.utc)),
        ("1714564800", datetime(2024, 5, 1, 12, tzinfo=timezone.utc)),
        ("1714564800.25", datetime(2024, 5, 1, 12, 0, 0, 250000, tzinfo=timezone.utc)),
    ],
)
def test_a_time_is_read_as_utc(text: str, moment: datetime) -> None:
    """ISO with or without zone, a date, epoch seconds."""
    assert parse_to(text) == moment


@pytest.mark.parametrize("text", ["1712101520456", "171210152045", "1712101520456000", "2024", "12345678901234.5"])
def test_digits_that_are_no_epoch_seconds_are_no_time(text: str) -> None:
    """Python reads some milliseconds as a day of 1712: a rollback to it would take the table back to nothing."""
    with pytest.raises(UsageError, match="the time is unclear") as caught:
        parse_to(text)
    assert (caught.value.code, parse_to("20240501")) == ("bad-goal", datetime(2024, 5, 1, tzinfo=timezone.utc))


def test_other_goals_are_previous_and_change_ids() -> None:
    """Anything else is a usage error that says what is expected."""
    assert [parse_to(" previous "), parse_to(change(3))] == ["previous", change(3)]
    with pytest.raises(UsageError, match="neither a change id nor a time") as caught:
        parse_to("last week")
    assert "dmslake history" in caught.value.todo


@pytest.mark.parametrize("text", ["a", "a, b", "year(d), month(d) as m", "null", "day(with space) as x"])
def test_a_partition_key_is_written_as_it_is_read(text: str) -> None:
    """For an item whose layout goes back."""
    fields: tuple[PartitionField, ...] = () if text == "null" else parse_partition_key(text)

    assert partition_key_text(fields) == text


# --- plans


def named(*names: str) -> dict[str, DataFile]:
    return {name: DataFile(name, 10, 1, origin=name.rstrip("'") if name.endswith("'") else "") for name in names}


def undo(head: Snapshot, goal: Snapshot, since: list[ChangeRecord], wish: Wish | None = None, **edits: str) -> UndoPlan:
    return plan_undo(state_of(head, **edits), head, goal, since, (), (), wish or Wish(to="previous"))


FIRST = Generation(1)


def batch(number: int, *files: Input, kind: str = "incremental", generation: Generation = FIRST) -> ChangeRecord:
    return replace(minimal(), id=change(number), kind=kind, inputs=files, generation=generation)


def test_only_files_that_differ_are_copied_and_superseded() -> None:
    """A file stays if the head has the same bytes, under its own key or a copy's."""
    head = replace(loaded(), files=named("a'", "b", "x"))
    goal = replace(loaded(), files=named("a", "b", "c"))

    made = undo(head, goal, [])

    assert ([file.path for file in made.restored], made.superseded) == (["c"], ("x",))


def test_what_was_taken_since_is_awaited() -> None:
    """Also what was awaited before; not what the goal has, nor what a person leaves out by name."""
    one, two, three, four = (cdc(number) for number in range(1, 5))
    goal = loaded([one], at=1)
    head = replace(loaded([one, two, three], at=3), awaited={four.key: taken(four)})

    made = undo(head, goal, [batch(3, taken(three)), batch(2, taken(two), taken(one))], SkipFiles=three.base)

    assert [item.key for item in made.awaited] == [two.key, four.key]
    assert made.values["LastIncrementalFile"] == cursor(1)


def test_what_was_taken_from_long_before_is_awaited_where_the_goal_lacks_it() -> None:
    """Of so long ago the goal's snapshot tells nothing; the changes that its rows come from do."""
    one, two, three = (cdc(number) for number in (1, 2, 60 * 24 * 9))
    goal = replace(loaded([three], at=60 * 24 * 9), known_from="20240508")
    since = [batch(3, taken(three)), batch(2, taken(one), taken(two))]

    assert (asks_older(goal, since), asks_older(goal, since[:1])) == (True, False)
    head, took = loaded([one, two, three], at=60 * 24 * 9), [batch(1, taken(two), taken(three))]

    def awaited(goal: Snapshot, since_cursor: str = "") -> list[str]:
        made = plan_undo(state_of(head), head, goal, since, (), (), Wish(to="previous"), older=Older.of(took, since_cursor))
        return [item.key for item in made.awaited]

    assert awaited(goal) == [one.key]
    assert awaited(goal, cursor(1)) == [], "an adopted table may have had it"
    # In the middle of a replay: what comes after the goal's cursor is to be applied again, though it was once.
    assert awaited(replace(goal, applied={}, cursor=cursor(1))) == [one.key, two.key, three.key]


def test_nothing_waits_for_transactions_without_a_row() -> None:
    """There is nothing to read again, so they may be gone."""
    blank = Input("dms/CDC_TXN-20240501000100000.csv", "e", 10, rows=0)
    full = Input("dms/CDC_TXN-20240501000200000.csv", "f", 10, rows=1)

    made = undo(loaded(), loaded(), [batch(2, blank, full)])

    assert made.awaited == (full,)


def test_what_a_moved_cursor_waits_for_is_had_by_the_state_of_before() -> None:
    """Any file of its name is waited for; the goal applied one of them."""
    one, two = cdc(1), cdc(2)
    head = replace(loaded([one], at=1), awaited={two.key: replace(taken(two), etag="")})
    since = [batch(3, taken(one))]

    assert undo(head, loaded([one, two], at=2), since).awaited == ()
    assert [item.key for item in undo(head, loaded([one], at=1), since).awaited] == [two.key]


def test_a_state_that_was_catching_up_waits_for_all_that_it_waited_for() -> None:
    """Its cursor was moved back to before what it remembers of applied files."""
    goal = replace(loaded([cdc(1)], at=1), awaited={cdc(number).key: replace(taken(cdc(number)), etag="") for number in (2, 7)})
    goal = replace(goal, known_from="20240501000500")

    made = undo(replace(goal, cursor=cursor(2)), goal, [batch(2, taken(cdc(2)))])

    assert [item.key for item in made.awaited] == [cdc(2).key, cdc(7).key]


def test_of_a_reload_only_its_own_files_are_awaited() -> None:
    """CDC files from before the load are covered by it."""
    before, after, again = cdc(1), cdc(5), load(etag="new")
    since = [batch(4, taken(after)), batch(3, taken(again), kind="full-load"), batch(2, taken(before))]

    made = undo(loaded([after], at=5), loaded(), since)

    assert sorted(item.key for item in made.awaited) == sorted([after.key, again.key])


def test_skipping_keeps_the_place_and_drops_what_was_taken() -> None:
    """Cursor and load date stay, nothing is awaited, the dropped files are skipped."""
    one, two = cdc(1), cdc(2)
    head, goal = loaded([one, two], at=2), loaded([one], at=1)

    made = undo(head, goal, [batch(2, taken(two))], Wish(to="previous", skip=True))

    assert (made.after.cursor, made.awaited, [item.key for item in made.skipped]) == (cursor(2), (), [two.key])
    assert (set(made.after.applied), "LastIncrementalFile" in made.values) == ({one.key}, False)


def test_a_key_that_a_person_edited_is_not_set_back() -> None:
    """The edit is their wish for the next run."""
    head = replace(loaded(), primary_key=("id",))
    goal = replace(loaded(), primary_key=("other",))

    assert undo(head, goal, [], PrimaryKey="id").values["PrimaryKey"] == "other"
    assert "PrimaryKey" not in undo(head, goal, [], PrimaryKey="mine").values


def test_a_pause_of_a_persons_own_comes_back() -> None:
    """A rollback of a table that is paused keeps their reason behind its own."""
    head, goal = loaded([cdc(1)], at=1), loaded()
    first = undo(head, goal, [batch(2, taken(cdc(1)))], Paused="audit").values["Paused"]
    second = undo(goal, goal, [], Paused=first).values["Paused"]
    back = undo(goal, head, [], Wish(reapply=""), Paused=second)

    assert first.endswith("(paused before: audit)")
    assert second.endswith("(paused before: audit)")
    assert (back.values["Paused"], back.lifts_pause) == ("audit", False)


# --- what a plan does with awaited files


def awaiting(*files: Input, at: int = 0, **values: object) -> Snapshot:
    return replace(loaded(at=at), awaited={item.key: item for item in files}, **values)  # type: ignore[arg-type]


def blocked_for(make: Callable[[], object]) -> str:
    try:
        found = make()
    except TableBlocked as error:
        return error.code
    by = getattr(found, "by", None)
    return by.code if by else type(found).__name__


def test_an_awaited_file_that_is_there_is_taken() -> None:
    """Nothing special about it."""
    found = plan(awaiting(taken(cdc(1))), load(), cdc(1))

    assert isinstance(found, TakeBatch)
    assert [file.key for file in found.files] == [cdc_key(1)]


@pytest.mark.parametrize("there", [[], [cdc(1, etag="other")]], ids=["gone", "changed"])
def test_a_missing_awaited_file_blocks(there: list[object]) -> None:
    """Files after it are not applied over the hole."""
    assert blocked_for(lambda: plan(awaiting(taken(cdc(1))), load(), *there, cdc(2))) == "awaited-file-gone"  # type: ignore[arg-type]


def test_a_person_may_pass_over_an_awaited_file() -> None:
    """By its name, by the cursor, or by asking for a reload."""
    snapshot = awaiting(taken(cdc(1)))
    found = [
        blocked_for(lambda: plan(snapshot, load(), cdc(2), SkipFiles=cdc(1).base)),
        blocked_for(lambda: plan(snapshot, load(), cdc(2), LastIncrementalFile=cursor(1))),
        blocked_for(lambda: plan(snapshot, load(), cdc(2), Request="reload")),
    ]

    assert found == ["TakeBatch", "TakeBatch", "TakeLoad"]


def test_an_awaited_load_must_be_there_before_the_load_is_taken() -> None:
    """Half a load is none; one that was written anew is a newer load."""
    snapshot = replace(Snapshot(), change=change(1), awaited={file.key: taken(file) for file in (load(1), load(2), cdc(1))})
    missing = blocked_for(lambda: plan(snapshot, load(1), Head=change(1)))
    newer = plan(snapshot, load(1), load(2, etag="anew"), Head=change(1))

    assert (missing, type(newer)) == ("awaited-file-gone", TakeLoad)
    assert listing_of(load(1)).loads


def test_a_change_ends_the_waiting_for_what_it_took_or_passed() -> None:
    """A batch for its inputs; a cursor that was moved for what lies before it; a full load for older generations."""
    one, two, three = (taken(cdc(number)) for number in (1, 2, 3))
    parent = replace(awaiting(one, two, three), change=change(1))
    record = replace(batch(2, two), parent=change(1), cursor_after=cursor(2), generation=parent.generation)
    reload = replace(batch(2, kind="full-load", generation=Generation(9, cdc_from="202405010003")), parent=change(1))

    assert list(apply(parent, record).awaited) == [three.key]
    assert list(apply(parent, reload).awaited) == [three.key]


def test_a_reload_waits_for_the_file_that_was_wanted_last() -> None:
    """One that was written anew, taken as late, and undone; not for what was applied before it."""
    old, new = taken(cdc(2)), replace(taken(cdc(2)), etag="new")
    parent = replace(loaded([cdc(1), cdc(2)], at=2), change=change(1), awaited={new.key: new})
    reload = replace(batch(2, taken(load()), kind="full-load", generation=Generation(2, (taken(load()),))), parent=change(1))

    assert apply(parent, reload).awaited == {cdc(1).key: replace(taken(cdc(1)), etag=""), old.key: new}
