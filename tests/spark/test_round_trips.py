"""What a small run waits for: each raw file is fetched once, few requests wait for each other, one listing serves many batches."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.within.requests import Call, recorded, waits
from glue_jobs.core.raw_names import RawFile, RawListing
from glue_jobs.protocol import intake
from glue_jobs.spark.raw_batch import UNIT_BYTES, Unit
from glue_jobs.spark.raw_file import RawHead
from glue_jobs.spark.rows import task_count
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

LATENCY_SECONDS = 0.05  # of each request, so that those which are sent at once are under way at once
ROUND_TRIPS = 18  # docs/latency.md says so
COLUMNS = pa.schema([("at", pa.string()), ("id", pa.int64()), ("name", pa.string())])  # `at` is the timestamp column, by its values
AT = "2024-05-01 12:00:00"


@pytest.fixture
def loaded(quick_table: MakeTable) -> WorkTable:
    """A table of one data file."""
    table = quick_table(COLUMNS)
    table.load([(AT, number, f"n{number}") for number in range(50)])
    table.sync()
    return table


def of(calls: list[Call], operation: str, table: WorkTable) -> list[str]:
    """The keys that an operation named in the table's raw folder."""
    return [call.key for call in calls if call.operation == operation and call.key.startswith(table.path.raw.key)]


def test_a_raw_file_is_fetched_once(loaded: WorkTable) -> None:
    """Its columns, its rows and its commit times are read from the same bytes."""
    keys = [loaded.cdc([("U", (AT, number, "new"))]) for number in range(5)]

    with recorded() as calls:
        assert loaded.run() == 0, loaded.last_run()

    assert sorted(of(calls, "GetObject", loaded)) == sorted(keys)
    assert loaded.counts() == (0, 5, 0)


def test_the_next_change_fetches_anew(loaded: WorkTable) -> None:
    """A file that was replaced since is another one, and what is kept of the first is for nobody."""
    key = loaded.cdc([("U", (AT, 1, "first"))])
    assert loaded.run() == 0
    loaded.put_raw(key.rsplit("/", 1)[1], loaded.parquet([("U", (AT, 1, "second"))]))

    with recorded() as calls:
        assert loaded.run() == 0, loaded.last_run()

    assert of(calls, "GetObject", loaded) == [key]
    assert (AT, 1, "second") in loaded.rows()


def test_a_small_run_waits_for_few_requests(loaded: WorkTable) -> None:
    """Whatever does not need another one's answer is sent beside it."""
    database = loaded.environment["DMSLAKE_DATABASE"]
    loaded.cdc([("U", (AT, 1, "makes the catalog's table"))])
    assert loaded.run(database=database) == 0
    for number in range(10):
        loaded.cdc([("U", (AT, number, "new")), ("I", (AT, 100 + number, "more"))])

    with recorded(LATENCY_SECONDS) as calls:
        assert loaded.run(database=database) == 0, loaded.last_run()

    chain = waits(calls)
    assert len(chain) <= ROUND_TRIPS, ", ".join(call.operation for call in chain)
    assert len(calls) > len(chain) + 10


def test_many_batches_are_planned_from_one_listing(loaded: WorkTable) -> None:
    """And what came meanwhile is left to the next run."""
    for number in range(6):
        loaded.cdc([("U", (AT, number, "new"))])

    with recorded() as calls:
        assert loaded.run(batch_files="2") == 0, loaded.last_run()

    assert loaded.last_run()["change_count"] == 3
    assert len(of(calls, "ListObjectsV2", loaded)) == 1


def test_a_listing_may_be_asked_for_before_each_batch(loaded: WorkTable) -> None:
    """By the setting listing_seconds; the last one finds nothing more."""
    for number in range(6):
        loaded.cdc([("U", (AT, number, "new"))])

    with recorded() as calls:
        assert loaded.run(batch_files="2", listing_seconds="0") == 0, loaded.last_run()

    assert len(of(calls, "ListObjectsV2", loaded)) == 4


def test_what_comes_while_a_run_works_is_the_next_runs(loaded: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a change takes longer than DMS takes for a file, the run would never end. What came late is taken all the same."""
    real, listed = intake.list_raw, 0

    def list_raw(*given: Any) -> RawListing:
        nonlocal listed
        listed += 1
        assert listed < 20, "the run does not end"
        found = real(*given)
        loaded.cdc([("U", (AT, 1, f"after listing {listed}"))])
        return found

    late, *_ = loaded.next_name(), loaded.cdc([("U", (AT, 1, "one"))]), loaded.cdc([("U", (AT, 1, "two"))])
    monkeypatch.setattr(intake, "list_raw", list_raw)

    assert loaded.run(batch_files="1", listing_seconds="0") == 0, loaded.last_run()

    assert (loaded.last_run()["change_count"], loaded.last_run()["leaves"], listed) == (2, True, 3)
    monkeypatch.undo()
    loaded.cdc([("U", (AT, 2, "late"))], name=late)
    assert loaded.run(batch_files="1") == 0, loaded.last_run()
    assert {(AT, 1, "after listing 3"), (AT, 2, "late")} <= set(loaded.rows())


def test_a_block_in_a_later_batch_is_known_to_the_next_run(loaded: WorkTable) -> None:
    """It is found by a listing as the next run makes it, so that the table waits until something changes."""
    loaded.cdc([("U", (AT, 1, "new"))])
    bad = loaded.put_raw(loaded.next_name(), b"no Parquet")
    assert loaded.run(batch_files="1") == 1
    assert bad in loaded.last_run()["error"]["message"]

    with recorded() as calls:
        assert loaded.run(batch_files="1") == 1

    assert of(calls, "GetObject", loaded) == []
    assert loaded.last_run()["error"]["code"] == "bad-raw-file"


def test_small_files_share_a_task_of_spark() -> None:
    """A thousand files of a minute each are a few tasks; large ones are a task for each piece."""
    small = [Unit(head_of(f"{number}.parquet", 8_000)) for number in range(1000)]
    large = [Unit(head_of("large.parquet", 10 * UNIT_BYTES), (number,)) for number in range(10)]

    assert (task_count(small, 4), task_count(large, 4), task_count(small[:2], 4), task_count([], 4)) == (12, 10, 2, 1)
    assert task_count([*small, *large, *[Unit(head_of(f"other{number}.parquet", UNIT_BYTES)) for number in range(5)]], 2) == 16


def head_of(key: str, size_bytes: int) -> RawHead:
    """A head with no more than its file."""
    nothing: Any = None
    return RawHead(RawFile(key, size_bytes, "etag", datetime.now(timezone.utc)), nothing, 0)
