"""`dmslake apply`: what is shown, what is refused, what is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.applying import apply_run, reachable
from controller.plan import APPLY
from controller.runners import GlueRunner, job_arguments
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import Correction, read_correction
from glue_jobs.core.settings import Settings
from glue_jobs.core.state import read_state
from tests.controller.past_world import FIRST, LOADED, Command, PastWorld, untouched
from tests.controller.world import ScriptedGlue, item_of, table_path
from tests.lake import LakeTable


def csv(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.csv"
    path.write_text(text)
    return str(path)


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(kept_history: LakeTable, kept_command: Command, tmp_path: Path) -> None:
    """Rows before and after, keys, files, counts; for programs too."""
    path = str(kept_history.path)
    files = ["--deletes", csv(tmp_path, "d", "id\n1\n77\n"), "--updates", csv(tmp_path, "u", "name,id\ndrei,3\n")]
    before = untouched(kept_history)

    done = kept_command("apply", path, "--key", "id", *files, "--dry-run")
    data = kept_command("apply", path, "--key", "id", *files, "--dry-run", "--output", "json").json

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert (done.code, untouched(kept_history)) == (0, before)
    assert lines[0] == f"{path}: a correction by id would do this; nothing was changed"
    for line in ("rows matched 2 before, 1 after", "keys 1 deleted, 1 updated", "not found 1 key(s): 77", "rows 1 updated, 1 deleted"):
        assert line in lines
    assert (data["dry_run"], data["key"], data["rows_matched_before"], data["files_rewritten"]) == (True, ["id"], 2, 1)
    assert data["bytes_rewritten"] == kept_history.snapshot().size_bytes


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--deletes", "{unknown}"], 1, "1 of 1 key(s) stand in no row"),
        (["--deletes", "{some}", "--strict"], 1, "1 of 2 key(s) stand in no row"),
        (["--updates", "{some}"], 2, "'name' (string) is missing"),
        (["--deletes", "{none}"], 2, "can't be read"),
        ([], 2, "no rows are given"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(
    kept_history: LakeTable, kept_command: Command, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    """With the same words and exit codes."""
    files = {"unknown": csv(tmp_path, "u", "id\n77\n"), "some": csv(tmp_path, "s", "id\n1\n77\n"), "none": str(tmp_path / "none.csv")}

    done = kept_command("apply", str(kept_history.path), "--key", "id", *(word.format(**files) for word in words), "--dry-run")

    assert (done.code, said in done.err) == (code, True), done.err


def test_a_correction_is_done_and_undone(past_world: PastWorld, lake_command: Command, tmp_path: Path) -> None:
    """The same figures from the record, and the command that undoes it; a second one by keys that are gone is an error, and no change."""
    table = past_world.batched()
    path = str(table.path)
    deletes = csv(tmp_path, "d", "name\nthree\nnobody\n")

    done = lake_command("apply", path, "--key", "name", "--deletes", deletes)

    change = table.item()["Head"]
    assert (done.code, table.rows()) == (0, [row for row in FIRST if row[1] != "three"]), done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for line in (
        f"change {change}",
        "rows matched 1 before, 0 after",
        "not found 1 key(s): 'nobody'",
        f"to undo it dmslake rollback {path} --undo {change}",
    ):
        assert line in lines
    shown = [" ".join(line.split()) for line in lake_command("show", path, change).out.splitlines()]
    assert {"found by name", f"given {change}.deletes.parquet"} <= set(shown)
    again = lake_command("apply", path, "--key", "name", "--deletes", deletes)
    assert (again.code, table.item()["Head"], "no-key-found" in again.out or "stand in no row" in again.out) == (1, change, True)
    assert lake_command("rollback", path, "--undo", change).code == 0
    assert table.rows() == FIRST


def test_a_staged_correction_is_shown_with_its_commands(past_world: PastWorld, lake_command: Command, tmp_path: Path) -> None:
    """Nothing changes until it is committed."""
    table = past_world.loaded()
    updates = csv(tmp_path, "u", "id,name\n1,eins\n")

    done = lake_command("apply", str(table.path), "--key", "id", "--updates", updates, "--stage", "--output", "json")

    staged = done.json["change"]
    assert (done.code, done.json["staged"], done.json["updated"]) == (0, True, 1), done.err
    assert (table.rows(), len(table.open_uploads())) == (LOADED, 1)
    assert lake_command("commit", str(table.path), staged).code == 0
    assert table.rows() == [(1, "eins"), *LOADED[1:]]


def test_a_glue_job_reads_only_s3() -> None:
    """A file of this machine is refused before anything is started; for a local run it gets its whole path."""
    correction = Correction(("id",), "keys.csv", "s3://bucket/rows.parquet")

    with pytest.raises(UsageError) as caught:
        reachable(correction, "glue")

    assert caught.value.code == "not-on-s3"
    assert reachable(correction, "local") == Correction(("id",), str(Path.cwd() / "keys.csv"), "s3://bucket/rows.parquet")
    assert reachable(Correction(("id",), "s3://bucket/k.csv"), "glue").deletes == "s3://bucket/k.csv"


def test_an_address_that_is_none_starts_no_run() -> None:
    """The job would only find it out later."""
    with pytest.raises(UsageError) as caught:
        reachable(Correction(("id",), "s3://no bucket/k.csv"), "glue")

    assert caught.value.code == "bad-uri"


def test_the_run_is_told_the_correction() -> None:
    """As arguments of one run of the job Apply, on Glue and on this machine."""
    correction = Correction(("a,b", "c"), "s3://b/d.csv", "s3://b/u/", strict=True, stage=True)

    plan = apply_run(read_state(item_of(table_path())), correction)

    (run,) = plan.runs
    glue = Told()
    GlueRunner(glue, Settings()).start(run, "run-1")
    assert (run.job, run.paths, glue.started[0][0]) == (APPLY, (str(table_path()),), APPLY)
    assert read_correction(parse_arguments(job_arguments(Settings(), run, "run-1"))) == correction
    assert read_correction({name[2:]: value for name, value in glue.told.items()}) == correction


class Told(ScriptedGlue):
    """Remembers what the last run was told."""

    told: dict[str, str]

    def start_job_run(self, JobName: str, Arguments: dict[str, str]) -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.told = Arguments
        return super().start_job_run(JobName, Arguments)
