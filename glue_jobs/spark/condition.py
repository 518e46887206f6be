"""A person's SQL condition on rows, by DuckDB: in memory, without access to files, network or settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import duckdb
import pyarrow as pa

from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import UTC_MICROSECONDS, arrow_schema, conform
from glue_jobs.spark.row_batches import rows_at_a_time

SETTINGS = (
    "SET threads = 1",
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def filtered(batches: Iterable[pa.RecordBatch], schema: Schema, where: str) -> Iterator[pa.RecordBatch]:
    """The rows for which the condition is true, in their order and types. Rows are asked for as they are wanted.

    Times are UTC without a zone in the condition. Raises UsageError, code bad-condition, with DuckDB's message.
    """
    left = iter(batches)
    first = list(islice(left, 1))
    at_a_time = rows_at_a_time(max((batch.nbytes / max(1, batch.num_rows) for batch in first), default=0.0))
    source = _Source(chain(first, left), schema)
    with duckdb.connect(":memory:") as connection:
        for setting in SETTINGS:
            connection.execute(setting)
        try:
            rows = _reader(connection.from_arrow(source.reader()).filter(where), at_a_time)
            for batch in rows:
                named = pa.RecordBatch.from_arrays(batch.columns, names=[column.name for column in schema])
                yield from conform(named, schema, "--where").to_batches()
        except (duckdb.Error, pa.ArrowException) as error:
            if source.error is not None:
                raise source.error from error
            raise _refused(where, error) from error


def _reader(relation: Any, at_a_time: int) -> Any:
    """The relation's rows, so many in a batch; the method has another name in newer versions."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(at_a_time)


class _Source:
    """Rows for DuckDB. error: what reading them raised; DuckDB hands on nothing of it but its text."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: Schema) -> None:
        self._batches = batches
        fields = arrow_schema(schema)
        self._schema = pa.schema(
            [field.with_type(pa.timestamp("us")) if field.type.equals(UTC_MICROSECONDS) else field for field in fields]
        )
        self.error: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._without_zone())

    def _without_zone(self) -> Iterator[pa.RecordBatch]:
        """A zone would need an extension of DuckDB, and literals in a condition would be read in the machine's zone."""
        try:
            for batch in self._batches:
                columns = [
                    values if values.type.equals(field.type) else values.cast(pa.int64()).cast(field.type)
                    for values, field in zip(batch.columns, self._schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
        except Exception as error:
            self.error = error
            raise


def _refused(where: str, error: Exception) -> UsageError:
    return UsageError(
        f"the condition {where!r} can't be used: {str(error).strip()}",
        "bad-condition",
        "give what would stand after WHERE in SQL (DuckDB's), column names that are no plain words in double quotes",
    )
