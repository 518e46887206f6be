"""Where work runs: both engines run the same functions over the same items, and unpack a shared value once."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
import zipfile
import zipimport
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from glue_jobs.aws.garbage import COLLECTED_AT
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.spark import shared as shared_module
from glue_jobs.spark.engine import DriverEngine, Engine, Engines, SparkEngine, forget_archives
from glue_jobs.spark.session import set_for_jobs
from glue_jobs.spark.shared import Shared
from glue_jobs.spark.task_errors import brought_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["driver", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return DriverEngine() if request.param == "driver" else SparkEngine(request.getfixturevalue("spark"))


def test_results_come_in_the_order_of_the_items(engine: Engine) -> None:
    """Whichever task ends first."""
    assert engine.map(lambda item: item * 2, [3, 1, 2]) == [6, 2, 4]
    assert engine.map(lambda item: item, []) == []


def test_a_worker_collects_less_garbage_than_the_driver(spark: SparkSession) -> None:
    """The driver may be a person's program."""

    def look(item: int) -> tuple[int, tuple[int, int, int], int]:
        from glue_jobs.spark import engine

        return os.getpid(), gc.get_threshold(), next(engine._TASKS)

    before = gc.get_threshold()
    found = SparkEngine(spark).map(look, list(range(8)))

    assert [threshold for _, threshold, _ in found] == [COLLECTED_AT] * 8
    assert len({(process, count) for process, _, count in found}) == 8  # each worker counts on
    assert gc.get_threshold() == before


def test_arrow_keeps_its_memory_in_a_worker_and_not_in_the_driver(spark: SparkSession) -> None:
    """A worker ends a minute after its last task; the driver may be a person's program."""
    found = SparkEngine(spark).map(lambda _: os.environ.get("MIMALLOC_PURGE_DELAY"), [0, 1])

    assert found == ["-1", "-1"]
    assert "MIMALLOC_PURGE_DELAY" not in os.environ


def test_what_somebody_has_set_for_workers_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    context, settings = SimpleNamespace(environment={}), SimpleNamespace(set=lambda name, value: None)
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "20")

    set_for_jobs(SimpleNamespace(conf=settings, sparkContext=context))
    assert context.environment == {"MIMALLOC_PURGE_DELAY": "20"}

    context.environment = {"MIMALLOC_PURGE_DELAY": "10"}  # spark.executorEnv.MIMALLOC_PURGE_DELAY
    set_for_jobs(SimpleNamespace(conf=settings, sparkContext=context))
    assert context.environment == {"MIMALLOC_PURGE_DELAY": "10"}


def test_a_worker_reads_no_archive_before_each_task(spark: SparkSession) -> None:
    """Python read the directories of all archives on its path anew, once for each package; what is in them is found all the same."""

    def look(item: int) -> tuple[list[str], list[str], bool]:
        held = [place for place, finder in sys.path_importer_cache.items() if isinstance(finder, zipimport.zipimporter)]
        jars = [place for place in sys.path if place.endswith(".jar")]
        return held, jars, importlib.util.find_spec("pyspark.sql") is not None  # which on Glue is in an archive

    assert SparkEngine(spark).map(look, [1, 2]) == [([], [], True)] * 2


def test_what_is_in_an_archive_is_found_after_it_was_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Modules and packages that were not imported yet too."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("forgotten_one.py", "forgotten_two/__init__.py", "forgotten_two/three.py"):
            archive.writestr(name, "HERE = True")
    jar = str(tmp_path / "spark-core_2.12-3.5.6.jar")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "a.zip"), jar])
    importlib.import_module("forgotten_one")

    forget_archives()
    importlib.invalidate_caches()  # as Spark does before each task

    assert importlib.import_module("forgotten_two.three").HERE
    assert jar not in sys.path
    assert str(tmp_path / "a.zip") in sys.path


def test_every_task_reads_the_shared_value(engine: Engine) -> None:
    """Sent once, unpacked where it is read."""
    shared = engine.share(b"abc", lambda payload: payload.decode().upper())

    assert engine.map(lambda item: shared.get() + str(item), [1, 2]) == ["ABC1", "ABC2"]


class Given(Shared[bytes]):
    """A value as a task gets it, with a note of each time that it is unpacked."""

    def __init__(self, payload: bytes, unpacked: list[bytes]) -> None:
        super().__init__(lambda found: unpacked.append(found) or found)
        self._payload = payload

    def _packed(self) -> bytes:
        return self._payload


def test_a_shared_value_is_unpacked_once_per_process() -> None:
    """And forgotten when newer ones come: a worker lives for many batches."""
    unpacked: list[bytes] = []
    shared = [Given(bytes([number]), unpacked) for number in range(5)]

    for value in shared:
        assert value.get() == value.get()

    assert len(unpacked) == 5
    assert len(shared_module._UNPACKED) <= shared_module._KEEP


def test_an_error_in_a_task_comes_back_as_it_was(engine: Engine) -> None:
    """Its kind, message, code and way out: Spark alone would give a Java trace."""

    def refuse(_: Any) -> Any:
        raise TableBlocked("file s3://raw/x, row 3: ünï", "null-key", "skip it")

    with pytest.raises(TableBlocked) as caught, brought_back():
        engine.map(refuse, [1])

    assert (caught.value.message, caught.value.code, caught.value.todo) == ("file s3://raw/x, row 3: ünï", "null-key", "skip it")


def test_what_the_driver_holds_anyway_it_does_beside_spark(spark: SparkSession) -> None:
    """Up to its own bound; not where Spark is asked for always."""
    engines = Engines(100, spark)
    assert type(engines.for_bytes(101)) is SparkEngine

    assert [type(engines.for_driver(size, 500)) for size in (500, 501)] == [DriverEngine, SparkEngine]
    assert type(Engines(0, spark).for_driver(1, 500)) is SparkEngine


def test_little_work_stays_in_the_driver(spark: SparkSession) -> None:
    """Up to driver_bytes; with 0 never. Once Spark was needed, it does the rest."""
    del spark
    engines = Engines(100)
    assert (type(engines.for_bytes(100)), engines.names) == (DriverEngine, "driver")

    assert type(engines.for_bytes(101)) is SparkEngine
    assert (type(engines.for_bytes(1)), engines.names) == (SparkEngine, "spark")
    assert type(Engines(0).for_bytes(0)) is SparkEngine


def test_few_rows_meet_more_bytes_of_data_files_in_the_driver(spark: SparkSession) -> None:
    """Both bounds hold at once, that of the files is never below the other, and 0 still means Spark always."""
    limits = Limits(driver_bytes=100, driver_file_bytes=500)

    def chosen(limits: Limits, file_bytes: int, size_bytes: int) -> type:
        return type(Engines.of(limits, spark).for_files(file_bytes, size_bytes))

    assert chosen(limits, 500, 100) is DriverEngine
    assert chosen(limits, 501, 100) is SparkEngine
    assert chosen(limits, 500, 101) is SparkEngine
    assert type(Engines.of(limits, spark).for_bytes(101)) is SparkEngine
    assert chosen(Limits(driver_bytes=100, driver_file_bytes=0), 100, 0) is DriverEngine
    assert chosen(Limits(driver_bytes=0, driver_file_bytes=500), 0, 0) is SparkEngine
