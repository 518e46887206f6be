"""Files of rows to edit a table with: JSON (a list of objects, or an object per line), CSV, Parquet; on S3 or on this machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import CORRECT, DELETE, ROW_ENDINGS, check_columns
from glue_jobs.spark.edit_rows import Fitted, Found, Wanted, fitted
from glue_jobs.spark.given_csv import csv_heads, csv_texts, readable
from glue_jobs.spark.given_rows import Reader
from glue_jobs.spark.plain_parquet import PlainParquet


class EditReader(Reader):
    """Reads given files of rows."""

    endings = ROW_ENDINGS

    def fitted(self, where: str, wanted: Wanted) -> list[Fitted]:
        """The rows at an address, by file. Raises UsageError."""
        out = []
        for name, data in self._files(where):
            rows = fitted(self._found(name, data, wanted), wanted)
            self._take(rows.rows.nbytes)
            out.append(rows)
        return out

    def _found(self, name: str, data: bytes, wanted: Wanted) -> Found:
        ending = name.lower().rsplit(".", 1)[-1]
        if ending == "parquet":
            return Found(name, self._parquet(name, data, wanted))
        if ending == "csv":
            heads = csv_heads(data, name)
            check_columns(heads, wanted.schema, wanted.key, wanted.word, name)
            texts = csv_texts(data, heads, name)
            return Found(name, dict(zip(texts.column_names, texts.columns, strict=True)))
        return found_objects(name, list(json_objects(name, data)))

    def _parquet(self, name: str, data: bytes, wanted: Wanted) -> dict[str, Any]:
        with readable(name):
            parquet = PlainParquet(io.BytesIO(data), coerce_int96_timestamp_unit="us")
        names = list(parquet.schema_arrow.names)
        check_columns(names, wanted.schema, wanted.key, wanted.word, name)
        names = list(wanted.key) if wanted.word == DELETE else names
        tables = [parquet.schema_arrow.empty_table().select(names)]
        for group in range(parquet.num_row_groups):  # one by one: a small file may hold many bytes of rows
            with readable(name):
                tables.append(parquet.read_row_group(group, columns=names, use_threads=False))
            self._check_size(sum(table.nbytes for table in tables))
        rows = pa.concat_tables(tables)
        return dict(zip(rows.column_names, rows.columns, strict=True))


def json_objects(name: str, data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a JSON document that is a list of them or one, or of lines with one each. Numbers keep their digits."""
    with readable(name):
        text = data.decode("utf-8-sig")
    try:
        whole = _loads(text) if text.strip() else []
        yield from _checked(name, whole if isinstance(whole, list) else [whole], "row")
        return
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("["):
            raise _unreadable(name, str(error)) from error
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: a text may hold U+2028 and others like it
        if not line.strip():
            continue
        try:
            yield from _checked(name, [_loads(line)], f"line {number}, row")
        except json.JSONDecodeError as error:
            raise _unreadable(name, f"line {number}: {error}") from error


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except (ValueError, ArithmeticError) as error:  # thousands of digits, or an exponent that no number has
        raise json.JSONDecodeError(f"a number can't be read ({type(error).__name__})", "", 0) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise json.JSONDecodeError(f"an object has {twice!r} twice", "", 0)
    return made


def _checked(name: str, values: list[Any], what: str) -> list[dict[str, Any]]:
    for row, value in enumerate(values):
        if not isinstance(value, dict):
            raise _unreadable(name, f"{what} {row} is no object")
    return values


def _unreadable(name: str, text: str) -> UsageError:
    return UsageError(f"the rows in {name} can't be read: {text}", "given-not-read", CORRECT)


def found_objects(name: str, objects: list[dict[str, Any]]) -> Found:
    """Rows that need not all say the same columns."""
    names = list(dict.fromkeys(column for row in objects for column in row))
    columns = {column: [row.get(column) for row in objects] for column in names}
    return Found(name, columns, {column: np.array([column in row for row in objects], bool) for column in names})
