"""What is fetched of a data file before it is asked for is what Arrow asks for then."""

from __future__ import annotations

import io
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.ranged import READ_AHEAD_BYTES, RangedFile
from glue_jobs.aws.uploads import list_open_uploads
from glue_jobs.spark import column_buffers, data_file_reader
from glue_jobs.spark.column_buffers import buffer_bytes, pieces
from glue_jobs.spark.data_file_reader import read_encoded, read_rows
from tests.aws.faults import Injected
from tests.work_tables import MakeTable

IN_PIECES = {"stream_file_bytes": "0", "small_file_bytes": "0"}

COLUMNS = ("id", "place", "note", "score", "same")


class Traced(io.BytesIO):
    """Notes what is read of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        self.reads.append((start, start + len(data)))
        return data


@pytest.fixture(scope="module")
def data() -> bytes:
    """Three row groups, of columns with and without a dictionary, some of which are read in several pieces, one in a small one. Pages are a
    quarter of a piece, as writers make them."""
    return parquet_of(1_500_000)


def parquet_of(rows: int, **options: Any) -> bytes:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": np.arange(rows),
            "place": pa.array([f"place {number % 5000}" for number in range(rows)]),
            "note": pa.array(rng.integers(0, 2**62, rows)).cast(pa.string()),
            "score": rng.random(rows),
            "same": np.zeros(rows, np.int32),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows // 3, use_dictionary=["place", "same"], **options)
    return sink.getvalue()


@pytest.mark.parametrize("groups", [None, [1], [0, 2]])
@pytest.mark.parametrize("columns", [COLUMNS, ("id",), ("note", "place")])
def test_arrow_asks_for_these_pieces(data: bytes, groups: list[int] | None, columns: tuple[str, ...]) -> None:
    """All of them, and for none of that size besides; no newer Arrow may cut them otherwise."""
    metadata = pq.read_metadata(io.BytesIO(data))
    each = buffer_bytes(metadata.num_columns)
    file = Traced(data)
    parquet = pq.ParquetFile(file, metadata=metadata, buffer_size=each)
    file.reads.clear()

    for _ in read_rows(parquet, columns, groups=groups, batch_rows=50_000):
        pass

    expected = pieces(metadata, columns, range(3) if groups is None else groups, len(data))
    asked = [(start, stop) for start, stop in file.reads if stop - start >= READ_AHEAD_BYTES]
    assert sorted(expected) == sorted(asked)
    places = [asked.index(piece) for piece in expected]
    assert all(abs(place - number) <= len(columns) for number, place in enumerate(places))


def test_nothing_is_fetched_of_what_a_damaged_footer_says(data: bytes) -> None:
    """A column of an exabyte would be a million million pieces."""
    chunk = SimpleNamespace(path_in_schema="id", data_page_offset=4, has_dictionary_page=False, total_compressed_size=2**60)
    group = SimpleNamespace(num_columns=1, column=lambda _: chunk)
    metadata: Any = SimpleNamespace(num_columns=1, row_group=lambda _: group)

    assert pieces(metadata, ["id"], [0], len(data)) == []
    chunk.total_compressed_size = -1
    assert pieces(metadata, ["id"], [0], len(data)) == []


@pytest.mark.parametrize("groups", [None, [0, 2]])
def test_rows_that_are_fetched_ahead_are_the_same_in_as_many_requests(in_process: Clients, data: bytes, groups: list[int] | None) -> None:
    in_process.s3.put_object(Bucket="lake", Key="k", Body=data)
    sent = Injected(in_process.s3, "GetObject")
    read = [rows_and_requests(in_process.s3, sent, data, ahead, groups) for ahead in (False, True)]

    assert read[1][0].equals(read[0][0])
    assert read[1][1] == read[0][1]


def rows_and_requests(s3: Any, sent: Injected, data: bytes, ahead: bool, groups: list[int] | None) -> tuple[pa.Table, int]:
    parquet, _ = read_encoded(RangedFile(s3, "lake", "k", len(data)), "k", streamed=True)
    before = sent.sent
    rows = pa.concat_tables(read_rows(parquet, groups=groups, batch_rows=50_000, ahead=ahead))
    return rows, sent.sent - before


def test_small_pages_are_cut_otherwise_and_read_all_the_same(in_process: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page begins in the last 16 KB of a piece Arrow reads a little more of it, and from there on from other places."""
    monkeypatch.setattr(column_buffers, "LEAST_BUFFER_BYTES", 300 * 1024)
    monkeypatch.setattr(column_buffers, "BUFFERS_BYTES", 5 * 300 * 1024)
    data = parquet_of(400_000, data_page_size=32 * 1024)
    in_process.s3.put_object(Bucket="lake", Key="k", Body=data)
    sent = Injected(in_process.s3, "GetObject")
    read = [rows_and_requests(in_process.s3, sent, data, ahead, None) for ahead in (False, True)]

    assert read[1][0].equals(read[0][0])
    assert read[1][1] < read[0][1]


def test_a_reader_that_stops_early_leaves_nothing_on_its_way(in_process: Clients, data: bytes) -> None:
    in_process.s3.put_object(Bucket="lake", Key="k", Body=data)
    sent = Injected(in_process.s3, "GetObject")
    parquet, _ = read_encoded(RangedFile(in_process.s3, "lake", "k", len(data)), "k", streamed=True)
    rows = read_rows(parquet, batch_rows=50_000, ahead=True)
    next(rows)

    rows.close()
    before = sent.sent
    again = pa.concat_tables(read_rows(parquet, ["id"], ahead=True))

    assert again["id"].to_pylist() == list(range(1_500_000))
    assert sent.sent - before == len(pieces(parquet.metadata, ["id"], range(3), len(data)))


def test_a_run_whose_piece_is_refused_changes_nothing(quick_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes from a thread to the merge that asks for the piece; nothing is left of it, and the next run does the same work."""
    table = quick_table()
    table.cdc([("I", (number, f"name {number}", 1)) for number in range(1000)])
    table.sync()
    before = table.rows()
    monkeypatch.setattr(column_buffers, "READ_AHEAD_BYTES", 1)
    monkeypatch.setattr(data_file_reader, "FEW_ROWS", 1)
    table.cdc([("U", (5, "new", 2))])
    refused: list[int] = []
    really = RangedFile._get

    def get(file: RangedFile, start: int, stop: int) -> bytes:
        if threading.current_thread().name.startswith("fetch"):
            refused.append(start)
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")
        return really(file, start, stop)

    with monkeypatch.context() as patch:
        patch.setattr(RangedFile, "_get", get)
        assert table.run(**IN_PIECES) != 0
    assert refused
    assert table.rows() == before
    assert not list(list_open_uploads(table.clients.s3, table.out_path.bucket, table.out_path.key))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fetch")]

    assert table.run(**IN_PIECES) == 0
    assert (5, "new", 2) in table.rows()
