"""Hiding many keys of which some fail: only those are sent again, the others are hidden, and repeating it harms nothing."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape, unescape

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.objects import HIDE_ATTEMPTS, HIDE_PAGE_KEYS, hide
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater
from tests.aws.faults import answer, s3_error

COUNTS = [0, 1, 249, 250, 251, 1000, 1001, 2500]
BUSY, DENIED = ["SlowDown", "InternalError", "ServiceUnavailable"], "AccessDenied"
Fault = Callable[[str, int], str]  # given a key and how often it was sent before: the code it fails with, or ''


class DeletingBucket:
    """A versioned bucket as DeleteObjects sees it, put where botocore hands requests to HTTP: each key has one data version.

    markers: how many delete markers each key has. pages: the keys of each request that was let in. refusals: answers to the next
    requests as a whole, nothing done.
    """

    def __init__(self, s3: Any, keys: Iterable[str], fault: Fault = lambda key, before: "") -> None:
        self.data = dict.fromkeys(keys, 1)
        self.markers: Counter[str] = Counter()
        self.pages: list[list[str]] = []
        self.refusals: list[Any] = []
        self._sent: Counter[str] = Counter()
        self._fault, self._lock = fault, threading.Lock()
        s3.meta.events.register("before-send.s3.DeleteObjects", self._answer)

    def _answer(self, request: Any, **_: Any) -> Any:
        body: bytes = request.body
        assert b"<VersionId>" not in body, "a data version must never be deleted"
        keys = [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode())]
        with self._lock:
            if self.refusals:
                return self.refusals.pop()
            errors = "".join(self._delete(key) for key in keys)
            self.pages.append(keys)
        return answer(200, f'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>{errors}</DeleteResult>')

    def _delete(self, key: str) -> str:
        code = self._fault(key, self._sent[key])
        self._sent[key] += 1
        if not code:
            self.markers[key] += 1
            return ""
        return f"<Error><Key>{escape(key)}</Key><Code>{code}</Code><Message>injected</Message></Error>"

    @property
    def sent(self) -> Counter[str]:
        """How often each key was sent."""
        return Counter(self._sent)

    @property
    def hidden(self) -> set[str]:
        return {key for key, count in self.markers.items() if count}


def keys_of(count: int) -> list[str]:
    """Keys such as a table has; some need XML's escapes."""
    return [f"lake/shop/t/p=a&b<{number % 7}>/{number:06}.parquet" for number in range(count)]


def some_of(keys: Sequence[str], which: str) -> set[str]:
    """The keys that fail."""
    chosen = {"first": keys[:1], "last": keys[-1:], "a third": keys[::3], "all": keys, "none": keys[:0]}[which]
    return set(chosen)


def in_pages(count: int) -> int:
    """How many requests that many keys need."""
    return -(-count // HIDE_PAGE_KEYS)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("which", ["none", "first", "last", "a third", "all"])
def test_busy_keys_alone_are_sent_again(s3: Any, pauses: list[float], count: int, which: str) -> None:
    """Each with one of S3's words for busy, once or twice; every key is hidden once, and the rest of its page is sent once."""
    keys = keys_of(count)
    places = {key: place for place, key in enumerate(sorted(some_of(keys, which)))}
    failing = {key: 1 + place % 2 for key, place in places.items()}
    bucket = DeletingBucket(s3, keys, lambda key, before: BUSY[places[key] % 3] if before < failing.get(key, 0) else "")

    hide(s3, "bucket", keys, pause=pauses.append)

    assert bucket.markers == Counter(keys)
    assert bucket.sent == Counter({key: 1 + failing.get(key, 0) for key in keys})
    assert max(map(len, bucket.pages), default=0) <= HIDE_PAGE_KEYS
    if which == "none":
        assert len(bucket.pages) == in_pages(count)


@pytest.mark.parametrize("count", COUNTS[1:])
@pytest.mark.parametrize("which", ["first", "last", "a third", "all"])
def test_denied_keys_are_named_and_all_others_hidden(s3: Any, pauses: list[float], count: int, which: str) -> None:
    """Each is sent once, because asking again would not help; the pages after a denied key are hidden too."""
    keys = keys_of(count)
    denied = some_of(keys, which)
    bucket = DeletingBucket(s3, keys, lambda key, before: DENIED if key in denied else "")

    with pytest.raises(ConfigurationError) as caught:
        hide(s3, "bucket", keys, pause=pauses.append)

    assert bucket.hidden == set(keys) - denied
    assert (set(bucket.sent.values()), pauses) == ({1}, [])
    assert caught.value.code == "access-denied"
    assert f"{len(denied)} superseded files" in caught.value.message
    assert any(f"{key} (AccessDenied)" in caught.value.message for key in denied)


@pytest.mark.parametrize("count", [2, 251, 1001])
def test_busy_and_denied_and_unknown_at_once(s3: Any, pauses: list[float], count: int) -> None:
    """The busy ones get through meanwhile; the error is the one that a person must act on."""
    keys = keys_of(count)
    busy, denied = set(keys[: count // 2]), {keys[-1]}
    bucket = DeletingBucket(s3, keys, lambda key, before: DENIED if key in denied else "SlowDown" if key in busy and not before else "")

    with pytest.raises(ConfigurationError, match=re.escape(f"1 superseded files in s3://bucket could not be hidden: {keys[-1]}")):
        hide(s3, "bucket", keys, pause=pauses.append)

    assert bucket.hidden == set(keys) - denied
    assert bucket.sent == Counter({key: 2 if key in busy else 1 for key in keys})


@pytest.mark.parametrize("count", [1, 251, 2500])
def test_keys_that_stay_busy_are_sent_a_bounded_number_of_times(s3: Any, pauses: list[float], count: int) -> None:
    """Then it is for a later run, which finds only these left; all others were sent once and are hidden."""
    keys = keys_of(count)
    stuck = some_of(keys, "last")
    bucket = DeletingBucket(s3, keys, lambda key, before: "InternalError" if key in stuck and before < HIDE_ATTEMPTS else "")

    with pytest.raises(RetryLater, match=r"1 superseded files .*\(InternalError\)"):
        hide(s3, "bucket", keys, pause=pauses.append)

    assert bucket.hidden == set(keys) - stuck
    assert bucket.sent == Counter({key: HIDE_ATTEMPTS if key in stuck else 1 for key in keys})
    assert pauses == sorted(pauses)
    hide(s3, "bucket", sorted(stuck), pause=pauses.append)
    assert bucket.markers == Counter(keys)


@pytest.mark.parametrize("status", [500, 503])
def test_a_request_that_fails_whole_is_sent_whole_again(s3: Any, pauses: list[float], status: int) -> None:
    """A 503 is not a 200 with errors inside: botocore repeats that page, and no other."""
    keys = keys_of(251)
    bucket = DeletingBucket(s3, keys)
    bucket.refusals = [s3_error(status, "SlowDown" if status == 503 else "InternalError")]

    hide(s3, "bucket", keys, pause=pauses.append)

    assert (bucket.markers, len(bucket.pages), pauses) == (Counter(keys), 2, [])


@pytest.mark.parametrize("count", COUNTS[1:])
def test_a_page_denied_whole_hides_the_other_pages(s3: Any, pauses: list[float], count: int) -> None:
    """The first request gets 403; what the others did stands, and hiding everything again ends well, with markers doubled."""
    keys = keys_of(count)
    bucket = DeletingBucket(s3, keys)
    bucket.refusals = [s3_error(403, "AccessDenied")]

    with pytest.raises(ClientError, match="AccessDenied"):
        hide(s3, "bucket", keys, pause=pauses.append)
    assert len(bucket.pages) == in_pages(count) - 1
    hide(s3, "bucket", keys, pause=pauses.append)

    assert bucket.hidden == set(keys)
    assert set(bucket.markers.values()) <= {1, 2}


def test_an_unknown_code_is_named_and_the_rest_is_hidden(s3: Any, pauses: list[float]) -> None:
    """It is no permission and no load: a person reads it."""
    keys = keys_of(1001)
    bucket = DeletingBucket(s3, keys, lambda key, before: "Odd" if key == keys[500] else "")

    with pytest.raises(DmslakeError, match=re.escape(f"{keys[500]} (Odd)")) as caught:
        hide(s3, "bucket", keys, pause=pauses.append)

    assert (caught.value.code, bucket.hidden) == ("not-hidden", set(keys) - {keys[500]})


def test_doubled_markers_leave_the_data(s3: Any, bucket: str) -> None:
    """Against the server: hidden three times, once by a person; every data version is there, and readable."""
    keys = keys_of(251)
    for key in keys[::50]:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    hide(s3, bucket, keys)
    s3.delete_object(Bucket=bucket, Key=keys[0])

    hide(s3, bucket, keys)

    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    found = s3.list_object_versions(Bucket=bucket, Prefix="lake/")
    assert sorted(entry["Key"] for entry in found["Versions"]) == keys[::50]
    assert Counter(entry["Key"] for entry in found["DeleteMarkers"])[keys[0]] == 3
    for entry in found["Versions"]:
        got = s3.get_object(Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"])
        assert got["Body"].read() == entry["Key"].encode()
