"""Writes one file's rows, whose keys are in no order, partitioned and sorted in this process, as a Spark task does, and prints what memory
that took. Started by `benchmarks.load_memory` and by nobody else.

    python -m benchmarks.within.load_memory FILE

FILE: a local Parquet file of the benchmarks' rows. S3 is this machine's disk.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.within.disk_s3 import DiskS3, place_on, shape_of
from benchmarks.within.peak import peak_bytes
from glue_jobs.core.partitioning import PartitionField
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import DriverEngine
from glue_jobs.spark.rewrite import FileSource
from glue_jobs.spark.sorted_partitions import write_by_partition


def main(path: Path) -> dict[str, Any]:
    """What it took: bytes of memory before and at most, seconds, bytes written; is_sorted: whether it was not left to a shuffle."""
    place = place_on(DiskS3(path))
    metadata = pq.read_metadata(path)
    shape = replace(shape_of(pq.read_schema(path)), partitioning=(PartitionField("store_id"),))
    source = FileSource(DataFile("old.parquet", path.stat().st_size, metadata.num_rows), 0, ())
    before, started = peak_bytes(), time.perf_counter()
    written = write_by_partition(DriverEngine(), place, shape, [source], path.stat().st_size, metadata.num_rows)
    return {
        "before_bytes": before,
        "peak_bytes": peak_bytes(),
        "seconds": time.perf_counter() - started,
        "written_bytes": sum(file.size_bytes for file in written or ()),
        "is_sorted": written is not None,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
