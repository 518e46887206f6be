"""A job's arguments: as Glue gives them, flags, and what is refused."""

from __future__ import annotations

import pytest

from glue_jobs.core.arguments import check_known, parse_arguments, read_flag
from glue_jobs.core.errors import UsageError


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], {}),
        (["--path", "a", "--run_id", "b"], {"path": "a", "run_id": "b"}),
        (["--path=a=b", "--x="], {"path": "a=b", "x": ""}),
        (["--margin", "-5", "--glob", "-x"], {"margin": "-5", "glob": "-x"}),
        (["--last", "--odd"], {"last": "--odd"}),
        (["--flag", "--path", "a"], {"flag": "", "path": "a"}),
        (["--enable-metrics"], {"enable-metrics": ""}),
        (["--JOB_NAME", "LoadInitial", "--enable-metrics", "true", "--job-bookmark-option", "x"], None),
        (["true", "--JOB_NAME", "LoadInitial", "--enable-metrics", "true", "", "--job-bookmark-option", "x"], None),
        (["--path", "a", "--path", "b"], {"path": "b"}),
    ],
)
def test_job_arguments_are_read_as_glue_gives_them(argv: list[str], expected: dict[str, str] | None) -> None:
    """Values may begin with a minus; Glue's own arguments are taken along."""
    glue = {"JOB_NAME": "LoadInitial", "enable-metrics": "true", "job-bookmark-option": "x"}

    assert parse_arguments(argv) == (glue if expected is None else expected)


@pytest.mark.parametrize("argv", [["a"], ["-p", "a"], ["--"], ["--path", "a", "b"], ["true"], ["--JOB_NAME", "j", "b"]])
def test_other_words_are_refused(argv: list[str]) -> None:
    """A typing error must not run the job on something else."""
    with pytest.raises(UsageError, match="unexpected argument"):
        parse_arguments(argv)


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), (" True ", True), ("1", True), ("false", False), ("0", False), ("off", False)]
)
def test_a_flag_is_true_or_false(text: str, expected: bool) -> None:
    """In several words; one that is not given is false."""
    assert read_flag({"dry_run": text}, "dry_run") is expected
    assert read_flag({}, "dry_run") is False


@pytest.mark.parametrize("text", ["", " ", "maybe", "--resume"])
def test_a_flag_that_is_neither_is_refused(text: str) -> None:
    """Also one without a value: who writes `--dry_run` alone does not mean that the job shall really do it."""
    with pytest.raises(UsageError, match="--dry_run is"):
        read_flag({"dry_run": text}, "dry_run")


@pytest.mark.parametrize(
    ("name", "todo"),
    [
        ("dry-run", "write --dry_run"),
        ("dryRun", "write --dry_run"),
        ("lease-seconds", "write --lease_seconds"),
        ("runId", "write --run_id"),
        ("dry_rnu", "write --dry_run"),
        ("dyr_run", "write --dry_run"),
        ("dryrun", "write --dry_run"),
        ("dry_runs", "write --dry_run"),
    ],
)
def test_one_of_ours_in_another_spelling_is_refused(name: str, todo: str) -> None:
    """The command line's spelling, a typing error: what was asked for would silently not be done."""
    with pytest.raises(UsageError, match=f"--{name} is not known") as caught:
        check_known({"path": "a", name: "true"}, ("to", "dry_run"))

    assert caught.value.todo == f"{todo}; or give it another name"


GLUE = """JOB_NAME JOB_ID JOB_RUN_ID SECURITY_CONFIGURATION WORKFLOW_NAME WORKFLOW_RUN_ID TempDir RedshiftTempDir scriptLocation class conf
    debug endpoint mode region continuation-option encryption-type enable-data-lineage enable-metrics enable-job-insights enable-spark-ui
    enable-auto-scaling enable-glue-datacatalog enable-continuous-cloudwatch-log enable-observability-metrics custom-logGroup-prefix
    custom-logStream-prefix datalake-formats extra-files extra-jars extra-py-files additional-python-modules python-modules-installer-option
    job-bookmark-option job-bookmark-from job-bookmark-to job-language library-set spark-event-logs-path user-jars-first user team
    use-postgres-driver write-shuffle-files-to-s3 customer-driver-env-vars customer-executor-env-vars disable-proxy-v2"""


@pytest.mark.parametrize("name", GLUE.split())
def test_what_glue_gives_is_passed_over(name: str) -> None:
    """The documentation's names of Glue's own arguments, which are in those of every job; and what is like none of ours."""
    own = (
        "from_change",
        "dry_run",
        "to",
        "undo",
        "reapply",
        "skip",
        "resume",
        "stage",
        "key",
        "rows",
        "edit",
        "erase_keys",
        "shown",
        "table",
    )
    check_known({name: "x", "path": "a", "state_table": "b", "run_id": "c", "driver_bytes": "1"}, own)
