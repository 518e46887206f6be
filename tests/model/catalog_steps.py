"""Requests of the catalog step: the Glue table, its partitions, and saying that it is done."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.state import Catalog, State
from tests.model.turn import Step, Turn


def catalog_read(turn: Turn) -> Iterator[Step]:
    """GetTable: leave a greater fence's table alone; another layout needs another table."""
    table, mine = turn.state.catalog, turn.mine
    if table is not None and table.fence > turn.writer.fence and turn.rules.catalog_has_a_fence:
        yield turn.to("partitions", f"the table has fence {table.fence}: left alone")
    elif table is not None and table.layout != mine.layout:
        yield turn.to("catalog_delete", "the table has another layout", table=table)
    elif table is None:
        yield turn.to("catalog_create", "no table")
    else:
        yield turn.to("catalog_update", f"the table has fence {table.fence}", table=table)


def catalog_update(turn: Turn) -> Iterator[Step]:
    """UpdateTable(VersionId): refused if somebody updated it since it was read."""
    now, seen, mine = turn.state.catalog, turn.writer.table, turn.mine
    if now is None or seen is None or (now.version != seen.version and turn.rules.catalog_version_is_compared):
        yield turn.to("catalog_read", "the table was changed: read again", table=None)
    else:
        written = now._replace(version=now.version + 1, fence=turn.writer.fence, columns=mine.columns)
        at = "catalog_clear" if _has_partitions(turn) else "partitions"
        yield turn.to(at, f"table of {mine.id}, fence {written.fence}", turn.state._replace(catalog=written), table=None)


def _has_partitions(turn: Turn) -> bool:
    """What comes back was in the catalog before, unless the table is another one. Who finishes another's change looks at all of them."""
    mine, before = turn.mine, turn.mine.parent
    same = before is not None and (mine.columns, mine.layout) == (before.columns, before.layout)
    return same and mine.kind in ("rollback", "reapply") and mine.fence == turn.writer.fence


def catalog_delete(turn: Turn) -> Iterator[Step]:
    """DeleteTable, which has no condition: only the deadline keeps a late one back. It is over when another run has the lease."""
    if turn.rules.deadline_stops_writes and not turn.fence_is_mine:
        yield turn.end("the deadline is over: stopped")
    else:
        yield turn.to("catalog_create", "delete the table", turn.state._replace(catalog=None), table=None)


def catalog_create(turn: Turn) -> Iterator[Step]:
    """CreateTable: refused if there is one."""
    mine = turn.mine
    if turn.state.catalog is not None:
        yield turn.to("catalog_read", "somebody created the table")
    else:
        made = Catalog(turn.writer.fence * 100, turn.writer.fence, mine.columns, mine.layout, frozenset())
        yield turn.to("partitions", f"create the table of {mine.id}", turn.state._replace(catalog=made))


def partitions(turn: Turn) -> Iterator[Step]:
    """BatchCreatePartition; without the rule the others are removed, too."""
    table, mine = turn.state.catalog, turn.mine
    if table is None:
        yield turn.end("no table for the partitions: left for the next run")
        return
    known = table.partitions | mine.partitions if turn.rules.partitions_are_only_added else mine.partitions
    state: State = turn.state._replace(catalog=table._replace(partitions=known))
    yield turn.to("catalog_clear", f"partitions of {mine.id}", state)


def catalog_clear(turn: Turn) -> Iterator[Step]:
    """The conditional update that takes CatalogPending away."""
    pending = turn.mine.id
    if (turn.fence_is_mine and turn.item.catalog_pending == pending) or not turn.rules.writes_carry_the_fence:
        item = turn.item._replace(catalog_pending="")
        yield turn.to("read", "clear CatalogPending", turn.state._replace(item=item), seen=None, mine=None)
    elif turn.fence_is_mine and not turn.item.catalog_pending:
        yield turn.to("read", "CatalogPending is clear", seen=None, mine=None)
    else:
        yield turn.end("clear CatalogPending refused: lease lost")
