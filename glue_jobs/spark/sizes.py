"""How large a table's data files will be, told from a sample, so that they come out at the target size."""

from __future__ import annotations

import io
from collections.abc import Sequence

from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_file import RawHead, read_raw

SAMPLE_ROW_GROUPS = (0,)
SAMPLE_ROWS = 10_000  # of a CSV file, which has no row groups


def expected_bytes(place: Place, shape: Shape, heads: Sequence[RawHead]) -> float:
    """The bytes that the rows of `heads` come to as data files, by the first rows of the largest file."""
    largest = max(heads, key=lambda head: head.file.size, default=None)
    if largest is None or not largest.rows:
        return 0.0
    rows = sum(head.rows for head in heads)
    sink = io.BytesIO()
    writer = DataFileWriter(sink, shape.file_schema, compression=place.compression, dictionary=True)
    sampled = 0
    for table in read_raw(place, largest, columns=shape.schema, row_groups=SAMPLE_ROW_GROUPS):
        writer.write(table.select([column.name for column in shape.file_schema]))
        sampled += table.num_rows
        if largest.csv is not None and sampled >= SAMPLE_ROWS:
            break
    writer.close()
    return sink.tell() / max(1, sampled) * rows
