"""What memory a merge needs: one data file in one process, small and large batches, one row group and many.

    python -m benchmarks.memory                              # files of 128 MB and of 1 GB
    python -m benchmarks.memory --megabytes 128
    python -m benchmarks.memory --megabytes 128 --text 20000 # rows with a text of 20,000 characters, as LOBs are
    python -m benchmarks.memory --newest 1                   # all changes among the last hundredth of a file's rows
    python -m benchmarks.memory --filters                    # the file's key filter made besides, as where keys are random
    python -m benchmarks.memory --alone                      # as a job's driver merges, which has the machine to itself

Prints a line for each case: resident bytes before the merge (Python, Arrow and the batch) and at most. No S3 server is asked; the machine
may be busy with something else, since only the time would change.
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

from benchmarks.data.base import ROW_BYTES, Base, hexadecimal, make_rows
from benchmarks.folders import ROOT
from benchmarks.within.disk_s3 import shape_of
from glue_jobs.spark.net_changes import DELETE, OP, POSITION, UPDATE, net_changes

PIECE_ROWS = 500_000
NOTE = 40  # characters of the benchmarks' own rows
MIB = 1024 * 1024


@dataclass(frozen=True)
class Case:
    """A file of so many megabytes, in one row group or in those of a million rows, and a batch of changes scattered in it, or in the last
    `newest` per cent of its rows. text: the characters of each row's text. filters: whether a key filter is made. alone: whether no
    other task runs beside it."""

    megabytes: int
    one_group: bool
    changes: int
    text: int = NOTE
    newest: float = 100
    filters: bool = False
    alone: bool = False

    @property
    def rows(self) -> int:
        return self.megabytes * MIB // (ROW_BYTES + self.text - NOTE)

    def make_rows(self, numbers: Any, rng: np.random.Generator) -> pa.Table:
        """The benchmarks' rows with these numbers, and a text of this length."""
        return with_text(make_rows(numbers, Base(self.rows), rng), self.text, rng)


def with_text(rows: pa.Table, characters: int, rng: np.random.Generator) -> pa.Table:
    """The benchmarks' rows with texts of this length."""
    if characters == NOTE:
        return rows
    return rows.set_column(rows.column_names.index("note"), "note", hexadecimal(rows.num_rows, characters, rng))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--changes", type=int, nargs="+", default=[2000, 500_000])
    parser.add_argument("--text", type=int, default=NOTE, help="characters of each row's text, an even number")
    parser.add_argument("--newest", type=float, default=100, help="per cent of the rows, the last ones, among which the changes are")
    parser.add_argument("--filters", action="store_true", help="make key filters")
    parser.add_argument("--alone", action="store_true", help="as a task beside which no other one runs")
    given = parser.parse_args(argv)
    print("file, MB | row groups | changes | MB before | MB at most | GETs | bytes read / file | seconds")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in given.megabytes:
            for one_group in (True, False):
                path = Path(folder) / f"{megabytes}-{one_group}.parquet"
                write_file(path, Case(megabytes, one_group, 0, given.text))
                for changes in given.changes:
                    case = Case(megabytes, one_group, changes, given.text, given.newest, given.filters, given.alone)
                    print(line(path, case, measure(path, case)), flush=True)
                path.unlink()
    return 0


def write_file(path: Path, case: Case) -> None:
    """A file of the benchmarks' rows, written piece by piece if it may have row groups."""
    rng = np.random.default_rng(1)
    step = max(1, PIECE_ROWS * ROW_BYTES // (ROW_BYTES + case.text - NOTE))
    pieces = (case.make_rows(np.arange(at, min(at + step, case.rows)), rng) for at in range(0, case.rows, step))
    if case.one_group:
        table = pa.concat_tables(list(pieces))
        pq.write_table(table, path, row_group_size=table.num_rows, compression="snappy", use_dictionary=["status", "qty", "store_id"])
        return
    with pq.ParquetWriter(path, Base(case.rows).schema, compression="snappy", use_dictionary=["status", "qty", "store_id"]) as writer:
        for piece in pieces:
            writer.write_table(piece)


def measure(path: Path, case: Case) -> dict[str, Any]:
    """One merge in a fresh process. Raises RuntimeError if not all changes hit a row."""
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "net"
        changes = pack(packed, case)
        command = [sys.executable, "-m", "benchmarks.within.merge_memory", str(path), str(packed), str(case.rows)]
        command += [word for word in ("filters", "alone") if getattr(case, word)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if measured["hits"] != changes:
        raise RuntimeError(f"{measured['hits']} of {changes} changes hit a row")
    return {**measured, "file_bytes": path.stat().st_size}


def pack(path: Path, case: Case) -> int:
    """Write net changes, half of them deletes, as the driver sends them to tasks; their number."""
    rng = np.random.default_rng(2)
    newest = int(case.rows * case.newest / 100)
    numbers = case.rows - newest + np.sort(rng.choice(newest, min(case.changes, newest // 2), replace=False))
    rows = case.make_rows(numbers, rng)
    ops = pa.array(np.resize(np.array([UPDATE, DELETE], np.int8), len(numbers)))
    marked = rows.append_column(OP, ops).append_column(POSITION, pa.array(numbers))
    path.write_bytes(net_changes(marked, shape_of(rows.schema)).pack())
    return len(numbers)


def line(path: Path, case: Case, measured: dict[str, Any]) -> str:
    groups = "one" if case.one_group else str(pq.read_metadata(path).num_row_groups)
    read = measured["read_bytes"] / measured["file_bytes"]
    return (
        f"{measured['file_bytes'] / 1e6:.0f} | {groups} | {case.changes:,} | {measured['before_bytes'] / 1e6:.0f} | "
        f"{measured['peak_bytes'] / 1e6:.0f} | {measured['gets']} | {read:.2f} | {measured['seconds']:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
