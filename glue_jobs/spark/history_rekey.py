"""A table's key changes: which open versions of its history end then, so that each new key has one.

Living rows have distinct new keys. Of keys that are gone the last version is open too, as a delete; by the new key it may be another
row's, or none at all where one of its columns is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.bins import BINS_PER_SLOT, pack
from glue_jobs.core.history_table import DELETE, FLAG, OPERATION, VALID_FROM
from glue_jobs.core.record import DataFile
from glue_jobs.spark.engine import Engines
from glue_jobs.spark.history_files import ROW_BITS, Edits, Numbered, open_files
from glue_jobs.spark.history_passes import passes_for
from glue_jobs.spark.locate import GivenKeys, column_batches, packed
from glue_jobs.spark.past import PastFile
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.replay_rows import Part
from glue_jobs.spark.row_versions import AT, as_micros

COLUMNS_READ = 4  # beside the key: flag, operation, time, place


def ends_of_rekey(engines: Engines, place: Place, shape: Shape, files: Sequence[DataFile], now: int) -> Edits:
    """The open versions that end. shape: with the new key; now: in microseconds since 1970, for those that have no key any more."""
    numbered = open_files(files)
    engine = engines.for_bytes(sum(file.size_bytes for _, file in numbered))
    # A task holds what it has read of its bin: here bins are small.
    bins = [tuple(some) for some in pack(numbered, lambda file: file[1].size_bytes, engine.slots * BINS_PER_SLOT)]
    count = passes_for(sum(file.rows for _, file in numbered), 0, len(shape.key) + COLUMNS_READ, 1, place.limits.replay_bytes)
    ends = []
    for number in range(count if bins else 0):
        found = engine.map(_OpenTask(place, shape, Part(number, count)), bins)
        ends.append(ends_by_key(pa.concat_tables([pa.ipc.open_stream(data).read_all() for data in found]), shape.key, now))
    return Edits.joined(ends)


@dataclass(frozen=True)
class _OpenTask:
    """The open versions of some files, those of a part of the keys: new key, operation, time and place."""

    place: Place
    shape: Shape
    part: Part

    def __call__(self, files: tuple[Numbered, ...]) -> bytes:
        return packed(pa.concat_tables([rows for number, file in files for rows in self._one(number, file)]))

    def _one(self, number: int, file: DataFile) -> list[pa.Table]:
        wanted, start, found = (*self.shape.key, FLAG, OPERATION, VALID_FROM), 0, []
        for rows in column_batches(self.place, self.shape, PastFile(file, ""), wanted, lacking_is_null=True):
            places = pa.array((number << ROW_BITS) + start + np.arange(rows.num_rows))
            start += rows.num_rows
            found.append(self.part.of(rows.append_column(AT, places).filter(pc.equal(rows[FLAG], 1)), self.shape.key))
        return found


def ends_by_key(rows: pa.Table, key: Sequence[str], now: int) -> Edits:
    """The open versions `rows` that end. Of each new key all but one: a living row stays, else the last of those that are gone."""
    codes, since = GivenKeys.of(rows, key).places(rows), as_micros(rows[VALID_FROM])
    alive = pc.not_equal(rows[OPERATION], DELETE).to_numpy(zero_copy_only=False)
    at = rows[AT].to_numpy()
    order = np.lexsort((at, since, alive, codes))
    codes, since, at = codes[order], since[order], at[order]
    follows = np.append(codes[1:] == codes[:-1], False)[: len(codes)]
    until = np.maximum(since, np.where(codes < 0, now, np.roll(since, -1)))
    ends = follows | (codes < 0)
    return Edits.of(at[ends], until[ends])
