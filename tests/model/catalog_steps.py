"""Requests of the catalog step: the Glue table, its partitions, and saying that it is done."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.state import Catalog, State
from tests.model.turn import Step, Turn


def catalog_read(turn: Turn) -> Iterator[Step]:
    """GetTable: leave a greater fence's table alone; another layout needs another table."""
    table, mine = turn.state.catalog, turn.mine
    if table is not None and table.fence > turn.writer.fence and turn.rules.catalog_has_a_fence:
        yield turn.end(f"the table has fence {table.fence}: left alone, and the lease is lost")
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
        yield turn.to("partitions", f"table of {mine.id}, fence {written.fence}", turn.state._replace(catalog=written), table=None)


def catalog_delete(turn: Turn) -> Iterator[Step]:
    """DeleteTable, which has no condition: only the deadline keeps a late one back. It is over when another run has the lease."""
    if turn.rules.deadline_stops_writes and not turn.fence_is_mine:
        yield turn.end("the deadline is over: stopped")
    else:
        yield turn.to("catalog_create", "delete the table", turn.state._replace(catalog=None), table=None)


def catalog_create(turn: Turn) -> Iterator[Step]:
    """CreateTable: refused if there is one. Its answer may be lost: sent again it is refused, too."""
    mine, asked = turn.mine, turn.rules.creation_is_remembered
    if turn.state.catalog is not None:
        yield turn.to("catalog_read", "somebody created the table", asked=asked)
    else:
        made = turn.state._replace(catalog=Catalog(turn.writer.fence * 100, turn.writer.fence, mine.columns, mine.layout, frozenset()))
        yield turn.to("partitions", f"create the table of {mine.id}", made, asked=True)
        if "unanswered" in turn.faults:
            yield turn.to("catalog_read", f"create the table of {mine.id}, answer lost", made, asked=asked)


def partitions(turn: Turn) -> Iterator[Step]:
    """BatchCreatePartition; without a rule the others are removed, too."""
    table, mine = turn.state.catalog, turn.mine
    if table is None:
        yield turn.end("no table for the partitions: left for the next run")
        return
    known = table.partitions | _sent(turn) if turn.rules.partitions_are_only_added else mine.partitions
    state: State = turn.state._replace(catalog=table._replace(partitions=known))
    yield turn.to("catalog_clear", f"partitions of {mine.id}", state, asked=False)


def _sent(turn: Turn) -> frozenset[str]:
    """Those of the added files. All of them to a table that may be new, by who finishes another's change or takes one back, and where
    going back or forth leads to other columns or another layout."""
    mine, before = turn.mine, turn.mine.parent
    undoes = mine.kind in ("rollback", "reapply")
    if before is None or turn.writer.asked or mine.fence != turn.writer.fence or mine.kind == "lost":
        return mine.partitions
    if undoes and (mine.columns, mine.layout) != (before.columns, before.layout):
        return mine.partitions
    return frozenset() if undoes and not turn.rules.undo_adds_partitions else mine.partitions - before.partitions


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
