"""A full load becomes the table: each key once, in folders, sorted by key; a reload replaces it and goes on from its start."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from infra.local.dms_files import DmsRow, cdc_file_name, load_file_name
from tests.lake import START
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

DATED = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us")), ("text", pa.string()), ("kind", pa.string())])
DATED_ROWS = [
    (1, date(2024, 5, 1), datetime(2023, 12, 31, 23, 59, 59), "2022-01-02 03:04:05", "a b"),
    (2, date(2024, 11, 30), datetime(1500, 1, 1), "2022-01-03", "c/d"),
    (3, None, None, None, None),
]


def _rows(*ids: int, name: str = "n") -> list[tuple[int, str, int]]:
    return [(id_, f"{name}{id_}", id_ % 3) for id_ in ids]


def _loaded(table: WorkTable, **settings: str) -> WorkTable:
    assert table.run("LoadInitial", **settings) == 0, table.last_run()
    table.check_folder()
    table.check_files()
    return table


def test_all_load_files_of_the_table_are_taken(new_table: MakeTable) -> None:
    """Counters are hexadecimal, and all files make one change."""
    table = new_table()
    for number in (9, 10, 16):
        table.load(_rows(number, number + 100), number)

    _loaded(table)

    assert table.rows() == _rows(10, 109, 110, 116, 16, 9)
    assert [item.key.rsplit("/", 1)[1] for item in table.head().inputs] == [
        "LOAD00000009.parquet",
        "LOAD0000000A.parquet",
        "LOAD00000010.parquet",
    ]
    assert table.counts() == (6, 0, 0)


@pytest.mark.parametrize("names", [("SEGMENT1_LOAD00000001", "SEGMENT2_LOAD00000001"), ("p1/LOAD00000001", "p2/LOAD00000001")])
def test_segments_of_a_parallel_load_may_overlap(new_table: MakeTable, names: tuple[str, str]) -> None:
    """A row that stands in two segments stands once in the lake table."""
    table = new_table()
    for name, rows in zip(names, (_rows(1, 2, 3), _rows(3, 2, 4)), strict=True):
        table.put_raw(f"{name}.parquet", table.parquet([("I", row) for row in rows]))

    _loaded(table)

    assert table.rows() == _rows(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("partition_key", "folders"),
    [
        ("kind", {"kind=a b/", "kind=c%2Fd/", "kind=__HIVE_DEFAULT_PARTITION__/"}),
        ("year(day), month(day)", {"day_year=2024/day_month=5/", "day_year=2024/day_month=11/", "day_year=__H/day_month=__H/"}),
        ("year(at) as y,day(at) as d", {"y=2023/d=31/", "y=1500/d=1/", "y=__H/d=__H/"}),
        ("month(text)", {"text_month=1/", "text_month=__H/"}),
        ("day,id", {"day=2024-05-01/id=1/", "day=2024-11-30/id=2/", "day=__H/id=3/"}),
        ("at", {"at=2023-12-31 23%3A59%3A59/", "at=1500-01-01 00%3A00%3A00/", "at=__H/"}),
    ],
)
def test_partitions_are_hive_folders(new_table: MakeTable, partition_key: str, folders: set[str]) -> None:
    """Columns and parts of dates become folders that readers by path understand; nothing of a row is lost by it."""
    table = new_table(DATED, partition_key=partition_key)
    table.load(DATED_ROWS)

    _loaded(table)

    assert {path.rsplit("/", 1)[0] + "/" for path in table.visible()} == {f.replace("__H/", "__HIVE_DEFAULT_PARTITION__/") for f in folders}
    utc = [(*row[:2], row[2] and row[2].replace(tzinfo=timezone.utc), *row[3:]) for row in DATED_ROWS]
    assert sorted(table.rows()) == utc


@pytest.mark.parametrize("strategy", ["driver", "spark"])
def test_files_are_about_as_large_as_asked(new_table: MakeTable, spark_table: MakeTable, strategy: str) -> None:
    """An unpartitioned table is cut into sorted files that don't overlap, none much larger than the target."""
    table = new_table() if strategy == "driver" else spark_table()
    rows = [(number * 7919 % 300_007, f"{number * 48271 % 2147483647:x}", number) for number in range(100_000)]
    table.load(rows)
    target = 400_000

    _loaded(table, target_file_bytes=str(target), **({"driver_bytes": "0"} if strategy == "spark" else {}))

    files = sorted(table.snapshot().files.values(), key=lambda file: file.low or ())
    sizes = [file.size_bytes for file in files]
    assert sum(file.rows for file in files) == len(rows)
    assert len(files) >= 2
    assert max(sizes) < 2.5 * target, sizes  # the driver looks at the size every 65,536 rows
    assert all(before.high < after.low for before, after in itertools.pairwise(files))


def test_files_of_wide_rows_are_no_larger(new_table: MakeTable) -> None:
    """Some hundred rows may fill a file: the size is looked at after so many bytes, not only after so many rows."""
    table = new_table(pa.schema([("id", pa.int64()), ("raw", pa.binary())]))
    random_ = random.Random(1)
    table.load([(number, random_.randbytes(100_000)) for number in range(400)])

    _loaded(table, target_file_bytes="4000000")

    assert max(file.size_bytes for file in table.snapshot().files.values()) < 20_000_000
    assert len(table.visible()) >= 2


def test_a_load_without_rows_is_an_empty_table(new_table: MakeTable) -> None:
    """No data file, but a schema; changes find their place later."""
    table = new_table()
    table.load([])
    _loaded(table)
    assert table.visible() == set()
    assert [column.name for column in table.snapshot().schema] == SHOP.names
    table.cdc([("I", row) for row in _rows(1)])

    assert table.run() == 0

    assert table.rows() == _rows(1)


@pytest.mark.parametrize("empty", [1, 2])
def test_a_load_file_without_rows_does_not_hide_the_commit_time(new_table: MakeTable, empty: int) -> None:
    """It says nothing of a column's values, whether it comes first or last."""
    table = new_table(timestamp_column="committed")
    table.load([], empty)
    table.put_raw(load_file_name(3 - empty), table.parquet(DmsRow("I", row, START) for row in _rows(1, 2)))

    _loaded(table)

    assert table.snapshot().timestamp_column == "committed"


def test_without_any_row_no_column_is_the_commit_time(new_table: MakeTable) -> None:
    """The first text column need not be."""
    table = new_table(pa.schema([("name", pa.string()), ("id", pa.int64())]))
    table.load([])

    _loaded(table)

    assert table.snapshot().timestamp_column == ""


def test_a_table_without_a_key_keeps_every_row(new_table: MakeTable) -> None:
    """Equal rows stay: without PrimaryKey they can't be told to be one."""
    table = new_table(primary_key="null", partition_key="qty")
    table.load([*_rows(1, 2), *_rows(1)])
    table.load(_rows(1), 2)

    _loaded(table)

    assert table.rows() == _rows(1, 1, 1, 2)


def test_a_load_without_op_is_a_load(new_table: MakeTable) -> None:
    """DMS leaves Op out of load files unless IncludeOpForFullLoad is set."""
    table = new_table()
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", row) for row in _rows(1, 2)], with_op=False))
    table.cdc([("D", _rows(1)[0])])

    table.sync()

    assert table.rows() == _rows(2)


# --- reloads


def test_a_reload_replaces_the_table_in_one_change(new_table: MakeTable) -> None:
    """The same name with other content: its rows are the table, those of before are gone, older CDC files are not taken again."""
    table = new_table(partition_key="qty")
    table.load(_rows(1, 2, 3))
    recent = cdc_file_name(datetime.now(timezone.utc) - timedelta(minutes=30))  # not as in a folder that was copied
    table.cdc([("I", row) for row in _rows(50)], name=recent)
    table.sync()
    before = table.visible()
    table.edit(LoadQuietMinutes="0")
    table.load(_rows(3, 4, name="again"))

    table.sync()

    assert table.rows() == _rows(3, 4, name="again")
    table.check_folder()
    assert not before & table.visible()
    assert (table.head().generation.number, table.head().kind) == (2, "full-load")
    counts = table.head().counts
    assert (counts.inserted, counts.deleted) == (2, 4)


def test_a_reload_waits_until_it_is_whole(new_table: MakeTable) -> None:
    """A young load file may be one of many: the good table stays until a CDC file follows the load."""
    table = new_table()
    table.load(_rows(1, 2))
    table.sync()
    table.load(_rows(1), 1)

    assert table.run("LoadInitial") == 0

    assert table.rows() == _rows(1, 2)
    assert "reload is due" in table.last_run()["note"]
    load = table.load(_rows(7), 2)
    name = cdc_file_name(datetime.now(timezone.utc))
    _put_after(table, load, lambda: table.cdc([("I", _rows(9)[0])], name=name))
    table.sync()
    assert table.rows() == _rows(1, 7, 9)


def _put_after(table: WorkTable, earlier: str, put: Callable[[], str]) -> None:
    """Put an object again and again until S3, which counts seconds, says that it is younger than `earlier`."""
    head = table.clients.s3.head_object
    deadline = time.monotonic() + 10
    while head(Bucket="raw", Key=put())["LastModified"] <= head(Bucket="raw", Key=earlier)["LastModified"]:
        assert time.monotonic() < deadline


def test_a_load_that_grew_is_taken_as_a_reload(new_table: MakeTable) -> None:
    """A first load is taken as it is found; what DMS adds later makes a new generation of all its files."""
    table = new_table()
    table.edit(LoadQuietMinutes="0")
    table.load(_rows(1, 2), 1)
    table.sync()
    table.load(_rows(3), 2)

    table.sync()

    assert table.rows() == _rows(1, 2, 3)
    assert len(table.head().generation.loads) == 2


def _committed(table: WorkTable, rows: list[tuple[str, tuple[int, str, int]]], second: int) -> bytes:
    """A file whose rows were committed at START plus so many seconds."""
    when = START + timedelta(seconds=second)
    return table.parquet([DmsRow(op, row, when) for op, row in rows])


def test_a_reload_goes_on_from_its_start(new_table: MakeTable) -> None:
    """CDC files named from the reload's least commit time on are applied to it, those applied before too; earlier ones are not."""
    table = new_table(timestamp_column="ts")
    table.put_raw("LOAD00000001.parquet", _committed(table, [("I", row) for row in _rows(1, 2)], 0))
    changes = {
        1: [("I", (10, "before the reload", 0))],
        2: [("D", _rows(2)[0])],
        3: [("U", (1, "after its start", 1))],
        4: [("I", (11, "last", 0))],
    }
    for second, rows in changes.items():
        table.put_raw(cdc_file_name(START + timedelta(seconds=second)), _committed(table, rows, second))
    table.sync()
    assert [row[1] for row in sorted(table.rows(), key=lambda row: row[1])] == [1, 10, 11]
    # The source as it was at second 3, before its change: 1 as first loaded, 2 deleted, 10 never there.
    table.edit(LoadQuietMinutes="0")
    table.put_raw("LOAD00000001.parquet", _committed(table, [("I", (1, "reloaded", 1)), ("I", (5, "reloaded", 2))], 3))

    table.sync()

    assert {row[1:3] for row in table.rows()} == {(1, "after its start"), (5, "reloaded"), (11, "last")}
    assert "20240501120002" < table.head().generation.cdc_from <= "20240501120003"
    applied = [key.rsplit("/", 1)[1] for key in table.snapshot().applied]
    assert applied == ["20240501-120003000.parquet", "20240501-120004000.parquet"]


def test_a_reload_takes_the_file_of_changes_that_was_open_when_it_began(new_table: MakeTable) -> None:
    """Where another task brings the changes, a row that was read first may change within that file. It brings again what is in the load."""
    table = new_table(timestamp_column="ts")
    now = datetime.now(timezone.utc).replace(microsecond=0)

    def ago(seconds: int) -> datetime:
        return now - timedelta(seconds=seconds)

    def file(rows: list[tuple[str, tuple[int, str, int], int]]) -> bytes:
        return table.parquet([DmsRow(op, row, ago(seconds)) for op, row, seconds in rows])

    table.put_raw("LOAD00000001.parquet", file([("I", row, 9000) for row in _rows(1, 2, 3)]))
    table.sync()
    table.edit(LoadQuietMinutes="0")
    before, since = ("D", (2, "", 0), 35), [("U", (1, "changed since it was read", 1), 20), ("D", (3, "", 0), 10)]
    table.put_raw("LOAD00000001.parquet", file([("I", row, 30) for row in _rows(1, 3)]))
    table.put_raw(cdc_file_name(ago(40)), file([before, *since]))

    table.sync()

    assert [row[1:] for row in table.rows()] == [(1, "changed since it was read", 1)]


def test_without_commit_times_a_reload_starts_before_its_first_file(new_table: MakeTable) -> None:
    """The first load file's time less a margin is the start: a CDC file from before it is left, one within it is taken."""
    table = new_table()
    table.load(_rows(1))
    table.sync()
    table.edit(LoadQuietMinutes="0")
    table.load(_rows(1, 2, name="again"))
    now = datetime.now(timezone.utc)
    table.cdc([("D", _rows(2)[0])], name=cdc_file_name(now - timedelta(minutes=30)))
    table.cdc([("D", _rows(1)[0])], name=cdc_file_name(now - timedelta(minutes=5)))

    table.sync(load_start_margin_minutes="10")

    assert table.rows() == _rows(2, name="again")


def test_a_reload_may_be_asked_for(new_table: MakeTable) -> None:
    """Request = reload loads the same files again, once."""
    table = new_table()
    table.load(_rows(1, 2))
    table.cdc([("D", _rows(1)[0])])
    table.sync()
    table.edit(Request="reload", LoadQuietMinutes="0")

    table.sync()

    assert table.rows() == _rows(1, 2)
    assert "Request" not in table.item()
    generation = table.head().generation.number
    table.sync()
    assert table.head().generation.number == generation == 2
