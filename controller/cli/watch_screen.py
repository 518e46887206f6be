"""What `dmslake watch` draws: the overview for a terminal of any size. Pure: a value and a size in, lines out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

from controller.cli.output import count_text, duration_text, size_text
from controller.pages.views import STATES, Bar, Overview, TableRow
from glue_jobs.core.printable import printable

STYLES = {
    "blocked": "bold red", "publishing": "cyan", "running": "cyan", "paused": "yellow", "behind": "yellow", "fine": "green",
    "unread": "dim", "inactive": "dim",
}  # fmt: skip
HEIGHTS = "▁▂▃▄▅▆▇█"
UNDONE = "·"
# The order in which a narrow terminal does without columns.
OPTIONAL = ("recent", "files", "bytes", "rows", "waiting", "kind")
COLUMNS = ("", "table", "state", "lag", "waiting", "last change", "kind", "rows", "bytes", "files", "recent")
NUMBERS = frozenset({"lag", "waiting", "rows", "bytes", "files"})
LEAST_NAME_CELLS = 16
GAP = 2
MOST_CHARS = 1000  # of a message: more than a screen's line, less than what takes long to measure


@dataclass(frozen=True)
class Size:
    """Of a terminal, in cells."""

    width: int
    height: int


def screen(overview: Overview, now: datetime, size: Size, foot: Text) -> Text:
    """Exactly as many lines as fit: counts, what needs a person, the tables, the foot. now: aware, UTC; ages are as of then."""
    head = [_counts(overview), Text(printable(_sizes(overview)), "dim"), Text()]
    room = max(size.height - len(head) - 1, 1)  # a line for the foot
    most_needs = max(max(room - 6, 0) // 2, room - len(overview.tables) - 2)
    needs = _needs([row for row in overview.tables if row.needs_person], most_needs, size.width)
    listed = _tables(overview.tables, now, size.width, room - len(needs))
    lines = [*head, *needs, *listed][: size.height - 1]
    lines += [Text()] * (size.height - 1 - len(lines)) + [foot.copy()]
    for line in lines:
        line.no_wrap = True
        line.truncate(size.width, overflow="ellipsis")
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def plain_rows(tables: Sequence[TableRow], now: datetime) -> tuple[tuple[str, ...], list[list[str]]]:
    """(columns, rows) of the same for a pipe, without what only looks."""
    kept = [at for at, name in enumerate(COLUMNS) if name not in ("", "recent")]
    return tuple(COLUMNS[at] for at in kept), [[_cells(row, now)[at] for at in kept] for row in tables]


def needs_lines(tables: Sequence[TableRow]) -> list[str]:
    """What needs a person, for a pipe."""
    return [line.plain for row in tables if row.needs_person for line in _need(row)]


def spark(bars: Sequence[Bar], most: int = 12) -> str:
    """The rows of the last changes as little bars, oldest first; a change that is undone is a dot."""
    shown = list(bars)[-most:]
    top = max((bar.rows for bar in shown if not bar.undone), default=0)
    return "".join(UNDONE if bar.undone else HEIGHTS[_height(bar.rows, top)] for bar in shown)


def _height(rows: int, top: int) -> int:
    """By the number of digits rather than by the number, so that a full load does not make all others look like nothing."""
    if rows <= 0 or top <= 0:
        return 0
    return round((len(HEIGHTS) - 1) * rows.bit_length() / top.bit_length())


def _counts(overview: Overview) -> Text:
    """How many tables are in each state, and how many need a person."""
    needing = sum(row.needs_person for row in overview.tables)
    parts = [Text(f"{needing:,} need a person" if needing != 1 else "1 needs a person", "bold red")] if needing else []
    for state in STATES:
        count = overview.totals.states.get(state, 0)
        if count:
            parts.append(Text(f"{count:,} {state}", STYLES[state]))
    return Text(" · ").join(parts or [Text("no tables")])


def _sizes(overview: Overview) -> str:
    totals = overview.totals
    texts = [f"{totals.tables:,} tables", f"{totals.rows:,} rows", f"{size_text(totals.bytes) or '0 B'} in {totals.files:,} files"]
    behind = totals.most_lag_seconds
    return ", ".join(texts) + (f"; the furthest behind: {duration_text(behind)}" if behind else "")


def _needs(tables: Sequence[TableRow], most_lines: int, width: int) -> list[Text]:
    """What each table that waits for a person waits for, and the way out, whole where there is room for all of them; otherwise a line
    each, cut off with the number of the others."""
    whole = [line for row in tables for line in _need(row, width)]
    if len(whole) + 1 <= most_lines:
        return [*whole, Text()] if whole else []
    lines: list[Text] = []
    for at, row in enumerate(tables):
        own = _need(row)
        after = 1 if row is tables[-1] else 2  # an empty line, and one for those that have no room
        if len(lines) + len(own) + after > most_lines:
            left = f"… and {len(tables) - at:,} more that need a person" if at else "a higher terminal has room for why"
            return [*lines, Text(left, "bold red"), Text()] if most_lines >= 2 else []
        lines += own
    return [*lines, Text()] if lines else []


def _need(row: TableRow, width: int = 0) -> list[Text]:
    """width: of the terminal, for as many lines as the words need; 0 for one line each."""
    said = [row.reason, row.failed, *row.notices]
    message = next((text for text in said if text), "")
    lines = [Text.assemble((printable(row.name), "bold"), "  ", (row.state, STYLES.get(row.state, "")))]
    for text, begin, style in ((message, "  ", ""), (row.todo, "  → ", "cyan")):
        if text:
            parts = wrap(_short(text), max(width - 5, 20), break_on_hyphens=False) if width else [_short(text)]
            lines += [Text((begin if not at else "    ") + part, style) for at, part in enumerate(parts)]
    return lines


def _short(text: str) -> str:
    return printable(text[:MOST_CHARS])


def _tables(tables: Sequence[TableRow], now: datetime, width: int, height: int) -> list[Text]:
    """The tables as aligned columns, as many rows as there is room for."""
    if not tables or height < 2:
        return []
    fits = len(tables) <= height - 1
    shown = tables[: height - 1 if fits else max(height - 2, 0)]
    rows = [_cells(row, now) for row in shown]
    widths = [max(cell_len(row[at]) for row in (COLUMNS, *rows)) for at in range(len(COLUMNS))]
    kept = _kept(widths, width)
    widths[1] = max(min(widths[1], width - sum(widths[at] + GAP for at in kept if at != 1)), LEAST_NAME_CELLS)
    lines = [_line(COLUMNS, kept, widths, "bold")]
    lines += [_line(cells, kept, widths, "", row.state) for row, cells in zip(shown, rows)]
    return lines if fits else [*lines, Text(f"… and {len(tables) - len(shown):,} more tables: dmslake status", "dim")]


def _kept(widths: Sequence[int], width: int) -> list[int]:
    """The columns for which there is room, the name at its least width."""
    kept = list(range(len(COLUMNS)))
    for name in ("", *OPTIONAL):
        least = sum((min(widths[at], LEAST_NAME_CELLS * 2) if at == 1 else widths[at]) + GAP for at in kept) - GAP
        if least <= width:
            break
        kept = [at for at in kept if COLUMNS[at] != name or not name]
    return kept


def _line(cells: Sequence[str], kept: Sequence[int], widths: Sequence[int], style: str, state: str = "") -> Text:
    line = Text(style=style)
    for at in kept:
        cell = Text(cells[at], STYLES.get(state, "") if COLUMNS[at] in ("", "state") else "")
        cell.truncate(widths[at], overflow="ellipsis")
        space = " " * (widths[at] - cell.cell_len)
        line.append_text(Text.assemble(space, cell) if COLUMNS[at] in NUMBERS else Text.assemble(cell, space)).append(" " * GAP)
    line.rstrip()
    return line


def _cells(row: TableRow, now: datetime) -> list[str]:
    age = duration_text(max((now - row.time).total_seconds(), 0.0)) if row.time else ""
    return [
        "!" if row.needs_person else " ",
        printable(row.name),
        row.state,
        duration_text(row.lag_seconds),
        "1 file" if row.pending_files == 1 else f"{row.pending_files:,} files" if row.pending_files else "",
        f"{age} ago" if age else "",
        row.kind,
        count_text(row.rows),
        size_text(row.bytes),
        count_text(row.files),
        spark(row.recent),
    ]
