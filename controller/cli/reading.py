"""`dmslake read`: rows, counts and sums of a table as it is or was, or of its history table, without Spark."""

from __future__ import annotations

import csv
import functools
import importlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from controller.cli.call import MOST, Call, not_empty, warn, with_call
from controller.cli.looking import Looked, cell, looking, need, state_data, state_text
from controller.cli.output import Answer, View, printing
from controller.pages.life import split_key
from glue_jobs.core.errors import UsageError, to_install
from glue_jobs.core.printable import json_text
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import parse_to
from glue_jobs.protocol.history_table import history_at

READ = 1
SHOWN = 20  # rows, where a person reads them
OUTPUTS = ("table", "json", "csv")
Rows = Iterator[list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Versions:
    """Which row versions are wanted. key: values as text, None for every key; at: a time of the source, None for all times."""

    key: str | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Question:
    """What of a table is wanted. columns: () for all. limit: None where it is not said. versions: None for the table's rows."""

    where: str
    columns: tuple[str, ...]
    limit: int | None
    count: bool
    sums: tuple[str, ...]
    versions: Versions | None = None

    @property
    def is_total(self) -> bool:
        return self.count or bool(self.sums)

    def check(self) -> Question:
        """The question itself; UsageError if it can't be meant."""
        if self.is_total and (self.columns or self.limit is not None):
            raise UsageError("--count and --sum take all rows that match", "bad-argument", "leave out --columns and --limit, or these two")
        return self


@click.command("read")
@click.argument("path")
@click.option(
    "--as-of", default="", callback=not_empty, metavar="CHANGE|previous|TIME", help="The table as it was then; else as it is now."
)
@click.option(
    "--limit", type=click.IntRange(1, MOST), metavar="N", help=f"So many rows at most. [default: {SHOWN} for table, all for json and csv]"
)
@click.option(
    "--where", default="", callback=not_empty, metavar="CONDITION",
    help="Only rows for which this SQL condition (DuckDB's) is true; times are UTC.",
)  # fmt: skip
@click.option("--columns", default="", callback=not_empty, metavar="A,B", help="Only these columns, comma separated as in CSV.")
@click.option("--count", is_flag=True, help="Count the rows.")
@click.option("--sum", "sums", multiple=True, metavar="COLUMN", help="Add up a column; may be given more than once.")
@click.option("--history", "is_history", is_flag=True, help="The row versions of its history table, in place of its rows.")
@click.option("--key", metavar="VALUE[,VALUE]...", help="With --history: the versions of this primary key, in their order.")
@click.option(
    "--at", default="", callback=not_empty, metavar="TIME", help="With --history: the versions that were valid at this time of the source."
)
@functools.partial(with_call, outputs=OUTPUTS)
def read(
    call: Call,
    path: str,
    as_of: str,
    limit: int | None,
    where: str,
    columns: str,
    count: bool,
    sums: tuple[str, ...],
    is_history: bool,
    key: str | None,
    at: str,
) -> int:
    """Print rows of the table PATH, as it is or as it was.

    Table output shows null as NULL, and texts that could be taken for something else in quotes. CSV has nothing for null and "" for
    an empty text. Binary is hexadecimal, times are UTC, decimals keep their digits.
    """
    versions = _versions(is_history, key, at)
    question = Question(where.strip(), split_names(columns), limit, count, sums, versions).check()
    if question.where:
        need("duckdb", todo=to_install("query"))
    with looking(call, path) as looked:
        snapshot = looked.at(as_of).snapshot
        history = history_at(looked.session.clients.s3, looked.state.lake, snapshot) if versions else None
        if history is not None and snapshot.history is not None and snapshot.history.is_stale:
            warn([f"the history table is that of change {history.change}: rows changed since without it"])
        work = _Totals if question.is_total else _Rows
        work(call, looked, snapshot, question, history).show()
    return 0


def _versions(is_history: bool, key: str | None, at: str) -> Versions | None:
    if not is_history:
        if key is not None or at:
            raise UsageError("--key and --at are about row versions", "bad-argument", "give --history too, or --where")
        return None
    moment = parse_to(at) if at else None
    if isinstance(moment, str):
        raise UsageError(
            f"--at is {at!r}", "bad-argument", "give a time like 2024-05-01T12:00:00Z, or epoch seconds; --as-of takes a change"
        )
    return Versions(key, moment)


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; one that holds a comma stands in double quotes, as in CSV."""
    return tuple(next(csv.reader([text]), [])) if text else ()


class _Reading:
    """One question on its way to an answer."""

    def __init__(self, call: Call, looked: Looked, snapshot: Snapshot, question: Question, history: Snapshot | None) -> None:
        self.call, self.looked, self.snapshot, self.question = call, looked, snapshot, question
        self.history = history
        self.files = snapshot if history is None else history  # what is read
        self.reading: Any = importlib.import_module("glue_jobs.spark.reading")

    @property
    def path(self) -> str:
        return str(self.looked.state.path)

    def batches(self) -> Iterable[Any]:
        """The rows that match."""
        if self.files.is_empty:
            return ()
        rows: Iterable[Any] = self.looked.table(self.snapshot).batches() if self.history is None else self._versions(self.history)
        if self.question.where:
            condition: Any = importlib.import_module("glue_jobs.spark.condition")
            rows = condition.filtered(rows, self.files.schema, self.question.where)
        return rows

    def _versions(self, history: Snapshot) -> Iterable[Any]:
        past: Any = importlib.import_module("glue_jobs.spark.past")
        chosen: Any = importlib.import_module("glue_jobs.spark.history_rows")
        wanted = self.question.versions or Versions()
        key = () if wanted.key is None else split_key(wanted.key, len(history.primary_key))
        table = past.past_history(self.looked.place, self.path, self.snapshot, history, wanted.at)
        rows: Iterable[Any] = chosen.versions_for(table, key, wanted.at) if key or wanted.at else table.batches()
        return rows

    @property
    def is_whole(self) -> bool:
        """Whether all rows are wanted."""
        return not self.question.where and self.question.versions in (None, Versions())

    def data(self) -> dict[str, Any]:
        """Of which state the rows are, for JSON."""
        return {"read": READ, "path": self.path, **state_data(self.snapshot), **({"history": self.files.change} if self.history else {})}


class _Totals(_Reading):
    """Count and sums."""

    def show(self) -> None:
        sums = self.question.sums
        if not self.files.is_empty:
            self.reading.check_sums(self.files.schema, sums)
        if sums or not self.is_whole:
            rows, added = self.reading.totals(self.batches(), sums)
        else:
            rows, added = self.files.rows, {}
        heads = [*(["count"] if self.question.count else []), *(f"sum({name})" for name in sums)]
        values = [*([rows] if self.question.count else []), *(added[name] for name in sums)]
        if self.call.format == "csv":
            print_csv(heads, iter([[tuple(values)]]))
            return
        data = {**self.data(), "count": rows, "sums": added}
        self.call.output.show(Answer(data, [View(tuple(map(cell, heads)), [list(map(cell, values))])], [state_text(self.snapshot)]))


class _Rows(_Reading):
    """The rows themselves."""

    def show(self) -> None:
        schema, wanted = self.files.schema, self.question.columns
        if not self.files.is_empty:
            self.reading.check_columns(schema, wanted)
        columns = wanted or tuple(column.name for column in schema)
        limit = SHOWN if self.question.limit is None and self.call.format == "table" else self.question.limit
        rows = begun(self.reading.page(self.batches(), columns, limit))
        if self.call.format == "csv":
            print_csv(columns, rows)
        elif self.call.format == "json":
            kinds = [{"name": column.name, "type": column.type} for name in columns for column in schema if column.name == name]
            print_json({**self.data(), "columns": kinds}, columns, rows)
        else:
            self._show_table(columns, [row for piece in rows for row in piece], limit)

    def _show_table(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], limit: int | None) -> None:
        view = View(tuple(map(cell, columns)), [list(map(cell, row)) for row in rows])
        if not self.is_whole:
            what = f"the first {len(rows):,} rows that match (--limit)" if len(rows) == limit else f"{len(rows):,} row(s) match"
        else:
            what = f"{len(rows):,} of {self.files.rows:,} row(s)" + (" (--limit)" if len(rows) < self.files.rows else "")
        self.call.output.show(Answer(None, [view], [f"{what}; {state_text(self.snapshot)}"]))


def begun(rows: Rows) -> Rows:
    """The same rows; the first are there already, so that what goes wrong at once is known before anything is printed."""
    first = next(rows, None)
    return iter(()) if first is None else itertools.chain([first], rows)


def print_json(head: dict[str, Any], columns: Sequence[str], rows: Rows) -> None:
    """One document whose last member is `rows`; written as the rows come, and safe to print."""
    put(json_text(head)[:-1] + ', "rows": [')
    start = "\n"
    for piece in filter(None, rows):
        put(start + ",\n".join(json_text(dict(zip(columns, row))) for row in piece))
        start = ",\n"
    put("\n]}\n")


def print_csv(columns: Sequence[str], rows: Rows) -> None:
    """A line of names, then the rows as they come."""
    if columns:
        put(",".join(map(csv_field, columns)) + "\n")
    for piece in rows:
        put("".join(",".join(map(csv_field, row)) + "\n" for row in piece))


def put(text: str) -> None:
    """Print for programs. Reading the rows stays outside: an error of theirs is none of stdout."""
    with printing(for_programs=True) as stream:
        stream.write(text)


def csv_field(value: Any) -> str:
    """Nothing for null; an empty text in quotes, so that it is no null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(char in text for char in ',"\r\n') else text
