"""Merges changes into one data file in this process, as a Spark task does, and prints what memory that took. Started by
`benchmarks.memory` and by nobody else.

    python -m benchmarks.within.merge_memory FILE PACKED ROWS [filters]

FILE: a local Parquet file of the benchmarks' rows; PACKED: net changes for it, as a task finds them on its node; ROWS: those of FILE;
filters: make the key filter of what is written. S3 is this machine's disk: a server in the process would count, one beside it would not say
more.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.base import KEY
from benchmarks.within.peak import peak_bytes
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import place as place_module
from glue_jobs.spark.arrow_types import lake_type_of
from glue_jobs.spark.key_notes import Noting
from glue_jobs.spark.merge_task import MergeBin, MergeTask
from glue_jobs.spark.net_changes import Unpacker
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.shared import Here


class DiskS3:
    """As much of S3 as a merge asks for: ranges of one file, and uploads that go nowhere."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.gets = self.read_bytes = 0

    def get_object(self, Range: str = "", **_: Any) -> dict[str, BinaryIO]:  # noqa: N803 - boto3's name
        with self._path.open("rb") as file:
            if not Range:
                data = file.read()
            else:
                start, stop = Range.removeprefix("bytes=").split("-")
                file.seek(int(start))
                data = file.read(int(stop) + 1 - int(start) if stop else -1)
        self.gets += 1
        self.read_bytes += len(data)
        return {"Body": io.BytesIO(data)}

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "one"}

    def upload_part(self, Body: bytes, **_: Any) -> dict[str, str]:  # noqa: N803
        return {"ETag": f'"{hashlib.md5(Body, usedforsecurity=False).hexdigest()}"'}


def shape_of(schema: pa.Schema) -> Shape:
    """The benchmarks' table."""
    return Shape("benchmark", tuple(Column(field.name, lake_type_of(field.type) or "") for field in schema), (KEY,))


def main(path: Path, packed: Path, rows: int, filters: bool) -> dict[str, Any]:
    """What the merge took: bytes of memory before and at most, seconds, GETs, bytes fetched and written, rows hit."""
    s3 = DiskS3(path)
    place_module.worker_s3 = lambda _: s3  # type: ignore[assignment,return-value]
    shape = shape_of(pq.read_schema(path))
    place = Place((), "raw", S3Uri("lake", "t/"), "0000000001-000001-0badcafe", "zstd", Limits())
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
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), "filters" in sys.argv[4:])))
