"""The requests of this process to AWS: when each began and ended, and how many had to wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.client import BaseClient

from glue_jobs.aws.quick_gets import QuickGets, is_object


@dataclass(frozen=True)
class Call:
    """One request with all its retries. key: of the object, or the prefix that was listed, '' where there is none. Seconds are of
    time.perf_counter."""

    service: str
    operation: str
    key: str
    writes_head: bool
    started: float
    ended: float

    @property
    def stage(self) -> str:
        """What a run does there, in the order of a run: see STAGES."""
        if self.service == "dynamodb":
            return "commit" if self.writes_head else "state and lease"
        if self.service == "glue":
            return "catalog"
        if self.operation in ("CreateMultipartUpload", "UploadPart"):
            return "upload"
        if self.operation in ("CompleteMultipartUpload", "DeleteObjects"):
            return "publish"
        if "/_changes/" in self.key:
            return "write record" if self.operation == "PutObject" else "look at bucket and records"
        if self.operation == "GetObject":
            return "read data files" if self.key.startswith("lake/") else "read raw files"
        return "list raw files" if self.operation == "ListObjectsV2" else "look at bucket and records"


STAGES = (
    "state and lease", "look at bucket and records", "list raw files", "read raw files", "read data files", "upload", "write record",
    "commit", "publish", "catalog",
)  # fmt: skip


@contextmanager
def recorded(latency_seconds: float = 0.0) -> Iterator[list[Call]]:
    """All calls of this process's clients while it lasts. latency_seconds: what each of them waits more, as a server far away makes it."""
    calls: list[Call] = []
    lock = threading.Lock()
    real, real_ask = BaseClient._make_api_call, QuickGets.ask  # type: ignore[attr-defined]

    def note(service: str, operation: str, params: Mapping[str, Any], started: float) -> None:
        key = str(params.get("Key") or params.get("Prefix") or "") if service == "s3" else ""
        writes_head = operation == "UpdateItem" and {"Head", "Publishing"} <= set(params.get("ExpressionAttributeNames", {}).values())
        with lock:
            calls.append(Call(service, operation, key, writes_head, started, time.perf_counter()))

    def call(client: Any, operation: str, params: dict[str, Any]) -> Any:
        started = time.perf_counter()
        if latency_seconds:
            time.sleep(latency_seconds)
        try:
            return real(client, operation, params)
        finally:
            note(client.meta.service_model.service_name, operation, params, started)

    def ask(gets: QuickGets, bucket: Any, request: Mapping[str, str]) -> Any:
        started = time.perf_counter()
        if latency_seconds:
            time.sleep(latency_seconds)
        came = real_ask(gets, bucket, request)
        if is_object(came):  # anything else is a call of botocore's
            note("s3", "GetObject", request, started)
        return came

    BaseClient._make_api_call, QuickGets.ask = call, ask  # type: ignore[attr-defined,method-assign]
    try:
        yield calls
    finally:
        BaseClient._make_api_call, QuickGets.ask = real, real_ask  # type: ignore[attr-defined,method-assign]


def waits(calls: Sequence[Call]) -> list[Call]:
    """A longest chain of calls each of which began when the one before had ended: what a run waits for, however many run at once."""
    chain: list[Call] = []
    for call in sorted(calls, key=lambda call: call.ended):
        if not chain or call.started >= chain[-1].ended:
            chain.append(call)
    return chain


def seconds_waited(calls: Sequence[Call]) -> float:
    """How long at least one of the calls was under way."""
    total, until = 0.0, float("-inf")
    for call in sorted(calls, key=lambda call: call.started):
        total += max(0.0, call.ended - max(call.started, until))
        until = max(until, call.ended)
    return total
