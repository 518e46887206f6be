"""What a job is asked for in words that it does not know is refused before any table is looked at."""

from __future__ import annotations

import pytest

from tests.lake import JOBS, LakeTable

MEANT = {
    "Rollback": ["--to", "previous"],
    "Erase": ["--erase_keys", "s3://lake/keys.csv"],
    "Apply": ["--key", "id", "--deletes", "s3://lake/keys.csv"],
    "Adopt": [],
    "BackfillHistory": [],
}
DRY_RUNS = [["--dry_run"], ["--dry-run", "true"], ["--dry_run", ""], ["--dryrun", "true"], ["--dry_rnu", "true"]]


@pytest.mark.parametrize("words", DRY_RUNS, ids=" ".join)
@pytest.mark.parametrize("job", MEANT)
def test_a_dry_run_in_other_words_is_not_the_real_thing(loaded: LakeTable, job: str, words: list[str]) -> None:
    """An erase is for good."""
    check_refused(loaded, job, [*MEANT[job], *words])


@pytest.mark.parametrize("words", [["--stage"], ["--stage", ""], ["--Stage", "true"]], ids=" ".join)
@pytest.mark.parametrize("job", ["LoadInitial", "LoadIncremental"])
def test_a_stage_in_other_words_commits_nothing(loaded: LakeTable, job: str, words: list[str]) -> None:
    """Somebody wants to look at the change before it counts."""
    check_refused(loaded, job, words)


def check_refused(table: LakeTable, job: str, words: list[str]) -> None:
    before = (table.item(), table.visible())

    code = JOBS[job](["--path", str(table.path), "--state_table", table.state_table.name, *words], table.environment)

    assert (code, (table.item(), table.visible())) == (2, before)
