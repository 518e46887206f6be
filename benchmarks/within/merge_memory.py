"""Merges changes into one data file in this process, as a Spark task does, and prints what memory that took. Started by
`benchmarks.memory` and by nobody else.

    python -m benchmarks.within.merge_memory FILE PACKED ROWS [filters] [alone]

FILE: a local Parquet file of the benchmarks' rows; PACKED: net changes for it, as a task finds them on its node; ROWS: those of FILE;
filters: make the key filter of what is written; alone: as a task beside which no other one runs. S3 is this machine's disk: a server in the
process would count, one beside it would not say more.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.within.disk_s3 import DiskS3, place_on, shape_of
from benchmarks.within.peak import peak_bytes
from glue_jobs.core.limits import Limits
from glue_jobs.core.record import DataFile
from glue_jobs.spark.key_notes import Noting
from glue_jobs.spark.merge_task import MergeBin, MergeTask
from glue_jobs.spark.net_changes import Unpacker
from glue_jobs.spark.shared import Here


def main(path: Path, packed: Path, rows: int, filters: bool, alone: bool) -> dict[str, Any]:
    """What the merge took: bytes of memory before and at most, seconds, GETs, bytes fetched and written, rows hit."""
    s3 = DiskS3(path)
    place = replace(place_on(s3), alone=alone)
    shape = shape_of(pq.read_schema(path))
    shared = Here(pa.memory_map(str(packed)).read_buffer(), Unpacker(shape, ((),)))
    # As if so many files had been spared that the hashing does not end.
    noting = Noting(int(Limits().key_filter_bytes), 2**40) if filters else Noting()
    task = MergeTask(place, shape, shared, False, (), noting)
    file = DataFile("old.parquet", path.stat().st_size, rows)
    before, started = peak_bytes(), time.perf_counter()
    (result,) = task(MergeBin(((file,),), frozenset()))
    return {
        "before_bytes": before,
        "peak_bytes": peak_bytes(),
        "seconds": time.perf_counter() - started,
        "gets": s3.gets,
        "read_bytes": s3.read_bytes,
        "written_bytes": sum(each.size_bytes for each in result.written.files),
        "hits": len(result.files[0].hits),
        "filters": len(result.written.filters),
    }


if __name__ == "__main__":
    file, changes, count, *words = sys.argv[1:]
    print(json.dumps(main(Path(file), Path(changes), int(count), "filters" in words, "alone" in words)))
