"""An AWS for very many tables: a real boto3 client asks, and gets pages of keys that no server keeps."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.awsrequest import AWSResponse

from benchmarks.synthetic.objects import END
from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.core.ids import record_name
from glue_jobs.core.paths import TablePath, changes_folder, lake_folder
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.record import ChangeRecord, Checkpoint, DataFile, Generation, Input, to_json
from glue_jobs.core.schema import Column
from glue_jobs.core.state import default_item
from tests.aws.faults import RawBody
from tests.raw_folders import Layout, every

HEAD = "0000000001-000001-0123abcd"
LOAD = "LOAD00000001.parquet"
LAKE = "s3://lake/lake/"
NEW = 10
PAGE = 1000
LAYOUTS = {"flat": Layout(), "dated": Layout("YYYYMMDD"), "odd": Layout("MMYYYYDD")}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_REGION": "us-east-1"}
ENTRY = (
    "<Contents><Key>{}</Key><LastModified>2024-05-17T10:00:00.000Z</LastModified><ETag>&quot;{}&quot;</ETag><Size>1000</Size>"
    "<StorageClass>STANDARD</StorageClass></Contents>"
)


@dataclass(frozen=True)
class Shape:
    """The tables of a made-up installation. files: CDC files of each, one every `minutes`; new: those that were not taken yet."""

    tables: int
    files: int
    minutes: int = 10
    new: int = NEW
    layout: Layout = LAYOUTS["flat"]

    def path(self, number: int) -> TablePath:
        return TablePath("raw", "dms/shop/", f"t{number:05d}/")

    def names(self) -> list[str]:
        """The names below a table's folder, in the order of writing."""
        step = timedelta(minutes=self.minutes)
        return [self.layout.name(time) for time in every(step, self.files, END - step * (self.files - 1))]


class SyntheticAws:
    """Answers for the buckets of such an installation and counts the requests. It stands for the state table too."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        written = shape.names()
        self._taken = written[: len(written) - shape.new]
        self._names = sorted([*written, LOAD])
        self.requests: Counter[str] = Counter()
        self.listed = 0
        self.own_seconds = 0.0
        self._lock = threading.Lock()

    def clients(self) -> Clients:
        """Clients whose requests to S3 come here."""
        clients = make_clients(CREDENTIALS)
        events: Any = clients.s3.meta.events
        events.register_last("before-send.s3", self._send)
        return clients

    def scan(self) -> Iterator[dict[str, Any]]:
        """The items of the tables, as runs leave them."""
        for number in range(self.shape.tables):
            path = self.shape.path(number)
            item = {**default_item(path, str(lake_folder(LAKE, path))), "ActiveFlag": "true", "PrimaryKey": "id"}
            if self._taken:
                cursor = f"{path}{self._taken[-1]}"
                item.update(Head=HEAD, Fence=1, LastFullLoadDate="2022-01-01 00:00:00", LastIncrementalFile=cursor)
            yield item

    def record(self, path: TablePath) -> ChangeRecord:
        """The head's record, with a checkpoint of the inputs of twice the late window."""
        folder, oldest = path.raw.key, f"{END - timedelta(hours=48):%Y%m%d%H%M%S}"
        recent = (name for name in self._taken[-5000:] if (read := cdc_name(name)) and read.digits >= oldest)
        applied = tuple(Input(folder + name, etag_of(folder + name), 1000) for name in recent)
        files = (DataFile("data.parquet", 10**9, 10**6),)
        return ChangeRecord(
            HEAD, "", "full-load", str(path), str(lake_folder(LAKE, path)), "2024-05-17T10:00:00Z",
            generation=Generation(1, (Input(folder + LOAD, etag_of(folder + LOAD), 1000),)),
            added=files, schema=(Column("id", "int"),), primary_key=("id",), cursor_after=f"{path}{self._taken[-1]}",
            last_full_load="2022-01-01 00:00:00", checkpoint=Checkpoint(files, applied, (), oldest),
        )  # fmt: skip

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        started = time.thread_time()
        url = urlsplit(request.url)
        wanted = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        is_list = "list-type" in wanted
        body, keys = self._list(wanted) if is_list else (self._object(unquote(url.path)), 0)
        with self._lock:
            self.requests["ListObjectsV2" if is_list else "GetObject"] += 1
            self.listed += keys
            self.own_seconds += time.thread_time() - started
        kind = "application/xml" if is_list else "application/json"
        headers: Any = {"Content-Type": kind, "Content-Length": str(len(body))}
        return AWSResponse(request.url, 200, headers, RawBody(body))

    def _object(self, key: str) -> bytes:
        path = self.shape.path(int(key.split("/t")[-1].split("/")[0]))
        assert key == "/" + changes_folder(lake_folder(LAKE, path)).join(record_name(HEAD, False)).key or key.startswith("/lake/"), key
        return to_json(self.record(path)).encode()

    def _list(self, wanted: Mapping[str, str]) -> tuple[bytes, int]:
        prefix, after = wanted["prefix"], wanted.get("continuation-token") or wanted.get("start-after", "")
        if "delimiter" in wanted:
            folders = ["dms/shop/"] if prefix == "dms/" else [self.shape.path(number).raw.key for number in range(self.shape.tables)]
            some = [folder for folder in folders if folder > after][:PAGE]
            text = "".join(f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>" for folder in some)
            return _answer(text, some[-1] if some and some[-1] != folders[-1] else ""), len(some)
        rest = after[len(prefix) :] if after >= prefix else ""
        first = bisect_right(self._names, rest) if rest else bisect_left(self._names, "")
        names = self._names[first : first + PAGE]
        text = "".join(ENTRY.format(prefix + name, etag_of(prefix + name)) for name in names)
        return _answer(text, prefix + names[-1] if first + PAGE < len(self._names) else ""), len(names)


def etag_of(key: str) -> str:
    """As tests.raw_folders has it."""
    return key[-30:]


def _answer(entries: str, token: str) -> bytes:
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
    inside = (more if token else "<IsTruncated>false</IsTruncated>") + entries
    return f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}</ListBucketResult>'.encode()
