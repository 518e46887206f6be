"""Lake types as Arrow types, and `conform`: the one function through which every batch of rows goes.

Columns are bound by name, never by position: Spark's mapInArrow would swap two columns that come in another order than
declared, and say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.schema import Schema, decimal_parts, lake_type
from glue_jobs.spark.encoded_texts import ENCODED_TEXT

EXAMPLE_LENGTH = 40
_UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": UTC_MICROSECONDS,
}

_BOOLEANS = pa.array(["true", "t", "false", "f"])  # true before the third
Column = pa.Array | pa.ChunkedArray
Convert = Callable[[Column], Column]


class LostDigits(Counter[str]):
    """Column → values whose digits below the microsecond were cut off; filled by `conform`, to be reported."""


def to_arrow(type_name: str) -> pa.DataType:
    """The Arrow type that rows of a lake type have in memory and in data files."""
    parts = decimal_parts(type_name)
    return pa.decimal128(*parts) if parts else _SIMPLE[type_name]


@lru_cache(maxsize=256)
def arrow_schema(schema: Schema, encoded: frozenset[str] = frozenset()) -> pa.Schema:
    """The Arrow schema of a lake schema; every column can be null, and there is no metadata. encoded: the columns of texts that stand as
    indices into a dictionary."""
    return pa.schema([(column.name, ENCODED_TEXT if column.name in encoded else to_arrow(column.type)) for column in schema])


def least_row_bytes(schema: Schema) -> int:
    """Bytes that a row takes in memory at least: those of null in every column."""
    return sum(_least_bits(field.type) for field in arrow_schema(schema)) // 8


def _least_bits(arrow_type: pa.DataType) -> int:
    return 32 if pt.is_string(arrow_type) or pt.is_binary(arrow_type) else int(arrow_type.bit_width)


def lake_type_of(arrow_type: pa.DataType) -> str | None:
    """The lake's type for an Arrow type, or None if the lake can't hold it."""
    return lake_type(str(arrow_type.value_type if pt.is_dictionary(arrow_type) else arrow_type))


def null_where(mask: Column, values: Column) -> Column:
    """The values, null where the mask says so or is null."""
    # Not with a scalar: Arrow (17 to 22) then makes zero bytes of the texts of an array that is a slice of another.
    return pc.if_else(mask, pa.nulls(len(values), values.type), values)


def conform(
    rows: pa.Table | pa.RecordBatch,
    schema: Schema,
    source: str,
    *,
    first_row: int = 0,
    lost: LostDigits | None = None,
    encoded: AbstractSet[str] = frozenset(),
) -> pa.Table:
    """The columns of `schema`, in its order and types, whatever the order and the physical types of `rows`.

    A column that `rows` lacks is null; one that the schema lacks is left out. Timestamps without a zone are taken as UTC;
    digits below the microsecond are cut off (downwards, so that the order stays) and counted in `lost`. Any other loss raises
    TableBlocked naming `source` (a file), row (counted from `first_row`), column, expected and found.

    encoded: the columns whose texts stay indices into a dictionary, where they come so; texts of all others are decoded.
    """
    texts = _encoded_texts(rows.schema, schema, encoded) if encoded else frozenset()
    wanted_form = arrow_schema(schema, texts)
    if isinstance(rows, pa.Table) and rows.schema.equals(wanted_form, check_metadata=True):
        return rows  # as most are that come from the lake's own files
    present = set(rows.schema.names)
    columns: list[Column] = []
    for column in schema:
        wanted = to_arrow(column.type)
        if column.name not in present:
            columns.append(pa.nulls(rows.num_rows, wanted))
            continue
        found = rows.column(only_index(rows.schema, column.name, source))
        if not (found.type.equals(wanted) or column.name in texts):
            found = _Cast(source, column.name, column.type, first_row, lost).apply(found, wanted)
        columns.append(found)
    return pa.Table.from_arrays(columns, schema=wanted_form)


def _encoded_texts(found: pa.Schema, schema: Schema, among: AbstractSet[str]) -> frozenset[str]:
    """The schema's columns of texts, of those named, that come as indices into a dictionary."""
    encoded = {field.name for field in found if field.name in among and field.type.equals(ENCODED_TEXT)}
    return frozenset(column.name for column in schema if column.type == "string" and column.name in encoded) if encoded else frozenset()


def only_index(schema: pa.Schema, name: str, source: str) -> int:
    """Where the column stands; raises TableBlocked if two have that name."""
    indices = schema.get_all_field_indices(name)
    if len(indices) != 1:
        raise blocked(
            "column-twice",
            f"{len(indices)} columns have the name {name!r}",
            where=f"file {source}",
            expected="each name once",
            found=", ".join(schema.names),
            todo="leave out or rename one of them by a DMS transformation rule, then reload the table",
        )
    return indices[0]


class _Cast:
    """The cast of one column, with what its errors name."""

    def __init__(self, source: str, name: str, type_name: str, first_row: int, lost: LostDigits | None) -> None:
        self._source, self._name, self._type_name = source, name, type_name
        self._first_row, self._lost = first_row, lost

    def apply(self, values: Column, wanted: pa.DataType) -> Column:
        if pt.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
            if values.type.equals(wanted):
                return values
        if pt.is_null(values.type):
            return pa.nulls(len(values), wanted)
        convert = _converter(values.type, wanted)
        if convert is None:
            raise self._type_changed(values.type)
        if pt.is_timestamp(values.type) and values.type.unit == "ns" and self._lost is not None:
            self._lost[self._name] += _below_microsecond(values)
        return self._checked(convert, values)

    def _checked(self, convert: Convert, values: Column) -> Column:
        try:
            return convert(values)
        except pa.ArrowNotImplementedError as error:  # an older pyarrow: view types can't be cast before 18
            raise self._type_changed(values.type) from error
        except pa.ArrowInvalid as error:
            row = first_failing(convert, values)
            if row is None:
                raise
            raise self._value_lost(values[row], self._first_row + row) from error

    def _type_changed(self, found: pa.DataType) -> TableBlocked:
        return blocked(
            "type-changed",
            f"column {self._name!r} has a type that the lake's can't take up",
            where=f"file {self._source}",
            expected=self._type_name,
            found=f"{lake_type_of(found) or 'a type without mapping'} ({found} in the file)",
            todo="if the source's type really changed, reload the table in DMS, or skip the file: `dmslake unblock PATH --skip-file NAME`",
        )

    def _value_lost(self, value: pa.Scalar, row: int) -> TableBlocked:
        return blocked(
            "value-lost",
            f"a value of column {self._name!r} does not fit the lake's type",
            where=f"file {self._source}, row {row}",
            expected=self._type_name,
            found=f"{shown(value)} ({value.type} in the file)",
            todo="if the source's type really changed, reload the table in DMS, or skip the file: `dmslake unblock PATH --skip-file NAME`",
        )


def shown(value: pa.Scalar) -> str:
    """A value as an error shows it: short. Also dates and times that Python has none for."""
    if pt.is_timestamp(value.type):
        value = value.cast(pa.int64()).cast(pa.timestamp(value.type.unit))
    if pt.is_date(value.type) or pt.is_timestamp(value.type) or pt.is_time(value.type):
        text = str(value.cast(pa.string()))
    else:
        text = repr(value.as_py()) if _is_text(value.type) else str(value)
    return text if len(text) <= EXAMPLE_LENGTH else text[: EXAMPLE_LENGTH - 1] + "…"


def first_failing(convert: Convert, values: Column) -> int | None:
    """The first row that `convert` refuses, found by halving; None if it refuses none of them alone."""
    start, stop = 0, len(values)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _refuses(convert, values.slice(start, middle - start)):
            stop = middle
        else:
            start = middle
    return start if stop > start and _refuses(convert, values.slice(start, 1)) else None


def _refuses(convert: Convert, values: Column) -> bool:
    try:
        convert(values)
    except pa.ArrowInvalid:
        return True
    return False


def _converter(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    """How values of one type become another's where no kind of value is lost by it; None where there is no such way.

    The functions raise ArrowInvalid on a value that does not fit.
    """

    def safe(values: Column) -> Column:
        return values.cast(wanted)

    if pt.is_string(wanted):
        return _time_text if pt.is_time(found) else safe if _is_text(found) else None
    if pt.is_boolean(wanted):
        return _boolean if _is_text(found) else None
    if pt.is_binary(wanted):
        return safe if pt.is_binary(found) or pt.is_large_binary(found) or pt.is_binary_view(found) else None
    if pt.is_timestamp(wanted):
        return _utc_microseconds if pt.is_timestamp(found) else None
    if pt.is_date(wanted):
        return _days if pt.is_date(found) else None
    if pt.is_floating(wanted):
        return (lambda values: _exact_float(values, wanted)) if pt.is_floating(found) else None
    if pt.is_decimal(wanted) and pt.is_integer(found):
        # Arrow wants room for every value of the integer type, so the cast goes by way of enough digits.
        return lambda values: values.cast(pa.decimal128(20, 0)).cast(wanted)
    if pt.is_integer(wanted) or pt.is_decimal(wanted):
        return safe if pt.is_integer(found) or pt.is_decimal(found) else None
    return None


def _is_text(found: pa.DataType) -> bool:
    return pt.is_string(found) or pt.is_large_string(found) or pt.is_string_view(found)


def _boolean(texts: Column) -> Column:
    """What DMS writes for PostgreSQL's booleans, and PostgreSQL itself."""
    places = pc.index_in(pc.utf8_lower(texts.cast(pa.string())), value_set=_BOOLEANS)
    if places.null_count > texts.null_count:
        raise pa.ArrowInvalid("a text that is neither true nor false")
    return pc.less(places, 2)


def _time_text(values: Column) -> Column:
    """`HH:mm:ss`, with a fraction only where there is one: a query for '10:11:12' finds the time whatever the column's unit.

    Of what is no time of a day Arrow would make a text that says so.
    """
    units = values.cast(pa.int32() if pt.is_time32(values.type) else pa.int64()).cast(pa.int64())
    if pc.any(pc.or_(pc.less(units, 0), pc.greater_equal(units, _UNITS_A_DAY[values.type.unit]))).as_py():
        raise pa.ArrowInvalid("a value is no time of a day")
    return pc.replace_substring_regex(values.cast(pa.string()), pattern=r"\.0+$", replacement="")


def _utc_microseconds(values: Column) -> Column:
    if values.type.unit == "ns":
        return _floor_microseconds(values.cast(pa.int64())).cast(UTC_MICROSECONDS)
    return values.cast(UTC_MICROSECONDS)


def _floor_microseconds(nanoseconds: Column) -> Column:
    """Arrow's division cuts towards zero; before 1970 that would round up."""
    cut = pc.divide(nanoseconds, 1000)
    below = pc.greater(pc.multiply(cut, 1000), nanoseconds)
    return pc.subtract(cut, below.cast(pa.int64()))


def _below_microsecond(values: Column) -> int:
    nanoseconds = values.cast(pa.int64())
    whole = pc.multiply(pc.divide(nanoseconds, 1000), 1000)
    return pc.sum(pc.not_equal(whole, nanoseconds)).as_py() or 0


def _days(values: Column) -> Column:
    days = values.cast(pa.date32())
    _refuse_unequal(days.cast(values.type), values)
    return days


def _exact_float(values: Column, wanted: pa.DataType) -> Column:
    result = values.cast(wanted)
    if result.type.bit_width < values.type.bit_width:
        number = pc.invert(pc.is_nan(values))
        _refuse_unequal(result.cast(values.type).filter(number), values.filter(number))
    return result


def _refuse_unequal(back: Column, values: Column) -> None:
    if pc.any(pc.not_equal(back, values)).as_py():
        raise pa.ArrowInvalid("the cast loses digits")
