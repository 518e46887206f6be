"""The error text and the environment of a job run, as values."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from infra.local.job_process import (
    Runtime,
    error_message,
    merged_arguments,
    settings_of_conf_argument,
    spark_environment,
)

CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
glue_jobs.core.errors.Blocked: table shop.orders: key column id is missing
  it is named in PrimaryKey
24/11/21 10:00:00 INFO ShutdownHookManager: Shutdown hook called
"""


@pytest.mark.parametrize(
    ("log", "exit_code", "message"),
    [
        (CHAINED, 1, "glue_jobs.core.errors.Blocked: table shop.orders: key column id is missing"),
        ("usage: main.py\nmain.py: error: no --raw\n", 2, "main.py: error: no --raw"),
        ("done\n24/11/21 10:00:00 WARN Utils: bye\n", 1, "done"),
        ("", 1, "exit code 1"),
        ("rows 17\n", -9, "rows 17 (killed by signal 9)"),
        ("Traceback (most recent call last):\n  File\nKeyboardInterrupt\n", 130, "KeyboardInterrupt"),
    ],
)
def test_error_message_is_what_a_person_needs(log: str, exit_code: int, message: str) -> None:
    """The last exception, else the last line that is not of Spark's own log, else how it ended."""
    assert error_message(log.splitlines(), exit_code) == message


def test_error_message_is_cut() -> None:
    """A message of any length fits into an answer."""
    assert len(error_message(["x" * 100_000], 1)) == 1000


def test_non_overridable_arguments_win() -> None:
    """The order of Glue: default, then given, then non-overridable."""
    merged = merged_arguments({"--a": "1", "--b": "1", "--c": "1"}, {"--b": "2", "--c": "2"}, {"--c": "3"})

    assert merged == {"--a": "1", "--b": "2", "--c": "3"}


def test_conf_argument_holds_several_settings() -> None:
    """Glue's one `--conf` argument chains settings by repeating its name in the value."""
    assert settings_of_conf_argument("a=1 --conf b=x y --conf c=3") == ["a=1", "b=x y", "c=3"]
    assert settings_of_conf_argument("") == []


def test_spark_settings_survive_a_folder_with_a_space(tmp_path: Path) -> None:
    """PYSPARK_SUBMIT_ARGS is split like a shell line by pyspark: values stay one word."""
    runtime = Runtime(folder=tmp_path, cores=3, spark_conf={"spark.ui.enabled": "true"})
    environment = spark_environment(runtime, "/java", tmp_path / "with space", ["spark.x=1"])
    words = shlex.split(environment["PYSPARK_SUBMIT_ARGS"])

    assert words[:2] == ["--master", "local[3,4]"]
    assert f"spark.local.dir={tmp_path}/with space" in words
    assert "spark.ui.enabled=true" in words
    assert words[-3:] == ["--conf", "spark.x=1", "pyspark-shell"]
