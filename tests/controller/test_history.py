"""What became of each change, and until when one can go back to it: from records alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controller.history import Restorable, epoch_text, find_needs, read_restorable, shown_time, standings, time_text
from glue_jobs.core.record import ChangeRecord, DataFile
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot, apply
from glue_jobs.core.undo import record_time, root

START = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
SCHEMA = (Column("id", "bigint"),)


def change(number: int) -> str:
    return f"{number:010d}-000001-0123abcd"


def record(
    number: int, kind: str = "incremental", added: tuple[DataFile, ...] = (), superseded: tuple[str, ...] = (), **more: Any
) -> ChangeRecord:
    """Change `number`, a day after the one before."""
    time = (START + timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    parent = change(number - 1) if number > 1 else ""
    return ChangeRecord(change(number), parent, kind, "t", "l", time, added=added, superseded=superseded, schema=SCHEMA, **more)


def file(name: str, origin: str = "") -> DataFile:
    return DataFile(name, 10, 1, origin=origin)


def snapshots(oldest_first: list[ChangeRecord]) -> list[Snapshot]:
    out, snapshot = [], Snapshot()
    for one in oldest_first:
        snapshot = apply(snapshot, one)
        out.append(snapshot)
    return out


def answers(oldest_first: list[ChangeRecord], days: int | None, now: datetime, missing: set[str] | None = None) -> list[Restorable]:
    """For each change, the oldest first."""
    states = snapshots(oldest_first)
    newest_first = list(reversed(oldest_first))
    needs = find_needs(newest_first, states[-1], states[0])
    return list(reversed(read_restorable(len(newest_first), needs, days, now, missing)))


ROLLED_BACK = [
    record(1, "full-load", (file("a"), file("b"))),
    record(2, added=(file("a2"),), superseded=("a",)),
    record(3, added=(file("b2"),), superseded=("b",)),
    record(4, "rollback", added=(file("b3", "b"),), superseded=("b2",), target=change(2)),
]


def test_a_change_is_kept_for_as_long_as_the_first_hidden_of_its_files() -> None:
    """Change 1 needs `a`, hidden by change 2; change 2 needs nothing, because the head has a copy of `b`; change 3 needs `b2`."""
    found = answers(ROLLED_BACK, 30, START)

    until = [START + timedelta(days=30 + day) for day in (2, 4)]
    assert found == [Restorable("until", until[0]), Restorable("yes"), Restorable("until", until[1]), Restorable("yes")]


def test_without_a_lifecycle_rule_every_change_is_kept_for_good() -> None:
    """A bucket that never expires hidden data has no until."""
    assert {found.answer for found in answers(ROLLED_BACK, None, START)} == {"yes"}


def test_a_change_with_a_file_whose_data_is_gone_is_not_restorable() -> None:
    """What S3 says goes before what the rule says."""
    assert [found.answer for found in answers(ROLLED_BACK, None, START, {"a"})] == ["no", "yes", "yes", "yes"]


def test_where_nobody_looked_the_rule_decides() -> None:
    """Data beyond its days is taken for gone if it was not looked up, and shown with its past end if it was seen to be there."""
    later = START + timedelta(days=33)

    assert [found.answer for found in answers(ROLLED_BACK, 30, later)] == ["no", "yes", "until", "yes"]
    assert [found.answer for found in answers(ROLLED_BACK, 30, later, set())] == ["until", "yes", "until", "yes"]


def test_a_lost_change_hid_no_file() -> None:
    """A change whose uploads were gone and the one that took it back leave the files of the change before as they are."""
    history = [
        record(1, "full-load", (file("a"),)),
        record(2, added=(file("a2"),), superseded=("a",)),
        record(3, "lost", added=(file("a"),), superseded=("a2",), target=change(1), lost=change(2)),
    ]

    assert answers(history, 30, START)[0] == Restorable("yes")


def test_standings() -> None:
    """Head, live, undone, a step between, lost."""
    lost = record(5, added=(file("x"),))
    took_back = record(6, "lost", target=change(2), lost=change(5))
    records = [*reversed([*ROLLED_BACK, lost, took_back, record(7)])]

    words = standings(records, change(7), {change(7), change(2), change(1)})

    assert words == ["head", "step", "lost", "step", "undone", "live", "live"]


@st.composite
def histories(draw: st.DrawFn) -> list[ChangeRecord]:
    """A load, then changes that each replace some files of the table by new ones or by copies of files that are hidden."""
    live: dict[str, DataFile] = {name: file(name) for name in ("p", "q", "r")}
    made, hidden = [record(1, "full-load", tuple(live.values()))], dict[str, DataFile]()
    for number in range(2, draw(st.integers(2, 8)) + 1):
        gone = draw(st.lists(st.sampled_from(sorted(live)), unique=True)) if live else []
        added = [file(f"n{number}")] if draw(st.booleans()) else []
        roots = {root(one) for one in live.values()}
        free = sorted(name for name, one in hidden.items() if root(one) not in roots)
        if free and draw(st.booleans()):
            added.append(file(f"c{number}", root(hidden[draw(st.sampled_from(free))])))
        hidden.update({name: live.pop(name) for name in gone})
        live.update({one.path: one for one in added})
        made.append(record(number, added=tuple(added), superseded=tuple(sorted(gone))))
    return made


@given(histories(), st.sets(st.sampled_from(["p", "q", "r", "n2", "n3", "c3"])))
def test_the_walk_says_what_the_definition_says(history: list[ChangeRecord], missing: set[str]) -> None:
    """A change's end is that of its first hidden file that the head has no copy of, whatever happened in between."""
    states = snapshots(history)
    kept = {root(one) for one in states[-1].files.values()}
    hidden_at = {path: record_time(one) for one in history for path in one.superseded}
    found = answers(history, 7, START, missing)

    for state, answer in zip(states, found, strict=True):
        needed = [path for path, one in state.files.items() if root(one) not in kept]
        ends = [hidden_at[path] + timedelta(days=7) for path in needed]
        if set(needed) & missing:
            assert answer.answer == "no"
        else:
            assert answer.until == min(ends, default=None)


def test_a_shown_time_means_the_change_itself() -> None:
    """Times are shown in milliseconds, rounded up, so that going back to what is shown does not miss the change."""
    one = replace(record(1), time="2024-05-01T12:00:00.123456Z")

    assert time_text(shown_time(one), "milliseconds") == "2024-05-01 12:00:00.124"
    assert (epoch_text(one), shown_time(one) >= record_time(one)) == ("1714564800.124", True)
