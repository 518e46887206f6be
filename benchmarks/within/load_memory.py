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

from benchmarks.within.merge_memory import DiskS3, shape_of
from benchmarks.within.peak import peak_bytes
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import PartitionField
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.spark import place as place_module
from glue_jobs.spark.engine import DriverEngine
from glue_jobs.spark.place import Place
from glue_jobs.spark.rewrite import FileSource
from glue_jobs.spark.sorted_partitions import write_by_partition


def main(path: Path) -> dict[str, Any]:
    """What it took: bytes of memory before and at most, seconds, bytes written; is_sorted: whether it was not left to a shuffle."""
    place_module.worker_s3 = lambda _: DiskS3(path)  # type: ignore[assignment,return-value]
    metadata = pq.read_metadata(path)
    shape = replace(shape_of(pq.read_schema(path)), partitioning=(PartitionField("store_id"),))
    place = Place((), "raw", S3Uri("lake", "t/"), "0000000001-000001-0badcafe", "zstd", Limits())
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
