"""Rows go into one Parquet file in memory and come back, and nothing of the reading outlives it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from glue_jobs.spark.attached_rows import as_parquet, from_parquet

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "price": [1.5, 2.5, None], "part": ["x", "x", "y"]})
PROCESSES = 12  # with pyarrow's read_table about every third of them was aborted
READ_AND_END = "import sys; from glue_jobs.spark.attached_rows import from_parquet as f; print(f(open(sys.argv[1], 'rb').read()).num_rows)"


def test_rows_come_back() -> None:
    assert from_parquet(as_parquet(ROWS)).equals(ROWS)
    assert from_parquet(as_parquet(ROWS.slice(0, 0))).equals(ROWS.slice(0, 0))


def test_a_process_that_ends_after_reading_is_not_aborted(tmp_path: Path) -> None:
    """Pyarrow's threads would let go of a Python object while the interpreter ends, and the process of a finished command be aborted."""
    file = tmp_path / "rows.parquet"
    file.write_bytes(as_parquet(ROWS))

    def ended(_: int) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-c", READ_AND_END, str(file)], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ended, range(PROCESSES))) == {(0, "3\n")}
