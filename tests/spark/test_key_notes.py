"""Which rows' keys a merge hashes for key filters, and which it spares itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import key_notes
from glue_jobs.spark.key_filter_bits import hashes_of, may_hold, packed
from glue_jobs.spark.key_notes import SLACK_BYTES, KeyNotes, NotedRows, Noting
from glue_jobs.spark.place import Shape
from glue_jobs.spark.stored_groups import StoredGroup

SHAPE = Shape("t", (Column("id", "bigint"),), ("id",))
PIECES = [pa.table({"id": pa.array(range(at, at + 10), pa.int64())}) for at in (0, 10)]
WRITTEN = DataFile("written.parquet", 100, 20)


def searched(size_bytes: int) -> DataFile:
    return DataFile("searched.parquet", size_bytes, 20)


def noted(notes: KeyNotes) -> NotedRows:
    rows = notes.of_rows()
    assert list(rows.passing(PIECES)) == PIECES
    return rows


def stored(rows: int, data: bytes | None) -> StoredGroup:
    """A row group of so many rows, of whose keys this is kept."""
    return StoredGroup(rows, (), (), None, lambda: data, None)  # type: ignore[arg-type]


def test_the_filter_of_what_is_written_holds_its_keys() -> None:
    notes = KeyNotes(SHAPE, Noting(1000))

    (found,) = notes.of_written([WRITTEN], noted(notes))
    several = notes.of_written([WRITTEN, WRITTEN], noted(notes))

    assert found.path == WRITTEN.path
    (section,) = found.sections
    assert section.rows == 20
    assert all(may_hold(section.data, hashes_of(piece.slice(at, 1), SHAPE)) for piece in PIECES for at in range(10))
    assert not may_hold(section.data, np.array([1, 2, 3], np.uint64))
    assert several == (), "which file took which row is not known"


@pytest.mark.parametrize(("least", "sections"), [(1, [4, 10, 6, 5]), (7, [14, 6, 5])])
def test_each_row_group_has_a_section(monkeypatch: pytest.MonkeyPatch, least: int, sections: list[int]) -> None:
    """However rows came, while they are written; a stored one that which it had. Those of few rows share one."""
    monkeypatch.setattr(key_notes, "LEAST_SECTION_ROWS", least)
    notes, group = KeyNotes(SHAPE, Noting(1000)), stored(5, b"as it was")

    with notes.of_rows() as rows:
        passing = rows.passing([*PIECES, group])
        next(passing)
        rows.cut(4, None)
        assert list(passing)[-1] is group
        for count, which in ((10, None), (6, None), (5, group)):
            rows.cut(count, which)
        (found,) = notes.of_written([replace(WRITTEN, rows=25)], rows)

    assert [each.rows for each in found.sections] == sections
    assert found.sections[-1].data == b"as it was"
    keys = pa.concat_tables(PIECES)
    start = 0
    for each in found.sections[:-1]:
        assert each.data == packed([hashes_of(keys.slice(start, each.rows), SHAPE)])
        start += each.rows


def test_a_stored_row_group_without_a_section_leaves_the_file_without_a_filter() -> None:
    """Of its keys nothing would be known."""
    notes, group = KeyNotes(SHAPE, Noting(1000)), stored(5, None)

    with notes.of_rows() as rows:
        list(rows.passing([*PIECES, group]))
        rows.cut(20, None)
        rows.cut(5, group)
        assert notes.of_written([replace(WRITTEN, rows=25)], rows) == ()


@pytest.mark.parametrize("noting", [Noting(), Noting(1000)])
def test_nothing_is_asked_of_a_stored_row_group_where_no_filter_is_made(noting: Noting) -> None:
    """Its keys would be read for nothing."""
    asked: list[int] = []
    group = replace(stored(5, None), key_filter=lambda: asked.append(1))
    notes = KeyNotes(SHAPE, noting)
    notes.count_hit(searched(SLACK_BYTES + 1))

    with notes.of_rows() as rows:
        list(rows.passing([*PIECES, group]))
        rows.cut(20, None)
        rows.cut(5, group)
        assert notes.of_written([replace(WRITTEN, rows=25)], rows) == ()

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

    assert noted(notes).held == 0
    assert noted(others).held == 20
    others.count_hit(searched(SLACK_BYTES))
    assert noted(others).held == 0


def test_rows_too_many_for_a_filter_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = KeyNotes(SHAPE, Noting(1000))
    monkeypatch.setattr(key_notes, "MOST_FILE_ROWS", 19)

    rows = noted(notes)

    assert rows.held == 0
    assert notes.of_written([WRITTEN], rows) == ()
