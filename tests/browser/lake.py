"""The demo's shop as a lake to look at: tables that are fine, behind, paused, blocked and not kept up, and one whose words are hostile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa

from controller.host import this_machine
from controller.pages.pages import Pages
from controller.pages.serve import App, listen
from controller.reads import Reads
from controller.session import Session
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.settings import read_settings
from infra.local.dms_files import cdc_file_name
from infra.local.shop import ORDERS, PRODUCTS, STORES, TABLES, Feed, open_shop, round_of
from tests.spark.tables import WorkTable

# Markup, quotes, and the characters that turn the writing round, each in a name and in values.
TURNED = "\u202etxt.exe"
HOSTILE_TABLE = f"<script>alert(1)<b>\"x'&amp;{TURNED}"
HOSTILE_COLUMN = '<img src=x onerror=document.title="hit">'
HOSTILE_TEXTS = (
    "<script>document.title='hit'</script>",
    "</td></table></main><style>body{display:none}</style>",
    "\"'><img src=x onerror=document.title='hit'>",
    f"a{TURNED}\u2066b",
    "שלום עולם",
    "line\none\ttwo\x00three\x1b[31m",
    "long " + "x" * 10_000,
    "javascript:alert(1)",
)
ROUNDS = 5


class ShopLake:
    """Tables of one shop, written and run in this process, in the raw folder and the state table of the environment."""

    def __init__(self, environment: Mapping[str, str], clients: Clients) -> None:
        self.environment, self.clients = environment, clients
        raw, lake = self.environment["DMSLAKE_RAW"], self.environment["DMSLAKE_LAKE"]
        self.raw, self.shop, self.feed = raw, open_shop(), Feed(clients.s3, raw)
        self.tables = {
            name: WorkTable(self.environment, raw, lake, table.columns, table.primary_key, table.partition_key, table=name, shared=clients)
            for name, table in TABLES.items()
        }

    def session(self) -> Session:
        """What a command would have."""
        table = StateTable(self.clients, self.environment["DMSLAKE_STATE_TABLE"])
        host = replace(this_machine(lambda event, details: None), variables=self.environment)
        return Session(read_settings({}, self.environment), host, self.clients, table)

    def fill(self) -> ShopLake:
        """The shop's rounds, an undo that was redone, one that stands, a file of nobody, a table that is not kept up."""
        self.feed.full_load(self.shop)
        for table in self.tables.values():
            assert table.run("LoadInitial") == 0
        for number in range(1, ROUNDS + 1):
            self._round(number)
        orders, products, stores = (self.tables[name] for name in (ORDERS, PRODUCTS, STORES))
        assert orders.run("Rollback", to="previous") == 0
        assert orders.run("Rollback", reapply="all") == 0
        assert products.run("Rollback", to="previous") == 0
        stores.put_raw("notes.txt", b"no DMS file")
        stores.run()
        self._returns()
        found = orders.path.raw.key.replace(f"/{ORDERS}/", "/visits/") + "LOAD00000001.parquet"
        self.clients.s3.put_object(Bucket=orders.path.bucket, Key=found, Body=b"nobody has looked at it yet")
        self._round(ROUNDS + 1, run=False)
        return self

    def _round(self, number: int, *, run: bool = True) -> None:
        """A round of the shop, an hour after the one before."""
        round_of(number)(self.shop)
        touched = {file.table for file in self.feed.changes(self.shop, datetime.now(timezone.utc) - timedelta(hours=ROUNDS + 2 - number))}
        for name in sorted(touched) if run else ():
            table = self.tables[name]
            table.columns = self.shop.columns[name]
            assert table.run() == 0, table.item().get("LastRun")

    def _returns(self) -> None:
        """A table that is up to date."""
        raw, lake = self.environment["DMSLAKE_RAW"], self.environment["DMSLAKE_LAKE"]
        columns = pa.schema([("id", pa.int32()), ("order_id", pa.int32()), ("reason", pa.string())])
        table = WorkTable(self.environment, raw, lake, columns, table="returns", shared=self.clients)
        table.load([(number, number * 7, "too small") for number in range(1, 41)])
        assert table.run("LoadInitial") == 0
        self.tables["returns"] = table

    def add_hostile(self) -> WorkTable:
        """A table whose name, column and values are made to do harm: a load, and a batch that updates every row."""
        columns = pa.schema([("id", pa.int64()), (HOSTILE_COLUMN, pa.string())])
        raw, lake = self.environment["DMSLAKE_RAW"], self.environment["DMSLAKE_LAKE"]
        table = WorkTable(self.environment, raw, lake, columns, table=HOSTILE_TABLE, shared=self.clients)
        texts = ["plain", *HOSTILE_TEXTS]
        table.load(list(enumerate(texts)))
        assert table.run("LoadInitial") == 0
        table.cdc([("U", (at, f"{text} again")) for at, text in enumerate(texts)], name=cdc_file_name(datetime.now(timezone.utc)))
        assert table.run() == 0
        return table


@contextmanager
def serving(
    pages: Pages, defect: Callable[[str, BaseException], None], reads: Reads | None = None, every_seconds: float = 60.0
) -> Iterator[str]:
    """The URL of the pages, served in this process. every_seconds: longer than a test looks at a page."""
    server = listen(App(pages, reads or Reads(), every_seconds, defect))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join(60)
