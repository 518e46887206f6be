"""PartitionKey: from a person's text to partition fields, folder names and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional
from urllib.parse import unquote

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.schema import Schema, find

TRANSFORMS = ("identity", "year", "month", "day")
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_FUNCTION = re.compile(r"(year|month|day)\s*\(\s*(.+?)\s*\)", re.IGNORECASE)
_AS = re.compile(r"(.+?)\s+as\s+([^\s()]+)", re.IGNORECASE)
# Hive's own list (FileUtils.charToEscape): these, control characters and DEL are written as %XX.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^") | {chr(code) for code in range(1, 0x20)} | {"\x7f"}

_UNWRITABLE = frozenset("\x00\ufffe\uffff")


@dataclass(frozen=True)
class PartitionField:
    """One level of partition folders: `name=value`, the value being the column itself or a part of its date."""

    column: str
    transform: str = "identity"
    name: str = ""  # of the folder; '' means the default

    @property
    def folder(self) -> str:
        return self.name or (self.column if self.transform == "identity" else f"{self.column}_{self.transform}")


Partitioning = tuple[PartitionField, ...]
PartitionValues = tuple[Optional[str], ...]


def parse_partition_key(text: str) -> Partitioning:
    """The fields of `col`, `year(col)`, `month(col) as m`, comma separated; raises TableBlocked naming the attribute."""
    fields: list[PartitionField] = []
    for part in (piece.strip() for piece in text.split(",")):
        named = _AS.fullmatch(part)
        expression, name = (named.group(1).strip(), named.group(2)) if named else (part, "")
        function = _FUNCTION.fullmatch(expression)
        if function:
            fields.append(PartitionField(function.group(2), function.group(1).lower(), name))
        elif expression and not re.search(r"[()]", expression):
            fields.append(PartitionField(expression, "identity", name))
        else:
            raise _refused(text, f"{part!r}")
    folders = [field.folder for field in fields]
    if len(set(folders)) != len(folders):
        raise _refused(text, f"two fields with the folder name {max(folders, key=folders.count)!r}")
    return tuple(fields)


def partition_key_text(partitioning: Partitioning) -> str:
    """The text that `parse_partition_key` reads these fields from; 'null' for none."""
    return ", ".join(_field_text(field) for field in partitioning) or "null"


def _field_text(field: PartitionField) -> str:
    expression = field.column if field.transform == "identity" else f"{field.transform}({field.column})"
    return f"{expression} as {field.name}" if field.name else expression


def _refused(text: str, found: str) -> TableBlocked:
    return blocked(
        "bad-partition-key",
        f"the attribute PartitionKey {text!r} can't be read",
        expected="columns or year(c), month(c), day(c), comma separated, each with an optional `as name`",
        found=found,
        todo="correct the attribute PartitionKey of the table's item",
    )


def check_partitioning(partitioning: Partitioning, schema: Schema, table: str) -> None:
    """Refuse fields whose column isn't there or has no date parts, folder names that a column of the file has too, and folders that leave
    no column for the files."""
    for field in partitioning:
        column = find(schema, field.column)
        if column is None:
            raise blocked(
                "no-partition-column",
                f"PartitionKey names the column {field.column!r}, which is not there",
                where=table,
                expected=", ".join(item.name for item in schema),
                found=field.column,
                todo="correct the attribute PartitionKey of the table's item",
            )
        if field.transform != "identity" and column.type not in ("date", "timestamp", "string"):
            raise blocked(
                "no-date-parts",
                f"PartitionKey takes the {field.transform} of {field.column!r}, which is no date",
                where=table,
                expected="date, timestamp, or string that begins yyyy-MM-dd",
                found=column.type,
                todo="correct the attribute PartitionKey of the table's item",
            )
        if not is_folder_text(field.folder):
            raise blocked(
                "bad-partition-name",
                f"the partition folder {field.folder!r} has a character that no key in S3 can have",
                where=table,
                todo="rename the column by a DMS transformation rule, or take another one in PartitionKey",
            )
        if field.folder != field.column and any(field.folder.lower() == item.name.lower() for item in schema):
            raise blocked(
                "partition-name-taken",
                f"the partition folder {field.folder!r} has the name of a column",
                where=table,
                todo=f"name it otherwise in PartitionKey: `{field.transform}({field.column}) as <name>`",
            )
    if schema and not file_columns(schema, partitioning):
        raise blocked(
            "no-file-columns",
            "every column is a partition folder, so that files would have none",
            where=table,
            expected="at least one column that PartitionKey does not name",
            found=", ".join(field.column for field in partitioning),
            todo="leave one out of the attribute PartitionKey of the table's item",
        )


def file_columns(schema: Schema, partitioning: Partitioning) -> Schema:
    """The columns that stand in the data files: all but those that are partition folders."""
    away = {field.column for field in partitioning if field.transform == "identity"}
    return tuple(column for column in schema if column.name not in away)


def escape(text: str) -> str:
    """A folder-safe form of a partition name or value, as Hive and Spark write it (upper-case hex)."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def is_folder_text(text: str) -> bool:
    """Whether a folder can be named so once it is escaped: S3 bears no NUL, and no XML (so no DeleteObjects) the two others."""
    return not _UNWRITABLE & set(text)


def folder_of(partitioning: Partitioning, values: Sequence[str | None]) -> str:
    """`year=2024/month=5/` for the values; '' for a table without partitions."""
    return "".join(
        f"{escape(field.folder)}={NULL_FOLDER if value is None else escape(value)}/" for field, value in zip(partitioning, values)
    )


def values_of(path: str, partitioning: Partitioning) -> PartitionValues:
    """The partition values in a data file's path below the table's folder."""
    values = [part.split("=", 1)[1] for part in path.split("/")[:-1] if "=" in part][: len(partitioning)]
    return tuple(None if value == NULL_FOLDER else unquote(value) for value in values)
