"""Tables of small files that nothing has joined yet."""

from __future__ import annotations

from glue_jobs.core.record import DataFile
from tests.spark.tables import WorkTable

A_FILE_EACH = {"batch_files": "1", "small_file_bytes": "0"}  # each CDC file's rows become a data file


def in_order(table: WorkTable) -> list[DataFile]:
    return sorted(table.snapshot().files.values(), key=lambda file: file.low or ())


def first_keys(files: list[DataFile]) -> list[int]:
    return [file.low[0] for file in files if file.low]


def fill(table: WorkTable, files: int, name_of: str = "n{0}") -> WorkTable:
    """So many files of 50 rows each, whose keys follow on each other. name_of: a row's name, of its key."""
    for start in range(0, files * 50, 50):
        table.cdc([("I", (number, name_of.format(number, number // 10), 0)) for number in range(start, start + 50)])
    table.sync(**A_FILE_EACH)
    assert len(in_order(table)) == files
    return table
