"""Rows to edit a table with, whatever they were given as: held against the table's columns, all that is wrong named, in lake types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.cells import fit, shown
from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import DELETE, NAMED_PROBLEMS, Problem, check_columns, problems_error
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark.arrow_types import arrow_schema, to_arrow
from glue_jobs.spark.arrow_types import shown as shown_scalar
from glue_jobs.spark.given_rows import conformed
from glue_jobs.spark.given_texts import values_of
from glue_jobs.spark.locate import Places

KEY_VALUE = "a value (it is of the primary key)"


@dataclass(frozen=True)
class Wanted:
    """What the rows are for. schema, key: the table's; word: of core.row_edit."""

    schema: Schema
    key: tuple[str, ...]
    word: str


@dataclass(frozen=True)
class Found:
    """Rows as they were given. name: for messages; columns: name → an Arrow column or Python values, all of one length.

    said: column → which rows say it, for columns that not all rows do (the rows of JSON).
    """

    name: str
    columns: Mapping[str, Any]
    said: Mapping[str, Places] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """The same in the lake's types; a delete's have the key alone."""

    name: str
    rows: pa.Table
    said: Mapping[str, Places] = field(default_factory=dict)


def fitted(found: Found, wanted: Wanted) -> Fitted:
    """The rows for the table; UsageError that lists columns that are not its own, or values that can't be taken."""
    if not found.columns:
        raise no_rows(wanted.word)
    check_columns(list(found.columns), wanted.schema, wanted.key, wanted.word, found.name)
    names = wanted.key if wanted.word == DELETE else tuple(found.columns)
    schema = tuple(column for column in wanted.schema if column.name in names)
    problems = _Problems()
    columns = [_column(found.columns[column.name], column, problems) for column in schema]
    for column, values in zip(schema, columns, strict=True):
        if column.name in wanted.key:
            problems.add_nulls(column.name, values)
    problems.raise_any(found.name)
    said = {name: mask for name, mask in found.said.items() if name in names and not mask.all()}
    return Fitted(found.name, pa.Table.from_arrays(columns, schema=arrow_schema(schema)), said)


class _Problems:
    """What is wrong with rows: the first of each column, and how many there are."""

    def __init__(self) -> None:
        self._first: list[Problem] = []
        self._count = 0

    def add(self, column: str, expected: str, wrong: Sequence[tuple[int, str]], count: int) -> None:
        """wrong: (row, value as it is shown), the first ones; count: of all."""
        self._first += [Problem(row, column, expected, found) for row, found in wrong[:NAMED_PROBLEMS]]
        self._count += count

    def add_nulls(self, column: str, values: pa.Array) -> None:
        known = {problem.row for problem in self._first if problem.column == column}
        rows = [row for row in np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False)).tolist() if row not in known]
        self.add(column, KEY_VALUE, [(row, shown(None)) for row in rows[:NAMED_PROBLEMS]], len(rows))

    def raise_any(self, name: str) -> None:
        if self._count:
            raise problems_error(name, self._first, self._count)


def _column(values: Any, column: Column, problems: _Problems) -> pa.Array:
    """The values in the column's type; those that can't be taken go to `problems` and are null."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = values.cast(values.type.value_type) if pt.is_dictionary(values.type) else values
        if _is_text(values.type) and column.type != "string":
            made, refused = values_of(values, column.type)
            problems.add(column.name, column.type, [(row, _shown(values[row])) for row in refused[:NAMED_PROBLEMS]], len(refused))
            return _one_array(made)
        try:
            return _one_array(conformed(pa.table({column.name: values}), (column,), "").column(0))
        except (pa.ArrowException, UsageError):
            pass  # one by one, so that all that is wrong can be named
    out, wrong, count = [], [], 0
    for row, value in enumerate(values):
        try:
            out.append(fit(column.type, _python(value)))
        except ValueError:
            out.append(None)
            count += 1
            if len(wrong) < NAMED_PROBLEMS:
                wrong.append((row, _shown(value)))
    problems.add(column.name, column.type, wrong, count)
    return pa.array(out, to_arrow(column.type))


def _is_text(found: pa.DataType) -> bool:
    return pt.is_string(found) or pt.is_large_string(found) or pt.is_string_view(found)


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _python(value: Any) -> Any:
    """A value as Python has it; ValueError for bytes that are no text, and for times that Python has not."""
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype) == ("ns", 1):
        value = pa.scalar(value)
    if isinstance(value, pa.Scalar):
        if pt.is_timestamp(value.type) and value.type.unit == "ns":
            # Else it depends on pandas: with it times keep their nanoseconds, without it they are an error. The cast refuses to cut them.
            value = value.cast(pa.timestamp("us", value.type.tz))
        try:
            return value.as_py()
        except OverflowError as error:
            raise ValueError from error
    if not isinstance(value, np.generic):
        return value
    made = value.item()
    if isinstance(made, int) and isinstance(value, (np.datetime64, np.timedelta64)):
        raise ValueError  # numpy's way to say a time that Python has not
    return made


def _shown(value: Any) -> str:
    try:
        return shown(_python(value))
    except ValueError:
        pass
    if not isinstance(value, pa.Scalar):
        return str(value)
    if _is_text(value.type):
        return shown(value.as_buffer().to_pybytes())
    try:
        return shown_scalar(value)
    except ValueError:
        return f"a {value.type}"


# --- rows of several sources


@dataclass(frozen=True)
class Union:
    """The rows of all sources together, in the columns that any of them has. said: as in Found."""

    sources: tuple[Fitted, ...]
    rows: pa.Table
    said: Mapping[str, Places]

    def place(self, row: int) -> str:
        """Where a row was given, in words."""
        for source in self.sources:
            if row < source.rows.num_rows:
                return f"row {row}" if len(self.sources) == 1 else f"{source.name}, row {row}"
            row -= source.rows.num_rows
        raise IndexError(row)


def together(sources: Sequence[Fitted], wanted: Wanted) -> Union:
    """All rows; UsageError where there is none."""
    names = {name for source in sources for name in source.rows.column_names}
    schema = tuple(column for column in wanted.schema if column.name in names)
    if not sum(source.rows.num_rows for source in sources):
        raise no_rows(wanted.word)
    said = {column.name: np.concatenate([_said(source, column.name) for source in sources]) for column in schema}
    tables = [_widened(source.rows, schema) for source in sources]
    return Union(tuple(sources), pa.concat_tables(tables).combine_chunks(), {name: mask for name, mask in said.items() if not mask.all()})


def _said(source: Fitted, name: str) -> Places:
    everywhere = np.full(source.rows.num_rows, name in source.rows.column_names)
    return source.said.get(name, everywhere)


def _widened(rows: pa.Table, schema: Schema) -> pa.Table:
    kinds = arrow_schema(schema)
    there = set(rows.column_names)
    columns = [rows.column(field.name) if field.name in there else pa.nulls(rows.num_rows, field.type) for field in kinds]
    return pa.Table.from_arrays(columns, schema=kinds)


def no_rows(word: str) -> UsageError:
    return UsageError("no rows are given", "bad-argument", f"give at least one row to {word}")
