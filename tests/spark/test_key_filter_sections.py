"""Key filters of large files: which row groups are decoded, whose keys are read, and what is kept of those that are copied."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.objects import write_bytes
from glue_jobs.core import key_filter
from glue_jobs.core.key_filter import Answer
from glue_jobs.core.paths import changes_folder
from glue_jobs.spark import key_notes, open_file
from glue_jobs.spark.key_notes import KeyNotes, NotingFile
from glue_jobs.spark.open_file import OpenFile
from tests.spark.filtered_tables import COLUMNS, Row, check_filters, filter_keys, filters
from tests.spark.row_groups import make_small_groups
from tests.spark.tables import WorkTable
from tests.spark.test_requests import counted
from tests.work_tables import MakeTable

FILES, ROWS, GROUP = 4, 500, 50
IN_PIECES = {"stream_file_bytes": "0", "small_file_bytes": "0"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four files of ten row groups are worth filters, and each row group a section."""
    make_small_groups(monkeypatch, GROUP)
    monkeypatch.setattr(key_filter, "LEAST_BYTES", 1)
    for module in (key_filter, key_notes):
        monkeypatch.setattr(module, "LEAST_SECTION_ROWS", 1)


@pytest.fixture
def source() -> list[Row]:
    rng = np.random.default_rng(4)
    return [(str(uuid.UUID(bytes=rng.bytes(16))), number // ROWS, f"n{number}") for number in range(FILES * ROWS)]


@pytest.fixture
def table(new_table: MakeTable, source: list[Row]) -> WorkTable:
    table = new_table(COLUMNS, partition_key="part")
    table.load(source)
    assert table.run("LoadInitial") == 0, table.last_run()
    assert [file.rows for file in table.snapshot().files.values()] == [ROWS] * FILES
    return table


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[bool, int]]]:
    """What is read of files: whether only keys are, and of which row group."""
    found: list[tuple[bool, int]] = []
    read_rows = open_file.read_rows

    def noted(parquet: Any, columns: Any, name: str = "", groups: Any = None, **named: Any) -> Any:
        found.extend((columns == ["id"], number) for number in (range(parquet.num_row_groups) if groups is None else groups))
        return read_rows(parquet, columns, name, groups=groups, **named)

    monkeypatch.setattr(open_file, "read_rows", noted)
    return found


def change(table: WorkTable, *rows: tuple[str, Row]) -> None:
    table.cdc(list(rows))
    assert table.run(**IN_PIECES) == 0, table.last_run()


def in_order(table: WorkTable, source: list[Row], part: int) -> list[Row]:
    """The rows of the part's file: a load sorts them by key."""
    return sorted(row for row in source if row[1] == part)


def test_keys_are_read_once_and_then_only_what_changes(table: WorkTable, source: list[Row], read: list[tuple[bool, int]]) -> None:
    """The first batch reads keys, because nothing is known. From the second on only the row groups with a changed key are read; of what is
    copied the filter is kept."""
    rows = in_order(table, source, 1)
    change(table, ("D", rows[255]))
    assert {is_keys for is_keys, _ in read} == {True, False}
    assert len(filters(table)) == FILES
    check_filters(table)
    gone = [rows[255]]

    for groups in ((3,), (3, 7), (9,)):
        read.clear()
        picked = [rows[GROUP * number + 10 + len(gone)] for number in groups]
        change(table, *(("D", row) for row in picked))
        gone += picked

        assert read == [(False, number) for number in groups]
        assert table.counts() == (0, 0, len(groups))
        assert table.rows() == sorted((row for row in source if row not in gone), key=repr)
        assert [len(each.sections) for each in filters(table) if each.path in table.snapshot().files] == [10] * FILES
        check_filters(table)
    table.check_files()
    table.check_folder()


def test_a_new_row_is_in_the_filter_of_the_file_that_it_goes_to(table: WorkTable, source: list[Row]) -> None:
    """A change of it is not lost."""
    rows, new = in_order(table, source, 2), (str(uuid.UUID(int=7)), 2, "new")
    change(table, ("D", rows[255]))
    change(table, ("I", new), ("U", (*rows[120][:2], "changed")))

    change(table, ("U", (*new[:2], "newer")), ("U", (*rows[120][:2], "again")))

    assert table.counts() == (0, 2, 0)
    expected = {row[0]: row for row in source if row != rows[255]} | {new[0]: (*new[:2], "newer"), rows[120][0]: (*rows[120][:2], "again")}
    assert table.rows() == sorted(expected.values(), key=repr)
    check_filters(table)


LOSSES: dict[str, Callable[[Answer], Answer]] = {
    "gone": lambda answer: replace(answer, key=answer.key + "x"),
    "another object": lambda answer: replace(answer, etag="0" * 32),
    # S3 never has them under the same ETag: here the checksum is another one.
    "other bytes": lambda answer: replace(answer, spans=tuple(replace(span, crc=span.crc ^ 1) for span in answer.spans)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_a_filter_no_longer_tells_is_read_from_the_file(
    table: WorkTable, source: list[Row], read: list[tuple[bool, int]], monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Between the search and the writing an object of filters may be removed or replaced: the new one is the same."""
    rows = in_order(table, source, 1)
    change(table, ("D", rows[255]))
    read.clear()
    watch = KeyNotes.watch

    def watched(self: KeyNotes, opened: OpenFile) -> OpenFile:
        found = watch(self, opened)
        return replace(found, answer=LOSSES[loss](found.answer)) if isinstance(found, NotingFile) and found.answer else found

    monkeypatch.setattr(KeyNotes, "watch", watched)

    change(table, ("D", rows[220]))

    assert sorted(read) == [(False, 4), *((True, number) for number in range(10) if number != 4)]
    assert [len(each.sections) for each in filters(table) if each.path in table.snapshot().files] == [10] * FILES
    check_filters(table)
    assert table.rows() == sorted((row for row in source if row not in (rows[255], rows[220])), key=repr)


def test_filters_of_an_older_program_are_as_none(table: WorkTable, source: list[Row], in_process: Clients) -> None:
    """They had no sections. They are not asked, nothing is wrong with them, and the batch takes their place."""
    rows = in_order(table, source, 1)
    change(table, ("D", rows[255]))
    (key,) = filter_keys(table)
    data = key_filter.encode(key_filter.signature(("id",), ("string",)).replace("[2", "[1", 1), filters(table))
    write_bytes(table.clients.s3, "lake", key, data)
    assert key_filter.decode(data, key_filter.signature(("id",), ("string",))) == ()

    change(table, ("D", rows[256]))

    assert table.head().details["files_spared_by_key_filters"] == 0
    assert "key_filters_trouble" not in table.head().details
    assert len(filter_keys(table)) == 1
    assert len(filters(table)) == FILES
    assert table.counts() == (0, 0, 1)


def test_a_batch_asks_for_a_part_of_the_filter_of_what_it_copies(table: WorkTable, source: list[Row], in_process: Clients) -> None:
    """And for nothing else of it: the object has filters of other files too."""
    rows = in_order(table, source, 1)
    change(table, ("D", rows[255]))
    folder = changes_folder(table.out_path).key

    with counted(in_process) as requests:
        change(table, ("D", rows[220]))

    asked = [key for operation, key in requests if operation == "GetObject" and key.startswith(folder) and key.endswith(".keys")]
    assert len(asked) == 2, "the small object as a whole, and the sections of the row groups that are copied"


def test_small_row_groups_share_a_section_and_are_searched(
    table: WorkTable, source: list[Row], read: list[tuple[bool, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of which the filter does not say which of them holds the key. They are copied as well, and the filter is whole."""
    for module in (key_filter, key_notes):
        monkeypatch.setattr(module, "LEAST_SECTION_ROWS", 2 * GROUP)
    rows = in_order(table, source, 1)
    change(table, ("D", rows[255]))
    read.clear()

    change(table, ("D", rows[220]))

    asked = sorted({number for is_keys, number in read if is_keys})
    assert [number for is_keys, number in read if not is_keys] == [4]
    assert 4 in asked
    assert table.rows() == sorted((row for row in source if row not in (rows[255], rows[220])), key=repr)
    check_filters(table)
    assert {sum(each.rows for each in one.sections) for one in filters(table)} <= {ROWS, ROWS - 1, ROWS - 2}


@pytest.mark.parametrize(("primary_key", "collation"), [("id,name", ""), ("name,id", ""), ("id", "ci")])
def test_row_groups_are_told_apart_by_any_key(new_table: MakeTable, source: list[Row], primary_key: str, collation: str) -> None:
    """Of several columns, and where texts compare by a collation."""
    table = new_table(COLUMNS, partition_key="part", primary_key=primary_key)
    table.edit(KeyCollation=collation)
    names = list(np.random.default_rng(5).permutation(len(source)))
    left = [(row[0], row[1], f"{names[at]:06}") for at, row in enumerate(source)]
    table.load(left)
    assert table.run("LoadInitial") == 0, table.last_run()
    for at in (700, 100, 1900, 1100):
        gone = left.pop(at)
        change(table, ("D", (gone[0].upper(), *gone[1:]) if collation else gone))
        assert table.counts() == (0, 0, 1)
        assert table.rows() == sorted(left, key=repr)
        assert table.head().details["files_searched"] in (1, FILES)
    assert table.head().details["files_searched"] == 1
    table.check_files()


def test_keys_whose_range_the_record_has_not_whole_are_found(new_table: MakeTable, source: list[Row]) -> None:
    """Of keys of more than 256 bytes a range may have no end. Their row groups are searched, and copied with a range that holds them."""
    table = new_table(COLUMNS, partition_key="part")
    left = [("ü" * 200 + row[0], *row[1:]) for row in source]
    table.load(left)
    assert table.run("LoadInitial") == 0, table.last_run()
    for at in (700, 100, 1900, 700):
        change(table, ("D", left.pop(at)))
        assert table.counts() == (0, 0, 1)
        assert table.rows() == sorted(left, key=repr)
    table.check_files()
