"""What memory a task needs that sorts partitions of a table whose keys are in no order: one file of them in one process.

    python -m benchmarks.load_memory
    python -m benchmarks.load_memory --rows 700000 --partitions 2000
    python -m benchmarks.load_memory --rows 60000 --text 2000        # rows with a text of 2,000 characters

Prints a line for each case: resident bytes before (Python and Arrow) and at most. No S3 server is asked. Without arguments: as many rows of
each kind as just fit, then more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.base import UUID, Base, make_rows
from benchmarks.folders import ROOT
from benchmarks.memory import MIB, NOTE, with_text

PIECE_BYTES = 50_000_000


@dataclass(frozen=True)
class Case:
    """So many rows with random keys, in so many partitions that take turns. text: the characters of each row's text."""

    rows: int
    partitions: int = 1
    text: int = NOTE


CASES = (Case(1_000_000), Case(700_000, 2000), Case(46_000, 1, 2000), Case(4_500, 1, 20_000), Case(2_000_000))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--text", type=int, default=NOTE, help="characters of each row's text, an even number")
    given = parser.parse_args(argv)
    cases = [Case(given.rows, given.partitions, given.text)] if given.rows else CASES
    print("rows | partitions | text | file, MB | MB before | MB at most | data files, MB | seconds")
    for case in cases:
        measured = measure(case)
        numbers = [measured["file_bytes"], measured["before_bytes"], measured["peak_bytes"], measured["written_bytes"]]
        shown = [f"{number / MIB:,.0f}" for number in numbers]
        written = shown.pop() if measured["is_sorted"] else "left to a shuffle"
        print(
            " | ".join([f"{case.rows:,}", f"{case.partitions:,}", f"{case.text:,}", *shown, written, f"{measured['seconds']:.1f}"]),
            flush=True,
        )
    return 0


def measure(case: Case) -> dict[str, Any]:
    """One load in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_file(path, case)
        command = [sys.executable, "-m", "benchmarks.within.load_memory", str(path)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return {**measured, "file_bytes": path.stat().st_size}


def write_file(path: Path, case: Case) -> None:
    """A file of the benchmarks' rows, piece by piece."""
    base, rng = Base(case.rows, keys=UUID), np.random.default_rng(1)
    step = max(1000, PIECE_BYTES // (case.text + 100))
    with pq.ParquetWriter(path, base.schema, compression="snappy", use_dictionary=["status", "qty", "store_id"]) as writer:
        for start in range(0, case.rows, step):
            numbers = np.arange(start, min(start + step, case.rows))
            rows = make_rows(numbers, base, rng)
            rows = rows.set_column(rows.column_names.index("store_id"), "store_id", pa.array((numbers % case.partitions).astype(np.int32)))
            writer.write_table(with_text(rows, case.text, rng))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
