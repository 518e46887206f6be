"""A dictionary is for the columns whose bytes it halves, whatever the order and the frequency of their values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.spark.dictionaries import repeating_columns

# By how far the estimate may be off: pages and dictionaries have headers, and runs of one value are written shorter than it says.
SLACK = 0.1


def _bytes(values: pa.ChunkedArray, dictionary: bool) -> int:
    """What the column takes in a Parquet file, without a codec."""
    sink = pa.BufferOutputStream()
    options = {"use_dictionary": dictionary, "compression": "none", "write_statistics": False, "dictionary_pagesize_limit": 1 << 30}
    pq.write_table(pa.table({"values": values}), sink, store_schema=False, **options)
    return int(pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0).column(0).total_compressed_size)


def _columns(rows: int) -> dict[str, pa.Array]:
    at = np.arange(rows)
    rng = np.random.default_rng(rows)
    skewed = np.minimum(rng.zipf(1.3, rows), 10**9)
    longs = {
        "unique": at,
        "one value": np.zeros(rows, int),
        "twenty in turn": at % 20,
        "three times in turn": at % (rows // 3 + 1),
        "ten times in runs": at // 10,
        "fifty times in runs": at // 50,
        "nearly all once": np.where(at < rows * 0.8, at, 0),
        "half is one value": np.where(at < rows * 0.45, at, 0),
        "few of many": rng.integers(0, rows // 40 + 1, rows),
        "many": rng.integers(0, rows * 3, rows),
        "skewed": skewed,
    }
    arrays = {f"{name}, {kind}": pa.array(values).cast(kind) for name, values in longs.items() for kind in (pa.int64(), pa.int32())}
    arrays |= {f"{name}, text": pa.array([f"a text with the number {value}" for value in values]) for name, values in longs.items()}
    arrays |= {f"{name}, cents": pa.array(values).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)) for name, values in longs.items()}
    return arrays


@pytest.mark.parametrize("rows", [100, 5_000, 30_000, 65_536])
def test_a_dictionary_halves_the_bytes_of_the_columns_that_get_one(rows: int) -> None:
    """Measured on what pyarrow writes with it and without it."""
    table = pa.table(_columns(rows))

    chosen = repeating_columns(table)

    parts = {name: _bytes(table[name], True) / _bytes(table[name], False) for name in table.column_names}
    assert {name: part for name, part in parts.items() if name in chosen and part > 0.5 + SLACK} == {}
    # Runs of equal indices are counted as if they were not: a column of such runs may go without.
    left = {name: part for name, part in parts.items() if name not in chosen and part < 0.5 - SLACK and "runs" not in name}
    assert {name: part for name, part in left.items() if not name.startswith("one value")} == {}
    assert 0 < len(chosen) < len(parts)


def test_what_is_left_out_is_not_asked_and_booleans_take_a_bit() -> None:
    """In the table's order."""
    table = pa.table({"b": ["x", "y"] * 50, "flag": [True, False] * 50, "a": ["x"] * 100, "none": pa.nulls(100, pa.string())})

    assert repeating_columns(table) == ["b", "a", "none"]
    assert repeating_columns(table, ["a", "flag"]) == ["a"]
    assert repeating_columns(table, []) == []
    assert repeating_columns(table.slice(0, 0)) == []


def test_values_beyond_the_first_rows_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group has a million rows: what its first 65,536 say has to do."""
    monkeypatch.setattr("glue_jobs.spark.dictionaries.SAMPLE_ROWS", 100)

    assert repeating_columns(pa.table({"id": [0] * 100 + list(range(10_000))})) == ["id"]
