"""Rows to edit a table with, as a program has them: a Spark or pandas DataFrame, an Arrow table, a dict of columns, a list of dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import CORRECT, DELETE, check_columns
from glue_jobs.core.schema import is_type
from glue_jobs.spark.arrow_types import to_arrow
from glue_jobs.spark.edit_files import found_objects
from glue_jobs.spark.edit_rows import Fitted, Found, Wanted, fitted
from glue_jobs.spark.given_frames import lake_type, quoted
from glue_jobs.spark.given_rows import too_much
from glue_jobs.spark.rows import collect

NAME = "the rows"


def fitted_values(rows: Any, wanted: Wanted, limit_bytes: int) -> Fitted:
    """The rows for the table; UsageError for what can't be taken, and for more than `limit_bytes` in memory."""
    found = fitted(_found(rows, wanted, limit_bytes), wanted)
    if found.rows.nbytes > limit_bytes:
        raise too_much(limit_bytes)
    return found


def _found(rows: Any, wanted: Wanted, limit_bytes: int) -> Found:
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        check_columns(rows.schema.names, wanted.schema, wanted.key, wanted.word, NAME)
        return Found(NAME, dict(zip(rows.schema.names, rows.columns, strict=True)))
    if isinstance(rows, Mapping):
        return _from_columns({str(name): values for name, values in rows.items()})
    if hasattr(rows, "mapInArrow"):
        return _from_spark(rows, wanted, limit_bytes)
    if hasattr(rows, "to_numpy") and hasattr(rows, "columns"):
        return _from_pandas(rows, wanted)
    if isinstance(rows, (list, tuple)) and all(isinstance(row, Mapping) for row in rows):
        return found_objects(NAME, [dict(row) for row in rows])
    kinds = "a Spark or pandas DataFrame, an Arrow table, a dict of columns or a list of dicts"
    raise UsageError(f"rows can't be given as {type(rows).__name__}", "bad-argument", f"give {kinds}")


def _from_columns(columns: dict[str, Any]) -> Found:
    lists: dict[str, Any] = {}
    for name, values in columns.items():
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise UsageError(f"the column {name!r} of the rows is no list of values: {type(values).__name__}", "bad-argument", CORRECT)
        lists[name] = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else list(values)
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UsageError(f"the columns of the rows are not of one length: {said}", "bad-argument", CORRECT)
    return Found(NAME, lists)


def _from_pandas(frame: Any, wanted: Wanted) -> Found:
    names = [str(name) for name in frame.columns]
    check_columns(names, wanted.schema, wanted.key, wanted.word, NAME)
    return Found(NAME, {name: _series(frame.iloc[:, at]) for at, name in enumerate(names)})


def _series(series: Any) -> Any:
    """A column as an Arrow one; as a list where its values are of several types, and of times as objects: Arrow would cut nanoseconds."""
    try:
        found = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError):
        found = None
    if found is not None and not (series.dtype == object and pt.is_timestamp(found.type)):
        return found
    absent = np.asarray(series.isna())
    return [None if lacks else value for value, lacks in zip(series.tolist(), absent, strict=True)]


def _from_spark(frame: Any, wanted: Wanted, limit_bytes: int) -> Found:
    kinds = {field.name: lake_type(field.dataType) for field in frame.schema.fields}
    check_columns([field.name for field in frame.schema.fields], wanted.schema, wanted.key, wanted.word, NAME)
    names = list(wanted.key) if wanted.word == DELETE else list(kinds)
    odd = [f"{name!r} ({kinds[name]})" for name in names if not is_type(kinds[name])]
    if odd:
        raise UsageError(f"the DataFrame has columns of types that no lake table has: {', '.join(odd)}", "given-columns", CORRECT)
    rows = collect(frame.select(*map(quoted, names)), pa.schema([(name, to_arrow(kinds[name])) for name in names]))
    if rows.nbytes > limit_bytes:
        raise too_much(limit_bytes)
    return Found(NAME, dict(zip(rows.column_names, rows.columns, strict=True)))
