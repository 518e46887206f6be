"""The partitions of a table of the Glue catalog, made equal to what they are told. Only `place_partitions` removes any."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Literal

from glue_jobs.aws.catalog_storage import ATTEMPTS, EXISTS, MISSING, glue_columns, name_types, storage
from glue_jobs.aws.translate import RETRYABLE
from glue_jobs.core.errors import DmslakeError, RetryLater
from glue_jobs.core.partitioning import NULL_FOLDER, Partitioning, PartitionValues, folder_of
from glue_jobs.core.schema import Schema
from glue_jobs.core.verify import CatalogPartition

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

PARTITION_PAGE = 100
DROP_PAGE = 25


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
    location: str,
    columns: Schema,
    partitioning: Partitioning,
    placed: Collection[PartitionValues] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Give every partition the columns of the table, and those `placed` (None: all) their folder's place, where they differ; how many did.
    Needed when a column's type grew, or where the table was made by others or was elsewhere.

    Each partition has its own list of columns, and Athena refuses one whose type isn't the table's; and it has its own place, which is
    where Athena reads it.
    """
    wanted = glue_columns(columns, {})
    left: dict[tuple[str, ...], Any] = {}
    for partition in _partitions(glue, database, name):
        found: Any = partition["StorageDescriptor"]
        values = [str(value) for value in partition["Values"]]
        ours = tuple(None if value == NULL_FOLDER else value for value in values)
        there = str(found.get("Location", ""))
        folder = location + folder_of(partitioning, ours) if placed is None or ours in placed else there
        if name_types(found["Columns"]) != name_types(wanted) or there.rstrip("/") != folder.rstrip("/"):
            entry = {"Values": values, "StorageDescriptor": storage(folder, wanted)}
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
    wanted = {tuple(_glue_values(values)): storage(location, glue_columns(columns, {})) for values, location in locations.items()}
    new = {values: {"Values": list(values), "StorageDescriptor": placed} for values, placed in wanted.items() if values not in found}
    moved = {
        values: {"PartitionValueList": list(values), "PartitionInput": {"Values": list(values), "StorageDescriptor": placed}}
        for values, placed in wanted.items()
        if values in found and (found[values]["Location"], found[values]["Columns"]) != (placed["Location"], placed["Columns"])
    }
    gone = [values for values in found if values not in wanted] if others == "drop" else []
    _in_pages(moved, lambda page: glue.batch_update_partition(DatabaseName=database, TableName=name, Entries=page), name, pause)
    _in_pages(new, lambda page: glue.batch_create_partition(DatabaseName=database, TableName=name, PartitionInputList=page), name, pause)
    for at in range(0, len(gone), DROP_PAGE):
        page: Any = [{"Values": list(values)} for values in gone[at : at + DROP_PAGE]]
        answer: Any = glue.batch_delete_partition(DatabaseName=database, TableName=name, PartitionsToDelete=page)
        _busy({"Errors": [each for each in answer.get("Errors", ()) if each.get("ErrorDetail", {}).get("ErrorCode") != MISSING]}, name)
    return len(new) + len(moved) + len(gone)


def read_partitions(glue: GlueClient, database: str, name: str) -> Iterator[CatalogPartition]:
    """The table's partitions as Glue lists them, null as None."""
    for entry in _partitions(glue, database, name):
        values = tuple(None if value == NULL_FOLDER else str(value) for value in entry["Values"])
        found = entry.get("StorageDescriptor", {})
        yield CatalogPartition(values, str(found.get("Location", "")), name_types(found.get("Columns", ())))


def _partitions(glue: GlueClient, database: str, name: str) -> Iterator[Any]:
    for page in glue.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=name):
        yield from page["Partitions"]


def _partition_input(values: PartitionValues, location: str, columns: Schema, partitioning: Partitioning) -> dict[str, Any]:
    folder = location + folder_of(partitioning, values)
    return {"Values": _glue_values(values), "StorageDescriptor": storage(folder, glue_columns(columns, {}))}


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
        elif code != EXISTS:
            raise DmslakeError(
                f"Glue refused the partition {'/'.join(values)} of {name}: {code}: {detail.get('ErrorMessage', '')}",
                "catalog-partition",
                "see AWS Glue's error list; the next run tries again",
            )
    return again
