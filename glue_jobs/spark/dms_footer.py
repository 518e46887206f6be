"""A Parquet footer as DMS writes it, made from one that pyarrow wrote.

pyarrow can't write a file without logical types. They matter: a timestamp that has only the converted type is read as
UTC-adjusted by Spark, one that pyarrow wrote is not. So the footer (Thrift compact protocol) is read, the fields that
DMS's footer lacks are dropped, and it is written again; the pages stay as they are.
"""

from __future__ import annotations

import struct

from glue_jobs.spark.thrift_compact import BINARY, I32, Struct, read_struct, write_struct

_LOGICAL_TIME = 7
_MAGIC = b"PAR1"


def as_dms_writes(parquet: bytes) -> bytes:
    """The file with a footer of format 1.0 by `AWS`: converted types only, no metadata, no indexes."""
    length = struct.unpack("<I", parquet[-8:-4])[0]
    start = len(parquet) - 8 - length
    footer = read_struct(parquet, start)
    _strip(footer)
    out = write_struct(footer)
    return parquet[:start] + out + struct.pack("<I", len(out)) + _MAGIC


def _strip(footer: Struct) -> None:
    """Field ids are those of parquet.thrift, up to what format 1.0 knew."""
    footer.keep(1, 2, 3, 4, 6)  # not: key-value metadata, column orders
    footer.fields[1] = (I32, 1)
    footer.fields[6] = (BINARY, b"AWS")
    for element in footer.children(2):
        if any(_LOGICAL_TIME in logical.fields for logical in element.children(10)):
            # pyarrow leaves out the converted type of local times: 7 is TIME_MILLIS (INT32), 8 TIME_MICROS (INT64)
            element.fields[6] = (I32, 7 if element.fields[1] == (I32, 1) else 8)
        element.keep(1, 2, 3, 4, 5, 6, 7, 8)  # not: field id, logical type
    for group in footer.children(4):
        group.keep(1, 2, 3)
        for chunk in group.children(1):
            chunk.keep(1, 2, 3)  # not: column and offset index
            for column in chunk.children(3):
                column.keep(*range(1, 13))
                for statistics in column.children(12):
                    statistics.keep(1, 2, 3, 4)  # min_value and max_value need column orders
