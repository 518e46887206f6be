"""The AWS requests of this process, as our code asks botocore for them, each with the job on whose behalf it was."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.aws.plain_gets import plain_gets
from tests.protocol.wire import Killed

PERSON = "a person"  # commands that work in their own process, with the person's own rights


@dataclass(frozen=True)
class Call:
    """One request. job: the Glue job's name without prefix, or PERSON. error: the code it was answered with, else ''."""

    job: str
    service: str
    operation: str
    params: dict[str, Any]
    error: str


@dataclass(frozen=True)
class Mishap:
    """What becomes of the next call of an operation."""

    operation: str
    error: BaseException
    sent: bool


class Recorder:
    """What is called within `on_behalf_of`, in any thread; nothing else is kept. One job works at a time.

    on_start: called with a StartJobRun's job and arguments before it is sent.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.on_start: Callable[[str, dict[str, str]], None] = lambda job, arguments: None
        self._job = ""
        self._mishap: Mishap | None = None
        self._dead = False

    @contextmanager
    def on_behalf_of(self, job: str) -> Iterator[None]:
        """Record as calls of this job; may be nested, as the controller's start of a job is."""
        before, self._job = self._job, job
        try:
            yield
        finally:
            self._job = before

    @contextmanager
    def mishap(self, operation: str, error: BaseException, *, sent: bool = False) -> Iterator[None]:
        """The next call of this operation raises the error, after it was sent or instead; with Killed all later ones do too.

        AssertionError if none was called.
        """
        self._mishap = Mishap(operation, error, sent)
        try:
            yield
        except Killed:
            assert self._dead
        finally:
            missed, self._mishap, self._dead = self._mishap, None, False
        assert missed is None, f"no {operation} was called"

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Sees the calls of all clients of the process."""
        real = BaseClient._make_api_call  # type: ignore[attr-defined]

        def call(client: Any, operation: str, params: dict[str, Any]) -> Any:
            return self._call(client, operation, params, real)

        BaseClient._make_api_call = call  # type: ignore[attr-defined]
        try:
            with plain_gets():
                yield
        finally:
            BaseClient._make_api_call = real  # type: ignore[attr-defined]

    def _call(self, client: Any, operation: str, params: dict[str, Any], real: Callable[..., Any]) -> Any:
        if not self._job:
            return real(client, operation, params)
        if self._dead:
            raise Killed
        if operation == "StartJobRun":
            self.on_start(params["JobName"], params["Arguments"])
        mishap = self._due(operation)
        if mishap and not mishap.sent:
            raise mishap.error
        job, kept, error = self._job, _without_bytes(params), ""
        try:
            answer = _answer(client, operation, params, real)
        except ClientError as refused:
            error = refused.response["Error"]["Code"]
            raise
        finally:
            self.calls.append(Call(job, client.meta.service_model.service_name, operation, kept, error))
        if mishap:
            raise mishap.error
        return answer

    def _due(self, operation: str) -> Mishap | None:
        due = self._mishap if self._mishap and self._mishap.operation == operation else None
        if due:
            self._mishap, self._dead = None, isinstance(due.error, Killed)
        return due


def _without_bytes(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, bodies by their type only."""
    return copy.deepcopy({name: b"" if isinstance(value, (bytes, bytearray)) else value for name, value in params.items()})


def _answer(client: Any, operation: str, params: dict[str, Any], real: Callable[..., Any]) -> Any:
    """moto breaks off where S3 says that an upload is gone."""
    try:
        return real(client, operation, params)
    except KeyError as error:
        if error.args != (params.get("UploadId"),):
            raise
        raise refused("NoSuchUpload", operation) from error


def refused(code: str, operation: str = "") -> ClientError:
    """The error that AWS answers with."""
    return ClientError({"Error": {"Code": code, "Message": "refused"}}, operation)
