"""The requests of this process, seen where botocore hands them to HTTP: count them, answer them, or die at one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.httpsession import URLLib3Session

_READS = ("Get", "List", "Head", "Describe", "Query", "Scan", "BatchGet")


@dataclass(frozen=True)
class Request:
    """One request. operation: as the AWS documentation names it; key: of the S3 object, else empty; service: s3, dynamodb or glue."""

    operation: str
    key: str
    body: bytes
    service: str = "s3"

    @property
    def is_write(self) -> bool:
        return not self.operation.startswith(_READS)

    def is_commit(self) -> bool:
        """Whether it moves a table's Head."""
        return self.operation == "UpdateItem" and b'"Head"' in self.body and b'"Publishing"' in self.body

    def is_record(self) -> bool:
        return self.operation == "PutObject" and "/_changes/" in self.key

    def is_data_part(self) -> bool:
        return self.operation == "UploadPart"

    def is_copy(self) -> bool:
        return self.operation == "UploadPartCopy"

    def is_completion(self) -> bool:
        return self.operation == "CompleteMultipartUpload"

    def is_hide(self) -> bool:
        return self.operation == "DeleteObjects"


def read_request(request: Any) -> Request:
    """The value of botocore's prepared request."""
    body = request.body if isinstance(request.body, bytes) else (request.body or "").encode() if isinstance(request.body, str) else b""
    target = request.headers.get("X-Amz-Target") or b""
    if target:
        text = target.decode() if isinstance(target, bytes) else target
        return Request(text.rsplit(".", 1)[-1], "", body, "glue" if text.startswith("AWSGlue.") else "dynamodb")
    url = urlsplit(request.url)
    key = url.path.lstrip("/").partition("/")[2]
    operation = _s3_operation(request.method, key, set(parse_qs(url.query, keep_blank_values=True)))
    if operation == "UploadPart" and "x-amz-copy-source" in request.headers:
        operation = "UploadPartCopy"
    return Request(operation, key, body)


_S3: tuple[tuple[str, str, str], ...] = (
    # method, parameter, operation
    ("POST", "uploads", "CreateMultipartUpload"),
    ("POST", "uploadId", "CompleteMultipartUpload"),
    ("POST", "delete", "DeleteObjects"),
    ("PUT", "partNumber", "UploadPart"),
    ("DELETE", "uploadId", "AbortMultipartUpload"),
    ("GET", "versioning", "GetBucketVersioning"),
    ("GET", "lifecycle", "GetBucketLifecycleConfiguration"),
    ("GET", "versions", "ListObjectVersions"),
    ("GET", "list-type", "ListObjectsV2"),
    ("GET", "uploadId", "ListParts"),
    ("GET", "uploads", "ListMultipartUploads"),
)


def _s3_operation(method: str, key: str, parameters: set[str]) -> str:
    for wanted, parameter, operation in _S3:
        if method == wanted and parameter in parameters:
            return operation
    return {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}[method]


class Killed(BaseException):
    """The process is dead: nothing catches it, and every later request raises it too."""


# What happens to a request: given it and a function that really sends it, the answer.
Rule = Callable[[Request, Callable[[], Any]], Any]


@dataclass
class Wire:
    """What is sent while `connected`. rule: what happens to each request; None: it is sent."""

    requests: list[Request] = field(default_factory=list)
    rule: Rule | None = None
    dead: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def connected(self) -> Iterator[Wire]:
        """Requests of all threads pass through here until the end of the block."""
        real = URLLib3Session.send

        def send(session: URLLib3Session, request: Any) -> Any:
            return self._pass(read_request(request), lambda: real(session, request))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(URLLib3Session, "send", send)
            yield self

    def _pass(self, request: Request, forward: Callable[[], Any]) -> Any:
        with self._lock:
            if self.dead:
                raise Killed
            self.requests.append(request)
        return forward() if self.rule is None else self.rule(request, forward)

    def kill(self) -> Any:
        self.dead = True
        raise Killed

    def of(self, operation: str) -> list[Request]:
        return [request for request in self.requests if request.operation == operation]


def die_at(wire: Wire, number: int, *, after: bool) -> Rule:
    """Die at the request with this number (from 0): before it is sent, or after it took effect."""

    def rule(request: Request, forward: Callable[[], Any]) -> Any:
        if len(wire.requests) - 1 < number:
            return forward()
        if after:
            forward()
        return wire.kill()

    return rule


def once(matches: Callable[[Request], bool], then: Callable[[Callable[[], Any]], Any], skip: int = 0) -> Rule:
    """`then`, with the function that sends it, for the first request that matches (after `skip` others); the rest is sent."""
    return in_turn(matches, *[lambda forward: forward()] * skip, then)


def in_turn(matches: Callable[[Request], bool], *answers: Callable[[Callable[[], Any]], Any]) -> Rule:
    """One answer each for the first requests that match."""
    left: Sequence[Any] = list(answers)
    lock = threading.Lock()

    def rule(request: Request, forward: Callable[[], Any]) -> Any:
        with lock:
            answer = left.pop(0) if left and matches(request) else None  # type: ignore[attr-defined]
        return forward() if answer is None else answer(forward)

    return rule
