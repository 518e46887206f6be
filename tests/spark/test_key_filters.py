"""Key filters: a table whose keys are random is not read whole for each batch; and whatever becomes of filters, rows are right."""

from __future__ import annotations

import io
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients, worker_s3
from glue_jobs.aws.objects import list_files, read_bytes, write_bytes
from glue_jobs.aws.removal import held_versions
from glue_jobs.core import key_filter
from glue_jobs.core.key_filter import FOLDER, decode, head_bytes, is_filter_name, signature
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.protocol.forget import look
from glue_jobs.protocol.verify import Place
from glue_jobs.spark import first_filters, key_filters, key_notes
from glue_jobs.spark.first_filters import FirstFilters
from glue_jobs.spark.place import CLIENT_VARIABLES, Shape
from tests.aws.faults import Injected, s3_error
from tests.protocol.runs import LONG_LEASE, die, forget_lease
from tests.protocol.wire import Killed, Request, Wire, once
from tests.spark.tables import WorkTable
from tests.spark.test_requests import counted
from tests.work_tables import IN_PROCESS, MakeTable

COLUMNS = pa.schema([("id", pa.string()), ("part", pa.int32()), ("name", pa.string())])
FILES, ROWS = 40, 30
Row = tuple[str, int, str]


def random_rows(seed: int = 1) -> list[Row]:
    """Rows whose keys say nothing about their file."""
    rng = np.random.default_rng(seed)
    return [(str(uuid.UUID(bytes=rng.bytes(16))), number // ROWS, f"n{number}") for number in range(FILES * ROWS)]


@pytest.fixture
def table(new_table: MakeTable) -> WorkTable:
    """40 files, each of whose key ranges meets nearly every key. They are as large as that inserts don't go to them."""
    return loaded(new_table(COLUMNS, partition_key="part"))


def loaded(table: WorkTable) -> WorkTable:
    table.load(random_rows())
    assert table.run("LoadInitial") == 0, table.last_run()
    assert len(table.snapshot().files) == FILES
    return table


class Source:
    """What the table must be like."""

    def __init__(self, table: WorkTable) -> None:
        self.table = table
        self.rows = {row[0]: row for row in random_rows()}
        self._batch = 0

    def change(self, parts: range, **settings: Any) -> tuple[int, int, str]:
        """A batch that updates a row, deletes one and inserts one in each of the partitions. How many files were searched, how many spared
        by filters (−1 where they were not asked), and what was wrong with these."""
        self._batch += 1
        found: list[tuple[str, tuple[Any, ...]]] = []
        for part in parts:
            first, second, *_ = [row for row in self.rows.values() if row[1] == part]
            changed = (first[0], part, f"changed {self._batch}")
            new = (str(uuid.UUID(int=self._batch << 64 | part << 100)), part, f"new {self._batch}")
            found += [("U", changed), ("D", second), ("I", new)]
            del self.rows[second[0]]
            self.rows |= {first[0]: changed, new[0]: new}
        self.table.cdc(found)
        assert self.table.run(**{"small_file_bytes": "0", **settings}) == 0, self.table.last_run()
        details = self.table.head().details
        said = [int(details.get(name, -1)) for name in ("files_searched", "files_spared_by_key_filters")]
        return said[0], said[1], str(details.get("key_filters_trouble", ""))

    def check(self) -> None:
        assert self.table.rows() == sorted(self.rows.values(), key=repr)
        self.table.check_folder()
        self.table.check_files()


@pytest.fixture
def source(table: WorkTable) -> Source:
    return Source(table)


def filter_keys(table: WorkTable) -> list[str]:
    """The keys of the visible objects of key filters."""
    folder = changes_folder(table.out_path)
    return [file.key for file in list_files(table.clients.s3, folder.bucket, folder.join(FOLDER).key)]


def filtered_paths(table: WorkTable) -> set[str]:
    """The data files that have a filter."""
    signed, found = signature(("id",), ("string",)), set()
    for key in filter_keys(table):
        data = read_bytes(table.clients.s3, table.out_path.bucket, key)
        assert is_filter_name(key[len(changes_folder(table.out_path).key) :])
        assert head_bytes(data) <= len(data)
        found |= {entry.path for entry in decode(data, signed)}
    return found


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


DAMAGES: dict[str, Any] = {
    "truncated in the index": lambda data: data[:100],
    "truncated in the filters": lambda data: data[:-500],
    "empty": lambda data: b"",
    "of others": lambda data: b"DMSKEYS0" + data[8:],
    "another index": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "another bit in a filter": lambda data: data[:-40] + bytes([data[-40] ^ 4]) + data[-39:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_filter_is_as_none(source: Source, damage: str) -> None:
    """Rows are right, the change says what was wrong, and the batch after it has whole filters again."""
    source.change(range(2))
    (key,) = filter_keys(source.table)
    data = read_bytes(source.table.clients.s3, "lake", key)
    write_bytes(source.table.clients.s3, "lake", key, DAMAGES[damage](data))

    searched, spared, trouble = source.change(range(2, 5))  # not what the first one wrote, whose filters are the last ones

    source.check()
    assert searched + spared >= FILES
    assert (0 < spared < FILES - 3) if damage.endswith(("a filter", "the filters")) else spared == 0
    assert key.rsplit("/")[-1] in trouble
    assert len(filtered_paths(source.table)) >= FILES
    assert source.change(range(3))[0] == 3
    source.check()


def test_filters_may_be_deleted_at_any_time(source: Source) -> None:
    """Then they are made again. Objects of others in the folder stay where they are."""
    source.change(range(2))
    s3, folder = source.table.clients.s3, changes_folder(source.table.out_path).join(FOLDER)
    for key in filter_keys(source.table):
        s3.delete_object(Bucket="lake", Key=key)
    write_bytes(s3, "lake", folder.key + "notes.txt", b"of others")

    assert source.change(range(2))[1:] == (0, "")

    source.check()
    assert source.change(range(2))[0] == 2
    source.check()
    assert s3.get_object(Bucket="lake", Key=folder.key + "notes.txt")["Body"].read() == b"of others"


@pytest.mark.parametrize(("operation", "spared"), [("ListObjectsV2", 0), ("GetObject", 0), ("PutObject", FILES - 2)])
def test_a_refused_request_for_filters_stops_nothing(source: Source, operation: str, spared: int) -> None:
    """The batch is applied, and its details say what was refused; the next one goes on with what is there."""
    source.change(range(2))
    worker = worker_s3((name, IN_PROCESS[name]) for name in CLIENT_VARIABLES if name in IN_PROCESS)

    refusing = True

    def refuse(request: Any) -> Any:
        return s3_error(403, "AccessDenied") if refusing and "key_filters" in request.url else None

    Injected(worker, operation, *[refuse] * 200)
    _, found, trouble = source.change(range(2))
    refusing = False

    source.check()
    assert (found, "AccessDenied" in trouble) == (spared, True)
    assert source.change(range(2))[0] <= 4
    source.check()


def test_a_large_index_is_read_by_two_requests_and_filters_by_more(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of the latter is refused, the files of its filters are opened."""
    source.change(range(2))
    monkeypatch.setattr(key_filters, "HEAD_BYTES", 24)
    assert source.change(range(2))[1:] == (FILES - 2, "")
    worker = worker_s3((name, IN_PROCESS[name]) for name in CLIENT_VARIABLES if name in IN_PROCESS)
    asked, of_index, refusing = 0, 2 * len(filter_keys(source.table)), True

    def refuse(request: Any) -> Any:
        nonlocal asked
        asked += "key_filters" in request.url
        return s3_error(403, "AccessDenied") if refusing and "key_filters" in request.url and asked > of_index else None

    Injected(worker, "GetObject", *[refuse] * 400)
    searched, spared, trouble = source.change(range(2))
    refusing = False

    source.check()
    assert (searched, spared, "AccessDenied" in trouble) == (FILES, 0, True)


def test_first_filters_keep_to_their_bytes_and_to_whole_files() -> None:
    """A filter without one of its file's keys would lose a change."""
    shape = Shape("t", (Column("id", "bigint"),), ("id",))
    hashes, file = np.arange(100, dtype=np.uint64), DataFile("a.parquet", 1000, 100, low=(0,), high=(9,))
    few, enough = FirstFilters(shape, 10), FirstFilters(shape, 10_000)

    few.note(file, [hashes])
    enough.note(file, [hashes[:99]])
    for number in range(16):
        enough.note(replace(file, path=f"{number}.parquet"), [hashes[:50], hashes[50:]])

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


def test_an_erase_leaves_no_filter_in_any_version(quick_table: MakeTable, tmp_path: Path) -> None:
    """Neither visible nor hidden ones: they have bits of hashes of the keys. The next batches make new ones."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    table, s3 = source.table, source.table.clients.s3
    for _ in range(2):
        source.change(range(2))
    folder = changes_folder(table.out_path).join(FOLDER)
    assert len(list(held_versions(s3, folder.bucket, folder.key))) == 2
    erased = next(row for row in source.rows.values() if row[1] == 7)
    keys = tmp_path / "keys.csv"
    keys.write_text(f"id\n{erased[0]}\n")

    assert table.run("Erase", erase_keys=str(keys)) == 0, table.item()["LastRun"]

    assert list(held_versions(s3, folder.bucket, folder.key)) == []
    del source.rows[erased[0]]
    source.check()
    assert source.change(range(2))[1] == 0
    assert source.change(range(2))[0] == 2
    source.check()


def of_filters(request: Request) -> bool:
    """Whether it writes, hides or removes an object of key filters."""
    return request.is_write and (FOLDER in request.key or FOLDER.encode() in request.body)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_may_die_where_it_writes_filters(quick_table: MakeTable, number: int, after: bool) -> None:
    """Before or after it puts the new object, or hides those that it took in: the next run does the batch, and rows are right."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    source.change(range(2))
    wire = Wire()

    def dies(forward: Any) -> Any:
        if after:
            forward()
        return wire.kill()

    wire.rule = once(of_filters, dies, skip=number)
    with wire.connected(), pytest.raises(Killed):
        source.change(range(3), lease_seconds=LONG_LEASE)
    forget_lease(source.table)

    assert source.table.run(small_file_bytes="0") == 0, source.table.last_run()
    source.check()
    assert source.change(range(2))[0] <= 4
    source.check()


@pytest.mark.parametrize("after", [False, True])
def test_an_erase_may_die_where_it_removes_filters(quick_table: MakeTable, tmp_path: Path, after: bool) -> None:
    """The item says that the erase is not over; who resumes it leaves none."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    table, s3 = source.table, source.table.clients.s3
    source.change(range(2))
    erased = next(row for row in source.rows.values() if row[1] == 7)
    keys = tmp_path / "keys.csv"
    keys.write_text(f"id\n{erased[0]}\n")
    wire = Wire()

    def dies(forward: Any) -> Any:
        if after:
            forward()
        return wire.kill()

    die(wire, table, "Erase", once(of_filters, dies), erase_keys=str(keys))

    assert "Erasing" in table.item()
    assert table.run("Erase", resume="true") == 0, table.item()["LastRun"]
    folder = changes_folder(table.out_path).join(FOLDER)
    assert list(held_versions(s3, folder.bucket, folder.key)) == []
    assert "Erasing" not in table.item()
    del source.rows[erased[0]]
    source.check()


def test_a_purge_hides_filters_too(quick_table: MakeTable) -> None:
    """They are the table's, and no foreign objects."""
    source = Source(loaded(quick_table(COLUMNS, partition_key="part")))
    source.change(range(2))
    table = source.table
    place = Place(table.clients.s3, table.clients.glue, table.state_table, table.environment["DMSLAKE_DATABASE"])
    plan = look(place, table.state(), purge=True)
    assert plan.foreign == ()

    assert table.forget(plan).code == 0

    assert filter_keys(table) == []


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
