"""A job that is killed (`kill -9`, a real process) leaves, after the next runs, the same as one that isn't."""

from __future__ import annotations

import subprocess

import pytest

from tests.lake import DRIVER, LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.killed_job import MOMENTS
from tests.protocol.runs import everything, forget_lease, start_program, wait_for_death

# what is done: (the job, the rows after it)
DONE = {
    "load": ("LoadInitial", BEFORE),
    "batch": ("LoadIncremental", AFTER),
    "rollback": ("Rollback", BEFORE),
    "re-apply": ("Rollback", AFTER),
}


def prepared(make_served_table: TableMaker, done: str) -> LakeTable:
    """A table before that is done."""
    table = make_served_table()
    table.load(BEFORE)
    if done == "load":
        return table
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    if done == "batch":
        return table
    assert table.run("LoadIncremental") == 0
    if done == "re-apply":
        assert table.run("Rollback", to="previous") == 0
    return table


def wish(table: LakeTable, done: str) -> dict[str, str]:
    """The job's arguments that say what is done; to be taken before it, so that the same can be asked for again."""
    if done == "rollback":
        return {"to": list(table.lineage().back())[-1].id}
    return {"reapply": "all"} if done == "re-apply" else {}


def start(table: LakeTable, done: str, moment: str) -> subprocess.Popen[str]:
    """The job in a process of its own, which kills itself at that moment."""
    return start_program(table, "tests.protocol.killed_job", DONE[done][0], moment, driver_bytes=DRIVER, **wish(table, done))


def recover(table: LakeTable, done: str, asked: dict[str, str]) -> None:
    """What happens next: a run of the job, or, of a rollback, of the controller's job; a person asks for the rollback again."""
    forget_lease(table)
    job = DONE[done][0]
    assert table.run("LoadIncremental" if job == "Rollback" else job) == 0, table.item()["LastRun"]
    if job == "Rollback":
        code, error = table.run(job, **asked), table.item()["LastRun"].get("error", {}).get("code")
        assert (code, error) in ((0, None), (2, "nothing-to-reapply")), table.item()["LastRun"]
    assert table.run("LoadIncremental") == 0


@pytest.mark.parametrize("done", list(DONE))
def test_after_a_kill_the_next_runs_leave_the_same(make_served_table: TableMaker, done: str) -> None:
    """At each of the moments: rows, cursor, changes and catalog, compared with a table whose job was left alone."""
    undisturbed = prepared(make_served_table, done)
    assert undisturbed.run(DONE[done][0], **wish(undisturbed, done)) == 0
    assert undisturbed.run("LoadIncremental") == 0
    killed = {moment: prepared(make_served_table, done) for moment in MOMENTS}
    asked = {moment: wish(table, done) for moment, table in killed.items()}

    processes = [start(table, done, moment) for moment, table in killed.items()]
    for process in processes:
        wait_for_death(process)
    leases = {moment: "LeaseOwner" in table.item() for moment, table in killed.items()}
    for moment, table in killed.items():
        recover(table, done, asked[moment])

    expected = everything(undisturbed)
    assert expected["rows"] == DONE[done][1]
    assert leases == dict.fromkeys(MOMENTS, True)
    assert {moment: everything(table) for moment, table in killed.items()} == dict.fromkeys(MOMENTS, expected)
