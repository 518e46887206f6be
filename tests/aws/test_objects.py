"""Objects: listing, reading, versions, hiding."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from glue_jobs.aws.objects import READ_ATTEMPTS, hide, list_files, read_bytes, write_bytes
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater, TableBlocked
from tests.aws.faults import Injected, RawBody, answer, lost_answer, s3_error
from tests.aws.visible import exists


def put(s3: Any, bucket: str, *keys: str, body: bytes = b"x") -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=body)


def small_pages(s3: Any, *operations: str) -> None:
    """Make S3 answer with two entries a page, so that paging is needed."""
    for operation in operations:
        s3.meta.events.register(f"before-parameter-build.s3.{operation}", lambda params, **_: params.update(MaxKeys=2))


def delete_result(*errors: tuple[str, str]) -> Any:
    """A 200 of DeleteObjects with errors inside."""
    inside = "".join(f"<Error><Key>{key}</Key><Code>{code}</Code><Message>m</Message></Error>" for key, code in errors)
    return answer(200, f'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>{inside}</DeleteResult>')


def test_a_listing_is_complete_over_its_pages(s3: Any, bucket: str) -> None:
    """In the order of keys, below the prefix only."""
    put(s3, bucket, *(f"t/{number}" for number in range(5)), "u/1")
    small_pages(s3, "ListObjectsV2")
    sent = Injected(s3, "ListObjectsV2")

    keys = [file.key for file in list_files(s3, bucket, "t/")]

    assert (keys, sent.sent) == ([f"t/{number}" for number in range(5)], 3)


def test_a_listing_begins_after_a_key(s3: Any, bucket: str) -> None:
    """The key itself is not in it."""
    put(s3, bucket, "t/1", "t/2", "t/3")

    assert [file.key for file in list_files(s3, bucket, "t/", start_after="t/2")] == ["t/3"]


def test_a_listed_file_has_size_bare_etag_and_aware_time(s3: Any, bucket: str) -> None:
    """The ETag is without quotes, as records have it; the time is in UTC."""
    put(s3, bucket, "t/1", body=b"abc")

    (file,) = list_files(s3, bucket, "t/")

    assert (file.size, file.etag, file.modified.utcoffset()) == (3, "900150983cd24fb0d6963f7d28e17f72", timedelta(0))


def test_unusual_characters_in_keys_come_back(s3: Any, bucket: str) -> None:
    """Keys travel URL-encoded in listings."""
    key = "t/año=2024/a b+c%2F&é日本.parquet"
    put(s3, bucket, key)

    assert ([file.key for file in list_files(s3, bucket, "t/")], key_versions(s3, bucket, key).visible) == ([key], True)


def test_an_empty_prefix_lists_nothing(s3: Any, bucket: str) -> None:
    """No error where there is no object."""
    assert list(list_files(s3, bucket, "none/")) == []


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [(None, None, b"0123456789"), (2, 5, b"234"), (7, None, b"789"), (None, 3, b"012"), (8, 100, b"89"), (4, 4, b""), (0, 0, b"")],
)
def test_a_range_is_from_start_up_to_but_without_stop(s3: Any, bucket: str, start: int | None, stop: int | None, expected: bytes) -> None:
    """As in a Python slice."""
    put(s3, bucket, "k", body=b"0123456789")

    assert read_bytes(s3, bucket, "k", start=start, stop=stop) == expected


def test_a_version_is_read_under_a_delete_marker(s3: Any, bucket: str) -> None:
    """As-of reads need hidden files."""
    put(s3, bucket, "k", body=b"data")
    version = key_versions(s3, bucket, "k").data[0].version_id
    hide(s3, bucket, ["k"])

    assert read_bytes(s3, bucket, "k", version=version) == b"data"


def test_a_file_that_is_gone_blocks_the_table(s3: Any, bucket: str) -> None:
    """The error names the file."""
    with pytest.raises(TableBlocked, match=f"s3://{bucket}/k") as caught:
        read_bytes(s3, bucket, "k")

    assert caught.value.code == "raw-file-gone"


def test_a_version_that_is_gone_blocks_the_table(s3: Any, bucket: str) -> None:
    """It may have expired."""
    put(s3, bucket, "k")
    Injected(s3, "GetObject", s3_error(404, "NoSuchVersion"))

    with pytest.raises(TableBlocked) as caught:
        read_bytes(s3, bucket, "k", version="v")

    assert caught.value.code == "raw-file-gone"


def test_a_file_that_changed_since_the_listing_blocks_the_table(s3: Any, bucket: str) -> None:
    """The ETag of the listing doesn't match any more."""
    put(s3, bucket, "k", body=b"1")
    (listed,) = list_files(s3, bucket, "k")
    put(s3, bucket, "k", body=b"2")

    with pytest.raises(TableBlocked, match=listed.etag) as caught:
        read_bytes(s3, bucket, "k", etag=listed.etag)

    assert caught.value.code == "raw-file-changed"


def test_a_range_behind_the_end_means_a_file_that_changed(s3: Any, bucket: str) -> None:
    """It was larger when it was listed."""
    put(s3, bucket, "k", body=b"1")

    with pytest.raises(TableBlocked) as caught:
        read_bytes(s3, bucket, "k", start=10, stop=20)

    assert caught.value.code == "raw-file-changed"


def test_the_file_as_listed_is_read(s3: Any, bucket: str) -> None:
    """The condition holds where nothing changed."""
    put(s3, bucket, "k", body=b"1")
    (listed,) = list_files(s3, bucket, "k")

    assert read_bytes(s3, bucket, "k", etag=listed.etag) == b"1"


def test_another_refusal_of_a_read_is_raised_as_it_is(s3: Any, bucket: str) -> None:
    """Translation is the edge's work."""
    Injected(s3, "GetObject", s3_error(403, "AccessDenied"))

    with pytest.raises(ClientError, match="AccessDenied"):
        read_bytes(s3, bucket, "k")


class BrokenBody(RawBody):
    """A body that breaks off."""

    def read(self, *_: Any, **__: Any) -> bytes:
        raise ReadTimeoutError(endpoint_url="http://fake/")


def broken_answer(_: Any) -> Any:
    out = answer(200, b"", **{"Content-Length": "3"})
    out.raw = BrokenBody()
    return out


def cut_answer(_: Any) -> Any:
    return answer(200, b"ab", **{"Content-Length": "3"})


def test_a_body_that_breaks_off_is_asked_for_again(s3: Any, bucket: str) -> None:
    """botocore's own retries end where the body begins: a time-out in it, then a body that is too short."""
    put(s3, bucket, "k", body=b"abc")
    sent = Injected(s3, "GetObject", broken_answer, cut_answer)

    assert (read_bytes(s3, bucket, "k"), sent.sent) == (b"abc", 3)


def test_a_body_that_always_breaks_off_is_an_error(s3: Any, bucket: str) -> None:
    """After a bounded number of attempts."""
    sent = Injected(s3, "GetObject", *[broken_answer] * READ_ATTEMPTS)

    with pytest.raises(ReadTimeoutError):
        read_bytes(s3, bucket, "k")

    assert sent.sent == READ_ATTEMPTS


def test_what_is_written_is_read(s3: Any, bucket: str) -> None:
    """With its content type."""
    write_bytes(s3, bucket, "k", b"{}", "application/json")

    assert (read_bytes(s3, bucket, "k"), s3.head_object(Bucket=bucket, Key="k")["ContentType"]) == (b"{}", "application/json")


def test_versions_are_those_of_exactly_the_key_over_pages(s3: Any, bucket: str) -> None:
    """Keys that begin with it don't count; newest first."""
    put(s3, bucket, "k", body=b"1")
    put(s3, bucket, "k", body=b"22")
    put(s3, bucket, "k", body=b"333")
    put(s3, bucket, "k2", "k3", "k4")
    small_pages(s3, "ListObjectVersions")
    sent = Injected(s3, "ListObjectVersions")

    found = key_versions(s3, bucket, "k")

    assert ([entry.size for entry in found.data], found.visible, sent.sent) == ([3, 2, 1], True, 2)


def test_a_hidden_key_has_its_data_and_is_not_visible(s3: Any, bucket: str) -> None:
    """The delete marker is no data."""
    put(s3, bucket, "k", body=b"abc")
    hide(s3, bucket, ["k"])

    found = key_versions(s3, bucket, "k")

    assert (found.visible, [(entry.size, entry.etag) for entry in found.data]) == (False, [(3, "900150983cd24fb0d6963f7d28e17f72")])


def test_a_key_that_never_was_has_no_versions(s3: Any, bucket: str) -> None:
    """A pending upload counts as that."""
    s3.create_multipart_upload(Bucket=bucket, Key="k")

    assert (key_versions(s3, bucket, "k").data, key_versions(s3, bucket, "k").visible) == ((), False)


def test_hiding_goes_by_pages_of_250_and_keeps_the_versions(s3: Any, bucket: str) -> None:
    """Exactly the given keys are hidden; most of these never were, which is no error."""
    keys = [f"t/{number:04}" for number in range(501)]
    put(s3, bucket, keys[0], keys[250], keys[500], "t/other")
    sent = Injected(s3, "DeleteObjects")

    hide(s3, bucket, keys)

    assert ([file.key for file in list_files(s3, bucket, "t/")], sent.sent) == (["t/other"], 3)
    assert len(key_versions(s3, bucket, keys[500]).data) == 1


def test_hiding_twice_is_harmless(s3: Any, bucket: str) -> None:
    """converge may be redone."""
    put(s3, bucket, "k")
    hide(s3, bucket, ["k"])

    hide(s3, bucket, ["k"])

    assert (len(key_versions(s3, bucket, "k").data), exists(s3, bucket, "k")) == (1, False)


def test_hiding_nothing_asks_nothing(s3: Any, bucket: str) -> None:
    """S3 refuses an empty list."""
    sent = Injected(s3, "DeleteObjects")

    hide(s3, bucket, [])

    assert sent.sent == 0


def test_only_the_keys_that_failed_inside_a_200_are_hidden_again(s3: Any, bucket: str, pauses: list[float]) -> None:
    """After a pause, and only they."""
    put(s3, bucket, "a", "b")
    sent = Injected(s3, "DeleteObjects", delete_result(("b", "SlowDown")))

    hide(s3, bucket, ["a", "b"], pause=pauses.append)

    second = sent.requests[1].body.decode()
    assert (sent.sent, len(pauses), "<Key>b</Key>" in second, "<Key>a</Key>" in second) == (2, 1, True, False)
    assert not exists(s3, bucket, "b")


def test_keys_that_stay_busy_mean_retry_later(s3: Any, bucket: str, pauses: list[float]) -> None:
    """After the given number of attempts; the error names keys and codes."""
    sent = Injected(s3, "DeleteObjects", *[delete_result(("a", "InternalError"))] * 3)

    with pytest.raises(RetryLater, match=r"1 superseded files .*: a \(InternalError\)"):
        hide(s3, bucket, ["a", "b"], pause=pauses.append, attempts=3)

    assert (sent.sent, pauses) == (3, sorted(pauses))


def test_a_denied_key_is_not_tried_again(s3: Any, bucket: str, pauses: list[float]) -> None:
    """The way out is a permission."""
    sent = Injected(s3, "DeleteObjects", delete_result(("a", "AccessDenied")))

    with pytest.raises(ConfigurationError, match=r"a \(AccessDenied\)[^$]*s3:DeleteObject"):
        hide(s3, bucket, ["a", "b"], pause=pauses.append)

    assert (sent.sent, pauses) == (1, [])


def test_a_denied_key_is_still_known_after_others_were_tried_again(s3: Any, bucket: str, pauses: list[float]) -> None:
    """The second answer, all well, doesn't make one forget the first."""
    put(s3, bucket, "b")
    Injected(s3, "DeleteObjects", delete_result(("a", "AccessDenied"), ("b", "SlowDown")))

    with pytest.raises(ConfigurationError, match=r"1 superseded files"):
        hide(s3, bucket, ["a", "b"], pause=pauses.append)

    assert not exists(s3, bucket, "b")


def test_an_unknown_code_is_neither_busy_nor_denied(s3: Any, bucket: str, pauses: list[float]) -> None:
    """It is shown as it is."""
    Injected(s3, "DeleteObjects", delete_result(("a", "Odd")))

    with pytest.raises(DmslakeError, match=r"a \(Odd\)") as caught:
        hide(s3, bucket, ["a"], pause=pauses.append)

    assert caught.value.code == "not-hidden"


def test_a_lost_answer_to_a_hide_is_sent_again(s3: Any, bucket: str) -> None:
    """A second marker on the key changes nothing."""
    put(s3, bucket, "k")
    sent = Injected(s3, "DeleteObjects", lost_answer)

    hide(s3, bucket, ["k"])

    assert (sent.sent, exists(s3, bucket, "k"), len(key_versions(s3, bucket, "k").data)) == (2, False, 1)
