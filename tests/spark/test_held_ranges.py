"""What is fetched at once of a raw file that is read by ranges."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.spark import held_ranges
from glue_jobs.spark.dms_files import open_dms, read_batches
from glue_jobs.spark.held_ranges import joined, windows

ROWS, GROUP_ROWS = 4000, 100


class Ranges(RangedFile):
    """An object in memory that notes what is fetched."""

    def __init__(self, data: bytes) -> None:
        super().__init__(None, "raw", "key", len(data))  # type: ignore[arg-type]
        self.data = data
        self.fetched: list[tuple[int, int]] = []

    def _get(self, start: int, stop: int) -> bytes:
        self.fetched.append((start, stop))
        return self.data[start:stop]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chance = random.Random(3)
    columns = {"id": range(ROWS), "time": [f"{number:026d}" for number in range(ROWS)]}
    return pa.table({**columns, **{f"note{at}": [chance.randbytes(60).hex() for _ in range(ROWS)] for at in range(4)}})


@pytest.fixture(scope="module")
def data(table: pa.Table) -> bytes:
    """Many small row groups, as DMS writes them."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=GROUP_ROWS)
    return sink.getvalue()


def read(file: Ranges, columns: list[str]) -> pa.Table:
    parquet = open_dms(file, "file")
    return pa.Table.from_batches(read_batches(file, parquet, columns, range(parquet.num_row_groups), "file"))


@pytest.mark.parametrize("columns", [["id"], ["id", "note3"], ["id", "time", "note0", "note1", "note2", "note3"]])
def test_small_row_groups_are_fetched_together(data: bytes, table: pa.Table, columns: list[str]) -> None:
    """The footer, and one request for all that lies near each other."""
    file = Ranges(data)

    assert read(file, columns).equals(table.select(columns))

    assert len(file.fetched) <= 3
    assert not file._held, "nothing is kept behind the last row"


@pytest.mark.parametrize("held_bytes", [1, 50_000, 300_000])
def test_no_more_is_held_than_is_allowed(data: bytes, table: pa.Table, held_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too much by itself is read page by page."""
    monkeypatch.setattr(held_ranges, "HELD_BYTES", held_bytes)
    file = Ranges(data)

    assert read(file, ["id", "note1"]).equals(table.select(["id", "note1"]))

    footer = len(data) - 64 * 1024
    assert all(stop - start <= max(held_bytes, file._read_ahead) for start, stop in file.fetched if start < footer)
    assert (len(file.fetched) <= 3) == (held_bytes > len(data))


def test_windows_have_every_row_group_once(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_ranges, "GAP_BYTES", 0)
    monkeypatch.setattr(held_ranges, "HELD_BYTES", 5000)
    metadata = pq.read_metadata(pa.BufferReader(data))
    groups = list(range(metadata.num_row_groups))

    found = list(windows(metadata, groups, ["id", "time"]))

    assert [group for run, _ in found for group in run] == groups
    assert all(sum(stop - start for start, stop in ranges) <= 5000 for _, ranges in found)
    assert len(found) < len(groups)


def test_ranges_with_small_gaps_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_ranges, "GAP_BYTES", 5)

    assert joined([(30, 40), (0, 10), (15, 20), (8, 12)]) == [(0, 20), (30, 40)]
