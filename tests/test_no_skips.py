"""The rule that CI allows no skipped test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PASSES = "def test_a():\n    pass\n"
SKIPS = "import pytest\ndef test_a():\n    pytest.skip('no database')\n"
SKIPS_FILE = "import pytest\npytest.skip('no database', allow_module_level=True)\n"
XFAILS = "import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert False\n"


def run_pytest(folder: Path, source: str, ci: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a process of its own, with nothing but the plugin, on this file beside one that passes."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_sample.py").write_text(source)
    (folder / "test_other.py").write_text(PASSES)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.no_skips"],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("source", [SKIPS, SKIPS_FILE], ids=["test", "file"])
def test_a_skip_fails_the_run_in_ci(tmp_path: Path, source: str) -> None:
    """Under CI a skipped test or file makes the exit status 1 and is named with its reason."""
    done = run_pytest(tmp_path, source, ci="true")

    assert done.returncode == 1, done.stdout
    assert "test_sample.py" in done.stdout.split("CI does not allow")[1]
    assert "no database" in done.stdout.split("CI does not allow")[1]


@pytest.mark.parametrize(
    ("source", "ci"),
    [(PASSES, "true"), (XFAILS, "true"), (SKIPS, ""), (SKIPS, "false")],
    ids=["pass", "xfail", "no CI", "CI=false"],
)
def test_everything_else_stays_as_pytest_says(tmp_path: Path, source: str, ci: str) -> None:
    """Passed and expectedly failed tests are fine in CI, and skips are fine outside."""
    done = run_pytest(tmp_path, source, ci)

    assert done.returncode == 0, done.stdout
    assert "CI does not allow" not in done.stdout
