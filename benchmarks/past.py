"""What it costs to look at a table's past without Spark: seconds and requests of `dmslake read`, `diff` and `explain`.

    python -m benchmarks.past --files 700 --changed 50

The table has one data file for each partition. Its last change rewrote `--changed` of them, the one before it all of them. With `--s3 URL`
(and its AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) another S3 server than the embedded one keeps the files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from benchmarks.rollback import connect, prepared, seconds, source_rows
from controller.cli.entry import run
from infra.local.dms_files import dms_parquet
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.protocol.wire import Wire


def change_some(table: LakeTable, files: int, rows: int, changed: int) -> None:
    """A change of one row in each of the first `changed` files."""
    whole = source_rows(files, rows, np.random.default_rng(1))
    some = whole.take(pa.array(np.arange(changed) * rows))
    table.put_raw(table.next_name(), dms_parquet(some.set_column(0, "Op", pa.array(["U"] * changed))))
    seconds("second change", table, "LoadIncremental")


def measured(words: Sequence[str], repeat: int) -> tuple[float, Counter[str]]:
    """(median seconds of a command in this process, its requests by operation)."""
    taken, wire = [], Wire()
    for _ in range(repeat):
        wire = Wire()
        started = time.perf_counter()
        with wire.connected(), contextlib.redirect_stdout(io.StringIO()):
            code = run(words)
        taken.append(time.perf_counter() - started)
        if code != 0:
            sys.exit(f"dmslake {' '.join(words)} ended with {code}")
    return sorted(taken)[len(taken) // 2], Counter(request.operation for request in wire.requests)


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=700)
    parser.add_argument("--rows", type=int, default=200, help="in each file")
    parser.add_argument("--changed", type=int, default=50, help="files that the last change rewrote")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--s3", default="", help="endpoint of another S3 server")
    given = parser.parse_args(argv)
    with EmbeddedAws() as aws:
        environment = connect(aws, given.s3)
        table = prepared(environment, aws, given.files, given.rows)
        seconds("first change", table, "LoadIncremental")
        change_some(table, given.files, given.rows, given.changed)
        path, size = str(table.path), table.snapshot().size_bytes
        asked = {
            "read --count": ["read", path, "--count"],
            "read --sum amount": ["read", path, "--sum", "amount"],
            "read --as-of previous --sum amount": ["read", path, "--as-of", "previous", "--sum", "amount"],
            "read --limit 20": ["read", path, "--limit", "20"],
            f"diff previous (of {given.changed} files)": ["diff", path, "previous"],
            "explain": ["explain", path, "--key", str(given.rows)],
        }
        found = {name: measured(words, given.repeat) for name, words in asked.items()}
    print(f"\n{given.files} files, {size / 1e6:.0f} MB; S3: {given.s3 or 'embedded'}; medians of {given.repeat}\n")
    print("| dmslake … | seconds | requests |\n| --- | --- | --- |")
    for name, (taken, requests) in found.items():
        print(f"| {name} | {taken:.1f} | {', '.join(f'{count} {operation}' for operation, count in requests.most_common())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
