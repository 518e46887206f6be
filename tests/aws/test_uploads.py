"""Multipart uploads that have their parts: completed, aborted, looked at."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.objects import hide, read_bytes
from glue_jobs.aws.uploads import abort_upload, complete_upload, has_parts, list_open_uploads
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.record import Part, Upload
from tests.aws.faults import Injected, lost_answer, no_connection, s3_error
from tests.aws.uploading import PART, open_keys, uploaded
from tests.aws.visible import exists


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
