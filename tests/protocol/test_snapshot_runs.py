"""Runs of the Snapshot job that die between any two requests, that meet each other, and what `--keep` may remove."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, datetime, timezone
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.settings import read_settings
from glue_jobs.core.snapshot_plan import Manifest, SnapshotPlan, Version
from glue_jobs.core.snapshot_sources import SnapshotWish, read_wish
from glue_jobs.protocol.snapshot import Made, make_snapshot
from glue_jobs.spark.snapshot_rows import SnapshotRows
from tests.snapshots import SnapshotTable
from tests.work_tables import IN_PROCESS

FLAT: dict[str, str] = {}
BY_DATE = {"layout": "dated", "partition_date": "day"}
READS = ("Get", "List", "Head", "BatchGet")
LOADED = "2030-01-01 00:00:00"
TYPES = [(pa.int32(), pa.string()), (pa.int64(), pa.string()), (pa.int64(), pa.int32())]


class Death(BaseException):
    """The process ends here."""


@contextmanager
def dies(clients: Clients, count: int, moment: str) -> Iterator[list[str]]:
    """The process dies `before-call` or `after-call` of its `count`-th write (from 0); the writes it came to."""
    writes: list[str] = []

    def handler(model: Any = None, **_: Any) -> None:
        if not model.name.startswith(READS):
            writes.append(model.name)
            if len(writes) > count:
                raise Death

    for client in (clients.s3, clients.glue):
        client.meta.events.register_first(moment, handler)
    try:
        yield writes
    finally:
        for client in (clients.s3, clients.glue):
            client.meta.events.unregister(moment, handler)


@pytest.fixture
def table(in_process: Clients) -> SnapshotTable:
    """A table with a snapshot of its load, by now with a later change."""
    return new_table(in_process)


def new_table(clients: Clients) -> SnapshotTable:
    table = SnapshotTable(clients, IN_PROCESS, "s3://raw/", f"s3://lake/{uuid.uuid4().hex[:6]}/")
    table.put("LOAD00000001.parquet", [("I", (number, "old", date(2024, 1, number)), LOADED) for number in (1, 2, 3)])
    return table


def change(table: SnapshotTable, day: int = 2) -> None:
    rows = [("U", (1, f"new{day}", date(2024, 1, 2)), f"2024-05-0{day} 00:00:00")]
    table.put(f"2024050{day}-000000000.parquet", rows)


def names(table: SnapshotTable) -> list[tuple[int, str]]:
    return [(row["id"], row["name"]) for row in table.rows()]


AT_ONCE = datetime.max.replace(tzinfo=timezone.utc)  # no load file is too young
OLD = [(1, "old"), (2, "old"), (3, "old")]
NEW = [(1, "new2"), (2, "old"), (3, "old")]


@pytest.mark.parametrize("moment", ["before-call", "after-call"])
@pytest.mark.parametrize("layout", [FLAT, BY_DATE], ids=["flat", "by date"])
def test_a_run_may_die_at_any_write(in_process: Clients, layout: dict[str, str], moment: str) -> None:
    """Flat readers see the old rows or the new ones; the next run finishes what was committed, and gets the new rows."""
    seen, count, died = set(), 0, True
    while died:
        table = new_table(in_process)
        table.take(**layout)
        table.take(**layout, full="true")
        change(table)
        died = False
        with dies(in_process, count, moment) as writes:
            try:
                assert table.run(**layout, keep="1") is None
            except Death:
                died = True
        if layout == FLAT:
            assert names(table) in (OLD, NEW)
        seen.update(writes)
        table.take(**layout, keep="1")
        assert names(table) == NEW
        table.take(**layout, keep="1", full="true")
        assert names(table) == NEW
        count += 1

    wanted = {"CompleteMultipartUpload", "PutObject", "UpdateTable", "DeleteObjects"}
    assert seen == wanted | ({"BatchUpdatePartition", "BatchDeletePartition"} if layout else set())
    assert count > len(wanted)


class Between:
    """A worker that lets something happen after its rows are written."""

    def __init__(self, table: SnapshotTable, then: Any) -> None:
        self._work, self._then = worker_of(table), then

    def __call__(self, plan: SnapshotPlan, version: Version) -> Manifest:
        made = self._work(plan, version)
        self._then()
        return made


def worker_of(table: SnapshotTable) -> SnapshotRows:
    return SnapshotRows(read_settings(table.settings, {}), table.environment)


def wish_of(table: SnapshotTable, **given: str) -> SnapshotWish:
    return read_wish(table.arguments(**given), {}, date(2024, 1, 1))


@pytest.mark.parametrize("layout", [FLAT, BY_DATE], ids=["flat", "by date"])
def test_a_run_that_is_overtaken_says_so_and_changes_nothing(table: SnapshotTable, layout: dict[str, str]) -> None:
    """A run that began later was quicker, and removed what it did not need: its rows stay what readers see."""
    table.take(**layout)
    change(table)
    early = Version("2024-05-01T000000000000-early", 1)

    def later() -> None:
        change(table, 3)
        table.take(**layout, keep="1")

    with pytest.raises(RetryLater) as caught:
        make_snapshot(table.clients, wish_of(table, **layout), early, Between(table, later), quiet_since=AT_ONCE)

    assert caught.value.code == "snapshot-overtaken"
    assert names(table) == [(1, "new3"), (2, "old"), (3, "old")]


def test_files_of_a_version_that_was_replaced_are_not_gone_on_from(table: SnapshotTable) -> None:
    """By a date of the data a version keeps files of the one before: a run that began earlier, but committed in between, is noticed."""
    table.take(**BY_DATE)
    change(table)
    late = Version("2024-05-01T000000000000-late", 4 * 10**15)

    with pytest.raises(RetryLater) as caught:
        make_snapshot(
            table.clients,
            wish_of(table, **BY_DATE),
            late,
            Between(table, lambda: table.take(**BY_DATE, keep="1", full="true")),
            quiet_since=AT_ONCE,
        )

    assert caught.value.code == "snapshot-overtaken"
    assert names(table) == NEW


@contextmanager
def once_committed(table: SnapshotTable, other: Callable[[], object], by: str = "UpdateTable") -> Iterator[None]:
    """After the first run has moved the Glue table, and before it does anything else, there is another one."""
    events, passing = table.clients.glue.meta.events, iter([True])

    def passed(**_: Any) -> None:
        if next(passing, False):
            other()

    events.register_first(f"after-call.glue.{by}", passed)
    try:
        yield
    finally:
        events.unregister(f"after-call.glue.{by}", passed)


def test_the_last_to_look_leaves_the_partitions_of_one_version(table: SnapshotTable) -> None:
    """A run that is passed between its commit and its partitions puts those of the other one right."""
    table.take(**BY_DATE)
    change(table)

    def other() -> None:
        change(table, 3)
        table.take(**BY_DATE)

    with once_committed(table, other):
        assert table.run(**BY_DATE) is None

    assert names(table) == [(1, "new3"), (2, "old"), (3, "old")]


def test_who_is_passed_and_dies_leaves_no_partition_at_files_that_are_removed(table: SnapshotTable) -> None:
    """The other run has removed this one's version, which no location named."""
    table.take(**BY_DATE)
    change(table)
    dying: list[str] = []

    def other() -> None:
        change(table, 3)
        table.take(**BY_DATE, keep="1", full="true")

    def dies_after_a_write(model: Any, **_: Any) -> None:
        if dying and model.name.startswith(("Batch", "Update", "Create")):
            raise Death

    events = table.clients.glue.meta.events
    events.register_last("after-call.glue.*", dies_after_a_write)
    try:
        with once_committed(table, lambda: (other(), dying.append("now"))):
            assert table.run(**BY_DATE, full="true") is None
    except Death:
        pass
    finally:
        events.unregister("after-call.glue.*", dies_after_a_write)

    assert (dying, names(table)) == (["now"], [(1, "new3"), (2, "old"), (3, "old")])


def test_a_day_that_is_committed_and_not_placed_yet_is_not_removed(table: SnapshotTable) -> None:
    """Two days are made side by side. The run that began first stands still behind its commit while the other one, which had looked before
    that, removes what it does not need."""
    dated = {"layout": "dated", "keep": "1"}
    early, late = Version("2024-05-01T000000000000-early", 1), Version("2024-05-01T000000000000-late", 2)
    is_committed, may_go_on = Event(), Event()

    def stand_still() -> None:
        is_committed.set()
        assert may_go_on.wait(60)

    def first() -> Made:
        with once_committed(table, stand_still, "CreateTable"):
            return make_snapshot(
                table.clients, wish_of(table, **dated, run_date="2999-01-01"), early, Between(table, lambda: None), quiet_since=AT_ONCE
            )

    with ThreadPoolExecutor(1) as thread:

        def meanwhile() -> None:
            running.append(thread.submit(first))
            assert is_committed.wait(60)

        running: list[Future[Made]] = []
        done = make_snapshot(
            table.clients, wish_of(table, **dated, run_date="2999-01-02"), late, Between(table, meanwhile), quiet_since=AT_ONCE
        )
        may_go_on.set()
        running[0].result()

    assert done.removed == ()
    assert {value: len(table.rows(value)) for value in table.partitions()} == {f"2999-01-0{day}": 3 for day in (1, 2)}


def test_a_table_of_others_is_left_alone(table: SnapshotTable) -> None:
    """Nor is one of another place, or with another layout, taken over or dropped."""
    table.take()
    layout, other = table.run(**BY_DATE), table.run(to="s3://lake/elsewhere/")
    glue = table.clients.glue
    glue.delete_table(DatabaseName=table.database, Name="orders_snapshot")
    glue.create_table(DatabaseName=table.database, TableInput={"Name": "orders_snapshot", "StorageDescriptor": {"Location": "s3://x/"}})
    foreign = table.run()

    assert [error and error.code for error in (layout, other, foreign)] == ["snapshot-layout", "catalog-name-taken", "catalog-name-taken"]
    assert table.location() == "s3://x/"


def test_a_day_of_another_type_is_not_put_beside_the_others(in_process: Clients) -> None:
    """By run date the days before keep their columns, and no reader could read both; one that is widened can be."""
    columns = [pa.schema([("id", pa.int64()), ("qty", qty), ("code", code)]) for qty, code in TYPES]
    table = SnapshotTable(in_process, IN_PROCESS, "s3://raw/", f"s3://lake/{uuid.uuid4().hex[:6]}/", columns=columns[0])
    table.settings["load_quiet_minutes"] = "0"
    for day, (each, code) in enumerate(zip(columns, ("a", "b", 7), strict=True), 1):
        table.put("LOAD00000001.parquet", [("I", (1, day, code), "2024-05-01 00:00:00")], columns=each)
        error = table.run(layout="dated", run_date=f"2999-01-0{day}")
        assert (error is None, error is None or error.code) == ((True, True), (True, True), (False, "snapshot-schema"))[day - 1], error

    assert open_uploads(table) == []
    shown = {column["Name"]: column["Type"] for column in table.glue_table()["StorageDescriptor"]["Columns"]}
    assert (shown["qty"], shown["code"]) == ("bigint", "string")
    other = f"{table.database}_new"
    assert table.take(layout="dated", run_date="2999-01-03", database=other).rows == 1
    table.put("LOAD00000001.parquet", [("I", (1, 4, "d"), "2024-05-01 00:00:00")], columns=columns[1])
    assert table.run(layout="dated", run_date="2999-01-03", database=other) is None, "the only day is made anew"


def open_uploads(table: SnapshotTable) -> list[str]:
    found = table.clients.s3.list_multipart_uploads(Bucket=table.folder.bucket).get("Uploads", ())
    return [upload["Key"] for upload in found if upload["Key"].startswith(table.folder.key)]


def test_a_table_whose_snapshot_has_the_same_name_is_refused(table: SnapshotTable) -> None:
    """`Orders` and `orders` are one name in the Glue catalog: the first one's readers keep its rows."""
    table.take()
    before = table.location()

    error = table.run(table="Orders", keep="1", full="true")

    assert error is not None
    assert (error.code, "'orders'" in error.message + str(error)) == ("catalog-name-taken", True)
    assert table.location() == before
    assert names(table) == OLD


def test_a_manifest_that_is_gone_or_damaged_is_not_guessed(table: SnapshotTable) -> None:
    """The current one stops the run; dropping the Glue table begins anew. A damaged one of the past is left alone by `--keep`."""
    table.take()
    key = f"{table.folder.key}_runs/{table.versions()[0]}.json"
    s3, bucket = table.clients.s3, table.folder.bucket
    s3.put_object(Bucket=bucket, Key=key, Body=b"{")
    damaged = table.run()
    s3.delete_object(Bucket=bucket, Key=key)
    gone = table.run()
    table.clients.glue.delete_table(DatabaseName=table.database, Name="orders_snapshot")
    table.take()
    s3.put_object(Bucket=bucket, Key=f"{table.folder.key}_runs/2020.json", Body=b"\xff")
    table.take(keep="1")

    assert [error and error.code for error in (damaged, gone)] == ["snapshot-manifest"] * 2
    assert (len(table.versions()), names(table)) == (2, OLD)


def test_data_files_that_somebody_removed_are_computed_anew(table: SnapshotTable) -> None:
    """The reason is in the manifest."""
    table.take()
    objects = table.keys()
    (key,) = [key for key in objects if key.endswith(".parquet")]
    table.clients.s3.delete_object(Bucket=table.folder.bucket, Key=key)

    manifest = table.take()

    assert (manifest.mode, "not there any more" in manifest.reason, names(table)) == ("full", True, OLD)
