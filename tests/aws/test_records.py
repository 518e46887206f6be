"""Change records in S3."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.objects import hide
from glue_jobs.aws.records import list_records, read_attachment, read_record, read_records, write_attachment, write_record
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, Input
from tests.aws.faults import Injected, s3_error


@pytest.fixture
def out_path(bucket: str) -> S3Uri:
    return S3Uri(bucket, "lake/sales/orders/")


def record(number: int = 1, inputs: int = 0) -> ChangeRecord:
    return ChangeRecord(
        id=str(ChangeId(number, 1, f"{number:08x}")),
        parent="",
        kind="incremental",
        table="raw/dms/sales/orders/",
        lake="s3://lake/sales/orders/",
        time="2024-05-03T00:00:00Z",
        inputs=tuple(Input(f"dms/sales/orders/20240503-{name:09}.parquet", "e" * 32) for name in range(inputs)),
    )


def test_a_record_is_read_as_it_was_written(s3: Any, out_path: S3Uri) -> None:
    """Beside the schema folders, where no crawler looks."""
    written = record(inputs=2)

    key = write_record(s3, out_path, written)

    assert (read_record(s3, out_path, written.id), key) == (written, f"lake/_changes/sales/orders/{written.id}.json")


def test_a_large_record_is_compressed(s3: Any, out_path: S3Uri) -> None:
    """Its name says so, and reading finds it."""
    written = record(inputs=12_000)

    key = write_record(s3, out_path, written)

    size = s3.head_object(Bucket=out_path.bucket, Key=key)["ContentLength"]
    assert (key.endswith(".json.gz"), size < 200_000, read_record(s3, out_path, written.id) == written) == (True, True, True)


def test_a_missing_record_blocks_the_table(s3: Any, out_path: S3Uri) -> None:
    """The error names the key."""
    with pytest.raises(TableBlocked, match=r"lake/_changes/sales/orders/nope\.json") as caught:
        read_record(s3, out_path, "nope")

    assert caught.value.code == "record-gone"


@pytest.mark.parametrize("inputs", [1, 12_000])
def test_a_hidden_record_blocks_the_table(s3: Any, out_path: S3Uri, inputs: int) -> None:
    """Somebody deleted it; its version is still there, and what the error says brings it back without deleting one."""
    written = record(inputs=inputs)
    hide(s3, out_path.bucket, [write_record(s3, out_path, written)])

    with pytest.raises(TableBlocked) as caught:
        read_record(s3, out_path, written.id)

    assert caught.value.code == "record-gone"
    words = shlex.split(caught.value.todo.replace("`", " "))
    bucket, prefix = (words[words.index(option) + 1] for option in ("--bucket", "--prefix"))
    newest = s3.list_object_versions(Bucket=bucket, Prefix=prefix)["Versions"][0]
    source = words[words.index("--copy-source") + 1].replace("KEY", newest["Key"]).replace("ID", newest["VersionId"])
    s3.copy_object(Bucket=bucket, Key=newest["Key"], CopySource=source)
    assert read_record(s3, out_path, written.id) == written


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_a_damaged_record_blocks_the_table(s3: Any, out_path: S3Uri, ending: str) -> None:
    """Not JSON, or not gzip."""
    s3.put_object(Bucket=out_path.bucket, Key=f"lake/_changes/sales/orders/{record().id}{ending}", Body=b"\xff{")

    with pytest.raises(TableBlocked, match=record().id) as caught:
        read_record(s3, out_path, record().id)

    assert caught.value.code == "bad-record"


def test_another_error_is_not_taken_for_a_missing_record(s3: Any, out_path: S3Uri) -> None:
    """A denied read says nothing about the record."""
    Injected(s3, "GetObject", s3_error(403, "AccessDenied"))

    with pytest.raises(ClientError, match="AccessDenied"):
        read_record(s3, out_path, record().id)


def test_a_record_that_changes_while_it_is_read_is_raised_as_that(s3: Any, out_path: S3Uri) -> None:
    """A failed condition is no missing record either."""
    Injected(s3, "GetObject", s3_error(412, "PreconditionFailed"))

    with pytest.raises(TableBlocked) as caught:
        read_record(s3, out_path, record().id)

    assert caught.value.code == "raw-file-changed"


def test_several_records_come_in_the_order_asked_for(s3: Any, out_path: S3Uri) -> None:
    """They are read in parallel."""
    for number in range(1, 21):
        write_record(s3, out_path, record(number))
    wanted = [record(number) for number in (7, 3, *range(8, 21), 1)]

    assert read_records(s3, out_path, [item.id for item in wanted]) == wanted


@pytest.mark.parametrize("count", [0, 1])
def test_few_records_need_no_threads(s3: Any, out_path: S3Uri, count: int) -> None:
    """None and one."""
    write_record(s3, out_path, record())

    assert read_records(s3, out_path, [record().id] * count) == [record()] * count


def test_one_missing_of_several_is_an_error(s3: Any, out_path: S3Uri) -> None:
    """Never a shorter list."""
    write_record(s3, out_path, record(1))

    with pytest.raises(TableBlocked, match=record(2).id):
        read_records(s3, out_path, [record(1).id, record(2).id])


def test_records_are_listed_in_order_after_an_id(s3: Any, out_path: S3Uri) -> None:
    """Compressed or not; what is no record, and other tables' records, are passed over."""
    for number in (3, 1, 2, 10):
        write_record(s3, out_path, record(number, inputs=12_000 if number in (1, 2) else 0))
    write_record(s3, S3Uri(out_path.bucket, "lake/sales/orders2/"), record(4))
    s3.put_object(Bucket=out_path.bucket, Key="lake/_changes/sales/orders/notes.txt", Body=b"")

    everything = list(list_records(s3, out_path))
    after = [list(list_records(s3, out_path, record(number).id)) for number in (1, 3, 10)]

    ids = [record(number).id for number in (1, 2, 3, 10)]
    assert (everything, after) == (ids, [ids[1:], ids[3:], []])


def test_a_record_that_is_there_twice_is_listed_once(s3: Any, out_path: S3Uri) -> None:
    """A person may have unpacked one."""
    folder = "lake/_changes/sales/orders/"
    for ending in (".json", ".json.gz"):
        s3.put_object(Bucket=out_path.bucket, Key=f"{folder}{record().id}{ending}", Body=b"")

    assert list(list_records(s3, out_path)) == [record().id]


def test_no_records_are_no_error(s3: Any, out_path: S3Uri) -> None:
    """A table that was never loaded."""
    assert list(list_records(s3, out_path)) == []


def test_what_stands_beside_a_record_is_read_and_missed(s3: Any, out_path: S3Uri) -> None:
    """It is no record to a listing; where it is gone, the error has its address and code."""
    name = write_attachment(s3, out_path, record().id, "deletes.parquet", b"rows")

    assert (read_attachment(s3, out_path, name), list(list_records(s3, out_path))) == (b"rows", [])
    with pytest.raises(TableBlocked, match="lake/_changes/sales/orders/gone") as caught:
        read_attachment(s3, out_path, "gone.deletes.parquet")
    assert caught.value.code == "attachment-gone"
