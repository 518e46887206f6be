"""A table of very many data files and changes. The records are made by the code that makes them in a run; each change takes one CDC file
and replaces ten data files. Every record with a checkpoint is kept with one and the same list of files, as text."""

from __future__ import annotations

import gzip
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from benchmarks.synthetic.objects import END, KeptObjects
from glue_jobs.aws.records import write_record
from glue_jobs.core.ids import ChangeId, record_name
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import DataFile, Generation, Input, Part, Upload, without_upload
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import CHECKPOINT_EVERY, Snapshot, apply
from glue_jobs.core.state import TableState, default_item, read_state
from glue_jobs.core.work import Work
from glue_jobs.protocol.commit import make_record
from tests.core.tables import PATH
from tests.raw_folders import CountedListing, Layout

STEP = timedelta(minutes=10)
REPLACED = 10  # data files by one change
SCHEMA = (Column("id", "bigint"), Column("name", "string"))
ROWS = 1000  # of a data file


@dataclass
class BigTable:
    """A table in kept objects, the changes of its past included."""

    s3: KeptObjects
    state: TableState
    ids: list[str]

    @property
    def head(self) -> str:
        return self.ids[-1]


def data_file(change: str, number: int) -> DataFile:
    """One of 1,000 keys and 5 MB."""
    low = number * ROWS
    chance = hashlib.md5(f"{change}{number}".encode()).hexdigest()  # as little to be compressed as a real one
    path = f"day=2024-{number // 100:04d}/{change}-{uuid.UUID(chance)}.parquet"
    return DataFile(path, 5_000_000 + number, ROWS, f"{chance[::-1]}-1", (f"2024-{number // 100:04d}",), (low,), (low + ROWS - 1,))


def made(files: int, changes: int) -> BigTable:
    """The table. The first record adds all files, each other one replaces ten."""
    s3 = KeptObjects()
    state = read_state({**default_item(PATH, "s3://lake/lake/sales/orders/"), "ActiveFlag": "true", "PrimaryKey": "id", "Fence": 1})
    names = [PATH.raw.key + Layout().name(END - STEP * (changes - number)) for number in range(changes + 10)]
    s3.raw = CountedListing([*names, PATH.raw.key + "LOAD00000001.parquet"])
    now = replace(state)
    snapshot, ids = Snapshot(), []
    hidden: dict[str, DataFile] = {}
    begun = max(0, changes - 3 * CHECKPOINT_EVERY)
    for number in range(changes):
        change = str(ChangeId(number + 1, 1, f"{number:08x}"))
        ids.append(change)
        if 0 < number < begun:  # no snapshot is needed of these: their records are made from those of the end
            snapshot = replace(snapshot, change=change)
            continue
        work = work_of_change(snapshot, names[number], change, number, files)
        time = END - STEP * (changes - number)
        record = make_record(now, snapshot, work, change, now=time, run_id="run", window_hours=24)
        write_record(s3, state.lake, record)  # type: ignore[arg-type]
        hidden = {state.lake.key + path: snapshot.files[path] for path in work.superseded}
        snapshot = apply(snapshot, record)
        now = replace(now, head=change, cursor=snapshot.cursor)
    if begun > 1:
        _fill(s3, state, ids, begun)
    item = {**state.item, "Head": ids[-1], "LastIncrementalFile": snapshot.cursor, "LastFullLoadDate": snapshot.last_full_load}
    s3.versions = hidden
    return BigTable(s3, read_state(item), ids)


def work_of_change(snapshot: Snapshot, name: str, change: str, number: int, files: int) -> Work:
    parts = (Part(1, "e" * 32, "AAAAAA=="),)
    replaced = [(number * REPLACED + each) % files for each in range(REPLACED)] if number else list(range(files))
    added = tuple(replace(data_file(change, each), upload=Upload("u" * 60, parts)) for each in replaced)
    places = {file.low: path for path, file in snapshot.files.items()} if number else {}
    load = PATH.raw.key + "LOAD00000001.parquet"
    return Work(
        kind="incremental" if number else "full-load",
        schema=SCHEMA,
        primary_key=("id",),
        partitioning=(),
        generation=Generation(1, (Input(load, load[-30:], 1000),)),
        added=added if number else tuple(map(without_upload, added)),
        superseded=tuple(places[file.low] for file in added) if number else (),
        inputs=(Input(name, name[-30:], 1000, 100, "2024-05-17T10:00:00Z"),),
        cursor_after=f"{PATH.bucket}/{name}",
        last_full_load="2024-01-01 00:00:00",
    )


def _fill(s3: KeptObjects, state: TableState, ids: Sequence[str], begun: int) -> None:
    """The records in between, from those of the end, with other ids and parents."""
    folder = changes_folder(state.lake)
    last = ids[begun:]
    texts: dict[int, tuple[bytes, bool]] = {}
    for place in range(CHECKPOINT_EVERY):
        change = last[CHECKPOINT_EVERY + place]
        for gz in (False, True):
            data = s3.objects.get(folder.join(record_name(change, gz)).key)
            if data is not None:
                texts[place] = (gzip.decompress(data) if gz else data, gz)
    tails: dict[int, bytes] = {}
    for number in range(1, begun):
        place = (number - begun) % CHECKPOINT_EVERY
        text, gz = texts[place]
        change, parent = ids[number], ids[number - 1]
        model, before = last[CHECKPOINT_EVERY + place], last[CHECKPOINT_EVERY + place - 1]
        cut = max(4000, text.find(b'"files":[') + 20)  # gzip of two parts: what stands before the files, and the rest
        head = text[:cut].replace(f'"id":"{model}","parent":"{before}"'.encode(), f'"id":"{change}","parent":"{parent}"'.encode())
        if gz and place not in tails:
            tails[place] = gzip.compress(text[cut:], mtime=0)
        data = gzip.compress(head, mtime=0) + tails[place] if gz else head + text[cut:]
        s3.objects[folder.join(record_name(change, gz)).key] = data
