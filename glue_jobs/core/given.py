"""A correction: rows that a person gives, by a key that need not be unique. Its values; reading and applying them is spark's."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Schema, find

ENDINGS = (".parquet", ".csv")
DELETES, UPDATES, INSERTS = "deletes", "updates", "inserts"  # keys whose rows go, rows that replace others, rows that replace none
ATTACHED = {what: f"{what}.parquet" for what in (DELETES, UPDATES, INSERTS)}  # endings of the objects beside the record


@dataclass(frozen=True)
class Correction:
    """What is to be corrected. deletes, updates: s3:// addresses or paths of this machine, '' for none; a file or a folder of Parquet.

    key: the columns by which rows are found. strict: a key that no row has is an error. stage: do all but the commit.
    """

    key: tuple[str, ...] = ()
    deletes: str = ""
    updates: str = ""
    strict: bool = False
    stage: bool = False

    def check(self) -> Correction:
        """The correction itself; UsageError if it can't be meant."""
        if not self.deletes and not self.updates:
            raise UsageError("no rows are given", "bad-argument", "give --deletes FILE, --updates FILE, or both")
        check_key(self.key)
        return self

    def arguments(self) -> tuple[tuple[str, str], ...]:
        """As arguments of the job Apply; `read_correction` reads them."""
        pairs = [(DELETES, self.deletes), (UPDATES, self.updates), ("key", key_text(self.key))]
        pairs += [("strict", "true" if self.strict else ""), ("stage", "true" if self.stage else "")]
        return tuple((name, value) for name, value in pairs if value)


def read_correction(given: Mapping[str, str]) -> Correction:
    """What the job's arguments ask for; UsageError if it can't be meant."""
    texts = {name: given.get(name, "").strip() for name in (DELETES, UPDATES, "key")}
    flags = {name: read_flag(given, name) for name in ("strict", "stage")}
    return Correction(split_key(texts["key"]), texts[DELETES], texts[UPDATES], flags["strict"], flags["stage"]).check()


def split_key(text: str) -> tuple[str, ...]:
    """Column names separated by commas; one that holds a comma stands in double quotes, as in CSV."""
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])) if text else ()


def key_text(key: tuple[str, ...]) -> str:
    """The text that `split_key` reads."""
    return ",".join('"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name for name in key)


def check_key(key: tuple[str, ...]) -> None:
    """UsageError for no column, or one that is named twice."""
    if not key or not all(key):
        raise UsageError("no key is given", "bad-argument", "give --key with the columns by which rows are found, comma separated")
    if len(set(key)) < len(key):
        raise UsageError(f"the key names a column twice: {', '.join(key)}", "bad-argument", "name each column once")


def key_schema(key: tuple[str, ...], schema: Schema, table: str) -> Schema:
    """The key's columns as the table has them; UsageError for one that it has not."""
    found = []
    for name in key:
        column = find(schema, name)
        if column is None:
            there = ", ".join(item.name for item in schema)
            raise UsageError(f"{table} has no column {name!r}", "unknown-column", f"the columns are: {there}")
        found.append(column)
    return tuple(found)
