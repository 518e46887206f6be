"""Runs a load job on Spark as its entry script does, until one of its tasks kills the driver (SIGKILL): the task's process has begun an
upload, and is about to begin the next one.

python -m tests.spark.killed_driver <job> <a folder for Spark> <the job's arguments …>
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from glue_jobs import load_incremental, load_initial
from glue_jobs.core.work import Task
from glue_jobs.spark import worker
from glue_jobs.spark.java import find_java_home
from glue_jobs.spark.place import Place
from infra.local.job_process import Runtime, spark_environment

JOBS = {"LoadInitial": load_initial.main, "LoadIncremental": load_incremental.main}
_BEGUN: list[str] = []  # the uploads of this process


@dataclass(frozen=True)
class KillingPlace(Place):
    """A Place whose S3 client kills the process `driver` at the second upload of a task's process."""

    driver: int = 0

    @property
    def s3(self) -> Any:
        return _Killing(super().s3, self.driver)


class _Killing:
    """The client, but for `create_multipart_upload`."""

    def __init__(self, client: Any, driver: int) -> None:
        self._client, self._driver = client, driver

    def create_multipart_upload(self, **request: Any) -> Any:
        if _BEGUN:
            os.kill(self._driver, signal.SIGKILL)
        _BEGUN.append(request["Key"])
        return self._client.create_multipart_upload(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class KillingWorker(worker.SparkWorker):
    """A SparkWorker that gives its tasks a KillingPlace."""

    def _place(self, task: Task) -> Place:
        place = super()._place(task)
        return KillingPlace(**{item.name: getattr(place, item.name) for item in fields(place)}, driver=os.getpid())


def main(job: str, folder: Path, argv: list[str]) -> int:
    os.environ.update(spark_environment(Runtime(folder, driver_memory="1g"), find_java_home(), folder))
    worker.SparkWorker = KillingWorker  # type: ignore[misc]
    return JOBS[job](argv)


if __name__ == "__main__":
    from tests.spark.killed_driver import main as imported  # Spark's tasks find the classes under this module's own name

    sys.exit(imported(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
