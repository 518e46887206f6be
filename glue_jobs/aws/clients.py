"""The clients for S3, DynamoDB and Glue, made in one place, and the deadline that stops writes once a lease is over."""

from __future__ import annotations

import functools
import os
import platform
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import boto3
import botocore
import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, HTTPClientError, NoCredentialsError

from glue_jobs import __version__
from glue_jobs.aws.answers import quick_answers
from glue_jobs.aws.quick_gets import make_quick
from glue_jobs.aws.translate import aws_error, translated
from glue_jobs.core.errors import LeaseLost

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client

# The translation belongs to the clients for whoever uses them.
__all__ = ["Clients", "Deadline", "Unanswered", "aws_error", "clock_seconds", "make_clients", "translated", "worker_s3"]

MAX_ATTEMPTS = 8  # of one request; with standard mode's backoff this is about a minute
POOL_CONNECTIONS = 50
CONNECT_SECONDS = 5
READ_SECONDS = 60
# At the instance metadata service, which gives the credentials of a role: botocore asks once, and many workers begin at the same moment.
# No more of them, and botocore's one second for each: where nobody answers, as on a laptop, a command without credentials waits for all.
METADATA_ATTEMPTS = 3
# With an endpoint of one's own any region will do, without one botocore asks for it.
REGION_OF_ENDPOINTS = "us-east-1"
# So logs of requests tell who asked. Botocore would put its own together anew for each request, from thirty parts.
USER_AGENT = f"dmslake/{__version__} Botocore/{botocore.__version__} Python/{platform.python_version()}"
# What doesn't begin like this may change something: an operation that we don't know is taken for a write.
_READS = ("Get", "List", "Head", "Describe", "BatchGet", "Query", "Scan", "Select", "Search")


# Python's monotonic clock stands still while a Linux machine or a Mac sleeps, and so would a deadline; these clocks go on.
_THROUGH_SLEEP = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))  # of Linux; of macOS


def clock_seconds() -> float:
    """The clock of leases and deadlines: nobody sets it, and a machine's sleep counts. Where there is none such, the monotonic one."""
    return time.monotonic() if _THROUGH_SLEEP is None else time.clock_gettime(_THROUGH_SLEEP)


class Deadline:
    """The moment of `clock_seconds` up to which writes may be sent; None: no limit. Set by the lease's owner, read by every request."""

    def __init__(self) -> None:
        self._at: float | None = None

    def set(self, at_seconds: float | None) -> None:
        self._at = at_seconds

    def check(self) -> None:
        """Raise LeaseLost if the deadline is over."""
        at = self._at
        now = clock_seconds()
        if at is not None and now > at:
            raise LeaseLost(
                f"the lease could not be renewed in time: its deadline passed {now - at:.1f} s ago",
                "lease-lost",
                "nothing to do: the next run goes on from what was committed",
            )


class Unanswered(Exception):
    """A request that must not be sent twice blindly got no answer, or a server's error: the caller looks what is true."""


class Clients:
    """The clients of one process, each made when first used. All are safe to use from threads.

    max_attempts: of one request; fewer for a caller that would rather say what it could not look at. answer_seconds: how long an attempt
    waits for a connection, at most, and then for the answer.
    """

    max_attempts = MAX_ATTEMPTS
    answer_seconds: float = READ_SECONDS

    def __init__(self, environment: Mapping[str, str], deadline: Deadline | None = None) -> None:
        self.environment = dict(environment)
        self.deadline = deadline
        self._session: boto3.Session | None = None
        self._lock = threading.RLock()

    def beside(self, deadline: Deadline | None) -> Clients:
        """Clients of the same environment with a deadline of their own; made in a quarter of the time, from the same session."""
        other = Clients(self.environment, deadline)
        other.max_attempts = self.max_attempts
        other.share(self)
        return other

    def share(self, other: Clients) -> None:
        """Take the other's session, so that its credentials are asked for once: a person may have to type a code for them."""
        self._session, self._lock = other._session, other._lock

    def impatient(self, answer_seconds: float) -> Clients:
        """Clients with the same deadline that try once, and only for so long: for a caller that asks again itself before it is too late."""
        other = self.beside(self.deadline)
        other.max_attempts, other.answer_seconds = 0, answer_seconds  # botocore counts those after the first
        return other

    @functools.cached_property
    def s3(self) -> S3Client:
        client: S3Client = self._client("s3")
        # A completion that is sent again after it worked is an error on AWS and a second success elsewhere.
        client.meta.events.register("needs-retry.s3.CompleteMultipartUpload", _refuse_blind_retry)
        client.meta.events.register("before-sign.s3.UploadPart", _body_unsigned(client.meta.config))
        make_quick(client)
        return client

    @functools.cached_property
    def dynamodb(self) -> DynamoDBClient:
        client: DynamoDBClient = self._client("dynamodb")
        return client

    @functools.cached_property
    def glue(self) -> GlueClient:
        client: GlueClient = self._client("glue")
        client.meta.events.register("needs-retry.glue.StartJobRun", _refuse_second_start)
        return client

    def _client(self, service: str) -> Any:
        endpoint = self._given(f"AWS_ENDPOINT_URL_{service.upper()}") or self._given("AWS_ENDPOINT_URL")
        with self._lock:  # making sessions and clients is not thread-safe in boto3
            try:
                session = self._session or self._new_session()
                if session.get_credentials() is None:
                    raise NoCredentialsError  # a client would be without any for as long as it lives, a worker's as long as the process
                region = session.region_name or (REGION_OF_ENDPOINTS if endpoint else None)
                client = session.client(
                    service,  # type: ignore[call-overload]
                    region_name=region,
                    endpoint_url=endpoint,
                    config=_config(service == "s3" and endpoint is not None, self.max_attempts, self.answer_seconds),
                )
            except Exception as error:
                raise aws_error(error) from error  # no credentials file, an unknown profile, no region
            self._session = session
        if self.deadline is not None:
            client.meta.events.register_first(f"before-send.{service}", _stop_after(self.deadline))
        return client

    def _new_session(self) -> boto3.Session:
        region = self._given("AWS_REGION") or self._given("AWS_DEFAULT_REGION")
        core = botocore.session.Session(session_vars=self._session_variables())
        core.register_component("data_loader", _models(core.get_config_variable("data_path")))
        quick_answers(core)
        key, secret, token = (self._given(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"))
        if key is None or secret is None:
            key = secret = token = None  # half of them is no credentials
        return boto3.Session(key, secret, token, region_name=region, botocore_session=core)

    def _session_variables(self) -> dict[str, Any]:
        """What is other than botocore's own: (name in the configuration file, environment variable, default, conversion) of each."""
        attempts = "metadata_service_num_attempts"
        variables: dict[str, Any] = {attempts: (attempts, f"AWS_{attempts.upper()}", METADATA_ATTEMPTS, int)}
        profile = self._given("AWS_PROFILE")
        if profile is not None:
            # As a default: a profile_name would win over keys in the environment, which win for the AWS CLI. A worker has them there only.
            variables["profile"] = (None, None, profile, None)
        return variables

    def _given(self, name: str) -> str | None:
        """The variable's value; an empty one counts as not given."""
        return self.environment.get(name) or None


def make_clients(environment: Mapping[str, str], deadline: Deadline | None = None) -> Clients:
    """Clients that honour AWS_PROFILE, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_S3/_DYNAMODB/_GLUE.

    Keys in the environment win over AWS_PROFILE, as for the AWS CLI; the profile gives the rest.
    The endpoints are read here because old botocore, as in Glue's Python shell, ignores these variables.
    With a deadline, every write that is sent after it raises LeaseLost instead, each retry of it too.
    """
    return Clients(environment, deadline)


def worker_s3(environment_items: Iterable[tuple[str, str]]) -> S3Client:
    """The S3 client of this process for the given environment; made once, also in a forked Spark worker and for many threads."""
    with _MAKING:  # sixteen threads that each found none would make sixteen, one after the other
        return _worker_s3(tuple(sorted(environment_items)), os.getpid())


_MAKING = threading.Lock()


@functools.lru_cache(maxsize=8)
def _worker_s3(environment_items: tuple[tuple[str, str], ...], process: int) -> S3Client:
    return make_clients(dict(environment_items)).s3


@functools.lru_cache(maxsize=8)
def _models(data_path: str | None) -> botocore.loaders.Loader:
    """What botocore knows of the services, read once by a process: each session would read it anew, which is most of the time that its
    first clients take. data_path: further folders of it, as the configuration names them."""
    return botocore.loaders.create_loader(data_path)


def _config(path_style: bool, max_attempts: int = MAX_ATTEMPTS, answer_seconds: float = READ_SECONDS) -> Config:
    options: dict[str, Any] = {
        "retries": {"mode": "standard", "max_attempts": max_attempts},
        "max_pool_connections": POOL_CONNECTIONS,
        "connect_timeout": min(CONNECT_SECONDS, answer_seconds),
        "read_timeout": answer_seconds,
        "tcp_keepalive": True,
        "user_agent": USER_AGENT,
        # Newer botocore would compute a checksum for every request and check one in every answer.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if path_style:
        options["s3"] = {"addressing_style": "path"}
    optional = ("request_checksum_calculation", "response_checksum_validation", "tcp_keepalive")
    try:
        return Config(**options)
    except TypeError:  # an older botocore, which has no such options
        return Config(**{name: value for name, value in options.items() if name not in optional})


def _stop_after(deadline: Deadline) -> Any:
    """A before-send handler: raising in it stops the request, and botocore doesn't retry what it doesn't know."""

    def handler(event_name: str, **_: Any) -> None:
        if not event_name.rsplit(".", 1)[-1].startswith(_READS):
            deadline.check()

    return handler


def _body_unsigned(config: Config) -> Any:
    """A before-sign handler for requests whose body S3 compares with a CRC32 that is among the signed headers. Botocore would compute a
    SHA-256 of it besides, which for data files is a twentieth of a merge's work, and the server would compute it too."""
    options: Any = {**(getattr(config, "s3", None) or {}), "payload_signing_enabled": False}
    unsigned = config.merge(Config(s3=options))

    def handler(request: Any, **_: Any) -> None:
        request.context["client_config"] = unsigned

    return handler


def _refuse_blind_retry(response: Any, caught_exception: Exception | None, **_: Any) -> None:
    """A needs-retry handler that raises Unanswered where botocore would send the request again.

    By raising, because what a handler returns can't forbid a retry in older botocore.
    """
    if caught_exception is not None:
        if isinstance(caught_exception, BotoCoreError):  # a connection that broke; LeaseLost and defects pass
            raise Unanswered(str(caught_exception)) from caught_exception
        return
    status = response[0].status_code
    if status >= 500 or status == 429:
        raise Unanswered(f"HTTP status {status}")


def _refuse_second_start(response: Any, caught_exception: Exception | None, **_: Any) -> None:
    """A needs-retry handler that raises Unanswered where a job run may have been started. What of several attempts the last one met would
    hide it: that nobody was reached by then, say. An attempt that reached nobody, and one that Glue refused, may be repeated."""
    if isinstance(caught_exception, HTTPClientError):
        raise Unanswered(str(caught_exception)) from caught_exception
    if response is not None and response[0].status_code >= 500:
        raise Unanswered(f"HTTP status {response[0].status_code}")
