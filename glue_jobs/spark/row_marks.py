"""What stands beside a table's columns in the rows of a raw file: operation, row number, before images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import LostDigits, arrow_schema, conform, first_failing, shown

OP, ROW, BEFORE = "__op", "__row", "__before_"
OPERATIONS = pa.array(["I", "U", "D"])  # a row's operation is its place here
_NEW_COPY = "let DMS write the file again (reload the table), or skip it: `dmslake unblock PATH --skip-file NAME`"


@dataclass(frozen=True)
class RowMarks:
    """What stands beside the lake's columns. name: the file's, for messages; images: our name → the file's column; before: our columns for
    them."""

    name: str
    op_column: str | None
    images: Mapping[str, str]
    before: Schema

    def lake_rows(self, batch: pa.RecordBatch, columns: Schema, first: int, lost: LostDigits | None) -> pa.Table:
        """The rows in `columns`, then `__op`, `__row` (the batch's first row is `first`) and before images."""
        _check_texts(batch, first, self.name)
        table = conform(batch, columns, self.name, first_row=first, lost=lost)
        rows = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows), start=first - 1)
        table = table.append_column(OP, self._operations(batch, first)).append_column(ROW, rows)
        if not self.before:
            return table
        images = pa.table({ours: batch.column(theirs) for ours, theirs in self.images.items()})
        images = conform(images, self.before, self.name, first_row=first) if self.images else _nulls(self.before, batch.num_rows)
        for column in self.before:
            table = table.append_column(column.name, images.column(column.name))
        return table

    def _operations(self, batch: pa.RecordBatch, first: int) -> pa.Array:
        if self.op_column is None:
            return pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows)
        texts = batch.column(self.op_column).cast(pa.string())
        codes = pc.index_in(texts, value_set=OPERATIONS).cast(pa.int8())
        unknown = pc.and_(pc.is_null(codes), pc.is_valid(texts))
        row = pc.index(unknown, True).as_py()
        if row >= 0:
            raise blocked(
                "bad-operation",
                f"column {self.op_column!r} has a value that is no operation",
                where=f"file {self.name}, row {first + row}",
                expected="I, U, D or null",
                found=shown(texts[row]),
                todo="a source column of that name must be renamed by a DMS transformation rule; otherwise skip the file: "
                "`dmslake unblock PATH --skip-file NAME`",
            )
        return codes.fill_null(0)


def _nulls(schema: Schema, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, field.type) for field in arrow_schema(schema)], schema=arrow_schema(schema))


def _check_texts(batch: pa.RecordBatch, first: int, name: str) -> None:
    """Parquet readers don't look whether a text is UTF-8; DuckDB would refuse our whole data file later."""
    for field, values in zip(batch.schema, batch.columns, strict=True):
        kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
        if not (pt.is_string(kind) or pt.is_large_string(kind)):
            continue
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            texts = values.cast(kind) if pt.is_dictionary(field.type) else values
            row = first_failing(lambda part: part.validate(full=True), texts)
            if row is None and pt.is_dictionary(field.type):
                continue  # no row has that text
            raise _bad_text(field.name, texts, row or 0, first, name) from error


def _bad_text(column: str, values: pa.Array, row: int, first: int, name: str) -> TableBlocked:
    raw = values[row].as_buffer().to_pybytes() if values[row].is_valid else b""
    return blocked(
        "bad-text",
        f"a value of column {column!r} is not UTF-8",
        where=f"file {name}, row {first + row}",
        expected="text in UTF-8",
        found=f"{raw[:40]!r}",
        todo=_NEW_COPY,
    )
