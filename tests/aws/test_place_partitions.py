"""Partitions whose locations move, and a table that moves only from where it was."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from glue_jobs.aws.catalog_partitions import place_partitions, read_partitions
from glue_jobs.aws.catalog_table import FENCE, sync_table
from glue_jobs.core.schema import Column

COLUMNS = (Column("id", "bigint"),)
FOLDER = "s3://lake/snapshots/"


@pytest.fixture
def database() -> str:
    return f"db_{uuid.uuid4().hex}"


def sync(glue: Any, database: str, location: str, fence: int = 1, **given: Any) -> str:
    options: dict[str, Any] = {"columns": COLUMNS, "partition_columns": [("day", "date")], "fence": fence, "path": FOLDER, **given}
    return sync_table(glue, database, "t", location=FOLDER + location, **options)


def place(glue: Any, database: str, locations: dict[Any, str], others: Any = "keep") -> int:
    wanted = {(value,): FOLDER + location for value, location in locations.items()}
    return place_partitions(glue, database, "t", wanted, columns=COLUMNS, others=others, pause=lambda seconds: None)


def locations(glue: Any, database: str) -> dict[Any, str]:
    found = glue.get_partitions(DatabaseName=database, TableName="t")["Partitions"]
    return {each["Values"][0]: each["StorageDescriptor"]["Location"][len(FOLDER) :] for each in found}


def test_partitions_are_made_moved_and_left(glue: Any, database: str) -> None:
    """What is as it should be is no request; others stay, or go if they are to be dropped."""
    sync(glue, database, "v1/")

    made = place(glue, database, {"2024-01-01": "v1/a/", "2024-01-02": "v1/b/", None: "v1/n/"})
    moved = place(glue, database, {"2024-01-01": "v2/a/", "2024-01-03": "v2/c/"})
    kept = locations(glue, database)
    dropped = place(glue, database, {"2024-01-01": "v2/a/", None: "v1/n/"}, others="drop")

    assert (made, moved, dropped) == (3, 2, 2)
    assert kept == {"2024-01-01": "v2/a/", "2024-01-02": "v1/b/", "2024-01-03": "v2/c/", "__HIVE_DEFAULT_PARTITION__": "v1/n/"}
    assert locations(glue, database) == {"2024-01-01": "v2/a/", "__HIVE_DEFAULT_PARTITION__": "v1/n/"}
    assert place(glue, database, {"2024-01-01": "v2/a/", None: "v1/n/"}, others="drop") == 0


def test_more_partitions_than_a_page_are_dropped(glue: Any, database: str) -> None:
    """Glue takes 25 at a time."""
    sync(glue, database, "v1/")
    place(glue, database, {f"2024-01-{day:02d}": "v1/" for day in range(1, 32)})

    assert place(glue, database, {}, others="drop") == 31
    assert [each.values for each in read_partitions(glue, database, "t")] == []


def test_a_table_is_moved_only_from_where_it_should_be(glue: Any, database: str) -> None:
    """Elsewhere it is left as it is; at the new place already, it was our own update."""
    sync(glue, database, "v1/")

    wrong = sync(glue, database, "v3/", 3, moved_from=FOLDER + "v2/")
    right = sync(glue, database, "v2/", 2, moved_from=FOLDER + "v1/")
    again = sync(glue, database, "v2/", 2, moved_from=FOLDER + "v1/")

    table = glue.get_table(DatabaseName=database, Name="t")["Table"]
    assert (wrong, right, again) == ("later", "moved", "updated")
    assert (table["StorageDescriptor"]["Location"], table["Parameters"][FENCE]) == (FOLDER + "v2/", "2")
