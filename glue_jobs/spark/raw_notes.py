"""What is noticed of raw files and changes nothing: rows that DMS sent twice, digits below the microsecond.

It stands in the details of the change's record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from glue_jobs.core.dms_columns import SEQUENCE_COLUMN
from glue_jobs.core.schema import Column, find
from glue_jobs.spark.arrow_types import LostDigits, conform
from glue_jobs.spark.dms_files import damage_named, open_dms, read_batches
from glue_jobs.spark.engine import Engine
from glue_jobs.spark.key_hashes import Hashes, key_hashes
from glue_jobs.spark.place import Place
from glue_jobs.spark.raw_file import RawHead, open_raw, read_raw

REPEATED, CUT = "repeated_rows", "digits_cut"


def raw_notes(engine: Engine, place: Place, heads: Sequence[RawHead]) -> dict[str, Any]:
    """The details of a change that took these files: `repeated_rows`, those whose change sequence another row of them has too;
    `digits_cut`, column → values that had digits below the microsecond. Only columns that may tell are read; of most tables none."""
    wanted = [head for head in heads if _telling(head)]
    if not wanted:
        return {}
    found = engine.map(_Notes(place), wanted)
    sequences = np.concatenate([sequences for sequences, _ in found])
    repeated = len(sequences) - len(np.unique(sequences))
    cut: Counter[str] = Counter()
    for _, each in found:
        cut.update(each)
    return {**({REPEATED: repeated} if repeated else {}), **({CUT: dict(sorted(cut.items()))} if cut else {})}


def _telling(head: RawHead) -> list[str]:
    """The file's columns that may tell something."""
    if head.csv is None:
        fine = [column.name for column in head.schema.physical if pt.is_timestamp(column.type) and column.type.unit == "ns"]
    else:
        fine = [column.name for column in head.schema.columns if column.type == "timestamp" and head.csv.head.fine_times]
    return [SEQUENCE_COLUMN, *fine] if SEQUENCE_COLUMN in head.schema.excluded else fine


@dataclass(frozen=True)
class _Notes:
    place: Place

    def __call__(self, head: RawHead) -> tuple[Hashes, dict[str, int]]:
        """(hashes of the change sequences, column → values that are cut)."""
        hashes: list[Hashes] = [np.empty(0, np.uint64)]
        cut = LostDigits()
        columns = _telling(head)
        if head.csv is not None:
            wanted = tuple(find(head.schema.columns, name) or Column(name, "string") for name in columns)
            for rows in read_raw(self.place, head, columns=wanted, lost=cut):
                hashes.extend(_hashes(rows) if SEQUENCE_COLUMN in columns else [])
            return np.concatenate(hashes), {name: count for name, count in cut.items() if count}
        source = open_raw(self.place, head.file)
        parquet = open_dms(source, head.where)
        for batch in read_batches(source, parquet, columns, range(parquet.num_row_groups), head.where, head.schema.renamed):
            with damage_named(head.where):
                rows = pa.Table.from_batches([batch])
                taken = tuple(column for column in head.schema.columns if column.name in columns)
                conform(rows, taken, head.where, lost=cut)
                hashes.extend(_hashes(rows) if SEQUENCE_COLUMN in columns else [])
        return np.concatenate(hashes), {name: count for name, count in cut.items() if count}


def _hashes(rows: pa.Table) -> list[Hashes]:
    """Of the change sequences."""
    sent = rows.column(SEQUENCE_COLUMN).drop_null()
    return [key_hashes(pa.table([sent.cast(pa.string())], names=[SEQUENCE_COLUMN]))]
