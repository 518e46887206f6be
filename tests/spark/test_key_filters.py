"""Key filters: a table whose keys are random is not read whole for each batch, and rows are right."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.removal import held_versions
from glue_jobs.core import key_filter
from glue_jobs.core.key_filter import FOLDER
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import first_filters, key_filters, key_notes, merge_task
from glue_jobs.spark.first_filters import FirstFilters
from glue_jobs.spark.place import Shape
from tests.spark.filtered_tables import COLUMNS, FILES, ROWS, Source, filter_keys, filtered_paths, loaded, random_rows
from tests.spark.tables import WorkTable
from tests.spark.test_requests import counted
from tests.work_tables import MakeTable


@pytest.fixture
def source(new_table: MakeTable) -> Source:
    return Source(loaded(new_table(COLUMNS, partition_key="part")))


def data_files_read(table: WorkTable, requests: list[tuple[str, str]]) -> set[str]:
    return {key for operation, key in requests if operation == "GetObject" and key.startswith(table.out_path.key)}


def test_only_impacted_files_are_read_from_the_second_batch_on(source: Source, in_process: Clients) -> None:
    """The first batch reads all, because nothing is known; from then on those that hold a key, also those that a batch wrote."""
    assert source.change(range(3)) == (FILES, 0, "")
    assert filtered_paths(source.table) == set(source.table.snapshot().files)

    for parts in (range(3), range(2, 6)):
        with counted(in_process) as requests:
            searched, spared, trouble = source.change(parts)

        source.check()
        impacted = source.table.head().superseded
        assert len(data_files_read(source.table, requests)) <= 1.3 * len(impacted)
        assert (searched, trouble) == (len(impacted), "")
        assert spared >= FILES - searched


def test_first_filters_keep_to_their_bytes_and_to_whole_files() -> None:
    """A filter without one of its file's keys would lose a change."""
    shape = Shape("t", (Column("id", "bigint"),), ("id",))
    hashes, file = np.arange(100, dtype=np.uint64), DataFile("a.parquet", 1000, 100, low=(0,), high=(9,))
    few, enough = FirstFilters(shape, 10), FirstFilters(shape, 10_000)

    few.note(file, [hashes], [100])
    enough.note(file, [hashes[:99]], [100])
    enough.note(file, [hashes[:99]], [99])
    for number in range(16):
        enough.note(replace(file, path=f"{number}.parquet"), [hashes[:50], hashes[50:]], [30, 70])

    assert few.made() == []
    assert [each.path for each in enough.made()] == [f"{number}.parquet" for number in range(16)]


def adopted(table: WorkTable, keys: list[str]) -> WorkTable:
    """20 files of another program with these keys."""
    s3, lake = table.clients.s3, table.out_path
    for at in range(20):
        mine = keys[at * 20 : at * 20 + 20]
        data = io.BytesIO()
        pq.write_table(pa.table({"id": mine, "part": pa.array([1] * 20, pa.int32()), "name": mine}), data)
        s3.put_object(Bucket=lake.bucket, Key=f"{lake.key}part-{at:05}.parquet", Body=data.getvalue())
    table.edit(LastFullLoadDate="2999-01-01 00:00:00", LastIncrementalFile=f"{table.path}0.parquet")
    assert table.run("Adopt") == 0, table.item()["LastRun"]
    return table


def test_an_adopted_table_has_filters_from_the_start(quick_table: MakeTable) -> None:
    """Its keys are read to look for doubled ones; the first batch opens what holds a key. Where ranges tell files apart there are none."""
    keys = [row[0] for row in random_rows()][:400]
    table, other = adopted(quick_table(COLUMNS), keys), adopted(quick_table(COLUMNS), sorted(keys))
    assert (len(filtered_paths(table)), filter_keys(other)) == (20, [])

    table.cdc([("D", (keys[25], 1, keys[25])), ("U", (keys[7], 1, "new"))])
    assert table.run(small_file_bytes="0") == 0, table.last_run()

    assert table.counts() == (0, 1, 1)
    assert table.head().details["files_searched"] == 2
    assert len(table.rows()) == 399
    table.check_folder()


def test_where_most_files_hold_a_changed_key_no_filter_is_made(source: Source) -> None:
    """They would be made anew for each batch and spare nothing."""
    assert source.change(range(FILES)) == (FILES, 0, "")

    assert filter_keys(source.table) == []
    source.check()


def test_a_file_of_very_many_rows_gets_no_filter(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when it is searched nor when it is written: the hashes of its keys would fill the memory."""
    for each in (key_notes, first_filters):
        monkeypatch.setattr(each, "MOST_FILE_ROWS", 0)

    assert source.change(range(2))[1:] == (0, "")
    assert source.change(range(2))[1:] == (0, "")

    assert filter_keys(source.table) == []
    source.check()


def test_a_large_file_that_a_filter_says_to_hold_a_key_is_not_searched(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written anew; where the filter was wrong, as it was."""
    large = {"stream_file_bytes": "1"}
    source.change(range(2), **large)
    monkeypatch.setattr(key_filters, "may_hold", lambda data, hashes: True)

    assert source.change(range(2, 4), **large)[0] == FILES

    source.check()
    assert len(source.table.head().superseded) == FILES


def test_with_very_many_changes_a_filter_is_not_believed(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is wrong for one key in millions: of a million keys for most files, which would all be written anew as they are."""
    large = {"stream_file_bytes": "1"}
    source.change(range(2), **large)
    monkeypatch.setattr(key_filters, "may_hold", lambda data, hashes: True)
    monkeypatch.setattr(merge_task, "BELIEVED", 0)

    source.change(range(2, 4), **large)

    source.check()
    assert len(source.table.head().superseded) < FILES


def test_a_look_at_some_filters_says_whether_the_others_are_read(
    source: Source, in_process: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nearly all of them have a changed key, the rest is not asked for."""
    source.change(range(2))
    (key,) = filter_keys(source.table)
    monkeypatch.setattr(key_filter, "SAMPLE", 4)
    monkeypatch.setattr(key_filter, "SAMPLED_BYTES", 1000)
    monkeypatch.setattr(key_filters, "GAP_BYTES", 0)
    monkeypatch.setattr(key_filters, "HEAD_BYTES", 16)

    with counted(in_process) as requests:
        assert source.change(range(FILES))[1:] == (0, "")

    assert requests.count(("GetObject", key)) == 2 + 4, "the index, and four filters"
    assert filter_keys(source.table) == [key], "none are made"
    source.check()


def test_objects_do_not_pile_up(source: Source) -> None:
    """Small ones are taken into the next; what is of files that were replaced is left out, and hidden objects stay hidden."""
    for number in range(6):
        source.change(range(number, number + 3))

        assert len(filter_keys(source.table)) == 1
        assert filtered_paths(source.table) == set(source.table.snapshot().files)
    source.check()
    folder = changes_folder(source.table.out_path).join(FOLDER)
    assert len(list(held_versions(source.table.clients.s3, "lake", folder.key))) == 6


def test_no_filter_is_made_or_asked_where_the_setting_says_so(source: Source, in_process: Clients) -> None:
    """As without this code."""
    source.change(range(2))
    with counted(in_process) as requests:
        assert source.change(range(2), key_filter_bytes="0") == (-1, -1, "")

    assert not [key for _, key in requests if FOLDER in key]
    source.check()


def test_a_batch_makes_no_more_filters_than_it_may(source: Source) -> None:
    """The next ones make more: a large table gets them by and by."""
    found = []
    for _ in range(3):
        source.change(range(1), key_filter_bytes="2000")
        found.append(len(filtered_paths(source.table)))

    source.check()
    assert 0 < found[0] < found[1] <= found[2] < FILES


def test_a_table_of_few_files_or_one_with_ranges_asks_no_filter(new_table: MakeTable, in_process: Clients) -> None:
    """No request, no word in the record."""
    few, ranged = new_table(COLUMNS, partition_key="part"), new_table(COLUMNS, partition_key="part")
    few.load([row for row in random_rows() if row[1] < 10])
    ranged.load([(f"{number:06d}", number // ROWS, "a") for number in range(FILES * ROWS)])
    for table, key in ((few, random_rows()[0][0]), (ranged, "000100")):
        assert table.run("LoadInitial") == 0
        table.cdc([("D", (key, 0, "a"))])
        with counted(in_process) as requests:
            assert table.run() == 0
        assert table.counts() == (0, 0, 1)
        assert "files_searched" not in table.head().details
        assert not [key for _, key in requests if FOLDER in key]


def test_after_another_key_or_collation_filters_are_not_used(source: Source) -> None:
    """They are of other values: a text in capital letters is the same key under one collation and not under another."""
    source.change(range(2))
    source.table.edit(PrimaryKey="id,part")
    assert source.table.run() == 0, source.table.last_run()
    assert source.change(range(2))[1:] == (0, "")
    source.check()
    assert source.change(range(2))[0] == 2

    source.table.edit(PrimaryKey="id", KeyCollation="ci")
    assert source.table.run() == 0, source.table.last_run()
    upper = [row for row in source.rows.values() if row[1] == 5][:3]
    source.table.cdc([("U", (row[0].upper(), 5, "upper")) for row in upper])
    assert source.table.run(small_file_bytes="0") == 0
    assert source.table.counts() == (0, 3, 0)
    for row in upper:
        del source.rows[row[0]]
        source.rows[row[0].upper()] = (row[0].upper(), 5, "upper")
    source.check()
    assert source.table.head().details["files_spared_by_key_filters"] == 0
    source.table.cdc([("D", (row[0].lower(), 5, "upper")) for row in upper])
    assert source.table.run(small_file_bytes="0") == 0
    assert source.table.head().details["files_searched"] == 1
    assert source.table.counts() == (0, 0, 3)


NUMBERS = pa.schema([("id", pa.int32()), ("part", pa.int32()), ("name", pa.string())])
WIDER = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string())])


def test_a_key_that_grows_has_new_filters(new_table: MakeTable) -> None:
    """The table is written anew for it; keys are found before and after."""
    keys = [int(key) for key in np.random.default_rng(3).permutation(FILES * ROWS)]
    table = new_table(NUMBERS, partition_key="part")
    table.load([(key, at // ROWS, "a") for at, key in enumerate(keys)])
    assert table.run("LoadInitial") == 0
    spared = []
    for at, columns in enumerate((NUMBERS, NUMBERS, WIDER, WIDER, WIDER)):
        table.cdc([("U", (keys[at], 0, "b")), ("D", (keys[at + 10], 0, "a"))], columns=columns)
        assert table.run(small_file_bytes="0") == 0, table.last_run()
        assert table.counts() == (0, 1, 1)
        spared.append(table.head().details.get("files_spared_by_key_filters"))

    assert spared == [0, FILES - 1, None, 0, FILES - 1]
    gone = keys[10:15]
    assert table.rows() == sorted(((key, at // ROWS, "b" if at < 5 else "a") for at, key in enumerate(keys) if key not in gone), key=repr)


def test_a_restored_file_has_the_filter_of_its_original(quick_table: MakeTable) -> None:
    """After a repair and a rollback; what was applied before is applied again, and rows are right."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    table = source.table
    source.change(range(2))
    lost = next(path for path in table.snapshot().files if "part=9/" in path)
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + lost)
    table.repair()
    assert [file.origin for file in table.snapshot().files.values() if file.origin] == [lost]

    assert source.change(range(2))[0] == 2

    source.check()
    assert table.run("Rollback", to="previous", resume="true") == 0, table.item()["LastRun"]
    assert table.run(small_file_bytes="0") == 0, table.last_run()
    source.check()
    assert source.change(range(3))[0] <= 3 + 2
    source.check()


def test_spark_makes_and_asks_the_same_filters(spark_table: MakeTable) -> None:
    """As the driver; a merge by shuffle passes them over, and what it wrote is searched once."""
    source = Source(loaded(spark_table(COLUMNS, partition_key="part")))
    found = [source.change(range(2), driver_bytes="0")]
    assert filtered_paths(source.table) == set(source.table.snapshot().files)
    found.append(source.change(range(2), driver_bytes="0"))
    source.change(range(1), driver_bytes="0", broadcast_bytes="0")
    source.check()
    found.append(source.change(range(3), driver_bytes="0"))

    source.check()
    assert [one[0] for one in found[:2]] == [FILES, 2]
    assert 3 <= found[2][0] <= 5
