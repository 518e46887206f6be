"""How the tests find what this machine has, and what happens where it has not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import LONGEST, place_of
from tests.machine import find_chromium, find_mariadbd, find_python39

ROOT = Path(__file__).parent.parent


def program(path: Path, text: str) -> Path:
    """An executable shell script at this path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_shim_that_refuses_is_passed_over(tmp_path: Path) -> None:
    """A python3.9 on PATH that does not start leads to the one among pyenv's versions."""
    program(tmp_path / "shims/python3.9", "exit 127")
    real = program(tmp_path / "pyenv/versions/3.9.18/bin/python3.9", "exit 0")

    found = find_python39({"PATH": str(tmp_path / "shims"), "PYENV_ROOT": str(tmp_path / "pyenv"), "HOME": "/none"})

    assert found == real


def test_pyenv_in_the_home_folder_is_found(tmp_path: Path) -> None:
    """Without PYENV_ROOT the versions below ~/.pyenv are looked at."""
    real = program(tmp_path / ".pyenv/versions/3.9.1/bin/python3.9", "exit 0")

    assert find_python39({"PATH": "/none", "HOME": str(tmp_path)}) == real


def test_another_python_of_that_name_is_passed_over(tmp_path: Path) -> None:
    """What calls itself python3.9 and is a Python 3.11 is none."""
    program(tmp_path / "python3.9", f'exec {sys.executable} "$@"')

    assert find_python39({"PATH": str(tmp_path), "HOME": "/none"}) is None


def test_mariadbd_on_path_comes_first(tmp_path: Path) -> None:
    """A server that a person put on PATH is taken before Debian's."""
    own = program(tmp_path / "mariadbd", "exit 0")

    assert find_mariadbd({"PATH": str(tmp_path)}) == own


def test_a_browser_without_its_driver_is_none(tmp_path: Path) -> None:
    """Chromium and its driver are two packages of Debian."""
    browser = program(tmp_path / "chromium", "exit 0")
    driver = program(tmp_path / "chromedriver", "exit 0")

    assert find_chromium({"PATH": str(tmp_path)}) == (browser, driver)
    driver.unlink()
    found = find_chromium({"PATH": str(tmp_path)})
    assert found is None or found[1] != driver


def test_what_the_machine_lacks_is_left_out_aloud(tmp_path: Path) -> None:
    """Without a Python 3.9 or 3.13 its tests are not collected, so not skipped either, and first and last lines say so."""
    kept = {name: value for name, value in os.environ.items() if name != "PYENV_ROOT"}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/runtimes"],
        cwd=ROOT,
        env={**kept, "PATH": str(tmp_path), "HOME": str(tmp_path), "CI": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "test_python39.py" not in done.stdout
    assert "test_packaged_glue60.py" not in done.stdout
    assert "test_packaged_glue51.py" in done.stdout
    assert "NOT RUN: tests/runtimes/test_*39.py: no Python 3.9" in done.stdout, done.stdout + done.stderr
    assert "NOT RUN: tests/runtimes/test_*_glue60.py: no Python 3.13" in done.stdout


def test_in_a_parallel_run_the_longest_groups_begin_first() -> None:
    """Whatever is named there is there; alone, one run begins with what is cheap."""
    tests = ROOT / "tests"
    cheap, costly = tests / "core" / "test_keys.py", tests / "test_readme.py"

    assert all((tests / group).exists() for group in LONGEST)
    assert place_of(costly, "test_readme.py", True) < place_of(cheap, "core/test_keys.py", True)
    assert place_of(cheap, "core/test_keys.py", False) < place_of(costly, "test_readme.py", False)
    assert place_of(cheap, "core/test_keys.py", True) < place_of(tests / "local" / "test_up.py", "local/test_up.py", True)
