"""GETs by the shorter way: the same requests as botocore's, and what comes of them is dealt with by botocore."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.exceptions import ClientError, ConnectionClosedError, ParamValidationError, ReadTimeoutError

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.objects import READ_ATTEMPTS, read_bytes
from glue_jobs.aws.quick_gets import get_object
from glue_jobs.core.errors import TableBlocked
from tests.aws.faults import RawBody, answer, s3_error

KEYS = ["t/a.parquet", "a b/c=d+é~'(x)*!&;,$@:日/..//z.parquet", "/k", "%2F"]


@dataclass
class Seen:
    """What a client sends, and what it gets instead of real answers. ways: of each GET, whether botocore made the request."""

    client: Any
    sent: list[Any] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        session = self.client._endpoint.http_session
        self._real = session.send
        session.send = self._send
        self.client.meta.events.register("before-parameter-build.s3.GetObject", lambda **_: self.ways.append("botocore's"))

    def _send(self, request: Any) -> Any:
        self.sent.append(request)
        given = self.answers.pop(0) if self.answers else None
        if isinstance(given, Exception):
            raise given
        return self._real(request) if given is None else given


@pytest.fixture
def seen(s3: Any, bucket: str) -> Seen:
    """Of a client that has read from the bucket once."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"abc")
    assert read_bytes(s3, bucket, "k") == b"abc"
    return Seen(s3)


def test_only_the_first_get_from_a_bucket_is_botocores(s3: Any, bucket: str) -> None:
    """Its own request shows where the bucket is."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"abc")
    seen = Seen(s3)

    assert [read_bytes(s3, bucket, "k") for _ in range(3)] == [b"abc"] * 3
    assert (seen.ways, len(seen.sent)) == (["botocore's"], 3)


def signed(request: Any) -> dict[str, str]:
    """What a request says, without what is random in it."""
    headers = {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    return {name: value for name, value in headers.items() if not name.startswith("amz-sdk-")} | {"": f"{request.method} {request.url}"}


@pytest.mark.parametrize("asked", [{}, {"Range": "bytes=1-2"}, {"IfMatch": '"e"', "VersionId": "v+/~1"}])
@pytest.mark.parametrize("place", [{}, {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, {"AWS_SESSION_TOKEN": "t/+="}])
@pytest.mark.parametrize("bucket", ["a-bucket", "a.bucket"])
@pytest.mark.parametrize("key", KEYS)
def test_the_request_is_botocores_to_the_signature(
    session: Any, bucket: str, key: str, place: dict[str, str], asked: dict[str, str]
) -> None:
    """With a bucket in the host's name and in the path, for any key; within one second, of which the signature is."""
    given = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    s3 = make_clients({**given, **place}).s3
    sent: list[dict[str, str]] = []

    def take(request: Any, **_: Any) -> Any:
        sent.append(signed(request))
        return answer(200, b"x", **{"Content-Length": "1"})

    s3.meta.events.register("before-send.s3.GetObject", take)
    request = {"Bucket": bucket, "Key": key, **asked}
    get_object(s3, {"Bucket": bucket, "Key": "other"})
    while not sent[1:] or sent[-1]["x-amz-date"] != sent[-2]["x-amz-date"]:
        del sent[:]
        assert get_object(s3, request).read() == s3.get_object(**request)["Body"].read() == b"x"

    assert sent[-2] == sent[-1]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (s3_error(404, "NoSuchKey"), "raw-file-gone"),
        (s3_error(412, "PreconditionFailed"), "raw-file-changed"),
        (s3_error(416, "InvalidRange"), "raw-file-changed"),
    ],
)
def test_a_refusal_is_botocores_error_and_is_asked_once(seen: Seen, s3: Any, bucket: str, given: Any, code: str) -> None:
    """The answer is not asked for again to be read."""
    seen.answers = [given]

    with pytest.raises(TableBlocked) as caught:
        read_bytes(s3, bucket, "k")

    assert (caught.value.code, len(seen.sent)) == (code, 1)
    assert isinstance(caught.value.__cause__, ClientError)


def test_access_denied_is_raised_as_it_is(seen: Seen, s3: Any, bucket: str) -> None:
    """The next GET is as quick as before."""
    seen.answers = [s3_error(403, "AccessDenied")]

    with pytest.raises(ClientError, match="AccessDenied"):
        read_bytes(s3, bucket, "k")

    assert read_bytes(s3, bucket, "k") == b"abc"
    assert (seen.ways, len(seen.sent)) == (["botocore's"], 2)


@pytest.mark.parametrize(
    "given", [lambda: s3_error(503, "SlowDown"), lambda: s3_error(500, "InternalError"), lambda: ConnectionClosedError(endpoint_url="u")]
)
def test_what_passes_is_sent_again_by_botocore(seen: Seen, s3: Any, bucket: str, given: Callable[[], Any]) -> None:
    """Once, as its own attempt would be."""
    seen.answers = [given()]

    assert (read_bytes(s3, bucket, "k"), len(seen.sent), seen.ways) == (b"abc", 2, ["botocore's"])


def test_what_does_not_pass_is_given_up_as_by_botocore(environment: dict[str, str], session: Any, bucket: str) -> None:
    """The first attempt counts."""
    clients = make_clients(environment)
    clients._session, clients.max_attempts = session, 2
    clients.s3.put_object(Bucket=bucket, Key="k", Body=b"abc")
    assert read_bytes(clients.s3, bucket, "k") == b"abc"
    seen = Seen(clients.s3)
    seen.answers = [s3_error(503, "SlowDown") for _ in range(10)]

    with pytest.raises(ClientError, match="SlowDown"):
        read_bytes(clients.s3, bucket, "k")

    own = Seen(clients.s3)
    own.answers = [s3_error(503, "SlowDown") for _ in range(10)]
    with pytest.raises(ClientError, match="SlowDown"):
        clients.s3.get_object(Bucket=bucket, Key="k")
    assert len(seen.sent) == len(own.sent) > 1


class BrokenBody(RawBody):
    """A body that breaks off."""

    def read(self, *_: Any, **__: Any) -> bytes:
        raise ReadTimeoutError(endpoint_url="http://fake/")


def broken() -> Any:
    out = answer(200, b"", **{"Content-Length": "3"})
    out.raw = BrokenBody()
    return out


def test_a_body_that_breaks_off_or_is_short_is_asked_for_again(seen: Seen, s3: Any, bucket: str) -> None:
    """As after botocore's GET, a bounded number of times."""
    seen.answers = [broken(), answer(200, b"ab", **{"Content-Length": "3"})]
    assert (read_bytes(s3, bucket, "k"), len(seen.sent), seen.ways) == (b"abc", 3, [])

    seen.answers = [broken() for _ in range(READ_ATTEMPTS)]
    with pytest.raises(ReadTimeoutError):
        read_bytes(s3, bucket, "k")


def test_each_thread_gets_its_own_answer(seen: Seen, s3: Any, bucket: str) -> None:
    """Some keys are there and some are not, at the same time."""
    together = threading.Barrier(8)

    def read(number: int) -> str:
        together.wait(timeout=10)
        try:
            return read_bytes(s3, bucket, "k" if number % 2 else f"none-{number}").decode()
        except TableBlocked as error:
            return error.message

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, range(8)))

    assert [text == "abc" for text in found] == [bool(number % 2) for number in range(8)]
    assert [f"none-{number}" in text for number, text in enumerate(found)] == [not number % 2 for number in range(8)]


def test_a_bucket_elsewhere_is_learned_after_the_redirection(seen: Seen, s3: Any, bucket: str) -> None:
    """botocore is told the region, signs for it, and so do later GETs."""
    seen.answers = [answer(301, "<Error><Code>PermanentRedirect</Code></Error>", **{"x-amz-bucket-region": "eu-north-1"})]

    assert [read_bytes(s3, bucket, "k") for _ in range(2)] == [b"abc"] * 2
    assert ["/eu-north-1/s3/" in signed(request)["authorization"] for request in seen.sent if request.method == "GET"] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("what", ["a header that is not known", "another signature", "another key", "another host"])
def test_requests_of_another_kind_are_left_to_botocore(s3: Any, bucket: str, what: str) -> None:
    """As an express bucket's, or those that somebody's handler changed."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"abc")

    def change(request: Any, **_: Any) -> None:
        if what == "a header that is not known":
            request.headers["x-amz-s3session-token"] = "t"
        elif what == "another host":
            request.headers["host"] = "other"
        elif what == "another key":
            request.url += "2"

    s3.meta.events.register_first("before-sign.s3.GetObject", change)
    if what == "another signature":
        s3.meta.events.register_first("choose-signer.s3.GetObject", lambda **_: UNSIGNED)
    s3.meta.events.register_last("before-send.s3.GetObject", lambda **_: answer(200, b"abc", **{"Content-Length": "3"}))
    seen = Seen(s3)

    assert [read_bytes(s3, bucket, "k") for _ in range(2)] == [b"abc"] * 2
    assert seen.ways == ["botocore's"] * 2


def test_a_request_that_names_its_host_is_of_the_usual_kind(s3: Any, bucket: str) -> None:
    """As botocore's do where awscrt is installed."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"abc")

    def name_host(request: Any, **_: Any) -> None:
        request.headers["host"] = s3.meta.endpoint_url.removeprefix("http://")

    s3.meta.events.register_first("before-sign.s3.GetObject", name_host)
    seen = Seen(s3)

    assert [read_bytes(s3, bucket, "k") for _ in range(2)] == [b"abc"] * 2
    assert seen.ways == ["botocore's"]


def test_what_is_no_key_is_refused_as_by_botocore(seen: Seen, s3: Any, bucket: str) -> None:
    """The address without a key is that of the bucket, whose listing would be taken for an object."""
    with pytest.raises(ParamValidationError, match="Key"):
        read_bytes(s3, bucket, "")

    assert seen.sent == []


def test_calls_that_need_no_retry_earn_the_quota_for_retries(seen: Seen, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore has quota for about 100 retries of throttled calls, and gives some back for each call that was not."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    for _ in range(150):
        seen.answers = [s3_error(503, "SlowDown"), s3_error(503, "SlowDown")]
        assert [read_bytes(s3, bucket, "k") for _ in range(6)] == [b"abc"] * 6


@pytest.mark.parametrize("lacks", ["credentials", "connections"])
def test_a_client_that_lacks_what_it_takes_goes_botocores_way(
    environment: dict[str, str], session: Any, bucket: str, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of botocore may keep them elsewhere."""
    clients = make_clients(environment)
    clients._session, real = session, clients._client

    def without(service: str) -> Any:
        client = real(service)
        if lacks == "credentials":
            client._request_signer = None
        else:
            client._endpoint._send = client._endpoint.http_session.send
            del client._endpoint.http_session
        return client

    monkeypatch.setattr(clients, "_client", without)
    clients.s3.put_object(Bucket=bucket, Key="k", Body=b"abc")
    ways: list[str] = []
    clients.s3.meta.events.register("before-parameter-build.s3.GetObject", lambda **_: ways.append("botocore's"))

    assert [read_bytes(clients.s3, bucket, "k") for _ in range(2)] == [b"abc"] * 2
    assert len(ways) == 2
