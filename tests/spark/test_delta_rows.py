"""The rows of a Delta table's versions are read as `deltalake` says, and nothing of the reading outlives it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from glue_jobs.spark.delta_rows import rows_of

ROWS = pa.table({"id": [1, 2, 3], "city": ["x y", "a/b", None], "price": [1.5, 2.5, None]})
PROCESSES = 16  # of those that scanned the files themselves about every third was aborted
READ_AND_END = (
    "import sys; from deltalake import DeltaTable; from glue_jobs.spark.delta_rows import rows_of;"
    " print([rows_of(DeltaTable(sys.argv[1], version=version).to_pyarrow_dataset()).num_rows for version in (0, 1, 2)])"
)


@pytest.fixture
def bronze(tmp_path: Path) -> str:
    """Three versions, the last one with a column more, in partitions whose names S3 and Hive would escape."""
    folder = str(tmp_path / "bronze")
    write_deltalake(folder, ROWS, partition_by=["city"])
    write_deltalake(folder, ROWS.slice(0, 2), mode="append")
    write_deltalake(folder, ROWS.append_column("more", pa.array([7, 8, 9])), mode="append", schema_mode="merge")
    return folder


def test_rows_are_those_of_the_data_set(bronze: str) -> None:
    for version, count in enumerate((3, 5, 8)):
        dataset = DeltaTable(bronze, version=version).to_pyarrow_dataset()
        assert rows_of(dataset).sort_by("price").equals(dataset.to_table().sort_by("price"))
        assert rows_of(dataset).num_rows == count


def test_a_file_that_is_no_more_is_said(bronze: str) -> None:
    dataset = DeltaTable(bronze, version=0).to_pyarrow_dataset()
    (Path(bronze) / next(dataset.get_fragments()).path).unlink()

    with pytest.raises(FileNotFoundError):
        rows_of(dataset)


def test_a_process_that_ends_after_reading_is_not_aborted(bronze: str) -> None:
    def ended(_: int) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, "-c", READ_AND_END, bronze], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ended, range(PROCESSES))) == {(0, "[3, 5, 8]\n", "")}
