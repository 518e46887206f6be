"""Adopted files of pandas with categories: Arrow reads them as indices into a dictionary, and writes the whole of it everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.objects import read_bytes
from glue_jobs.core import settings
from glue_jobs.spark import open_file
from tests.protocol.test_adopt import FUTURE, SOLD, adopted, ids, put
from tests.protocol.test_erase import KeysFile, erased, holds
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

NUMBERS = range(30)


def region_of(number: int) -> str:
    return "SECRET" if number == 15 else ("north", "south")[number // 15]


def with_categories(table: WorkTable) -> WorkTable:
    """Thirty rows in three row groups, `region` a category; the CDC files before are applied."""
    key = table.cdc([])
    table.edit(LastFullLoadDate=FUTURE, LastIncrementalFile=f"{table.path.bucket}/{key}")
    regions = pa.array([region_of(number) for number in NUMBERS]).dictionary_encode()
    columns = {"id": ids(*NUMBERS), "name": [f"name {number}" for number in NUMBERS], "region": regions}
    put(table, "part-00000.parquet", columns, row_group_size=10, compression="none")
    adopted(table)
    return table


def expected(*changes: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    rows = {number: (number, f"name {number}", region_of(number)) for number in NUMBERS}
    return sorted({**rows, **{change[0]: change for change in changes}}.values())


@pytest.mark.parametrize("primary_key", ["region,id", "id"])
@pytest.mark.parametrize("stream_file_bytes", ["0", "1000000"], ids=["in pieces", "in memory"])
@pytest.mark.parametrize("small_file_bytes", ["0", "1000000"], ids=["large", "small"])
def test_a_category_may_be_of_the_key(quick_table: MakeTable, primary_key: str, stream_file_bytes: str, small_file_bytes: str) -> None:
    """The files that replace its file have its key range, and batches go on with them."""
    table = with_categories(quick_table(SOLD, primary_key=primary_key))
    limits = {"stream_file_bytes": stream_file_bytes, "small_file_bytes": small_file_bytes}
    changes = [(3, "three", "north"), (20, "twenty", "south"), (40, "forty", "west")]
    for number in range(2):
        table.cdc([("U", (at, f"{name} {number}", region)) for at, name, region in changes])

        table.sync(**limits)

        assert sorted(table.rows()) == expected(*((at, f"{name} {number}", region) for at, name, region in changes))
        table.check_files(ordered=False)
        table.check_folder()
    assert table.verify() == []


def test_a_category_of_the_key_is_found_however_it_is_spelled(quick_table: MakeTable) -> None:
    """As any other text: else the row would be there twice."""
    table = quick_table(SOLD, primary_key="region,id")
    table.edit(KeyCollation="ci")
    with_categories(table)
    table.cdc([("U", (3, "three", "NORTH"))])

    table.sync(stream_file_bytes="0", small_file_bytes="0")

    assert sorted(table.rows()) == expected((3, "three", "NORTH"))
    assert table.counts() == (0, 1, 0)


def live_bytes(table: WorkTable) -> bytes:
    paths = sorted(table.snapshot().files)
    return b"".join(read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + path) for path in paths)


def test_a_text_that_no_row_has_any_more_is_in_no_file(quick_table: MakeTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Row groups without a changed key are not copied: the dictionary of each has the text, and no row, so that no erase would find it."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    monkeypatch.setattr(settings, "COMPRESSIONS", ("zstd", "none"))  # texts stand in the files as they are
    table = with_categories(quick_table(SOLD))
    assert live_bytes(table).count(b"SECRET") >= 3
    table.cdc([("D", (15, None, None))])

    table.sync(stream_file_bytes="0", small_file_bytes="0", compression="none")

    assert sorted(table.rows()) == [row for row in expected() if row[0] != 15]
    assert b"SECRET" not in live_bytes(table)
    erased(table, KeysFile(tmp_path)(15), compression="none")
    assert holds(table, "SECRET", "region") == []
    assert b"SECRET" not in live_bytes(table)
