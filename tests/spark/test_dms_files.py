"""DMS files are read with operations and row numbers, whatever DMS leaves out; damage blocks the table and says where."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.ranged import TAIL_BYTES, RangedFile
from glue_jobs.core.errors import LeaseLost, TableBlocked
from glue_jobs.core.schema import Column, Schema, names
from glue_jobs.spark.arrow_types import LostDigits
from glue_jobs.spark.dms_files import check_key_columns, check_keys, dms_schema, looks_like_timestamp, open_dms, read_dms
from infra.local.dms_files import ROW_GROUP_ROWS, DmsRow, dms_parquet, dms_table

NAME = "sales/orders/20240102-030405678.parquet"
WHEN = datetime(2024, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone.utc)
ID_NAME = pa.schema([("id", pa.int64()), ("name", pa.string())])
LAKE: Schema = (Column("id", "bigint"), Column("name", "string"))


def _dms(rows: list[DmsRow], schema: pa.Schema = ID_NAME, *, timestamp: str | None = None, with_op: bool = True) -> bytes:
    return dms_parquet(dms_table(schema, rows, timestamp_column=timestamp, with_op=with_op))


def _file(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _read(data: bytes, columns: Schema = LAKE, **options: Any) -> list[dict[str, Any]]:
    return [row for table in read_dms(io.BytesIO(data), NAME, columns=columns, **options) for row in table.to_pylist()]


def _schema(data: bytes, attribute: str = "") -> Any:
    return dms_schema(open_dms(io.BytesIO(data), NAME), NAME, attribute)


def _schema_and_rows(data: bytes, columns: Schema = LAKE) -> list[dict[str, Any]]:
    _schema(data)
    return _read(data, columns)


def _refusal(data: bytes, columns: Schema = LAKE) -> TableBlocked:
    with pytest.raises(TableBlocked) as caught:
        _schema_and_rows(data, columns)
    assert NAME in caught.value.message
    assert caught.value.todo
    return caught.value


def test_operations_and_row_numbers() -> None:
    """I, U, D and null come as 0, 1, 2, 0; rows are counted from 0."""
    data = _dms([DmsRow(op, (place, "x")) for place, op in enumerate(["I", "U", "D", None])])

    rows = _read(data)

    assert [row["__op"] for row in rows] == [0, 1, 2, 0]
    assert [row["__row"] for row in rows] == [0, 1, 2, 3]
    assert list(rows[0]) == ["id", "name", "__op", "__row"]


def test_a_file_without_op_holds_inserts() -> None:
    """As a load file without IncludeOpForFullLoad does."""
    data = _dms([DmsRow(None, (1, "x"))], with_op=False)

    assert _schema(data).op_column is None
    assert _read(data) == [{"id": 1, "name": "x", "__op": 0, "__row": 0}]


@pytest.mark.parametrize("value", ["i", "", "X", "INSERT", " I"])
def test_an_unknown_operation_is_refused(value: str) -> None:
    """The error names the row and the value; an unknown operation is never taken for an insert."""
    rows = [DmsRow("I", (place, "x")) for place in range(ROW_GROUP_ROWS + 5)]
    error = _refusal(_dms([*rows, DmsRow(value, (9, "x"))]))

    assert error.code == "bad-operation"
    assert f"row {ROW_GROUP_ROWS + 5};" in error.message
    assert f"found: {value!r}" in error.message


def test_row_groups_are_numbered_as_in_the_whole_file() -> None:
    """A task that reads some row groups sees the same row numbers as one that reads all."""
    rows = 3 * ROW_GROUP_ROWS + 10
    data = _dms([DmsRow("I", (place, "x")) for place in range(rows)])

    some = _read(data, row_groups=[1, 3])

    assert _schema(data).row_groups == 4
    assert [row["__row"] for row in some] == [row["id"] for row in some]
    assert len(some) == ROW_GROUP_ROWS + 10
    assert [row["__row"] for row in _read(data)] == list(range(rows))


def test_types_of_dms() -> None:
    """Unsigned integers, times, far dates, decimals, blobs and emoji arrive in the lake's types."""
    physical = pa.schema(
        [
            ("u8", pa.uint8()), ("u16", pa.uint16()), ("u32", pa.uint32()), ("u64", pa.uint64()), ("i8", pa.int8()), ("t", pa.time32("ms")),
            ("d", pa.date32()), ("ms", pa.timestamp("ms")), ("us", pa.timestamp("us")), ("m", pa.decimal128(38, 2)), ("b", pa.binary()),
            ("s", pa.string()), ("f", pa.float32()), ("flag", pa.bool_()),
        ]
    )  # fmt: skip
    large = Decimal("-" + "9" * 36 + ".99")
    far = datetime(3018, 1, 2, 3, 4, 5, 678_901)
    values = (255, 65_535, 2**32 - 1, 2**64 - 1, -128, 1_500, date(1, 1, 1), datetime(1500, 1, 1), far, large, b"", "é😀'", 0.5, True)
    data = _dms([DmsRow("I", values)], physical)

    schema = _schema(data).columns
    (row,) = _read(data, schema)

    assert [column.type for column in schema] == [
        "smallint", "int", "bigint", "decimal(20,0)", "tinyint", "string", "date", "timestamp", "timestamp", "decimal(38,2)", "binary",
        "string", "float", "boolean",
    ]  # fmt: skip
    utc = {"tzinfo": timezone.utc}
    lake = (
        255,
        65_535,
        2**32 - 1,
        Decimal(2**64 - 1),
        -128,
        "00:00:01.500",
        date(1, 1, 1),
        datetime(1500, 1, 1, **utc),
        far.replace(**utc),
    )
    assert tuple(row[name] for name in names(schema)) == (*lake, large, b"", "é😀'", 0.5, True)


def test_int96_timestamps_keep_their_year() -> None:
    """As nanoseconds, year 3018 would have wrapped around to another year."""
    # Whole days before 1970: pyarrow writes the others wrongly as INT96. Spark's are read in test_data_files.
    moments = [datetime(1, 1, 1), datetime(1899, 12, 31), datetime(3018, 1, 2, 3, 4, 5, 678_901)]
    data = _file(pa.table({"at": pa.array(moments, pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)

    rows = _read(data, (Column("at", "timestamp"),))

    assert [row["at"].replace(tzinfo=None) for row in rows] == moments


def test_lost_digits_are_counted() -> None:
    """Nanoseconds that a file holds are cut and reported."""
    lost = LostDigits()
    data = _file(pa.table({"at": pa.array([1, 1_000], pa.timestamp("ns"))}))

    _read(data, (Column("at", "timestamp"),), lost=lost)

    assert lost == {"at": 1}


def test_a_column_that_the_file_lacks_is_null() -> None:
    """Each file of a batch is read in the lake's columns, in the lake's order."""
    data = _dms([DmsRow("U", (1, "x"))])

    (row,) = _read(data, (Column("later", "date"), *reversed(LAKE)))

    assert row == {"later": None, "name": "x", "id": 1, "__op": 1, "__row": 0}


def test_a_file_without_rows_is_fine() -> None:
    """It has columns and nothing else."""
    data = _dms([], timestamp="at")

    assert _schema(data).rows == 0
    assert _read(data) == []


# --- Timestamp column


def test_the_timestamp_column_is_confirmed_by_its_values() -> None:
    """The first text column is a candidate; it stays in the lake under its own name and type either way."""
    data = _dms([DmsRow("I", (1, "x"), WHEN)], timestamp="at")
    candidate = _schema(data)

    assert (candidate.timestamp_column, candidate.timestamp_confirmed) == ("at", False)
    assert candidate.columns[0] == Column("at", "string")
    confirmed = candidate.confirmed(pa.array(["2024-01-02 03:04:05.678901"]))
    assert (confirmed.timestamp_column, confirmed.timestamp_confirmed) == ("at", True)
    dropped = candidate.confirmed(pa.array(["Irvine"]))
    assert (dropped.timestamp_column, dropped.columns) == (None, candidate.columns)
    assert pickle.loads(pickle.dumps(confirmed)) == confirmed


def test_without_op_the_very_first_column_is_the_candidate() -> None:
    """Nothing stands before the timestamp then."""
    assert _schema(_dms([DmsRow(None, (1, "x"), WHEN)], timestamp="at", with_op=False)).timestamp_column == "at"
    assert _schema(_dms([DmsRow(None, (1, "x"))], with_op=False)).timestamp_column is None


def test_the_attribute_names_the_timestamp_column() -> None:
    """Whatever its place; where the file lacks it, there is none."""
    data = _dms([DmsRow("I", (1, "x"), WHEN)], timestamp="at")

    assert (_schema(data, "name").timestamp_column, _schema(data, "name").timestamp_confirmed) == ("name", True)
    assert _schema(data, "gone").timestamp_column is None
    assert _schema(data, "at").confirmed(pa.array(["no time"])).timestamp_column == "at"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-01-02 03:04:05", "2024-12-31 23:59:59.123456789", "0001-01-01 00:00:00.0"], True),
        (["2024-01-02 03:04:05", None], False),
        ([], False),
        (["2024-01-02"], False),
        (["2024-01-02T03:04:05"], False),
        (["2024-13-02 03:04:05"], False),
        (["2024-01-32 03:04:05"], False),
        (["2024-01-02 24:04:05"], False),
        (["2024-01-02 03:04:05."], False),
        (["2024-01-02 03:04:05.1234567890"], False),
        (["2024-01-02 03:04:05 "], False),
        (["2024-01-02 03:04:05\n"], False),
    ],
)
def test_what_looks_like_a_timestamp(values: list[str | None], expected: bool) -> None:
    """Every value has to, and there has to be one."""
    assert looks_like_timestamp(pa.array(values, pa.string())) is expected
    assert looks_like_timestamp(pa.array(values, pa.string()).dictionary_encode()) is expected


def test_a_real_timestamp_is_no_text_that_looks_like_one() -> None:
    """Only texts are looked at."""
    assert looks_like_timestamp(pa.array([WHEN])) is False


# --- Columns beside the table's own


def test_before_images_and_the_change_sequence_stay_out_of_the_lake() -> None:
    """They are listed; a before image can be read beside the row."""
    physical = pa.schema(
        [("AR_H_CHANGE_SEQ", pa.string()), ("id", pa.int32()), ("name", pa.string()), ("BI_id", pa.int32()), ("BI_name", pa.string())]
    )
    data = _dms([DmsRow("U", ("2024", 2, "b", 1, "a")), DmsRow("I", ("2025", 3, "c", None, None))], physical)

    schema = _schema(data)

    assert names(schema.columns) == ("id", "name")
    assert schema.excluded == ("AR_H_CHANGE_SEQ", "BI_id", "BI_name")
    assert [row["__before_id"] for row in _read(data, before=["id"])] == [1, None]
    assert list(_read(data, LAKE)[0]) == ["id", "name", "__op", "__row"]


def test_before_images_of_a_file_without_them_are_null() -> None:
    """A task can be changed to write them later."""
    assert _read(_dms([DmsRow("U", (2, "b"))]), before=["id"]) == [{"id": 2, "name": "b", "__op": 1, "__row": 0, "__before_id": None}]


@pytest.mark.parametrize("columns", [["BI_id", "id"], ["id", "BI_other"], ["id", "BI_id", "other"]])
def test_a_sources_own_column_may_begin_like_a_before_image(columns: list[str]) -> None:
    """Before images are the last columns, and each has its column."""
    data = _dms([DmsRow("I", [1] * len(columns))], pa.schema([(name, pa.int64()) for name in columns]))

    assert list(names(_schema(data).columns)) == columns


@pytest.mark.parametrize("name", ["__op", "__row", "__before_id", ""])
def test_names_that_the_job_needs_are_refused(name: str) -> None:
    """A source's column would be mistaken for ours."""
    assert _refusal(_dms([DmsRow("I", (1,))], pa.schema([(name, pa.int64())]))).code == "reserved-column"


def test_a_name_that_stands_twice_is_refused() -> None:
    """Also if it is `Op`: a source's own column of that name would be taken for the operation."""
    for columns in (["Op", "Op", "id"], ["Op", "id", "id"]):
        table = pa.Table.from_arrays([pa.array(["I"])] * 3, names=columns)

        assert _refusal(_file(table)).code == "column-twice"


def test_a_type_that_the_lake_cannot_hold_is_refused() -> None:
    """With the column's name and the type found."""
    error = _refusal(_file(pa.table({"id": [1], "tags": [["a"]]})))

    assert error.code == "unsupported-type"
    assert "'tags'" in error.message
    assert "list<" in error.message


# --- Keys


def test_a_null_key_is_refused_with_its_row() -> None:
    """The row number is the file's, not the batch's; other columns may be null, as in a delete."""
    rows = [DmsRow("D", {"id": place}) for place in range(ROW_GROUP_ROWS + 1)] + [DmsRow("I", (None, "x"))]
    tables = list(read_dms(io.BytesIO(_dms(rows)), NAME, columns=LAKE))

    check_keys(tables[0].slice(0, ROW_GROUP_ROWS), ["id"], NAME)
    with pytest.raises(TableBlocked) as caught:
        check_keys(tables[-1], ["id"], NAME)

    assert caught.value.code == "null-key"
    assert f"{NAME}, row {ROW_GROUP_ROWS + 1}" in caught.value.message
    assert "'id'" in caught.value.message


def test_nan_may_be_a_key() -> None:
    """It is a value, unlike null."""
    check_keys(pa.table({"ratio": [float("nan")]}), ["ratio"], NAME)


def test_a_missing_key_column_is_refused() -> None:
    """With the columns that are there."""
    data = _dms([DmsRow("I", (1, "x"))])

    for check in (
        lambda: check_key_columns(_schema(data), ["id", "region"], NAME),
        lambda: check_keys(next(iter(read_dms(io.BytesIO(data), NAME, columns=LAKE))), ["id", "region"], NAME),
    ):
        with pytest.raises(TableBlocked) as caught:
            check()
        assert caught.value.code == "no-key-column"
        assert "'region'" in caught.value.message
        assert "found: id, name" in caught.value.message


# --- Damage


def test_text_that_is_not_utf8_is_refused() -> None:
    """DuckDB would refuse the whole data file later, Spark would show another text."""
    raw = pa.array([b"ok", b"caf\xe9"], pa.binary())
    table = pa.table({"id": [1, 2], "name": pa.Array.from_buffers(pa.string(), 2, raw.buffers())})

    error = _refusal(_file(table))

    assert error.code == "bad-text"
    assert "row 1;" in error.message
    assert "'name'" in error.message
    assert r"caf\xe9" in error.message


def test_a_category_that_is_not_utf8_is_refused_where_a_row_has_it() -> None:
    """One that no row has does not reach the lake."""
    raw = pa.array([b"ok", b"caf\xe9"], pa.binary())
    kinds = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    unused, used = (pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), kinds) for places in ([0, 0, None], [0, None, 1]))

    rows = _read(_file(pa.table({"id": [1, 2, 3], "name": unused})))
    error = _refusal(_file(pa.table({"id": [1, 2, 3], "name": used})))

    assert [row["name"] for row in rows] == ["ok", "ok", None]
    assert error.code == "bad-text"
    assert "row 2;" in error.message
    assert "'name'" in error.message
    assert r"caf\xe9" in error.message


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", b"PAR1PAR1", b"id,name\n1,x\n", b"PK\x03\x04" + bytes(500), b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1"],
    ids=["empty", "magic", "two-magics", "csv", "zip", "huge-footer"],
)
def test_what_is_no_parquet_file_is_refused(data: bytes) -> None:
    """With what was found."""
    error = _refusal(data)

    assert error.code == "bad-raw-file"
    assert "found: " in error.message


def test_a_truncated_file_is_refused_wherever_it_ends() -> None:
    """Whether the cut is in the pages or in the footer."""
    data = _dms([DmsRow("I", (place, "x" * place)) for place in range(50)])

    for size in range(0, len(data), 97):
        assert _refusal(data[:size]).code == "bad-raw-file"


def test_a_damaged_page_is_refused() -> None:
    """A page that does not unpack is found while reading, not while opening."""
    data = bytearray(_file(pa.table({"id": list(range(5000)), "name": ["x"] * 5000}), compression="gzip"))
    data[40:60] = bytes(20)

    assert _schema(bytes(data)).rows == 5000
    assert _refusal(bytes(data)).code == "bad-raw-file"


def test_damage_anywhere_is_read_or_refused_in_words() -> None:
    """Bytes changed at random never give another exception than TableBlocked."""
    rows = [DmsRow("IUD"[place % 3], (place, f"name {place}"), WHEN + timedelta(seconds=place)) for place in range(200)]
    whole = [_dms(rows, timestamp="at"), _file(dms_table(ID_NAME, rows), compression="gzip")]
    chance = random.Random(20)
    codes = set()
    for turn in range(300):
        data = bytearray(whole[turn % 2])
        footer = max(0, len(data) - 1500) if turn % 4 < 2 else 0
        for _ in range(chance.choice([1, 3, 20])):
            data[chance.randrange(footer, len(data))] = chance.randrange(256)
        try:
            _schema_and_rows(bytes(data))
        except TableBlocked as error:
            codes.add(error.code)

    assert "bad-raw-file" in codes


class _Broken(io.RawIOBase):
    """A file whose storage fails behind its first reads."""

    def __init__(self, data: bytes, error: Exception) -> None:
        self._data, self._error = io.BytesIO(data), error
        self._whole = len(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() < self._whole // 2:
            raise self._error
        return self._data.read(size)


class _BrokenRanges(RangedFile):
    """An object whose ranges can't be fetched any more once its footer was read."""

    def __init__(self, data: bytes, error: Exception) -> None:
        super().__init__(None, "raw", "key", len(data))  # type: ignore[arg-type]
        self._data, self._error = data, error

    def _get(self, start: int, stop: int) -> bytes:
        if start < self._size // 2:
            raise self._error
        return self._data[start:stop]


@pytest.mark.parametrize("broken", [_Broken, _BrokenRanges])
@pytest.mark.parametrize(
    "error", [ConnectionResetError(104, "reset"), TimeoutError("slow"), LeaseLost("late"), TableBlocked("moved", "raw-file-changed")]
)
def test_a_failing_storage_is_no_damage(error: Exception, broken: Callable[[bytes, Exception], Any]) -> None:
    """Its error passes as it is: the file may be fine, and the next run will see."""
    data = _dms([DmsRow("I", (place, f"{place * 7919:050d}" + random.Random(place).randbytes(40).hex())) for place in range(3000)])
    assert len(data) > 2 * TAIL_BYTES

    with pytest.raises(type(error)) as caught:
        list(read_dms(broken(data, error), NAME, columns=LAKE))

    assert getattr(caught.value, "code", None) == getattr(error, "code", None)
