"""What a person sees of the demo: steps, tables, row changes. Needs rich; decides nothing."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from infra.local.row_changes import RowChange

WIDEST = 100
_MARKS = {"INSERT": ("+", "green", "inserted"), "UPDATE": ("~", "yellow", "updated"), "DELETE": ("−", "red", "deleted")}
_SHOWN = {"INSERT": 3, "UPDATE": 6, "DELETE": 3}


class Screen:
    """Writes through `echo`, in colour where stdout is a terminal; what is going on is shown on stderr meanwhile."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self._steps = 0
        width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
        self._buffer = io.StringIO()
        colour = sys.stdout.isatty()
        self._console = Console(
            file=self._buffer, width=width, force_terminal=colour, no_color=not colour, markup=False, highlight=False, emoji=False
        )
        self._progress = Console(stderr=True, markup=False, highlight=False)

    def show(self, what: RenderableType, indent: int = 3, style: str = "") -> None:
        """Print it, indented."""
        self._console.print(Padding(what, (0, 0, 0, indent)), style=style)
        self._echo("\n".join(line.rstrip() for line in self._buffer.getvalue().rstrip("\n").split("\n")))
        self._buffer.seek(0)
        self._buffer.truncate()

    def title(self, text: str, below: str) -> None:
        self.show(Text(text, "bold"), 0)
        self.show(Text(below, "dim"), 0)

    def step(self, text: str) -> None:
        """Begin the next numbered step."""
        self._steps += 1
        self._echo("")
        self.show(Text.assemble((f"{self._steps}  ", "bold cyan"), (text, "bold")), 0)

    def say(self, text: str, style: str = "") -> None:
        self.show(Text(text, style))

    def command(self, text: str) -> None:
        self.show(Text.assemble(("$ ", "dim"), (text, "cyan")))

    def comment(self, text: str) -> None:
        """What the next line does, as a shell's comment: every line of it, so that all can be pasted."""
        for line in textwrap.wrap(text, self._console.width - 5):
            self.show(Text(f"# {line}", "dim"))

    def line(self, text: str) -> None:
        """A line to paste: never wrapped."""
        self._echo(f"   {text}")

    def point(self, text: str) -> None:
        """One of a list of sentences."""
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row("·", text)
        self.show(grid)

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """Show on a terminal that work goes on."""
        if not self._progress.is_terminal:
            yield
            return
        with self._progress.status(text):
            yield

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> None:
        """A plain table; `numbers` are the columns that stand on the right."""
        table = Table(box=None, header_style="dim", padding=(0, 3, 0, 0), pad_edge=False)
        for name in columns:
            table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        self.show(table)

    def changes(self, table: str, changes: Sequence[RowChange], note: str) -> None:
        """A lake table's row changes: how many, then some of each operation, old → new."""
        counts = Counter(change.operation for change in changes)
        head = Text.assemble((table, "bold"), "  ")
        for operation, (mark, style, word) in _MARKS.items():
            if counts[operation]:
                head.append(f" {mark}{counts[operation]} {word} ", style)
        if not changes:
            head.append(" no row changed ", "dim")
        self._echo("")
        self.show(head)
        self.show(Text(note, "dim"))
        if changes:
            self.show(_rows(changes), 5)


def _rows(changes: Sequence[RowChange]) -> Table:
    """Some rows of each operation; the ones that are not shown are counted."""
    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    for operation in ("UPDATE", "DELETE", "INSERT"):
        mark, style, word = _MARKS[operation]
        chosen = [change for change in changes if change.operation == operation]
        shown = chosen[: _SHOWN[operation]]
        for change in shown:
            grid.add_row(Text(mark, style), Text(str(change.key), style), _what(change))
        if len(chosen) > len(shown):
            grid.add_row("", "", Text(f"and {len(chosen) - len(shown)} more {word}", "dim"))
    return grid


def _what(change: RowChange) -> Text:
    text = Text()
    if change.operation == "UPDATE":
        for place, (name, (old, new)) in enumerate(change.values().items()):
            text.append(", " if place else "")
            text.append_text(Text.assemble((f"{name} ", "dim"), (value_text(old), "red"), " → ", (value_text(new), "green")))
        return text
    row: dict[str, Any] = dict(change.after or change.before or {})
    for place, (name, value) in enumerate(list(row.items())[1:]):  # the first is the key, which stands before
        text.append(", " if place else "")
        text.append_text(Text.assemble((f"{name} ", "dim"), value_text(value)))
    return text


def value_text(value: Any) -> str:
    """A value as a person writes it."""
    return "null" if value is None else str(value)
