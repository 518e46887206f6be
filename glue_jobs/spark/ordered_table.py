"""Writing a whole table whose sources are in the order of its keys already: no row goes through a shuffle.

DMS reads a source table mostly by its primary key, so that load files are sorted by it and follow on each other. A first look at the keys
alone tells whether that is so. Then each task writes some partitions, or a stretch of the keys of a large one, from the sources that
hold them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.keys import Bound
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import Engine, chain
from glue_jobs.spark.key_columns import bounds, normalised_keys
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.portions import Content, Portion, Streamed, check_rows, planned, row_bytes_of
from glue_jobs.spark.row_sources import RowSource, counted, kept_by_partition, keys_and_partitions
from glue_jobs.spark.write_files import FileWriter, abort_all

SPLIT_RATIO = 1.5  # a stretch that came out larger than the target is split only above this: a rest would be a small file


@dataclass(frozen=True)
class Stretch:
    """A source whose keys ascend, each once. low, high: the least and the greatest."""

    low: Bound
    high: Bound
    content: Content


def in_key_order(engine: Engine, place: Place, shape: Shape, sources: Sequence[RowSource]) -> dict[int, Content] | None:
    """What the sources hold, by their numbers, in the order of their keys; None if they are in no order, or a key may come twice."""
    looks = engine.map(_Look(place, shape), sources)
    if any(look is None for look in looks):
        return None
    found = {at: look for at, look in enumerate(looks) if look and look.content.read}
    order = sorted(found, key=lambda at: found[at].low)
    if any(found[second].low <= found[first].high for first, second in itertools.pairwise(order)):
        return None
    return {at: found[at].content for at in order}


def write_in_order(
    engine: Engine, place: Place, shape: Shape, sources: Sequence[RowSource], contents: Mapping[int, Content], size_bytes: float
) -> list[DataFile] | None:
    """All rows of the sources as data files, sorted by key; None where a shuffle is cheaper.

    contents: of `in_key_order`; size_bytes: what the files are expected to come to.
    """
    writing = Streamed(row_bytes_of(contents, size_bytes), place.limits.target_file_bytes)
    portions = planned(contents, writing, engine.slots)
    if portions is None:
        return None
    tasks = [(portion, tuple(sources[at] for at in portion.sources)) for portion in portions]
    return chain(engine.map(_Write(place, shape), tasks))


@dataclass(frozen=True)
class _Look:
    """Reads the key and the columns of the partitions of one source. None as soon as a key does not follow on the one before."""

    place: Place
    shape: Shape

    def __call__(self, source: RowSource) -> Stretch | None:
        narrow = keys_and_partitions(self.shape)
        low = high = ()  # type: Bound
        content = Content()
        for rows in source(self.place, narrow):
            found = bounds(rows, narrow.key)
            if found is None:
                continue
            if (content.read and found[0] <= high) or not ascends(rows, narrow.key):
                return None
            low, high = (low if content.read else found[0]), found[1]
            content = content.with_rows(rows.num_rows, counted(rows, narrow))
        return Stretch(low, high, content)


def ascends(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether each row's key is greater than the one before. A NaN is not."""
    count = rows.num_rows - 1
    less = pa.array([False] * count, pa.bool_())
    same = pa.array([True] * count, pa.bool_())
    for column in normalised_keys(rows, key).columns:
        values = column.combine_chunks()
        here, following = values.slice(0, count), values.slice(1)
        less = pc.or_(less, pc.and_(same, pc.less(here, following)))
        same = pc.and_(same, pc.equal(here, following))
    return bool(pc.all(less, skip_nulls=False, min_count=0).as_py())


@dataclass(frozen=True)
class _Write:
    """Writes one portion."""

    place: Place
    shape: Shape

    def __call__(self, task: tuple[Portion, Sequence[RowSource]]) -> list[DataFile]:
        portion, sources = task
        limits = replace(self.place.limits, target_file_bytes=int(SPLIT_RATIO * self.place.limits.target_file_bytes))
        place = replace(self.place, limits=limits)
        writers = {values: FileWriter(place, self.shape, values) for values in portion.partitions}
        try:
            for source in sources:
                for rows in source(self.place, self.shape):
                    for values, part in kept_by_partition(rows, self.shape):
                        if values in writers:
                            writers[values].write(part)
            files = chain(writer.finish() for writer in writers.values())
            check_rows(portion, sum(file.rows for file in files))
        except BaseException:
            abort_all(writers.values())
            raise
        return files
