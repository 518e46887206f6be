"""A bare Spark with another Python or other packages, without dmslake: what a Glue version has, as far as PyPI has it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from glue_jobs.spark.java import find_java_home
from tests.machine import find_python
from tests.runtimes.environments import INSTALL_SECONDS, environment_of

if TYPE_CHECKING:
    from infra.local.embedded import EmbeddedAws

__all__ = ["GLUE_50", "GLUE_51", "GLUE_60", "INSTALL_SECONDS", "QUICK_JVM", "SparkRuntime"]

# For JVMs that live for seconds: without the second compiler a run costs half (72 s of CPU → 42 s).
QUICK_JVM = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
NOT_INHERITED = ("PYTHON", "PYSPARK", "SPARK", "AWS_", "DMSLAKE_", "VIRTUAL_ENV")


@dataclass(frozen=True)
class SparkRuntime:
    """A Python's version and its packages; exact where Glue's version is known."""

    name: str
    python: str
    packages: tuple[str, ...]

    def folder(self) -> Path:
        """The `bin` folder with its spark-submit."""
        found = find_python(self.python)
        assert found is not None, "tests/conftest.py leaves the file out where there is no such Python"
        return environment_of(found, self.name, self.packages)

    def environment(self, aws: EmbeddedAws) -> dict[str, str]:
        """Of a shell in which this Spark comes first and nothing of ours is found."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
        path = os.pathsep.join([str(self.folder()), kept.get("PATH", "")])
        return {**kept, **aws.environment(), "PATH": path, "JAVA_HOME": find_java_home(), **QUICK_JVM}


GLUE_51 = SparkRuntime("glue-5.1", "3.11", ("pyspark==3.5.6", "pyarrow==22.0.0", "pandas>=2,<3", "numpy>=1.26,<3", "boto3==1.40.61"))
GLUE_50 = SparkRuntime("glue-5.0", "3.11", ("pyspark==3.5.4", "pyarrow==17.0.0", "pandas>=2,<3", "numpy>=1.26,<2", "boto3==1.34.131"))
# Its boto3 is not known, so it is the newest.
GLUE_60 = SparkRuntime("glue-6.0", "3.13", ("pyspark==4.1.1", "pyarrow>=22", "pandas>=2,<3", "numpy>=2,<3", "boto3>=1.42"))
