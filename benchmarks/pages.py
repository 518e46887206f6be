"""How long the live pages take: the overview of many tables, and the page of a table with a long history; with their requests.

    python -m benchmarks.pages --tables 1000 --changes 10000

The tables are their items, records and raw files: no data file is read for these pages. `AWS` is the embedded one, Python on the same
cores; `own` is the same again with the answers of before, which come at once, in seconds of the processor: what the pages themselves take.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

from controller.host import this_machine
from controller.pages.pages import Pages
from controller.pages.render import Live, render
from controller.pages.views import Page
from controller.session import Session
from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.aws.records import write_record
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.settings import read_settings
from infra.local.embedded import EmbeddedAws
from tests.aws.faults import RawBody
from tests.controller.world import head_record, inputs
from tests.lake import START, LakeTable
from tests.protocol.test_rollback_cost import lengthen
from tests.protocol.wire import read_request

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
LOAD, FILE = "LOAD00000001.parquet", "20240501-120000000.parquet"


def loaded(aws: EmbeddedAws, clients: Clients, name: str) -> LakeTable:
    """A table whose item and record say that a load was applied, with a raw file that waits."""
    table = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, table=name, shared=clients)
    for base in (LOAD, FILE):
        table.put_raw(base, b"x")
    etag = clients.s3.head_object(Bucket=table.path.bucket, Key=table.path.raw.key + LOAD)["ETag"].strip('"')
    record = head_record(table.path, inputs((RawFile(table.path.raw.key + LOAD, 1, etag, START),)))
    write_record(clients.s3, table.out_path, replace(record, lake=str(table.out_path)))
    table.edit(Head=record.id, Fence=1, LastFullLoadDate=record.last_full_load, LastIncrementalFile=f"{table.path}0.parquet")
    return table


class Replay:
    """Keeps answers by whole request, below botocore."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}
        self.counts: Counter[str] = Counter()

    @contextmanager
    def connected(self, *, at_once: bool) -> Iterator[None]:
        """at_once: what was answered before is answered again, by nobody."""
        real = URLLib3Session.send

        def send(session: URLLib3Session, request: Any) -> Any:
            self.counts[read_request(request).operation] += 1
            key = (
                request.method,
                request.url,
                request.headers.get("X-Amz-Target"),
                request.body if isinstance(request.body, bytes) else b"",
            )
            if at_once and key in self.kept:
                status, headers, body = self.kept[key]
                return AWSResponse(request.url, status, headers, RawBody(body))
            answer = real(session, request)
            self.kept[key] = (answer.status_code, dict(answer.headers), answer.content)
            return AWSResponse(request.url, answer.status_code, answer.headers, RawBody(answer.content))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(URLLib3Session, "send", send)
            yield


def measured(replay: Replay, read: Callable[[], Page], *, at_once: bool) -> tuple[float, float, Counter[str], int]:
    """(seconds to read a page, to make HTML of it, its requests, its bytes)."""
    replay.counts.clear()
    clock = time.process_time if at_once else time.perf_counter
    with replay.connected(at_once=at_once):
        started = clock()
        page = read()
        middle = clock()
        text = render(page, Live())
        ended = clock()
    return middle - started, ended - middle, Counter(replay.counts), len(text.encode())


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=10_000, help="of one of them")
    given = parser.parse_args(argv)
    with EmbeddedAws() as aws:
        clients = make_clients(aws.environment())
        with ThreadPoolExecutor(8) as pool:
            tables = list(pool.map(lambda at: loaded(aws, clients, f"t{at:05d}"), range(given.tables)))
        lengthen(tables[0], given.changes)
        path = str(tables[0].path)
        settings = read_settings({}, aws.environment())
        pages = Pages(Session(settings, this_machine(lambda event, details: None), clients, tables[0].state_table))
        older = pages.table(path).older
        asked: dict[str, Callable[[], Page]] = {
            "overview": pages.glance,
            "table, newest changes": lambda: pages.table(path),
            "table, older changes": lambda: pages.table(path, older),
        }
        rows = []
        for name, read in asked.items():
            replay = Replay()
            rows.append((name, "AWS, first", *measured(replay, read, at_once=False)))
            while name == "overview" and (pages.overview().unread or pages.glance().unread):
                pass  # of a hundred tables at a time the changes are read
            rows.append((name, "AWS, again", *measured(replay, read, at_once=False)))
            rows.append((name, "own, again", *measured(replay, read, at_once=True)))
    print(f"\n{given.tables:,} tables, one with {given.changes:,} changes\n")
    print("| page | | seconds to read | to render | KiB | requests |\n| --- | --- | --- | --- | --- | --- |")
    for name, times, reading, rendering, counts, size in rows:
        requests = ", ".join(f"{count} {operation}" for operation, count in counts.most_common())
        print(f"| {name} | {times} | {reading:.2f} | {rendering:.2f} | {size / 1024:.0f} | {requests} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
