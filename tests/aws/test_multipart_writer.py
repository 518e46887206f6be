"""The writer of a multipart upload: bytes become parts, and nothing is visible."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.multipart_writer import MultipartWriter
from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.uploads import complete_upload, multipart_etag
from glue_jobs.aws.versions import key_versions
from tests.aws.faults import Injected, answer, s3_error
from tests.aws.uploading import PART, open_keys, uploaded
from tests.aws.visible import exists


def test_nothing_is_visible_before_the_upload_is_completed(s3: Any, bucket: str) -> None:
    """finish sends all parts and completes nothing."""
    finished = uploaded(s3, bucket)

    assert (exists(s3, bucket, "k"), finished.size_bytes, open_keys(s3, bucket)) == (False, 4, ["k"])


def test_a_completed_upload_has_the_bytes_and_the_etag_that_was_foretold(s3: Any, bucket: str) -> None:
    """Three parts, the last one short, written in pieces that don't fit them."""
    data = bytes(range(256)) * 4096 * 11
    writer = MultipartWriter(s3, bucket, "k", PART)
    for at in range(0, len(data), 3_000_000):
        writer.write(data[at : at + 3_000_000])

    finished = writer.finish()
    complete_upload(s3, bucket, "k", finished.upload, look_first=False)

    (version,) = key_versions(s3, bucket, "k").data
    assert (read_bytes(s3, bucket, "k") == data, version.etag, version.size) == (True, finished.etag, finished.size_bytes)
    assert [part.number for part in finished.upload.parts] == [1, 2, 3]


def test_a_buffer_larger_than_a_part_is_cut(s3: Any, bucket: str) -> None:
    """One write may be many parts."""
    finished = uploaded(s3, bucket, data=b"x" * (2 * PART + 1))

    assert len(finished.upload.parts) == 3


def test_bytes_that_end_with_a_part_leave_no_empty_one(s3: Any, bucket: str) -> None:
    """No part of nothing at the end."""
    assert len(uploaded(s3, bucket, data=b"x" * PART).upload.parts) == 1


def test_an_empty_file_is_one_empty_part(s3: Any, bucket: str) -> None:
    """S3 completes no upload without parts."""
    finished = MultipartWriter(s3, bucket, "k").finish()

    complete_upload(s3, bucket, "k", finished.upload, look_first=False)

    assert (read_bytes(s3, bucket, "k"), finished.size_bytes) == (b"", 0)


def test_each_part_carries_its_crc32(s3: Any, bucket: str) -> None:
    """In the request, in the record, and in the completion: AWS wants it there again."""
    create = Injected(s3, "CreateMultipartUpload")
    part = Injected(s3, "UploadPart")
    complete = Injected(s3, "CompleteMultipartUpload")

    finished = uploaded(s3, bucket, data=b"123456789")
    complete_upload(s3, bucket, "k", finished.upload, look_first=False)

    crc32 = "y/Q5Jg=="  # 0xCBF43926, the check value of CRC-32
    body = complete.requests[0].body
    text = body.decode() if isinstance(body, bytes) else body
    assert create.requests[0].headers["x-amz-checksum-algorithm"] in ("CRC32", b"CRC32")
    assert part.requests[0].headers["x-amz-checksum-crc32"] in (crc32, crc32.encode())
    assert (finished.upload.parts[0].crc32, f"<ChecksumCRC32>{crc32}</ChecksumCRC32>" in text) == (crc32, True)


def test_a_part_is_hashed_once(s3: Any, bucket: str) -> None:
    """Its CRC32 is signed, and S3 compares it: a SHA-256 of all data besides would be for nothing. Of other bodies there is one."""
    part, put = Injected(s3, "UploadPart"), Injected(s3, "PutObject")

    uploaded(s3, bucket, data=b"data")
    s3.put_object(Bucket=bucket, Key="record", Body=b"record")

    def hashed(sent: Injected) -> str:
        found = sent.requests[0].headers["X-Amz-Content-SHA256"]
        return found.decode() if isinstance(found, bytes) else str(found)

    signed = part.requests[0].headers["Authorization"]
    assert "x-amz-checksum-crc32" in (signed.decode() if isinstance(signed, bytes) else signed)
    assert hashed(part) == "UNSIGNED-PAYLOAD"
    assert hashed(put) == hashlib.sha256(b"record").hexdigest()


def test_the_etag_of_an_encrypted_object_is_not_foretold(s3: Any, bucket: str) -> None:
    """With KMS a part's ETag is no MD5 of its bytes."""
    body = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    Injected(s3, "CreateMultipartUpload", answer(200, body, **{"x-amz-server-side-encryption": "aws:kms"}))
    Injected(s3, "UploadPart", answer(200, ETag=f'"{"0" * 32}"'))

    assert uploaded(s3, bucket).etag == ""


def test_an_etag_that_is_no_md5_foretells_nothing() -> None:
    """Rather none than a wrong one."""
    assert multipart_etag(["a" * 32, "not-md5"]) == ""


def test_the_etag_is_the_md5_of_the_md5s_and_their_count() -> None:
    """S3's own definition."""
    parts = [hashlib.md5(data) for data in (b"a", b"b")]
    expected = hashlib.md5(parts[0].digest() + parts[1].digest()).hexdigest() + "-2"

    assert multipart_etag([part.hexdigest() for part in parts]) == expected


def test_parquet_is_written_and_read_back(s3: Any, bucket: str) -> None:
    """pyarrow takes the writer for a file."""
    table = pa.table({"a": list(range(1000))})
    writer = MultipartWriter(s3, bucket, "k")

    pq.write_table(table, writer)
    finished = writer.finish()
    complete_upload(s3, bucket, "k", finished.upload, look_first=False)

    assert pq.read_table(pa.BufferReader(read_bytes(s3, bucket, "k"))).equals(table)


def test_the_writer_is_a_file_that_knows_its_place(s3: Any, bucket: str) -> None:
    """Any bytes-like object is counted in bytes."""
    writer = MultipartWriter(s3, bucket, "k")

    written = [
        writer.write(b"ab"),
        writer.write(memoryview(b"cd")),
        writer.write(pa.py_buffer(b"ef")),
        writer.write(pa.array([1]).buffers()[1]),
    ]
    writer.flush()

    assert (written[:3], writer.tell(), writer.writable(), writer.readable(), writer.seekable(), writer.closed) == (
        [2, 2, 2],
        6 + written[3],
        True,
        False,
        False,
        False,
    )


def test_a_closed_writer_takes_no_more(s3: Any, bucket: str) -> None:
    """As any file."""
    writer = MultipartWriter(s3, bucket, "k")
    writer.close()

    with pytest.raises(ValueError, match="closed"):
        writer.write(b"x")


def is_waiting(thread: threading.Thread) -> bool:
    """Whether the thread stands in a wait for a condition."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == "wait"


def test_parts_wait_when_the_uploads_are_behind(s3: Any, bucket: str) -> None:
    """Memory is bounded: with two parts on their way, one waits, and the writer of the next one stops."""
    release = threading.Event()
    Injected(s3, "UploadPart", *[lambda _: release.wait(60) and None] * 2)
    writer = MultipartWriter(s3, bucket, "k", PART)
    written: list[int] = []
    thread = threading.Thread(target=lambda: [written.append(writer.write(b"x" * PART)) for _ in range(6)])
    thread.start()
    deadline = time.monotonic() + 60
    while not (len(written) >= 3 and is_waiting(thread)) and thread.is_alive() and time.monotonic() < deadline:
        thread.join(0.01)

    before = len(written)
    release.set()
    thread.join(60)

    assert (before, len(writer.finish().upload.parts)) == (3, 6)


def test_a_part_that_fails_is_an_error_of_the_writer(s3: Any, bucket: str) -> None:
    """At the latest when it is finished."""
    Injected(s3, "UploadPart", s3_error(403, "AccessDenied"))
    writer = MultipartWriter(s3, bucket, "k", PART)
    writer.write(b"x" * (PART + 1))

    with pytest.raises(ClientError, match="AccessDenied"):
        writer.finish()


def test_a_part_is_sent_again_after_a_server_error(s3: Any, bucket: str) -> None:
    """botocore's retry finds the whole body again."""
    Injected(s3, "UploadPart", s3_error(503, "SlowDown"))

    finished = uploaded(s3, bucket)
    complete_upload(s3, bucket, "k", finished.upload, look_first=False)

    assert read_bytes(s3, bucket, "k") == b"data"


def test_an_aborted_writer_leaves_nothing(s3: Any, bucket: str) -> None:
    """Neither object nor upload."""
    writer = MultipartWriter(s3, bucket, "k", PART)
    writer.write(b"x" * PART)

    writer.abort()

    assert (open_keys(s3, bucket), exists(s3, bucket, "k")) == ([], False)


def test_a_writer_that_never_sent_has_nothing_to_abort(s3: Any, bucket: str) -> None:
    """No upload was begun."""
    begun = Injected(s3, "CreateMultipartUpload")

    MultipartWriter(s3, bucket, "k").abort()

    assert begun.sent == 0


def test_an_error_inside_a_with_aborts(s3: Any, bucket: str) -> None:
    """The error itself comes through."""

    def fail() -> None:
        with MultipartWriter(s3, bucket, "k", PART) as writer:
            writer.write(b"x" * PART)
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert open_keys(s3, bucket) == []


def test_a_with_that_ends_well_completes_and_aborts_nothing(s3: Any, bucket: str) -> None:
    """finish was called inside it."""
    with MultipartWriter(s3, bucket, "k") as writer:
        writer.finish()

    assert (open_keys(s3, bucket), writer.closed) == (["k"], True)
