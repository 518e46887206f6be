"""Writing data files: rows of one partition become uploads that nobody sees until the change is committed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from glue_jobs.aws.multipart_writer import MultipartWriter
from glue_jobs.aws.uploads import abort_upload
from glue_jobs.core.keys import Bound, encode_bound
from glue_jobs.core.partitioning import PartitionValues, folder_of
from glue_jobs.core.paths import data_key
from glue_jobs.core.record import DataFile
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.encoded_texts import decoded_bytes_of
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.stored_groups import StoredGroup

# Between two looks at a file's size: of rows that are wide, few.
PIECE_ROWS = 65_536
PIECE_BYTES = 16 * 1024 * 1024
Rows = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class WriteOptions:
    """How data files are written. dictionary: the columns that may have one, None for any. split: begin a new file when one has reached the
    target size. ranged: which of the rows the file's key range is of, None for all; of no row there is none. on_group: told before each row
    group how many rows it has, and which one it is where it is stored already."""

    dictionary: Sequence[str] | None = None
    split: bool = True
    ranged: Rows | None = None
    on_group: Callable[[int, StoredGroup | None], None] | None = None


DEFAULT = WriteOptions()


class FileWriter:
    """Writes tables of one partition to as many data files as their size asks for; nothing is completed.

    A failed attempt of a task leaves an open upload behind, which nobody sees and a lifecycle rule aborts; where we see the failure we
    abort it ourselves.
    """

    def __init__(self, place: Place, shape: Shape, partition: PartitionValues, options: WriteOptions = DEFAULT) -> None:
        self._place, self._shape, self._partition, self._options = place, shape, partition, options
        self._names = [column.name for column in shape.file_schema]
        self._files: list[DataFile] = []
        self._sink: MultipartWriter | None = None
        self._low: Bound | None = None
        self._high: Bound | None = None
        self._path = ""

    @property
    def size_bytes(self) -> int:
        """Of the file in hand, as `DataFileWriter` says it; 0 where there is none."""
        return 0 if self._sink is None else self._writer.size_bytes

    def write(self, table: pa.Table) -> None:
        """Take rows in the lake's columns (partition columns included)."""
        size = decoded_bytes_of(table)  # asked once: of rows in many pieces it takes a tenth of a millisecond
        rows = min(PIECE_ROWS, max(1, table.num_rows * PIECE_BYTES // max(1, size)))
        for start in range(0, table.num_rows, rows):
            piece = table if table.num_rows <= rows else table.slice(start, rows)
            self._write_piece(piece, size if piece is table else decoded_bytes_of(piece))

    def put(self, group: StoredGroup) -> None:
        """Take a row group of another of the table's data files as it stands."""
        if self._sink is None:
            self._open()
        if self._shape.key:
            self._reach(group.low, group.high)
        self._writer.put(group)

    def _write_piece(self, table: pa.Table, size_bytes: int) -> None:
        if self._sink is None:
            self._open()
        if self._shape.key:
            self._widen(table if self._options.ranged is None else self._options.ranged(table))
        self._writer.write(table.select(self._names), size_bytes)
        if self._options.split and self.size_bytes >= self._place.limits.target_file_bytes:
            self._close()

    def _widen(self, rows: pa.Table) -> None:
        found = bounds(rows, self._shape.key)
        if found is not None:
            self._reach(*found)

    def _reach(self, low: Bound, high: Bound) -> None:
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def _open(self) -> None:
        place = self._place
        self._path = f"{folder_of(self._shape.partitioning, self._partition)}{place.change}-{uuid.uuid4()}.parquet"
        key = data_key(place.lake, self._path)
        self._sink = MultipartWriter(place.s3, place.lake.bucket, key, part_bytes=place.limits.part_bytes)
        self._writer = DataFileWriter(
            self._sink,
            self._shape.file_schema,
            compression=place.compression,
            dictionary=True if self._options.dictionary is None else list(self._options.dictionary),
            on_group=self._options.on_group,
            alone=place.alone,
        )
        self._low = self._high = None

    def _close(self) -> None:
        if self._sink is None:
            return
        rows = self._writer.close()
        done = self._sink.finish()
        types = self._shape.key_types
        self._files.append(
            DataFile(
                path=self._path,
                size_bytes=done.size_bytes,
                rows=rows,
                etag=done.etag,
                partition=self._partition,
                low=None if self._low is None else encode_bound(types, self._low, upper=False),
                high=None if self._high is None else encode_bound(types, self._high, upper=True),
                upload=done.upload,
            )
        )
        self._sink = None

    def finish(self) -> list[DataFile]:
        """The files written, in order; none if there were no rows."""
        self._close()
        return self._files

    def abort(self) -> None:
        """Give up all that was written, the files that are finished too."""
        if self._sink is not None:
            self._writer.abort()
            self._sink.abort()
            self._sink = None
        files, self._files = self._files, []
        abort_files(self._place, files)


def abort_files(place: Place, files: Iterable[DataFile]) -> None:
    """Give up files that are finished, but not completed."""
    for file in files:
        if file.upload is not None:
            abort_upload(place.s3, place.lake.bucket, data_key(place.lake, file.path), file.upload.id)


def give_up(place: Place, files: Iterable[DataFile]) -> None:
    """Abort the uploads of finished files, also where one can't be; what fails is left to the lifecycle rule, because an error is on its
    way already."""
    for file in files:
        with contextlib.suppress(Exception):
            abort_files(place, [file])


@contextlib.contextmanager
def given_up_on_error(place: Place, files: Iterable[DataFile]) -> Iterator[None]:
    """Files of a step that is over are given up where the next one fails: nobody else knows of their uploads."""
    try:
        yield
    except BaseException:
        give_up(place, files)
        raise


def abort_all(writers: Iterable[FileWriter]) -> None:
    """The same for writers, with what they have under way."""
    for writer in writers:
        with contextlib.suppress(Exception):
            writer.abort()


def write_tables(
    place: Place,
    shape: Shape,
    partition: PartitionValues,
    tables: Iterable[pa.Table | StoredGroup],
    options: WriteOptions = DEFAULT,
) -> list[DataFile]:
    """Write all `tables` (lake columns, one partition) as data files; among them may be row groups that are stored already."""
    writer = FileWriter(place, shape, partition, options)
    try:
        for table in tables:
            if isinstance(table, StoredGroup):
                writer.put(table)
            elif table.num_rows:
                writer.write(table)
        return writer.finish()
    except BaseException:
        abort_all([writer])
        raise
