"""The four operations of Glue's API that are about job runs, as a WSGI application in front of a `JobRunner`.

GetJobRun's `LogGroupName` is the folder of the log files here; a run's log is `<LogGroupName>/<run id>.log`, as on AWS
the log stream is named by the run id.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from infra.local.glue_runner import JobDefinition, JobRun, JobRunner, RunRefused

# Above this Glue answers InvalidInputException: lists of files can't travel as arguments.
MAX_ARGUMENTS_BYTES = 262_144
_DEFAULT_TIMEOUT_MINUTES = 2880
_DEFAULT_PAGE = 200

Request = dict[str, Any]
Answer = dict[str, Any]


class JobRunApi:
    """Answers StartJobRun, GetJobRun, GetJobRuns and BatchStopJobRun. `find_job` returns a job as GetJob shows it."""

    OPERATIONS = frozenset({"StartJobRun", "GetJobRun", "GetJobRuns", "BatchStopJobRun"})

    def __init__(self, runner: JobRunner, find_job: Callable[[str], Answer]) -> None:
        self._runner = runner
        self._find_job = find_job

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        operation = environ["HTTP_X_AMZ_TARGET"].partition(".")[2]
        handler = {
            "StartJobRun": self._start_job_run,
            "GetJobRun": self._get_job_run,
            "GetJobRuns": self._get_job_runs,
            "BatchStopJobRun": self._batch_stop_job_run,
        }[operation]
        try:
            status, answer = "200 OK", handler(json.loads(environ["wsgi.input"].read() or b"{}"))
        except RunRefused as refused:
            status, answer = "400 Bad Request", {"__type": refused.code, "Message": str(refused)}
        body = json.dumps(answer).encode()
        start_response(
            status,
            [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-RequestId", secrets.token_hex(16))],
        )
        return [body]

    def _start_job_run(self, request: Request) -> Answer:
        arguments = request.get("Arguments") or {}
        size = sum(len(name.encode()) + len(value.encode()) for name, value in arguments.items())
        if size > MAX_ARGUMENTS_BYTES:
            raise RunRefused("InvalidInputException", f"Arguments of {size} bytes, at most {MAX_ARGUMENTS_BYTES} allowed")
        if request.get("JobRunId"):
            raise RunRefused("InvalidInputException", "The embedded AWS can't repeat a run by JobRunId: give Arguments")
        job = _definition(self._find_job(request["JobName"]))
        return {"JobRunId": self._runner.start(job, arguments, request.get("Timeout")).run_id}

    def _get_job_run(self, request: Request) -> Answer:
        job = self._find_job(request["JobName"])
        return {"JobRun": self._shown(job, self._runner.get(request["JobName"], request["RunId"]))}

    def _get_job_runs(self, request: Request) -> Answer:
        job = self._find_job(request["JobName"])
        runs = self._runner.runs(request["JobName"])
        start = int(request.get("NextToken") or 0)
        end = start + int(request.get("MaxResults") or _DEFAULT_PAGE)
        answer: Answer = {"JobRuns": [self._shown(job, run) for run in runs[start:end]]}
        return answer | ({"NextToken": str(end)} if end < len(runs) else {})

    def _batch_stop_job_run(self, request: Request) -> Answer:
        name = request["JobName"]
        stopped: list[Answer] = []
        errors: list[Answer] = []
        for run_id in request["JobRunIds"]:
            named = {"JobName": name, "JobRunId": run_id}
            try:
                self._runner.stop(self._runner.get(name, run_id))
                stopped.append(named)
            except RunRefused as refused:
                errors.append(named | {"ErrorDetail": {"ErrorCode": refused.code, "ErrorMessage": str(refused)}})
        return {"SuccessfulSubmissions": stopped, "Errors": errors}

    def _shown(self, job: Answer, run: JobRun) -> Answer:
        """A run as the API shows it; fields that have no value yet are left out, as on AWS."""
        fields = {
            "Id": run.run_id,
            "Attempt": 0,
            "JobName": run.job.name,
            "JobRunState": run.state,
            "StartedOn": _epoch(run.started_on),
            "LastModifiedOn": _epoch(run.last_modified_on or run.started_on),
            "CompletedOn": _epoch(run.completed_on) if run.completed_on else None,
            "ErrorMessage": run.error_message,
            "Arguments": run.arguments,
            "PredecessorRuns": [],
            "ExecutionTime": run.execution_seconds,
            "Timeout": int(run.timeout_minutes),
            "LogGroupName": str(self._runner.log_folder),
            **{name: job.get(name) for name in ("GlueVersion", "WorkerType", "NumberOfWorkers", "MaxCapacity")},
        }
        return {name: value for name, value in fields.items() if value is not None}


def _definition(job: Answer) -> JobDefinition:
    command = job["Command"]
    return JobDefinition(
        name=job["Name"],
        command=command["Name"],
        script_location=command["ScriptLocation"],
        default_arguments=job.get("DefaultArguments") or {},
        non_overridable_arguments=job.get("NonOverridableArguments") or {},
        max_concurrent_runs=(job.get("ExecutionProperty") or {}).get("MaxConcurrentRuns", 1),
        timeout_minutes=job.get("Timeout") or _DEFAULT_TIMEOUT_MINUTES,
    )


def _epoch(moment: datetime.datetime) -> float:
    return round(moment.timestamp(), 3)
