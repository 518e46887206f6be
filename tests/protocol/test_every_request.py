"""A run may die at any of its requests: the next run ends where an undisturbed one would have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, TableMaker
from tests.protocol.runs import LONG_LEASE, die, facts, run_on
from tests.protocol.wire import Request, Wire, die_at


def prepared(make_table: TableMaker, job: str) -> LakeTable:
    """A table for which `job` has something to do."""
    table = make_table(partition_key="null")
    table.load([(1, "one"), (2, "two"), (3, "three")])
    if job == "LoadIncremental":
        assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    return table


def points(requests: list[Request]) -> Iterator[tuple[int, bool]]:
    """Before every request, and after every one that may have changed something."""
    for number, request in enumerate(requests):
        yield number, False
        if request.is_write:
            yield number, True


def finished(table: LakeTable, job: str) -> dict[str, Any]:
    """The facts after a plain run of the job, and of those that come after it."""
    if job == "LoadInitial":
        assert table.run("LoadInitial") == 0, table.item()
    assert table.run("LoadIncremental") == 0, table.item()
    return facts(table)


def check_every_point(make_table: TableMaker, job: str, expected: dict[str, Any]) -> int:
    wire = Wire()
    assert run_on(wire, prepared(make_table, job), job, lease_seconds=LONG_LEASE) == 0
    wrong, count = [], 0
    for number, after in points(wire.requests):
        table, dying = prepared(make_table, job), Wire()
        die(dying, table, job, die_at(dying, number, after=after))
        found = finished(table, job)
        count += 1
        if found != expected:
            wrong.append((number, "after" if after else "before", dying.requests[-1], found))
    assert not wrong, f"{len(wrong)} of {count} points: {wrong[:3]}"
    return count


def test_load_and_batch_survive_a_death_at_every_request(make_table: TableMaker) -> None:
    """Before each of both jobs' requests, and after each one that took effect: rows, cursor, folder and catalog are the same."""
    expected = finished(prepared(make_table, "LoadInitial"), "LoadInitial")

    counts = {job: check_every_point(make_table, job, expected) for job in ("LoadInitial", "LoadIncremental")}

    print(f"died at {sum(counts.values())} points: {counts}")
    assert (expected["rows"], expected["unfinished"], expected["folder"]) == (AFTER, [], True)
    assert all(count > 30 for count in counts.values())
