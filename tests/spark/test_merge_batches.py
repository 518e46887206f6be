"""CDC files are taken in bounded batches, one change each; what is inserted hourly doesn't leave a file each time."""

from __future__ import annotations

import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark.merge import absorbers_of
from tests.lake import cdc_file_name
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_csv_runs import cdc, load, made
from tests.work_tables import MakeTable


def _files(table: WorkTable, count: int, rows: int = 2) -> list[str]:
    """CDC files of `rows` inserts each, one partition (qty) per file."""
    return [table.cdc([("I", (number * rows + at, "x", number)) for at in range(rows)]) for number in range(count)]


@pytest.mark.parametrize(
    ("limits", "batches"),
    [
        ({}, [5]),
        ({"batch_files": "2"}, [2, 2, 1]),
        ({"batch_rows": "4"}, [2, 2, 1]),
        ({"batch_rows": "1"}, [1, 1, 1, 1, 1]),
        ({"batch_bytes": "1100"}, [2, 2, 1]),
        ({"batch_bytes": "1"}, [1, 1, 1, 1, 1]),
    ],
)
def test_each_batch_is_a_change_of_its_own(new_table: MakeTable, limits: dict[str, str], batches: list[int]) -> None:
    """Files, rows and bytes bound a batch; a file that is larger alone is taken alone; one run takes them all."""
    table = new_table()
    names = _files(table, 5)
    size = table.clients.s3.head_object(Bucket="raw", Key=names[0])["ContentLength"]
    assert 370 < size < 550, "two files fit into batch_bytes, three don't"

    assert table.run(**limits) == 0

    assert table.last_run()["change_count"] == len(batches)
    assert len(table.rows()) == 10
    assert table.item()["LastIncrementalFile"] == f"raw/{names[-1]}"
    assert [len(change) for change in _inputs_by_change(table)] == batches
    table.check_folder()


@pytest.mark.parametrize(("ending", "batches"), [(".csv", [1, 1, 1, 1, 1]), (".csv.gz", [2, 2, 1]), (".parquet", [2, 2, 1])])
def test_what_is_packed_very_well_fills_a_batch_sooner(new_table: MakeTable, ending: str, batches: list[int]) -> None:
    """A batch's rows are held unpacked: of 40 kB in a file of a few hundred bytes a quarter counts."""
    table = made(new_table)
    load(table, [("I", 1, "a", 1)])
    table.sync()
    for number in range(5):
        row = ("I", 10 + number, "x" * 40_000, number)
        _ = table.put_raw(table.next_name(), packed_parquet(row)) if ending == ".parquet" else cdc(table, [row], ending)

    assert table.run(batch_bytes="25000") == 0

    assert [len(change) for change in _inputs_by_change(table)[1:]] == batches
    assert len(table.rows()) == 6


def packed_parquet(row: tuple[str, int, str, int]) -> bytes:
    """A CDC file of one row, packed by gzip."""
    sink = io.BytesIO()
    columns = {name: [value] for name, value in zip(("Op", "id", "name", "qty"), row, strict=True)}
    pq.write_table(pa.table(columns), sink, compression="gzip")
    return sink.getvalue()


def _inputs_by_change(table: WorkTable) -> list[list[str]]:
    """The raw keys of each change, the first change first."""
    from glue_jobs.aws.records import read_record

    out: list[list[str]] = []
    change = table.item()["Head"]
    while change:
        record = read_record(table.clients.s3, table.out_path, change)
        out.insert(0, [item.key for item in record.inputs])
        change = record.parent
    return out


def test_a_table_may_begin_with_cdc_files(new_table: MakeTable) -> None:
    """No load file: the first batch creates the table, a later one goes on."""
    table = new_table(partition_key="qty")
    table.cdc([("I", (1, "a", 1)), ("U", (2, "b", 2)), ("D", (3, None, None))])

    table.sync()

    assert table.rows() == [(1, "a", 1), (2, "b", 2)]
    assert table.snapshot().generation.number == 1
    table.cdc([("U", (1, "A", 2)), ("D", (2, None, None))])
    table.sync()
    assert table.rows() == [(1, "A", 2)]
    table.check_folder()


def test_a_first_batch_that_leaves_nothing_is_a_table(new_table: MakeTable) -> None:
    """An insert and its delete in the first batch: no data file, and the next batch finds its place."""
    table = new_table()
    table.cdc([("I", (1, "a", 1)), ("D", (1, None, None))])
    table.sync()
    assert (table.rows(), table.counts()) == ([], (0, 0, 0))
    table.cdc([("I", (2, "b", 2))])

    table.sync()

    assert table.rows() == [(2, "b", 2)]


def test_an_empty_cdc_file_moves_the_cursor(new_table: MakeTable) -> None:
    """A file without rows is applied like any other."""
    table = new_table()
    table.load([(1, "a", 1)])
    name = table.cdc([])

    table.sync()

    assert table.rows() == [(1, "a", 1)]
    assert table.item()["LastIncrementalFile"] == f"raw/{name}"


def test_without_a_key_inserts_are_appended_and_the_rest_is_reported(new_table: MakeTable) -> None:
    """Updates and deletes can't be placed without PrimaryKey: they are ignored, counted and said."""
    table = new_table(primary_key="null", partition_key="qty")
    table.load([(1, "a", 1), (1, "a", 1)])
    table.cdc([("I", (1, "a", 1)), ("U", (1, "b", 1)), ("D", (1, "a", 1)), ("I", (2, "c", 2))])

    table.sync()

    assert table.rows() == [(1, "a", 1), (1, "a", 1), (1, "a", 1), (2, "c", 2)]
    assert table.counts() == (2, 0, 0)
    assert table.last_run()["ignored"] == 2
    table.check_folder()
    table.check_files()


@pytest.mark.parametrize("primary_key", ["id", "null"])
def test_small_inserts_go_into_a_small_file(new_table: MakeTable, primary_key: str) -> None:
    """A hundred batches of a few rows leave one file per partition, not a hundred."""
    table = new_table(primary_key=primary_key, partition_key="qty")
    for hour in range(12):
        table.cdc([("I", (hour * 10 + at, "x", at % 2)) for at in range(4)])

    assert table.run(batch_files="1") == 0

    assert table.last_run()["change_count"] == 12
    assert len(table.visible()) == 2
    assert len(table.rows()) == 48
    table.check_files()


def test_a_file_that_is_no_longer_small_is_left_alone(new_table: MakeTable) -> None:
    """Above small_file_bytes a file takes up no inserts: the next ones begin a new file."""
    table = new_table()
    table.load([(number, f"{number * 7919:x}", 0) for number in range(3000)])
    table.sync()
    (first,) = table.snapshot().files.values()
    table.cdc([("I", (5000, "x", 0))])
    table.sync(small_file_bytes=first.size_bytes)
    assert first.path in table.visible()
    assert len(table.visible()) == 2
    table.cdc([("I", (5001, "x", 0))])

    table.sync(small_file_bytes=first.size_bytes)

    assert first.path in table.visible()
    assert len(table.visible()) == 2, "the second, small file took the row up"
    assert len(table.rows()) == 3002


def test_an_absorbing_file_that_outgrows_the_target_is_split(new_table: MakeTable) -> None:
    """A small file with many inserts becomes several files of about the target size, sorted and apart."""
    table = new_table()
    table.load([(number * 2, "a", 0) for number in range(1000)])
    table.sync()
    table.cdc([("I", (number, f"{number * 48271 % 2147483647:x}", number)) for number in range(140_000)])

    table.sync(target_file_bytes="200000")

    files = sorted(table.snapshot().files.values(), key=lambda file: file.low or ())
    assert len(files) >= 2
    assert all(before.high < after.low for before, after in itertools.pairwise(files))
    assert table.snapshot().rows == 140_000
    assert table.counts() == (139_000, 1000, 0)


@pytest.mark.parametrize("small_file_bytes", ["0", "32000000"])
def test_deleting_all_rows_leaves_no_file(new_table: MakeTable, small_file_bytes: str) -> None:
    """The last row of a partition takes its file with it, the last row of the table the last file."""
    table = new_table(partition_key="qty")
    table.load([(1, "a", 1), (2, "b", 2), (3, "c", 2)])
    table.sync()
    table.cdc([("D", (2, None, None)), ("D", (3, None, None))])
    table.sync(small_file_bytes=small_file_bytes)
    assert {path.split("/")[0] for path in table.visible()} == {"qty=1"}
    table.cdc([("D", (1, "a", 1))])

    table.sync(small_file_bytes=small_file_bytes)

    assert table.visible() == set()
    assert table.snapshot().rows == 0
    table.check_folder()
    table.cdc([("I", (4, "d", 1))])
    table.sync(small_file_bytes=small_file_bytes)
    assert table.rows() == [(4, "d", 1)]


def test_a_key_may_be_all_of_the_partition(new_table: MakeTable) -> None:
    """The key column stands in no file: its rows are still found, replaced and deleted."""
    table = new_table(partition_key="id")
    table.load([(1, "a", 1), (2, "b", 2), (3, "c", 3)])
    table.cdc([("U", (1, "A", 1)), ("D", (2, None, None)), ("I", (4, "d", 4))])

    table.sync()

    assert table.rows() == [(1, "A", 1), (3, "c", 3), (4, "d", 4)]
    assert table.counts() == (1, 1, 1)
    table.check_folder()
    table.check_files()


def test_a_file_delivered_twice_changes_nothing(new_table: MakeTable) -> None:
    """DMS delivers at least once: the repeated file is applied again, and the rows are the same."""
    table = new_table()
    changes = [("I", (1, "a", 1)), ("U", (1, "b", 1)), ("I", (2, "x", 2)), ("D", (2, None, None))]
    table.cdc(changes)
    table.sync()
    rows = table.rows()
    table.cdc(changes)

    table.sync()

    assert table.rows() == rows == [(1, "b", 1)]
    assert table.counts() == (0, 1, 0)


def test_rows_keep_the_order_of_files_not_of_commit_times(new_table: MakeTable) -> None:
    """MySQL's commit times run backwards when a statement waited for a lock: they are counted, the order is DMS's."""
    from infra.local.dms_files import DmsRow
    from tests.lake import START

    table = new_table(timestamp_column="ts")
    later, earlier = START.replace(second=9), START.replace(second=6)
    table.put_raw(cdc_file_name(START), table.parquet([DmsRow("I", (1, "A", 1), later), DmsRow("U", (1, "B", 1), earlier)]))

    table.sync()

    assert [row[1:] for row in table.rows()] == [(1, "B", 1)]
    assert table.last_run()["backward"] == 1
    assert table.snapshot().timestamp_column == "ts"
    assert [column.name for column in table.snapshot().schema] == ["ts", *SHOP.names]


def test_inserts_go_where_keys_reach_furthest() -> None:
    """New keys are mostly the greatest ones: in the smallest file they would make its key range that of the whole table."""
    small = [DataFile(f"{low}.parquet", size, 10, low=(low,), high=(low + 9,)) for low, size in ((0, 50), (100, 90), (20, 40))]
    unknown, large = DataFile("unknown.parquet", 1, 10), DataFile("large.parquet", 1000, 10, low=(500,), high=(509,))
    other = DataFile("p=1/other.parquet", 10, 10, partition=("1",), low=(0,), high=(900,))
    files = [*small, unknown, large, other]

    assert absorbers_of({()}, files, 100, ("bigint",)) == {(): small[1]}
    assert absorbers_of({()}, files, 100) == {(): unknown}, "without a key the smallest"
    assert absorbers_of({(), ("1",), ("2",)}, [unknown, other], 100, ("bigint",)) == {(): unknown, ("1",): other}
    assert absorbers_of({()}, [large, other], 100, ("bigint",)) == {}
