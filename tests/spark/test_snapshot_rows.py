"""The Snapshot job in this process: its rows, its layouts, going on from the version before, and what it refuses."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import UsageError
from tests.snapshots import ORDERS, SnapshotTable
from tests.spark.csv_texts import csv_text
from tests.work_tables import IN_PROCESS

LOAD = "LOAD00000001.parquet"
LOADED_AT = "2030-01-01 00:00:00"  # the time of transfer: later than all changes, and yet the first versions
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
Make = Callable[..., SnapshotTable]


def cdc(day: int, second: int = 0) -> str:
    return f"202405{day:02d}-0000{second:02d}000.parquet"


def day(number: int) -> date:
    return date(2024, 1, number)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.fixture
def make(in_process: Clients) -> Make:
    """Makes tables of their own on the AWS in this process."""

    def table(**values: Any) -> SnapshotTable:
        return SnapshotTable(in_process, IN_PROCESS, "s3://raw/", f"s3://lake/{uuid.uuid4().hex[:6]}/", **values)

    return table


@pytest.fixture
def orders(make: Make) -> SnapshotTable:
    """Three rows loaded; on May 1 one updated, one deleted, one inserted."""
    table = make()
    table.put(LOAD, [("I", (number, name, day(number)), LOADED_AT) for number, name in ((1, "a"), (2, "b"), (3, "c"))])
    changes = [("U", (1, "A", day(1)), "2024-05-01 11:00:00.123456"), ("D", (2, None, None), "2024-05-01 10:00:00")]
    table.put(cdc(1), [*changes, ("I", (4, "d", day(1)), "2024-05-01 10:00:00")])
    return table


def test_the_last_change_of_each_key_counts(orders: SnapshotTable) -> None:
    """Keys, all columns, the time of the last change; a load row is the first version of its key, whatever its time."""
    manifest = orders.take()

    assert orders.rows() == [
        {"id": 1, "ts": "2024-05-01 11:00:00.123456", "name": "A", "day": day(1), "last_change": at("2024-05-01 11:00:00.123456")},
        {"id": 3, "ts": LOADED_AT, "name": "c", "day": day(3), "last_change": EPOCH},
        {"id": 4, "ts": "2024-05-01 10:00:00", "name": "d", "day": day(1), "last_change": at("2024-05-01 10:00:00")},
    ]
    assert (manifest.rows, manifest.counts.input_rows, manifest.counts.backward, manifest.mode) == (3, 6, 1, "full")
    columns = [(column["Name"], column["Type"]) for column in orders.glue_table()["StorageDescriptor"]["Columns"]]
    assert columns == [("id", "bigint"), ("ts", "string"), ("name", "string"), ("day", "date"), ("last_change", "timestamp")]


def test_equal_and_backward_times_keep_the_order_of_dms(make: Make) -> None:
    """The row that DMS wrote last is the last change, and going back is counted."""
    table = make()
    table.put(LOAD, [("I", (1, "load", day(1)), LOADED_AT)])
    times = ["2024-05-01 10:00:05", "2024-05-01 10:00:05", "2024-05-01 10:00:01"]
    table.put(cdc(1), [("U", (1, f"v{number}", day(1)), time) for number, time in enumerate(times)])

    manifest = table.take()

    assert [(row["name"], row["last_change"]) for row in table.rows()] == [("v2", at("2024-05-01 10:00:01"))]
    assert manifest.counts.backward == 1


def test_without_a_timestamp_column_the_file_name_has_the_time(make: Make) -> None:
    """To the second, UTC; the column can be named otherwise."""
    table = make(timestamp_column=None)
    table.put(LOAD, [("I", (1, "a", day(1))), ("I", (2, "b", day(1)))])
    table.put(cdc(1, 7), [("U", (1, "A", day(1)))])

    table.take(last_change_column="changed")

    assert [(row["name"], row["changed"]) for row in table.rows()] == [("A", at("2024-05-01 00:00:07")), ("b", EPOCH)]


def test_a_run_date_is_the_end_of_that_day(orders: SnapshotTable) -> None:
    """Later CDC files do not count, earlier ones than the start neither; the load counts by its own day."""
    orders.put(cdc(2), [("U", (3, "second", day(3)), "2024-05-02 00:00:00")])
    orders.put(cdc(3), [("U", (3, "third", day(3)), "2024-05-03 00:00:00")])

    names = {}
    for start in ("", "2024-05-02", "2024-05-04"):
        orders.take(cdc_start_date=start)
        names[start] = [row["name"] for row in orders.rows()]
    error = orders.run(run_date="2024-05-02")

    assert names == {"": ["A", "third", "d"], "2024-05-02": ["a", "b", "third"], "2024-05-04": ["a", "b", "c"]}
    assert error is not None
    assert (error.code, "2024-05-02" in error.message) == ("no-load-files", True)


def test_a_flat_run_moves_the_table_to_a_new_prefix(orders: SnapshotTable) -> None:
    """The one before stays, whole, until `--keep` removes it by its manifest."""
    orders.take()
    first, rows = orders.location(), orders.rows()
    orders.put(cdc(2), [("U", (3, "C", day(3)), "2024-05-02 00:00:00")])
    second = orders.take(keep="2")
    kept = orders.rows_at(first)
    orders.take(keep="2")

    assert (second.mode, [row["name"] for row in orders.rows()]) == ("incremental", ["A", "C", "d"])
    assert sorted(kept, key=lambda row: row["id"]) == rows
    assert (orders.rows_at(first), len(orders.versions())) == ([], 2)


def test_by_a_date_of_the_data_only_changed_dates_are_written(orders: SnapshotTable) -> None:
    """A row that moves changes two dates; a date without rows is no partition any more; others stay where they are."""
    orders.put(cdc(1, 1), [("I", (5, "e", day(7)), "2024-05-01 12:00:00"), ("I", (6, "f", None), "2024-05-01 12:00:00")])
    dated = {"layout": "dated", "partition_date": "day"}
    orders.take(**dated)
    before = orders.partitions()
    orders.put(cdc(2), [("U", (3, "C", day(1)), "2024-05-02 00:00:00"), ("D", (9, None, None), "2024-05-02 00:00:00")])

    manifest = orders.take(**dated, keep="1")

    after = orders.partitions()
    null = "__HIVE_DEFAULT_PARTITION__"
    assert set(before) == {"2024-01-01", "2024-01-03", "2024-01-07", null}
    assert set(after) == {"2024-01-01", "2024-01-07", null}
    assert {value for value, location in after.items() if before[value] != location} == {"2024-01-01"}
    assert [(row["id"], row["name"], row["day"]) for row in orders.rows()] == [
        (1, "A", "2024-01-01"), (3, "C", "2024-01-01"), (4, "d", "2024-01-01"), (5, "e", "2024-01-07"), (6, "f", null),
    ]  # fmt: skip
    assert (manifest.mode, len(manifest.written), len(manifest.files), len(orders.versions())) == ("incremental", 1, 3, 2)
    assert orders.glue_table()["PartitionKeys"] == [{"Name": "day", "Type": "date"}]


def test_kept_versions_keep_the_files_of_versions_before(orders: SnapshotTable) -> None:
    """Queries that began with them read those, too. With two versions more nobody has them."""
    dated = {"layout": "dated", "partition_date": "day", "keep": "2"}
    first = orders.take(**dated)
    orders.put(cdc(2), [("U", (1, "second", day(1)), "2024-05-02 00:00:00")])
    second = orders.take(**dated)
    orders.put(cdc(3), [("U", (3, "third", day(3)), "2024-05-03 00:00:00")])
    orders.take(**dated)

    there = set(orders.keys())

    assert {orders.folder.key + file.path for file in second.files} <= there
    assert any(file in first.files for file in second.files)
    place = f"{orders.folder.key}_runs/{orders.versions()[-1]}.json"
    whole = orders.read_key(place)
    orders.clients.s3.put_object(Bucket=orders.folder.bucket, Key=f"{orders.folder.key}_runs/notes.txt", Body=b"of a person")
    orders.clients.s3.put_object(Bucket=orders.folder.bucket, Key=f"{orders.folder.key}_runs/2999-damaged.json", Body=b"{")
    assert orders.take(**dated) is not None
    assert {orders.folder.key + file.path for file in second.files} <= set(orders.keys()), "nothing tells what a damaged one has"
    orders.clients.s3.delete_object(Bucket=orders.folder.bucket, Key=f"{orders.folder.key}_runs/2999-damaged.json")
    assert orders.read_key(place) == whole
    for number in (4, 5):
        orders.put(cdc(number), [("U", (1, f"at {number}", day(1)), f"2024-05-0{number} 00:00:00")])
        orders.take(**dated)
    assert orders.versions()[0] != first.version.name


def test_nothing_new_writes_nothing_by_a_date_of_the_data(orders: SnapshotTable) -> None:
    """The partitions stay, and so do the files they are made of."""
    dated = {"layout": "dated", "partition_date": "day", "keep": "1"}
    orders.take(**dated)
    before = orders.partitions()

    manifest = orders.take(**dated)

    assert (orders.partitions(), manifest.written, manifest.rows) == (before, (), 3)


def test_a_time_is_dated_by_its_day(make: Make) -> None:
    """A timestamp or a text keeps its column; the day stands in another."""
    table = make(columns=pa.schema([("id", pa.int64()), ("moment", pa.timestamp("us"))]))
    moments = [datetime(2024, 5, 1, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 0), None]
    table.put(LOAD, [("I", (number, moment), LOADED_AT) for number, moment in enumerate(moments)])
    table.put(cdc(1), [("D", (7, None), "2024-05-01 10:00:00")])

    table.take(layout="dated", partition_date="moment")
    days = [row["moment_date"] for row in table.rows()]
    text = make(columns=pa.schema([("id", pa.int64()), ("moment", pa.string())]))
    text.put(LOAD, [("I", (1, "2024-05-01T10:00"), LOADED_AT)])
    text.put(cdc(1), [("I", (2, "2024-05-02"), "2024-05-01 10:00:00"), ("D", (1, "?"), "2024-05-01 10:00:00")])
    text.take(layout="dated", partition_date="moment")

    assert days == ["2024-05-01", "1969-12-31", "__HIVE_DEFAULT_PARTITION__"]
    assert [(row["id"], row["moment"], row["moment_date"]) for row in text.rows()] == [(2, "2024-05-02", "2024-05-02")]
    text.put(cdc(2), [("I", (9, "2024-05-02"), "2024-05-02 10:00:00")])
    bad = text.put(cdc(3), [("I", (4, "2024-05-03"), "2024-05-03 10:00:00"), ("I", (3, "soon"), "2024-05-03 10:00:00")])
    for full in ("true", "false"):
        error = text.run(layout="dated", partition_date="moment", full=full)
        assert error is not None
        assert (error.code, "'soon'" in error.message, bad in error.message) == ("no-date", True, True)


def test_by_run_date_each_day_has_its_own_full_snapshot(orders: SnapshotTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rerun of a day replaces that day and no other. What it replaces is removed once no run can be about to place it."""
    orders.take(layout="dated", run_date="2900-01-01")
    first = orders.partitions()
    orders.put(cdc(2), [("D", (3, None, None), "2024-05-02 00:00:00")])
    orders.take(layout="dated", run_date="2900-01-02")
    both = orders.partitions()
    orders.put(cdc(3), [("D", (1, None, None), "2024-05-03 00:00:00")])
    orders.take(layout="dated", run_date="2900-01-02", keep="1")
    last = orders.partitions()

    assert (list(first), both["2900-01-01"], last["2900-01-01"]) == (["2900-01-01"], first["2900-01-01"], first["2900-01-01"])
    assert [[row["id"] for row in orders.rows(f"2900-01-0{number}")] for number in (1, 2)] == [[1, 3, 4], [4]]
    assert last["2900-01-02"] != both["2900-01-02"]
    assert len(orders.versions()) == 3
    monkeypatch.setattr("glue_jobs.protocol.snapshot.PLACING", timedelta(0))
    orders.take(layout="dated", run_date="2900-01-02", keep="1", full="true")
    assert len(orders.versions()) == 2


# Per key and file: the operations in a row. Null dates, moves between dates and keys that come back are all in it.
_row = st.tuples(st.sampled_from("IUUD"), st.integers(1, 6), st.sampled_from([None, 1, 2, 3]), st.integers(0, 3))
_files = st.lists(st.lists(_row, max_size=6), min_size=1, max_size=3)


@pytest.mark.parametrize("layout", [{}, {"layout": "dated"}, {"layout": "dated", "partition_date": "day"}], ids=["flat", "run", "column"])
def test_going_on_equals_computing_in_full(make: Make, layout: dict[str, str]) -> None:
    """Whatever the load and the changes are: run after each file, or once over all of them."""

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from([None, 1, 2, 3])), max_size=6), _files)
    def check(load: list[tuple[int, Any]], files: list[list[Any]]) -> None:
        step, whole = make(), make()
        for table in (step, whole):
            table.put(LOAD, [("I", (key, "load", date and day(date)), LOADED_AT) for key, date in load])
        step.take(**layout)
        expected: dict[int, Any] = {key: ("load", date and day(date)) for key, date in load}
        for number, rows in enumerate(files, 1):
            dms = [_change(op, key, date, number, second) for op, key, date, second in rows]
            for op, values, _ in dms:
                expected.pop(values[0], None)
                if op != "D":
                    expected[values[0]] = values[1:]
            step.put(cdc(number), dms)
            whole.put(cdc(number), dms)
            assert step.take(**layout).mode == "incremental"
        whole.take(**layout)

        assert step.rows() == whole.rows()
        assert {row["id"]: row["name"] for row in step.rows()} == {key: values[0] for key, values in expected.items()}

    check()


def _change(op: str, key: int, date: Any, number: int, second: int) -> tuple[str, tuple[Any, ...], datetime]:
    time = datetime(2024, 5, number, tzinfo=timezone.utc) + timedelta(seconds=second)
    return op, (key, None, None) if op == "D" else (key, f"{op}{number}.{second}", date and day(date)), time


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"primary_keys": "nr"}, "unknown-column", "'nr'"),
        ({"timestamp_column": "tz"}, "unknown-column", "'tz'"),
        (
            {"schema": "id bigint, name string, day string, note string"},
            "snapshot-schema",
            "LOAD00000001.parquet: 'note' (string) is missing, 'day' is date",
        ),
        ({"schema": "id bigint", "timestamp_column": ""}, "unknown-column", "'name'"),
        ({"path": "s3://raw/nowhere/"}, "no-raw-files", "s3://raw/nowhere/"),
        ({"path": "s3://no-such-bucket/t/"}, "no-bucket", "no-such-bucket"),
        ({"sources": "s3://raw/none.json"}, "bad-sources", "none.json"),
        ({"last_change_column": "name"}, "column-taken", "'name'"),
        ({"dry_run": "perhaps"}, "bad-argument", "perhaps"),
        ({"timestamp_column": "name"}, "no-timestamp", "'A'"),
    ],
)
def test_what_can_not_be_done_is_said(orders: SnapshotTable, arguments: dict[str, str], code: str, said: str) -> None:
    """Each with its code, and nothing is left that a reader could see."""
    if code == "unknown-column" and "schema" in arguments:
        arguments = {**arguments, "partition_date": "name"}

    error = orders.run(**arguments)

    assert error is not None
    assert (error.code, said in error.message) == (code, True), error
    assert (orders.glue_table(), orders.keys()) == (None, [])


IMAGES = pa.schema([*ORDERS, ("BI_id", pa.int64())])


def test_a_column_of_the_source_is_no_before_image(make: Make) -> None:
    """It would be left out without a word. The way out is a field of the source, not a table's item."""
    table = make(columns=IMAGES)
    table.put(LOAD, [("I", (1, "a", day(1), 7), LOADED_AT)])

    error = table.run()
    manifest = table.take(before_image_prefix="OLD_")

    assert error is not None
    assert (error.code, "BI_id" in error.message, "before_image_prefix of the source" in error.todo) == ("before-image-unclear", True, True)
    assert [row["BI_id"] for row in table.rows()] == [7]
    assert manifest.before_images == ("OLD_*",)


def test_before_images_may_have_another_prefix(make: Make) -> None:
    """The row of the old key goes."""
    table = make()
    table.put(LOAD, [("I", (1, "a", day(1)), LOADED_AT)])
    table.put(cdc(1), [("U", (2, "a", day(1), 1), "2024-05-01 10:00:00")], pa.schema([*ORDERS, ("OLD_id", pa.int64())]))

    table.take(before_image_prefix="OLD_")

    assert [(row["id"], row["name"]) for row in table.rows()] == [(2, "a")]


def test_a_damaged_file_is_not_to_be_skipped_by_an_item(orders: SnapshotTable) -> None:
    """There is none."""
    orders.clients.s3.put_object(Bucket=orders.path.bucket, Key=orders.path.key + cdc(2), Body=b"PAR1 is no Parquet")

    error = orders.run()

    assert error is not None
    assert (error.code, error.todo) == ("bad-raw-file", "let DMS write the file again: reload the table")


def test_rows_that_stay_on_the_date_of_a_row_that_moved_twice(make: Make) -> None:
    """By key and date alone the two moves to key 2 look like one that was sent again, and nothing would stay there: the other rows of its
    date would be gone for readers."""
    table = make()
    table.put(LOAD, [("I", (2, "c", day(5)), LOADED_AT), ("I", (7, "stays", day(1)), LOADED_AT)])
    dated = {"layout": "dated", "partition_date": "day"}
    table.take(**dated)
    rows = [("I", (0, "a", day(1), None)), ("I", (1, "b", day(1), None))]
    for old, name, on in ((2, "c", 5), (1, "b", 1), (0, "a", 1)):
        rows.append(("U", (old + 1, name, day(on), old)))
    for old, name, on in ((1, "a", 1), (2, "b", 1), (3, "c", 5)):
        rows.append(("U", (old + 1, name, day(on), old)))
    rows.append(("D", (3, "b", day(1), None)))
    table.put(cdc(1), [(op, values, "2024-05-01 10:00:00") for op, values in rows], IMAGES)

    manifest = table.take(**dated)

    assert manifest.mode == "incremental"
    assert [(row["id"], row["name"]) for row in table.rows()] == [(2, "a"), (4, "c"), (7, "stays")]


def test_a_run_that_stops_leaves_the_columns_of_the_version_before(orders: SnapshotTable) -> None:
    """Its files have the names that they were written with."""
    dated = {"layout": "dated", "partition_date": "day"}
    orders.take(**dated)
    rows = orders.rows()

    error = orders.run(**dated, last_change_column="changed", schema="id bigint, name int")

    assert error is not None
    partitions = orders.clients.glue.get_partitions(DatabaseName=orders.database, TableName="orders_snapshot")["Partitions"]
    names = {column["Name"] for each in partitions for column in each["StorageDescriptor"]["Columns"]}
    assert (names, orders.rows()) == ({"id", "ts", "name", "last_change"}, rows)


def test_vanished_files_and_half_a_load_leave_readers_where_they_were(orders: SnapshotTable) -> None:
    """A version that can be gone on from has their rows."""
    orders.take()
    rows = orders.rows()
    for name in (LOAD, cdc(1)):
        orders.clients.s3.delete_object(Bucket=orders.path.bucket, Key=orders.path.key + name)
    orders.put(cdc(2), [("U", (3, "C", day(3)), "2024-05-02 00:00:00")])

    gone = orders.run(last_change_column="changed")
    assert orders.rows() == rows
    assert orders.take().mode == "incremental"
    rows = [{**row, "name": "C", "ts": "2024-05-02 00:00:00", "last_change": at("2024-05-02")} if row["id"] == 3 else row for row in rows]
    assert orders.rows() == rows
    orders.put(LOAD, [("I", (9, "half", day(1)), LOADED_AT)])
    half = orders.run()

    assert [error and error.code for error in (gone, half)] == ["snapshot-input-gone", "load-not-ended"]
    assert orders.rows() == rows
    orders.take(load_quiet_minutes="0")
    assert [row["id"] for row in orders.rows()] == [3, 9]


def test_files_that_differ_from_each_other_are_refused_without_a_schema_too(orders: SnapshotTable) -> None:
    """Then the first file's columns are the schema."""
    orders.put(cdc(2), [("I", (8, "h"), "2024-05-02 00:00:00")], pa.schema([("id", pa.int32()), ("label", pa.string())]))

    error = orders.run()

    assert error is not None
    assert error.code == "snapshot-schema"
    for said in ("'name' (string) is missing", "'label' (string) is not expected", "'id' is int, expected bigint", "of LOAD00000001"):
        assert said in error.message


def test_files_that_differ_from_the_version_before_are_told_so(orders: SnapshotTable) -> None:
    """Not from the first file of the run, which is the one that differs."""
    before = orders.take()
    orders.put(cdc(2), [("I", (8, "h"), "2024-05-02 00:00:00")], pa.schema([("id", pa.int64()), ("label", pa.string())]))

    error = orders.run()

    assert error is not None
    assert f"are not those of the version before ({before.version.name}): {cdc(2)}: 'name' (string) is missing" in error.message


def test_columns_that_readers_could_not_tell_apart_are_refused(make: Make) -> None:
    """By case, or from the partitions by run date."""
    by_case = make(columns=pa.schema([("id", pa.int64()), ("ID", pa.int64())]), timestamp_column=None)
    by_case.put(LOAD, [("I", (1, 2))])
    dated = make(columns=pa.schema([("id", pa.int64()), ("Run_Date", pa.date32())]), timestamp_column=None)
    dated.put(LOAD, [("I", (1, day(1)))])

    errors = by_case.run(), dated.run(layout="dated")

    assert [error and error.code for error in errors] == ["columns-differ-by-case", "column-taken"]
    assert dated.run() is None


def test_a_table_in_which_all_rows_are_deleted_is_an_empty_snapshot(make: Make) -> None:
    """Not an error: it is what the source has."""
    table = make()
    table.put(LOAD, [("I", (1, "a", day(1)), LOADED_AT)])
    table.put(cdc(1), [("D", (1, None, None), "2024-05-01 00:00:00")])

    manifest = table.take()

    assert (table.rows(), manifest.rows, manifest.files) == ([], 0, ())


def test_a_sources_file_says_it_all(orders: SnapshotTable) -> None:
    """As YAML and as JSON, in S3; the dry run writes nothing."""
    schema = "{id: bigint, name: string, day: date}"
    yaml = f"tables:\n  orders:\n    path: {orders.path}\n    primary_keys: [id]\n    timestamp_column: ts\n    schema: {schema}\n"
    json = f'{{"orders": {{"path": "{orders.path}", "primary_keys": "id", "timestamp_column": "ts"}}}}'
    key = uuid.uuid4().hex
    for name, text in (("yaml", yaml), ("json", json)):
        orders.clients.s3.put_object(Bucket="raw", Key=f"{key}.{name}", Body=text.encode())
    given = {"path": "", "primary_keys": "", "timestamp_column": ""}

    assert orders.run(**given, sources=f"s3://raw/{key}.yaml", dry_run="true") is None
    assert orders.keys() == []
    for name in ("yaml", "json"):
        orders.take(**given, sources=f"s3://raw/{key}.{name}")
        assert [row["id"] for row in orders.rows()] == [1, 3, 4]
    error = orders.run(**given, sources=f"s3://raw/{key}.yaml", table="customers")
    assert error is not None
    assert (error.code, "it has: orders" in error.message) == ("unknown-source", True)


def test_spark_makes_the_same_snapshot(embedded_aws: Any, embedded_clients: Clients, spark: Any) -> None:
    """In full and going on, dated by the data; the driver's rows are the measure."""
    del spark
    tables = [
        SnapshotTable(embedded_clients, embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, settings=settings)
        for settings in ({"driver_bytes": "0"}, {"driver_bytes": "1000000000"})
    ]
    for table in tables:
        table.put(LOAD, [("I", (number, "load", day(1 + number % 3)), LOADED_AT) for number in range(9)])
        table.put(cdc(1), [("U", (4, "U", day(9)), "2024-05-01 00:00:00"), ("D", (5, None, None), "2024-05-01 00:00:00")])
        table.take(layout="dated", partition_date="day")
        table.put(cdc(2), [("U", (4, "V", day(1)), "2024-05-02 00:00:00"), ("I", (10, "I", None), "2024-05-02 00:00:00")])

    manifests = [table.take(layout="dated", partition_date="day") for table in tables]

    assert [manifest.mode for manifest in manifests] == ["incremental"] * 2
    assert tables[0].rows() == tables[1].rows() != []
    assert set(tables[0].partitions()) == set(tables[1].partitions())


def test_csv_files_have_the_types_of_the_source(make: Make) -> None:
    """By `schema`, whose order is that of the fields; delimiter and null literal can be said too."""
    table = make()
    load = csv_text([("I", LOADED_AT, 1, "a", "2024-01-01"), ("I", LOADED_AT, 2, None, None)], delimiter=";", null="-")
    change = csv_text([("Op", "ts", "id", "day", "name"), ("U", "2024-05-01 11:00:00", 2, "2024-01-02", "b")], delimiter=";", null="-")
    for name, data in (("LOAD00000001.csv", load), ("20240501-000000000.csv.gz", gzip.compress(change))):
        table.clients.s3.put_object(Bucket=table.path.bucket, Key=table.path.key + name, Body=data)
    said = {"schema": "id bigint, name string, day date", "csv_delimiter": ";", "csv_null": "-"}

    table.take(**said)

    assert [(row["id"], row["name"], row["day"]) for row in table.rows()] == [(1, "a", day(1)), (2, "b", day(2))]
    error = table.run(schema="", full="true", csv_delimiter=";")
    assert isinstance(error, UsageError)
    assert (error.code, "schema of the source" in error.todo) == ("csv-needs-schema", True)
