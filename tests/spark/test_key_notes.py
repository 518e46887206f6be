"""Which rows' keys a merge hashes for key filters, and which it spares itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.key_filter import Section
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import key_notes
from glue_jobs.spark.key_filter_bits import Hashes, hashes_of, may_hold, packed
from glue_jobs.spark.key_notes import SLACK_BYTES, KeyNotes, NotedRows, Noting
from glue_jobs.spark.place import Shape
from glue_jobs.spark.stored_groups import StoredGroup

SHAPE = Shape("t", (Column("id", "bigint"),), ("id",))
PIECES = [pa.table({"id": pa.array(range(at, at + 10), pa.int64())}) for at in (0, 10)]
WRITTEN = DataFile("written.parquet", 100, 20)


def section(rows: pa.Table) -> bytes:
    """Of these rows' keys."""
    data = packed([hashes_of(rows, SHAPE)])
    assert data is not None
    return data


def hashes_in(rows: pa.Table) -> list[Hashes]:
    return [hashes_of(rows, SHAPE)]


def searched(size_bytes: int) -> DataFile:
    return DataFile("searched.parquet", size_bytes, 20)


def noted(notes: KeyNotes) -> NotedRows:
    rows = notes.of_rows()
    assert list(rows.passing(PIECES)) == PIECES
    return rows


def stored(rows: int, section: Callable[[], bytes | None], hashes: Callable[[], list[Hashes]] = list) -> StoredGroup:
    """A row group of so many rows, and what is known of its keys."""
    return StoredGroup(rows, (), (), None, hashes, section, None)  # type: ignore[arg-type]


def test_the_filter_of_what_is_written_holds_its_keys() -> None:
    notes = KeyNotes(SHAPE, Noting(1000))

    (found,) = notes.of_written([WRITTEN], noted(notes))
    several = notes.of_written([WRITTEN, WRITTEN], noted(notes))

    assert found.path == WRITTEN.path
    (only,) = found.sections
    assert only.rows == 20
    assert all(may_hold(only.data, hashes_of(piece.slice(at, 1), SHAPE)) for piece in PIECES for at in range(10))
    assert not may_hold(only.data, np.array([1, 2, 3], np.uint64))
    assert several == (), "which file took which row is not known"


def test_each_row_group_has_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows came, while they are written; a stored one that which it had."""
    monkeypatch.setattr(key_notes, "LEAST_SECTION_ROWS", 1)
    notes, group = KeyNotes(SHAPE, Noting(1000)), stored(5, lambda: b"as it was")

    with notes.of_rows() as rows:
        passing = rows.passing([*PIECES, group])
        next(passing)
        rows.cut(4, None)
        assert list(passing)[-1] is group
        for count, which in ((10, None), (6, None), (5, group)):
            rows.cut(count, which)
        (found,) = notes.of_written([replace(WRITTEN, rows=25)], rows)

    keys = pa.concat_tables(PIECES)
    expected = [Section(count, section(keys.slice(start, count))) for start, count in ((0, 4), (4, 10), (14, 6))]
    assert found.sections == (*expected, Section(5, b"as it was"))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_sections_are_of_the_keys_of_their_rows(pieces: list[tuple[int, bool]], least: int, choose: Any) -> None:
    """Of tables and stored row groups in any order, cut anywhere between these; those of few rows share a section."""
    keys = pa.table({"id": pa.array(range(sum(rows for rows, _ in pieces)), pa.int64())})
    given_, start = [], 0
    for rows, is_stored in pieces:
        table = keys.slice(start, rows)
        group = stored(rows, partial(section, table), partial(hashes_in, table))
        given_.append(group if is_stored and rows else table)
        start += rows
    with pytest.MonkeyPatch.context() as patch, KeyNotes(SHAPE, Noting(1000)).of_rows() as rows_:
        patch.setattr(key_notes, "LEAST_SECTION_ROWS", least)
        waiting = 0
        for piece in rows_.passing(given_):
            if isinstance(piece, StoredGroup):
                if waiting:
                    rows_.cut(waiting, None)
                rows_.cut(piece.rows, piece)
                waiting = 0
            else:
                waiting += piece.num_rows
                written = choose.randint(0, waiting)
                if written:
                    rows_.cut(written, None)
                waiting -= written
        if waiting:
            rows_.cut(waiting, None)
        found = rows_.sections(keys.num_rows)

    if not keys.num_rows:
        assert found is None
        return
    assert found is not None
    assert sum(each.rows for each in found) == keys.num_rows
    start = 0
    for each in found:
        assert each.data == section(keys.slice(start, each.rows))
        start += each.rows


def refused() -> bytes:
    raise TableBlocked("s3://lake/a.parquet is gone", "data-file-gone", "")


@pytest.mark.parametrize("asked", [lambda: None, refused])
def test_a_stored_row_group_without_a_section_leaves_the_file_without_a_filter(
    monkeypatch: pytest.MonkeyPatch, asked: Callable[[], bytes | None]
) -> None:
    """Of its keys nothing would be known. The rows are written all the same."""
    monkeypatch.setattr(key_notes, "LEAST_SECTION_ROWS", 1)
    notes, group = KeyNotes(SHAPE, Noting(1000)), stored(5, asked)

    with notes.of_rows() as rows:
        list(rows.passing([*PIECES, group]))
        rows.cut(20, None)
        rows.cut(5, group)
        assert notes.of_written([replace(WRITTEN, rows=25)], rows) == ()


def test_who_fails_while_a_section_is_made_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may ask S3, and nothing is to go on unseen."""
    monkeypatch.setattr(key_notes, "LEAST_SECTION_ROWS", 1)
    begun, may_end, done = threading.Event(), threading.Event(), []

    def section() -> bytes:
        begun.set()
        assert may_end.wait(60)
        done.append("section")
        return b""

    group = stored(5, section)
    leave = ThreadPoolExecutor.shutdown

    def left(self: ThreadPoolExecutor, wait: bool = True, **words: Any) -> None:
        may_end.set()
        leave(self, wait=wait, **words)
        done.append("left")

    def fail() -> None:
        with KeyNotes(SHAPE, Noting(1000)).of_rows() as rows:
            list(rows.passing([group]))
            rows.cut(5, group)
            assert begun.wait(60)
            monkeypatch.setattr(ThreadPoolExecutor, "shutdown", left)
            raise OSError("the upload fails")

    with pytest.raises(OSError, match="upload"):
        fail()

    assert done == ["section", "left"]


@pytest.mark.parametrize("noting", [Noting(), Noting(1000)])
def test_nothing_is_asked_of_a_stored_row_group_where_no_filter_is_made(monkeypatch: pytest.MonkeyPatch, noting: Noting) -> None:
    """Its keys would be read for nothing, or its section."""
    asked: list[str] = []

    def asked_for(what: str) -> Any:
        asked.append(what)

    large = stored(5, partial(asked_for, "section"), partial(asked_for, "hashes"))
    small = replace(large, rows=1)
    monkeypatch.setattr(key_notes, "LEAST_SECTION_ROWS", 2)
    notes = KeyNotes(SHAPE, noting)
    notes.count_hit(searched(SLACK_BYTES + 1))

    with notes.of_rows() as rows:
        list(rows.passing([*PIECES, large, small]))
        rows.cut(20, None)
        rows.cut(5, large)
        rows.cut(1, small)
        assert notes.of_written([replace(WRITTEN, rows=26)], rows) == ()

    assert asked == []


@pytest.mark.parametrize("written", [DataFile("written.parquet", 100, 19), DataFile("written.parquet", 100, 21)])
def test_a_file_of_other_rows_than_were_noted_has_no_filter(written: DataFile) -> None:
    """It would lack a key, and a change would be lost."""
    notes = KeyNotes(SHAPE, Noting(1000))
    with notes.of_rows() as in_groups:
        list(in_groups.passing(PIECES))
        in_groups.cut(written.rows, None)
        assert notes.of_written([written], in_groups) == ()

    assert notes.of_written([written], noted(notes)) == ()


def test_rows_of_which_some_are_not_noted_make_no_filter() -> None:
    """Also if later ones would be again."""
    notes = KeyNotes(SHAPE, Noting(1000))
    rows = notes.of_rows()
    passing = rows.passing([*PIECES, *PIECES])
    next(passing)
    notes.count_hit(searched(SLACK_BYTES + 1))
    next(passing)
    notes.count_hit(searched(-SLACK_BYTES))
    list(passing)

    assert notes.of_written([replace(WRITTEN, rows=40)], rows) == ()


@pytest.mark.parametrize("noting", [Noting(), Noting(10)])
def test_no_more_bytes_of_filters_than_said(noting: Noting) -> None:
    notes = KeyNotes(SHAPE, noting)

    assert notes.of_written([WRITTEN], noted(notes)) == ()


def test_a_large_file_with_a_changed_key_ends_the_hashing() -> None:
    """Nearly all of the few large ones have one then, and the filters would not be kept. Files that were spared speak against it."""
    notes, others = KeyNotes(SHAPE, Noting(1000)), KeyNotes(SHAPE, Noting(1000, spared_bytes=SLACK_BYTES))
    for each in (notes, others):
        each.count_hit(searched(SLACK_BYTES + 1))

    assert len(noted(notes)._hashes) == 0
    assert len(noted(others)._hashes) == 20
    others.count_hit(searched(SLACK_BYTES))
    assert len(noted(others)._hashes) == 0


def test_rows_too_many_for_a_filter_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = KeyNotes(SHAPE, Noting(1000))
    monkeypatch.setattr(key_notes, "MOST_FILE_ROWS", 19)

    rows = noted(notes)

    assert len(rows._hashes) == 0
    assert notes.of_written([WRITTEN], rows) == ()
