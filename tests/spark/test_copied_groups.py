"""Batches over large files: the row groups that no change meets are copied, whatever happens meanwhile."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import moto.s3.models
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws import multipart_writer
from glue_jobs.aws.objects import file_changed, read_bytes
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.spark import open_file
from glue_jobs.spark.data_file_reader import read_data_file
from glue_jobs.spark.group_search import GroupSearch
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape
from glue_jobs.spark.stored_groups import StoredGroup, described_groups, footer_of
from tests.protocol.runs import die, run_on
from tests.protocol.wire import Request, Wire, once
from tests.spark.row_groups import make_small_groups
from tests.spark.tables import WorkTable
from tests.spark.test_stored_groups import SCHEMA, rows
from tests.work_tables import MakeTable

OURS = "0000000001-000001-0000000a-00000.parquet"
IN_PIECES = {"stream_file_bytes": "0", "small_file_bytes": "0"}


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small_groups(monkeypatch)


@pytest.fixture(params=[False, True], ids=["sent", "copied"])
def by_s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether S3 copies small row groups too; else they are read and sent."""
    if request.param:
        monkeypatch.setattr(multipart_writer, "MIN_PART_BYTES", 1)
        monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    return bool(request.param)


@pytest.fixture
def table(new_table: MakeTable, small_groups: None) -> WorkTable:
    return filled(new_table())


def filled(table: WorkTable) -> WorkTable:
    """With one data file of ten row groups of 50 rows."""
    table.load([(number, "old", 0) for number in range(500)])
    table.sync(**IN_PIECES)
    assert [file.rows for file in table.snapshot().files.values()] == [500]
    return table


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The row groups of which more was decoded than keys."""
    numbers: list[int] = []
    read = open_file.read_rows

    def noted(parquet: Any, columns: Any, name: str = "", groups: Any = None, **named: Any) -> Iterator[pa.Table]:
        if columns != ["id"]:
            numbers.extend(range(parquet.num_row_groups) if groups is None else groups)
        return read(parquet, columns, name, groups=groups, **named)

    monkeypatch.setattr(open_file, "read_rows", noted)
    return numbers


def pages(table: WorkTable) -> list[bytes]:
    """The bytes of each row group of the table's only file."""
    (path,) = table.snapshot().files
    data = read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + path)
    groups = described_groups(footer_of(read_data_file(io.BytesIO(data)).metadata))
    return [data[group.start : group.stop] for group in groups.values()]


def test_only_the_row_groups_with_changed_keys_are_decoded(
    table: WorkTable, decoded: list[int], by_s3: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, copies, copy = pages(table), [], multipart_writer.copy_part
    monkeypatch.setattr(multipart_writer, "copy_part", lambda *words: copies.append(words) or copy(*words))
    table.cdc([("U", (120, "new", 1)), ("D", (130, "", 0)), ("U", (499, "new", 1)), ("I", (1000, "new", 1))])

    table.sync(**IN_PIECES)

    assert decoded == [2, 9]
    assert table.counts() == (1, 2, 1)
    expected = {number: (number, "old", 0) for number in range(500) if number != 130} | {120: (120, "new", 1), 499: (499, "new", 1)}
    assert sorted(table.rows()) == [*sorted(expected.values()), (1000, "new", 1)]
    assert sorted(file.rows for file in table.snapshot().files.values()) == [1, 499]
    table.check_files()
    table.check_folder()
    kept = [page for number, page in enumerate(before) if number not in (2, 9)]
    larger = max(table.snapshot().files.values(), key=lambda file: file.rows)
    data = read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + larger.path)
    assert all(page in data for page in kept)
    assert len(copies) == (len(kept) if by_s3 else 0)


def test_a_file_without_a_changed_key_stays(table: WorkTable, decoded: list[int]) -> None:
    files = set(table.snapshot().files)
    table.cdc([("D", (number, "", 0)) for number in (-5, 1000)])

    table.sync(**IN_PIECES)

    assert decoded == []
    assert set(table.snapshot().files) == files


def test_a_row_group_whose_rows_all_go_is_no_more(table: WorkTable) -> None:
    before = pages(table)
    table.cdc([("D", (number, "", 0)) for number in range(50, 100)])

    table.sync(**IN_PIECES)

    assert pages(table) == [before[0], *before[2:]]
    table.check_files()


def test_a_column_that_comes_has_all_row_groups_decoded(table: WorkTable, decoded: list[int]) -> None:
    """Those that stand there do not have it."""
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int32()), ("more", pa.string())])
    table.cdc([("U", (120, "new", 1, "more"))], columns=columns)

    table.sync(**IN_PIECES)

    assert sorted(set(decoded)) == list(range(10))
    assert sorted(row for row in table.rows() if row[3]) == [(120, "new", 1, "more")]
    table.check_files()


def test_small_row_groups_are_decoded_and_come_together(table: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often their neighbour grows, there are not more and more of them."""
    least = len(pages(table)[0]) // 2
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", least)
    for turn in range(12):
        table.cdc([("U", (120, f"{'new' * turn}", turn))])
        table.sync(**IN_PIECES)

    sizes = [len(page) for page in pages(table)]
    assert len(sizes) == 10
    assert table.read().num_rows == 500


def gone(*_: Any) -> Exception:
    return OSError("the connection was lost")


def other(key: str) -> Exception:
    return file_changed(f"s3://lake/{key}", expected="the file of the record", found="another one")


def refused(*_: Any) -> Any:
    raise ClientError({"Error": {"Code": "PreconditionFailed", "Message": "injected"}}, "UploadPartCopy")


@pytest.mark.parametrize(("trouble", "code"), [(gone, ""), (other, "data-file-changed")], ids=["lost", "changed"])
def test_a_copy_that_breaks_off_leaves_nothing_behind(
    table: WorkTable, by_s3: bool, monkeypatch: pytest.MonkeyPatch, trouble: Callable[[str], Exception], code: str
) -> None:
    """Whether the connection is lost, or somebody overwrites the file, which a person has to look at; a later run takes the batch. Where S3
    copies, it refuses, and why is seen by reading."""
    before = table.visible()
    table.cdc([("U", (120, "new", 1))])
    read, spans = open_file.read_bytes, []

    def fails(s3: Any, bucket: str, key: str, *more: Any) -> bytes:
        spans.append(more)
        if len(spans) == 6:
            raise trouble(key)
        return read(s3, bucket, key, *more)

    with monkeypatch.context() as patch:
        patch.setattr(open_file, "read_bytes", fails)
        patch.setattr(multipart_writer, "copy_part", refused)
        assert table.run(**IN_PIECES) != 0

    assert len(spans) >= 6
    assert table.last_run()["error"]["code"] == code or not code
    assert table.open_uploads() == []
    assert table.visible() == before
    if code:
        table.remove("Blocked")
    table.sync(**IN_PIECES)
    assert [row for row in table.rows() if row[1] == "new"] == [(120, "new", 1)]
    table.check_files()
    table.check_folder()


def of_data_file(table: WorkTable, request: Request) -> bool:
    return request.key.startswith(table.out_path.key) and request.key.endswith(".parquet")


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("after", [False, True])
def test_a_batch_may_die_at_each_request_of_a_copy(quick_table: MakeTable, by_s3: bool, after: bool) -> None:
    """Before it is sent, or after it took effect: readers see nothing, and the next run takes the batch."""
    table, wire = filled(quick_table()), Wire()

    def is_work(request: Request) -> bool:
        sent = ("GetObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy")
        return of_data_file(table, request) and request.operation in sent

    table.cdc([("U", (120, "new", 0))])
    assert run_on(wire, table, "LoadIncremental", **IN_PIECES) == 0
    many = len([request for request in wire.requests if is_work(request)])
    assert (len(wire.of("UploadPartCopy")) == 9) == by_s3
    assert many >= 9 + 3, "the footer, nine row groups, the upload and its part"

    for number in range(many):
        before, dying = table.visible(), Wire()
        table.cdc([("U", (120, "new", number + 1))])

        def dies(forward: Any, dying: Wire = dying) -> Any:
            if after:
                forward()
            return dying.kill()

        die(dying, table, "LoadIncremental", once(is_work, dies, skip=number), **IN_PIECES)

        assert table.visible() == before
        table.sync(**IN_PIECES)
        assert [row for row in table.rows() if row[1] == "new"] == [(120, "new", number + 1)]
        table.check_folder()
    table.check_files()


def opened_in_pieces(*pieces: pa.Table, path: str = OURS, **options: Any) -> OpenFile:
    """A file with these row groups."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pieces[0].schema, **{"store_schema": False, **options}) as writer:
        for piece in pieces:
            writer.write_table(piece)
    size, place = len(sink.getvalue()), SimpleNamespace(lake=S3Uri("lake", "t/"), limits=Limits(stream_file_bytes=0))
    parquet = read_data_file(io.BytesIO(sink.getvalue()), streamed=True)
    count = sum(piece.num_rows for piece in pieces)
    return OpenFile(place, Shape("t", SCHEMA, ("n",)), DataFile(path, size, count), parquet, whole=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("category", [None, "n", "text"])
@pytest.mark.parametrize("says_types", [True, False], ids=["says its types", "does not"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_of_another_programs_file_no_dictionary_is_copied_that_may_have_what_no_row_has(
    monkeypatch: pytest.MonkeyPatch, category: str | None, says_types: bool, use_dictionary: bool
) -> None:
    """Arrow writes all of a category into each row group. Which columns were one stands in the file, if its writer put it there."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    table = rows(0, 20)
    for name in [category] if category else []:
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    options = {"store_schema": says_types, "use_dictionary": use_dictionary}

    opened = opened_in_pieces(table.slice(0, 10), table.slice(10), path="part-00000.parquet", **options)

    assert (len(opened.storable) == 2) == (not (category if says_types else use_dictionary))


def test_a_file_with_an_empty_row_group_is_not_taken_for_one_with_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be written anew for nothing."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    opened = opened_in_pieces(rows(0, 10), rows(0, 0), rows(10, 20))
    found = GroupSearch(opened, ["n"], lambda _: False)

    assert not found.has_hits()
    assert [run.rows if isinstance(run, StoredGroup) else run for run in found.runs()] == [10, [1], 10]
    assert GroupSearch(opened, ["n"], lambda keys: 15 in keys["n"].to_pylist()).has_hits()


@pytest.mark.parametrize(
    ("told", "runs", "searched"),
    [
        ((), [10, [1], 10], [0, 1, 2]),
        ((False, True, False), [10, [1], 10], []),
        ((False, None, None), [10, [1], 10], [1, 2]),
        ((True, None, False), [[0, 1], 10], [1]),
        ((True, False, False), [[0], 10, 10], []),  # as it says, so it is: it may say that a key is there that is not
    ],
)
def test_a_row_group_is_searched_only_where_its_keys_are_not_known(
    monkeypatch: pytest.MonkeyPatch, told: tuple[bool | None, ...], runs: list[Any], searched: list[int]
) -> None:
    """What the file's key filter says needs no reading of keys."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    looked_at: list[int] = []

    def has_hit(keys: pa.Table) -> bool:
        looked_at.append(keys["n"][0].as_py() // 10)
        return 15 in keys["n"].to_pylist()

    opened = opened_in_pieces(rows(0, 10), rows(10, 20), rows(20, 30))
    bounded = replace(opened, file=replace(opened.file, low=(0,), high=(29,)))
    found = list(GroupSearch(bounded, ["n"], has_hit, told).runs())

    assert [run.rows if isinstance(run, StoredGroup) else run for run in found] == runs
    assert sorted(looked_at) == searched


@pytest.mark.parametrize(
    ("low", "high", "is_searched"),
    [((0,), (29,), False), ((0,), None, True), (None, (29,), True), ((), (29,), True)],
)
def test_a_row_group_that_goes_as_it_stands_has_a_key_range_around_its_keys(
    monkeypatch: pytest.MonkeyPatch, low: Any, high: Any, is_searched: bool
) -> None:
    """That of the file; where its record has not the whole of it, that of the keys, which are read: a range too narrow loses a change."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    opened = opened_in_pieces(rows(0, 10), rows(10, 20), rows(20, 30))
    bounded = replace(opened, file=replace(opened.file, low=low, high=high))

    first, *_ = GroupSearch(bounded, ["n"], lambda _: False, (False, True, True)).runs()

    assert isinstance(first, StoredGroup)
    assert (first.low, first.high) == (((0,), (9,)) if is_searched else ((0,), (29,)))


@pytest.mark.parametrize("primary_key", ["id", "name", "name,id"])
@pytest.mark.parametrize("seed", range(3))
def test_the_lake_table_is_the_source_table_whatever_is_copied(
    new_table: MakeTable, small_groups: None, by_s3: bool, monkeypatch: pytest.MonkeyPatch, primary_key: str, seed: int
) -> None:
    """Batches near each other and far apart, keys in the file's order and in none, with key filters where those are made."""
    choose = random.Random(seed)
    stored: list[int] = []
    as_stored = GroupSearch._stored
    monkeypatch.setattr(GroupSearch, "_stored", lambda self, number, found: (stored.append(number), as_stored(self, number, found))[1])
    table = new_table(primary_key=primary_key)
    source = {number: (number, f"{number * 7919 % 400:03}", 0) for number in range(400)}
    table.load(list(source.values()))
    table.sync(**IN_PIECES)
    for turn in range(6):
        start, spread = choose.randrange(400), choose.choice([5, 40, 400])
        for number in {choose.randrange(start, start + spread) for _ in range(choose.randint(1, 12))}:
            if number in source and choose.random() < 0.4:
                table.cdc([("D", source.pop(number))])
            else:
                row = (number, f"{number * 7919 % 400:03}" if number < 400 else f"x{number}", turn + 1)
                table.cdc([("U" if number in source else "I", row)])
                source[number] = row

        table.sync(**{**IN_PIECES, "small_file_bytes": choose.choice(["0", "1000000"])})

        assert sorted(table.rows()) == sorted(source.values())
        table.check_files()
        table.check_folder()
    assert stored
