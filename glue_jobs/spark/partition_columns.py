"""Partition values: from columns to the texts of folder names, and back.

Texts are as Hive and Spark write them, before escaping; null is the null partition. What is written can be read: a value whose
text would come back as another one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.partitioning import NULL_FOLDER, PartitionField, Partitioning, PartitionValues, is_folder_text
from glue_jobs.core.schema import Schema, find
from glue_jobs.spark.arrow_types import EXAMPLE_LENGTH, Column, first_failing, null_where, shown, to_arrow
from glue_jobs.spark.key_columns import normal_floats, take
from glue_jobs.spark.place import Shape

Codes = np.ndarray[Any, np.dtype[np.int64]]

_PARTS: dict[str, Callable[[Column], Column]] = {"year": pc.year, "month": pc.month, "day": pc.day}
_DATE_LENGTH = len("yyyy-MM-dd")
_JAVA_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def partition_values(
    table: pa.Table, partitioning: Partitioning, schema: Schema, empty_as_null: bool, source: str, key: Sequence[str] = ()
) -> pa.Table:
    """One column of texts per partition field, under its folder's name; null stands for the null partition.

    schema: the lake's, for the types that the texts are read back as. source: the table or file, for messages. key: columns in which an
    empty text never becomes null, since no row is found by a null. Raises TableBlocked naming column and value where a value can't be a
    folder name.
    """
    texts = [_Texts(field, schema, empty_as_null, source, field.column in key).of(table.column(field.column)) for field in partitioning]
    return pa.table(texts, schema=pa.schema([(field.folder, pa.string()) for field in partitioning]))


def empty_as_null(rows: pa.Table, partitioning: Partitioning) -> pa.Table:
    """The rows as readers see them where EmptyPartition is 'null': an empty text that only a folder's name would say is null."""
    for field in partitioning:
        at = rows.column_names.index(field.column)
        values = rows.column(at)
        if field.transform == "identity" and pt.is_string(values.type):
            rows = rows.set_column(at, field.column, null_where(pc.equal(values, ""), values))
    return rows


def as_stored(rows: pa.Table, shape: Shape) -> pa.Table:
    """The rows as readers see them once the lake has them in this shape."""
    return empty_as_null(rows, shape.partitioning) if shape.empty_as_null else rows


class _Texts:
    """The texts of one partition field."""

    def __init__(self, field: PartitionField, schema: Schema, empty_as_null: bool, source: str, is_key: bool) -> None:
        self._field, self._empty_as_null, self._source, self._is_key = field, empty_as_null, source, is_key
        column = find(schema, field.column)
        assert column is not None, f"{field.column} is checked before any row is read"
        self._type = to_arrow(column.type)

    def of(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        values = values if values.type.equals(self._type) else values.cast(self._type)
        if self._field.transform == "identity":
            return self._identity(values)
        return _PARTS[self._field.transform](self._dates(values)).cast(pa.string())

    def _dates(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values that have a year: strings by their first ten characters; timestamps without zone (Arrow would look for its rules)."""
        if pt.is_timestamp(values.type):
            return _naive(values)
        if not pt.is_string(values.type):
            return values
        days = pc.utf8_slice_codeunits(values, 0, _DATE_LENGTH)
        try:
            return _each_distinct(days, lambda distinct: distinct.cast(pa.date32()))
        except pa.ArrowInvalid:
            row = first_failing(lambda part: part.cast(pa.date32()), days)
        raise self._refused(
            "no-date", shown(values[row or 0]), "null or a text that begins yyyy-MM-dd", "correct the value at the source, or PartitionKey"
        )

    def _identity(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        if pt.is_binary(self._type):
            raise self._refused("binary-partition", "binary", "a column of another type", "correct PartitionKey")
        return _each_distinct(values, self._checked_texts)

    def _checked_texts(self, distinct: pa.Array) -> pa.Array:
        texts = _texts_of(distinct)
        if pt.is_string(distinct.type):
            texts = self._without_empty(texts)
        for text, value in zip(texts.to_pylist(), distinct, strict=True):
            if text is not None and not self._reads_back(text, value):
                raise self._refused(
                    "bad-partition-value",
                    shown(value),
                    "a value that a folder name can say",
                    "take another column in PartitionKey, or correct the value",
                )
        return texts

    def _without_empty(self, texts: pa.Array) -> pa.Array:
        if not pc.any(pc.equal(texts, "")).as_py():
            return texts
        if not self._empty_as_null or self._is_key:
            in_key = "take a column in PartitionKey that is not in PrimaryKey (`dmslake repartition PATH`), or correct the value"
            other = "set the attribute EmptyPartition = 'null' on the table's item to put such rows into the null partition"
            raise self._refused(
                "empty-partition",
                "''",
                "null or a text that is not empty: readers can't tell an empty one from null"
                + (", which no key has" if self._is_key else ""),
                in_key if self._is_key else other,
            )
        return null_where(pc.equal(texts, ""), texts)

    def _reads_back(self, text: str, value: pa.Scalar) -> bool:
        if text == NULL_FOLDER or not is_folder_text(text):
            return False
        try:
            back = value_of(text, self._type)
        except (ValueError, pa.ArrowException):
            return False
        if pt.is_floating(self._type):
            return pc.equal(back, value).as_py() or (pc.is_nan(back).as_py() and pc.is_nan(value).as_py())
        return bool(back.equals(value))

    def _refused(self, code: str, found: str, expected: str, todo: str) -> TableBlocked:
        return blocked(
            code,
            f"a value of column {self._field.column!r} can't be the partition folder {self._field.folder!r}",
            where=self._source,
            expected=expected,
            found=found,
            todo=todo,
        )


def _each_distinct(values: pa.ChunkedArray, function: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """`function` of the distinct values, spread over the rows: partitions are few, rows are many."""
    values = normal_floats(values)
    distinct = pc.unique(values)
    return function(distinct).take(pc.index_in(values, value_set=distinct))


def _naive(values: Column) -> Column:
    return values.cast(pa.int64()).cast(pa.timestamp("us"))


def _texts_of(values: pa.Array) -> pa.Array:
    """The values as texts; those of decimals and floats are made one by one, since Arrow would say 1E-7 and 1."""
    kind = values.type
    if pt.is_decimal(kind):
        return pa.array([None if value is None else format(value, "f") for value in values.to_pylist()], pa.string())
    if pt.is_floating(kind):
        return pa.array([_float_text(text) for text in values.cast(pa.string()).to_pylist()], pa.string())
    if pt.is_timestamp(kind):
        return _time_texts(values)
    return values.cast(pa.string())


def _time_texts(values: pa.Array) -> pa.Array:
    """`yyyy-MM-dd HH:mm:ss[.ffffff]`, the fraction without its last zeros."""
    texts = pc.replace_substring_regex(_naive(values).cast(pa.string()), pattern=r"\.0+$", replacement="")
    return pc.replace_substring_regex(texts, pattern=r"(\.\d*[1-9])0+$", replacement=r"\1")


def _float_text(text: str | None) -> str | None:
    """As Java says it; `text` is Arrow's, the shortest that gives the value back."""
    if text is None:
        return None
    said = repr(float(text))
    return _JAVA_FLOATS.get(said, said)


def value_of(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value of a folder's text (unescaped) in a lake type. Raises ValueError or ArrowInvalid if it is none of that type."""
    if pt.is_boolean(kind):
        if text not in ("true", "false"):
            raise ValueError("neither true nor false")
        return pa.scalar(text == "true", kind)
    if pt.is_integer(kind):
        return pa.scalar(int(plain_number(text)), kind)
    if pt.is_floating(kind):
        number = float(plain_number(text))
        if math.isinf(number) and "inf" not in text.lower():
            raise ValueError("too large")
        return pa.scalar(number, kind)
    if pt.is_decimal(kind):
        return pa.scalar(text).cast(kind)
    if pt.is_timestamp(kind):
        return pa.scalar(text).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)


def plain_number(text: str) -> str:
    """The text. Raises ValueError for one that only Python takes for a number: with underscores, blanks, or digits of another script."""
    if not text.isascii() or "_" in text or text.strip() != text:
        raise ValueError("no plain number")
    return text


def with_partition_columns(table: pa.Table, partitioning: Partitioning, values: PartitionValues, schema: Schema) -> pa.Table:
    """The table with the columns that stand only in its folder's name (after its own); one that it has itself stays.

    values: of the folder, as core.partitioning.values_of reads them.
    """
    for field, text in zip(partitioning, values, strict=True):
        column = find(schema, field.column)
        if field.transform != "identity" or column is None or column.name in table.column_names:
            continue
        table = table.append_column(column.name, pa.repeat(_folder_value(field, text, column.type), table.num_rows))
    return table


def written_text(field: PartitionField, text: str | None, schema: Schema) -> str | None:
    """The text that dmslake would write for the value that a folder's text (unescaped) stands for; None, for null, stays None.

    Raises TableBlocked for a text that is no value of the column's type. Parts of a date are given back as they are.
    """
    column = find(schema, field.column)
    if field.transform != "identity" or column is None or text is None:
        return text
    value = normal_floats(pa.repeat(_folder_value(field, text, column.type), 1))
    return str(_texts_of(value)[0].as_py())


def _folder_value(field: PartitionField, text: str | None, type_name: str) -> pa.Scalar:
    kind = to_arrow(type_name)
    try:
        return pa.scalar(None, kind) if text is None else value_of(text, kind)
    except (ValueError, pa.ArrowException) as error:
        raise _bad_folder(field, str(text), type_name) from error


def _bad_folder(field: PartitionField, text: str, type_name: str) -> TableBlocked:
    return blocked(
        "bad-partition-folder",
        f"the partition folder {field.folder!r} says no value of its column",
        where=f"folder {field.folder}={text[:200]}",
        expected=type_name,
        found=repr(text[:EXAMPLE_LENGTH]),
        todo="the folder was not written with this schema: `dmslake repartition PATH`, or reload the table",
    )


def split_by_partition(table: pa.Table, values: pa.Table) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """The rows of each partition, in the order in which partitions first appear; rows stay in their order.

    values: of `partition_values`, row by row.
    """
    partitions, codes = partition_codes(values, table.num_rows)
    if len(partitions) == 1:
        yield partitions[0], table
        return
    order, starts = runs_of(codes, len(partitions))
    for at, partition in enumerate(partitions):
        yield partition, take(table, pa.array(order[starts[at] : starts[at + 1]]))


def partition_codes(values: pa.Table, rows: int) -> tuple[list[PartitionValues], Codes]:
    """The partitions in the order in which they first appear, and for each of so many rows the place of its own among them.

    values: of `partition_values`.
    """
    if not rows:
        return [], np.empty(0, np.int64)
    codes = _codes(values, rows).to_numpy()
    firsts = np.empty(codes.max() + 1, np.int64)
    firsts[codes[::-1]] = np.arange(rows - 1, -1, -1)  # of places with one code the last that is set stays
    return [tuple(column[at].as_py() for column in values.itercolumns()) for at in firsts.tolist()], codes


def runs_of(codes: Codes, count: int) -> tuple[Codes, Codes]:
    """The places of all rows, those of code 0 first, each code's in their order; and where each of `count` codes begins among them, and
    the last one ends."""
    short: Any = codes.astype(np.uint16) if count < 1 << 16 else codes  # which are sorted without comparing them
    order = np.argsort(short, kind="stable")
    return order, np.searchsorted(codes[order], np.arange(count + 1))


def _codes(values: pa.Table, rows: int) -> pa.Array:
    """For each row the number of its partition, in the order in which they first appear."""
    codes = pa.repeat(pa.scalar(0, pa.int64()), rows)
    for column in values.itercolumns():
        texts = column.combine_chunks()
        distinct = pc.unique(texts)
        pair = pc.add(pc.multiply(codes, len(distinct)), pc.index_in(texts, value_set=distinct).cast(pa.int64()))
        codes = pc.index_in(pair, value_set=pc.unique(pair)).cast(pa.int64())
    return codes
