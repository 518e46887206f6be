"""Work whose first attempt at a task fails after it uploaded: by an exception, or by the death of its Python worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from glue_jobs.core.settings import Settings
from glue_jobs.core.work import Task
from glue_jobs.spark.place import Place
from glue_jobs.spark.worker import SparkWorker


class TaskFailure(Exception):
    """What the failing attempt raises."""


@dataclass(frozen=True)
class FailingPlace(Place):
    """A Place whose S3 client fails the first attempt of each task right after a part was uploaded. how: raise or die."""

    how: str = "raise"

    @property
    def s3(self) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        client = super().s3
        return _Failing(client, self.how) if context is not None and context.attemptNumber() == 0 else client


class _Failing:
    """The client, but for `upload_part`."""

    def __init__(self, client: Any, how: str) -> None:
        self._client, self._how = client, how

    def upload_part(self, **request: Any) -> Any:
        self._client.upload_part(**request)
        if self._how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise TaskFailure("after the upload")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class FailingWorker(SparkWorker):
    """A SparkWorker that gives its tasks a FailingPlace."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], how: str) -> None:
        super().__init__(settings, environment)
        self._how = how

    def _place(self, task: Task) -> Place:
        place = super()._place(task)
        return FailingPlace(**{item.name: getattr(place, item.name) for item in fields(place)}, how=self._how)
