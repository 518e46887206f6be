"""Erased keys that come back: in a load, or in a batch of CDC files. Told by salted hashes; looked for only in tables with an erase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.aws.erased import erase_records
from glue_jobs.core.actions import TakeBatch, TakeLoad
from glue_jobs.core.erasure import hash_key, key_text
from glue_jobs.core.record import ErasedKeys
from glue_jobs.core.schema import Schema, find
from glue_jobs.core.work import Task, Work
from glue_jobs.spark.engine import Engines, chain
from glue_jobs.spark.key_columns import comparable, normal_floats, normalised_keys
from glue_jobs.spark.net_changes import DELETE, OP
from glue_jobs.spark.place import Place
from glue_jobs.spark.raw_file import RawHead, read_raw


def texts_of_keys(keys: pa.Table) -> list[str]:
    """The canonical text of each key; the columns' order is the key's, and none is null."""
    return [text for text in text_of_rows(keys) if text is not None]


def text_of_rows(rows: pa.Table) -> list[str | None]:
    """The canonical text of each row's values, None where one is null."""
    columns = [[comparable(value) if value.is_valid else None for value in normal_floats(column)] for column in rows.columns]
    return [None if any(value is None for value in values) else key_text(values) for values in zip(*columns, strict=True)]


def keys_back(engines: Engines, place: Place, task: Task, work: Work, heads: Sequence[RawHead]) -> int:
    """How many erased keys the raw files of the change bring as rows. 0, and nothing is read, for a table without an erase."""
    if not task.snapshot.erases or not isinstance(task.action, (TakeLoad, TakeBatch)):
        return 0
    records = erase_records(place.s3, place.lake, task.snapshot.erases)
    wanted = tuple(record.erased_keys for record in records if record.erased_keys is not None)
    wanted = tuple(keys for keys in wanted if all(find(work.schema, name) is not None for name in keys.columns))
    taken = {item.key for item in work.inputs}
    fresh = [head for head in heads if head.file.key in taken]
    if not wanted or not fresh:
        return 0
    engine = engines.for_bytes(sum(head.size_bytes for head in fresh))
    names = {name for keys in wanted for name in keys.columns}
    schema = tuple(column for column in work.schema if column.name in names)
    found = chain(engine.map(_BackTask(place, schema, wanted), fresh))
    return len(set(found))


@dataclass(frozen=True)
class _BackTask:
    place: Place
    schema: Schema
    wanted: tuple[ErasedKeys, ...]

    def __call__(self, head: RawHead) -> list[tuple[tuple[str, ...], str]]:
        """(columns, text) of the erased keys that the file brings."""
        return [found for rows in self._rows(head) for found in erased_among(self.wanted, rows)]

    def _rows(self, head: RawHead) -> Iterator[pa.Table]:
        for table in read_raw(self.place, head, columns=self.schema):
            yield table.filter(pc.not_equal(table[OP], pa.scalar(DELETE, pa.int8())))


def erased_among(wanted: Iterable[ErasedKeys], rows: pa.Table) -> set[tuple[tuple[str, ...], str]]:
    """(columns, text) of the rows' keys that were erased. A key is made a text once, and hashed once with each salt: a table may have had
    an erase each week, all of them with one salt."""
    hashes: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for keys in wanted:
        hashes.setdefault(keys.columns, {}).setdefault(keys.salt, set()).update(keys.hashes)
    found = set()
    for columns, by_salt in hashes.items():
        texts = [text for text in text_of_rows(_distinct(rows, columns)) if text is not None]
        found |= {(columns, text) for salt, among in by_salt.items() for text in texts if hash_key(salt, text) in among}
    return found


def _distinct(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    plain: Any = [str(at) for at in range(len(columns))]
    return normalised_keys(rows, columns).rename_columns(plain).group_by(plain, use_threads=False).aggregate([]).select(plain)
