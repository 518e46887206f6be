"""Taking over a folder of Parquet files that another program wrote: what a person says of it, what is there, and the first change
that the table has of it. Pure.

Nothing is moved or rewritten: the files become the snapshot of change 1 as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone

from glue_jobs.core.errors import UsageError, blocked
from glue_jobs.core.foreign_folder import Footer, partition_of
from glue_jobs.core.raw_names import RawFile, RawListing, cdc_name
from glue_jobs.core.record import Counts, DataFile, Generation, Input
from glue_jobs.core.schema import Schema, find, is_type
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import NO_CURSOR_FILE, TableState, read_state
from glue_jobs.core.work import Work, input_of

ARGUMENTS = ("primary_key", "partition_key", "columns", "cursor", "load_date")
# The AWS sample writes a load's date without its fraction of a second; a load file is not written anew within so short a time.
SAME_LOAD = timedelta(minutes=1)


@dataclass(frozen=True)
class AdoptWish:
    """What a person says of the table; None and '' mean: as its item says. columns: types of partition columns."""

    primary_key: str | None = None
    partition_key: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    cursor: str = ""
    load_date: str = ""

    def on(self, state: TableState) -> TableState:
        """The state as it would be with what the person says. Raises TableBlocked naming the attribute that can't be read."""
        said = {
            "PrimaryKey": self.primary_key,
            "PartitionKey": self.partition_key,
            "LastIncrementalFile": self.cursor or None,
            "LastFullLoadDate": self.load_date or None,
        }
        return read_state({**state.item, **{name: text for name, text in said.items() if text is not None}})

    def arguments(self) -> tuple[tuple[str, str], ...]:
        """The wish as arguments of the job Adopt. A key that is said to be none is 'null', since an empty argument says nothing."""
        keys = (("primary_key", self.primary_key), ("partition_key", self.partition_key))
        pairs = [*((name, "null" if text is not None and not text.strip() else text) for name, text in keys), ("cursor", self.cursor)]
        pairs += [("load_date", self.load_date), ("columns", json.dumps(dict(self.columns)) if self.columns else "")]
        return tuple((name, text) for name, text in pairs if text)


def read_wish(given: Mapping[str, str]) -> AdoptWish:
    """The wish in a job's arguments. columns: a JSON object, name → type."""
    try:
        columns = json.loads(given.get("columns") or "{}")
        pairs = tuple((str(name), str(kind)) for name, kind in columns.items())
    except (ValueError, AttributeError) as error:
        raise UsageError(f"--columns is {given['columns']!r}", "bad-argument", 'give a JSON object: {"region": "string"}') from error
    return AdoptWish(
        given.get("primary_key"), given.get("partition_key"), check_types(pairs), given.get("cursor", ""), given.get("load_date", "")
    )


def check_types(columns: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The columns themselves; UsageError for a type that the lake has not."""
    pairs = tuple((name.strip(), kind.strip().lower()) for name, kind in columns)
    for name, kind in pairs:
        if not name or not is_type(kind):
            raise UsageError(
                f"{kind!r} is no type of a lake table (column {name!r})", "bad-argument", "give NAME=TYPE, the type as in docs/types.md"
            )
    return pairs


# --- where the table stands in the raw files


@dataclass(frozen=True)
class RawPlace:
    """What of the raw files the table has. pending_loads: load files that it has not; pending: CDC files behind the cursor."""

    generation: Generation = Generation(1)
    applied: tuple[Input, ...] = ()
    cursor: str = ""
    last_full_load: str = ""
    pending_loads: tuple[RawFile, ...] = ()
    pending: tuple[RawFile, ...] = ()

    @property
    def is_beyond(self) -> bool:
        """Whether the cursor is behind all CDC files that are there, and is none of them: a slip of the pen, or a name made up."""
        return bool(self.applied) and not self.pending and all(cdc_name(item.key) != cdc_name(self.cursor) for item in self.applied)


def place_in_raw(state: TableState, listing: RawListing, says_cursor: bool) -> RawPlace:
    """The table's place in the raw files, as cursor and load date of its item say. Refused where they don't.

    says_cursor: a person said it just now; then it counts also where it names no file.
    """
    if not state.has_source:
        return RawPlace()
    date = state.last_full_load if state.last_full_load.year > 1900 else None
    if (listing.loads and date is None) or (listing.cdc and date is None and not (state.cursor or says_cursor)):
        what = f"{len(listing.loads)} load file(s)" if listing.loads else f"{len(listing.cdc)} CDC file(s)"
        raise blocked(
            "adopt-from-where",
            f"the raw folder has {what}, and the item does not say which of them the table has",
            where=f"s3://{state.path}",
            expected="the time of the newest load file taken, and the last CDC file applied",
            found="neither" if not state.cursor else f"only the cursor {state.cursor}",
            todo="give --load-date 'yyyy-MM-dd HH:mm:ss' (UTC) and --cursor NAME, or --cursor 0.parquet if no CDC file was applied",
        )
    until = date + SAME_LOAD if date else None
    taken = tuple(file for file in listing.loads if until and file.modified.astimezone(timezone.utc) <= until)
    cursor = cdc_name(state.cursor)
    behind = tuple(file for file in listing.cdc if cursor and (name := cdc_name(file.key)) and name <= cursor)
    known, applied = {file.key for file in taken}, {file.key for file in behind}
    return RawPlace(
        generation=Generation(1, tuple(map(input_of, taken))),
        applied=tuple(map(input_of, behind)),
        cursor=state.cursor,
        last_full_load=state.last_full_load_text if date else "",
        pending_loads=tuple(file for file in listing.loads if file.key not in known),
        pending=tuple(file for file in listing.cdc if file.key not in applied),
    )


# --- the change


@dataclass(frozen=True)
class Adoption:
    """A folder as it will be taken over. state: with what the person says. mixed: columns whose type is not the same in all files.

    passed_over: objects that readers do not take for data. keys_checked: whether the files' keys were read: bounds, nulls, doubles.
    """

    state: TableState
    place: RawPlace
    schema: Schema
    files: tuple[DataFile, ...]
    left_out: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    keys_checked: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        """The table as it is after the change, as far as its files go."""
        return Snapshot(
            files={file.path: file for file in self.files},
            schema=self.schema,
            primary_key=self.state.primary_key,
            partitioning=self.state.partitioning,
        )

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def work(self) -> Work:
        """The change. It takes no raw file itself: those that the table has are known as applied."""
        state, place = self.state, self.place
        values = {name: state.item[name] for name in ("PrimaryKey", "PartitionKey") if name in state.item}
        if state.has_source:
            values["LastIncrementalFile"] = place.cursor or f"{state.path}{NO_CURSOR_FILE}"
        return Work(
            kind="adopt",
            schema=self.schema,
            primary_key=state.primary_key,
            partitioning=state.partitioning,
            generation=place.generation,
            added=self.files,
            counts=Counts(inserted=self.rows),
            timestamp_column=state.timestamp_column,
            cursor_after=place.cursor,
            last_full_load=place.last_full_load,
            like=Snapshot(applied={item.key: item for item in place.applied}),
            requests=("Request",) if state.request == "reload" else (),
            values=values,
            details={
                **({"left_out": list(self.left_out)} if self.left_out else {}),
                **({"mixed_types": list(self.mixed)} if self.mixed else {}),
                **({"passed_over": len(self.passed_over)} if self.passed_over else {}),
            },
        )


def assemble(
    state: TableState, place: RawPlace, schema: Schema, footers: Sequence[Footer], passed_over: Sequence[str], mixed: Sequence[str]
) -> Adoption:
    """The adoption of files whose footers were read; their keys were not."""
    for name in state.primary_key:
        if find(schema, name) is None:
            raise blocked(
                "no-key-column",
                f"the key column {name!r} is not there",
                where=str(state.lake),
                expected=f"PrimaryKey {','.join(state.primary_key)}",
                found=", ".join(column.name for column in schema),
                todo="give --primary-key, or correct the attribute PrimaryKey of the table's item",
            )
    inside = {field.column for field in state.partitioning}
    for footer in footers:
        lacking = [name for name in state.primary_key if name not in inside and find(footer.columns, name) is None]
        if lacking:
            raise blocked(
                "no-key-column",
                f"a file lacks the key column {lacking[0]!r}",
                where=str(state.lake.join(footer.path)),
                expected=f"PrimaryKey {','.join(state.primary_key)}",
                found=", ".join(column.name for column in footer.columns),
                todo="give --primary-key, or load the table anew",
            )
    files = tuple(
        DataFile(footer.path, footer.file.size, footer.rows, footer.file.etag, partition_of(footer.path, state.partitioning, state.lake))
        for footer in sorted(footers, key=lambda footer: footer.path)
    )
    left_out = sorted({name for footer in footers for name in footer.left_out})
    return Adoption(state, place, schema, files, tuple(left_out), tuple(mixed), tuple(passed_over))
