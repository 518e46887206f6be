"""What a command answers, and the two ways to print it: for people and as JSON. Data goes to stdout, nothing else does."""

from __future__ import annotations

import io
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from controller.amounts import count_text as count_text
from controller.amounts import duration_text as duration_text
from controller.amounts import size_text as size_text
from glue_jobs.core.errors import ConfigurationError, DmslakeError
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


def accept_any_text() -> None:
    """Have stdout and stderr take every text: what the locale's encoding lacks is escaped, and a closed stream's text goes nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell: >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def printing(*, for_programs: bool = False) -> Iterator[TextIO]:
    """stdout; within it, text that can't be written is a ConfigurationError, code not-printed. for_programs: in UTF-8 whatever the locale
    says, as JSON must be, and as dmslake reads CSV."""
    stream = sys.stdout
    try:
        if for_programs and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield stream
        stream.flush()
    except BrokenPipeError:  # nobody reads any more, which is no failure: a long answer ends here
        raise
    except OSError as error:
        raise ConfigurationError(
            f"the answer could not be printed: {error.strerror or error}; what was done stands",
            "not-printed",
            "make room where the output goes; `dmslake status` and `dmslake history` show what was done",
        ) from error


@contextmanager
def unheard(stream: TextIO, error: type[OSError] = BrokenPipeError) -> Iterator[None]:
    """Within it, what the stream does not take by such an error goes nowhere. For what is printed when all is done: that nobody reads it
    changes neither what was done nor the command's exit code."""
    try:
        yield
    except error:
        _go_nowhere(stream)


def _go_nowhere(stream: TextIO) -> None:
    """Have what is left in the stream, and all that follows, go nowhere: the end of the process writes it, and would fail again."""
    with suppress(OSError):  # a stream in memory has no descriptor
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def end_output() -> None:
    """Write what is left in stdout and stderr. What can't be written goes nowhere."""
    for stream in (sys.stdout, sys.stderr):
        with unheard(stream, OSError):
            stream.flush()


class JsonOutput(Output):
    """One JSON document per command."""

    def show(self, answer: Answer) -> None:
        with unheard(sys.stdout), printing(for_programs=True) as stream:
            print(json_text(answer.data, indent=2), file=stream)


class TextOutput(Output):
    """Tables and lines; in a pipe without frames, colours or wrapping, so that grep and awk work."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def show(self, answer: Answer) -> None:
        with unheard(self._stream or sys.stdout), printing() as stdout:
            self._print(answer, self._stream or stdout)

    def _print(self, answer: Answer, stream: TextIO) -> None:
        for line in answer.title:
            print(printable(line), file=stream)
        for view in answer.views:
            if not view.rows:
                continue
            if stream.isatty():
                _print_framed(view, stream)
            else:
                print("\n".join(aligned(view)), file=stream)
        for line in answer.lines:
            print(printable(line), file=stream)


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
    """Lines for a person, on stderr. Where that takes no more, nobody is told, and the command goes on."""
    with unheard(sys.stderr, OSError):
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
