"""Fetches what the comparison needs beside its Python packages: the peers' jars, by Maven coordinates, and MinIO, built from source.

    python -m benchmarks.install

Everything goes to .cache/bench, and what is there already is left alone. Spark's own client (Ivy) resolves the jars. Without Go there is
no MinIO: the comparison then runs on moto and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.contenders.contender import S3A
from benchmarks.contenders.registry import NAMES, contender
from benchmarks.contenders.spark_session import jar_folder
from benchmarks.folders import PROGRAMS, ROOT
from benchmarks.server.minio import MODULE, PROGRAM, VERSION
from glue_jobs.spark.java import find_java_home

# What Spark brings itself, in its own versions, and the bundle that S3A's modules stand in for.
NOT_WANTED = (
    "com.amazonaws:aws-java-sdk-bundle",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-databind",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "joda-time:joda-time",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
)
_RESOLVE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.jars.packages", sys.argv[1]).config("spark.jars.excludes", sys.argv[2])
builder = builder.config("spark.jars.ivy", sys.argv[3])
builder.getOrCreate().stop()
"""


def install_jars(coordinates: tuple[str, ...]) -> None:
    """The jars of these coordinates and of S3A, with all that they need."""
    folder = jar_folder(coordinates)
    if folder.exists():
        return
    print(f"fetching {', '.join(coordinates) or S3A[0]}", flush=True)
    part = folder.parent.with_name(folder.parent.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    environment = {**os.environ, "JAVA_HOME": find_java_home(), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", _RESOLVE, ",".join((*S3A, *coordinates)), ",".join(NOT_WANTED), str(part)]
    done = subprocess.run(command, env=environment, cwd=part, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not any((part / "jars").glob("*.jar")):
        sys.exit(f"could not fetch {', '.join(coordinates)}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    shutil.rmtree(part / "cache")  # Ivy's own copies
    shutil.rmtree(folder.parent, ignore_errors=True)
    part.rename(folder.parent)


def install_minio() -> None:
    """MinIO at the pinned version, by `go install`."""
    if PROGRAM.exists():
        return
    go = shutil.which("go")
    if go is None:
        print("NOT INSTALLED: MinIO, there is no Go on PATH. The comparison runs on moto, and its figures say nothing about S3.")
        return
    print(f"building {MODULE}@{VERSION}", flush=True)
    built = PROGRAMS / "go"
    environment = {**os.environ, "GOBIN": str(built), "CGO_ENABLED": "0"}
    command = [go, "install", f"{MODULE}@{VERSION}"]
    done = subprocess.run(command, env=environment, cwd=_folder(built), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"could not build MinIO; without Go on PATH the comparison would run on moto:\n{done.stderr[-4000:]}")
    (built / Path(MODULE).name).rename(PROGRAM)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def main() -> int:
    """Install what is missing; 0."""
    try:
        kinds = [contender(name) for name in NAMES]
    except ImportError as error:
        sys.exit(f"{error}; `make bench` installs the Python packages first, or: python -m pip install --editable '.[bench]'")
    install_minio()
    for coordinates in dict.fromkeys(kind.jars for kind in kinds):
        install_jars(coordinates)
    print(f"ready: {PROGRAM.parent.parent.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
