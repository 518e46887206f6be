"""Bytes of other objects in a multipart upload: S3 copies them where it can, and else they are read and sent."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from glue_jobs.aws import multipart_writer
from glue_jobs.aws.copies import ObjectRange, Source, copy_part
from glue_jobs.aws.multipart_writer import MultipartWriter
from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.uploads import complete_upload, list_open_uploads
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import LeaseLost
from tests.aws.faults import Injected, s3_error

MIB = 1024 * 1024
DATA = bytes(range(251)) * (40 * MIB // 251)
START, STOP = 1000, len(DATA) - 1000


@pytest.fixture
def reads() -> list[tuple[int, int]]:
    """What was read of the object, and so passed through our memory."""
    return []


@pytest.fixture
def source(s3: Any, bucket: str, reads: list[tuple[int, int]]) -> ObjectRange:
    """All of an object but its ends."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="a b=1%2F+é/old", Body=DATA)
    (version,) = key_versions(s3, bucket, "a b=1%2F+é/old").data

    @contextmanager
    def read(start: int, stop: int) -> Iterator[list[bytes]]:
        reads.append((start, stop))
        data = read_bytes(s3, bucket, "a b=1%2F+é/old", version.version_id, start, stop, version.etag)
        yield [data[: len(data) // 3], data[len(data) // 3 :]]

    return ObjectRange(Source(bucket, "a b=1%2F+é/old", version.version_id, version.etag), START, STOP, read)


def finished(s3: Any, bucket: str, writer: MultipartWriter) -> bytes:
    """The object that comes of it, which has the size and the ETag that were foretold."""
    made = writer.finish()
    complete_upload(s3, bucket, "k", made.upload, look_first=False)
    (version,) = key_versions(s3, bucket, "k").data
    assert (version.size, version.etag) == (made.size_bytes, made.etag)
    return read_bytes(s3, bucket, "k")


def test_s3_copies_what_it_has(s3: Any, bucket: str, source: ObjectRange, reads: list[Any]) -> None:
    """In parts of at most 16 MiB; what is new comes before and behind them."""
    copied = Injected(s3, "UploadPartCopy")
    writer = MultipartWriter(s3, bucket, "k")
    writer.write(b"n" * 6 * MIB)

    assert writer.copy(source) == STOP - START
    assert writer.tell() == 6 * MIB + STOP - START
    writer.write(b"end")

    assert finished(s3, bucket, writer) == b"n" * 6 * MIB + DATA[START:STOP] + b"end"
    assert reads == []
    assert copied.sent == 3


def test_a_writer_does_not_wait_for_copies(s3: Any, bucket: str, source: ObjectRange, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than threads take no memory while they wait: rows are encoded meanwhile."""
    go_on = threading.Event()

    def slow_copy(*given: Any) -> Any:
        assert go_on.wait(60)
        return copy_part(*given)

    monkeypatch.setattr(multipart_writer, "COPIED_BYTES", 6 * MIB)
    monkeypatch.setattr(multipart_writer, "copy_part", slow_copy)
    writer = MultipartWriter(s3, bucket, "k")

    came = writer.copy(source)
    writer.write(b"end")
    go_on.set()

    assert came == STOP - START
    assert finished(s3, bucket, writer) == DATA[START:STOP] + b"end"


def test_an_abort_drops_the_copies_that_wait(s3: Any, bucket: str, source: ObjectRange, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those under way are waited for: one that came behind the abort would stay, and cost."""
    begun, go_on = threading.Semaphore(0), threading.Event()
    ended: list[int] = []

    def slow_copy(*given: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        part = copy_part(*given)
        ended.append(part.number)
        return part

    monkeypatch.setattr(multipart_writer, "COPIED_BYTES", 6 * MIB)
    monkeypatch.setattr(multipart_writer, "copy_part", slow_copy)
    writer = MultipartWriter(s3, bucket, "k")
    writer.copy(source)
    for _ in range(2):
        assert begun.acquire(timeout=60)
    aborted = Injected(s3, "AbortMultipartUpload", lambda _: ended.append(0))

    aborting = threading.Thread(target=writer.abort)
    aborting.start()
    go_on.set()
    aborting.join(60)

    assert not aborting.is_alive()
    assert aborted.sent == 1
    assert ended[-1] == 0
    assert list(list_open_uploads(s3, bucket, "")) == []


def test_a_part_that_would_be_too_small_is_filled_up(s3: Any, bucket: str, source: ObjectRange, reads: list[Any]) -> None:
    """S3 wants 5 MiB of each but the last; it says so only when the upload is completed."""
    writer = MultipartWriter(s3, bucket, "k")
    writer.write(b"PAR1")

    writer.copy(source)

    assert finished(s3, bucket, writer) == b"PAR1" + DATA[START:STOP]
    assert reads == [(START, START + 5 * MIB - 4)]


@pytest.mark.parametrize("before", [b"", b"PAR1"])
def test_what_is_too_small_for_a_part_is_read(s3: Any, bucket: str, source: ObjectRange, reads: list[Any], before: bytes) -> None:
    few = ObjectRange(source.source, 0, 5 * MIB - 1, source.read)
    copied = Injected(s3, "UploadPartCopy")
    writer = MultipartWriter(s3, bucket, "k")
    writer.write(before)

    assert writer.copy(few) == 5 * MIB - 1

    assert finished(s3, bucket, writer) == before + DATA[: 5 * MIB - 1]
    assert reads == [(0, 5 * MIB - 1)]
    assert copied.sent == 0


def test_new_bytes_beside_copies_are_compared_by_their_md5(s3: Any, bucket: str, source: ObjectRange) -> None:
    """The upload names no checksum: MinIO would copy nothing into it."""
    create, part = Injected(s3, "CreateMultipartUpload"), Injected(s3, "UploadPart")
    writer = MultipartWriter(s3, bucket, "k")
    writer.copy(source)
    writer.write(b"new")

    finished(s3, bucket, writer)

    def text(value: Any) -> str:
        return value.decode() if isinstance(value, bytes) else str(value)

    (sent,) = part.requests
    assert "x-amz-checksum-algorithm" not in create.requests[0].headers
    assert text(sent.headers["Content-MD5"]) == base64.b64encode(hashlib.md5(b"new").digest()).decode()
    assert "content-md5" in text(sent.headers["Authorization"])


def test_an_upload_that_names_a_checksum_takes_no_copies(s3: Any, bucket: str, source: ObjectRange, reads: list[Any]) -> None:
    """Its first part was new."""
    copied = Injected(s3, "UploadPartCopy")
    writer = MultipartWriter(s3, bucket, "k")
    writer.write(b"n" * 9 * MIB)

    writer.copy(source)

    assert finished(s3, bucket, writer) == b"n" * 9 * MIB + DATA[START:STOP]
    assert reads == [(START, STOP)]
    assert copied.sent == 0


@pytest.mark.parametrize("error", [s3_error(403, "AccessDenied"), s3_error(501, "NotImplemented")])
def test_what_s3_does_not_copy_is_read_and_sent(s3: Any, bucket: str, source: ObjectRange, reads: list[Any], error: Any) -> None:
    """And it is not asked for another part of the file."""
    copied = Injected(s3, "UploadPartCopy", error)
    writer = MultipartWriter(s3, bucket, "k", threads=1)

    writer.copy(source)
    writer.copy(ObjectRange(source.source, 0, 6 * MIB, source.read))

    assert finished(s3, bucket, writer) == DATA[START:STOP] + DATA[: 6 * MIB]
    assert sum(stop - start for start, stop in reads) == STOP - START + 6 * MIB
    assert copied.sent == 1


def copied(s3: Any, bucket: str, source: ObjectRange) -> None:
    with MultipartWriter(s3, bucket, "k") as writer:
        writer.copy(source)
        writer.finish()


def test_a_connection_that_fails_at_a_copy_is_no_reason_to_give_up(
    s3: Any, bucket: str, source: ObjectRange, reads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that copies for longer than an answer is waited for, as often as that is tried, may send the bytes."""

    def silent(*_: Any) -> Any:
        raise ReadTimeoutError(endpoint_url="http://s3")

    monkeypatch.setattr(multipart_writer, "copy_part", silent)
    writer = MultipartWriter(s3, bucket, "k")

    writer.copy(source)

    assert finished(s3, bucket, writer) == DATA[START:STOP]
    assert sum(stop - start for start, stop in reads) == STOP - START


def test_an_object_that_is_another_one_by_now_is_an_error(s3: Any, bucket: str, source: ObjectRange) -> None:
    """S3 is told which one is meant; its reader says what became of it, and nothing is left of the upload."""
    asked = Injected(s3, "UploadPartCopy", s3_error(412, "PreconditionFailed"))

    def read(start: int, stop: int) -> Any:
        raise LookupError(f"another object from {start} to {stop}")

    with pytest.raises(LookupError, match="another object from 0 to 6291456"):
        copied(s3, bucket, ObjectRange(source.source, 0, 6 * MIB, read))

    etag = asked.requests[0].headers["x-amz-copy-source-if-match"]
    assert (etag.decode() if isinstance(etag, bytes) else etag) == f'"{source.source.etag}"'
    assert list(list_open_uploads(s3, bucket, "")) == []


def test_bytes_that_are_missing_are_an_error(s3: Any, bucket: str, source: ObjectRange) -> None:
    """They are counted already where S3 does not copy them after all."""
    Injected(s3, "UploadPartCopy", s3_error(403, "AccessDenied"))

    with pytest.raises(ValueError, match="3 bytes came of 6291456 of a b=1%2F"):
        copied(s3, bucket, ObjectRange(source.source, 0, 6 * MIB, lambda start, stop: nullcontext([b"few"])))

    assert list(list_open_uploads(s3, bucket, "")) == []


def test_only_a_refusal_of_s3s_is_worked_around(s3: Any, bucket: str, source: ObjectRange, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is lost ends the work."""

    def lost(*_: Any) -> Any:
        raise LeaseLost("lost")

    monkeypatch.setattr(multipart_writer, "copy_part", lost)
    with pytest.raises(LeaseLost):
        copied(s3, bucket, source)

    assert list(list_open_uploads(s3, bucket, "")) == []
