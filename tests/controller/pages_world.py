"""Tables to look at, on the AWS in this process, and a reader of HTML that finds what a page must not have."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa

from controller.host import Host
from controller.pages.pages import Pages
from controller.session import Session
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import write_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.settings import read_settings
from glue_jobs.core.snapshot import TOTALS, checkpoint_of, replay, totals_of
from tests.aws.plain_gets import plain_gets
from tests.core.records import history
from tests.spark.tables import SHOP, WorkTable

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)
RLO = "\u202e"
HOSTILE_NAME = f"o'hara <script>alert(1)<b> &amp; '\"x{RLO}gpj"
HOSTILE_COLUMN = "<img src=x onerror=alert(1)>"
HOSTILE = ("</td></script><script>alert(1)</script>", f"{RLO}abc", "x" * 10_000, "line\none\x00\x1b[31m", "null", "")


class PagesWorld:
    """A raw folder, a state table and a Glue database of its own."""

    def __init__(self, environment: Mapping[str, str], clients: Clients) -> None:
        own = uuid.uuid4().hex[:8]
        self.environment = {
            **environment, "DMSLAKE_RAW": f"{environment['DMSLAKE_RAW']}{own}/", "DMSLAKE_LAKE": f"{environment['DMSLAKE_LAKE']}{own}/",
            "DMSLAKE_STATE_TABLE": f"pages-{own}", "DMSLAKE_DATABASE": f"pages_{own}",
        }  # fmt: skip
        self.clients = clients
        StateTable(clients, self.environment["DMSLAKE_STATE_TABLE"]).ensure()

    def table(self, name: str, columns: pa.Schema = SHOP, **values: Any) -> WorkTable:
        raw, lake = self.environment["DMSLAKE_RAW"], self.environment["DMSLAKE_LAKE"]
        return WorkTable(self.environment, raw, lake, columns, table=name, shared=self.clients, **values)

    def pages(self) -> Pages:
        host = Host(lambda: NOW, time.sleep, lambda: "run", self.environment, lambda event, details: None)
        table = StateTable(self.clients, self.environment["DMSLAKE_STATE_TABLE"])
        return Pages(Session(read_settings({}, self.environment), host, self.clients, table))

    def orders(self, name: str = "orders") -> WorkTable:
        """A load, three batches, the last one undone."""
        table = self.table(name)
        table.load([(1, "one", 1), (2, "two", 2), (3, "three", 3)])
        table.sync()
        for rows in (
            [("U", (1, "ONE", 1)), ("D", (2, None, None))],
            [("I", (4, "four", 4))],
            [("U", (3, "THREE", 3)), ("I", (5, "five", 5))],
        ):
            table.cdc(rows)
            table.sync()
        assert table.run("Rollback", to="previous") == 0
        return table

    def hostile(self) -> WorkTable:
        """Names and values that want to be more than text."""
        table = self.table(HOSTILE_NAME, pa.schema([("id", pa.int64()), (HOSTILE_COLUMN, pa.string())]))
        table.load([(at, given) for at, given in enumerate(HOSTILE)])
        table.sync()
        table.cdc([("U", (0, HOSTILE[2])), ("U", (2, HOSTILE[0])), ("D", (1, None))])
        table.sync()
        return table

    def synthetic(self, name: str, changes: int, is_large: bool = False) -> str:
        """A table of which there is no more than records, each of which adds a file; its path. is_large: the head's record says how many
        files there are, as that of a table with many does."""
        table = self.table(name)
        table.edit(ActiveFlag="true")
        records = history([(1, 0)] + [(1, 1)] * (changes - 1), checkpoints=False)
        moment = "2024-05-01T12:00:00.000000Z"
        for record in records[:-1]:
            write_record(self.clients.s3, table.out_path, replace(record, time=moment, chain=()))
        whole = replay(records)
        details = {TOTALS: totals_of(whole)} if is_large else {}
        head = replace(records[-1], time=moment, checkpoint=checkpoint_of(whole, 24), details=details)
        write_record(self.clients.s3, table.out_path, head)
        table.edit(Head=head.id, Fence=changes)
        table.remove("LastIncrementalFile")
        return str(table.path)

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """How often each operation of S3 and DynamoDB was asked for meanwhile."""
        counts: Counter[str] = Counter()
        lock = threading.Lock()

        def note(model: Any, **_: Any) -> None:
            with lock:
                counts[model.name] += 1

        clients = (self.clients.s3, self.clients.dynamodb)
        for client in clients:
            client.meta.events.register("before-call", note, unique_id="counted")
        try:
            with plain_gets():
                yield counts
        finally:
            for client in clients:
                client.meta.events.unregister("before-call", unique_id="counted")


VOID = frozenset("meta link input br".split())
URLS = re.compile(r"(?:https?:)?//[a-z]", re.IGNORECASE)


class Document(HTMLParser):
    """A page as a browser would read it. problems: what it must not have; text: what a person reads."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.policy = ""
        self.inline: dict[str, str] = {}
        self.classes: Counter[str] = Counter()
        self.copies: list[str] = []
        self._text: list[str] = []
        self._open: list[str] = []
        self._captions = 0
        self.feed(html)
        self.close()
        self.problems += [f"not closed: {tag}" for tag in self._open]
        self.problems += [f"twice: {each}" for each, count in Counter(self.ids).items() if count > 1]
        if self.tags["table"] != self.tags["caption"]:
            self.problems.append("a table without a caption")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            given = value or ""
            if name.startswith("on") or name == "style":
                self.problems.append(f"<{tag} {name}={given[:60]!r}>")
            if name in ("href", "src", "action") and (URLS.match(given) or given.lower().startswith("javascript:")):
                self.problems.append(f"<{tag} {name}={given[:60]!r}>")
            if name == "id":
                self.ids.append(given)
            if name == "href" and tag == "a":
                self.links.append(given)
            if name == "class":
                self.classes.update(given.split())
            if name == "data-copy":
                self.copies.append(given)
        given_attributes = dict(attrs)
        if tag == "th" and given_attributes.get("scope") not in ("col", "row"):
            self.problems.append("a th without scope")
        if given_attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = given_attributes.get("content") or ""
        if tag not in VOID and tag not in ("path", "rect", "circle"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("path", "rect", "circle"):
            return
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> ends {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("style", "script"):
            self.inline[self._open[-1]] = self.inline.get(self._open[-1], "") + data
        elif self._open and self._open[-1] != "title":
            self._text.append(data)
            if RLO in data or "\x00" in data:
                self.problems.append(f"obeyed characters: {data[:40]!r}")
