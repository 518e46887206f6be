"""A table of the Glue catalog, and its database, made equal to what it is told. Only `drop_table` removes a table for good."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Literal

from botocore.exceptions import ClientError

from glue_jobs.aws.catalog_partitions import read_partitions
from glue_jobs.aws.catalog_storage import ATTEMPTS, EXISTS, MISSING, glue_columns, name_types, storage
from glue_jobs.aws.translate import error_code
from glue_jobs.core.errors import RetryLater, blocked
from glue_jobs.core.schema import Column, Schema, widened
from glue_jobs.core.verify import CatalogTable

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

FENCE = "dmslake.fence"
PATH = "dmslake.path"
_OF_OTHERS = ("spark.sql.", "projection.", "storage.location.", "delta.")
_FORMATS = frozenset({"table_type", "metadata_location", "previous_metadata_location", "provider"})
_CONCURRENT = frozenset({"ConcurrentModificationException", "VersionMismatchException", EXISTS, MISSING})


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
) -> Literal["later", "updated", "moved", "created"]:
    """Create or update the table, and the database if it is missing. columns: those in the files, without partition columns.

    `created`: it may have no partition yet. `moved`: it was elsewhere, and its partitions still are. `later`, and nothing is done: a
    greater fence wrote the table, its partitions are that writer's too. A table of another path, or of none and in another place, raises
    TableBlocked, code catalog-name-taken. What a person added (parameters, comments) stays. If others write it at the same time it is read
    again and tried again; RetryLater if that doesn't end. moved_from: the location that the table must have before, else it is `later` too.
    """
    created = was_elsewhere = False
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
                if moved or _fence(found) > fence:
                    return "later"
                if not _fits(found, partition_columns):
                    # The old partitions fit no longer, and dropping the table drops them all. A crash before the next line is
                    # mended by the next run, which finds the catalog step undone.
                    glue.delete_table(DatabaseName=database, Name=name)
                    found = None
            table: Any = _table_input(name, found or {}, location, columns, partition_columns, description)
            table["Parameters"].update({FENCE: str(fence), PATH: path})
            if found is None:
                created = True  # whatever it answers: the table that is found next may be the one that this request made
                glue.create_table(DatabaseName=database, TableInput=table)
            else:
                was_elsewhere |= found["StorageDescriptor"].get("Location", "").rstrip("/") != location.rstrip("/")
                _update_table(glue, database, table, found)
            return "created" if created else "moved" if was_elsewhere else "updated"
        except ClientError as error:
            if error_code(error) not in _CONCURRENT:
                raise
    raise RetryLater(f"the Glue table {database}.{name} was changed by others all the time", "catalog-busy", "run again")


def read_table(glue: GlueClient, database: str, name: str) -> CatalogTable | None:
    """The Glue table and its partitions as they are, None if there is none. Reads only."""
    found = _find_table(glue, database, name)
    if found is None:
        return None
    return CatalogTable(
        location=str(found.get("StorageDescriptor", {}).get("Location", "")),
        owner=str(found.get("Parameters", {}).get(PATH, "")),
        columns=name_types(found.get("StorageDescriptor", {}).get("Columns", ())),
        partition_columns=name_types(found.get("PartitionKeys", ())),
        partitions=tuple(read_partitions(glue, database, name)) if found.get("PartitionKeys") else (),
    )


def owner_of(glue: GlueClient, database: str, name: str) -> str | None:
    """The path of the table that the Glue table says it is of, '' if it says nothing; None if there is no such Glue table."""
    found = _find_table(glue, database, name)
    return None if found is None else str(found.get("Parameters", {}).get(PATH, ""))


def check_owner(glue: GlueClient, database: str, name: str, path: str) -> None:
    """Raise TableBlocked, code catalog-name-taken, for a Glue table that says it is of another table than `path`. One that says nothing
    passes: it is another program's, or stands where this table's is to be."""
    owner = owner_of(glue, database, name)
    if owner and owner != path:
        raise blocked(
            "catalog-name-taken",
            f"the Glue table {database}.{name} is of another table",
            where=path,
            expected=f"no Glue table, or one of {path}",
            found=f"one of {owner}",
            todo="set the attribute CatalogTable of the table's item to another name, or, if nobody needs the other table any longer, drop "
            "that Glue table",
        )


def fence_of(glue: GlueClient, database: str, name: str) -> int:
    """The fence under which the Glue table was written; -1 if it says nothing, or there is none."""
    return _fence(_find_table(glue, database, name) or {})


def drop_table(glue: GlueClient, database: str, name: str, path: str) -> bool:
    """Drop the Glue table of `path`, its partitions with it; False, and nothing is done, if it is gone or says that it is of another."""
    if owner_of(glue, database, name) != path:
        return False
    try:
        glue.delete_table(DatabaseName=database, Name=name)
    except ClientError as error:
        if error_code(error) != MISSING:
            raise
        return False
    return True


def _find_table(glue: GlueClient, database: str, name: str) -> Any:
    """The Glue table as it is, None if it or its database is missing."""
    try:
        return glue.get_table(DatabaseName=database, Name=name)["Table"]
    except ClientError as error:
        if error_code(error) != MISSING:
            raise
        return None


def _create_database(glue: GlueClient, database: str) -> None:
    """Create the database if it is missing; asked for first, because the permission to create it is often not given."""
    try:
        glue.get_database(Name=database)
        return
    except ClientError as error:
        if error_code(error) != MISSING:
            raise
    try:
        glue.create_database(DatabaseInput={"Name": database})
    except ClientError as error:
        if error_code(error) != EXISTS:
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


def _fence(found: Any) -> int:
    return int(found.get("Parameters", {}).get(FENCE, "-1"))


def _fits(found: Any, partition_columns: Sequence[tuple[str, str]]) -> bool:
    """Whether the partitions that a Glue table has are also some of these columns. Values of a type that is not widened need be none of the
    new type, and one such partition makes every query fail."""
    old = name_types(found.get("PartitionKeys", ()))
    if [name for name, _ in old] != [name.lower() for name, _ in partition_columns]:
        return False
    return all(new in ("string", widened(kind, new)) for (_, kind), (_, new) in zip(old, partition_columns))


def _update_table(glue: GlueClient, database: str, table: dict[str, Any], found: Any) -> None:
    # Every archived version counts towards a quota, and a table is updated by every change.
    request: dict[str, Any] = {"DatabaseName": database, "TableInput": table, "SkipArchive": True}
    if found.get("VersionId"):
        request["VersionId"] = found["VersionId"]
    glue.update_table(**request)


def _kept_parameters(found: Mapping[str, str]) -> dict[str, str]:
    """What a person has said of the table. Not what another program noted of it, while it is that one's: Spark would go by its own columns
    and place, Athena by its own partitions, whatever the table says beside them."""
    if PATH in found:
        return dict(found)
    return {name: value for name, value in found.items() if not (name.startswith(_OF_OTHERS) or name in _FORMATS)}


def _table_input(
    name: str, found: Any, location: str, columns: Schema, partition_columns: Sequence[tuple[str, str]], description: str
) -> dict[str, Any]:
    """The TableInput of our table; what `found` has besides is kept."""
    known = {column["Name"]: column for column in (*found.get("StorageDescriptor", {}).get("Columns", ()), *found.get("PartitionKeys", ()))}
    kept = {field: found[field] for field in ("Owner", "Retention") if found.get(field)}
    text = description or str(found.get("Description", ""))
    return {
        **kept,
        "Name": name,
        **({"Description": text} if text else {}),
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**_kept_parameters(found.get("Parameters", {})), "EXTERNAL": "TRUE", "classification": "parquet"},
        "PartitionKeys": glue_columns(tuple(Column(name, kind) for name, kind in partition_columns), known),
        "StorageDescriptor": storage(location, glue_columns(columns, known)),
    }
