"""Which rows' keys a merge hashes for key filters, and which it spares itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import key_notes
from glue_jobs.spark.key_filter_bits import hashes_of, may_hold
from glue_jobs.spark.key_notes import SLACK_BYTES, KeyNotes, NotedRows, Noting
from glue_jobs.spark.place import Shape

SHAPE = Shape("t", (Column("id", "bigint"),), ("id",))
PIECES = [pa.table({"id": pa.array(range(at, at + 10), pa.int64())}) for at in (0, 10)]
WRITTEN = DataFile("written.parquet", 100, 20)


def searched(size_bytes: int) -> DataFile:
    return DataFile("searched.parquet", size_bytes, 20)


def noted(notes: KeyNotes) -> NotedRows:
    rows = notes.of_rows()
    assert list(rows.passing(PIECES)) == PIECES
    return rows


def test_the_filter_of_what_is_written_holds_its_keys() -> None:
    notes = KeyNotes(SHAPE, Noting(1000))
    rows = noted(notes)

    (found,) = notes.of_written([WRITTEN], rows)

    assert found.path == WRITTEN.path
    assert all(may_hold(found.data, hashes_of(piece.slice(at, 1), SHAPE)) for piece in PIECES for at in range(10))
    assert not may_hold(found.data, np.array([1, 2, 3], np.uint64))
    assert notes.of_written([WRITTEN, WRITTEN], rows) == (), "which file took which row is not known"


def test_a_filter_that_is_made_beside_the_writing_is_the_same() -> None:
    notes, beside = KeyNotes(SHAPE, Noting(1000)), KeyNotes(SHAPE, Noting(1000))
    rows = beside.of_rows()
    assert list(rows.passing_all(PIECES)) == PIECES

    assert beside.of_written([WRITTEN], rows) == notes.of_written([WRITTEN], noted(notes)) != ()


@pytest.mark.parametrize("written", [DataFile("written.parquet", 100, 19), DataFile("written.parquet", 100, 21)])
def test_a_file_of_other_rows_than_were_noted_has_no_filter(written: DataFile) -> None:
    """It would lack a key, and a change would be lost."""
    notes = KeyNotes(SHAPE, Noting(1000))
    beside = notes.of_rows()
    list(beside.passing_all(PIECES))

    assert notes.of_written([written], noted(notes)) == ()
    assert notes.of_written([written], beside) == ()


def test_rows_of_which_some_are_not_noted_make_no_filter() -> None:
    notes = KeyNotes(SHAPE, Noting(1000))
    beside = notes.of_rows()
    passing = beside.passing_all(PIECES)
    next(passing)
    notes.count_hit(searched(SLACK_BYTES + 1))
    list(passing)

    assert notes.of_written([WRITTEN], beside) == ()


@pytest.mark.parametrize("noting", [Noting(), Noting(10)])
def test_no_more_bytes_of_filters_than_said(noting: Noting) -> None:
    notes = KeyNotes(SHAPE, noting)

    assert notes.of_written([WRITTEN], noted(notes)) == ()


def test_a_large_file_with_a_changed_key_ends_the_hashing() -> None:
    """Nearly all of the few large ones have one then, and the filters would not be kept. Files that were spared speak against it."""
    notes, others = KeyNotes(SHAPE, Noting(1000)), KeyNotes(SHAPE, Noting(1000, spared_bytes=SLACK_BYTES))
    for each in (notes, others):
        each.count_hit(searched(SLACK_BYTES + 1))

    assert noted(notes).hashes == []
    assert len(noted(others).hashes) == 2
    others.count_hit(searched(SLACK_BYTES))
    assert noted(others).hashes == []


def test_rows_too_many_for_a_filter_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = KeyNotes(SHAPE, Noting(1000))
    monkeypatch.setattr(key_notes, "MOST_FILE_ROWS", 19)

    rows = noted(notes)

    assert rows.hashes == []
    assert notes.of_written([WRITTEN], rows) == ()
