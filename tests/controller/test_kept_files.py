"""A look at many tables, every few seconds, costs what has changed and a share of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controller.gather import Gathered
from controller.pages.kept_files import OLD_SECONDS, KeptFiles
from controller.status import wants_files
from glue_jobs.core.paths import TablePath
from tests.controller.world import World, table_path

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
