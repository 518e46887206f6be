"""Why a CSV raw file can't be read as a table's rows: each reason in words, with the way out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from glue_jobs.core.csv_form import schema_text
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column, Schema, find, names

_SHOWN = 160  # characters of a first row or of columns in an error
_LINE_SHOWN = 460  # characters of a command in a way out; a report cuts it at 500, and a command that is cut is of no use
_NAME = re.compile(r"[^\W\d]\w*")
_HEADERS = "set AddColumnName=true on the DMS endpoint and reload the table"


@dataclass(frozen=True)
class Refusals:
    """where: the file, for messages."""

    reading: Reading
    where: str

    def column_twice(self, name: str, fields: Sequence[str]) -> TableBlocked:
        return blocked(
            "column-twice",
            f"two columns have the name {name!r}",
            where=f"file {self.where}",
            expected="each name once",
            found=_shown(fields),
            todo="leave out or rename one of them by a DMS transformation rule, then reload the table",
        )

    def nameless(self, fields: Sequence[str]) -> TableBlocked:
        return blocked(
            "reserved-column",
            "a field of the header has no name",
            where=f"file {self.where}, line 1",
            expected="a name for each field",
            found=_shown(fields),
            todo="let DMS write the file again (reload the table), or skip it: `dmslake unblock PATH --skip-file NAME`",
        )

    def contradicts(self, there: Column, said: Column) -> TableBlocked:
        return blocked(
            "csv-schema-contradicts",
            f"the attribute Schema gives column {said.name!r} another type than the lake table has",
            where=f"table {self.reading.table}, file {self.where}",
            expected=there.type,
            found=said.type,
            todo="correct the attribute Schema; if the source's type really changed, reload the table",
        )

    def unnamed(self, first: Sequence[str]) -> TableBlocked:
        return blocked(
            "csv-timestamp-unnamed",
            "the file has a commit time before the table's own columns, no header, and nothing says that column's name",
            where=f"file {self.where}",
            expected="the attribute TimestampColumn",
            found=_shown(first),
            todo=f"{self.set_line('TimestampColumn', 'dms_timestamp')} (or the TimestampColumnName of the DMS endpoint), or {_HEADERS}",
        )

    def unclear(self, first: Sequence[str], own: Schema, why: str) -> TableBlocked:
        return blocked(
            "csv-columns-unclear",
            f"the file has no header, and which column is which can't be told for sure: {why}",
            where=f"file {self.where}",
            expected=f"Op or a commit time or both before {_shown(names(own))}",
            found=_shown(first),
            todo=f"name all fields, Op and commit time included, in the attribute Schema (known now: {_shown(names(own))}), or the commit"
            f" time in TimestampColumn if one is there, or {_HEADERS}",
        )

    def other_columns(self, first: Sequence[str], own: Schema, fields: int) -> TableBlocked:
        return blocked(
            "csv-columns",
            f"the file has no header, and its {fields} field(s) are not the {len(own)} known column(s), be it with Op or a commit time "
            "before them",
            where=f"file {self.where}",
            expected=_shown(names(own)),
            found=_shown(first),
            todo=f"name the columns in the order of the fields: {self._set_schema(own)}; or {_HEADERS}",
        )

    def header_unclear(self, first: Sequence[str], unknown: Sequence[str]) -> TableBlocked:
        return blocked(
            "csv-header-unclear",
            "some of the first row's fields are names of columns and some are not: it could be a header with new columns, or a row",
            where=f"file {self.where}",
            expected="names of known columns only, or Op first, or a row",
            found=f"{_shown(first)} (not known: {_shown(unknown)})",
            todo="if it is a header, add the new columns to the attribute Schema of the table's item; if it is a row, let DMS write "
            "headers and Op (AddColumnName=true, IncludeOpForFullLoad=true) and reload the table",
        )

    def needs_types(self, data: Sequence[str], unknown: Sequence[str]) -> TableBlocked:
        """data: the columns of a header; unknown: those of them whose type nothing says."""
        said = self.reading.form.schema
        asked = tuple(find(said, name) or Column(name, "TYPE") for name in data if find(said, name) or name in unknown)
        kept = tuple(column for column in said if column.name not in data)
        return blocked(
            "csv-needs-schema",
            f"nothing says the type of column {', '.join(map(repr, unknown[:5]))}{' and others' if len(unknown) > 5 else ''}: CSV has only "
            "texts, and types are not guessed",
            where=f"file {self.where}",
            expected="the attribute Schema with a type for each",
            found=_shown(data),
            todo=self._set_schema((*kept, *asked)),
        )

    def needs_order(self, first: Sequence[str] | None, lake: Schema) -> TableBlocked:
        """lake: the lake table's columns, () for a new one."""
        why = (
            "a column came to the lake after its load, so that the file's order is not known" if lake else "nothing says its columns' types"
        )
        heads = tuple(Column(name, "TYPE") for name in first or ())
        are_names = heads and all(_NAME.fullmatch(column.name) for column in heads) and len(set(names(heads))) == len(heads)
        return blocked(
            "csv-needs-schema",
            f"{'the CSV file has no header, and ' if lake else ''}{why}; it is not guessed",
            where=f"file {self.where}",
            expected="the attribute Schema with each column's name and type, in the order of the fields",
            found=f"first row {_shown(first)}" if first else "an empty file",
            todo=self._set_schema(lake or (heads if are_names else (Column("NAME", "TYPE"),))),
        )

    def _set_schema(self, columns: Schema) -> str:
        """With the first columns and dots where all would be too many."""
        line, kept = self.set_line("Schema", schema_text(columns)), columns
        while len(line) > _LINE_SHOWN and len(kept) > 1:
            kept = kept[:-1]
            line = self.set_line("Schema", schema_text((*kept, Column("…", "…"))))
        return line

    def set_line(self, attribute: str, value: str) -> str:
        """A command that sets an attribute of the table's item, to be pasted."""
        key = json.dumps({"path": {"S": self.reading.table}}, ensure_ascii=False)
        values = json.dumps({":v": {"S": value}}, ensure_ascii=False)
        return (
            f"`aws dynamodb update-item --table-name {shlex.quote(self.reading.state_table)} --key {shlex.quote(key)} "
            f"--update-expression 'SET #a = :v' --expression-attribute-names '{{\"#a\": \"{attribute}\"}}' "
            f"--expression-attribute-values {shlex.quote(values)}`"
        )


def _shown(texts: Sequence[str] | None) -> str:
    text = ", ".join(" ".join(text.split()) for text in texts or ())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
