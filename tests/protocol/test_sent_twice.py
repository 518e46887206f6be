"""A run that Glue started twice, because the answer to its start was lost: both have one id, and its work is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glue_jobs.protocol.sent_twice import said_done
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import die, run_on
from tests.protocol.test_adopt import sample
from tests.protocol.test_catalog_step import denied
from tests.protocol.test_converge import die_after
from tests.protocol.test_erase import KeysFile, holds, keys
from tests.protocol.test_rollback import FIRST, LOADED, SECOND, changes, history, rolled_back
from tests.protocol.wire import Request, Wire

__all__ = ["history", "keys", "sample"]


def test_a_rollback_is_made_once(history: LakeTable) -> None:
    """`previous` would be one change more, and a run that was told the head would find another one."""
    head = history.item()["Head"]

    for shown in ({}, {"from_change": head}):
        rolled_back(history, to="previous", run_id="back", **shown)
    undone = (history.rows(), len(changes(history)))
    for _ in range(2):
        rolled_back(history, reapply="all", run_id="forth")

    assert undone == (FIRST, 4)
    assert (history.rows(), len(changes(history))) == (SECOND, 5)
    rolled_back(history, to="previous", run_id="another")
    assert history.rows() == FIRST
    rolled_back(history, to="previous", run_id="and one more")
    assert history.rows() == LOADED


def test_a_rollback_is_known_behind_the_batches_since(history: LakeTable) -> None:
    """A start that Glue did not answer may be sent again half an hour later; the table's schedule goes on meanwhile."""
    rolled_back(history, to="previous", skip="true", resume="true", run_id="back")
    for number in range(7, 10):
        history.cdc([("I", (number, "later"))])
        assert history.run() == 0
    before = (history.rows(), changes(history))

    rolled_back(history, to="previous", skip="true", resume="true", run_id="back")

    assert (history.rows(), changes(history)) == before


def test_the_second_run_finishes_what_the_first_left(history: LakeTable, wire: Wire) -> None:
    """It died after its commit, before its files were visible."""
    die(wire, history, "Rollback", die_after(wire, Request.is_commit, 1), to="previous", run_id="back")

    rolled_back(history, to="previous", run_id="back")

    assert (history.rows(), len(changes(history))) == (FIRST, 4)
    assert history.item()["LastRun"]["note"] == said_done(history.head().id)


def test_an_erase_is_made_once(history: LakeTable, keys: KeysFile) -> None:
    """To say that nothing was erased, because the head has moved on, would be wrong."""
    wish: dict[str, Any] = {"erase_keys": keys(1), "from_change": history.item()["Head"], "run_id": "erase"}

    codes = [history.run("Erase", **wish) for _ in range(2)]

    assert (codes, holds(history, 1), len(changes(history))) == ([0, 0], [], 4)
    assert "removed for good" in history.item()["LastRun"]["note"]


def test_the_second_run_removes_what_the_first_left(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """An erase that died before it removed anything."""
    wish: dict[str, Any] = {"erase_keys": keys(1), "from_change": history.item()["Head"], "run_id": "erase"}
    die(wire, history, "Erase", die_after(wire, Request.is_commit, 1), **wish)
    held = holds(history, 1)

    assert history.run("Erase", **wish) == 0

    assert (bool(held), holds(history, 1), "Erasing" in history.item(), len(changes(history))) == (True, [], False, 4)
    assert history.verify() == []


def test_an_adoption_is_made_once(sample: LakeTable) -> None:
    """A table that has a change can't be adopted, and yet it was."""
    codes = [sample.run("Adopt", run_id="adopt") for _ in range(2)]

    assert (codes, sample.item()["LastRun"]["outcome"], sample.head().kind) == ([0, 0], "committed", "adopt")


def test_a_load_says_what_it_did(loaded: LakeTable) -> None:
    """The second run has nothing to do, and must not hide what the first one told: the controller asks by the run's id."""
    loaded.run(run_id="batch")
    told = loaded.item()["LastRun"]

    assert loaded.run(run_id="batch") == 0

    assert (loaded.item()["LastRun"], told["outcome"], loaded.rows()) == (told, "committed", AFTER)
    assert loaded.run(run_id="next") == 0
    assert loaded.item()["LastRun"]["outcome"] == "nothing"


def test_a_catalog_step_that_the_second_run_finished_is_not_told_as_undone(make_table: TableMaker, wire: Wire) -> None:
    """The controller would raise an alarm."""
    table = make_table(partition_key="name")
    table.load(BEFORE)
    assert run_on(wire, table, "LoadInitial", denied, run_id="load") == 0
    before = table.item()["LastRun"]

    assert table.run("LoadInitial", run_id="load") == 0

    assert ("catalog_pending" in before, "catalog_pending" in table.item()["LastRun"]) == (True, False)


def test_a_staged_batch_stays_told(loaded: LakeTable) -> None:
    """The first run has paused the table."""
    codes = [loaded.run(stage="true", run_id="stage") for _ in range(2)]

    assert (codes, loaded.item()["LastRun"]["outcome"], loaded.rows(), len(loaded.open_uploads())) == ([0, 0], "staged", BEFORE, 1)


def test_a_staged_correction_is_staged_once(loaded: LakeTable, tmp_path: Path) -> None:
    """Or there would be two to commit."""
    deletes = tmp_path / "deletes.csv"
    deletes.write_text("id\n2\n")

    codes = [loaded.run("Apply", key="id", deletes=str(deletes), stage="true", run_id="stage") for _ in range(2)]

    assert (codes, len(loaded.open_uploads()), loaded.item()["LastRun"]["outcome"]) == ([0, 0], 1, "staged")


@pytest.mark.parametrize("last", ["broken", {"run_id": "batch"}])
def test_a_result_that_says_nothing_is_written_anew(loaded: LakeTable, last: Any) -> None:
    """Whatever somebody has written there."""
    loaded.edit(LastRun=last)

    assert loaded.run(run_id="batch") == 0

    assert (loaded.item()["LastRun"]["outcome"], loaded.rows()) == ("committed", AFTER)
