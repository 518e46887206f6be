"""How large a table's data files will be, told from a sample, so that they come out at the target size."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa

from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_file import RawHead, read_raw

SAMPLE_ROWS = 10_000  # about so many are looked at


def expected_bytes(place: Place, shape: Shape, heads: Sequence[RawHead]) -> float:
    """The bytes that the rows of `heads` come to as data files, by the first rows of the largest file that has any."""
    largest = max((head for head in heads if head.rows), key=lambda head: head.file.size, default=None)
    if largest is None:
        return 0.0
    rows = sum(head.rows for head in heads)
    sink = io.BytesIO()
    writer = DataFileWriter(sink, shape.file_schema, compression=place.compression, dictionary=True)
    sampled = 0
    for table in _rows(place, shape, largest):
        writer.write(table.select([column.name for column in shape.file_schema]))
        sampled += table.num_rows
        if sampled >= SAMPLE_ROWS:
            break
    writer.close()
    return sink.tell() / max(1, sampled) * rows


def _rows(place: Place, shape: Shape, head: RawHead) -> Iterator[pa.Table]:
    """The file's rows; a row group at a time, so that none is fetched that is not asked for."""
    for group in range(head.schema.row_groups):
        yield from read_raw(place, head, columns=shape.schema, row_groups=(group,))
