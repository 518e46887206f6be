"""Texts stay indices into a dictionary from a data file to its replacement, and nobody sees a difference. No Spark is needed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark import encoded_texts
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_reader import read_columns, read_data_file, read_rows
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.encoded_texts import ENCODED_TEXT, decoded, decoded_bytes_of, encoded_columns, encoded_like, with_one_dictionary
from tests.spark.row_groups import data_file, stored_group

SCHEMA: Schema = (Column("id", "bigint"), Column("state", "string"), Column("note", "string"), Column("data", "binary"))
STATES = ["NEW", "PAID", None, "Ünïcödé", ""]
ROWS = 5_000


def _rows(first: int = 0, states: list[str | None] = STATES, rows: int = ROWS) -> pa.Table:
    ids = range(first, first + rows)
    values = {
        "id": list(ids),
        "state": [states[at % len(states)] for at in ids],
        "note": [f"note number {at} of many" for at in ids],
        "data": [b"ab"] * rows,
    }
    return pa.table(values, arrow_schema(SCHEMA))


def _file(*tables: pa.Table, **options: Any) -> bytes:
    return data_file(tables, SCHEMA, **options)


def _encoded(data: bytes, streamed: bool = True) -> pq.ParquetFile:
    return read_data_file(io.BytesIO(data), "1.parquet", streamed, {"id"})


def _read(data: bytes) -> pa.Table:
    return read_data_file(io.BytesIO(data), "1.parquet").read()


def _described(data: bytes) -> list[Any]:
    metadata = pq.read_metadata(io.BytesIO(data))
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return [(chunk.statistics.to_dict(), chunk.encodings, chunk.total_uncompressed_size) for group in groups for chunk in _chunks(group)]


def _chunks(group: pq.RowGroupMetaData) -> list[pq.ColumnChunkMetaData]:
    return [group.column(at) for at in range(group.num_columns)]


def _types(table: pa.Table) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in table.schema}


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "in memory"])
def test_a_file_written_from_encoded_texts_is_the_same_file(streamed: bool) -> None:
    """Also its statistics, its encodings and its choice of dictionaries."""
    data = _file(_rows(), row_group_rows=2_000)
    parquet = _encoded(data, streamed)
    pieces = list(read_rows(parquet, batch_rows=700)) if streamed else [read_columns(parquet, [column.name for column in SCHEMA])]

    assert _types(pieces[0])["state"].equals(ENCODED_TEXT)
    assert _types(pieces[0])["note"].equals(pa.string())
    assert _types(pieces[0])["data"].equals(pa.binary())
    assert _described(_file(*pieces, row_group_rows=2_000)) == _described(_file(*map(decoded, pieces), row_group_rows=2_000))
    assert _read(_file(*pieces)).equals(_rows())


def test_only_texts_with_a_small_dictionary_in_every_row_group_stay_encoded() -> None:
    many = [np.random.default_rng(at).bytes(20).hex() for at in range(2_000)]
    schema = pa.schema([("id", pa.string()), ("few", pa.string()), ("many", pa.string()), ("late", pa.string()), ("raw", pa.binary())])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, use_dictionary=["id", "few", "many", "late", "raw"]) as writer:
        for late in (["a"] * 2_000, many):
            few, raw = ["x", "y"] * 1_000, [b"x"] * 2_000
            writer.write_table(pa.table([few, few, many, late, raw], schema=schema))
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))

    assert encoded_columns(metadata, {"id"}) == ["few"]
    assert encoded_columns(metadata) == ["id", "few"]


def test_texts_of_which_some_rows_stand_beside_the_dictionary_are_decoded() -> None:
    """Arrow would put them into one, all that a row group has: of a file of three megabytes that took 700."""
    texts = [f"a text that the codec makes small, number {at}" for at in range(200_000)]
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), sink, compression="zstd")
    chunk = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(0).column(0)
    assert chunk.has_dictionary_page
    assert "PLAIN" in chunk.encodings

    assert encoded_columns(pq.read_metadata(io.BytesIO(sink.getvalue()))) == []


def test_of_another_librarys_files_texts_are_decoded(tmp_path: Path) -> None:
    """Arrow takes a dictionary in which a text stands twice for one without it, and refuses pages that it reads otherwise."""
    with duckdb.connect() as connection:
        query = "SELECT i AS id, CASE i % 3 WHEN 0 THEN 'NEW' ELSE 'PAID' END AS state FROM range(9000) t(i)"
        connection.execute(f"COPY ({query}) TO '{tmp_path}/1.parquet' (FORMAT parquet)")
    metadata = pq.read_metadata(tmp_path / "1.parquet")
    assert metadata.row_group(0).column(1).has_dictionary_page

    assert encoded_columns(metadata) == []


def test_of_very_many_columns_texts_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at what the footer says of each takes longer than what is spared."""
    metadata = pq.read_metadata(io.BytesIO(_file(_rows())))
    assert encoded_columns(metadata, {"id"}) == ["state"]

    monkeypatch.setattr(encoded_texts, "MOST_CHUNKS", metadata.num_columns - 1)

    assert encoded_columns(metadata, {"id"}) == []


def test_texts_within_nested_columns_and_files_without_rows_are_left_alone() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"list": [["a", "b"]] * 9, "struct": [{"a": "x"}] * 9}), sink)
    assert encoded_columns(pq.read_metadata(io.BytesIO(sink.getvalue()))) == []

    assert encoded_columns(pq.read_metadata(io.BytesIO(_file()))) == []


def test_a_text_that_no_row_has_any_more_is_not_left_in_the_dictionary() -> None:
    """What was deleted is gone from the file, not only from its rows."""
    data = _file(_rows(states=["NEW", "SECRET", "PAID"]), compression="none")
    assert b"SECRET" in data

    rows = pa.concat_tables(read_rows(_encoded(data)))
    kept = rows.filter(pa.array([text != "SECRET" for text in rows["state"].to_pylist()]))
    after = _file(kept, compression="none")

    assert b"SECRET" not in after
    assert b"PAID" in after
    assert _read(after).equals(decoded(kept))


def test_rows_of_different_dictionaries_are_written_with_one() -> None:
    """A row group's rows come from several pieces, and the images of an update bring texts of their own."""
    encoded = [
        pa.concat_tables(read_rows(_encoded(_file(_rows(at, states))))) for at, states in ((0, ["a", "b"]), (ROWS, ["b", None, "c"]))
    ]
    images = encoded_like(_rows(2 * ROWS, ["d", "a", None], 7), encoded[0].schema)

    pieces = [encoded[0].slice(0, 40), images.slice(0, 3), encoded[1], images.slice(3), encoded[0].slice(40)]

    assert _read(_file(*pieces)).equals(decoded(pa.concat_tables(pieces)))
    one = with_one_dictionary(pa.concat_tables(pieces))["state"]
    assert [sorted(chunk.dictionary.to_pylist()) for chunk in one.chunks] == [["a", "b", "c", "d"]]


def test_pieces_may_come_encoded_or_not_after_each_other_and_beside_stored_row_groups() -> None:
    """The file has its form from what comes first."""
    data = _file(_rows(), row_group_rows=2_500)
    plain, encoded = _rows(), pa.concat_tables(read_rows(_encoded(data)))

    assert _read(_file(plain, encoded)).equals(pa.concat_tables([plain, plain]))
    assert _read(_file(encoded, plain)).equals(pa.concat_tables([plain, plain]))
    group = plain.slice(0, 2_500)
    for is_first in (True, False):
        sink = io.BytesIO()
        writer = DataFileWriter(sink, SCHEMA)
        for is_stored in (is_first, not is_first):
            if is_stored:
                writer.put(stored_group(data, 0, SCHEMA))
            else:
                writer.write(encoded)
        writer.close()
        assert _read(sink.getvalue()).equals(pa.concat_tables([group, plain] if is_first else [plain, group]))


@pytest.mark.parametrize("dictionary", [False, ["note"], True], ids=["none", "another column's", "any"])
def test_encoded_texts_may_be_written_without_a_dictionary(dictionary: Any) -> None:
    """As where the first rows say that it does not pay."""
    rows = _rows(states=[f"state {at}" for at in range(ROWS)])
    encoded = encoded_like(rows, pa.schema([field.with_type(ENCODED_TEXT) if field.name == "state" else field for field in rows.schema]))

    data = _file(encoded, dictionary=dictionary)

    assert _read(data).equals(rows)
    assert not pq.read_metadata(io.BytesIO(data)).row_group(0).column(1).has_dictionary_page
    assert _described(data) == _described(_file(rows, dictionary=dictionary))


def test_nothing_but_nulls() -> None:
    data = _file(_rows(states=[None]))
    encoded = pa.concat_tables(read_rows(_encoded(data)))

    assert decoded_bytes_of(encoded) > 0
    assert _read(_file(encoded)).equals(_rows(states=[None]))


LONG = ["x" * 1_000, "y" * 3_000, None]


def test_bytes_are_those_of_the_texts_not_of_the_indices() -> None:
    """A row group of long texts that repeat themselves would else be decoded to many times its bound."""
    rows = _rows(states=LONG)
    encoded = pa.concat_tables(read_rows(_encoded(_file(rows))))
    assert encoded.nbytes < rows.nbytes / 10

    assert decoded_bytes_of(encoded) == pytest.approx(rows.nbytes, rel=0.01)
    assert decoded_bytes_of(rows) == rows.nbytes
    written = pq.read_metadata(io.BytesIO(_file(encoded, row_group_bytes=1_000_000)))
    plain = pq.read_metadata(io.BytesIO(_file(rows, row_group_bytes=1_000_000)))
    sizes = [[each.row_group(at).num_rows for at in range(each.num_row_groups)] for each in (written, plain)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)


@pytest.mark.parametrize("texts", [LONG, ["", "y" * 3_000], STATES, [None]], ids=["long", "of any length", "short", "none"])
def test_bytes_are_counted_of_all_runs_of_rows(texts: list[str | None]) -> None:
    """Not of the longest alone: the others may have the long texts. Of short texts it may be a little more."""
    short = pa.concat_tables(read_rows(_encoded(_file(_rows(states=[texts[0]])))))
    table = pa.concat_tables([short, encoded_like(_rows(ROWS, texts, 4_000), short.schema)])
    assert table["state"].num_chunks > 1

    true, told = decoded(table).nbytes, decoded_bytes_of(table)

    assert true * 0.97 <= told <= true + 40 * table.num_rows


def test_bytes_of_rows_in_many_pieces_are_counted_by_the_width_of_their_columns() -> None:
    """As a merge's rows are. For each value there may be a bit that says whether it is null; texts are counted as they are."""
    rows = pa.table(
        {
            "flag": pa.array([True, None] * 500),
            "number": pa.array(range(1000), pa.int32()),
            "amount": pa.array([None, 1] * 500, pa.decimal128(12, 2)),
            "at": pa.array(range(1000), pa.timestamp("us", tz="UTC")),
            "note": [f"text {at}" for at in range(1000)],
        }
    )
    pieces = pa.concat_tables([rows.slice(start, 10) for start in range(0, 1000, 10)])

    assert rows.nbytes <= decoded_bytes_of(pieces) <= rows.nbytes + 1000 * rows.num_columns / 8 + 100 * 4 + rows.num_columns


def test_a_dictionary_that_has_grown_large_is_given_up() -> None:
    """As without it: the rows that follow have none. What no row has is not left behind even then."""
    first = pa.concat_tables(read_rows(_encoded(_file(_rows(states=["a", "SECRET"])))))
    first = first.filter(pa.array([text != "SECRET" for text in first["state"].to_pylist()]))
    images = _rows(ROWS, [f"a new text with the number {at}" for at in range(60_000)], 60_000)
    pieces = [first, encoded_like(images, first.schema), first]

    data = _file(*pieces, compression="none")

    assert _read(data).equals(decoded(pa.concat_tables(pieces)))
    assert b"SECRET" not in data
    assert len(data) < len(_file(*map(decoded, pieces), compression="none")) * 1.05


@pytest.mark.parametrize("seed", range(5))
def test_any_rows_come_back(seed: int) -> None:
    """Pieces of any size, of texts that are drawn anew for each file."""
    rng = np.random.default_rng(seed)
    drawn = [f"text {number}" for number in rng.integers(0, 30, rng.integers(1, 20))]
    rows = _rows(states=[None if rng.random() < 0.1 else str(rng.choice(drawn)) for _ in range(997)])
    encoded = pa.concat_tables(read_rows(_encoded(_file(rows, row_group_rows=int(rng.integers(500, 6_000)))), batch_rows=333))
    order = np.sort(rng.choice(ROWS, 3_000, replace=False))
    pieces = [encoded.take(pa.array(part)) for part in np.array_split(order, 13)]

    assert _read(_file(*pieces, row_group_rows=1_100)).equals(rows.take(pa.array(order)))
