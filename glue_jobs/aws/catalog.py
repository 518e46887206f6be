"""The Glue catalog: a database, a table and its partitions, made equal to what they are told. Only `place_partitions` removes any
partition, and only `drop_table` a table for good."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Literal

from botocore.exceptions import ClientError

from glue_jobs.aws.translate import RETRYABLE, error_code
from glue_jobs.core.errors import DmslakeError, RetryLater, blocked
from glue_jobs.core.partitioning import NULL_FOLDER, Partitioning, PartitionValues, folder_of
from glue_jobs.core.schema import Schema
from glue_jobs.core.verify import CatalogPartition, CatalogTable

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

PARTITION_PAGE = 100
DROP_PAGE = 25
ATTEMPTS = 6
FENCE = "dmslake.fence"
PATH = "dmslake.path"
_EXISTS = "AlreadyExistsException"
_MISSING = "EntityNotFoundException"
_CONCURRENT = frozenset({"ConcurrentModificationException", "VersionMismatchException", _EXISTS, _MISSING})
_FORMAT: dict[str, Any] = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        "Parameters": {"serialization.format": "1"},
    },
}


def sync_table(
    glue: GlueClient,
    database: str,
    name: str,
    *,
    location: str,
    columns: Schema,
    partition_columns: Sequence[tuple[str, str]],
    fence: int,
    path: str,
    description: str = "",
    moved_from: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Literal["later", "updated", "created"]:
    """Create or update the table, and the database if it is missing. columns: those in the files, without partition columns.

    `created`: it has no partition yet. `later`, and nothing is done: a greater fence wrote the table, its partitions are that writer's
    too. A table of another path, or
    of none and in another place, raises TableBlocked, code catalog-name-taken. What a person added (parameters, comments) stays. If
    others write it at the same time it is read again and tried again; RetryLater if that doesn't end. moved_from: the location that the
    table must have before, else it is `later` too.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(0.2 * 2**attempt)
        try:
            found = _find_table(glue, database, name)
            if found is None:
                _create_database(glue, database)
            else:
                _refuse_foreign(found, database, name, location, path)
                place = found["StorageDescriptor"]["Location"]
                moved = moved_from is not None and place not in (moved_from, location)  # our own update may have lost its answer
                if moved or int(found.get("Parameters", {}).get(FENCE, "-1")) > fence:
                    return "later"
                if _layout(found) != [column.lower() for column, _ in partition_columns]:
                    # The old partitions fit no longer, and dropping the table drops them all. A crash before the next line is
                    # mended by the next run, which finds the catalog step undone.
                    glue.delete_table(DatabaseName=database, Name=name)
                    found = None
            table: Any = _table_input(name, found or {}, location, columns, partition_columns, description)
            table["Parameters"].update({FENCE: str(fence), PATH: path})
            if found is None:
                glue.create_table(DatabaseName=database, TableInput=table)
            else:
                _update_table(glue, database, table, found)
            return "created" if found is None else "updated"
        except ClientError as error:
            if error_code(error) not in _CONCURRENT:
                raise
    raise RetryLater(f"the Glue table {database}.{name} was changed by others all the time", "catalog-busy", "run again")


def _find_table(glue: GlueClient, database: str, name: str) -> Any:
    """The Glue table as it is, None if it or its database is missing."""
    try:
        return glue.get_table(DatabaseName=database, Name=name)["Table"]
    except ClientError as error:
        if error_code(error) != _MISSING:
            raise
        return None


def owner_of(glue: GlueClient, database: str, name: str) -> str | None:
    """The path of the table that the Glue table says it is of, '' if it says nothing; None if there is no such Glue table."""
    found = _find_table(glue, database, name)
    return None if found is None else str(found.get("Parameters", {}).get(PATH, ""))


def drop_table(glue: GlueClient, database: str, name: str, path: str) -> bool:
    """Drop the Glue table of `path`, its partitions with it; False, and nothing is done, if it is gone or says that it is of another."""
    if owner_of(glue, database, name) != path:
        return False
    try:
        glue.delete_table(DatabaseName=database, Name=name)
    except ClientError as error:
        if error_code(error) != _MISSING:
            raise
        return False
    return True


def _create_database(glue: GlueClient, database: str) -> None:
    """Create the database if it is missing; asked for first, because the permission to create it is often not given."""
    try:
        glue.get_database(Name=database)
        return
    except ClientError as error:
        if error_code(error) != _MISSING:
            raise
    try:
        glue.create_database(DatabaseInput={"Name": database})
    except ClientError as error:
        if error_code(error) != _EXISTS:
            raise


def _refuse_foreign(found: Any, database: str, name: str, location: str, path: str) -> None:
    owner = found.get("Parameters", {}).get(PATH)
    place = str(found.get("StorageDescriptor", {}).get("Location", ""))
    if owner == path or (owner is None and place.rstrip("/") == location.rstrip("/")):
        return
    raise blocked(
        "catalog-name-taken",
        f"the Glue table {database}.{name} is of something else",
        where=path,
        expected=f"a table of {path} at {location}",
        found=f"a table of {owner or 'another program'} at {place or 'no location'}",
        todo="set the attribute CatalogTable of the table's item to another name, or drop that Glue table",
    )


def _layout(found: Any) -> list[str]:
    """The names of a Glue table's partition columns."""
    return [column["Name"] for column in found.get("PartitionKeys", ())]


def _update_table(glue: GlueClient, database: str, table: dict[str, Any], found: Any) -> None:
    # Every archived version counts towards a quota, and a table is updated by every change.
    request: dict[str, Any] = {"DatabaseName": database, "TableInput": table, "SkipArchive": True}
    if found.get("VersionId"):
        request["VersionId"] = found["VersionId"]
    glue.update_table(**request)


def _table_input(
    name: str, found: Any, location: str, columns: Schema, partition_columns: Sequence[tuple[str, str]], description: str
) -> dict[str, Any]:
    """The TableInput of our table; what `found` has besides is kept."""
    known = {column["Name"]: column for column in found.get("StorageDescriptor", {}).get("Columns", ())}
    kept = {field: found[field] for field in ("Owner", "Retention") if found.get(field)}
    text = description or str(found.get("Description", ""))
    return {
        **kept,
        "Name": name,
        **({"Description": text} if text else {}),
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**found.get("Parameters", {}), "EXTERNAL": "TRUE", "classification": "parquet"},
        "PartitionKeys": [{"Name": column.lower(), "Type": kind} for column, kind in partition_columns],
        "StorageDescriptor": _storage(location, _glue_columns(columns, known)),
    }


def _glue_columns(columns: Schema, known: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns as Glue has them: names in lower case, comments kept."""
    made = []
    for column in columns:
        comment = known.get(column.name.lower(), {}).get("Comment")
        made.append({"Name": column.name.lower(), "Type": column.type, **({"Comment": comment} if comment else {})})
    return made


def _storage(location: str, columns: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Columns": columns, "Location": location, **_FORMAT}


def add_partitions(
    glue: GlueClient,
    database: str,
    name: str,
    partitions: Sequence[PartitionValues],
    *,
    location: str,
    columns: Schema,
    partitioning: Partitioning,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Add the partitions that are missing, in pages of 100; one that exists is left as it is. location: the table's, with slash.

    Partitions are answered one by one: those that Glue was too busy for are tried again, any other failure raises.
    """
    left = {tuple(_glue_values(values)): _partition_input(values, location, columns, partitioning) for values in partitions}
    _in_pages(left, lambda page: glue.batch_create_partition(DatabaseName=database, TableName=name, PartitionInputList=page), name, pause)


def refresh_partitions(
    glue: GlueClient,
    database: str,
    name: str,
    *,
    columns: Schema,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Give every partition the columns of the table, where they differ; how many did. Needed when a column's type grew.

    Each partition has its own list of columns, and Athena refuses one whose type isn't the table's.
    """
    wanted = _glue_columns(columns, {})
    left: dict[tuple[str, ...], Any] = {}
    for partition in _partitions(glue, database, name):
        storage: Any = partition["StorageDescriptor"]
        if [(column["Name"], column["Type"]) for column in storage["Columns"]] != [(c["Name"], c["Type"]) for c in wanted]:
            values = list(partition["Values"])
            entry = {"Values": values, "StorageDescriptor": {**storage, "Columns": wanted}}
            left[tuple(values)] = {"PartitionValueList": values, "PartitionInput": entry}
    changed = len(left)
    _in_pages(left, lambda page: glue.batch_update_partition(DatabaseName=database, TableName=name, Entries=page), name, pause)
    return changed


def place_partitions(
    glue: GlueClient,
    database: str,
    name: str,
    locations: Mapping[PartitionValues, str],
    *,
    columns: Schema,
    others: Literal["keep", "drop"],
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Make each partition exist at its location, with these columns; how many were not so. others: partitions that are not named."""
    found = {tuple(partition["Values"]): partition["StorageDescriptor"] for partition in _partitions(glue, database, name)}
    wanted = {tuple(_glue_values(values)): _storage(location, _glue_columns(columns, {})) for values, location in locations.items()}
    new = {values: {"Values": list(values), "StorageDescriptor": storage} for values, storage in wanted.items() if values not in found}
    moved = {
        values: {"PartitionValueList": list(values), "PartitionInput": {"Values": list(values), "StorageDescriptor": storage}}
        for values, storage in wanted.items()
        if values in found and (found[values]["Location"], found[values]["Columns"]) != (storage["Location"], storage["Columns"])
    }
    gone = [values for values in found if values not in wanted] if others == "drop" else []
    _in_pages(moved, lambda page: glue.batch_update_partition(DatabaseName=database, TableName=name, Entries=page), name, pause)
    _in_pages(new, lambda page: glue.batch_create_partition(DatabaseName=database, TableName=name, PartitionInputList=page), name, pause)
    for at in range(0, len(gone), DROP_PAGE):
        page: Any = [{"Values": list(values)} for values in gone[at : at + DROP_PAGE]]
        answer: Any = glue.batch_delete_partition(DatabaseName=database, TableName=name, PartitionsToDelete=page)
        _busy({"Errors": [each for each in answer.get("Errors", ()) if each.get("ErrorDetail", {}).get("ErrorCode") != _MISSING]}, name)
    return len(new) + len(moved) + len(gone)


def list_partitions(glue: GlueClient, database: str, name: str) -> Iterator[PartitionValues]:
    """The values of the table's partitions as Glue lists them, null as None."""
    for partition in _partitions(glue, database, name):
        yield tuple(None if value == NULL_FOLDER else value for value in partition["Values"])


def read_table(glue: GlueClient, database: str, name: str) -> CatalogTable | None:
    """The Glue table and its partitions as they are, None if there is none. Reads only."""
    found = _find_table(glue, database, name)
    if found is None:
        return None
    partitions = _partitions(glue, database, name) if found.get("PartitionKeys") else ()
    return CatalogTable(
        location=str(found.get("StorageDescriptor", {}).get("Location", "")),
        owner=str(found.get("Parameters", {}).get(PATH, "")),
        columns=_pairs(found.get("StorageDescriptor", {}).get("Columns", ())),
        partition_columns=_pairs(found.get("PartitionKeys", ())),
        partitions=tuple(_partition(entry) for entry in partitions),
    )


def _partition(entry: Any) -> CatalogPartition:
    values = tuple(None if value == NULL_FOLDER else str(value) for value in entry["Values"])
    storage = entry.get("StorageDescriptor", {})
    return CatalogPartition(values, str(storage.get("Location", "")), _pairs(storage.get("Columns", ())))


def _pairs(columns: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(column["Name"]), str(column.get("Type", ""))) for column in columns)


def _partitions(glue: GlueClient, database: str, name: str) -> Iterator[Any]:
    for page in glue.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=name):
        yield from page["Partitions"]


def _partition_input(values: PartitionValues, location: str, columns: Schema, partitioning: Partitioning) -> dict[str, Any]:
    folder = location + folder_of(partitioning, values)
    return {"Values": _glue_values(values), "StorageDescriptor": _storage(folder, _glue_columns(columns, {}))}


def _glue_values(values: PartitionValues) -> list[str]:
    return [NULL_FOLDER if value is None else value for value in values]


def _in_pages(left: dict[tuple[str, ...], Any], send: Callable[[Any], Any], name: str, pause: Callable[[float], None]) -> None:
    """Send the entries in pages until none is left to try again; raises on an entry that Glue refuses for good."""
    for attempt in range(ATTEMPTS):
        if attempt and left:
            pause(0.2 * 2**attempt)
        again: dict[tuple[str, ...], Any] = {}
        keys = list(left)
        for at in range(0, len(keys), PARTITION_PAGE):
            page = [left[key] for key in keys[at : at + PARTITION_PAGE]]
            for values in _busy(send(page), name):
                again[values] = left[values]
        left = again
    if left:
        raise RetryLater(f"Glue was too busy for {len(left)} partitions of {name}", "catalog-busy", "run again: the next run adds them")


def _busy(answer: Any, name: str) -> list[tuple[str, ...]]:
    """The values of the entries to be tried again, out of a batch's answer; raises on a failure that will stay."""
    again = []
    for entry in answer.get("Errors", ()):
        detail = entry.get("ErrorDetail", {})
        code = str(detail.get("ErrorCode", ""))
        values = tuple(entry.get("PartitionValues") or entry.get("PartitionValueList") or ())
        if code in RETRYABLE:
            again.append(values)
        elif code != _EXISTS:
            raise DmslakeError(
                f"Glue refused the partition {'/'.join(values)} of {name}: {code}: {detail.get('ErrorMessage', '')}",
                "catalog-partition",
                "see AWS Glue's error list; the next run tries again",
            )
    return again
