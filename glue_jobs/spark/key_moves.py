"""Keys that change, and two rows with one key in between: what becomes of the row that came first.

An update of a key is a delete of the old key and an upsert of the new one. Most databases allow that only where no row has the new key;
Oracle, Db2, and PostgreSQL with a deferrable key look at the end of the statement. `UPDATE t SET id = id + 1` then sends 1 → 2, and 2 → 3:

    key 2: held by a row │ another one moves in │ one moves out → the row that moved in stays
    key 2: held by none  │ a row moves in       │ it moves out  → none stays

From the changes alone the two look the same. What tells them apart is how many rows hold the key: as the changes before say, or, where
they say nothing, as the lake does (`HELD`, an update only where it has a row). A change's position says by its last two bits what it is.
A move that DMS sends again, all of its row the same, is no second one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.spark.key_columns import take
from glue_jobs.spark.key_index import KeyIndex
from glue_jobs.spark.net_changes import DELETE, HELD, MOVES_IN, MOVES_OUT, OP, POSITION, UPDATE, Array, moves_of
from glue_jobs.spark.row_changes import differing


def settled(winners: pa.Table, rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last change of each key, of `rows`; where a row moved out, and one that came before it stays, that one: as an update, or as one
    of a row that is HELD. Its position stays the last change's."""
    places, ops = winners[POSITION].to_numpy(), winners[OP].to_numpy()
    out = moves_of(places, ops) == MOVES_OUT
    if not out.any():
        return winners
    found = KeyIndex(winners.filter(pa.array(out)), key).positions(rows)
    chosen = rows.filter(pc.is_valid(found))
    places, ops = chosen[POSITION].to_numpy(), chosen[OP].to_numpy()
    if not (moves_of(places, ops) == MOVES_IN).any():
        return winners
    codes = np.asarray(found.drop_null())
    order = np.lexsort((places, codes))
    codes, ops, places = codes[order], ops[order], places[order]
    chosen = take(chosen, pa.array(order))
    moves = moves_of(places, ops)
    least, most = holders(
        codes, moves, ops == DELETE, are_repeated(chosen, [name for name in chosen.column_names if name != POSITION], moves, codes)
    )
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True))
    last_in = np.maximum.accumulate(np.where(moves == MOVES_IN, np.arange(len(codes)), -1))[ends]
    stays = most[ends] > 0
    last, becomes = places[ends[stays]], np.where(least[ends[stays]] > 0, UPDATE, HELD)
    new = take(chosen, pa.array(last_in[stays]))
    new = new.set_column(new.column_names.index(OP), OP, pa.array(becomes.astype(np.int8)))
    new = new.set_column(new.column_names.index(POSITION), POSITION, pa.array(last))
    return pa.concat_tables([winners.filter(pc.invert(pc.is_in(winners[POSITION], value_set=pa.array(last)))), new])


def are_repeated(rows: pa.Table, names: Sequence[str], moves: Array, codes: Array) -> Array:
    """A mask of the moves that say the same as the one before. Rows are in the order of their keys and changes; names: of what they say."""
    mask = np.zeros(len(codes), bool)
    pairs = np.flatnonzero((moves[1:] != 0) & (moves[1:] == moves[:-1]) & (codes[1:] == codes[:-1])) + 1
    if len(pairs):
        columns = rows.select(list(names))
        mask[pairs] = ~differing(columns.take(pa.array(pairs - 1)), columns.take(pa.array(pairs))).to_numpy(zero_copy_only=False)
    return mask


def holders(codes: Array, moves: Array, deletes: Array, repeated: Array) -> tuple[Array, Array]:
    """How many rows hold the key after each change, if none held it before the first one, and if one did. Changes are in the order of their
    keys, and of what happened to each; moves: as of `moves_of`, 0 for what says by itself whether there is a row."""
    least, most = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    low, high, before = 0, 1, None
    for at, (code, move, delete, again) in enumerate(zip(codes.tolist(), moves.tolist(), deletes.tolist(), repeated.tolist(), strict=True)):
        if code != before:
            low, high, before = 0, 1, code
        if not move:
            low = high = 0 if delete else 1
        elif not again:
            step = 1 if move == MOVES_IN else -1
            low, high = max(0, low + step), max(0, high + step)
        least[at], most[at] = low, high
    return least, most


def void_moves(rows: pa.Table, names: Sequence[str], codes: Array, moves: Array, deletes: Array) -> Array:
    """A mask of the moves out that take no row away, of rows in the order of their keys and changes, none of which was held before the
    first. names: the columns that tell whether a move was sent again."""
    least, _ = holders(codes, moves, deletes, are_repeated(rows, names, moves, codes))
    return (moves == MOVES_OUT) & (least > 0)
