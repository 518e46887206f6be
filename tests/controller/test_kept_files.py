"""A look at many tables, every few seconds, costs what has changed and a share of the rest."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from controller.gather import Gathered
from controller.pages import pages as pages_module
from controller.pages.kept_files import OLD_SECONDS, KeptFiles
from controller.pages.pages import Pages
from controller.status import read_status, wants_files
from glue_jobs.aws.records import read_record, write_record
from glue_jobs.core.paths import TablePath, lake_folder
from glue_jobs.core.snapshot import TOTALS, Totals
from tests.aws.plain_gets import plain_gets
from tests.controller.world import HEAD, LAKE, World, table_path

TABLES = [table_path(f"t{number}") for number in range(6)]
LOAD, FIRST = "LOAD00000001.parquet", "20240501-120000000.parquet"


class Clock:
    """Seconds that pass when a test says so."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def tables(world: World) -> World:
    for path in TABLES:
        world.put_loaded(path, LOAD)
    return world


@contextmanager
def asked(world: World) -> Iterator[Counter[str]]:
    """How often each operation of S3 is asked for within, listings of the tables' folders only."""
    counts: Counter[str] = Counter()

    def note(params: Any, model: Any, **_: Any) -> None:
        text = str(params.get("url_path", "")) + str(params.get("query_string", ""))
        counts[model.name] += model.name != "ListObjectsV2" or any(path.table in text for path in TABLES)

    world.clients.s3.meta.events.register("before-call", note)
    try:
        with plain_gets():
            yield counts
    finally:
        world.clients.s3.meta.events.unregister("before-call", note)


def look(world: World, files: KeptFiles) -> Gathered:
    return world.session().gather(everything=True, wants=wants_files, files=files.look())


def raw_files(seen: Gathered, path: TablePath) -> int:
    return next(len(fact.listing.cdc) for fact in seen.tables if fact.path == str(path))


def test_few_tables_are_looked_at_each_time(tables: World) -> None:
    """Their raw files are listed anew; a head's record is read once."""
    files = KeptFiles(most_listed=6)
    with asked(tables) as first:
        look(tables, files)
    with asked(tables) as second:
        look(tables, files)

    assert first["GetObject"] == len(TABLES)
    assert (second["GetObject"], second["ListObjectsV2"]) == (0, first["ListObjectsV2"])


def test_of_many_tables_each_has_its_turn(tables: World) -> None:
    """A few looks later every new file is seen, and no look lists all tables."""
    files = KeptFiles(most_listed=2)
    with asked(tables) as all_of_them:
        look(tables, files)
    for path in TABLES:
        tables.put_raw(path, FIRST)

    counts, seen = [], look(tables, files)
    for _ in range(2):
        with asked(tables) as some:
            seen = look(tables, files)
        counts.append(some["ListObjectsV2"])

    assert [raw_files(seen, path) for path in TABLES] == [1] * len(TABLES)
    assert all(count < all_of_them["ListObjectsV2"] for count in counts)


def test_a_table_whose_item_changed_has_its_turn_at_once(tables: World) -> None:
    """A run that begins or ends, and a person, write the item."""
    files = KeptFiles(most_listed=1)
    look(tables, files)
    for path in TABLES:
        tables.put_raw(path, FIRST)
        tables.table.set_attributes(str(path), {"LeaseOwner": "somebody", "LeaseUntil": "2024-05-01T12:00:00Z"})

    assert [raw_files(look(tables, files), path) for path in TABLES] == [1] * len(TABLES)


def test_who_comes_back_later_is_shown_nothing_old(tables: World) -> None:
    """All are listed anew."""
    clock = Clock()
    files = KeptFiles(most_listed=1, clock=clock)
    look(tables, files)
    for path in TABLES:
        tables.put_raw(path, FIRST)
    clock.seconds = OLD_SECONDS

    assert [raw_files(look(tables, files), path) for path in TABLES] == [1] * len(TABLES)


def test_a_failure_is_not_kept(tables: World) -> None:
    """The next look reads again."""
    files = KeptFiles()
    bucket, folder = "lake-bucket", "lake/_changes/"
    keys = [item["Key"] for item in tables.clients.s3.list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"]]
    for key in keys:
        tables.clients.s3.delete_object(Bucket=bucket, Key=key)
    broken = look(tables, files)
    versions = tables.clients.s3.list_object_versions(Bucket=bucket, Prefix=folder)
    for marker in versions["DeleteMarkers"]:
        tables.clients.s3.delete_object(Bucket=bucket, Key=marker["Key"], VersionId=marker["VersionId"])

    mended = look(tables, files)

    assert all(fact.problem for fact in broken.tables)
    assert not any(fact.problem for fact in mended.tables)


def make_large(world: World, path: TablePath) -> None:
    """The head's record says how many files there are, as that of a table with many does."""
    lake = lake_folder(LAKE, path)
    record = read_record(world.clients.s3, lake, HEAD)
    write_record(world.clients.s3, lake, replace(record, details={TOTALS: {"files": 300, "size_bytes": 5000}}))


def test_the_files_of_large_tables_are_not_kept(tables: World) -> None:
    """Only how many they are; a look at all tables shows no more."""
    for path in TABLES:
        make_large(tables, path)
    files = KeptFiles()

    seen = [look(tables, files) for _ in range(2)]

    assert [fact.snapshot.totals for each in seen for fact in each.tables] == [Totals(300, 5000)] * 2 * len(TABLES)
    assert {(status.state, status.rows, status.files, status.bytes) for status in read_status(seen[1])} == {("up-to-date", 10, 300, 5000)}


def test_a_table_that_is_looked_at_no_more_is_not_kept(tables: World) -> None:
    """Its item is gone; when it is there again, its record is read again, and no other."""
    pages, path = Pages(tables.session()), TABLES[0]
    item = tables.item(path)
    pages.gather()
    tables.clients.dynamodb.delete_item(TableName=tables.table.name, Key={"path": {"S": str(path)}})
    pages.gather()
    tables.table.create(item)

    with asked(tables) as again:
        pages.gather()

    assert again["GetObject"] == 1


def states(seen: Gathered) -> list[str]:
    return [status.state for status in read_status(seen)]


def test_a_short_look_leaves_what_it_has_no_time_for(tables: World) -> None:
    """A few tables are read all the same; the next look has the others, also where its time is over: what is known is shown."""
    clock = Clock()
    files = KeptFiles(least_read=2, clock=clock)

    def glance() -> Gathered:
        return tables.session().gather(everything=True, wants=wants_files, files=files.look(within_seconds=0.0))

    first = glance()
    look(tables, files)
    with asked(tables) as later:
        again = glance()

    assert sorted(states(first)) == ["unread"] * 4 + ["up-to-date"] * 2
    assert states(again) == ["up-to-date"] * 6
    assert later["ListObjectsV2"] > 0, "the few"


def test_an_unread_table_tells_what_its_item_tells(tables: World) -> None:
    """Blocked and paused tables need no look at their files to be known as such."""
    blocked, paused = TABLES[0], TABLES[1]
    tables.table.set_attributes(str(blocked), {"Blocked": {"code": "null-key", "message": "no key", "todo": "skip it"}})
    tables.table.set_attributes(str(paused), {"Paused": "a person paused it"})
    files = KeptFiles(least_read=0)

    seen = tables.session().gather(everything=True, wants=wants_files, files=files.look(within_seconds=0.0))

    assert states(seen) == ["blocked", "paused", *["unread"] * 4]
    assert read_status(seen)[0].problem.todo == "skip it"  # type: ignore[union-attr]


def test_a_glance_is_completed_while_somebody_looks_at_it(tables: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left is read by a thread, one at a time; the next glance has it."""
    monkeypatch.setattr(pages_module, "FILES_SECONDS", 0.0)
    monkeypatch.setattr(pages_module, "LEAST_READ", 0)
    monkeypatch.setattr(pages_module, "CHANGES_SECONDS", 0.0)
    pages = Pages(tables.session())
    pages._files = KeptFiles(least_read=0)

    first = pages.glance()
    for thread in threading.enumerate():
        if thread.name == "read on":
            thread.join(60)
    second = pages.glance()

    assert [row.state for row in first.tables] == ["unread"] * 6
    assert (first.totals.states, first.tables[0].change) == ({"unread": 6}, "")
    assert [row.state for row in second.tables] == ["fine"] * 6
    assert (second.unread, all(row.recent for row in second.tables)) == (0, True)
