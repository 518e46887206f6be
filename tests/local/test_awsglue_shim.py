"""The contract of `getResolvedOptions`: the shim answers as the official package does, case by case.

Each package is loaded in a process of its own: both are named `awsglue`. The messages of the errors are compared too,
because they are what a person sees in GetJobRun; the order of the names in the result is not.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.local.job_process import SHIM_FOLDER

OFFICIAL = "AWSGlueDataplanePython"

# (the words after the script, the names that are asked for)
CASES: list[tuple[list[str], list[str]]] = [
    # every name is required, has one value, and unknown words are passed over
    (["--a", "1"], ["a"]),
    (["--a", "1", "--zz", "2", "stray", "-q", "@file"], ["a"]),
    ([], ["a"]),
    ([], ["a", "b"]),
    (["--a"], ["a"]),
    (["--a", "--b", "1"], ["a", "b"]),
    (["--a", "1", "--a", "2"], ["a"]),
    (["--A", "1"], ["a"]),
    (["--a", "é✓ x"], ["a"]),
    (["--", "--a", "1"], ["a"]),
    ([], []),
    (["--a", "1"], ["a", "a"]),
    # values that look like options, and how to give them
    (["--a", "-5"], ["a"]),
    (["--a", "-x"], ["a"]),
    (["--a", "-x y"], ["a"]),
    (["--a", "-"], ["a"]),
    (["--a", "--"], ["a"]),
    (["--a=-x"], ["a"]),
    (["--a=b=c"], ["a"]),
    (["--a="], ["a"]),
    (["--a", ""], ["a"]),
    # beginnings of names bind
    (["--stat", "x"], ["state_table"]),
    (["--sta", "x"], ["state_table", "start"]),
    (["--path", "x", "--path_style", "y"], ["path", "path_style"]),
    (["--pat", "y"], ["path", "path_style"]),
    (["--path_style", "y"], ["path"]),
    (["--JOB", "j", "--a", "1"], ["a"]),
    (["--job", "j", "--a", "1"], ["a"]),
    (["--job", "j", "--a", "1"], ["job", "a"]),
    (["--Temp", "t", "--a", "1"], ["a"]),
    (["--SEC", "s", "--a", "1"], ["a"]),
    (["--e", "x", "--a", "1"], ["a"]),
    (["--enable", "x", "--a", "1"], ["a"]),
    (["--c", "--a", "1"], ["a"]),
    # hyphens
    (["--state-table", "x"], ["state-table"]),
    (["--state-table", "x"], ["state_table"]),
    (["--state_table", "x"], ["state-table"]),
    (["--a b", "1"], ["a b"]),
    # help
    (["--help"], ["a"]),
    (["-h"], ["a"]),
    (["--hel"], ["a"]),
    (["--help", "x"], ["help"]),
    # names of Glue's own
    (["--JOB_NAME", "j", "--a", "1"], ["a"]),
    (["--JOB_NAME", "j", "--a", "1"], ["JOB_NAME", "a"]),
    (["--a", "1"], ["JOB_NAME", "a"]),
    (["--JOB_ID", "i", "--JOB_RUN_ID", "r", "--TempDir", "t", "--SECURITY_CONFIGURATION", "c"], []),
    (["--JOB_ID", "i"], ["JOB_ID"]),
    (["--JOB_RUN_ID", "r"], ["JOB_RUN_ID"]),
    ([], ["SECURITY_CONFIGURATION"]),
    (["--job-language", "python"], ["job-language"]),
    (["--enable-metrics", "--a", "1"], ["a"]),
    (["--enable-glue-datacatalog", "true", "--a", "1"], ["a"]),
    (["--enable-data-lineage"], []),
    (["--enable-data-lineage", "true"], []),
    ([], ["enable-data-lineage"]),
    (["--encryption-type", "sse-s3"], []),
    (["--encryption-type", "none"], []),
    ([], ["encryption-type"]),
    # the folder with two names
    ([], ["TempDir"]),
    (["--TempDir", "t"], ["TempDir", "RedshiftTempDir"]),
    (["--RedshiftTempDir", "r"], []),
    (["--TempDir", "t", "--RedshiftTempDir", "r"], []),
    (["--TempDir", "", "--RedshiftTempDir", "r"], []),
    # bookmarks
    (["--job-bookmark-option", "job-bookmark-enable"], []),
    (["--job-bookmark-option", "nonsense"], []),
    (["--continuation-option", "continuation-enabled"], []),
    (["--continuation-option", "continuation-readonly"], []),
    (["--continuation-option", "continuation-ignore"], []),
    (["--continuation-option", "nonsense"], []),
    (["--continuation-option", "continuation-enabled", "--job-bookmark-option", "job-bookmark-disable"], []),
    (["--continuation-option", "continuation-ignore", "--job-bookmark-option", "job-bookmark-enable"], []),
    (["--job-bookmark-option", "job-bookmark-pause", "--job-bookmark-from", "f", "--job-bookmark-to", "t"], []),
    (["--job-bookmark-option", "job-bookmark-pause", "--job-bookmark-from", "f"], []),
    (["--job-bookmark-option", "job-bookmark-pause", "--job-bookmark-to", "t"], []),
    (["--job-bookmark-option", "job-bookmark-pause", "--job-bookmark-from", "", "--job-bookmark-to", ""], []),
    (["--job-bookmark-option", "job-bookmark-enable", "--job-bookmark-from", "f", "--job-bookmark-to", "t"], []),
    (["--job-bookmark-from", "f", "--job-bookmark-to", "t"], []),
    (["--job-bookmark-from", "f"], []),
    (["--job-bookmark-to", "t"], []),
    ([], ["job-bookmark-option"]),
    ([], ["job_bookmark_option"]),
    (["--job_bookmark_option", "x"], ["job_bookmark_option"]),
    ([], ["job-bookmark-from"]),
    ([], ["job-bookmark-to"]),
    ([], ["continuation-option"]),
]

PROBE = """
import json, sys
from awsglue import utils

def answer(words, options):
    try:
        return ["result", sorted(utils.getResolvedOptions(["script.py", *words], options).items())]
    except SystemExit as ended:
        return ["exit", ended.code]
    except Exception as error:
        return [type(error).__name__, str(error)]

answers = [answer(*case) for case in json.load(sys.stdin)]
print("ANSWERS", json.dumps({"from": utils.__file__, "answers": answers}))
"""


def answers_of(python_path: list[Path]) -> dict[str, Any]:
    """What the `awsglue` that comes first on the path says to all cases, and where it was found."""
    said = subprocess.run(
        [sys.executable, "-c", PROBE],
        input=json.dumps(CASES),
        env={"PYTHONPATH": os.pathsep.join(map(str, python_path)), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(said.stdout.rpartition("ANSWERS")[2]))


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers of the official package and of the shim."""
    return answers_of([]), answers_of([SHIM_FOLDER])


def test_the_two_packages_are_two(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The comparison compares the official package, in the version that Glue 5.1 has, with the shim."""
    official, shim = both
    files = {Path(str(file.locate())).resolve() for file in importlib.metadata.files(OFFICIAL) or []}

    assert importlib.metadata.version(OFFICIAL) == "5.1.0"
    assert Path(official["from"]).resolve() in files
    assert Path(shim["from"]).resolve().is_relative_to(SHIM_FOLDER.resolve())


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{CASES[number][0]}-{CASES[number][1]}")
def test_shim_answers_as_the_official_package(both: tuple[dict[str, Any], dict[str, Any]], number: int) -> None:
    """Same result, or same error with the same words."""
    official, shim = both

    assert shim["answers"][number] == official["answers"][number]


def test_cases_cover_results_and_all_kinds_of_errors(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The table of cases is not all of one kind."""
    kinds = {kind for kind, _ in both[0]["answers"]}

    assert kinds == {"result", "exit", "GlueArgumentError", "ArgumentError", "RuntimeError"}
