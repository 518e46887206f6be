"""How DMS names its files and folders. A new form is a new entry in one of the three tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from glue_jobs.core.errors import UsageError

TRANSACTIONS = "transactions"
"""`CdcPath` with `PreserveTransactions`: all tables' changes in one folder, as CSV."""

_DELIMITERS = {"": "/", "-dash": "-", "-underscore": "_", "-none": ""}
_SEQUENCES = {
    "YYYYMMDD": ("%Y", "%m", "%d"),
    "YYYYMMDDHH": ("%Y", "%m", "%d", "%H"),
    "YYYYMM": ("%Y", "%m"),
    "MMYYYYDD": ("%m", "%Y", "%d"),
    "DDMMYYYY": ("%d", "%m", "%Y"),
}


def _dated(parts: tuple[str, ...], delimiter: str) -> Callable[[datetime], str]:
    return lambda committed: committed.strftime(delimiter.join(parts)) + "/"


def _named(divider: str, digits: int) -> Callable[[datetime], str]:
    def name(written: datetime) -> str:
        below = f"{written.microsecond:06d}1234"[:digits]
        return f"{written:%Y%m%d}{divider}{written:%H%M%S}{below}"

    return name


FOLDERS: dict[str, Callable[[datetime], str]] = {
    "flat": lambda _: "",
    **{name + label: _dated(parts, mark) for name, parts in _SEQUENCES.items() for label, mark in _DELIMITERS.items()},
    "unpadded": lambda committed: f"{committed.year}/{committed.month}/{committed.day}/",
}
"""The folder of a CDC file below its table's, from the time at which its rows were committed."""

NAMES: dict[str, Callable[[datetime], str]] = {
    "dash": _named("-", 3),
    "underscore": _named("_", 3),
    **{f"digits-{count}": _named("-", count) for count in range(11)},
}
"""The name of a CDC file without its ending, from the time at which it was written."""

LOADS: dict[str, Callable[[int], str]] = {
    "one-folder": lambda number: f"LOAD{number + 1:08X}",
    "load-folders": lambda number: f"P{number % 3}/LOAD{number // 3 + 1:08X}",
    "load-segments": lambda number: f"SEGMENT{number % 3 + 1}_LOAD{number // 3 + 1:08X}",
}
"""The name of a load file without its ending, from its number, counted from 0. The counter is hexadecimal."""


@dataclass(frozen=True)
class Layout:
    """Where files go. folder, name, load: entries of the tables above; transactions: CDC files go to the folder of all tables."""

    folder: str = "flat"
    name: str = "dash"
    load: str = "one-folder"
    transactions: bool = False

    def load_path(self, number: int, ending: str) -> str:
        """Below the table's folder; number: from 0; ending: `.parquet`."""
        return LOADS[self.load](number) + ending

    def cdc_path(self, written: datetime, committed: datetime, ending: str) -> str:
        """Below the table's folder, or, of transactions, below that of all tables. Both times are UTC."""
        if self.transactions:
            return f"CDC_TXN-{written:%Y%m%d%H%M%S}{written.microsecond // 1000:03d}{ending}"
        return self.folder_of(committed) + NAMES[self.name](written) + ending

    def folder_of(self, committed: datetime) -> str:
        """Rows that are committed in two folders' times never share a file."""
        return "" if self.transactions else FOLDERS[self.folder](committed)


def read_layout(text: str) -> Layout:
    """The layout that names, separated by commas, say: at most one of each table, or `transactions` for where CDC files go.

    Raises UsageError on a name that isn't there, and on two that contradict each other.
    """
    found: dict[str, str] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        what = next((what for what, names in _TABLES if name in names), "")
        if not what:
            raise UsageError(f"--layout: {name!r} is none of {', '.join(layout_names())}", "bad-feed")
        if what in found:
            raise UsageError(f"--layout: {found[what]} and {name} contradict each other", "bad-feed", "give one of them")
        found[what] = name
    is_transactions = found.get("folder") == TRANSACTIONS
    if is_transactions:
        del found["folder"]
    return Layout(**found, transactions=is_transactions)


_TABLES: tuple[tuple[str, Iterable[str]], ...] = (("folder", (*FOLDERS, TRANSACTIONS)), ("name", NAMES), ("load", LOADS))


def layout_names() -> list[str]:
    """All of them."""
    return [name for _, names in _TABLES for name in names]
