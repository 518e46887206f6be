"""Entry scripts: a process that is a job's own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import gc, sys
from glue_jobs.entry import run_as_script

def main(argv):
    print(gc.get_freeze_count() > 1000, gc.get_threshold(), argv)
    return 4

run_as_script(main, sys.argv[1:])
"""


@pytest.mark.parametrize(("word", "code"), [("--path=p", 4), ("--JOB_NAME=j", 0)])
def test_a_script_leaves_what_is_imported_alone_and_ends_as_glue_wants(word: str, code: int) -> None:
    """A held lease is no failure under Glue."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT, word], capture_output=True, text=True)

    assert ended.stdout == f"True (50000, 20, 100) ['{word}']\n"
    assert ended.returncode == code, ended.stderr


def test_who_only_imports_a_job_keeps_the_collector_as_it_is() -> None:
    """A program that calls `main` is not ours."""
    lines = (
        "import gc",
        "before = gc.get_threshold()",
        "import glue_jobs.load_incremental",
        "print(gc.get_freeze_count(), gc.get_threshold() == before)",
    )

    ended = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)

    assert ended.stdout == "0 True\n"
