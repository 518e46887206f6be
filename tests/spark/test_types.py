"""Each type of a raw file, and each way in which Parquet can write it: pyarrow, DuckDB and Spark read the same values from the lake."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.schema import ARROW_TO_LAKE, DMS_TO_ARROW, find, lake_type
from glue_jobs.protocol.replay import read_fold
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.replay import replay_table
from infra.local.dms_files import dms_parquet
from tests.spark.tables import WorkTable, texts
from tests.work_tables import IN_PROCESS, MakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = timezone.utc
DIGITS = Decimal("1234567890123456789012345678.0123456789")
FAR = datetime(3018, 7, 4, 5, 6, 7, 890_123)
Values = Sequence[Any]

# Arrow type → (values in the raw file, values in the lake; None: the same). A null is added to each.
EXTREMES: dict[str, tuple[Values, Values | None]] = {
    "bool": ([True, False], None),
    "int8": ([-128, 127], None),
    "int16": ([-(2**15), 2**15 - 1], None),
    "int32": ([-(2**31), 2**31 - 1], None),
    "int64": ([-(2**63), 2**63 - 1], None),
    "uint8": ([0, 255], None),
    "uint16": ([0, 2**16 - 1], None),
    "uint32": ([0, 2**32 - 1], None),
    "uint64": ([0, 2**64 - 1], [Decimal(0), Decimal(2**64 - 1)]),
    "halffloat": ([-0.0, 65504.0], None),
    "float": ([1.5, -(2.0**127)], None),
    "double": ([5e-324, -1.7976931348623157e308], None),
    "string": (["", "é😀'\n\0"], None),
    "large_string": (["NULL", "x"], None),
    "string_view": (["short", "longer than twelve bytes"], None),
    "binary": ([b"", b"\0\xff"], None),
    "large_binary": ([b"PAR1", b"x"], None),
    "binary_view": ([b"short", b"longer than twelve bytes"], None),
    "date32[day]": ([date(1, 1, 1), date(9999, 12, 31)], None),
    "date64[ms]": ([date(1, 1, 1), date(9999, 12, 31)], None),
    "time32[s]": ([time(0, 0), time(23, 59, 59)], ["00:00:00", "23:59:59"]),
    "time32[ms]": ([time(0, 0), time(23, 59, 59, 999_000)], ["00:00:00", "23:59:59.999"]),
    "time64[us]": ([time(1, 2, 3), time(23, 59, 59, 999_999)], ["01:02:03", "23:59:59.999999"]),
    "time64[ns]": ([time(1, 2, 3), time(1, 2, 3, 4)], ["01:02:03", "01:02:03.000004000"]),
    "timestamp[s]": ([datetime(1, 1, 1), datetime(9999, 12, 31)], None),
    "timestamp[ms]": ([datetime(1, 1, 1), datetime(3018, 7, 4, 5, 6, 7, 890_000)], None),
    "timestamp[us]": ([datetime(1, 1, 1), FAR], None),
    "timestamp[us, tz=Europe/Berlin]": ([datetime(2024, 7, 1, 12, tzinfo=UTC), FAR.replace(tzinfo=UTC)], None),
    "timestamp[ns]": (
        [np.datetime64("1969-12-31T23:59:59.999999999"), np.datetime64("2024-07-01T00:00:00.000001001")],
        [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 7, 1, 0, 0, 0, 1)],
    ),
    "decimal128(5, 0)": ([Decimal(-99999), Decimal(1)], None),
    "decimal128(38, 10)": ([DIGITS.copy_negate(), DIGITS], None),
    "decimal128(38, 38)": ([Decimal("0." + "9" * 38), Decimal("0." + "0" * 37 + "1")], None),
    "decimal256(38, 2)": ([Decimal("9" * 36 + ".99"), Decimal("-1.50")], None),
    "dictionary<values=string, indices=int32, ordered=0>": (["a", "b"], None),
}


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of this name."""
    known = [
        pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
        pa.large_binary(), pa.binary_view(), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.timestamp("us", "Europe/Berlin"),
        pa.decimal128(5, 0), pa.decimal128(38, 10), pa.decimal128(38, 38), pa.decimal256(38, 2), pa.dictionary(pa.int32(), pa.string()),
    ]  # fmt: skip
    found = next((kind for kind in known if str(kind) == name), None) or pa.type_for_alias(name)
    assert str(found) == name
    return found


def column(name: str) -> pa.Array:
    """The extremes of a type, and a null."""
    values = EXTREMES[name][0]
    kind = arrow_type(name)
    if name in ("string_view", "binary_view"):
        return pa.array([*values, None], pa.string() if name == "string_view" else pa.binary())  # no Parquet file tells them apart
    if name == "halffloat":
        return pa.array([np.float16(value) for value in values] + [None], kind)
    return pa.array([*values, None], kind)


def in_lake(name: str) -> list[Any]:
    """The values that the lake must have."""
    values, other = EXTREMES[name]
    expected = [*(values if other is None else other), None]
    if lake_type(name) != "timestamp":
        return expected
    return [None if value is None else value if value.tzinfo else value.replace(tzinfo=UTC) for value in expected]


def raw_table(names: Sequence[str]) -> pa.Table:
    columns = {f"c{at}": column(name) for at, name in enumerate(names)}
    return pa.table({"id": pa.array(range(3), pa.int64()), **columns})


# --- readers by path


def by_pyarrow(files: Sequence[bytes], schema: Any) -> list[dict[str, Any]]:
    return [row for data in files for row in pq.read_table(pa.BufferReader(data)).to_pylist()]


def by_duckdb(files: Sequence[bytes], schema: Any, folder: Any) -> list[dict[str, Any]]:
    for at, data in enumerate(files):
        (folder / f"{at}.parquet").write_bytes(data)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(f"SELECT * FROM read_parquet('{folder}/*.parquet')")
        names = [told[0] for told in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def by_spark(files: Sequence[bytes], schema: Any, folder: Any, spark: SparkSession) -> list[dict[str, Any]]:
    for at, data in enumerate(files):
        (folder / f"{at}.parquet").write_bytes(data)
    frame = spark.read.parquet(str(folder))
    assert dict(frame.dtypes) == {column.name: column.type for column in schema}
    instants = [column.name for column in schema if column.type == "timestamp"]
    chosen = [f"unix_micros({name}) AS {name}" if name in instants else name for name in frame.columns]  # PySpark has no year 1
    rows = []
    for row in frame.selectExpr(*chosen).collect():
        values = {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.asDict().items()}
        for name in instants:
            if values[name] is not None:
                values[name] = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=values[name])
        rows.append(values)
    return rows


def data_files(table: WorkTable) -> list[bytes]:
    return [read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + path) for path in sorted(table.visible())]


@pytest.fixture(scope="module")
def all_types(in_process: Clients) -> WorkTable:
    """A table with a column of each type, loaded from one file."""
    table = WorkTable(IN_PROCESS, "s3://raw/dms/", "s3://lake/lake/", pa.schema([]), shared=in_process)
    table.put_raw("LOAD00000001.parquet", written(raw_table(list(EXTREMES))))
    assert table.run("LoadInitial") == 0, table.last_run()
    return table


@pytest.fixture(scope="module", params=["pyarrow", "duckdb", "spark"])
def read(request: pytest.FixtureRequest, all_types: WorkTable, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Column → values in the order of the ids, as a reader sees them."""
    schema, files = all_types.snapshot().schema, data_files(all_types)
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "spark":
        rows = by_spark(files, schema, folder, request.getfixturevalue("spark"))
    else:
        rows = by_pyarrow(files, schema) if request.param == "pyarrow" else by_duckdb(files, schema, folder)
    rows.sort(key=lambda row: row["id"])
    return {name: [row[name] for row in rows] for name in rows[0]}


def plain(values: Sequence[Any]) -> list[str]:
    """Values as texts that say every difference; an instant is one whatever its zone."""
    return [text for value in values for text in texts([(_one_form(value),)])]


def _one_form(value: Any) -> Any:
    if isinstance(value, Decimal):  # readers give it with zeros at its end, or without
        with localcontext(prec=80):
            return value.normalize()
    return value.astimezone(UTC) if isinstance(value, datetime) else value


# --- a test per row of the tables in docs/types.md


@pytest.mark.parametrize("name", list(EXTREMES))
def test_every_reader_sees_the_values(all_types: WorkTable, read: dict[str, list[Any]], name: str) -> None:
    """Of each Arrow type, its extremes and null, in the lake's type."""
    at = list(EXTREMES).index(name)
    found = find(all_types.snapshot().schema, f"c{at}")

    assert found is not None
    assert found.type == lake_type(name)
    assert plain(read[f"c{at}"]) == plain(in_lake(name))


@pytest.mark.parametrize("name", list(DMS_TO_ARROW))
def test_what_dms_writes_is_read_as_that(name: str) -> None:
    """In DMS's own physical form, a Parquet 1.0 footer with converted types alone."""
    kind = DMS_TO_ARROW[name]

    data = dms_parquet(pa.table({"c": column(kind)}))
    read_as = pq.ParquetFile(io.BytesIO(data)).schema_arrow.field("c").type

    assert str(read_as).replace(", tz=UTC", "") == kind
    assert kind in EXTREMES


def test_no_type_is_without_a_test() -> None:
    """Each row of the table in core has values."""
    assert set(ARROW_TO_LAKE) | set(DMS_TO_ARROW.values()) <= set(EXTREMES)


# --- ways of writing

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "date32[day]", "timestamp[us]", "time32[ms]"]
TEXTS = ["string", "binary"]
FLOATS = ["float", "double"]
WRITTEN: dict[str, tuple[list[str], dict[str, Any]]] = {
    "parquet 1.0": ([*TEXTS, *FLOATS, "bool", "int8", "int64", "decimal128(38, 10)", "timestamp[ms]"], {"version": "1.0"}),
    "parquet 2.4": ([*INTEGERS, *TEXTS, *FLOATS], {"version": "2.4"}),
    "data page 2.0": ([*INTEGERS, *TEXTS, *FLOATS, "bool", "decimal128(38, 10)"], {"data_page_version": "2.0"}),
    "delta": (INTEGERS, {"encoding": "DELTA_BINARY_PACKED"}),
    "delta bytes": (TEXTS, {"encoding": "DELTA_BYTE_ARRAY", "data_page_version": "2.0"}),
    "delta lengths": (TEXTS, {"encoding": "DELTA_LENGTH_BYTE_ARRAY"}),
    "split bytes": (FLOATS, {"encoding": "BYTE_STREAM_SPLIT"}),
    "decimals as integers": (["decimal128(5, 0)"], {"store_decimal_as_integer": True}),
    "gzip": ([*INTEGERS, *TEXTS], {"compression": "gzip"}),
    "zstd": ([*INTEGERS, *TEXTS], {"compression": "zstd"}),
    "snappy in small groups": ([*INTEGERS, *TEXTS], {"compression": "snappy", "row_group_size": 1}),
    "int96": (["timestamp[us]"], {"use_deprecated_int96_timestamps": True, "store_schema": False}),
    "without the Arrow schema": ([*INTEGERS, *TEXTS, *FLOATS], {"store_schema": False}),
}


def written(rows: pa.Table, *, encoding: str = "", **options: Any) -> bytes:
    """A Parquet file; encoding: of all columns but `Op` and `id`."""
    if encoding:
        columns = {name: encoding for name in rows.column_names if name not in ("Op", "id")}
        options = {"use_dictionary": False, "column_encoding": columns, **options}
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("way", list(WRITTEN))
def test_every_way_of_writing_gives_the_same_rows(new_table: MakeTable, way: str) -> None:
    """As a load file and as a CDC file."""
    names, options = WRITTEN[way]
    table = new_table(pa.schema([]))
    table.put_raw("LOAD00000001.parquet", written(raw_table(names), **options))
    assert table.run("LoadInitial") == 0, table.last_run()
    again = raw_table(names).slice(1).add_column(0, "Op", pa.array(["U", "U"]))
    table.put_raw(table.next_name(), written(again, **options))

    assert table.run() == 0, table.last_run()

    assert table.counts() == (0, 2, 0)
    found = table.read().sort_by("id")
    for at, name in enumerate(names):
        assert plain(found[f"c{at}"].to_pylist()) == plain(in_lake(name)), name


def _by_pandas(frame: pd.DataFrame, **options: Any) -> bytes:
    sink = io.BytesIO()
    frame.to_parquet(sink, index=False, **options)
    return sink.getvalue()


def test_a_file_that_pandas_wrote(new_table: MakeTable) -> None:
    """Its nanoseconds become microseconds, and the change says how many values lost digits; categories are texts."""
    table = new_table(pa.schema([]))
    moments = pd.to_datetime(["2024-07-01T01:02:03.000004005", "1969-12-31T23:59:59.999999999", None])
    kinds, numbers = pd.Categorical(["a", None, "b"]), pd.array([1, None, 3], "Int64")
    frame = pd.DataFrame({"id": [1, 2, 3], "at": moments, "kind": kinds, "n": numbers, "x": [0.5, None, 1]})
    table.put_raw("LOAD00000001.parquet", _by_pandas(frame))

    assert table.run("LoadInitial") == 0, table.last_run()

    assert table.rows() == [
        (1, datetime(2024, 7, 1, 1, 2, 3, 4, UTC), "a", 1, 0.5),
        (2, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None, None, None),
        (3, None, "b", 3, 1.0),
    ]
    assert table.head().details["digits_cut"] == {"at": 2}
    table.put_raw(table.next_name(), _by_pandas(frame[1:]))
    assert table.run() == 0, table.last_run()
    assert table.head().details["digits_cut"] == {"at": 1}


def test_a_commit_time_may_be_a_category(new_table: MakeTable) -> None:
    """It is found by its place and its values, and says where the changes begin."""
    table = new_table(pa.schema([]))
    times = pd.Categorical(["2024-05-01 12:00:00", "2024-05-01 11:59:59", "2024-05-01 12:00:00"])
    frame = pd.DataFrame({"at": times, "id": [1, 2, 3]})
    table.put_raw("LOAD00000001.parquet", _by_pandas(frame, row_group_size=2))

    assert table.run("LoadInitial") == 0, table.last_run()

    assert table.snapshot().timestamp_column == "at"
    assert table.snapshot().generation.cdc_from == "20240501114959"
    assert [row[0] for row in table.rows()] == ["2024-05-01 11:59:59", *["2024-05-01 12:00:00"] * 2]
    table.put_raw(table.next_name(), _by_pandas(frame, row_group_size=2))
    assert table.run() == 0, table.last_run()
    assert table.last_run()["backward"] == 1


def test_microseconds_lose_nothing_and_say_nothing(new_table: MakeTable) -> None:
    """Also where a file has them in nanoseconds."""
    table = new_table(pa.schema([]))
    table.put_raw("LOAD00000001.parquet", _by_pandas(pd.DataFrame({"id": [1], "at": pd.to_datetime(["2024-07-01T01:02:03.000004"])})))

    assert table.run("LoadInitial") == 0, table.last_run()

    assert "digits_cut" not in table.head().details


# --- extension types

LINES = ['{"a": 1}', "", None]


@pytest.mark.parametrize("store_schema", [True, False], ids=["said by Arrow", "said by Parquet"])
def test_json_is_a_text(new_table: MakeTable, store_schema: bool) -> None:
    """In a load file and a CDC file, also where it is the commit time or the key."""
    table = new_table(pa.schema([]), primary_key="key")
    table.edit(TimestampColumn="at")
    times = pa.array(["2024-05-01 12:00:00", "2024-05-01 12:00:02", "2024-05-01 12:00:01"]).cast(pa.json_())
    rows = pa.table({"at": times, "key": pa.array(["a", "b", "c"]).cast(pa.json_()), "line": pa.array(LINES).cast(pa.json_())})
    table.put_raw("LOAD00000001.parquet", written(rows, store_schema=store_schema))
    table.put_raw(table.next_name(), written(rows.slice(1).add_column(0, "Op", pa.array(["U", "D"])), store_schema=store_schema))

    table.sync()

    assert [(column.name, column.type) for column in table.snapshot().schema] == [("at", "string"), ("key", "string"), ("line", "string")]
    assert table.rows() == [("2024-05-01 12:00:00", "a", LINES[0]), ("2024-05-01 12:00:02", "b", LINES[1])]
    assert table.last_run()["backward"] == 1


def test_json_that_is_no_utf8_is_refused(new_table: MakeTable) -> None:
    """As any text."""
    table = new_table(pa.schema([]))
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"{}", b"\xff"], pa.binary()).buffers())
    table.put_raw("LOAD00000001.parquet", written(pa.table({"id": [1, 2], "line": pa.ExtensionArray.from_storage(pa.json_(), bad)})))

    error = table.blocked()

    assert (error["code"], "'line'" in error["message"], "row 1" in error["message"]) == ("bad-text", True, True)


@pytest.mark.parametrize("store_schema", [True, False], ids=["said by Arrow", "said by Parquet"])
def test_a_uuid_in_sixteen_bytes_is_no_type_of_the_lake(new_table: MakeTable, store_schema: bool) -> None:
    """Whatever Arrow makes of it."""
    table = new_table(pa.schema([]))
    keys = pa.array([bytes(16)], pa.binary(16))
    rows = pa.table({"id": [1], "key": pa.ExtensionArray.from_storage(pa.uuid(), keys)})
    table.put_raw("LOAD00000001.parquet", written(rows, store_schema=store_schema))

    error = table.blocked()

    assert (error["code"], "fixed_size_binary[16]" in error["message"]) == ("unsupported-type", True)


# --- PostgreSQL's booleans

FLAGS = pa.schema([("id", pa.int64()), ("flag", pa.string())])
REAL_FLAGS = pa.schema([("id", pa.int64()), ("flag", pa.bool_())])


def test_a_boolean_column_takes_postgresqls_texts(new_table: MakeTable) -> None:
    """And stays boolean; a table that never was stays a text."""
    table = new_table(REAL_FLAGS)
    table.load([(1, True), (2, False)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "false")), ("I", (3, "true")), ("I", (4, "T")), ("I", (5, "f")), ("I", (6, None))], columns=FLAGS)

    assert table.run() == 0, table.last_run()

    assert table.rows() == [(1, False), (2, False), (3, True), (4, True), (5, False), (6, None)]
    texts_table = new_table(FLAGS)
    texts_table.load([(1, "true")])
    assert texts_table.run("LoadInitial") == 0
    assert texts_table.rows() == [(1, "true")]


def test_a_person_says_which_texts_are_booleans(new_table: MakeTable) -> None:
    """In the attribute Schema, which need not name the other columns; also for a column that comes later."""
    table = new_table(FLAGS)
    table.edit(Schema='{"flag": "boolean", "late": "boolean"}')
    table.load([(1, "true"), (2, "f")])
    assert table.run("LoadInitial") == 0, table.last_run()
    later = pa.schema([*FLAGS, ("late", pa.string())])
    table.cdc([("U", (1, "false", "t"))], columns=later)

    assert table.run() == 0, table.last_run()

    assert [column.type for column in table.snapshot().schema] == ["bigint", "boolean", "boolean"]
    assert table.rows() == [(1, False, True), (2, False, None)]


def test_another_text_is_no_boolean(new_table: MakeTable) -> None:
    """The error names file, row, column and value."""
    table = new_table(REAL_FLAGS)
    table.load([(1, True)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "true")), ("U", (1, "maybe"))], columns=FLAGS)

    error = table.blocked()

    assert error["code"] == "value-lost"
    assert "row 1" in error["message"]
    assert "'flag'" in error["message"]
    assert "'maybe'" in error["message"]


# --- columns of DMS's own


def test_rows_that_dms_sent_twice_are_counted(new_table: MakeTable) -> None:
    """By AR_H_CHANGE_SEQ, which is not kept; within a change, over its files."""
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("AR_H_CHANGE_SEQ", pa.string())])
    table = new_table(pa.schema([columns.field("id"), columns.field("name")]))
    table.load([(1, "a")])
    assert table.run("LoadInitial") == 0
    first, second, third = (f"2024050112000000{number:019}" for number in (1, 2, 3))
    table.cdc([("U", (1, "b", first)), ("U", (1, "c", second))], columns=columns)
    table.cdc([("U", (1, "c", second)), ("I", (2, "d", None)), ("I", (3, "e", None))], columns=columns)

    assert table.run() == 0, table.last_run()

    assert table.rows() == [(1, "c"), (2, "d"), (3, "e")]
    assert table.head().details["repeated_rows"] == 1
    table.cdc([("U", (1, "d", third))], columns=columns)
    assert table.run() == 0
    assert "repeated_rows" not in table.head().details


@pytest.mark.parametrize(
    ("attribute", "image"),
    [("OLD_", "OLD_{}"), ("*__before", "{}__before"), ("BI_, was_*_then", "was_{}_then"), ("", "BI_{}")],
)
@pytest.mark.parametrize("partition_key", ["null", "shop"])
def test_before_images_under_any_name(new_table: MakeTable, attribute: str, image: str, partition_key: str) -> None:
    """A key that changed leaves its old row, also in another partition; a delete may carry the key alone."""
    shops: list[tuple[str, pa.DataType]] = [("shop", pa.string()), ("id", pa.int64()), ("note", pa.string())]
    table = new_table(pa.schema(shops), primary_key="shop,id", partition_key=partition_key)
    table.edit(BeforeImagePrefix=attribute)
    table.load([("a", 1, "x"), ("a", 2, "y"), ("b", 3, "z")])
    assert table.run("LoadInitial") == 0
    columns = pa.schema([*shops, (image.format("shop"), pa.string()), (image.format("id"), pa.int64())])
    table.cdc([("U", ("b", 1, "moved", "a", 1)), ("U", ("a", 2, "same", "a", 2)), ("D", ("b", 3, None, None, None))], columns=columns)

    assert table.run() == 0, table.last_run()

    assert table.rows() == [("a", 2, "same"), ("b", 1, "moved")]
    assert [column.name for column in table.snapshot().schema] == ["shop", "id", "note"]
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits(), table.state().before_images)
    fold = read_fold(place.s3, table.out_path, table.path, table.item()["Head"])
    assert [finding.code for finding in replay_table(place, table.path, fold).findings if finding.is_difference] == []


def test_a_pattern_that_is_none_is_refused(new_table: MakeTable) -> None:
    """It would take every last column for an image of another."""
    table = new_table()
    table.edit(BeforeImagePrefix="*")

    with pytest.raises(TableBlocked, match="BeforeImagePrefix") as caught:
        table.state()

    assert caught.value.code == "bad-attribute"


def test_files_without_op_are_inserts(new_table: MakeTable) -> None:
    """CdcInsertsOnly, and a load without IncludeOpForFullLoad; the commit time under any name is found by its place."""
    columns = pa.schema([("written", pa.string()), ("id", pa.int64())])
    table = new_table(columns)
    for name, rows in (("LOAD00000001.parquet", [1, 2]), (table.next_name(), [2, 3])):
        data = pa.table({"written": ["2024-05-01 12:00:00.000001"] * 2, "id": rows}, schema=columns)
        table.put_raw(name, dms_parquet(data))
    table.sync()

    assert [row[1] for row in table.rows()] == [1, 2, 3]
    assert table.snapshot().timestamp_column == "written"
