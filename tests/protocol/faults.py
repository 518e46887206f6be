"""What can go wrong at one request: the process dies, the answer is an error once or for good, or it is lost on its way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError

from tests.aws.faults import json_error, s3_error
from tests.protocol.wire import Request, Rule, Wire

# error: service → (HTTP status, code)
BROKEN = {"s3": (500, "InternalError"), "dynamodb": (500, "InternalServerError"), "glue": (500, "InternalServiceException")}
BUSY = {"s3": (503, "SlowDown"), "dynamodb": (400, "ProvisionedThroughputExceededException"), "glue": (400, "ThrottlingException")}
DENIED = {"s3": (403, "AccessDenied"), "dynamodb": (400, "AccessDeniedException"), "glue": (400, "AccessDeniedException")}

KILLED_BEFORE, KILLED_AFTER = "killed before", "killed after"
BROKEN_ONCE, BUSY_ONCE, ANSWER_LOST = "error 500 once", "too busy once", "answer lost once"
BROKEN_FOR_GOOD, DENIED_FOR_GOOD = "error 500 for good", "denied for good"

KILLS = (KILLED_BEFORE, KILLED_AFTER)
ONCE = {BROKEN_ONCE: BROKEN, BUSY_ONCE: BUSY}
FOR_GOOD = {BROKEN_FOR_GOOD: BROKEN, DENIED_FOR_GOOD: DENIED}
PASSING = (*ONCE, ANSWER_LOST)  # a run that meets one of these must get over it by itself


def kinds_at(number: int, request: Request, brief: bool = False) -> tuple[str, ...]:
    """The faults at a request with this number. brief: one at a read, since a kill there leaves what one after the write before it does.

    A read that took effect is one that was not sent; its errors take turns. So do those that pass at DynamoDB's writes: it is botocore
    that sends them again, and our code sees neither.
    """
    once, for_good = tuple(ONCE)[number % 2], tuple(FOR_GOOD)[number // 2 % 2]
    if not request.is_write:
        return ((once, for_good)[number // 4 % 2],) if brief else (KILLED_BEFORE, once, for_good)
    errors = (once,) if request.service == "dynamodb" else tuple(ONCE)
    return (*KILLS, *errors, ANSWER_LOST, *FOR_GOOD)


@dataclass
class Fault:
    """One fault at the request with this number (from 0). hit: whether the run came to that request; effects: the writes that took
    effect, without what is random in them."""

    kind: str
    number: int
    hit: bool = False
    effects: list[str] = field(default_factory=list)
    _target: tuple[str, str, str] | None = field(default=None)

    def rule(self, wire: Wire) -> Rule:
        numbers = count()  # not the length of wire.requests: threads that come together would both see the later one's

        def rule(request: Request, really: Callable[[], Any]) -> Any:
            def forward() -> Any:
                if request.is_write:
                    self.effects.append(effect(request))
                return really()

            if next(numbers) == self.number:
                self.hit = True
                self._target = _identity(request)
                return self._happen(wire, request, forward)
            if self.kind in FOR_GOOD and self._target == _identity(request):
                return error_answer(request, FOR_GOOD[self.kind])
            return forward()

        return rule

    def _happen(self, wire: Wire, request: Request, forward: Callable[[], Any]) -> Any:
        if self.kind in (KILLED_AFTER, ANSWER_LOST):
            forward()
        if self.kind in KILLS:
            return wire.kill()
        if self.kind == ANSWER_LOST:
            raise ConnectionClosedError(endpoint_url=request.operation)
        return error_answer(request, {**ONCE, **FOR_GOOD}[self.kind])


def effect(request: Request) -> str:
    """What a write does, by its operation and its key, or, in DynamoDB, the attributes that it names."""
    if request.service == "dynamodb":
        names = sorted(json.loads(request.body).get("ExpressionAttributeNames", {}).values())
        return f"{request.operation} {' '.join(names)}"
    return f"{request.operation} {_RANDOM.sub('…', request.key)}"


_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=\d{6}-)[0-9a-f]{8}")


def _identity(request: Request) -> tuple[str, str, str]:
    return request.service, request.operation, request.key


def error_answer(request: Request, errors: dict[str, tuple[int, str]]) -> AWSResponse:
    """The service's answer with that error."""
    status, code = errors[request.service]
    return s3_error(status, code) if request.service == "s3" else json_error(status, code)
