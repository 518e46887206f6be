"""The worker of the load jobs: from an action of the plan to the values of a change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from glue_jobs.core.actions import Rewrite, SyncHistory, TakeBatch, TakeLoad, Truncate
from glue_jobs.core.erasure import BACK
from glue_jobs.core.errors import blocked
from glue_jobs.core.history_table import unchanged
from glue_jobs.core.settings import Settings
from glue_jobs.core.truncate import truncated
from glue_jobs.core.work import Task, Work
from glue_jobs.spark.apply_batch import apply_batch
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.erased_keys import keys_back
from glue_jobs.spark.history_table import with_history
from glue_jobs.spark.load import load_table
from glue_jobs.spark.place import CLIENT_VARIABLES, Place
from glue_jobs.spark.raw_batch import Taken
from glue_jobs.spark.rewrite import rewrite_table
from glue_jobs.spark.task_errors import brought_back


class SparkWorker:
    """Does full loads, batches, truncates and rewrites, and keeps the history table with them."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        self._engines = Engines.of(settings.limits)
        self._environment = os.environ if environment is None else environment

    def __call__(self, task: Task) -> Work:
        with brought_back():
            taken = self._work(self._place(task), task)
            work = taken.work
            if task.state.keeps_history and work.primary_key:  # without a key the plan says so, once the rows are there
                work = with_history(self._engines, self._place(task), task, taken)
            back = keys_back(self._engines, self._place(task), task, work, taken.heads)
        told = {BACK: back} if back else {}
        return replace(work, details={**work.details, **told, "engine": self._engines.names})

    def _work(self, place: Place, task: Task) -> Taken:
        if isinstance(task.action, TakeLoad):
            return load_table(self._engines, place, task, task.action)
        if isinstance(task.action, TakeBatch):
            return apply_batch(self._engines, place, task, task.action)
        if isinstance(task.action, Rewrite):
            return Taken(rewrite_table(self._engines, place, task, task.action))
        if isinstance(task.action, Truncate):
            return Taken(truncated(task.snapshot, task.action.reason))
        if isinstance(task.action, SyncHistory):
            return Taken(unchanged(task.snapshot, task.action.reason))
        raise blocked("unknown-action", f"no work is known for {type(task.action).__name__}", where=str(task.state.path))

    def _place(self, task: Task) -> Place:
        client = tuple((name, self._environment[name]) for name in CLIENT_VARIABLES if self._environment.get(name))
        settings, state = task.settings, task.state
        return Place(client, state.path.bucket, state.lake, task.change, settings.compression, settings.limits, state.before_images)
