"""Different keys that a table's collation takes for one. A source with that collation can't have both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from glue_jobs.core.collation import collation_of
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.spark.given_rows import texts_of
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.place import Shape

Spellings = tuple[str, str]


def two_spellings(rows: pa.Table, key: Sequence[str]) -> Spellings | None:
    """Two keys of the rows, as messages show them, that are different texts and one key. None if there are none, as without a collation."""
    if not collation_of(key):
        return None
    spelled = GivenKeys.of(rows, tuple(str(name) for name in key)).table
    codes = GivenKeys.of(spelled, key).places(spelled)
    order = np.argsort(codes, kind="stable")
    same = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    if not len(same):
        return None
    first, second = texts_of(spelled.take(pa.array(order[same[0] : same[0] + 2])))
    return first, second


def not_unique(shape: Shape, surplus: int, spellings: Spellings | None) -> TableBlocked:
    """The error for a key that a person changed and that is none; surplus: rows more than keys."""
    what = f"PrimaryKey {','.join(shape.key)} is not unique: {surplus} row(s) more than keys"
    if spellings is None:
        return blocked("key-not-unique", what, where=shape.table, todo="correct the attribute PrimaryKey of the table's item")
    return blocked(
        "key-not-unique",
        what,
        where=shape.table,
        expected=f"one row for all spellings of a key (KeyCollation {collation_of(shape.key)})",
        found=" and ".join(spellings),
        todo="set KeyCollation to the source's collation; if it is that, the lake has an old row more: reload the table in DMS, then "
        "`dmslake reload PATH`",
    )


def spelled_twice(shape: Shape, spellings: Spellings) -> TableBlocked:
    """The error for a full load that has both: keeping the last one could lose a row."""
    return blocked(
        "key-spelled-twice",
        "the full load has two keys that KeyCollation takes for one",
        where=shape.table,
        expected=f"one spelling of a key (KeyCollation {collation_of(shape.key)})",
        found=" and ".join(spellings),
        todo="set KeyCollation to the source's collation; if it is that, the key was written anew during the load: reload the table in DMS",
    )
