"""For all tests: cheap folders first (in a parallel run the groups that take longest), what this machine can't run is left out and said so,
no skips in CI."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from glue_jobs.aws.garbage import collect_less
from infra.local.embedded import EmbeddedAws
from infra.local.session import aws_environment
from tests.machine import find_chromium, find_mariadbd, find_python, find_python39
from tests.quick_clients import remember_models
from tests.runtimes.spark_runtime import QUICK_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ("tests.no_skips", "tests.work_tables")

remember_models()

# How long an example takes says something about what else the machine does.
hypothesis.settings.register_profile("dmslake", deadline=None)
hypothesis.settings.load_profile("dmslake")

ROOT = Path(__file__).parent.parent

# Cheapest first; a folder that is not named comes last.
ORDER = ("core", "infra", "model", "aws", "protocol", "controller", ".", "requests", "runtimes", "browser", "local", "spark", "database")


# What takes minutes on one worker of a parallel run, longest first: begun last, it would run while the other worker has nothing left.
LONGEST = (
    "spark",
    "test_readme.py",
    "runtimes",
    "database",
    "protocol/test_every_request.py",
    "model/test_model.py",
    "stateful/test_table_machine.py",
    "browser",
    "local/test_demo.py",
)  # fmt: skip


def left_out() -> dict[str, str]:
    """The files whose tests this machine can't run, as patterns below tests/, each with the reason and the way out.

    In CI only a Python 3.9 and a 3.13 may be missing (no Debian has all of them). MariaDB and Chromium are packages
    there: their tests run and fail.
    """
    missing = {}
    if find_python39() is None:
        missing["runtimes/test_*39.py"] = "no Python 3.9 on PATH or among pyenv's versions (pyenv install 3.9)"
    if find_python("3.13") is None:
        missing["runtimes/test_*_glue60.py"] = "no Python 3.13 on PATH or among pyenv's versions (pyenv install 3.13)"
    if find_mariadbd() is None and not os.environ.get("CI"):
        missing["database/*"] = "no mariadbd (Debian: apt-get install mariadb-server)"
    if find_chromium() is None and not os.environ.get("CI"):
        missing["browser/*"] = "no chromium with its driver (Debian: apt-get install chromium chromium-driver)"
    return missing


LEFT_OUT = left_out()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves those files out, however pytest was called (a single file that is named still runs)."""
    return True if any(collection_path.match(f"tests/{pattern}") for pattern in LEFT_OUT) else None


def pytest_configure(config: pytest.Config) -> None:
    """Puts the embedded AWS's credentials, and nothing of the person's own AWS, into the environment.

    Clients in Spark's workers look there. Before any mock_aws: at its end that puts back the environment of its begin, so that
    what a fixture has set within is lost. No endpoint is set, so that a test with another AWS is not led astray.
    """
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        os.environ.pop(name, None)
    os.environ.update(aws_environment())
    os.environ.update(QUICK_JVM)  # JVMs of job runs live for seconds, and the one session runs a thousand different small plans
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of programs that tests start would compile all of ours each time
    sys.dont_write_bytecode = False
    config.option.loadscopereorder = False  # by xdist itself the groups with most tests come first, however short they are
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background; programs that tests start would ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    """Says first what is left out, because nothing else would."""
    return [f"NOT RUN: tests/{pattern}: {reason}" for pattern, reason in LEFT_OUT.items()]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says it again at the end, where it is read, and what tests want to have said there."""
    for line in terminalreporter.config.stash.get(SAID, []):
        terminalreporter.line(line)
    for line in pytest_report_header():
        terminalreporter.line(line, yellow=True)


SAID = pytest.StashKey[list[str]]()


def pytest_collection_finish() -> None:
    """Leaves what was imported and collected to the end alone: it is most of what the collector would look at again and again."""
    gc.collect()
    collect_less()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of a parallel run: hands what it has to say to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["said"] = session.config.stash.get(SAID, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In that process: takes it."""
    node.config.stash.setdefault(SAID, []).extend(getattr(node, "workeroutput", {}).get("said", []))


@pytest.fixture
def say_at_end(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes a line for the end of pytest's output: how much a test has tried."""
    return pytestconfig.stash.setdefault(SAID, []).append


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts by folder, keeping the order inside: the run fails early where failing is cheap. The workers of a parallel run have the longest
    groups first: groups are handed out in this order."""
    is_worker = hasattr(config, "workerinput")
    items.sort(key=lambda item: place_of(item.path, group_of(item), is_worker))


def place_of(path: Path, group: str, is_worker: bool) -> tuple[int, int]:
    """Where a test stands among all: first the place of its group among the longest, then that of its folder."""
    folder = folder_of(path)
    long = LONGEST.index(group) if is_worker and group in LONGEST else len(LONGEST)
    return long, ORDER.index(folder) if folder in ORDER else len(ORDER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """In a parallel run the tests of a file stay together, and all that need Spark, a database, another Python or a browser go to one
    worker each: there is one session, one server, one environment. Those of the database have a Spark session of their own: in one group
    with Spark's they would take longer than half of all."""
    item.add_marker(pytest.mark.xdist_group(group_of(item)))


def group_of(item: pytest.Item) -> str:
    """What one worker of a parallel run takes as a whole."""
    folder = folder_of(item.path)
    if folder in ("requests", "runtimes", "browser", "database"):
        return folder
    if folder == "spark" or "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    return item.path.relative_to(ROOT / "tests").as_posix()


def folder_of(path: Path) -> str:
    """The folder right below tests that this path is in; `.` for the files that lie in tests itself."""
    parts = path.relative_to(ROOT / "tests").parts
    return parts[0] if len(parts) > 1 else "."


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building in the checkout would leave files there, and take in stale ones."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("glue_jobs", "controller", "infra"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", built]
    done = subprocess.run([*build, source], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = built.glob("dmslake-*.whl")
    return found


@pytest.fixture(scope="session")
def embedded_aws() -> Iterator[EmbeddedAws]:
    """One embedded AWS for the session; tests take tables of their own on it."""
    with EmbeddedAws() as aws:
        yield aws


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, embedded_aws: EmbeddedAws) -> Iterator[SparkSession]:
    """The one Spark session of the test run, with the jobs' settings and task retries (`local[2]` alone never retries)."""
    from pyspark.sql import SparkSession

    from glue_jobs.spark.java import find_java_home
    from glue_jobs.spark.session import set_for_jobs

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", find_java_home())
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
        builder = SparkSession.builder.master("local[2,4]").appName("tests")
        builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        session = builder.getOrCreate()
        set_for_jobs(session)
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
