"""The embedded AWS: S3, DynamoDB and Glue on a loopback port, where StartJobRun really runs the job.

Buckets, state table, database and jobs are those of `infra/aws/lake.yaml`, deployed as a CloudFormation stack: what a person runs
on AWS can't drift away from it. What differs from AWS, and what a green test therefore does not prove:

- CloudFormation: the types and properties of `infra/local/cloudformation/` are deployed, any other is refused by name; a request
  returns when the stack is done; tags, stack policies, drift and DisableRollback are passed over.
- S3: completing a multipart upload twice succeeds twice (AWS: NoSuchUpload); part checksums are not asked for at
  completion; more than 1000 keys in DeleteObjects are accepted; lifecycle rules are kept and shown but never applied.
- DynamoDB: requests are answered one at a time; no throttling, no item size limit on every path.
- Glue catalog: the VersionId of UpdateTable is ignored.
- Glue jobs: no queueing (JobRunQueuingEnabled), no retries, no repetition by JobRunId; a run starts at once; GetJobRun's
  LogGroupName is a folder of this machine and `<LogGroupName>/<run id>.log` the log of a run; BatchStopJobRun kills
  without a warning; `--extra-py-files` and `--additional-python-modules` are ignored: the code is already there. GlueVersion,
  workers, role, metrics and log settings of a job are kept and shown, and change nothing.
- The scheduled trigger starts nothing by itself: `dmslake up --schedule` acts on it, by starting the job; no workflow runs are made.
- No events, metrics, alarms or mails: rule, alarms, dashboard and topic are kept and shown. Log groups stay empty.
- Nobody checks credentials or policies; encryption is shown and not done. Requests of web pages are refused, those of any program on
  this machine are answered: also of other people who can log in here, for whom StartJobRun starts processes of the owner's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from infra.local import artifacts
from infra.local.job_process import CODE_FOLDER, SPARK
from infra.local.job_table import Job, create_job_request, with_arguments
from infra.local.session import aws_environment, embedded_client, embedded_session
from infra.local.settings import Settings

STACK = "dmslake"
WAIT_SECONDS = "0.2"  # between two looks at job runs: here a look costs nothing, and runs are short
FINISHED = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"})
_NO_OTHER_ORIGIN = {"MOTO_DISABLE_GLOBAL_CORS": "true"}  # moto lets the pages of any web site read its answers otherwise
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1


class EmbeddedAwsError(RuntimeError):
    """The server did not start, or a run did not end in time; the message says where to look."""


class NotStarted(EmbeddedAwsError):
    """The server did not start, or its stack did not come to its end; the message says why."""


@dataclass
class EmbeddedAws:
    """A running AWS for one person or one test: `with EmbeddedAws() as aws: …`, or `start()` and `stop()`.

    It begins with the stack of `infra/aws/lake.yaml` (buckets, state table, Glue database, jobs) and nothing in it. `jobs`
    come beside the stack's, in the place of one of the same name; `spark_arguments` are more default arguments of its Spark
    jobs; `parameters` are more parameters of the stack. `folder` holds the logs and is removed at the end unless it was given.
    `python_shell` is the Python for the jobs that Glue's Python shell runs. Everything is lost at `stop`.
    """

    raw_bucket: str = "dmslake-raw"
    lake_bucket: str = "dmslake-lake"
    raw_prefix: str = "dms/"
    lake_prefix: str = "lake/"
    state_table: str = "DMSCDC_Controller"
    database: str = "dmslake"
    port: int = 0
    folder: Path | None = None
    jobs: Sequence[Job] = ()
    spark_arguments: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    code_folder: Path = CODE_FOLDER
    python_shell: str = sys.executable
    cores: int = field(default_factory=lambda: os.cpu_count() or 2)
    driver_memory: str = "1g"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    seconds_per_timeout_minute: float = 60.0
    endpoint_url: str = field(default="", init=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False, repr=False)
    _own_folder: Path | None = field(default=None, init=False, repr=False)
    _clients: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _session: Any = field(default_factory=embedded_session, init=False, repr=False)
    _clients_lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        """The server and the job runs have working folders of their own: a relative folder would be another one there."""
        self.folder = self.folder.absolute() if self.folder else None

    def __enter__(self) -> EmbeddedAws:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def raw(self) -> str:
        """`--raw`: where DMS writes, `s3://bucket/prefix/`."""
        return f"s3://{self.raw_bucket}/{self.raw_prefix}"

    @property
    def lake(self) -> str:
        """`--lake`: where the lake tables are, `s3://bucket/prefix/`."""
        return f"s3://{self.lake_bucket}/{self.lake_prefix}"

    @property
    def work_folder(self) -> Path:
        """Where logs and scratch files of the runs are."""
        folder = self.folder or self._own_folder
        if folder is None:
            raise EmbeddedAwsError("the embedded AWS is not started: call start() or use it in a with statement")
        return folder

    @property
    def log_folder(self) -> Path:
        """Where the logs of the runs are: `<run id>.log` each."""
        return self.work_folder / "logs"

    def log_file(self, run_id: str) -> Path:
        """The log of one run: its standard output and standard error as they came."""
        return self.log_folder / f"{run_id}.log"

    def start(self) -> EmbeddedAws:
        """Starts the server and creates what an installation has; returns itself. On a failure, mostly a NotStarted, nothing is left."""
        if self._process is not None:
            raise EmbeddedAwsError(f"the embedded AWS is already running at {self.endpoint_url}")
        try:
            if self.folder is None:
                self._own_folder = Path(tempfile.mkdtemp(prefix="dmslake-"))
            self.work_folder.mkdir(parents=True, exist_ok=True)
            self._start_process()
            self._create_resources()
        except OSError as error:  # of a folder where nothing can be written, mostly
            self.stop()
            raise NotStarted(f"the embedded AWS did not start: {error}") from error
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kills running jobs, ends the server and removes its folder (unless given). May be called twice."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)
            self._own_folder = None

    def environment(self) -> dict[str, str]:
        """What to export so that the AWS SDKs, the `aws` command and dmslake work against this server.

        The two files are set to nothing, so that no setting of the real account is mixed in.
        """
        return {
            **aws_environment(),
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "DMSLAKE_RAW": self.raw,
            "DMSLAKE_LAKE": self.lake,
            "DMSLAKE_STATE_TABLE": self.state_table,
            "DMSLAKE_DATABASE": self.database,
            "DMSLAKE_WAIT_SECONDS": WAIT_SECONDS,
        }

    def client(self, service: str) -> Any:
        """A boto3 client of `service` for this server; one per service, made at first use, shared by threads."""
        with self._clients_lock:
            if service not in self._clients:
                self._clients[service] = embedded_client(service, self.endpoint_url, self._session)
            return self._clients[service]

    def run_job(self, name: str, arguments: Mapping[str, str] | None = None, timeout_seconds: float = 300.0) -> dict[str, Any]:
        """Starts a job and waits for its end; returns GetJobRun's JobRun, whatever its state."""
        run_id = self.client("glue").start_job_run(JobName=name, Arguments=dict(arguments or {}))["JobRunId"]
        return self.wait_for_run(name, run_id, timeout_seconds)

    def wait_for_run(self, name: str, run_id: str, timeout_seconds: float = 300.0) -> dict[str, Any]:
        """Waits for the end of a run; returns GetJobRun's JobRun, whatever its state. Too late is an error."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            run: dict[str, Any] = self.client("glue").get_job_run(JobName=name, RunId=run_id)["JobRun"]
            if run["JobRunState"] in FINISHED:
                return run
            if time.monotonic() > deadline:
                raise EmbeddedAwsError(
                    f"run {run_id} of job {name} is {run['JobRunState']} after {timeout_seconds:g} s; its log: {self.log_file(run_id)}"
                )
            time.sleep(_POLL_SECONDS)

    def _start_process(self) -> None:
        settings = Settings(
            folder=str(self.work_folder),
            environment=aws_environment(),
            port=self.port,
            remove_folder=self._own_folder is not None,
            code_folder=str(self.code_folder),
            python_shell=self.python_shell,
            cores=self.cores,
            driver_memory=self.driver_memory,
            spark_conf=dict(self.spark_conf),
            seconds_per_timeout_minute=self.seconds_per_timeout_minute,
        )
        log_path = self.work_folder / "server.log"
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "infra.local.serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**_without_aws_settings(os.environ), "PYTHONPATH": str(CODE_FOLDER), **_NO_OTHER_ORIGIN},
                start_new_session=True,  # Ctrl-C is for us: we stop the server in order
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(settings.to_json() + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            said = log_path.read_text(errors="replace").strip().splitlines() or ["nothing"]
            raise NotStarted(f"the server of the embedded AWS did not start; it said: {said[-1]}")
        self.endpoint_url = json.loads(answer)["url"]

    def _create_resources(self) -> None:
        self._deploy(self._stack_parameters())
        if not self.jobs and not self.spark_arguments:
            return  # a client costs a start some time
        glue = self.client("glue")
        if self.spark_arguments:
            for job in glue.get_jobs()["Jobs"]:
                if job["Command"]["Name"] == SPARK:
                    glue.create_job(**with_arguments(job, self.spark_arguments))
        for own in self.jobs:
            glue.create_job(**create_job_request(own, self._common_arguments()))

    def _deploy(self, parameters: Mapping[str, str]) -> None:
        """Creates the stack; NotStarted if it did not come to its end."""
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(
            StackName=STACK,
            TemplateURL=artifacts.TEMPLATE_URL,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
        (stack,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
        if stack["StackStatus"] != "CREATE_COMPLETE":
            raise NotStarted(f"the stack of the embedded AWS is {stack['StackStatus']}: {stack.get('StackStatusReason', '')}")

    def _stack_parameters(self) -> dict[str, str]:
        return {
            **artifacts.PARAMETERS,
            "NewRawBucketName": self.raw_bucket,
            "RawPrefix": self.raw_prefix,
            "NewLakeBucketName": self.lake_bucket,
            "LakePrefix": self.lake_prefix,
            "StateTableName": self.state_table,
            "DatabaseName": self.database,
            "JobPrefix": "",
            "WaitSeconds": WAIT_SECONDS,
            **self.parameters,
        }

    def _common_arguments(self) -> dict[str, str]:
        return {
            "--raw": self.raw,
            "--lake": self.lake,
            "--state_table": self.state_table,
            "--database": self.database,
            "--wait_seconds": WAIT_SECONDS,
        }


def _without_aws_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(("AWS_", "MOTO_"))}
