"""Rows that a person inserts, updates or deletes by the table's primary key: what is asked for, and what is wrong with it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glue_jobs.core.arguments import read_flag
from glue_jobs.core.cells import shown
from glue_jobs.core.errors import TableBlocked, UsageError, blocked
from glue_jobs.core.schema import Schema, find

INSERT, UPDATE, DELETE = "insert", "update", "delete"
WORDS = (INSERT, UPDATE, DELETE)
KIND = "edit"  # of the change
ROW_ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
NAMED_PROBLEMS = 20  # that one error lists
CORRECT = "correct the rows that are given; nothing was changed"


@dataclass(frozen=True)
class RowEdit:
    """word: one of WORDS. rows: an s3:// address or a path of this machine; '' where they come as values. upsert: what the table does not
    bear is done all the same: an insert replaces, an update inserts, a delete leaves unknown keys aside. stage: do all but the commit."""

    word: str
    rows: str = ""
    upsert: bool = False
    stage: bool = False

    def arguments(self) -> tuple[tuple[str, str], ...]:
        """As arguments of the job Apply; `read_row_edit` reads them."""
        flags = (("upsert", self.upsert), ("stage", self.stage))
        return (("edit", self.word), ("rows", self.rows), *((name, "true") for name, value in flags if value))


def read_row_edit(given: Mapping[str, str]) -> RowEdit | None:
    """What the job's arguments ask for, None where it is no edit; UsageError if it can't be meant."""
    word = given.get("edit", "").strip()
    if not word:
        return None
    both = [name for name in ("key", "deletes", "updates", "strict") if given.get(name, "").strip()]
    if word not in WORDS or both:
        found = f"--edit with --{both[0]}" if both else f"--edit is {word!r}"
        raise UsageError(found, "bad-argument", f"give --edit {'|'.join(WORDS)} and --rows, or a correction by --key")
    rows = given.get("rows", "").strip()
    if not rows:
        raise UsageError("no rows are given", "bad-argument", "give --rows s3://bucket/file")
    return RowEdit(word, rows, read_flag(given, "upsert"), read_flag(given, "stage"))


@dataclass(frozen=True, order=True)
class Problem:
    """A value that can't be taken. row: counted from 0 in its source."""

    row: int
    column: str
    expected: str
    found: str

    @classmethod
    def of(cls, row: int, column: str, expected: str, value: object) -> Problem:
        return cls(row, column, expected, shown(value))

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column!r}: expected {self.expected}, found {self.found}"


def problems_error(name: str, problems: Sequence[Problem], count: int) -> UsageError:
    """The error for rows of the source `name`. problems: the first ones by row; count: of all."""
    named = "; ".join(map(str, sorted(problems)[:NAMED_PROBLEMS]))
    more = f"; and {count - NAMED_PROBLEMS:,} more" if count > NAMED_PROBLEMS else ""
    return UsageError(f"{count:,} value(s) of {name} can't be taken: {named}{more}", "given-value", CORRECT)


def check_columns(found: Sequence[str], schema: Schema, key: Sequence[str], word: str, name: str) -> None:
    """UsageError that lists every column that is not the table's, stands there twice, or is lacking although rows are found by it."""
    wrong = [f"{column!r} stands there {found.count(column)} times" for column in dict.fromkeys(found) if found.count(column) > 1]
    wrong += [_unknown(column, schema) for column in dict.fromkeys(found) if find(schema, column) is None]
    wrong += [f"the key column {column!r} is missing" for column in key if column not in found]
    if word == UPDATE and not wrong and set(found) <= set(key):
        wrong = ["there is nothing but the key, so that nothing would be updated"]
    if wrong:
        raise UsageError(f"the columns of {name} are not the table's: {'; '.join(wrong)}", "given-columns", CORRECT)


def _unknown(column: str, schema: Schema) -> str:
    alike = next((known.name for known in schema if known.name.lower() == column.lower()), "")
    return f"{column!r} is no column of the table" + (f" (it has {alike!r})" if alike else "")


def check_key(key: Sequence[str], word: str, upsert: bool, table: str) -> None:
    """UsageError for a table without a primary key, to which rows can only be added."""
    if not key and (word != INSERT or upsert):
        raise UsageError(
            f"{table} has no primary key: its rows can't be told apart",
            "no-key",
            f"only `dmslake insert` without --upsert works; `dmslake apply {table} --key …` finds rows by any columns",
        )


def not_there(word: str, table: str, named: Sequence[str], count: int) -> TableBlocked:
    """The error for keys that the table has not, or has already. named: `row 3 (17)`, the first ones."""
    has = "are in the table already" if word == INSERT else "are not in the table"
    ways = {
        INSERT: "replaces their rows",
        UPDATE: "inserts them, with null in the columns that are not given",
        DELETE: "leaves them aside",
    }
    return blocked(
        "row-exists" if word == INSERT else "row-unknown",
        f"the keys of {count:,} row(s) to {word} {has}",
        where=table,
        found="; ".join(named) + ("; …" if count > len(named) else ""),
        todo=f"take these rows out; or --upsert {ways[word]}; nothing was changed",
    )
