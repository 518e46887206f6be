"""What a Glue table and its partitions have in common: where the files are, of which format, with which columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glue_jobs.core.schema import Schema

ATTEMPTS = 6  # of a request that others' requests, or Glue's being busy, came in the way of
MISSING = "EntityNotFoundException"
EXISTS = "AlreadyExistsException"
_FORMAT: dict[str, Any] = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        "Parameters": {"serialization.format": "1"},
    },
}


def storage(location: str, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """The StorageDescriptor of Parquet files at `location`."""
    return {"Columns": columns, "Location": location, **_FORMAT}


def glue_columns(columns: Schema, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns as Glue has them: names in lower case, with the comments that `known` (by that name) has."""
    made = []
    for column in columns:
        comment = known.get(column.name.lower(), {}).get("Comment")
        made.append({"Name": column.name.lower(), "Type": column.type, **({"Comment": comment} if comment else {})})
    return made


def name_types(columns: Any) -> tuple[tuple[str, str], ...]:
    """Name and type of each of a Glue entity's columns."""
    return tuple((str(column["Name"]), str(column.get("Type", ""))) for column in columns)
