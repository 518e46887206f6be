"""Data files mean the same to Spark, DuckDB and pyarrow, and are written in bounded pieces."""

from __future__ import annotations

import gc
import io
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.schema import Column, Schema, names
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_reader import dictionary_columns, read_columns, read_data_file, read_rows
from glue_jobs.spark.data_file_writer import DataFileWriter
from tests.spark.far_values import FAR, ROWS, UTC, assert_far, far_table
from tests.spark.row_groups import stored_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _write(*tables: pa.Table, schema: Schema = FAR, **options: Any) -> bytes:
    sink = io.BytesIO()
    writer = DataFileWriter(sink, schema, **options)
    for table in tables:
        writer.write(table)
    assert writer.close() == sum(table.num_rows for table in tables)
    assert writer.size_bytes == len(sink.getvalue())
    return sink.getvalue()


def _open(data: bytes) -> pq.ParquetFile:
    return read_data_file(io.BytesIO(data), "orders/1.parquet")


@pytest.fixture(params=["zstd", "snappy", "stored"])
def far_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data file with the values that broke readers; also one in which some row groups stand as they stood in another."""
    path = tmp_path / "far.parquet"
    path.write_bytes(_partly_stored() if request.param == "stored" else _write(far_table(), compression=request.param))
    return path


def _partly_stored() -> bytes:
    first = _write(far_table(), compression="snappy", row_group_rows=1)
    sink = io.BytesIO()
    writer = DataFileWriter(sink, FAR)
    writer.put(stored_group(first, 3, FAR))
    writer.write(far_table(ROWS[:2]))
    writer.put(stored_group(first, 2, FAR))
    writer.put(stored_group(first, 4, FAR))
    assert writer.close() == len(ROWS)
    return sink.getvalue()


def test_spark_reads_the_values_and_types(far_file: Path, spark: SparkSession) -> None:
    """Dates before 1582 and timestamps before 1900 are not refused or shifted, decimals of 38 digits are whole."""
    for vectorized in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        frame = spark.read.parquet(str(far_file))
        assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [(column.name, column.type) for column in FAR]
        # As text and micros: PySpark makes datetimes in the machine's zone, and none before year 1 in some.
        rows = frame.selectExpr(*(_for_python(column) for column in FAR)).collect()
        assert_far([tuple(_from_spark(column, value) for column, value in zip(FAR, row, strict=True)) for row in rows])
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def _for_python(column: Column) -> str:
    casts = {"timestamp": f"unix_micros({column.name})", "date": f"unix_date({column.name})"}
    return f"{casts.get(column.type, column.name)} as {column.name}"


def _from_spark(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.type == "timestamp":
        return pa.scalar(value, pa.int64()).cast(pa.timestamp("us", tz="UTC")).as_py().astimezone(UTC)
    if column.type == "date":
        return date.fromordinal(value + date(1970, 1, 1).toordinal())
    return bytes(value) if column.type == "binary" else value


def test_duckdb_reads_the_values_and_types(far_file: Path) -> None:
    """Timestamps come with time zone, decimals as decimals, text as text."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        relation = connection.sql(f"SELECT * FROM read_parquet('{far_file}')")
        types = [str(kind) for kind in relation.types]
        rows = relation.fetchall()

    assert types == [
        "INTEGER", "TINYINT", "SMALLINT", "BIGINT", "DATE", "TIMESTAMP WITH TIME ZONE", "DECIMAL(38,10)", "DECIMAL(9,2)", "DECIMAL(18,0)",
        "DOUBLE", "FLOAT", "BLOB", "VARCHAR", "BOOLEAN",
    ]  # fmt: skip
    assert_far([tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row) for row in rows])


def test_pyarrow_reads_the_values_and_types(far_file: Path) -> None:
    """With the very schema that was written, though none is stored beside Parquet's own."""
    table = read_data_file(far_file).read()

    assert table.schema.remove_metadata() == arrow_schema(FAR)
    assert_far([tuple(row.values()) for row in table.to_pylist()])


def test_the_metadata_is_our_own() -> None:
    """An input's stale Spark schema would make the file unreadable; Spark's version says how old dates are meant."""
    stale = far_table().replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": "{}", "pandas": "{}"})

    parquet = _open(_write(stale))

    assert parquet.metadata.metadata == {b"org.apache.spark.version": b"3.5.6"}


def test_what_spark_wrote_as_int96_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """INT96 keeps years beyond 2262 and times before 1970."""
    settings = {"spark.sql.parquet.outputTimestampType": "INT96", "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED"}
    texts = ["1899-12-31 23:59:59.999999", "3018-01-02 03:04:05.678901", "1969-12-31 12:00:00.5"]
    for name, value in settings.items():
        spark.conf.set(name, value)
    frame = spark.createDataFrame([(text,) for text in texts], "text string").selectExpr("cast(text as timestamp) at")
    frame.coalesce(1).write.parquet(str(tmp_path / "int96"))
    for name in settings:
        spark.conf.unset(name)
    (path,) = (tmp_path / "int96").glob("*.parquet")
    parquet = read_data_file(path)

    assert parquet.metadata.row_group(0).column(0).physical_type == "INT96"
    assert [value.replace(tzinfo=None) for value in parquet.read()["at"].to_pylist()] == [datetime.fromisoformat(text) for text in texts]


def test_statistics_are_written_and_timestamps_are_microseconds() -> None:
    """Readers skip files and row groups by them; nanoseconds can't be read by Spark."""
    parquet = _open(_write(far_table()))
    columns = {parquet.schema.column(index).name: parquet.schema.column(index) for index in range(len(parquet.schema))}
    chunk = parquet.metadata.row_group(0).column(FAR.index(Column("day", "date")))

    assert (chunk.statistics.min, chunk.statistics.max, chunk.statistics.null_count) == (date(1, 1, 1), date(3018, 1, 2), 1)
    assert columns["at"].physical_type == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(columns["at"].logical_type)
    assert columns["amount"].physical_type == columns["cents"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert chunk.compression == "ZSTD"


def test_columns_are_written_by_name() -> None:
    """In the schema's order, also if a batch has another one; what the schema lacks is left out."""
    schema = (Column("a", "int"), Column("b", "int"))
    batch = pa.record_batch({"b": pa.array([2], pa.int16()), "x": ["?"], "a": pa.array([1], pa.int64())})

    assert _open(_write(batch, schema=schema)).read().to_pylist() == [{"a": 1, "b": 2}]


def test_row_groups_are_bounded_by_rows() -> None:
    """Many small batches share a row group, a large one is cut; the rows keep their order."""
    schema = (Column("n", "bigint"),)
    numbers = pa.table({"n": list(range(1000))})
    data = _write(numbers.slice(0, 30), numbers.slice(30, 30), numbers.slice(60), schema=schema, row_group_rows=100)
    parquet = _open(data)
    groups = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]

    assert max(groups) <= 100
    assert groups[0] == 60
    assert parquet.read()["n"].to_pylist() == list(range(1000))


def test_row_groups_are_bounded_by_bytes() -> None:
    """Wide rows make smaller row groups, however many come at once; a row above the bound is written all the same."""
    schema = (Column("text", "string"),)
    wide = pa.table({"text": ["x" * 1000] * 50})
    parquet = _open(_write(wide, wide.slice(0, 3), pa.table({"text": ["y" * 20_000]}), schema=schema, row_group_bytes=10_000))

    groups = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]
    assert sum(groups) == 54
    assert max(groups) <= 10
    assert len(groups) <= 8
    assert groups[-1] == 1


def test_the_size_grows_with_what_is_written() -> None:
    """Rows that still wait are counted by a guess, so that a file can be ended near its target size."""
    sink = io.BytesIO()
    writer = DataFileWriter(sink, (Column("n", "bigint"),), row_group_rows=1000, dictionary=False)
    sizes = [writer.size_bytes]

    for start in range(0, 5000, 500):
        writer.write(pa.table({"n": list(range(start, start + 500))}))
        sizes.append(writer.size_bytes)
    rows = writer.close()

    assert sizes[0] == 0 < sizes[1] < sizes[5] < sizes[10]
    assert rows == 5000
    assert 0.5 < sizes[-1] / len(sink.getvalue()) < 1.5


def test_a_file_without_rows_is_whole() -> None:
    """It has the schema."""
    parquet = _open(_write())

    assert (parquet.metadata.num_rows, parquet.schema_arrow.remove_metadata()) == (0, arrow_schema(FAR))
    assert dictionary_columns(parquet) == []


def test_the_sink_stays_open() -> None:
    """Whoever opened it finishes the upload."""
    sink = io.BytesIO()
    DataFileWriter(sink, FAR).close()

    assert not sink.closed


def test_a_failing_sink_is_not_taken_for_written() -> None:
    """The error of the upload comes out of the writer."""

    class Full:
        def write(self, data: bytes) -> int:
            raise ConnectionError("gone")

    writer = DataFileWriter(Full(), FAR)

    with pytest.raises(ConnectionError, match="gone"):
        _write_and_close(writer)


def _write_and_close(writer: DataFileWriter) -> None:
    writer.write(far_table())
    writer.close()


def test_a_dictionary_is_chosen_by_the_first_rows_and_kept_by_a_rewrite() -> None:
    """Columns that repeat themselves get one; a rewrite gives one to the columns that had it, and to no others."""
    schema = (Column("id", "bigint"), Column("a.b", "string"), Column("flag", "boolean"), Column("text", "string"))
    rows = pa.table(
        {"id": list(range(900)), "a.b": ["x", "y", "z"] * 300, "flag": [True] * 900, "text": [f"text {row}" for row in range(900)]}
    )

    first = _open(_write(rows, schema=schema))
    second = _open(_write(rows, schema=schema, dictionary=dictionary_columns(first)))

    assert dictionary_columns(first) == dictionary_columns(second) == ["a.b"]
    assert dictionary_columns(_open(_write(rows, schema=schema, dictionary=()))) == []
    assert dictionary_columns(_open(_write(rows, schema=schema, dictionary=False))) == []
    assert second.read().to_pylist() == rows.to_pylist()


def test_some_columns_are_read_in_pieces_or_whole() -> None:
    """In the file's order; names that the file lacks are left out."""
    schema = (Column("id", "bigint"), Column("name", "string"), Column("name.x", "string"))
    rows = pa.table({"id": list(range(10)), "name": ["n"] * 10, "name.x": ["nx"] * 10})
    data = _write(rows, schema=schema, row_group_rows=4)

    assert read_columns(_open(data), ["name", "id", "gone"]).column_names == ["id", "name"]
    pieces = list(read_rows(_open(data), ["name", "id"], batch_rows=3))
    assert pa.concat_tables(pieces).to_pylist() == rows.select(["id", "name"]).to_pylist()
    assert max(piece.num_rows for piece in pieces) == 3
    assert next(read_rows(_open(data))).column_names == list(names(schema))


def test_a_damaged_data_file_is_named() -> None:
    """Damage in the footer and in the pages."""
    data = _write(far_table())
    damaged = data[:40] + bytes(400) + data[440:]

    for attempt in (
        lambda: _open(data[:-20]),
        lambda: read_columns(_open(damaged), names(FAR), "orders/1.parquet"),
        lambda: list(read_rows(_open(damaged), name="orders/1.parquet")),
    ):
        with pytest.raises(TableBlocked, match=r"orders/1\.parquet") as caught:
            attempt()
        assert caught.value.code == "bad-data-file"
        assert caught.value.todo


def test_an_aborted_writer_writes_nothing_more() -> None:
    """What it holds is dropped, also when Python forgets it: the upload behind it is aborted by then."""
    sink = io.BytesIO()
    writer = DataFileWriter(sink, (Column("n", "bigint"),), row_group_rows=10)
    writer.write(pa.table({"n": list(range(1000))}))
    before = sink.tell()

    writer.abort()
    writer.close()
    del writer
    gc.collect()

    assert sink.tell() == before
