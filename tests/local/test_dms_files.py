"""The stand-in's files look like those that DMS writes."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.local.dms_files import (
    CdcFileNames,
    DmsRow,
    cdc_file_name,
    cdc_file_time,
    dms_parquet,
    dms_table,
    load_file_name,
)

WHEN = datetime(2020, 11, 17, 15, 30, 46, 33_900, tzinfo=timezone.utc)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.uint8()),
        ("small", pa.uint16()),
        ("middle", pa.uint32()),
        ("large", pa.uint64()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("clock", pa.time32("ms")),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("ratio", pa.float32()),
    ]
)
VALUES = (
    -1, 255, 65_535, 4_294_967_295, 18_446_744_073_709_551_615, Decimal("-12345678.90"), date(1, 1, 1),
    datetime(3018, 1, 2, 3, 4, 5, 678_901), None, "é😀'", b"\x00\xff", True, 0.5,
)  # fmt: skip


def _write(rows: int = 1) -> pq.ParquetFile:
    table = dms_table(SCHEMA, [DmsRow("I", VALUES, WHEN)] * rows, timestamp_column="cdc_at")
    return pq.ParquetFile(io.BytesIO(dms_parquet(table)))


def test_load_file_names_count_in_hexadecimal() -> None:
    """The tenth load file is LOAD0000000A."""
    names = [load_file_name(number) for number in (1, 9, 10, 16, 0xFFFFFFFF)]

    assert names == [f"LOAD{text}.parquet" for text in ("00000001", "00000009", "0000000A", "00000010", "FFFFFFFF")]


@pytest.mark.parametrize("number", [0, -1, 0x1_0000_0000])
def test_load_file_numbers_out_of_range_are_refused(number: int) -> None:
    """A number that eight hexadecimal digits can't say is an error."""
    with pytest.raises(ValueError, match="found"):
        load_file_name(number)


def test_a_cdc_file_is_named_by_its_time_in_utc() -> None:
    """The name is the UTC time cut to milliseconds, from whatever zone."""
    local = WHEN.astimezone(timezone(timedelta(hours=-9, minutes=-30)))

    assert cdc_file_name(WHEN) == cdc_file_name(local) == "20201117-153046033.parquet"


def test_a_cdc_file_name_needs_an_aware_time() -> None:
    """A naive time is refused, since nobody knows its zone."""
    with pytest.raises(ValueError, match="aware"):
        cdc_file_name(datetime(2020, 1, 1))


def test_the_time_of_a_cdc_file_name_is_read_back() -> None:
    """Name and time are the same to the millisecond; other names are refused."""
    assert cdc_file_time("20201117-153046033.parquet") == WHEN.replace(microsecond=33_000)
    with pytest.raises(ValueError, match="LOAD"):
        cdc_file_time("LOAD00000001.parquet")


def test_cdc_file_names_increase_when_the_clock_does_not() -> None:
    """A clock that stands still, goes back, or is behind the last run's last name never shows in the order."""
    names = CdcFileNames("20201231-235959999.parquet")
    times = [WHEN, WHEN, datetime(2021, 1, 1, tzinfo=timezone.utc), WHEN, datetime(2022, 1, 1, tzinfo=timezone.utc)]

    made = [names.next(when) for when in times]

    assert made == sorted(set(made))
    assert made[0] == "20210101-000000000.parquet"
    assert made[-1] == "20220101-000000000.parquet"


def test_columns_are_op_then_timestamp_then_the_tables() -> None:
    """Op comes first, the timestamp column second, as DMS has it."""
    table = dms_table(pa.schema([("id", pa.int32())]), [DmsRow("D", [7], WHEN)], timestamp_column="cdc_at")

    assert table.to_pylist() == [{"Op": "D", "cdc_at": "2020-11-17 15:30:46.033900", "id": 7}]


def test_a_load_file_can_be_without_op() -> None:
    """Without IncludeOpForFullLoad there is no Op column at all."""
    table = dms_table(pa.schema([("id", pa.int32())]), [DmsRow(None, [7])], with_op=False)

    assert table.column_names == ["id"]


def test_a_row_by_name_is_null_where_it_names_nothing() -> None:
    """D with only the key: every other column is null."""
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])

    table = dms_table(schema, [DmsRow("D", {"id": 7})])

    assert table.to_pylist() == [{"Op": "D", "id": 7, "name": None}]


def test_a_row_without_the_commit_time_its_column_needs_is_refused() -> None:
    """The timestamp column is required, so a row without a time can't be written."""
    with pytest.raises(ValueError, match="commit time"):
        dms_table(pa.schema([("id", pa.int32())]), [DmsRow("I", [1])], timestamp_column="cdc_at")


def test_the_footer_is_of_format_1_0_by_aws() -> None:
    """Version, author and metadata are DMS's, not pyarrow's."""
    footer = _write().metadata

    assert (footer.format_version, footer.created_by, footer.metadata) == ("1.0", "AWS", None)


def test_types_are_physical_and_converted_types_only() -> None:
    """Unsigned integers stay unsigned, decimals are fixed length, timestamps microseconds; no logical type is stored."""
    schema = _write().schema
    found = {}
    for index in range(len(schema)):
        column = schema.column(index)
        found[column.name] = (column.physical_type, column.converted_type)

    assert found == {
        "Op": ("BYTE_ARRAY", "UTF8"),
        "cdc_at": ("BYTE_ARRAY", "UTF8"),
        "id": ("INT64", "NONE"),
        "tiny": ("INT32", "UINT_8"),
        "small": ("INT32", "UINT_16"),
        "middle": ("INT32", "UINT_32"),
        "large": ("INT64", "UINT_64"),
        "price": ("FIXED_LEN_BYTE_ARRAY", "DECIMAL"),
        "day": ("INT32", "DATE"),
        "at": ("INT64", "TIMESTAMP_MICROS"),
        "clock": ("INT32", "TIME_MILLIS"),
        "name": ("BYTE_ARRAY", "UTF8"),
        "raw": ("BYTE_ARRAY", "NONE"),
        "flag": ("BOOLEAN", "NONE"),
        "ratio": ("FLOAT", "NONE"),
    }
    at = schema.column(schema.names.index("at")).logical_type
    assert "is_from_converted_type=true" in str(at), "a stored logical type would make it a local timestamp"


def test_only_the_timestamp_column_is_required() -> None:
    """Every other column is optional, as in DMS's files."""
    schema = _write().schema

    required = [schema.column(index).name for index in range(len(schema)) if schema.column(index).max_definition_level == 0]

    assert required == ["cdc_at"]


def test_pages_are_plain_and_uncompressed_without_dictionary() -> None:
    """Encodings are PLAIN and RLE (levels), with no compression and no dictionary page."""
    group = _write().metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]

    assert {column.compression for column in columns} == {"UNCOMPRESSED"}
    assert {encoding for column in columns for encoding in column.encodings} <= {"PLAIN", "RLE", "BIT_PACKED"}
    assert not any(column.has_dictionary_page or column.has_offset_index for column in columns)


def test_decimals_have_no_statistics_and_integers_have() -> None:
    """A reader can't prune by a decimal column's minimum and maximum."""
    file = _write()
    group = file.metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}

    assert columns["price"].statistics is None
    assert columns["id"].statistics.min == -1


def test_row_groups_have_10024_rows() -> None:
    """The default RowGroupLength shows in files that are larger."""
    footer = _write(20_050).metadata

    assert [footer.row_group(index).num_rows for index in range(footer.num_row_groups)] == [10_024, 10_024, 2]


def test_values_are_read_back() -> None:
    """Years 1 and 3018, unsigned maxima, emoji and bytes survive the physical format."""
    row = _write().read().to_pylist()[0]

    expected = dict(zip(SCHEMA.names, VALUES, strict=True))
    expected["at"] = datetime(3018, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone.utc)  # a converted type says UTC
    assert row == {"Op": "I", "cdc_at": "2020-11-17 15:30:46.033900", **expected}


def test_an_empty_table_is_a_readable_file() -> None:
    """No row, no row group, but all columns."""
    file = pq.ParquetFile(io.BytesIO(dms_parquet(dms_table(SCHEMA, []))))

    assert file.read().num_rows == 0
    assert file.schema_arrow.names == ["Op", *SCHEMA.names]


def test_nanoseconds_are_refused() -> None:
    """DMS never writes them, so neither do we."""
    with pytest.raises(ValueError, match="column at"):
        dms_parquet(dms_table(pa.schema([("at", pa.timestamp("ns"))]), []))
