"""The raw files of one change, looked at before any row is read: their columns and row counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.raw_names import RawFile, is_csv
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Schema
from glue_jobs.core.work import Work
from glue_jobs.spark.dms_files import check_keys
from glue_jobs.spark.engine import DriverEngine, Engine, SparkEngine
from glue_jobs.spark.key_columns import Column, comparable_column
from glue_jobs.spark.net_changes import DELETE, INSERT, MOVES_IN, MOVES_OUT, POSITION, STAYS, STEPS, UPDATE, position
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.raw_file import HeadOf, RawHead, read_raw
from glue_jobs.spark.row_marks import BEFORE, OP, ROW

FOOTER_THREADS = 16
UNIT_BYTES = 64 * 1024 * 1024  # a task reads about so much of a large raw file


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


# Why columns can't be told of a CSV file: what a person says of it then, the files before it need not fit.
_OTHER_COLUMNS = frozenset(
    {"csv-columns", "csv-columns-unclear", "csv-header-unclear", "csv-needs-schema", "csv-timestamp-unnamed", "csv-schema-contradicts"}
)


def read_heads(
    place: Place,
    files: Sequence[RawFile],
    reading: Reading,
    late: frozenset[str] = frozenset(),
    engine: Engine | None = None,
    up_to_columns: bool = False,
) -> list[RawHead]:
    """The heads of `files`, which are in the order of their changes. Raises TableBlocked naming the first file that can't be read.

    engine: where much work may be done, as a look at CSV files is: each of them is read from start to end. up_to_columns: where it is
    because of a CSV file's columns, give the heads of the files before it, if there are any.
    """
    parquet = [pair for pair in enumerate(files) if not is_csv(pair[1].key)]
    texts = [pair for pair in enumerate(files) if is_csv(pair[1].key)]
    keeps = isinstance(engine, DriverEngine)
    with ThreadPoolExecutor(FOOTER_THREADS) as pool:
        heads = list(pool.map(HeadOf(place, reading, late, keeps), parquet))
        look = _OrRefused(HeadOf(place, replace(reading, beside=_columns(heads)), late, keeps))
        looked = list(engine.map(look, texts) if isinstance(engine, SparkEngine) else pool.map(look, texts))
    heads += [each for each in looked if isinstance(each, RawHead)]
    heads.sort(key=lambda head: head.ordinal)
    refused = next((each for each in looked if not isinstance(each, RawHead)), None)
    if refused is None:
        return heads
    before = [head for head in heads if head.ordinal < refused[0]]
    if not (up_to_columns and before and refused[1].code in _OTHER_COLUMNS):
        raise refused[1]
    return before


@dataclass(frozen=True)
class _OrRefused:
    """The head of a file, or its place and why it can't be read."""

    look: HeadOf

    def __call__(self, pair: tuple[int, RawFile]) -> RawHead | tuple[int, TableBlocked]:
        try:
            return self.look(pair)
        except TableBlocked as error:
            return pair[0], error


def _columns(heads: Sequence[RawHead]) -> Schema:
    """The columns of all these files, each as the last one has it."""
    return tuple({column.name: column for head in heads for column in head.schema.columns}.values())


def units_of(head: RawHead) -> list[Unit]:
    """The file in pieces of about UNIT_BYTES; small files are one piece, and so are CSV files: a row's begin is told from the start."""
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
    for table in read_raw(place, head, columns=shape.schema, row_groups=unit.row_groups, before=before):
        check_keys(table, shape.key, head.where)
        _check_images(table, before, head)
        yield _in_order(table, before, head.ordinal)


def _check_images(table: pa.Table, key: Sequence[str], head: RawHead) -> None:
    """Refuse an insert with a before image: DMS gives one to updates only, so that it is a column of the source's own, and no other key."""
    inserts = pc.equal(table[OP], pa.scalar(INSERT, pa.int8()))
    for name in key:
        image = table[BEFORE + name]
        given = pc.not_equal(image, "") if pa.types.is_string(image.type) else pc.is_valid(image)  # in CSV null may be an empty text
        if pc.any(pc.and_(inserts, given)).as_py():
            raise _no_image(head, name, f"the key column {name!r}, and has a value in an insert")


def check_images_of_load(heads: Sequence[RawHead]) -> None:
    """Refuse the same in load files, of any column: it would be left out of the table without a word."""
    for head in heads:
        for name in head.schema.valued:
            raise _no_image(head, name, f"{name!r}, and has a value in a load")


def _no_image(head: RawHead, name: str, what: str) -> TableBlocked:
    return blocked(
        "before-image-unclear",
        f"column {head.schema.images[name]!r} would be the before image of {what}",
        where=f"file {head.where}",
        expected="null, where a row is new",
        found="a value",
        todo="it is a column of the source's own: set the attribute BeforeImagePrefix to one that no column has, then reload the table",
    )


def _differ(values: Column, images: Column, name: str) -> Column:
    """Where the key column's values are another key's than their before images: other bytes may be the same key."""
    return pc.and_(pc.not_equal(values, images), pc.not_equal(comparable_column(values, name), comparable_column(images, name)))


def _in_order(table: pa.Table, before: Sequence[str], ordinal: int) -> pa.Table:
    """The rows with positions instead of `__row`, which say of each whether it moves a key (key_moves.py). Before a row that moves in
    stands the delete of its old key."""
    first = position(ordinal, pc.multiply(table[ROW], STEPS))
    rows = table.drop_columns([ROW, *(BEFORE + name for name in before)])
    marked = rows.append_column(POSITION, pc.add(first, STAYS))
    if not before:
        return marked
    # Where an image is null in part it tells no key. A key that differs from itself (NaN) may be deleted: its row comes after.
    moved = pc.equal(table[OP], pa.scalar(UPDATE, pa.int8()))
    for name in before:
        moved = pc.and_(moved, pc.is_valid(table[BEFORE + name]))
    changed = [pc.fill_null(_differ(table[name], table[BEFORE + name], name), False) for name in before]
    moved = pc.and_(moved, reduce(pc.or_, changed))
    if not pc.any(moved).as_py():
        return marked
    marked = rows.append_column(POSITION, pc.if_else(moved, pc.add(first, MOVES_IN), pc.add(first, STAYS)))
    for name in before:
        rows = rows.set_column(rows.column_names.index(name), name, table[BEFORE + name])
    rows = rows.set_column(rows.column_names.index(OP), OP, pa.repeat(pa.scalar(DELETE, pa.int8()), table.num_rows))
    return pa.concat_tables([rows.append_column(POSITION, pc.add(first, MOVES_OUT)).filter(moved), marked])
