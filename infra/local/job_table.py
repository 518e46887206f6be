"""The Glue jobs of the embedded AWS: one table, from which the CreateJob requests are made.

A later job is one more row. Job arguments have underscores here, as in the templates: settings stand in
DefaultArguments, StartJobRun adds what belongs to one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.local.job_process import PYTHON_SHELL, SPARK
from infra.local.session import ACCOUNT

PYTHON_VERSIONS = {PYTHON_SHELL: "3.9", SPARK: "3"}
_CAPACITY: dict[str, dict[str, Any]] = {
    PYTHON_SHELL: {"MaxCapacity": 0.0625},
    SPARK: {"GlueVersion": "5.1", "WorkerType": "G.1X", "NumberOfWorkers": 2},
}


@dataclass(frozen=True)
class Job:
    """One Glue job. `script` is a path below the code folder, or `s3://…`; `arguments` come after the common ones."""

    name: str
    command: str
    script: str
    max_concurrent_runs: int
    timeout_minutes: int = 480
    arguments: Mapping[str, str] = field(default_factory=dict)


JOBS: tuple[Job, ...] = (
    Job("Controller", PYTHON_SHELL, "controller/main.py", max_concurrent_runs=1),
    Job("LoadInitial", SPARK, "glue_jobs/load_initial.py", max_concurrent_runs=4),
    Job("LoadIncremental", SPARK, "glue_jobs/load_incremental.py", max_concurrent_runs=4),
    Job("Rollback", SPARK, "glue_jobs/rollback.py", max_concurrent_runs=4),
    Job("Apply", SPARK, "glue_jobs/apply.py", max_concurrent_runs=4),
    Job("Erase", SPARK, "glue_jobs/erase.py", max_concurrent_runs=4),
    Job("Adopt", SPARK, "glue_jobs/adopt.py", max_concurrent_runs=4),
    Job("Snapshot", SPARK, "glue_jobs/snapshot.py", max_concurrent_runs=4),
    Job("GenerateFeed", SPARK, "glue_jobs/generate_feed.py", max_concurrent_runs=4),
)


def create_job_request(job: Job, common_arguments: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of glue.create_job for `job`. MaxRetries 0: a retry of Glue's would take the lease of its own ghost."""
    return {
        "Name": job.name,
        "Role": f"arn:aws:iam::{ACCOUNT}:role/dmslake-local",
        "Command": {
            "Name": job.command,
            "ScriptLocation": job.script,
            "PythonVersion": PYTHON_VERSIONS[job.command],
        },
        "DefaultArguments": {**common_arguments, **job.arguments},
        "ExecutionProperty": {"MaxConcurrentRuns": job.max_concurrent_runs},
        "MaxRetries": 0,
        "Timeout": job.timeout_minutes,
        **_CAPACITY[job.command],
    }
