"""How a table's CSV raw files are written, as its item says: what divides fields, what stands for null, names and types of the columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.schema import Column, Schema, find, is_type

DETAIL = "csv"  # of a change record's details: the form in which its CSV files were read
NULL = "NULL"  # DMS's default of CsvNullValue
_TABS = ("\\t", "tab")
_TYPES = "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, binary, date or timestamp"


@dataclass(frozen=True)
class CsvForm:
    """schema: the columns in the order of the files' fields, () where nothing says it; it may name DMS's own columns too.

    null: the unquoted text that stands for null. empty_is_text: whether an unquoted empty field is a text of no characters, in a column of
    texts; it is null otherwise.
    """

    schema: Schema = ()
    delimiter: str = ","
    null: str = NULL
    empty_is_text: bool = False

    def details(self) -> dict[str, Any]:
        """What a change record keeps of it; types are in the record's schema."""
        kept = {"delimiter": self.delimiter, "null": self.null, "columns": [column.name for column in self.schema]}
        return {**kept, "empty_is_text": True} if self.empty_is_text else kept


def form_of_details(details: Mapping[str, Any], schema: Schema) -> CsvForm:
    """The form that a record keeps. schema: the record's. DMS's own columns, which no record has, come out as texts."""
    kept = details.get(DETAIL) or {}
    columns = tuple(find(schema, name) or Column(name, "string") for name in kept.get("columns", ()))
    return CsvForm(columns, kept.get("delimiter", ","), kept.get("null", NULL), bool(kept.get("empty_is_text")))


def parse_schema(value: Any) -> Schema:
    """The attribute Schema: JSON text of an object, name → lake type in column order. Raises ValueError that says what was expected."""
    if isinstance(value, Mapping):
        raise ValueError('JSON text (a string such as {"id": "int"}): a Map of DynamoDB keeps no order')
    if str(value).strip().lower() in ("", "null", "none"):
        return ()
    try:
        pairs = json.loads(str(value), object_pairs_hook=_Pairs)
    except ValueError:
        pairs = None
    if not isinstance(pairs, _Pairs) or not pairs:
        raise ValueError('a JSON object of column name to lake type, in column order, such as {"id": "int", "price": "decimal(12,2)"}')
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each column once ({twice[0]!r} stands there twice)")
    return tuple(Column(name, _type(name, kind)) for name, kind in pairs)


class _Pairs(list):  # type: ignore[type-arg]  # an object of JSON with its order and its repetitions
    pass


def _type(name: str, said: Any) -> str:
    kind = re.sub(r"\s+", "", said.lower()) if isinstance(said, str) else ""
    if not name or not is_type(kind):
        raise ValueError(f"{_TYPES} for each column ({name!r} has {said!r})")
    return kind


def schema_text(columns: Schema) -> str:
    """The attribute Schema for these columns."""
    return json.dumps({column.name: column.type for column in columns}, ensure_ascii=False)


def parse_delimiter(value: Any) -> str:
    """The attribute CsvDelimiter: one ASCII character, or `\\t` or `tab`. A tab or blank alone is taken as it is, not stripped away."""
    text = str(value)
    text = text if len(text) == 1 else text.strip()
    if text.lower() in _TABS:
        return "\t"
    if text.lower() in ("", "null", "none"):
        return ","
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in '"\r\n\0':
        raise ValueError("one ASCII character, no letter, digit, quote or line end (a tab is written \\t)")
    return text


def parse_null(value: Any) -> str:
    """The attribute CsvNullValue; an empty one means that only an empty field is null."""
    text = str(value).strip()
    if any(character in text for character in '"\r\n'):
        raise ValueError("a text without quotes and line ends")
    return text
