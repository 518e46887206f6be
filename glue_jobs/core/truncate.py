"""A truncate at the source as a change of the lake table. Pure."""

from __future__ import annotations

from dataclasses import replace

from glue_jobs.core.record import Counts, Generation
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.work import Work


def truncated(snapshot: Snapshot, reason: str) -> Work:
    """The change that empties the table: columns, keys and the place in the raw files stay, no raw file is known any more.

    Files that a person left out stay left out, and those that are awaited stay awaited.
    """
    return Work(
        kind="truncate",
        schema=snapshot.schema,
        primary_key=snapshot.primary_key,
        partitioning=snapshot.partitioning,
        generation=Generation(snapshot.generation.number + 1, (), snapshot.generation.cdc_from, snapshot.generation.left_out),
        superseded=tuple(sorted(snapshot.files)),
        counts=Counts(deleted=snapshot.rows),
        timestamp_column=snapshot.timestamp_column,
        cursor_after=snapshot.cursor,  # no file is taken: a cursor that a person moved waits for the next batch
        last_full_load=snapshot.last_full_load,
        like=replace(snapshot, applied={}),
        details={"reason": reason},
    )
