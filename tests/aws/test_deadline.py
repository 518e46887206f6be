"""After a lease's deadline nothing is written any more."""

from __future__ import annotations

import time
from typing import Any

import pytest

import glue_jobs.aws.clients as module
from glue_jobs.aws.clients import Deadline, clock_seconds
from glue_jobs.core.errors import LeaseLost
from tests.aws.faults import Injected, after, s3_error

PAST = -1.0


def test_a_deadline_passes_while_the_machine_sleeps(deadline: Deadline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of processes and timers stand still meanwhile; another machine may have taken the lease."""
    deadline.set(clock_seconds() + 60)
    deadline.check()
    real = time.clock_gettime

    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + 3600)

    with pytest.raises(LeaseLost, match="passed 35"):
        deadline.check()


def test_without_a_clock_that_counts_sleep_the_monotonic_one_is_used(deadline: Deadline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no other."""
    monkeypatch.setattr(module, "_THROUGH_SLEEP", None)
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    deadline.set(1000.5)
    deadline.check()

    monkeypatch.setattr(time, "monotonic", lambda: 1001.0)

    with pytest.raises(LeaseLost, match=r"passed 0\.5 s"):
        deadline.check()


def test_a_write_after_the_deadline_is_not_sent(s3: Any, bucket: str, deadline: Deadline) -> None:
    """The object isn't there afterwards."""
    deadline.set(clock_seconds() + PAST)

    with pytest.raises(LeaseLost):
        s3.put_object(Bucket=bucket, Key="a", Body=b"1")

    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_each_kind_of_write_is_stopped(clients: Any, bucket: str, table: Any, deadline: Deadline) -> None:
    """S3, DynamoDB and Glue; put, delete, copy, and all steps of an upload."""
    s3, db, glue = clients.s3, clients.dynamodb, clients.glue
    upload = {"Bucket": bucket, "Key": "a", "UploadId": "u"}
    key = {"TableName": table.name, "Key": {"path": {"S": "p"}}}
    deadline.set(clock_seconds() + PAST)

    for write in (
        lambda: s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}]}),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key="a"),
        lambda: s3.upload_part(**upload, PartNumber=1, Body=b""),
        lambda: s3.upload_part_copy(**upload, PartNumber=1, CopySource=f"{bucket}/b"),
        lambda: s3.complete_multipart_upload(**upload),
        lambda: s3.abort_multipart_upload(**upload),
        lambda: s3.copy_object(Bucket=bucket, Key="a", CopySource=f"{bucket}/b"),
        lambda: db.update_item(**key),
        lambda: db.put_item(TableName=table.name, Item={"path": {"S": "p"}}),
        lambda: db.delete_item(**key),
        lambda: glue.create_database(DatabaseInput={"Name": "d"}),
        lambda: glue.batch_create_partition(DatabaseName="d", TableName="t", PartitionInputList=[]),
    ):
        with pytest.raises(LeaseLost):
            write()


def test_reads_pass_after_the_deadline(clients: Any, bucket: str, table: Any, deadline: Deadline) -> None:
    """A run that lost its lease may still look what happened."""
    deadline.set(clock_seconds() + PAST)

    clients.s3.list_object_versions(Bucket=bucket)
    found = (table.get("p"), table.batch_get(["p"]), list(table.scan()), clients.glue.get_databases()["DatabaseList"])

    assert found[:3] == (None, {}, [])


def test_a_retry_after_the_deadline_is_stopped(s3: Any, bucket: str, deadline: Deadline) -> None:
    """The deadline passes between the first attempt, which S3 refuses, and the second, which is never sent."""
    late = after(lambda: deadline.set(clock_seconds() + PAST), s3_error(503, "SlowDown"))
    sent = Injected(s3, "PutObject", late)

    with pytest.raises(LeaseLost):
        s3.put_object(Bucket=bucket, Key="a", Body=b"1")

    assert (sent.sent, s3.list_objects_v2(Bucket=bucket)["KeyCount"]) == (1, 0)


def test_no_deadline_lets_writes_pass(s3: Any, bucket: str, deadline: Deadline) -> None:
    """A released lease lifts the limit."""
    deadline.set(clock_seconds() + PAST)
    deadline.set(None)

    s3.put_object(Bucket=bucket, Key="a", Body=b"1")

    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def test_a_completion_is_stopped_by_the_deadline_too(s3: Any, bucket: str, deadline: Deadline) -> None:
    """Its own rule about retries doesn't turn LeaseLost into something else."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    deadline.set(clock_seconds() + PAST)

    with pytest.raises(LeaseLost):
        s3.complete_multipart_upload(Bucket=bucket, Key="a", UploadId=upload, MultipartUpload={"Parts": []})
