"""A folder of Parquet files that another program wrote: which objects are data, what their folders and columns say, whether it stands
still. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from glue_jobs.core.errors import TableBlocked, UsageError, blocked
from glue_jobs.core.partitioning import Partitioning, PartitionValues, folder_of, values_of
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.schema import Column, Schema, find, is_type, widened
from glue_jobs.core.state import TableState
from glue_jobs.core.verify import change_in_name, is_skipped_by_readers

_LOGS = {"Delta Lake": "/_delta_log/", "Apache Hudi": "/.hoodie/", "Apache Iceberg": ".metadata.json/"}  # in a path between slashes


@dataclass(frozen=True)
class Footer:
    """A Parquet file and what its footer says. columns: in lake types, without left_out, which are not the table's (`Op`). unlike: those
    whose type in the file is none that all readers take for the lake's, with it."""

    path: str
    file: RawFile
    rows: int
    columns: Schema
    left_out: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()


def data_files(listing: Mapping[str, RawFile], lake: S3Uri) -> tuple[dict[str, RawFile], tuple[str, ...]]:
    """(path → object that must be Parquet, the paths that readers pass over). Refuses a table whose files are told by a log of its own:
    among those that lie there are some that are no longer, or not wholly, the table's."""
    for path in sorted(listing):
        kind = next((kind for kind, part in _LOGS.items() if part in f"/{path}/"), "")
        if kind:
            raise blocked(
                "adopt-log",
                f"the folder is a table of {kind}: a log, which is not read, says which files have its rows",
                where=str(lake.join(path)),
                expected="a folder all of whose Parquet files are the table",
                found=path,
                todo="load the table anew; or write its rows as plain Parquet to another folder, as by Spark, and adopt that one",
            )
    files = {path: file for path, file in listing.items() if not is_skipped_by_readers(path, file.size)}
    ours = sorted(path for path in files if change_in_name(path))
    if ours:
        raise blocked(
            "adopt-own-file",
            f"{len(ours)} object(s) have names that dmslake gives",
            where=str(lake.join(ours[0])),
            expected="files of another program",
            todo="if this table's change records were deleted, restore them; if the folder is a copy of a lake table, rename its files",
        )
    if not files:
        raise blocked(
            "adopt-nothing",
            "the folder holds no data file",
            where=str(lake),
            expected="the Parquet files of the table",
            found=f"{len(listing)} object(s) that readers pass over" if listing else "nothing",
            todo="with --no-source correct the table's path, which is its folder; else give the folder by --out-path "
            "s3://bucket/prefix/table/ (it is kept in the item's out_path), or load the table anew",
        )
    return files, tuple(sorted(set(listing) - set(files)))


def partition_of(path: str, partitioning: Partitioning, lake: S3Uri) -> PartitionValues:
    """The partition values in a file's path; refuses a folder that is not spelled as PartitionKey and Hive would spell it. How the values
    of columns are spelled is told by their types, which are not known here."""
    folder = path[: len(path) - len(path.rsplit("/", 1)[-1])]
    values = values_of(path, partitioning)
    is_right = len(values) == len(partitioning) and folder_of(partitioning, values) == folder
    for field, value in zip(partitioning, values):
        is_right = is_right and value != "" and (field.transform == "identity" or value is None or _is_number(value))
    if is_right:
        return values
    names = "/".join(f"{field.folder}={'…' if field.transform == 'identity' else 'NUMBER'}" for field in partitioning)
    spelling = ", numbers without leading zeros" if any(field.transform != "identity" for field in partitioning) else ""
    raise blocked(
        "adopt-layout",
        "a file does not lie where the partition key says",
        where=str(lake.join(path)),
        expected=f"a file in {names}/{spelling}" if names else "a file right in the table's folder (PartitionKey is null)",
        found=f"the folder {folder or str(lake)}",
        todo="give --partition-key: column, or year(column) as NAME, month(column) as NAME, comma separated; a folder that is spelled "
        "otherwise can't be adopted, load the table anew",
    )


def _is_number(text: str) -> bool:
    """Whether a year, a month or a day is spelled as dmslake spells it: a row that changes would move from month=05 to month=5."""
    return text.isascii() and text.isdigit() and text == str(int(text))


def merged_schema(footers: Sequence[Footer], lake: S3Uri) -> tuple[Schema, tuple[str, ...]]:
    """(the columns of all files, in the order of the newest one, others behind; those whose type is not the same in all files)."""
    newest_first = sorted(footers, key=lambda footer: (footer.file.modified, footer.path), reverse=True)
    columns: dict[str, Column] = {}
    seen_in: dict[str, str] = {}
    mixed: dict[str, None] = {}
    for footer in newest_first:
        for column in footer.columns:
            known = columns.setdefault(column.name, column)
            seen_in.setdefault(column.name, footer.path)
            kind = widened(known.type, column.type)
            if kind is None:
                raise _types_differ(lake, footer.path, column, known, seen_in[column.name])
            if column.type != known.type:
                mixed[column.name] = None
            columns[column.name] = replace(known, type=kind)
    _check_case(columns, seen_in, lake)
    return tuple(columns.values()), tuple(mixed)


def _types_differ(lake: S3Uri, path: str, column: Column, known: Column, other: str) -> TableBlocked:
    return blocked(
        "adopt-types",
        f"the column {column.name!r} has types that no one type can hold",
        where=str(lake.join(path)),
        expected=f"{known.type}, as in {other}",
        found=column.type,
        todo="the table can't be adopted as it is: load it anew",
    )


def _check_case(columns: Mapping[str, Column], seen_in: Mapping[str, str], lake: S3Uri) -> None:
    lower: dict[str, str] = {}
    for name in columns:
        other = lower.setdefault(name.lower(), name)
        if other != name:
            raise blocked(
                "columns-differ-by-case",
                f"the columns {other!r} and {name!r} differ only by case; Spark and Athena can't read such a table",
                where=f"{lake.join(seen_in[other])} and {lake.join(seen_in[name])}",
                todo="the table can't be adopted as it is: load it anew",
            )


def untyped(partitioning: Partitioning) -> tuple[str, ...]:
    """The columns that stand in folder names only, so that no file tells their type."""
    return tuple(field.column for field in partitioning if field.transform == "identity")


def with_partition_types(
    schema: Schema, partitioning: Partitioning, said: Mapping[str, str], raw: Schema, catalog: Mapping[str, str], lake: S3Uri
) -> Schema:
    """The schema with the partition columns behind. Their types: what a person said, else the newest raw file's, else the catalog's."""
    wanted = untyped(partitioning)
    for name in said:
        if name not in wanted:
            raise UsageError(f"--column names {name!r}, which is no partition column", "bad-argument", "other columns are in the files")
    out = list(schema)
    for name in wanted:
        if find(schema, name) is not None:
            raise blocked(
                "adopt-layout",
                f"the partition column {name!r} stands in the files as well as in the folders' names",
                where=str(lake),
                todo="the table can't be adopted as it is: load it anew",
            )
        column = find(raw, name)
        kind = said.get(name) or (column.type if column else "") or catalog.get(name.lower(), "")
        if not is_type(kind):
            raise blocked(
                "no-partition-type",
                f"nothing tells the type of the partition column {name!r}: it stands in the folders' names only",
                where=str(lake),
                todo=f"give it: --column '{name}=string' (or int, date, …)",
            )
        out.append(Column(name, kind))
    return tuple(out)


# --- whether it may be taken


def folder_changed(where: str) -> TableBlocked:
    """The error for a folder that another program still writes to."""
    return blocked(
        "folder-changed",
        "the folder changed while it was read: another program still writes there",
        where=where,
        todo="stop that program for good, then run again; nothing was changed",
    )


def check_same(before: Mapping[str, RawFile], after: Mapping[str, RawFile], lake: S3Uri) -> None:
    """Refuse a folder that is not as it was listed before, naming an object that came, went or changed."""
    old = {path: (file.etag, file.size) for path, file in before.items()}
    new = {path: (file.etag, file.size) for path, file in after.items()}
    for path in sorted({*old, *new}):
        if old.get(path) != new.get(path):
            raise folder_changed(str(lake.join(path)))


def check_alone(
    state: TableState,
    items: Iterable[Mapping[str, object]],
    todo: str = "give another folder by --out-path, or correct the other item's out_path",
) -> None:
    """Refuse a folder that is, is inside, or holds the lake folder of another item."""
    mine = str(state.lake)
    for item in items:
        path, other = str(item.get("path", "")), str(item.get("out_path") or "").strip().rstrip("/") + "/"
        if path != str(state.path) and other != "/" and (mine.startswith(other) or other.startswith(mine)):
            raise blocked(
                "lake-folder-taken",
                f"the lake folder {mine} would be written by {state.path} and by {path}",
                where=mine,
                todo=todo,
            )
