"""`awsglue.job.Job`: the calls that bracket a job; bookmarks are not kept here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Job:
    """A job run. On Glue `init` and `commit` load and save bookmarks; dmslake has its own cursor and uses none."""

    def __init__(self, glue_context: Any) -> None:
        self.glue_context = glue_context
        self.name = ""

    def init(self, job_name: str, args: Mapping[str, Any] | None = None) -> None:
        """Begins the job."""
        self.name = job_name

    def commit(self) -> None:
        """Ends the job."""
