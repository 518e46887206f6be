"""Where keys are random, a batch also joins small files that key filters spared it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from glue_jobs.core.key_filter import ROW_BYTES
from glue_jobs.spark.key_filter_bits import packed
from glue_jobs.spark.key_filters import JOINED_SHARE, Search
from tests.spark.filtered_tables import COLUMNS, FILES, Source, filtered_paths, random_rows
from tests.spark.small_files import A_FILE_EACH
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

TIDY = {"small_file_bytes": "32000000"}


@pytest.fixture
def source(quick_table: MakeTable) -> Source:
    """40 small files in one folder, each of which got a filter when it was written."""
    table = quick_table(COLUMNS)
    for _, rows in itertools.groupby(random_rows(), lambda row: row[1]):
        table.cdc([("I", row) for row in rows])
    table.sync(**A_FILE_EACH)
    assert len(table.snapshot().files) == FILES
    return Source(table)


def details(table: WorkTable) -> dict[str, object]:
    return {name: value for name, value in table.head().details.items() if "tid" in name}


def test_files_that_filters_spare_are_joined(source: Source) -> None:
    """The joined one has a filter too, so that the next batch does not open it. A rollback brings the small ones back."""
    before = len(source.table.snapshot().files)

    searched, spared, trouble = source.change(range(2), **TIDY)

    assert (searched <= 6, spared >= FILES - 4, trouble) == (True, True, "")
    assert details(source.table) == {"files_tidied": before - searched}
    source.check(ordered=False)
    after = source.table.snapshot().files
    assert len(after) <= 3
    largest = max(after.values(), key=lambda file: file.rows)
    assert largest.rows > 1000
    assert largest.path in filtered_paths(source.table)

    source.change(range(2), **TIDY)

    source.check(ordered=False)
    assert largest.path in source.table.snapshot().files
    assert details(source.table) == {}
    for step in ("previous", "previous"):
        assert source.table.run("Rollback", to=step) == 0, source.table.last_run()
    assert len(source.table.snapshot().files) == before
    source.table.check_folder()


def test_one_that_is_gone_blocks_nothing(source: Source) -> None:
    """The batch needs no row of it: it is applied, and the change says why the files stay."""
    gone = next(file for file in source.table.snapshot().files.values() if source.table.data(file)["part"][0].as_py() == 20)
    source.table.clients.s3.delete_object(Bucket=source.table.out_path.bucket, Key=source.table.out_path.key + gone.path)
    before = set(source.table.snapshot().files)

    source.change(range(2), **TIDY)

    assert details(source.table)["files_tidied"] == 0
    assert gone.path in str(details(source.table)["tidy_trouble"])
    assert len(before & set(source.table.snapshot().files)) > 30
    assert source.table.open_uploads() == []


def test_what_would_get_no_filter_stays(source: Source) -> None:
    """Each of the small files has one that spares it; joined without one they would be searched by every batch."""
    rows = sum(file.rows for file in source.table.snapshot().files.values())

    source.change(range(2), **TIDY, key_filter_bytes=str(int(rows // 2 * ROW_BYTES / JOINED_SHARE)))

    assert details(source.table) == {}
    assert len(source.table.snapshot().files) > 30
    source.check()


def test_files_that_are_joined_besides_have_their_own_share_of_new_filters() -> None:
    """However small each task's is."""
    search = Search((), build_bytes=1_000_000)

    assert search.most_joined_rows == 1_000_000 * JOINED_SHARE / ROW_BYTES
    assert Search(()).most_joined_rows == math.inf
    assert search.noting(100, 40_000).most_bytes == (1_000_000 - 40_000 * ROW_BYTES) // 2 // 100
    assert search.noting(100, 40_000).for_rows(40_000).most_bytes == 40_000 * ROW_BYTES
    assert Search(()).noting(100).for_rows(40_000).most_bytes == 0


@pytest.mark.parametrize("rows", [2, 3, 4, 127, 128, 1000])
def test_no_filter_has_more_bytes_than_its_rows_are_taken_for(rows: int) -> None:
    data = packed([np.arange(rows, dtype=np.uint64) << np.uint64(50)])

    assert data is None or len(data) <= rows * ROW_BYTES
