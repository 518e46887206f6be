"""What it costs to list and plan a table of many CDC files: requests, seconds and memory, for each layout. Nothing but Python is needed.

    python -m benchmarks.listing --files 100000

The listing is made up: S3's answers without S3, so that the seconds are those of dmslake alone. `all files`: of a table that has none
of them; `new files`: of one that has all but ten.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from glue_jobs.core.actions import TakeBatch
from glue_jobs.core.intake import plan_table
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.record import Generation, Input
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.protocol.raw import list_raw
from tests.core.tables import FOLDER, NOW, loaded, state_of
from tests.raw_folders import CountedListing, Layout, every

LOAD = f"{FOLDER}LOAD00000001.parquet"
END = datetime(2024, 5, 17, 10, tzinfo=timezone.utc)
NEW = 10
GENERATION = Generation(1, (Input(LOAD, LOAD[-30:], 10),))
MEASURED = (
    Layout(),
    Layout("YYYYMMDD"),
    Layout("YYYYMMDDHH", "dash"),
    Layout("YYYYMM", "none"),
    Layout("YYYYMMDD", padded=False),
    Layout("MMYYYYDD"),
)


def keys_of(layout: Layout, files: int, minutes: int) -> list[str]:
    """A table's CDC files, the last one of them written at END."""
    step = timedelta(minutes=minutes)
    return [FOLDER + layout.name(time) for time in every(step, files, END - step * (files - 1))]


def snapshot_of(keys: Sequence[str]) -> Snapshot:
    """The table after these files, as its record has it: names of twice the late window."""
    oldest = f"{END - timedelta(hours=48):%Y%m%d%H%M%S}"
    recent = {key: Input(key, key[-30:], 10) for key in keys[-5000:] if (name := cdc_name(key)) and name.digits >= oldest}
    return replace(loaded(cursor=f"raw/{keys[-1]}", generation=GENERATION), applied=recent, known_from=oldest)


def measured(keys: Sequence[str], snapshot: Snapshot) -> tuple[int, int, float, float, int]:
    """(requests, keys listed, CPU seconds of listing, of planning, files planned)."""
    s3: Any = CountedListing([*keys, LOAD])
    state, limits = state_of(snapshot), replace(Limits(), batch_files=10**9)
    started = time.process_time()
    listing = list_raw(s3, state, snapshot, limits)
    listed = time.process_time()
    action = plan_table(state, snapshot, listing, NOW, limits)
    done = time.process_time()
    planned = len(action.files) if isinstance(action, TakeBatch) else 0
    return s3.requests, s3.listed, listed - started, done - listed, planned


def main(argv: Sequence[str]) -> int:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--minutes", type=int, default=10, help="between two files")
    given = parser.parse_args(argv)
    print("| layout | listing of | requests | keys | list, CPU seconds | plan, CPU seconds | files planned |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for layout in MEASURED:
        keys = keys_of(layout, given.files, given.minutes)
        name = layout.name(END, END).rsplit("/", 1)[0] if layout.sequence else "(flat)"
        for what, snapshot in (("all files", loaded(generation=GENERATION)), ("new files", snapshot_of(keys[:-NEW]))):
            requests, listed, listing, planning, planned = measured(keys, snapshot)
            print(f"| `{name}` | {what} | {requests} | {listed} | {listing:.2f} | {planning:.2f} | {planned} |")
    print(f"\nmost memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
