"""What a batch's columns mean for the lake's schema: the same, added, widened, absent — or a block."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from glue_jobs.core.errors import blocked
from glue_jobs.core.raw_names import is_csv
from glue_jobs.core.schema import Column, OldName, Schema, find, takes_texts, widened

FileSchema = tuple[str, Schema]  # raw key, its data columns in lake types


@dataclass(frozen=True)
class SchemaChange:
    """The lake's schema after a batch. widened: column → (old type, new type); absent: columns the source stopped sending; back: those that
    it sends again. Rows that the batch does not touch have in them what they had before."""

    schema: Schema
    added: tuple[str, ...] = ()
    widened: tuple[tuple[str, str, str], ...] = ()
    absent: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


def reconcile(table: str, lake: Schema, batch: Sequence[FileSchema], *, accept: bool = False, late: bool = False) -> SchemaChange:
    """The schema that holds the lake's rows and the batch's. lake: () for a new table or a reload. late: the batch's files come behind
    others that were applied, so that they don't say which columns the source has by now.

    Raises TableBlocked where a person must decide: a rename can't be told from drop and add (`accept` takes it as drop and
    add), a type changed in a way that could lose values, two columns differ only by case.
    """
    columns: dict[str, Column] = {column.name: column for column in lake}
    sent = set.intersection(*({column.name for column in schema} for _, schema in batch)) if batch else set(columns)
    for key, schema in batch:
        for column in schema:
            columns[column.name] = _merged(table, key, columns.get(column.name), column)
        _check_case(table, key, columns, lake, schema)
    added = [name for name in columns if find(lake, name) is None]
    gone = [column.name for column in lake if not column.absent and column.name not in sent and not late]
    asked = None if accept else next(possible_renames(lake, batch, late), None)
    if asked:
        raise _ambiguous(table, batch[asked[0]][0], *asked[1:], lake)
    present = {column.name for _, schema in batch[-1:] for column in schema} if batch else sent
    if late:
        present = (present - {column.name for column in lake}) | {column.name for column in lake if not column.absent}
    # A column that comes back may stand elsewhere at the source than it did.
    in_place = {column.name for column in lake if not column.absent or column.name not in present}
    result = tuple(
        replace(
            column, absent=bool(lake) and column.name not in present, added=column.added or (bool(lake) and column.name not in in_place)
        )
        for column in columns.values()
    )
    grown = [(old.name, old.type, columns[old.name].type) for old in lake if old.type != columns[old.name].type]
    back = [column.name for column in lake if column.absent and column.name in present]
    return SchemaChange(result, tuple(added) if lake else (), tuple(grown), tuple(gone), tuple(back))


def _merged(table: str, key: str, old: Column | None, new: Column) -> Column:
    if old is None:
        return new
    merged = old.type if takes_texts(old.type, new.type) else widened(old.type, new.type)
    if merged is None:
        raise blocked(
            "type-changed",
            f"column {new.name!r} changed its type in a way that could lose values",
            where=f"table {table}, file {key}",
            expected=f"{old.type} or a type that holds it",
            found=new.type,
            todo="if the source's type really changed, reload the table in DMS, or skip the file: `dmslake unblock PATH --skip-file NAME`",
        )
    return replace(old, type=merged)


def _check_case(table: str, key: str, columns: dict[str, Column], lake: Schema, file: Schema) -> None:
    """columns: those of the lake and of the files up to this one."""
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            todo = "leave out or rename one of them by a DMS transformation rule, then reload the table"
            if find(lake, other) is not None and find(file, other) is None:
                rename = f"`dmslake schema PATH --rename {shlex.quote(f'{other}={name}')}`"
                todo = f"if it was renamed at the source: {rename}, or for a column of key or layout reload the table; else {todo}"
            raise blocked(
                "columns-differ-by-case",
                f"the columns {other!r} and {name!r} differ only by case; Spark and Athena can't read such a table",
                where=f"table {table}, file {key}",
                todo=todo,
            )


def possible_renames(lake: Schema, batch: Sequence[FileSchema], late: bool = False) -> Iterator[tuple[int, list[str], list[str]]]:
    """(place in the batch, columns that are gone, columns that are new) of each file with a new column that lacks one which was there until
    then: a person must say what that is. One that comes back is new too: the other may have got its name. Late files have columns of
    their time, among which only one that the lake never had is new.

    File by file, as if each were a batch: what is a rename must not depend on how many files a run takes. One that begins with rows from
    before a column was added, as DMS repeats them, is none; nor are a column that goes in one file and another that comes in a later one.
    """
    known = {column.name for column in lake}
    there = [column.name for column in lake if not column.absent]
    for at, (_, schema) in enumerate(batch if lake else ()):
        names = [column.name for column in schema]
        new = [name for name in names if name not in (known if late else there)]
        gone = [name for name in there if name not in names]
        if new and gone:
            yield at, gone, new
        known, there = known | {*names}, names


def _ambiguous(table: str, key: str, gone: list[str], added: list[str], lake: Schema) -> Exception:
    """What a person is asked. No row may get back the values of an older column by a rename."""
    rename = "reload the table in DMS" if find(lake, added[0]) else f"`dmslake schema PATH --rename {shlex.quote(f'{gone[0]}={added[0]}')}`"
    todo = f"{rename} if it was renamed, `dmslake schema PATH --accept` if not"
    renamed_from = [column for column in lake if column.name in gone and any(old.name in added for old in column.older)]
    if renamed_from:
        now, before = renamed_from[0].name, next(old.name for old in renamed_from[0].older if old.name in added)
        there, back = (f"--rename {shlex.quote(f'{one}={other}')}" for one, other in ((now, before), (before, now)))
        todo = (
            f"{now!r} was called {before!r} before a rename. If the rows are of then, sent again, or it was renamed back:"
            f" `dmslake schema PATH {there}`, and `{back}` when the next file blocks; `--accept` would leave {now!r} null in them"
        )
        if is_csv(key):
            todo = f"without a header the names are those of the attribute Schema: write {now!r} there. With one: {todo}"
    return blocked(
        "rename-or-drop-and-add",
        f"column {', '.join(map(repr, gone))} vanished, {', '.join(map(repr, added))} appeared: a rename can't be told from drop and add",
        where=f"table {table}, file {key}",
        todo=todo,
    )


def renamed(schema: Schema, old: str, new: str, until: str) -> Schema:
    """The schema with one column renamed; refuses names that are not there or taken. until: the cursor, up to which raw files have the old
    name."""
    if find(schema, old) is None or any(column.name.lower() == new.lower() for column in schema if column.name != old):
        names = ", ".join(column.name for column in schema)
        raise blocked(
            "bad-rename",
            f"can't rename {old!r} to {new!r}",
            expected="a column that is there and a new name",
            found=names,
        )
    return tuple(
        replace(column, name=new, older=(*column.older, OldName(old, until))) if column.name == old else column for column in schema
    )
