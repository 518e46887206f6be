"""Where tasks run: on Spark, or, for little work, in the job's driver. Both run the same functions over the same items."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import threading
import zipimport
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from glue_jobs.aws.garbage import collect_less
from glue_jobs.spark.row_batches import DECODED_RATIO, rows_at_a_time
from glue_jobs.spark.session import BATCH_ROWS, SHUFFLE_PARTITIONS
from glue_jobs.spark.shared import BROADCAST_BYTES, Broadcast, Here, InFile, Shared, drop_file, send_file
from glue_jobs.spark.task_errors import carried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from glue_jobs.core.limits import Limits

_T = TypeVar("_T")
_R = TypeVar("_R")

SHUFFLE_BYTES = 32 * 1024 * 1024


class Engine(Protocol):
    """Runs a function over items and gives the results in the items' order. slots: how many at a time."""

    slots: int

    def map(self, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]: ...

    def share(self, payload: bytes, unpack: Callable[[Any], _R]) -> Shared[_R]: ...

    def drop(self, shared: Shared[Any]) -> None:
        """No task will read the value any more. What nobody drops goes when the process ends."""


class DriverEngine:
    """Runs tasks one after the other in this process."""

    slots = 1

    def map(self, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
        return [function(item) for item in items]

    def share(self, payload: bytes, unpack: Callable[[Any], _R]) -> Shared[_R]:
        return Here(payload, unpack)

    def drop(self, shared: Shared[Any]) -> None:
        """Nothing: it goes with the last who knows it."""


class SparkEngine:
    """Runs one Spark task per item. Functions and items are pickled; a failed attempt is retried by Spark (4 by default)."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.slots = spark.sparkContext.defaultParallelism
        self.size_shuffles(0)

    def size_shuffles(self, size_bytes: float) -> None:
        """Let the next shuffles have partitions of about SHUFFLE_BYTES; Spark's 200 cost seconds where there is little to move."""
        count = max(self.slots, math.ceil(size_bytes / SHUFFLE_BYTES))
        self.spark.conf.set(SHUFFLE_PARTITIONS, str(count))

    def size_batches(self, rows: int, size_bytes: float) -> None:
        """Let the batches between the JVM and Python be of few bytes for rows of which so many are so many bytes in files: a column of a
        batch can't have more than 2 GiB."""
        count = rows_at_a_time(size_bytes * DECODED_RATIO / max(1, rows))
        self.spark.conf.set(BATCH_ROWS, str(count))

    def map(self, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
        if not items:
            return []
        return self.spark.sparkContext.parallelize(list(items), len(items)).map(carried(_in_worker(function))).collect()

    def share(self, payload: bytes, unpack: Callable[[Any], _R]) -> Shared[_R]:
        context = self.spark.sparkContext
        if len(payload) <= BROADCAST_BYTES:
            return Broadcast(context.broadcast(payload), unpack)
        return InFile(send_file(context, payload), unpack)

    def drop(self, shared: Shared[Any]) -> None:
        """Small values are Spark's to forget."""
        if isinstance(shared, InFile):
            drop_file(self.spark.sparkContext, shared.file_name, self.slots)


_TASKS = itertools.count()
_FIRST_TASKS = 2  # the second one finds the clients there that the first one made; what comes later is a task's own


def _in_worker(function: Callable[[_T], _R]) -> Callable[[_T], _R]:
    """`function` in one of Spark's Python workers, which lives for many tasks."""

    @functools.wraps(function, assigned=(), updated=())
    def run(item: _T) -> _R:
        _begin_task()
        return function(item)

    return run


def _begin_task() -> None:
    """A function of this module, which is sent by its name: the count is the worker's, not one that comes with each task."""
    forget_archives()
    if next(_TASKS) < _FIRST_TASKS:
        collect_less()


def forget_archives() -> None:
    """Before each task Spark has Python read the directories of all archives anew that something was imported from, once for each package
    in them: of Spark's own archive 55 ms a task. What is looked for there next is found as before, in the directory that was read last.

    Spark's own jar, which it also puts on the path, has no Python in it.
    """
    sys.path[:] = [place for place in sys.path if not place.endswith(".jar")]
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[place]


class Engines:
    """Chooses where work runs: little of it in the driver, all else on Spark, which starts at its first use. Threads may share it."""

    def __init__(self, driver_bytes: int, session: SparkSession | None = None, *, file_bytes: int = 0) -> None:
        """session: one that runs already and is somebody else's, for work that is not little. file_bytes: as `driver_file_bytes`."""
        self._driver_bytes, self._file_bytes, self._session = driver_bytes, max(driver_bytes, file_bytes), session
        self._spark: SparkEngine | None = None
        self._starting = threading.Lock()

    @classmethod
    def of(cls, limits: Limits, session: SparkSession | None = None) -> Engines:
        """As a job's limits say."""
        return cls(limits.driver_bytes, session, file_bytes=limits.driver_file_bytes)

    def for_bytes(self, size_bytes: float) -> Engine:
        """An engine for work on so many bytes of files, whose rows are all held at once; `driver_bytes` = 0 means Spark always. Once Spark
        runs, it does the rest too."""
        return self.for_files(0, size_bytes)

    def for_files(self, file_bytes: float, size_bytes: float = 0) -> Engine:
        """The same where these rows meet data files of so many bytes, of which a few are held at a time."""
        if self._spark is not None:
            return self._spark
        little = size_bytes <= self._driver_bytes and file_bytes <= self._file_bytes
        return DriverEngine() if self._driver_bytes and little else self.spark

    def for_driver(self, size_bytes: float, most_bytes: float) -> Engine:
        """The driver up to `most_bytes`, also beside a running Spark: for work whose outcome the driver must hold anyway, where sending
        it to Spark and back takes longer than doing it. `driver_bytes` = 0 still means Spark always."""
        return DriverEngine() if self._driver_bytes and size_bytes <= most_bytes else self.for_bytes(size_bytes)

    @property
    def names(self) -> str:
        """What did the work so far: `spark`, or `driver` where it was not started."""
        return "driver" if self._spark is None else "spark"

    @property
    def spark(self) -> SparkEngine:
        with self._starting:
            if self._spark is None:
                from glue_jobs.spark.session import spark_session

                self._spark = SparkEngine(self._session or spark_session())
            return self._spark


def chain(lists: Iterable[Iterable[_T]]) -> list[_T]:
    return [item for items in lists for item in items]
