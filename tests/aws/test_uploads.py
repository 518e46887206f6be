"""Multipart uploads: writing parts, completing, aborting."""

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
from glue_jobs.aws.objects import hide, read_bytes
from glue_jobs.aws.uploads import abort_upload, complete_upload, has_parts, list_open_uploads, multipart_etag
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.record import Part, Upload
from tests.aws.faults import Injected, answer, lost_answer, no_connection, s3_error
from tests.aws.visible import exists

MIB = 1024 * 1024
# Parts below 5 MiB are refused by S3, the last one aside.
PART = 5 * MIB


def uploaded(s3: Any, bucket: str, key: str = "k", data: bytes = b"data") -> Any:
    """An upload with all its parts."""
    writer = MultipartWriter(s3, bucket, key, PART)
    writer.write(data)
    return writer.finish()


def open_keys(s3: Any, bucket: str) -> list[str]:
    return [upload.key for upload in list_open_uploads(s3, bucket, "")]


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


def test_completing_is_done(s3: Any, bucket: str) -> None:
    """The first time, without a look."""
    looked = Injected(s3, "ListObjectVersions")

    done = complete_upload(s3, bucket, "k", uploaded(s3, bucket).upload, look_first=False)

    assert (done, looked.sent, exists(s3, bucket, "k")) == ("done", 0, True)


def test_looking_first_completes_what_is_not_there(s3: Any, bucket: str) -> None:
    """Nothing was done before."""
    assert (complete_upload(s3, bucket, "k", uploaded(s3, bucket).upload, look_first=True), exists(s3, bucket, "k")) == ("done", True)


@pytest.mark.parametrize("hidden", [False, True])
def test_looking_first_finds_what_was_completed_before(s3: Any, bucket: str, hidden: bool) -> None:
    """No second version on a server that would make one, also when the file was hidden meanwhile."""
    upload = uploaded(s3, bucket).upload
    complete_upload(s3, bucket, "k", upload, look_first=False)
    if hidden:
        hide(s3, bucket, ["k"])
    sent = Injected(s3, "CompleteMultipartUpload")

    done = complete_upload(s3, bucket, "k", upload, look_first=True)

    assert (done, sent.sent, exists(s3, bucket, "k")) == ("done", 0, not hidden)


def test_an_upload_that_was_aborted_is_gone(s3: Any, bucket: str) -> None:
    """As a lifecycle rule does after days: AWS says NoSuchUpload."""
    upload = uploaded(s3, bucket).upload
    abort_upload(s3, bucket, "k", upload.id)
    sent = Injected(s3, "CompleteMultipartUpload", s3_error(404, "NoSuchUpload"))

    assert (complete_upload(s3, bucket, "k", upload, look_first=True), sent.sent, exists(s3, bucket, "k")) == ("gone", 1, False)


def test_an_aborted_upload_is_gone_also_where_the_server_only_fails(s3: Any, bucket: str, pauses: list[float]) -> None:
    """moto answers 500 for ever; the look at the upload tells."""
    upload = uploaded(s3, bucket).upload
    abort_upload(s3, bucket, "k", upload.id)
    sent = Injected(s3, "CompleteMultipartUpload", s3_error(500, "InternalError"))

    assert (complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append), sent.sent) == ("gone", 1)


def test_a_look_at_the_upload_that_is_refused_is_raised(s3: Any, bucket: str, pauses: list[float]) -> None:
    """Not being allowed to look is not the same as gone."""
    upload = uploaded(s3, bucket).upload
    Injected(s3, "CompleteMultipartUpload", s3_error(500, "InternalError"))
    Injected(s3, "ListParts", s3_error(403, "AccessDenied"))

    with pytest.raises(ClientError, match="AccessDenied"):
        complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append)


def test_no_such_upload_is_done_where_the_key_has_data(s3: Any, bucket: str) -> None:
    """AWS answers so to a second completion."""
    upload = uploaded(s3, bucket).upload
    complete_upload(s3, bucket, "k", upload, look_first=False)
    Injected(s3, "CompleteMultipartUpload", s3_error(404, "NoSuchUpload"))

    assert complete_upload(s3, bucket, "k", upload, look_first=False) == "done"


def test_a_lost_answer_does_not_complete_twice(s3: Any, bucket: str, pauses: list[float]) -> None:
    """It looks before it would send again, and finds the one version."""
    upload = uploaded(s3, bucket).upload
    sent = Injected(s3, "CompleteMultipartUpload", lost_answer)

    done = complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append)

    assert (done, sent.sent, len(key_versions(s3, bucket, "k").data), len(pauses)) == ("done", 1, 1, 1)


@pytest.mark.parametrize(
    "fault",
    [
        no_connection,
        s3_error(500, "InternalError"),
        s3_error(503, "SlowDown"),
        s3_error(429, "TooManyRequests"),
        s3_error(200, "InternalError"),
    ],
    ids=["connection", "500", "503", "429", "error inside a 200"],
)
def test_an_unanswered_completion_is_sent_again_after_a_look(s3: Any, bucket: str, pauses: list[float], fault: Any) -> None:
    """It had not worked, so the second one does it."""
    upload = uploaded(s3, bucket).upload
    sent = Injected(s3, "CompleteMultipartUpload", fault)
    looked = Injected(s3, "ListObjectVersions")

    done = complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append)

    assert (done, sent.sent, looked.sent, exists(s3, bucket, "k")) == ("done", 2, 1, True)


def test_a_completion_that_is_refused_as_busy_is_sent_again(s3: Any, bucket: str, pauses: list[float]) -> None:
    """S3 says so with a 400 too."""
    upload = uploaded(s3, bucket).upload
    sent = Injected(s3, "CompleteMultipartUpload", s3_error(409, "OperationAborted"))

    done = complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append)

    assert (done, sent.sent) == ("done", 2)


def test_a_completion_that_stays_unanswered_is_for_a_later_run(s3: Any, bucket: str, pauses: list[float]) -> None:
    """After a bounded number of attempts; the error names the key."""
    upload = uploaded(s3, bucket).upload
    sent = Injected(s3, "CompleteMultipartUpload", *[s3_error(500, "InternalError")] * 3)

    with pytest.raises(RetryLater, match=f"s3://{bucket}/k"):
        complete_upload(s3, bucket, "k", upload, look_first=False, pause=pauses.append, attempts=3)

    assert (sent.sent, len(pauses)) == (3, 2)


def test_another_refusal_of_a_completion_is_raised(s3: Any, bucket: str) -> None:
    """It would be refused again."""
    upload = uploaded(s3, bucket).upload

    with pytest.raises(ClientError, match="InvalidPart"):
        complete_upload(s3, bucket, "k", Upload(upload.id, (Part(7, "0" * 32),)), look_first=False)


def test_aborting_twice_is_fine(s3: Any, bucket: str) -> None:
    """Also after it was completed."""
    upload = uploaded(s3, bucket).upload

    abort_upload(s3, bucket, "k", upload.id)
    abort_upload(s3, bucket, "k", upload.id)

    assert open_keys(s3, bucket) == []


def test_aborting_a_completed_upload_leaves_the_object(s3: Any, bucket: str) -> None:
    """A late zombie does no harm."""
    upload = uploaded(s3, bucket).upload
    complete_upload(s3, bucket, "k", upload, look_first=False)

    abort_upload(s3, bucket, "k", upload.id)

    assert read_bytes(s3, bucket, "k") == b"data"


def test_another_error_of_an_abort_is_raised(s3: Any, bucket: str) -> None:
    """It is not known to be dropped."""
    Injected(s3, "AbortMultipartUpload", s3_error(403, "AccessDenied"))

    with pytest.raises(ClientError, match="AccessDenied"):
        abort_upload(s3, bucket, "k", "u")


def test_open_uploads_are_listed_below_a_prefix(s3: Any, bucket: str) -> None:
    """With the id that an abort needs."""
    ours = uploaded(s3, bucket, "t/1").upload
    uploaded(s3, bucket, "u/1")

    (found,) = list_open_uploads(s3, bucket, "t/")

    assert (found.key, found.id, found.started.tzinfo is not None) == ("t/1", ours.id, True)


def test_an_upload_has_the_parts_that_were_sent(s3: Any, bucket: str) -> None:
    """All of them by number and ETag."""
    upload = uploaded(s3, bucket, data=b"x" * (PART + 1)).upload

    assert len(upload.parts) == 2
    assert has_parts(s3, bucket, "k", upload)


@pytest.mark.parametrize("what", ["a part less", "another part", "one more", "aborted", "completed"])
def test_an_upload_with_other_parts_is_told(s3: Any, bucket: str, what: str) -> None:
    """Completing it would make another object than the one that was meant, or none."""
    upload = uploaded(s3, bucket).upload
    (part,) = upload.parts
    if what == "a part less":
        upload = Upload(upload.id, (part, Part(2, part.etag)))
    elif what == "aborted":
        abort_upload(s3, bucket, "k", upload.id)
    elif what == "completed":
        complete_upload(s3, bucket, "k", upload, look_first=False)
    else:
        s3.upload_part(Bucket=bucket, Key="k", UploadId=upload.id, PartNumber=1 if what == "another part" else 2, Body=b"other")

    assert not has_parts(s3, bucket, "k", upload)


def test_an_unclear_answer_about_parts_is_raised(s3: Any, bucket: str) -> None:
    """It is no word about the upload."""
    upload = uploaded(s3, bucket).upload
    Injected(s3, "ListParts", s3_error(403, "AccessDenied"))

    with pytest.raises(ClientError, match="AccessDenied"):
        has_parts(s3, bucket, "k", upload)
