"""Rows that a person gives as Spark DataFrames: their columns are held against the table's before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from glue_jobs.core.given import key_schema
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import to_arrow
from glue_jobs.spark.given_rows import GivenRows, Piece, check_columns, conformed, given_rows, too_much
from glue_jobs.spark.rows import collect


def given_frames(
    key: Sequence[str], schema: Schema, primary_key: Sequence[str], table: str, deletes: Any, updates: Any, limit_bytes: int
) -> GivenRows:
    """The rows of a correction from DataFrames, either of which may be None; `limit_bytes` is for both together."""
    wanted = key_schema(tuple(key), schema, table)
    gone = [] if deletes is None else [_piece(deletes, wanted, schema, "deletes", limit_bytes)]
    left = limit_bytes - sum(piece.rows.nbytes for piece in gone)
    new = [] if updates is None else [_piece(updates, schema, schema, "updates", left)]
    return given_rows(key, schema, primary_key, gone, new)


def _piece(frame: Any, wanted: Schema, allowed: Schema, what: str, limit_bytes: int) -> Piece:
    name = f"the DataFrame of {what}"
    found = [(field.name, lake_type(field.dataType)) for field in frame.schema.fields]
    check_columns(found, wanted, allowed, name)
    kinds = dict(found)
    types = pa.schema([(column.name, to_arrow(kinds[column.name])) for column in wanted])
    rows = collect(frame.select(*(quoted(column.name) for column in wanted)), types)
    if rows.nbytes > limit_bytes:
        raise too_much(limit_bytes)
    return Piece(name, conformed(rows, wanted, name))


def lake_type(kind: Any) -> str:
    """The lake's name of a Spark type."""
    text: str = kind.simpleString()
    return "timestamp" if text == "timestamp_ntz" else text


def quoted(name: str) -> str:
    """A column's name as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
