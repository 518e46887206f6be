"""What the Snapshot job is asked for: the sources file, a run's wish, and the strict comparison of columns.

A sources file is a mapping of tables, under the key `tables` or by itself:

    tables:
      orders:
        path: s3://bucket/dms/shop/orders/
        primary_keys: [id]
        cdc_start_date: 2024-05-01
        partition_date: order_date
        timestamp_column: ts
        schema: {id: bigint, order_date: date, amount: "decimal(10,2)"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.csv_form import NULL, parse_delimiter, parse_null
from glue_jobs.core.dms_columns import BEFORE_IMAGES, parse_before_images
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import key_text, split_key
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.schema import Column, Schema, find, is_type

LAST_CHANGE = "last_change"
LAYOUTS = ("flat", "dated")
FIELDS = (
    "path", "primary_keys", "partition_date", "cdc_start_date", "schema", "timestamp_column", "last_change_column",
    "csv_delimiter", "csv_null", "before_image_prefix",
)  # fmt: skip
_SAME_TYPE = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "bool": "boolean", "str": "string"}
_DATE_TYPES = ("date", "timestamp", "string")
_RUN_ID = re.compile(r"[A-Za-z0-9_\-]{1,128}")
RUN_DATE_COLUMN = "run_date"


@dataclass(frozen=True)
class Source:
    """One table of the sources file. schema: () where none is declared; cdc_start_date: None for all CDC files."""

    table: str
    path: S3Uri
    primary_keys: tuple[str, ...]
    partition_date: str = ""
    cdc_start_date: date | None = None
    schema: Schema = ()
    timestamp_column: str = ""
    last_change_column: str = LAST_CHANGE
    csv_delimiter: str = ","
    csv_null: str = NULL
    before_images: tuple[str, ...] = BEFORE_IMAGES  # patterns of the names of before images

    @property
    def expected(self) -> Schema:
        """The columns that every file must have: those declared, and the timestamp column, which need not be."""
        if not self.schema or not self.timestamp_column or find(self.schema, self.timestamp_column):
            return self.schema
        return (Column(self.timestamp_column, "string"), *self.schema)


@dataclass(frozen=True)
class SnapshotWish:
    """What one run is to make. keep: versions to keep, 0 for all; full: not from the version before."""

    source: Source
    run_date: date
    to: S3Uri
    database: str = "default"
    layout: str = "flat"
    keep: int = 0
    full: bool = False

    @property
    def by_column(self) -> bool:
        """Partitioned by a date of the data."""
        return self.layout == "dated" and bool(self.source.partition_date)

    @property
    def by_run_date(self) -> bool:
        return self.layout == "dated" and not self.source.partition_date

    @property
    def name(self) -> str:
        """The Glue table's name."""
        return re.sub(r"[^a-z0-9_]", "_", f"{self.source.table}_snapshot".lower())

    @property
    def folder(self) -> S3Uri:
        """Everything that runs of this snapshot write is below it."""
        return self.to.join(f"{self.database}.{self.name}/")


def read_wish(given: Mapping[str, str], entry: Mapping[str, Any], today: date) -> SnapshotWish:
    """A run's wish from its arguments and the table's entry in the sources file ({} without one). Arguments win."""
    table = given.get("table", "").strip()
    if not table:
        raise UsageError("no table is given", "no-table", "give --table NAME, as it stands in the sources file")
    said = {**entry, **{name: given[name] for name in FIELDS if given.get(name, "").strip()}}
    source = read_source(table, said)
    if not given.get("to", "").strip():
        raise UsageError("it is not said where the snapshot goes", "bad-argument", "give --to s3://bucket/prefix/")
    layout = given.get("layout", "").strip() or "flat"
    if layout not in LAYOUTS:
        raise _bad("layout", layout, " or ".join(LAYOUTS))
    keep = given.get("keep", "").strip() or "0"
    if not keep.isdigit():
        raise _bad("keep", keep, "a number of versions from 1, or 0 for all")
    database = given.get("database", "").strip() or "default"
    if not re.fullmatch(r"[^/\\\s.]+", database):
        raise _bad("database", database, "the name of a Glue database")
    full = read_flag(given, "full")
    run_date = read_date(given.get("run_date", "").strip() or today.isoformat(), "run_date")
    if source.cdc_start_date is not None and source.cdc_start_date > run_date:
        found = f"cdc_start_date {source.cdc_start_date} is after the run date {run_date}"
        raise UsageError(found, "bad-argument", "correct one of them")
    return SnapshotWish(source, run_date, S3Uri.folder(given["to"]), database, layout, int(keep), full)


def entry_of(document: Any, table: str, where: str) -> Mapping[str, Any]:
    """The table's entry in a sources file; UsageError that lists the tables there are."""
    tables = document.get("tables", document) if isinstance(document, dict) else None
    if not isinstance(tables, dict):
        raise UsageError(f"{where} holds no tables", "bad-sources", "write it as a mapping of table name to its entry (docs/snapshot.md)")
    if table not in tables:
        known = ", ".join(map(str, tables)) or "none"
        raise UsageError(
            f"the sources file {where} has no table {table!r}; it has: {known}", "unknown-source", "correct --table or the file"
        )
    entry = tables[table]
    if not isinstance(entry, dict):
        raise UsageError(f"the entry of {table!r} in {where} is no mapping", "bad-sources", f"give it {', '.join(FIELDS)}")
    return entry


def read_source(table: str, said: Mapping[str, Any]) -> Source:
    """The source that an entry and arguments describe; UsageError naming the field."""
    unknown = sorted(set(map(str, said)) - set(FIELDS))
    if unknown:
        raise UsageError(f"unknown field(s) of table {table!r}: {', '.join(unknown)}", "bad-sources", f"take {', '.join(FIELDS)}")
    if not re.fullmatch(r"[^/\\\s]+", table):
        raise _bad("table", table, "a name without slashes and spaces")
    if not str(said.get("path") or "").strip():
        raise UsageError(f"table {table!r} has no path", "bad-sources", "give path: s3://bucket/prefix/schema/table/, where DMS writes")
    keys = _names(said.get("primary_keys"))
    if not keys:
        raise UsageError(f"table {table!r} has no primary_keys", "bad-sources", "give the columns that identify a row")
    start = said.get("cdc_start_date")
    source = Source(
        table=table,
        path=S3Uri.folder(str(said["path"])),
        primary_keys=keys,
        partition_date=str(said.get("partition_date") or "").strip(),
        cdc_start_date=read_date(start, "cdc_start_date") if start else None,
        schema=read_schema(said.get("schema")),
        timestamp_column=str(said.get("timestamp_column") or "").strip(),
        last_change_column=str(said.get("last_change_column") or LAST_CHANGE).strip(),
        csv_delimiter=_csv(said, "csv_delimiter", parse_delimiter, ","),
        csv_null=_csv(said, "csv_null", parse_null, NULL),
        before_images=_images(said.get("before_image_prefix")),
    )
    return check_columns(source, source.expected) if source.schema else source


def _images(said: Any) -> tuple[str, ...]:
    text = ",".join(map(str, said)) if isinstance(said, (list, tuple)) else str(said or "")
    try:
        return parse_before_images(text)
    except ValueError as error:
        raise _bad("before_image_prefix", str(error), "what before images' names begin with, as OLD_, or a pattern, as *_old") from error


def _csv(said: Mapping[str, Any], name: str, parse: Callable[[Any], str], default: str) -> str:
    if said.get(name) is None:
        return default
    try:
        return parse(_unquoted(said[name]))
    except ValueError as error:
        raise _bad(name, str(said[name]), str(error)) from error


def _unquoted(said: Any) -> Any:
    """What stands in double quotes: an argument can't be a blank, nor empty. No delimiter and no null text has quotes of its own."""
    return said[1:-1] if isinstance(said, str) and len(said) > 1 and said[0] == said[-1] == '"' else said


def check_columns(source: Source, schema: Schema) -> Source:
    """The source itself, if `schema`, of its files, has the columns that it names."""
    for name in source.primary_keys:
        if find(schema, name) is None:
            raise _no_column("primary_keys", name, schema)
    if source.partition_date:
        column = find(schema, source.partition_date)
        if column is None:
            raise _no_column("partition_date", source.partition_date, schema)
        if column.type not in _DATE_TYPES:
            raise _bad("partition_date", f"{column.name} of type {column.type}", f"a column of type {', '.join(_DATE_TYPES)}")
    if source.timestamp_column:
        column = find(schema, source.timestamp_column)
        if column is None:
            raise _no_column("timestamp_column", source.timestamp_column, schema)
        if column.type not in ("string", "timestamp"):
            raise _bad("timestamp_column", f"{column.name} of type {column.type}", "a column of type string or timestamp")
    taken = {column.name.lower() for column in schema}
    for name in (source.last_change_column, date_folder(source, schema)):
        if name and name.lower() in taken and name != source.partition_date:
            todo = "name the output's column otherwise: last_change_column" if name == source.last_change_column else "rename that column"
            raise UsageError(f"the table has a column {name!r} already", "column-taken", todo)
    return source


def date_folder(source: Source, schema: Schema) -> str:
    """The partition column of the layout by a date of the data: that column if it is a date, else `<column>_date`; '' for none."""
    column = find(schema, source.partition_date) if source.partition_date else None
    return "" if column is None else column.name if column.type == "date" else f"{column.name}_date"


def read_schema(said: Any) -> Schema:
    """Columns from {name: type}, [{name, type}], either also as JSON, or `name type, name type`; () for nothing."""
    if not said:
        return ()
    pairs: list[tuple[str, str]] = []
    if isinstance(said, str) and said.strip()[:1] in ("[", "{"):
        said = _of_json(said)
    if isinstance(said, Mapping):
        pairs = [(str(name), str(kind)) for name, kind in said.items()]
    elif isinstance(said, str):
        for part in re.split(r",(?![^(]*\))", said):
            name, _, kind = part.strip().rpartition(" ") if "(" not in part else part.strip().partition(" ")
            pairs.append((name.strip(), kind.strip()))
    elif isinstance(said, Sequence) and all(isinstance(item, Mapping) and {"name", "type"} <= set(item) for item in said):
        pairs = [(str(item["name"]), str(item["type"])) for item in said]
    else:
        raise _bad("schema", repr(said)[:100], "a mapping of name to type, a list of {name, type}, or `name type, name type`")
    columns = [Column(name, _type(name, kind)) for name, kind in pairs]
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _bad("schema", f"{', '.join(twice)} twice", "each column once")
    return tuple(columns)


def _of_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _bad("schema", text[:100], f"JSON ({error}), or `name type, name type`") from error


def _type(name: str, said: str) -> str:
    kind = re.sub(r"\s+", "", said.lower())
    kind = _SAME_TYPE.get(kind, kind)
    if not name or not is_type(kind):
        raise _bad("schema", f"{name!r} of type {said!r}", "a type such as bigint, string, decimal(10,2), date, timestamp (docs/types.md)")
    return kind


def differences(expected: Schema, found: Schema) -> list[str]:
    """Every difference between the columns that are expected and those of a file, whatever their order."""
    wanted, there = {column.name: column.type for column in expected}, {column.name: column.type for column in found}
    lines = [f"{name!r} ({kind}) is missing" for name, kind in wanted.items() if name not in there]
    lines += [f"{name!r} ({kind}) is not expected" for name, kind in there.items() if name not in wanted]
    both = [name for name in wanted if name in there and wanted[name] != there[name]]
    return lines + [f"{name!r} is {there[name]}, expected {wanted[name]}" for name in both]


def output_schema(source: Source, schema: Schema) -> Schema:
    """The snapshot's columns: the keys, all others in their order, the time of the last change."""
    keys = tuple(column for name in source.primary_keys for column in schema if column.name == name)
    rest = tuple(column for column in schema if column.name not in source.primary_keys)
    return (*keys, *rest, Column(source.last_change_column, "timestamp"))


def read_date(said: Any, name: str) -> date:
    """A date from text or from YAML, which reads dates by itself."""
    if isinstance(said, datetime):
        return said.date()
    if isinstance(said, date):
        return said
    try:
        return datetime.strptime(str(said).strip() + "+0000", "%Y-%m-%d%z").date()
    except ValueError:
        raise _bad(name, str(said), "a date as 2024-05-01") from None


def check_run_id(text: str) -> str:
    """The run id itself, if it can stand in a key."""
    if not _RUN_ID.fullmatch(text):
        raise _bad("run_id", text, "letters, digits, `-` and `_`, at most 128")
    return text


def wish_arguments(wish: SnapshotWish) -> dict[str, str]:
    """The job arguments that `read_wish` reads this very wish from, without a sources file."""
    source = wish.source
    values = {
        "table": source.table,
        "path": str(source.path),
        "primary_keys": key_text(source.primary_keys),
        "partition_date": source.partition_date,
        "cdc_start_date": source.cdc_start_date.isoformat() if source.cdc_start_date else "",
        "schema": _schema_text(source.schema),
        "timestamp_column": source.timestamp_column,
        "last_change_column": source.last_change_column,
        "csv_delimiter": {"\t": "\\t", ",": "", " ": '" "'}.get(source.csv_delimiter, source.csv_delimiter),
        "csv_null": {"": '""', NULL: ""}.get(source.csv_null, source.csv_null),
        "before_image_prefix": "" if source.before_images == BEFORE_IMAGES else ",".join(source.before_images),
        "run_date": wish.run_date.isoformat(),
        "to": str(wish.to),
        "database": wish.database,
        "layout": wish.layout,
        "keep": str(wish.keep),
        "full": "true" if wish.full else "",
    }
    return {name: value for name, value in values.items() if value}


def _schema_text(schema: Schema) -> str:
    """As a person writes it; as JSON where a name has what divides names and types."""
    if any(set(column.name) & set(", ()") or column.name[:1] in "[{" for column in schema):
        return json.dumps([{"name": column.name, "type": column.type} for column in schema], ensure_ascii=False)
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def _names(said: Any) -> tuple[str, ...]:
    if isinstance(said, str):
        said = split_key(said)
    if not isinstance(said, Sequence):
        return ()
    return tuple(str(name).strip() for name in said if str(name).strip())


def _no_column(field: str, name: str, schema: Schema) -> UsageError:
    columns = ", ".join(column.name for column in schema)
    return UsageError(f"{field} names the column {name!r}, and there are: {columns}", "unknown-column", f"correct {field}, or schema")


def _bad(name: str, found: str, expected: str) -> UsageError:
    return UsageError(f"{name} can't be {found!r}", "bad-argument", f"give {expected}")
