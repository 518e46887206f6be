"""GETs of S3 objects without most of what botocore does around each, which takes a third of a small object's processor time.

A client's first GET from a bucket goes botocore's way, and shows where the bucket is and how requests to it are signed. Later ones are
signed by botocore's signer and sent through the client's own connections. What comes of one is taken if it is the object. Anything else
goes back to botocore, as what came of the request that it makes then: which error that is, and whether it is sent again, is for botocore
to say.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.response import StreamingBody

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_EVENT = "before-send.s3.GetObject"
_DONE = "after-call.s3.GetObject"
_ATTRIBUTE = "dmslake_quick_gets"
_SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=[^,]+/\d{8}/([^/,]+)/s3/aws4_request,")
# What botocore's request may hold besides what is asked for. One with anything else is of a kind that is not imitated.
_USUAL = frozenset(
    "user-agent authorization x-amz-date x-amz-content-sha256 x-amz-security-token amz-sdk-invocation-id amz-sdk-request".split()
)
_ASKED = {"Range": "Range", "IfMatch": "If-Match"}  # parameter of GetObject → header


def get_object(s3: S3Client, request: Mapping[str, str]) -> StreamingBody:
    """The body of GetObject's answer. request: Bucket, Key, and VersionId, IfMatch and Range where they are wanted.

    Raises what the client's `get_object` does.
    """
    gets: QuickGets | None = getattr(s3, _ATTRIBUTE, None)
    return gets.body(s3, request) if gets else s3.get_object(**request)["Body"]  # type: ignore[arg-type]


def make_quick(s3: S3Client) -> None:
    """Let `get_object` take the shorter way with this client."""
    # The two parts of a client that are not public; without one of them all goes botocore's way.
    session = getattr(getattr(s3, "_endpoint", None), "http_session", None)
    credentials = getattr(getattr(s3, "_request_signer", None), "_credentials", None)
    if session is not None and credentials is not None:
        setattr(s3, _ATTRIBUTE, QuickGets(s3, session, credentials))


@dataclass(frozen=True)
class _Bucket:
    """Where a bucket's objects are, and how a request to it is signed. url: up to the key."""

    url: str
    region: str
    agent: str


class QuickGets:
    """The shorter way of one client. May be used from threads."""

    def __init__(self, s3: Any, session: Any, credentials: Any) -> None:
        self._events, self._model = s3.meta.events, s3.meta.service_model.operation_model("GetObject")
        self._session, self._credentials = session, credentials
        self._buckets: dict[str, _Bucket] = {}
        self._now = threading.local()  # asked: what botocore is asked for; came: what it is to go on from
        self._events.register_first(_EVENT, self._before_send)

    def body(self, s3: S3Client, request: Mapping[str, str]) -> StreamingBody:
        bucket = self._buckets.get(request["Bucket"]) if request["Key"] else None  # what is no key is refused by botocore
        came: Any = None if bucket is None else self.ask(bucket, request)
        if is_object(came):
            # What botocore keeps of quota for retries grows with each call that needed none: so it must hear of this one.
            self._events.emit(_DONE, http_response=came, parsed={}, model=self._model, context={})
            return StreamingBody(came.raw, came.headers.get("content-length"))  # as botocore's: short and broken bodies are errors
        self._now.asked, self._now.came = request, came
        try:
            return s3.get_object(**request)["Body"]  # type: ignore[arg-type]
        finally:
            self._now.asked = self._now.came = None

    def ask(self, bucket: _Bucket, request: Mapping[str, str]) -> AWSResponse | Exception:
        """The answer, or what was raised instead of one."""
        headers = {"User-Agent": bucket.agent, **{header: request[name] for name, header in _ASKED.items() if name in request}}
        url = bucket.url + _quoted(request["Key"])
        if "VersionId" in request:
            url += f"?versionId={quote(request['VersionId'], safe='-._~')}"
        try:
            asked = AWSRequest("GET", url, headers, stream_output=True)
            S3SigV4Auth(self._credentials.get_frozen_credentials(), "s3", bucket.region).add_auth(asked)
            prepared = asked.prepare()
            _, answer = self._events.emit_until_response(_EVENT, request=prepared)
            came: AWSResponse = self._session.send(prepared) if answer is None else answer
        except Exception as error:  # noqa: BLE001 - as botocore does, which says then what is to be made of it
            return error
        return came

    def _before_send(self, request: Any, **_: Any) -> AWSResponse | None:
        """A handler of botocore's: gives it what came of the shorter way instead of its own sending, or learns from its request."""
        asked, came = getattr(self._now, "asked", None), getattr(self._now, "came", None)
        self._now.came = None
        if isinstance(came, Exception):
            raise came
        if came is None and asked is not None:
            self._learn(request, asked)
        return came

    def _learn(self, request: Any, asked: Mapping[str, str]) -> None:
        """Where the bucket is, if the request is one of those that can be imitated; the last one counts, after redirections."""
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        url, scope = request.url.partition("?")[0], _SCOPE.match(headers.get("authorization", ""))
        key, known = _quoted(asked["Key"]), _USUAL.union(header.lower() for header in _ASKED.values())
        host = urlsplit(url).netloc
        usual = headers.pop("host", host) == host and known.issuperset(headers)  # botocore names the host where it signs with awscrt
        if scope and url.endswith("/" + key) and usual:
            self._buckets[asked["Bucket"]] = _Bucket(url[: -len(key)], scope[1], headers.get("user-agent", ""))
        else:
            self._buckets.pop(asked["Bucket"], None)


def is_object(came: object) -> bool:
    """Whether what `ask` gave is an answer with the object, or with the part of it that was asked for."""
    return isinstance(came, AWSResponse) and came.status_code in (200, 206)


def _quoted(key: str) -> str:
    return quote(key, safe="/~")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
