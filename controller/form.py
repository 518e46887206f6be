"""What two states of a table differ in beside their rows: columns, key and partitions. Pure."""

from __future__ import annotations

from typing import Any

from glue_jobs.core.collation import key_text
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.schema import find
from glue_jobs.core.snapshot import Snapshot


def columns_apart(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """The columns added and dropped, those whose types differ, and other differences of the table's form."""
    old, new = before.schema, after.schema
    pairs = [(column, find(old, column.name)) for column in new]
    forms = [
        ("primary_key", key_text(before.primary_key), key_text(after.primary_key)),
        ("partitions", partition_key_text(before.partitioning), partition_key_text(after.partitioning)),
    ]
    return {
        "added": [{"name": column.name, "type": column.type} for column, was in pairs if was is None],
        "dropped": [{"name": column.name, "type": column.type} for column in old if find(new, column.name) is None],
        "changed": [{"name": column.name, "from": was.type, "to": column.type} for column, was in pairs if was and was.type != column.type],
        **{name: {"from": was, "to": now} for name, was, now in forms if was != now and not (before.is_empty or after.is_empty)},
    }
