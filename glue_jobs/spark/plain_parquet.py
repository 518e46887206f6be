"""Parquet files as every version of Arrow reads them.

The newest reads Parquet's JSON and UUID, and what a writer's Arrow said of its columns, as extension types; the one of Glue 5.0 knows none,
and reads JSON as bytes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from glue_jobs.aws.ranged import RangedFile
from glue_jobs.spark.kept_property import kept_property


class PlainParquet(pq.ParquetFile):
    """A Parquet file without extension types: their values come as they are stored, JSON as texts.

    ranged: what it is read from, where each piece of that is a request.
    """

    ranged: RangedFile | None = None

    @kept_property
    def schema_arrow(self) -> pa.Schema:
        return self._plain_schema(self._as_read)

    @kept_property
    def _as_read(self) -> pa.Schema:
        return super().schema_arrow

    @kept_property
    def _plain(self) -> dict[str, pa.DataType]:
        """Column → its type, of those that Arrow reads in another one."""
        plain = {field.name: field.type.storage_type for field in self._as_read if isinstance(field.type, pa.BaseExtensionType)}
        if any(pt.is_binary(field.type) for field in self._as_read):
            leaves = (self.schema.column(at) for at in range(len(self.schema.names)))
            plain.update({leaf.path: pa.string() for leaf in leaves if leaf.logical_type.type == "JSON" and leaf.path == leaf.name})
        return plain

    def _plain_schema(self, found: pa.Schema) -> pa.Schema:
        if not self._plain:
            return found
        return pa.schema([field.with_type(self._plain.get(field.name, field.type)) for field in found], found.metadata)

    def iter_batches(self, *given: Any, **options: Any) -> Any:
        return map(self._as_stored, super().iter_batches(*given, **options))

    def read(self, *given: Any, **options: Any) -> pa.Table:
        return self._as_stored(super().read(*given, **options))

    def read_row_group(self, *given: Any, **options: Any) -> pa.Table:
        return self._as_stored(super().read_row_group(*given, **options))

    def _as_stored(self, rows: Any) -> Any:
        """The rows, a table or a batch, in the types of `schema_arrow`."""
        if not self._plain or not rows.num_columns:  # of no column there are rows all the same, which only it knows
            return rows
        schema = self._plain_schema(rows.schema)
        columns = [_as_stored(column, kind) for column, kind in zip(rows.columns, schema.types, strict=True)]
        return type(rows).from_arrays(columns, schema=schema)


def _as_stored(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if values.type.equals(kind):
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_as_stored(chunk, kind) for chunk in values.chunks], kind)
    # Not by a cast, which looks whether bytes are UTF-8 and can't say in which row they are not.
    return values.storage if isinstance(values, pa.ExtensionArray) else values.view(kind)
