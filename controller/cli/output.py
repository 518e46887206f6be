"""What a command answers, and the two ways to print it: for people and as JSON. Data goes to stdout, nothing else does."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from controller.amounts import count_text as count_text
from controller.amounts import duration_text as duration_text
from controller.amounts import size_text as size_text
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.printable import error_lines, json_text, printable

NUMBER = re.compile(r"([+−-]?\d[\d.,]*|B|[KMGT]iB|s|min|h|d)( |$)")


@dataclass(frozen=True)
class View:
    """A table for people: column heads and rows of texts. optional: groups of columns that a narrow terminal does
    without, the first group goes first."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    optional: tuple[tuple[str, ...], ...] = ()

    def without(self, *names: str) -> View:
        """The view without some columns."""
        kept = [at for at, name in enumerate(self.columns) if name not in names]
        rows = [[row[at] for at in kept] for row in self.rows]
        return View(tuple(self.columns[at] for at in kept), rows, self.optional)

    def without_empty(self, *names: str) -> View:
        """The view without those of the columns that are empty in every row."""
        return self.without(*(name for name in names if not any(row[self.columns.index(name)] for row in self.rows)))


@dataclass(frozen=True)
class Answer:
    """A command's result. data: all of it, for JSON. title, views, lines: what a person wants to see of it, in this order."""

    data: Any
    views: Sequence[View] = ()
    lines: Sequence[str] = ()
    title: Sequence[str] = ()


class Output(ABC):
    """Prints answers."""

    @abstractmethod
    def show(self, answer: Answer) -> None:
        """Print it to stdout."""


class JsonOutput(Output):
    """One JSON document per command."""

    def show(self, answer: Answer) -> None:
        print(json_text(answer.data, indent=2), flush=True)


class TextOutput(Output):
    """Tables and lines; in a pipe without frames, colours or wrapping, so that grep and awk work."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def show(self, answer: Answer) -> None:
        for line in answer.title:
            print(printable(line), file=self._stream)
        for view in answer.views:
            if not view.rows:
                continue
            if self._stream.isatty():
                _print_framed(view, self._stream)
            else:
                print("\n".join(aligned(view)), file=self._stream)
        for line in answer.lines:
            print(printable(line), file=self._stream)
        self._stream.flush()


def aligned(view: View) -> list[str]:
    """The view as lines of columns, heads first, two spaces between."""
    rows = [[printable(" ".join(cell.split("\n"))) for cell in row] for row in (view.columns, *view.rows)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(view.columns))]
    right = [_is_numeric(view, at) for at in range(len(view.columns))]
    return ["  ".join(_fit(cell, width, to_right) for cell, width, to_right in zip(row, widths, right)).rstrip() for row in rows]


def _fit(cell: str, width: int, to_right: bool) -> str:
    return cell.rjust(width) if to_right else cell.ljust(width)


def _is_numeric(view: View, at: int) -> bool:
    """Whether a column holds numbers (with units), which stand on the right."""
    cells = [row[at] for row in view.rows if row[at]]
    return bool(cells) and all(not NUMBER.sub("", cell) for cell in cells)


def labelled(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a label and a text each, those without a text left out."""
    some = [(label, text) for label, text in pairs if text]
    width = max((len(label) for label, _ in some), default=0)
    return [f"{label.ljust(width)}  {text}" for label, text in some]


def _fitting(view: View, width: int) -> View:
    """The view with as many of its columns as the terminal has room for."""
    for names in view.optional:
        if _framed_width(view) <= width:
            break
        view = view.without(*names)
    return view


def _framed_width(view: View) -> int:
    cells = [max(cell_len(row[at]) for row in (view.columns, *view.rows)) for at in range(len(view.columns))]
    return sum(cells) + 3 * len(cells) + 1


def _print_framed(view: View, stream: TextIO) -> None:
    console = Console(file=stream, markup=False, highlight=False)
    view = _fitting(view, console.width)
    table = Table(header_style="bold")
    for at, name in enumerate(view.columns):
        table.add_column(printable(name), justify="right" if _is_numeric(view, at) else "left", overflow="fold")
    for row in view.rows:
        table.add_row(*("\n".join(map(printable, cell.split("\n"))) for cell in row))
    console.print(table)


def say(*lines: str) -> None:
    """Lines for a person, on stderr."""
    for line in lines:
        click.echo(printable(line), err=True)


def say_error(error: DmslakeError) -> None:
    """An error and what to do, on stderr."""
    say(*error_lines(error, "dmslake: "))


def make_output(name: str) -> Output:
    return JsonOutput() if name == "json" else TextOutput()


def problem_lines(path: str, word: str, message: str, todo: str) -> list[str]:
    """A table's problem and the way out."""
    return ["", f"{word}: {path}", f"  {message}", *([f"  what to do: {todo}"] if todo else [])]
