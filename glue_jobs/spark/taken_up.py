"""Rows that no data file held, on their way to one: to a new file, or to a small one, which takes them up among its own rows.

They are a few bytes at a time: a batch may have gigabytes of them, and a file that is small because it is compressed well may decode to as
many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from glue_jobs.core.keys import slice_of
from glue_jobs.spark.encoded_texts import encoded_like
from glue_jobs.spark.key_columns import bounds, comparables, key_order, sort_by_key, take
from glue_jobs.spark.net_changes import NetChanges
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.row_batches import rows_at_a_time
from glue_jobs.spark.write_files import WriteOptions

Positions = np.ndarray[Any, Any]


def new_rows(net: NetChanges, positions: Positions) -> Iterator[pa.Table]:
    """The images at these positions in the net changes, which ascend, in pieces."""
    rows = rows_at_a_time(net.images.nbytes / max(1, net.rows))
    for start in range(0, len(positions), rows):
        some = positions[start : start + rows]
        first, last = int(some[0]), int(some[-1])
        yield take(net.images.slice(first, last + 1 - first), pa.array(some - first))


def options_of(opened: OpenFile) -> WriteOptions:
    """How the file is written that has the rows of `taken_up`. The first rows of one that lies in memory say what a dictionary is for: it
    may be tiny, or older than some columns."""
    return WriteOptions() if opened.whole else WriteOptions(opened.dictionary)


def taken_up(opened: OpenFile, net: NetChanges, merged: Iterable[pa.Table], positions: Positions) -> Iterator[pa.Table]:
    """The rows of a file after the merge, and the images at these positions, which ascend, where their keys belong; without a key last.

    A file that lies in memory is put in order. Of another one what is not in order stays so, but where images belong among a piece's rows.
    """
    done = 0
    for rows in merged:
        start, stop = np.maximum(np.searchsorted(positions, net.slice_of_rows(rows)), done).tolist()
        ordered = _in_order(rows, net.shape.key) if opened.whole or stop > start else rows
        yield from _like(new_rows(net, positions[done:start]), rows)
        yield from _among(net, ordered, positions[start:stop]) if stop > start else [ordered]
        done = stop
    yield from new_rows(net, positions[done:])


def _in_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """As sort_by_key, without copying rows that are in order already."""
    if not key:
        return rows
    order = key_order(rows, key)
    return rows if np.array_equal(order, np.arange(rows.num_rows)) else take(rows, order)


def _among(net: NetChanges, rows: pa.Table, positions: Positions) -> Iterator[pa.Table]:
    """These rows, which are in order, and the images: some of those with the rows up to the last of them, then the next ones."""
    key, done = net.shape.key, 0
    keys = comparables(rows, key)
    for images in _like(new_rows(net, positions), rows):
        found = bounds(images, key)
        _, stop = slice_of(keys, len(key), None, found and found[1])
        yield sort_by_key(pa.concat_tables([rows.slice(done, stop - done), images]), key)
        done = stop
    yield rows.slice(done)


def _like(images: Iterable[pa.Table], rows: pa.Table) -> Iterator[pa.Table]:
    """The images with the same texts encoded as in the rows."""
    return (encoded_like(each, rows.schema) for each in images)
