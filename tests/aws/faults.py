"""Answers that a server gives rarely, put in place of real ones by botocore's before-send hook."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session


class RawBody(io.BytesIO):
    """What AWSResponse expects of urllib3's response."""

    def stream(self, amount: int = 1024, **_: Any) -> Iterator[bytes]:
        yield self.read()

    def isclosed(self) -> bool:
        return True


def answer(status: int, body: bytes | str = b"", **headers: str) -> AWSResponse:
    data = body.encode() if isinstance(body, str) else body
    return AWSResponse("http://fake/", status, {"Content-Type": "application/xml", **headers}, RawBody(data))


def s3_error(status: int, code: str) -> AWSResponse:
    return answer(status, f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>injected</Message></Error>')


def json_error(status: int, code: str) -> AWSResponse:
    body = '{"__type": "' + code + '", "message": "injected", "Message": "injected"}'
    return answer(status, body, **{"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": code})


class Injected:
    """Answers the next requests of an operation by `answers`, one each; None lets one through. Later requests pass.

    An answer may be a function of the request. sent: how many requests there were, the injected ones included. A GetObject that takes the
    shorter way (quick_gets) and is handed back to botocore takes two answers, of which the first counts.
    """

    def __init__(self, client: Any, operation: str, *answers: Any) -> None:
        self.sent = 0
        self.requests: list[Any] = []
        self._answers = list(answers)
        self._lock = threading.Lock()
        service = client.meta.service_model.service_name
        client.meta.events.register(f"before-send.{service}.{operation}", self._handle)

    def _handle(self, request: Any, **_: Any) -> Any:
        with self._lock:
            self.sent += 1
            self.requests.append(request)
            given = self._answers.pop(0) if self._answers else None
        return given(request) if callable(given) and not isinstance(given, AWSResponse) else given


def lost_answer(request: Any) -> Any:
    """Let the server do it, and lose what it answers."""
    URLLib3Session().send(request)
    raise ConnectionClosedError(endpoint_url=request.url)


def no_connection(request: Any) -> Any:
    raise ConnectionClosedError(endpoint_url=request.url)


def after(effect: Callable[[], Any], given: Any) -> Callable[[Any], Any]:
    """An answer that first causes `effect`."""

    def do(request: Any) -> Any:
        effect()
        return given

    return do
