"""The last change of each key among the rows of a batch, by Arrow. Spark's is in rows.py."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.spark.key_columns import normalised_keys
from glue_jobs.spark.key_moves import settled
from glue_jobs.spark.net_changes import POSITION


def rank(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last change of each key: the row with the greatest position, or one before it that stays when another row moves out
    (key_moves.py). All rows where there is no key. Columns as given."""
    if not key or not table.num_rows:
        return table
    keys = normalised_keys(table, key)
    numbered = keys.append_column("__at", table[POSITION])
    last = numbered.group_by(list(keys.column_names), use_threads=False).aggregate([("__at", "max")])["__at_max"]
    winners = table.filter(pc.is_in(table[POSITION], value_set=last.combine_chunks()))
    return settled(winners, table, key)
