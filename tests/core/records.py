"""Change records to test with: arbitrary ones, and histories that follow the rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from glue_jobs.core.ids import ChangeId
from glue_jobs.core.partitioning import TRANSFORMS, PartitionField
from glue_jobs.core.record import (
    KINDS,
    ChangeRecord,
    Checkpoint,
    Counts,
    DataFile,
    ErasedKeys,
    ErasedVersion,
    Generation,
    Given,
    HistoryAt,
    Input,
    Part,
    Upload,
)
from glue_jobs.core.schema import SIMPLE_TYPES, Column, OldName
from glue_jobs.core.snapshot import Snapshot, apply, checkpoint_due, checkpoint_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.integers(0, 2**53)
ETAG = st.from_regex(r"\A[0-9a-f]{32}(-\d)?\Z")
UPLOADS = st.builds(
    Upload,
    TEXT.filter(bool),
    st.lists(st.builds(Part, st.integers(1, 10_000), ETAG, st.sampled_from(["", "AAAAAA=="])), min_size=1, max_size=3).map(tuple),
)
BOUNDS = st.none() | st.lists(TEXT | st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple)
DATA_FILES = st.builds(
    DataFile,
    path=TEXT.filter(bool),
    size_bytes=NUMBER,
    rows=NUMBER,
    etag=st.just("") | ETAG,
    partition=st.lists(st.none() | TEXT, max_size=2).map(tuple),
    low=BOUNDS,
    high=BOUNDS,
    origin=TEXT,
    upload=st.none() | UPLOADS,
)
INPUTS = st.builds(Input, TEXT.filter(bool), ETAG, NUMBER, st.integers(-1, 2**53), st.sampled_from(["", "2024-05-01T12:00:00Z"]))
TYPES = st.sampled_from((*SIMPLE_TYPES, "decimal(38,10)"))
IDS = st.builds(lambda fence, counter: str(ChangeId(fence, counter, f"{fence:08x}")), st.integers(1, 10**6), st.integers(1, 10**6 - 1))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2)
)


def some(item: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(item, max_size=2).map(tuple)


RECORDS = st.builds(
    ChangeRecord,
    id=IDS,
    parent=st.just("") | IDS,
    kind=st.sampled_from(KINDS),
    table=TEXT,
    lake=TEXT,
    time=st.just("2024-05-01T12:00:00.000001Z"),
    run_id=TEXT,
    program=TEXT,
    generation=st.builds(Generation, NUMBER, some(INPUTS), st.sampled_from(["", "20240501120000"]), some(INPUTS)),
    inputs=some(INPUTS),
    context=some(INPUTS),
    skipped=some(INPUTS),
    counts=st.builds(Counts, *[NUMBER] * len(dataclasses.fields(Counts))),
    added=some(DATA_FILES),
    superseded=some(TEXT),
    schema=some(st.builds(Column, TEXT, TYPES, st.booleans(), older=some(st.builds(OldName, TEXT, TEXT)))),
    primary_key=some(TEXT),
    partitioning=some(st.builds(PartitionField, TEXT, st.sampled_from(TRANSFORMS), TEXT)),
    timestamp_column=TEXT,
    cursor_before=TEXT,
    cursor_after=TEXT,
    last_full_load=st.sampled_from(["", "2024-05-01 12:00:00"]),
    chain=some(IDS),
    checkpoint=st.none()
    | st.builds(
        Checkpoint,
        some(DATA_FILES.map(lambda file: replace(file, upload=None))),
        some(INPUTS),
        some(INPUTS),
        st.sampled_from(["", "20240501"]),
    ),
    target=st.just("") | IDS,
    lost=st.just("") | IDS,
    staged=st.booleans(),
    staged_as=st.just("") | IDS,
    given=st.none() | st.builds(Given, some(TEXT), TEXT, TEXT, TEXT),
    erased=some(st.builds(ErasedVersion, TEXT, TEXT, NUMBER)),
    erased_keys=st.none() | st.builds(ErasedKeys, some(TEXT), TEXT, some(TEXT)),
    erases=some(IDS),
    history=st.none() | st.builds(HistoryAt, IDS, st.booleans()),
    details=st.dictionaries(TEXT, JSON, max_size=2),
)


def minimal(**values: Any) -> ChangeRecord:
    """A record with the least that every record has."""
    given = {"id": "0000000001-000001-0000000a", "parent": "", "kind": "incremental", "table": "t", "lake": "l", "time": "now", **values}
    return ChangeRecord(**given)


def data_file(path: str, rows: int = 1) -> DataFile:
    return DataFile(path, 10 * rows, rows, upload=Upload("u" + path, (Part(1, "e"),)))


def history(steps: Sequence[tuple[int, int]], checkpoints: bool = True, window_hours: float = 24.0) -> list[ChangeRecord]:
    """Records of a table whose changes add and supersede so many files, one CDC file a change, made as the program makes them."""
    records: list[ChangeRecord] = []
    snapshot = Snapshot()
    for number, (added, superseded) in enumerate(steps, 1):
        record = minimal(
            id=str(ChangeId(number, 1, f"{number:08x}")),
            parent=snapshot.change,
            generation=Generation(1),
            inputs=(Input(f"raw/20240501-{number:06}000.parquet", f"e{number}"),),
            added=tuple(data_file(f"{number}-{index}.parquet", index) for index in range(added)),
            superseded=tuple(sorted(snapshot.files)[:superseded]),
            cursor_before=snapshot.cursor,
            cursor_after=f"b/raw/20240501-{number:06}000.parquet",
            chain=snapshot.chain,
        )
        after = apply(snapshot, record)
        if checkpoints and (not snapshot.change or checkpoint_due(snapshot, len(after.files))):
            record = replace(record, checkpoint=checkpoint_of(after, window_hours))
        records.append(record)
        snapshot = apply(snapshot, record)
    return records
