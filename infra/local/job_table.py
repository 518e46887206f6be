"""Jobs that stand in the embedded AWS beside those of `infra/aws/lake.yaml`: for tests, the demo and benchmarks."""

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
_OF_A_DEFINITION = frozenset(
    {
        *("Name", "Description", "Role", "Command", "DefaultArguments", "ExecutionProperty", "MaxRetries", "Timeout"),
        *("GlueVersion", "WorkerType", "NumberOfWorkers", "MaxCapacity"),
    }
)


@dataclass(frozen=True)
class Job:
    """One Glue job. `script` is a path below the code folder, or `s3://…`; `arguments` come after the common ones."""

    name: str
    command: str
    script: str
    max_concurrent_runs: int
    timeout_minutes: int = 480
    arguments: Mapping[str, str] = field(default_factory=dict)


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


def with_arguments(job: Mapping[str, Any], arguments: Mapping[str, str], name: str | None = None) -> dict[str, Any]:
    """The parameters of glue.create_job for a job as GetJob shows it, with more default arguments; under its own name or another."""
    request = {key: value for key, value in job.items() if key in _OF_A_DEFINITION and value is not None}
    return {**request, "Name": name or job["Name"], "DefaultArguments": {**job["DefaultArguments"], **arguments}}
