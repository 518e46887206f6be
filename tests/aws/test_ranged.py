"""Objects as files."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.ranged import TAIL_BYTES, RangedFile, open_object
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import TableBlocked
from tests.aws.faults import Injected

DATA = bytes(random.Random(1).randbytes(300_000))


@pytest.fixture
def key(s3: Any, bucket: str) -> str:
    s3.put_object(Bucket=bucket, Key="k", Body=DATA)
    return "k"


def test_it_reads_as_a_local_file_does(s3: Any, bucket: str, key: str) -> None:
    """Random seeks and reads of all sizes, over the end too."""
    chance = random.Random(2)
    ours, local = RangedFile(s3, bucket, key, len(DATA), read_ahead_bytes=10_000), io.BytesIO(DATA)

    for _ in range(60):
        place, size = chance.randrange(310_000), chance.choice([0, 1, 8, 9_000, 20_000, 400_000])
        assert (ours.seek(place), ours.read(size), ours.tell()) == (local.seek(place), local.read(size), local.tell())


def test_seek_counts_from_start_place_and_end(s3: Any, bucket: str, key: str) -> None:
    """The three ways of io."""
    file = RangedFile(s3, bucket, key, len(DATA))

    assert [file.seek(10), file.seek(5, io.SEEK_CUR), file.seek(-3, io.SEEK_END), file.read()] == [10, 15, 299_997, DATA[-3:]]


def test_seek_before_the_start_is_refused(s3: Any, bucket: str, key: str) -> None:
    """And the place stays."""
    file = RangedFile(s3, bucket, key, len(DATA))

    with pytest.raises(ValueError, match="-1"):
        file.seek(-1)

    assert file.tell() == 0


def test_the_tail_is_fetched_once(s3: Any, bucket: str, key: str) -> None:
    """A Parquet footer takes several reads."""
    sent = Injected(s3, "GetObject")
    file = RangedFile(s3, bucket, key, len(DATA))

    for back in (8, 1000, TAIL_BYTES):
        file.seek(-back, io.SEEK_END)
        assert file.read(8) == DATA[-back:][:8]

    assert sent.sent == 1


def test_small_reads_in_a_row_are_fetched_ahead(s3: Any, bucket: str, key: str) -> None:
    """Hundred reads, one request."""
    sent = Injected(s3, "GetObject")
    file = RangedFile(s3, bucket, key, len(DATA))

    pieces = [file.read(100) for _ in range(100)]

    assert (b"".join(pieces), sent.sent) == (DATA[:10_000], 1)


def test_a_large_read_is_one_request_of_that_size(s3: Any, bucket: str, key: str) -> None:
    """Nothing is fetched that nobody asked for."""
    sent = Injected(s3, "GetObject")
    file = RangedFile(s3, bucket, key, len(DATA), read_ahead_bytes=1000)

    file.read(5000)

    header = sent.requests[0].headers["Range"]
    assert (header if isinstance(header, str) else header.decode(), sent.sent) == ("bytes=0-4999", 1)


def test_it_is_a_file_for_the_standard_library(s3: Any, bucket: str, key: str) -> None:
    """readinto and readall come from the same bytes."""
    file = RangedFile(s3, bucket, key, len(DATA))
    target = bytearray(4)

    count = file.readinto(target)

    assert (count, bytes(target), file.readall() == DATA[4:], file.read(1)) == (4, DATA[:4], True, b"")
    assert (file.size(), file.readable(), file.seekable(), file.writable()) == (len(DATA), True, True, False)


def test_a_closed_file_is_not_read(s3: Any, bucket: str, key: str) -> None:
    """As any file."""
    file = RangedFile(s3, bucket, key, len(DATA))
    file.close()

    with pytest.raises(ValueError, match="closed"):
        file.read(1)


def test_a_file_that_changed_between_two_reads_blocks_the_table(s3: Any, bucket: str, key: str) -> None:
    """Never a half of one object and a half of another."""
    file = RangedFile(s3, bucket, key, len(DATA), etag=key_versions(s3, bucket, key).data[0].etag, read_ahead_bytes=10)
    file.read(100)
    s3.put_object(Bucket=bucket, Key=key, Body=DATA[::-1])

    with pytest.raises(TableBlocked) as caught:
        file.read(100)

    assert caught.value.code == "raw-file-changed"


def test_a_file_shorter_than_it_was_listed_blocks_the_table(s3: Any, bucket: str, key: str) -> None:
    """Also without an ETag to tell."""
    file = RangedFile(s3, bucket, key, len(DATA) + 10)
    file.seek(-20, io.SEEK_END)

    with pytest.raises(TableBlocked, match="bytes") as caught:
        file.read(20)

    assert caught.value.code == "raw-file-changed"


def test_a_version_is_read_while_a_newer_one_is_there(s3: Any, bucket: str, key: str) -> None:
    """Both ways, whole and by ranges."""
    version = key_versions(s3, bucket, key).data[0].version_id
    s3.put_object(Bucket=bucket, Key=key, Body=b"new")

    whole = open_object(s3, bucket, key, len(DATA), version=version)
    ranged = open_object(s3, bucket, key, len(DATA), version=version, whole_up_to=0)

    assert (whole.read() == DATA, ranged.read() == DATA) == (True, True)


def test_a_small_object_is_one_request(s3: Any, bucket: str, key: str) -> None:
    """However often it is read."""
    sent = Injected(s3, "GetObject")

    file = open_object(s3, bucket, key, len(DATA))
    for place in (0, 200_000, 100):
        file.seek(place)
        file.read(10)

    assert sent.sent == 1


def test_a_small_object_of_another_size_blocks_the_table(s3: Any, bucket: str, key: str) -> None:
    """It is not what was listed."""
    with pytest.raises(TableBlocked, match="300000 bytes"):
        open_object(s3, bucket, key, 5)


def test_an_empty_object_is_an_empty_file(s3: Any, bucket: str) -> None:
    """No range is asked of it: S3 would refuse that."""
    s3.put_object(Bucket=bucket, Key="e", Body=b"")

    assert (open_object(s3, bucket, "e", 0).read(), RangedFile(s3, bucket, "e", 0).read()) == (b"", b"")


def test_parquet_is_read_through_it(s3: Any, bucket: str) -> None:
    """Footer, one column, a stream of batches; a column that isn't asked for isn't fetched."""
    table = pa.table({"id": list(range(20_000)), "text": [f"{number:064x}" * 2 for number in range(20_000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=5000)
    data = sink.getvalue().to_pybytes()
    s3.put_object(Bucket=bucket, Key="p", Body=data)

    file = pq.ParquetFile(open_object(s3, bucket, "p", len(data), whole_up_to=0))
    ids = file.read(columns=["id"], use_threads=False)
    rows = sum(batch.num_rows for batch in file.iter_batches(1000, use_threads=False))

    assert (ids.column("id").to_pylist() == list(range(20_000)), rows) == (True, 20_000)
