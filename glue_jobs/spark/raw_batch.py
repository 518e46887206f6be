"""The raw files of one change, looked at before any row is read: their columns and row counts, from the Parquet footers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.aws.ranged import open_object
from glue_jobs.core.errors import blocked
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import Input
from glue_jobs.core.work import Work, input_of
from glue_jobs.spark.dms_files import BEFORE, OP, ROW, DmsSchema, check_keys, dms_schema, open_dms, read_dms
from glue_jobs.spark.net_changes import DELETE, POSITION, UPDATE, position
from glue_jobs.spark.place import Place, Shape

FOOTER_THREADS = 16
UNIT_BYTES = 64 * 1024 * 1024  # a task reads about so much of a large raw file


@dataclass(frozen=True)
class RawHead:
    """A raw file and what its footer says. ordinal: its place in the change's order; late: it came behind the cursor."""

    file: RawFile
    schema: DmsSchema
    ordinal: int
    late: bool = False

    where: str = ""  # s3:// address, for messages

    @property
    def rows(self) -> int:
        return self.schema.rows

    def input(self) -> Input:
        return input_of(self.file, self.rows)


@dataclass(frozen=True)
class Unit:
    """A piece of a raw file that one task reads: consecutive row groups, None for all."""

    head: RawHead
    row_groups: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Taken:
    """A change, and the raw files that it took. first_time: the least commit time in a load's, as they have it, '' if they tell none."""

    work: Work
    heads: tuple[RawHead, ...] = ()
    first_time: str = ""


def open_raw(place: Place, file: RawFile) -> Any:
    """The raw file's bytes, as they were when it was listed."""
    return open_object(place.s3, place.raw_bucket, file.key, file.size, etag=file.etag, whole_up_to=place.limits.stream_file_bytes)


def read_heads(place: Place, files: Sequence[RawFile], timestamp_column: str, late: frozenset[str] = frozenset()) -> list[RawHead]:
    """The heads of `files`, which are in the order of their changes. Raises TableBlocked naming the first file that can't be read."""

    def read(pair: tuple[int, RawFile]) -> RawHead:
        ordinal, file = pair
        where = f"s3://{place.raw_bucket}/{file.key}"
        if not file.key.endswith(".parquet"):
            raise blocked(
                "csv-not-read",
                "the file is CSV",
                where=where,
                expected="Parquet (DMS endpoint setting DataFormat=parquet)",
                found=file.base,
                todo="set DataFormat=parquet on the DMS S3 endpoint and reload the table",
            )
        schema = dms_schema(open_dms(open_raw(place, file), where), where, timestamp_column, place.before_images)
        return RawHead(file, schema, ordinal, file.key in late, where)

    with ThreadPoolExecutor(FOOTER_THREADS) as pool:
        return list(pool.map(read, enumerate(files)))


def units_of(head: RawHead) -> list[Unit]:
    """The file in pieces of about UNIT_BYTES; small files are one piece."""
    pieces = max(1, round(head.file.size / UNIT_BYTES))
    groups = head.schema.row_groups
    if pieces == 1 or groups < 2:
        return [Unit(head)]
    step = -(-groups // pieces)
    return [Unit(head, tuple(range(start, min(start + step, groups)))) for start in range(0, groups, step)]


def read_unit(place: Place, shape: Shape, unit: Unit) -> Iterator[pa.Table]:
    """The rows of a unit: the lake's columns, `__op`, `__position`. Null keys and damage are refused, naming file and row.

    Before an update that changed its row's key, as its before image tells, stands a delete of the old key.
    """
    head = unit.head
    before = shape.key if set(shape.key) <= set(head.schema.images) else ()
    source = open_raw(place, head.file)
    options: dict[str, Any] = {"row_groups": unit.row_groups, "before": before, "patterns": place.before_images}
    for table in read_dms(source, head.where, columns=shape.schema, **options):
        check_keys(table, shape.key, head.where)
        yield _in_order(table, before, head.ordinal)


def _in_order(table: pa.Table, before: Sequence[str], ordinal: int) -> pa.Table:
    """The rows with positions instead of `__row`: each row has two, the first one for the delete of its old key."""
    first = position(ordinal, pc.multiply(table[ROW], 2))
    rows = table.drop_columns([ROW, *(BEFORE + name for name in before)])
    marked = rows.append_column(POSITION, pc.add(first, 1))
    if not before:
        return marked
    # Where an image is null in part it tells no key. A key that differs from itself (NaN) may be deleted: its row comes after.
    moved = pc.equal(table[OP], pa.scalar(UPDATE, pa.int8()))
    for name in before:
        moved = pc.and_(moved, pc.is_valid(table[BEFORE + name]))
    changed = [pc.fill_null(pc.not_equal(table[name], table[BEFORE + name]), False) for name in before]
    moved = pc.and_(moved, reduce(pc.or_, changed))
    if not pc.any(moved).as_py():
        return marked
    for name in before:
        rows = rows.set_column(rows.column_names.index(name), name, table[BEFORE + name])
    rows = rows.set_column(rows.column_names.index(OP), OP, pa.repeat(pa.scalar(DELETE, pa.int8()), table.num_rows))
    return pa.concat_tables([rows.append_column(POSITION, first).filter(moved), marked])
