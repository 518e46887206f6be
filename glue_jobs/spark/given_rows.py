"""Rows that a person gives: read from Parquet or CSV, on S3 or on this machine, and held against the table's columns, strictly.

CSV is as `dmslake read --output csv` writes it: a line of names, nothing for null (a blank line, where there is one column), "" for an
empty text, binary in hexadecimal, times in UTC unless they name an offset. Types come from the table. Rows are counted from 0, CSV's line
of names aside.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.core.collation import collated_as
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.given import ENDINGS, Correction, key_schema
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Column, Schema, find, names
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.spark.arrow_types import arrow_schema, conform, first_failing, lake_type_of, shown
from glue_jobs.spark.given_csv import csv_heads, csv_texts, readable
from glue_jobs.spark.given_texts import values_of
from glue_jobs.spark.key_columns import take
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.plain_parquet import PlainParquet

_P = TypeVar("_P", bound=PurePath)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_CORRECT = "correct the rows that are given; nothing was changed"


@dataclass(frozen=True)
class Piece:
    """The rows of one file, in the lake's types. name: for messages."""

    name: str
    rows: pa.Table


@dataclass(frozen=True)
class GivenRows:
    """A correction's rows. keys: each once, those to be deleted first; deleted: how many these are. updates: all of the lake's columns.

    key_of: for each row of updates the place of its key.
    """

    keys: GivenKeys
    deleted: int
    updates: pa.Table
    key_of: np.ndarray[Any, Any]


class Reader:
    """Reads given files; all that it has read together may have `limit_bytes`."""

    endings = ENDINGS

    def __init__(self, s3: Any, limit_bytes: int) -> None:
        self._s3, self._limit, self._left = s3, limit_bytes, limit_bytes

    def keys(self, where: str, key: Sequence[str], schema: Schema, table: str) -> list[Piece]:
        """The key's columns of rows to be deleted. Other columns may stand there if the table has them, and are left aside."""
        wanted = key_schema(tuple(key), schema, table)
        return [self._piece(name, data, wanted, schema) for name, data in self._files(where)]

    def rows(self, where: str, schema: Schema) -> list[Piece]:
        """Rows with all of the lake's columns and no others."""
        return [self._piece(name, data, schema, schema) for name, data in self._files(where)]

    def _piece(self, name: str, data: bytes, wanted: Schema, allowed: Schema) -> Piece:
        if not name.lower().endswith(".csv"):
            return Piece(name, self._parquet_rows(data, name, wanted, allowed))
        rows = _csv_rows(data, name, wanted, allowed)
        self._take(rows.nbytes)
        return Piece(name, rows)

    def _parquet_rows(self, data: bytes, name: str, wanted: Schema, allowed: Schema) -> pa.Table:
        with readable(name):
            parquet = PlainParquet(io.BytesIO(data), coerce_int96_timestamp_unit="us")
            found = parquet.schema_arrow
        check_columns([(field.name, lake_type_of(field.type) or str(field.type)) for field in found], wanted, allowed, name)
        tables, first = [], 0
        for group in range(parquet.num_row_groups):  # one by one: a small file may hold many bytes of rows
            with readable(name):
                rows = parquet.read_row_group(group, columns=list(names(wanted)), use_threads=False)
            self._take(rows.nbytes)
            tables.append(conformed(rows, wanted, name, first))
            first += rows.num_rows
        return pa.concat_tables(tables) if tables else arrow_schema(wanted).empty_table()

    def _files(self, where: str) -> Iterator[tuple[str, bytes]]:
        """(name, bytes) of the file, or of the Parquet files of the folder."""
        if where.startswith("s3://"):
            yield from self._objects(where)
            return
        path = Path(where)
        with readable(where):
            inside = sorted(each.name for each in path.iterdir()) if path.is_dir() else None
        files = [path / name for name in _data_files(inside, where)] if inside is not None else [_known(path, where, self.endings)]
        for file in files:
            with readable(where):
                self._check_size(file.stat().st_size)
                data = file.read_bytes()
            yield str(file), data

    def _objects(self, where: str) -> Iterator[tuple[str, bytes]]:
        uri = S3Uri.parse(where)
        folder = uri.key.rstrip("/") + "/" if uri.key else ""
        sizes = {file.key: file.size for file in list_files(self._s3, uri.bucket, uri.key)}
        if uri.key in sizes and not uri.key.endswith("/"):
            _known(PurePosixPath(uri.key), where, self.endings)
            keys = [uri.key]
        else:
            inside = [key[len(folder) :] for key in sizes if key.startswith(folder) and "/" not in key[len(folder) :]]
            keys = [folder + name for name in _data_files(sorted(inside), where)]
        for key in keys:
            self._check_size(sizes[key])
            yield f"s3://{uri.bucket}/{key}", read_bytes(self._s3, uri.bucket, key)

    def _check_size(self, size: int) -> None:
        if size > self._left:
            raise too_much(self._limit)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise too_much(self._limit)


def too_much(limit: int) -> UsageError:
    return UsageError(
        f"the rows that are given need more than {limit} bytes of memory",
        "too-much-given",
        "give them in several corrections, or raise the setting apply_bytes (a G.1X driver has about 10 GB)",
    )


def _known(path: _P, where: str, endings: tuple[str, ...]) -> _P:
    if not path.name.lower().endswith(endings):
        raise UsageError(f"what {where} is can't be told by its name", "given-not-read", f"its name must end in {' or '.join(endings)}")
    return path


def _data_files(found: Sequence[str], where: str) -> list[str]:
    """The Parquet files among the names of a folder; what Spark writes beside them begins with `_` or `.`."""
    chosen = [name for name in found if name.endswith(".parquet") and not name.startswith(("_", "."))]
    if not chosen:
        raise UsageError(f"{where} is no file, and no folder with Parquet files in it", "given-not-read", "look at the address")
    return chosen


def check_columns(found: Sequence[tuple[str, str]], wanted: Schema, allowed: Schema, name: str) -> None:
    """UsageError that lists every difference between the columns found, (name, lake type; '' for one without types), and the wanted ones.

    Integers may be of any width: their values are looked at one by one. Only columns of `allowed` may be there.
    """
    there = [column for column, _ in found]
    wrong = [f"{column!r} stands there {there.count(column)} times" for column in dict.fromkeys(there) if there.count(column) > 1]
    wrong += [f"{column.name!r} ({column.type}) is missing" for column in wanted if column.name not in there]
    wrong += [f"{column!r} is no column of the table" for column in dict.fromkeys(there) if find(allowed, column) is None]
    for column, kind in found:
        lake = find(wanted, column)
        if (
            lake is not None
            and kind not in ("", lake.type)
            and not (lake.type in _INTEGERS and (kind in _INTEGERS or kind == "decimal(20,0)"))
        ):
            wrong.append(f"{column!r} is {kind}, the table has {lake.type}")
    if wrong:
        raise UsageError(f"the columns of {name} are not the table's: {'; '.join(wrong)}", "given-columns", _CORRECT)


def conformed(rows: pa.Table, schema: Schema, name: str, first_row: int = 0) -> pa.Table:
    """The rows in the lake's types, if no value loses anything by it and all text is UTF-8."""
    for field, values in zip(rows.schema, rows.columns, strict=True):
        kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
        if pt.is_string(kind) or pt.is_large_string(kind):
            each_value(lambda part: part.validate(full=True), values, field.name, "string", name, first_row)
        if pt.is_timestamp(kind) and kind.unit == "ns":
            each_value(lambda part: part.cast(pa.timestamp("us", part.type.tz)), values, field.name, "timestamp", name, first_row)
    try:
        return conform(rows, schema, name, first_row=first_row)
    except TableBlocked as error:
        raise UsageError(error.message, "given-value", _CORRECT) from error


def each_value(convert: Callable[[Any], Any], values: Any, column: str, kind: str, name: str, first_row: int) -> Any:
    """`convert` of the values; a UsageError that names the row of the first that it refuses."""
    try:
        return convert(values)
    except pa.ArrowInvalid as error:
        row = first_failing(convert, values) or 0
        found = values[row]
        said = repr(found.as_buffer().to_pybytes()[:40]) if pt.is_string(found.type) and kind == "string" else shown(found)
        raise _no_value(column, kind, f"file {name}, row {first_row + row}", said) from error


def _no_value(column: str, kind: str, where: str, found: str) -> UsageError:
    said = f"a value of column {column!r} is none of the table's type; where: {where}; expected: {kind}; found: {found}"
    return UsageError(said, "given-value", _CORRECT)


# --- CSV


def _csv_rows(data: bytes, name: str, wanted: Schema, allowed: Schema) -> pa.Table:
    heads = csv_heads(data, name)
    check_columns([(head, "") for head in heads], wanted, allowed, name)
    texts = csv_texts(data, heads, name)
    columns = [_csv_values(texts.column(column.name), column, name) for column in wanted]
    return pa.Table.from_arrays(columns, schema=arrow_schema(wanted))


def _csv_values(texts: Any, column: Column, name: str) -> Any:
    values, refused = values_of(texts, column.type)
    if refused:
        raise _no_value(column.name, column.type, f"file {name}, row {refused[0]}", shown(texts[refused[0]]))
    return values


# --- Rows of both kinds held against each other


def given_rows(
    key: Sequence[str], schema: Schema, primary_key: Sequence[str], deletes: Sequence[Piece], updates: Sequence[Piece]
) -> GivenRows:
    """The rows of a correction. UsageError for a null in a key, a key that is to be deleted and updated, and rows to be written whose
    primary key is null or not unique."""
    key = collated_as(key, primary_key)
    for piece in (*deletes, *updates):
        refuse_nulls(piece, key, "key")
    for piece in updates:
        refuse_nulls(piece, primary_key, "primary key")
    rows = pa.concat_tables([arrow_schema(schema).empty_table(), *(piece.rows for piece in updates)])
    lake_key = arrow_schema(tuple(column for name in key for column in schema if column.name == name))
    gone = GivenKeys.of(pa.concat_tables([lake_key.empty_table(), *(piece.rows.select(list(key)) for piece in deletes)]), key)
    _refuse_both(gone, updates)
    new = GivenKeys.of(rows, key)
    _refuse_twice(rows, primary_key, updates)
    keys = GivenKeys(tuple(key), pa.concat_tables([gone.table, new.table]).combine_chunks())
    return GivenRows(keys, len(gone), rows, keys.places(rows))


def read_given(reader: Reader, correction: Correction, snapshot: Snapshot, table: str) -> GivenRows:
    """The rows of a correction of this table, read."""
    key, schema = correction.check().key, snapshot.schema
    key_schema(key, schema, table)
    deletes = reader.keys(correction.deletes, key, schema, table) if correction.deletes else []
    updates = reader.rows(correction.updates, schema) if correction.updates else []
    return given_rows(key, schema, snapshot.primary_key, deletes, updates)


def refuse_nulls(piece: Piece, columns: Sequence[str], what: str) -> None:
    """UsageError for a null in a key's columns, that names its row. what: which key they are of."""
    for name in columns:
        values = piece.rows.column(name)
        if values.null_count:
            row = pc.index(pc.is_null(values), True).as_py()
            raise UsageError(f"the {what} column {name!r} is null; where: file {piece.name}, row {row}", "given-null-key", _CORRECT)


def _refuse_both(gone: GivenKeys, updates: Sequence[Piece]) -> None:
    for piece in updates:
        both = np.flatnonzero(gone.places(piece.rows) >= 0)
        if len(both):
            key = texts_of(piece.rows.select(list(gone.columns)).slice(int(both[0]), 1))[0]
            raise UsageError(
                f"the key {key} is both to be deleted and updated; where: file {piece.name}, row {both[0]}", "given-twice", _CORRECT
            )


def _refuse_twice(rows: pa.Table, primary_key: Sequence[str], updates: Sequence[Piece]) -> None:
    if not primary_key or not rows.num_rows:
        return
    distinct = GivenKeys.of(rows, primary_key)
    if len(distinct) == rows.num_rows:
        return
    places = distinct.places(rows)
    _, first = np.unique(places, return_index=True)
    row = int(np.setdiff1d(np.arange(rows.num_rows), first)[0])
    name, at = _place_of(row, updates)
    key = texts_of(rows.select(list(primary_key)).slice(row, 1))[0]
    raise UsageError(f"two rows to be written have the primary key {key}; where: file {name}, row {at}", "given-twice", _CORRECT)


def _place_of(row: int, pieces: Sequence[Piece]) -> tuple[str, int]:
    """(file, row in it) of a row of all pieces together."""
    for piece in pieces:
        if row < piece.rows.num_rows:
            return piece.name, row
        row -= piece.rows.num_rows
    raise IndexError(row)


def texts_of(rows: pa.Table) -> list[str]:
    """Keys as short texts: the values, comma separated."""
    shown_values = [[shown(value) for value in column] for column in rows.columns]
    return [", ".join(values) for values in zip(*shown_values, strict=True)]


def chosen(rows: pa.Table, places: np.ndarray[Any, Any]) -> pa.Table:
    """The rows at these places."""
    return take(rows, pa.array(places, pa.int64()))
