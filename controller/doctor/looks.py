"""Looking at AWS where every request may be refused: what can't be seen is a finding, not an end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from controller.doctor.finding import WARNS, Finding
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.translate import aws_error, error_code
from glue_jobs.core.errors import DmslakeError


class DoctorClients(Clients):
    """The clients of the jobs, and those for what surrounds them. A request is sent twice at most."""

    max_attempts = 2

    @functools.cached_property
    def sts(self) -> Any:
        return self._client("sts")

    @functools.cached_property
    def iam(self) -> Any:
        return self._client("iam")

    @functools.cached_property
    def dms(self) -> Any:
        return self._client("dms")

    @property
    def endpoint(self) -> str:
        """The endpoint that stands in for AWS, '' for AWS itself."""
        return self._given("AWS_ENDPOINT_URL") or ""

    @property
    def region(self) -> str:
        """The region of the requests; raises ConfigurationError where none is known."""
        return str(self.dynamodb.meta.region_name)  # STS alone would do without


@dataclass(frozen=True)
class Seen:
    """The answer to a look, or why there is none.

    answer: None without one. missing: AWS says that there is no such thing. error: anything else that went wrong.
    permission: what IAM calls the right to look.
    """

    answer: Any = None
    missing: bool = False
    error: DmslakeError | None = None
    permission: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing can be said."""
        return self.error is not None


def look(permission: str, call: Callable[..., Any], missing: Collection[str] = (), **request: Any) -> Seen:
    """What `call` answers. missing: AWS's codes that mean that there is none."""
    return look_by(permission, lambda: call(**request), missing)


def look_by(permission: str, ask: Callable[[], Any], missing: Collection[str] = ()) -> Seen:
    """What `ask` returns: for looks of several requests (pages)."""
    try:
        return Seen(ask(), permission=permission)
    except (ClientError, BotoCoreError, DmslakeError) as error:
        if error_code(error) in missing:
            return Seen(missing=True, permission=permission)
        return Seen(error=aws_error(error), permission=permission)


def not_checked(seen: Seen, check: str, where: str) -> Finding:
    """The warning for a look without an answer."""
    assert seen.error is not None
    if seen.error.code == "access-denied":
        todo = f"allow {seen.permission} on {where}, or ask somebody who may look"
        return Finding(WARNS, check, where, "not checked", seen.permission, "denied", todo=todo)
    return Finding(WARNS, check, where, "not checked", "an answer", seen.error.message, todo=seen.error.todo)
