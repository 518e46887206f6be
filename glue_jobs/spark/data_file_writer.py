"""Writing a data file: Parquet that Spark, Athena, Trino, DuckDB and pyarrow read alike.

How, and why: format 2.6 (timestamps in microseconds, UTC-adjusted; never nanoseconds, which Spark can't read, nor
INT96, which has no statistics), data pages v1 (every reader knows them; Spark's own writer uses them too), decimals as fixed bytes
(read at any precision by all), no Arrow schema inside (readers must see what stands there, not what Arrow remembers), and in the
metadata nothing but `org.apache.spark.version`: without it Spark refuses dates before 1582 and timestamps before 1900, and an
input's own metadata may describe other columns.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.copies import ObjectRange
from glue_jobs.aws.write_only import WriteOnly
from glue_jobs.core.schema import Schema
from glue_jobs.spark.arrow_types import arrow_schema, conform
from glue_jobs.spark.column_encoding import encoded_columns, is_worth_a_thread
from glue_jobs.spark.dictionaries import repeating_columns
from glue_jobs.spark.encoded_texts import decoded_bytes_of, encoded_like, with_one_dictionary
from glue_jobs.spark.stored_groups import MOST_CHUNKS, StoredGroup, are_alike, file_end, footer_of, moved, with_columns_of
from glue_jobs.spark.thrift_compact import Struct

METADATA = {"org.apache.spark.version": "3.5.6"}
ROW_GROUP_ROWS = 1024 * 1024
ROW_GROUP_BYTES = 32 * 1024 * 1024
WRITE_BYTES = 256 * 1024
FEW_ROWS = 1024  # they don't tell whether a dictionary is worth it
COMPRESSION_LEVELS = {"zstd": 1}
# Of rows in memory to bytes in the file, until the first row group says it better.
FIRST_RATIO = 0.3


class DataFileWriter:
    """Writes the rows of one data file to a sink as they come; holds one row group in memory.

    The sink (anything with `write`) is not closed: whoever opened it finishes or aborts it.
    """

    def __init__(
        self,
        sink: Any,
        schema: Schema,
        *,
        compression: str = "zstd",
        dictionary: bool | Sequence[str] = True,
        row_group_rows: int | None = None,
        row_group_bytes: int | None = None,
        on_group: Callable[[int, StoredGroup | None], None] | None = None,
        alone: bool = False,
    ) -> None:
        """schema: the columns of the file, at least one: of none the rows would not be counted. dictionary: the columns that may have a
        dictionary, True for any; a column gets one if the first rows say that it is smaller with it.

        row_group_rows, row_group_bytes: at most, ROW_GROUP_ROWS and ROW_GROUP_BYTES if they aren't given. Bytes are of rows in memory; rows
        that come together are cut as if all were of their average size. on_group: told before a row group is written how many of the
        rows are in it, and which one it is if it is `put`. alone: a row group's columns are encoded side by side where that is worth it.
        """
        if not schema:
            raise ValueError("a data file needs a column")
        self.rows = 0
        self._sink, self._schema = _Sink(sink), schema
        self._names = frozenset(column.name for column in schema)
        # pyarrow writes a page at a time; each call into Python would wait for the thread that has the interpreter.
        self._stream = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), WRITE_BYTES)
        self._compression, self._dictionary = compression, dictionary
        self._group_rows = ROW_GROUP_ROWS if row_group_rows is None else row_group_rows
        self._group_bytes = ROW_GROUP_BYTES if row_group_bytes is None else row_group_bytes
        self._on_group = on_group or (lambda rows, stored: None)
        self._alone = alone
        self._writer: pq.ParquetWriter | None = None
        self._form: pa.Schema | None = None
        self._repeating: list[str] = []
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = self._flushed_bytes = 0
        self._stored: list[Struct] = []
        self._put: list[tuple[int, int]] = []  # row groups that pyarrow knows nothing of: behind which of its bytes, and how many
        self._stored_bytes = self._encoded_bytes = 0
        self._written: list[pq.FileMetaData] = []
        self._replaced_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Bytes that the file has so far, with a guess for the rows that wait for their row group."""
        written = int(self._stream.tell()) - self._replaced_bytes
        ratio = (written + self._encoded_bytes) / self._flushed_bytes if self._flushed_bytes else FIRST_RATIO
        return written + self._stored_bytes + int(self._waiting_bytes * ratio)

    def write(self, rows: pa.Table | pa.RecordBatch, size_bytes: int | None = None) -> None:
        """Take rows; columns are bound by name and cast to the file's schema. Texts may be encoded.

        size_bytes: of the rows in memory, decoded, where it is known; a caller may count columns that the file leaves out, so that row
        groups end a little earlier.
        """
        table = conform(rows, self._schema, "to be written", encoded=self._names)
        self._form = table.schema if self._form is None else self._form
        table = encoded_like(table, self._form)
        self.rows += table.num_rows
        size = decoded_bytes_of(table) if size_bytes is None else size_bytes
        step = min(self._group_rows, max(1, table.num_rows * self._group_bytes // max(1, size)))
        for start in range(0, table.num_rows, step):
            piece = table if step >= table.num_rows else table.slice(start, step)
            self._wait(piece, size if piece is table else decoded_bytes_of(piece))

    def _wait(self, piece: pa.Table, size: int) -> None:
        if self._waiting_rows + piece.num_rows > self._group_rows or self._waiting_bytes + size > self._group_bytes:
            self._flush()
        self._waiting.append(piece)
        self._waiting_rows += piece.num_rows
        self._waiting_bytes += size

    def put(self, group: StoredGroup) -> None:
        """Take a row group of another file as it stands; of a file that `stored_footer` knows."""
        self._flush()
        self._on_group(group.rows, group)
        start, described = self._place(), group.described
        size = self._sink.put(group.object_range)
        if size != described.stop - described.start:
            raise ValueError(f"a row group of {described.stop - described.start} bytes came with {size}")
        self._describe(moved(described.struct, start - described.start), size)
        self.rows += group.rows

    def _place(self) -> int:
        """In the file, of what comes next and pyarrow knows nothing of."""
        self._opened()
        self._stream.flush()
        return int(self._stream.tell()) + self._stored_bytes

    def _describe(self, group: Struct, size: int) -> None:
        """For the footer, a row group that went to the sink past pyarrow."""
        self._stored.append(group)
        self._put.append((int(self._stream.tell()), size))
        self._stored_bytes += size

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._on_group(self._waiting_rows, None)
        table = with_one_dictionary(pa.concat_tables(self._waiting))
        writer = self._opened(table)
        if self._alone and is_worth_a_thread(table, self._waiting_bytes):
            self._write_columns(table)
        else:
            writer.write_table(table, row_group_size=table.num_rows)
        self._flushed_bytes += self._waiting_bytes
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _write_columns(self, table: pa.Table) -> None:
        start, columns = self._place(), list[Struct]()
        place = start
        with encoded_columns(table, self._parquet_writer) as encoded:
            for data, described in encoded:
                self._sink.add(data)
                columns.append(moved(described.struct, place - described.start))
                place += data.size
        self._describe(with_columns_of(columns), place - start)
        self._encoded_bytes += place - start
        # Arrow's allocator keeps for each thread what it had. To give it back is a twentieth of a batch's time, and 50 MB of its memory.
        pa.default_memory_pool().release_unused()

    def _opened(self, first: pa.Table | None = None) -> pq.ParquetWriter:
        """first: the first rows, None where a row group comes first that is not ours."""
        if self._writer is None:
            self._form = arrow_schema(self._schema) if self._form is None else self._form
            self._repeating = self._chosen(first)
            self._writer = self._parquet_writer(self._stream, self._form, self._written)
            self._writer.add_key_value_metadata(METADATA)
        return self._writer

    def _parquet_writer(self, sink: Any, form: pa.Schema, written: list[pq.FileMetaData]) -> pq.ParquetWriter:
        """Of a file with these columns of ours."""
        return pq.ParquetWriter(
            sink,
            form,
            version="2.6",
            data_page_version="1.0",
            compression=self._compression,
            compression_level=COMPRESSION_LEVELS.get(self._compression),
            use_dictionary=[name for name in self._repeating if name in form.names],
            # Arrow leaves NaN out of the bounds, and readers pass over row groups by them: for most of them NaN is greater than all.
            write_statistics=[field.name for field in form if not pa.types.is_floating(field.type)],
            store_schema=False,
            metadata_collector=written,
        )

    def _chosen(self, first: pa.Table | None) -> list[str]:
        """The columns to write with a dictionary."""
        if self._dictionary is False:
            return []
        few = first is None or first.num_rows < FEW_ROWS
        if few and self._dictionary is not True:
            return list(self._dictionary)
        if first is None:
            return []
        return repeating_columns(first, None if self._dictionary is True else self._dictionary)

    def close(self) -> int:
        """Write what waits, then the footer; the number of rows."""
        self._flush()
        writer = self._opened()
        self._stream.flush()
        if not self._stored:
            writer.close()
        else:
            self._replace_footer(writer)
        self._stream.flush()
        return self.rows

    def _replace_footer(self, writer: pq.ParquetWriter) -> None:
        """pyarrow's own footer, which knows only of the row groups that it wrote, does not reach the sink."""
        before, is_aborted = int(self._stream.tell()), self._sink.is_dropped
        self._sink.is_dropped = True
        writer.close()
        self._stream.flush()
        self._replaced_bytes, self._sink.is_dropped = int(self._stream.tell()) - before, is_aborted
        end = file_end(self._written[0], self._stored, self._put)
        found = pq.read_metadata(pa.BufferReader(b"PAR1" + end))
        if found.num_rows != self.rows:
            raise ValueError(f"a footer of {found.num_rows} rows for a data file of {self.rows}")
        self._stream.write(end)

    def abort(self) -> None:
        """Write nothing more: what is held is dropped, also when the writer goes out of sight."""
        self._sink.is_dropped = True


class _Sink(WriteOnly):
    """The sink as pyarrow sees it: survives pyarrow's closing it, and takes nothing once it is dropped."""

    closed = False
    is_dropped = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._size = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not self.is_dropped:
            self._sink.write(data)
        self._size += size
        return size

    def put(self, bytes_: ObjectRange) -> int:
        """Bytes of another object, which pyarrow knows nothing of: copied, if the sink can; how many came."""
        if self.is_dropped:
            return bytes_.stop - bytes_.start
        if hasattr(self._sink, "copy"):
            return int(self._sink.copy(bytes_))
        came = 0
        with bytes_.read(bytes_.start, bytes_.stop) as chunks:
            for chunk in chunks:
                self._sink.write(chunk)
                came += len(chunk)
        return came

    def add(self, data: pa.Buffer) -> None:
        """Bytes that pyarrow knows nothing of."""
        if not self.is_dropped:
            self._sink.write(data)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        """Nothing: the sink is its owner's to close."""


def stored_footer(parquet: pq.ParquetFile, schema: Schema) -> Struct | None:
    """The footer of a data file whose row groups may be `put` into a file of this schema as they stand, None of any other."""
    if parquet.num_row_groups * parquet.metadata.num_columns > MOST_CHUNKS:
        return None
    footer = footer_of(parquet.metadata)
    return footer if are_alike(footer, _footer(schema)) else None


@lru_cache(maxsize=64)
def _footer(schema: Schema) -> Struct:
    """Of a file that is written now."""
    sink = io.BytesIO()
    DataFileWriter(sink, schema).close()
    return footer_of(pq.read_metadata(pa.BufferReader(sink.getvalue())))
