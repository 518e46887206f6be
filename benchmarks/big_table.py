"""What one table of many data files and a long history costs: requests, bytes, seconds of the processor and memory of what looks at it.

    python -m benchmarks.big_table --files 100000 --changes 10000

The records are made by the code that makes them in a run; S3 is a dictionary, so that the seconds are those of dmslake alone. Each change
takes one CDC file and replaces ten data files. Every record with a checkpoint is kept with one and the same list of files, as text.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import io
import json
import sys
import time
import tracemalloc
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from botocore.exceptions import ClientError

from controller.gather import Facts, read_outlines
from controller.plan import plan_one
from controller.status import status_of
from glue_jobs.aws.records import read_record, write_record
from glue_jobs.core.ids import ChangeId, record_name
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import DataFile, Generation, Input, Part, Upload, without_upload
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import CHECKPOINT_EVERY, Snapshot, apply
from glue_jobs.core.state import TableState, default_item, read_state
from glue_jobs.core.undo import Wish
from glue_jobs.core.work import Work
from glue_jobs.protocol.commit import make_record
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.undo import prepare, work_of
from glue_jobs.spark.merge import candidates
from glue_jobs.spark.net_changes import DELETE, OP, NetChanges
from glue_jobs.spark.place import Shape
from tests.core.tables import PATH
from tests.raw_folders import CountedListing, Layout

END = datetime(2024, 5, 17, 10, tzinfo=timezone.utc)
STEP = timedelta(minutes=10)
REPLACED = 10  # data files by one change
SCHEMA = (Column("id", "bigint"), Column("name", "string"))
WALKED = 200  # changes of a long walk that are measured
ROWS = 1000  # of a data file
KEYS = (2_000, 500_000)  # of the batches for which files are chosen


class KeptObjects:
    """S3 of two buckets as a dictionary: objects of the lake by key, keys of raw files; it counts."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.raw = CountedListing(())
        self.requests: Counter[str] = Counter()
        self.bytes_read = self.bytes_written = 0
        self.versions: dict[str, DataFile] = {}

    def get_object(self, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.requests["GET"] += 1
        data = self.objects.get(Key)
        if data is None:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": Key}}, "GetObject")
        answer: dict[str, Any] = {}
        if Range:
            first, last = (int(text) for text in Range.partition("=")[2].split("-"))
            answer["ContentRange"] = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
            data = data[first : last + 1]
        self.bytes_read += len(data)
        return {**answer, "Body": io.BytesIO(data)}

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str = "") -> None:  # noqa: N803
        self.requests["PUT"] += 1
        self.bytes_written += len(Body)
        self.objects[Key] = Body

    def list_objects_v2(self, **asked: Any) -> dict[str, Any]:
        self.requests["LIST"] += 1
        return self.raw.list_objects_v2(**asked)

    def get_paginator(self, operation: str) -> Any:
        return _Pages(self, operation)

    def create_multipart_upload(self, **_: Any) -> dict[str, Any]:
        self.requests["copies, 2 each"] += 1
        return {"UploadId": "u"}

    def upload_part_copy(self, **_: Any) -> dict[str, Any]:
        self.requests["copies, 2 each"] += 1
        return {"CopyPartResult": {"ETag": '"e"', "ChecksumCRC32": "AAAAAA=="}}


class _Pages:
    def __init__(self, kept: KeptObjects, operation: str) -> None:
        self._kept, self._of_versions = kept, operation == "list_object_versions"

    def paginate(self, Bucket: str, Prefix: str, StartAfter: str = "", **_: Any) -> Iterator[dict[str, Any]]:  # noqa: N803
        stored: Any = self._kept.versions if self._of_versions else self._kept.objects
        keys = sorted(key for key in stored if key.startswith(Prefix) and key > StartAfter)
        for at in range(0, max(1, len(keys)), 1000):
            self._kept.requests["LIST versions" if self._of_versions else "LIST"] += 1
            some = keys[at : at + 1000]
            yield {"Versions": [_version(key, stored[key]) for key in some]} if self._of_versions else {"Contents": list(map(_entry, some))}


def _entry(key: str) -> dict[str, Any]:
    return {"Key": key, "Size": 1, "ETag": '""', "LastModified": END}


def _version(key: str, file: DataFile) -> dict[str, Any]:
    return {**_entry(key), "VersionId": "v", "Size": file.size_bytes, "ETag": f'"{file.etag}"', "IsLatest": False}


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
        work = _work(snapshot, names[number], change, number, files)
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


def _work(snapshot: Snapshot, name: str, change: str, number: int, files: int) -> Work:
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


def measured(table: BigTable, work: Callable[[], Any]) -> dict[str, Any]:
    """What it takes."""
    s3 = table.s3
    gc.collect()
    s3.requests.clear()
    s3.bytes_read = s3.bytes_written = 0
    started = time.process_time()
    work()
    seconds = time.process_time() - started
    found = {"CPU seconds": round(seconds, 2), "MB read": round(s3.bytes_read / 1e6, 1), "MB written": round(s3.bytes_written / 1e6, 1)}
    requests = ", ".join(f"{count} {name}" for name, count in s3.requests.items())
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return {**found, "memory, MB": round(peak), "requests": requests}


def deeds(table: BigTable) -> dict[str, Callable[[], Any]]:
    """What is done with the table, by name."""
    s3: Any = table.s3
    state, lake = table.state, table.state.lake
    limits, now = Limits(), END + timedelta(hours=1)

    def facts() -> Facts:
        return Facts(str(PATH), state, *read_outlines(s3, state, limits))

    def roll_back(goal: str) -> None:
        head = read_snapshot(s3, lake, table.head)
        prepared = prepare(s3, state, head, Wish(to=goal, skip=True))
        work = work_of(s3, lake, prepared, table.head[:-1] + "f")
        record = make_record(state, head, work, table.head[:-1] + "f", now=now, run_id="run", window_hours=24)
        kept = dict(s3.objects)
        write_record(s3, lake, record)
        s3.objects = kept

    def batch(due: bool = False) -> None:
        head = read_snapshot(s3, lake, table.head)
        head = replace(head, chain=(table.head,) * CHECKPOINT_EVERY) if due else head
        work = _work(head, PATH.raw.key + Layout().name(END), table.head[:-1] + "f", len(table.ids), len(head.files))
        record = make_record(state, head, work, table.head[:-1] + "f", now=now, run_id="run", window_hours=24)
        kept = dict(s3.objects)
        write_record(s3, lake, record)
        s3.objects = kept

    files = tuple(read_snapshot(s3, lake, table.head).files.values())

    return {
        "controller: plan the table": lambda: plan_one(facts(), now, limits),
        "`status`": lambda: status_of(facts(), now, limits),
        "job: read the snapshot, make and write the next record": batch,
        "the same each tenth time, with the list of all files": lambda: batch(due=True),
        **{f"job: choose the files for {count:,} keys": partial(candidates, net_of(count, len(files)), files) for count in KEYS},
        "`history`: the last 20 changes": lambda: list(islice(Lineage(s3, lake, table.head).back(), 20)),
        f"a walk over {WALKED} changes": lambda: list(islice(Lineage(s3, lake, table.head).back(), WALKED)),
        "`show`: one change": lambda: read_record(s3, lake, table.ids[-2], with_checkpoint=False),
        "rollback of the last change: plan, copies, record": lambda: roll_back("previous"),
    }


def net_of(count: int, files: int) -> NetChanges:
    """Deletes of keys all over the table."""
    keys = np.unique(np.random.default_rng(1).integers(0, files * ROWS, count))
    table = pa.table({"id": keys, "name": pa.nulls(len(keys), pa.string()), OP: pa.array(np.full(len(keys), DELETE), pa.int8())})
    return NetChanges(table, Shape("t", SCHEMA, ("id",)), np.full(len(keys), -1, np.int32), ())


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    table = made(given.files, given.changes)
    found = {name: measured(table, work) for name, work in deeds(table).items()}
    if given.json:
        print(json.dumps(found))
        return 0
    columns = list(next(iter(found.values())))
    print(f"{given.files:,} data files, {given.changes:,} changes\n\n| what | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(str(value) for value in values.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
