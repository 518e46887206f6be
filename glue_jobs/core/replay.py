"""What a table's rows are made of, as steps of a fresh replay: from the last change that says all rows, on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from glue_jobs.core.collation import identity, is_same_key
from glue_jobs.core.erasure import Erased
from glue_jobs.core.errors import blocked
from glue_jobs.core.partitioning import PartitionValues, values_of
from glue_jobs.core.record import ChangeRecord, DataFile, Input
from glue_jobs.core.schema import Schema
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.undo import Read, rows_path

NOT_POSSIBLE = "replay-not-possible"
FULL_LOAD, ADOPT, TRUNCATE, CREATE = "full-load", "adopt", "truncate", "create"
INCREMENTAL, LATE, ERASE = "incremental", "late", "erase"
BY_HAND = frozenset({"apply", "edit"})  # their rows stand beside the record
BASES = frozenset({FULL_LOAD, ADOPT, TRUNCATE, CREATE})  # after these the table has no row from before
KEEPS = frozenset({"cursor", "schema", "widen", "repartition", "rekey", "history"})  # these leave the rows as they are
KNOWN = BASES | KEEPS | BY_HAND | {INCREMENTAL, LATE, ERASE}
NAMED = 5
ROW_FACTOR = 4  # bytes of a row in memory to its bytes in a compressed file
COPIES = 2  # of the rows, while changes are merged into them
CELL_BYTES = 16  # of a value in memory, at least


@dataclass(frozen=True)
class Fold:
    """The changes that the rows of `head` come from, oldest first. erased: versions that nobody may use any more. gone: change → why the
    rows that a person gave it are not there. adopted: the files of a base that another program wrote."""

    head: Snapshot
    records: tuple[ChangeRecord, ...]
    erased: Erased
    gone: Mapping[str, str]
    adopted: tuple[DataFile, ...] = ()


def fold_of(read: Read, change: str) -> tuple[ChangeRecord, ...]:
    """The changes that the rows of the ordinary change `change` come from, oldest first: the last one that says all rows, or the first of
    the table, and those after it."""
    found: list[ChangeRecord] = []
    for record in rows_path(read, change):
        found.append(record)
        if record.kind in BASES:
            break
    return tuple(reversed(found))


def began_at(first: ChangeRecord) -> str:
    """The cursor with which a fold began, whose first record is `first`: of files up to it the fold tells nothing. What belongs to a load
    its generation says, whatever the cursor was."""
    if first.kind == FULL_LOAD:
        return ""
    return first.cursor_before if first.kind in (INCREMENTAL, LATE) else first.cursor_after


def steps_of(records: Sequence[ChangeRecord]) -> list[tuple[ChangeRecord, ...]]:
    """The fold in steps: batches that follow on each other with the same columns and key are one, each other change is one."""
    steps: list[tuple[ChangeRecord, ...]] = []
    for record in records:
        if steps and record.kind == INCREMENTAL == steps[-1][-1].kind and _alike(steps[-1][-1], record):
            steps[-1] = (*steps[-1], record)
        else:
            steps.append((record,))
    return steps


def cut_at(steps: Sequence[tuple[ChangeRecord, ...]], changes: Sequence[str]) -> list[tuple[ChangeRecord, ...]]:
    """The steps, each divided where one of the changes, which are none of theirs, came between two of its own."""
    found: list[tuple[ChangeRecord, ...]] = []
    for step in steps:
        cuts = [at for at in range(1, len(step)) if any(step[at - 1].id < change < step[at].id for change in changes)]
        found += [step[start:end] for start, end in zip([0, *cuts], [*cuts, len(step)])]
    return found


def _alike(one: ChangeRecord, other: ChangeRecord) -> bool:
    columns = [[(column.name, column.type) for column in record.schema] for record in (one, other)]
    return columns[0] == columns[1] and is_same_key(one.primary_key, other.primary_key) and one.partitioning == other.partitioning


def inputs_of(records: Iterable[ChangeRecord]) -> dict[str, Input]:
    """Raw key → the raw file that the replay reads."""
    return {item.key: item for record in records for item in _read_of(record)}


def _read_of(record: ChangeRecord) -> tuple[Input, ...]:
    """A file that was written anew and taken again stands in several changes, with another ETag in each."""
    return () if record.kind == ADOPT else tuple(item for item in (*record.inputs, *record.context) if not item.is_blank)


def check_kinds(path: str, records: Iterable[ChangeRecord]) -> None:
    """Refuse changes whose rows no replay can make."""
    for record in records:
        if record.kind not in KNOWN:
            raise blocked(
                NOT_POSSIBLE,
                f"the table's rows come from change {record.id} of kind {record.kind}, which can't be made again",
                where=path,
                expected="loads, batches, corrections and adopted files",
                todo="`dmslake verify PATH` proves all but the rows",
            )


def check_inputs(path: str, bucket: str, records: Sequence[ChangeRecord], listed: Mapping[str, str]) -> None:
    """Refuse the replay if raw files are gone or were written anew. listed: raw key → ETag of all that is there.

    Says which, and from which change on all files are there: the changes since could be looked at by `diff` and `explain`.
    """
    wanted = inputs_of(records)
    lacking = [record for record in records if any(listed.get(item.key) != item.etag for item in _read_of(record))]
    if not lacking:
        return
    bad = {item.key: item for record in lacking for item in _read_of(record) if listed.get(item.key) != item.etag}
    later = [record.id for record in records if record.id > lacking[-1].id]
    last, first = lacking[-1].id, min(bad)
    since = f"the raw files of the {len(later)} change(s) since {last} are all there" if later else "the last change's are among them"
    raise blocked(
        NOT_POSSIBLE,
        f"{len(bad)} of {len(wanted)} raw file(s) that the rows come from are gone or were written anew; {since}",
        where=f"s3://{bucket}/{first}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else ""),
        expected=f"ETag {bad[first].etag}",
        found=f"ETag {listed[first]}" if first in listed else "no such object",
        todo="`dmslake verify PATH` proves that files, keys and catalog are as the records say, `dmslake explain PATH --key …` what became "
        "of a row; the next full load is the base of a replay again",
    )


def passes(path: str, records: Sequence[ChangeRecord], snapshot: Snapshot, replay_bytes: float) -> int:
    """In how many passes, each over a part of the keys, the replay needs no more memory than that for rows."""
    most = max((snapshot.rows, *(record.counts.table_rows for record in records)))
    row = max(CELL_BYTES * len(snapshot.schema), ROW_FACTOR * snapshot.size_bytes / max(1, snapshot.rows))
    count = max(1, min(most, -(-int(most * row * COPIES) // max(1, int(replay_bytes)))))  # a pass of less than a row is none
    if count > 1 and len({identity(record.primary_key) for record in records}) > 1:
        raise blocked(
            NOT_POSSIBLE,
            "PrimaryKey was changed since the last load, so that the replay can't be made for a part of the keys at a time",
            where=path,
            expected=f"about {most * row * COPIES:,.0f} bytes of memory for rows (setting replay_bytes)",
            found=f"{int(replay_bytes):,}",
            todo="give --replay-bytes that many on a machine that has them, or reload the table",
        )
    return count


def renamed(record: ChangeRecord) -> str:
    """What the change says of the column that it renamed, `old to new`; '' if it renamed none."""
    return str(record.details.get("renamed") or "")


def renamed_column(before: Schema, record: ChangeRecord) -> tuple[str, str] | None:
    """(old name, new name) of the column that the change renamed."""
    told = renamed(record)
    if not told:
        return None
    pairs = ((old.name, new.name) for old in before for new in record.schema)
    return next(((old, new) for old, new in pairs if f"{old} to {new}" == told), None)


# --- what an erase has taken from a replay


@dataclass(frozen=True)
class Unproven:
    """What a replay can't say since bytes that it needs were erased. partitions: None for the whole table. why: by change."""

    partitions: frozenset[PartitionValues] | None = frozenset()
    why: Mapping[str, str] = field(default_factory=dict)

    def has(self, partition: PartitionValues) -> bool:
        return self.partitions is None or partition in self.partitions


def unproven(records: Sequence[ChangeRecord], lost: Mapping[str, Sequence[DataFile]], gone: Mapping[str, str], head: Snapshot) -> Unproven:
    """lost: change → its own data files whose bytes were erased. gone: change → why the rows that a person gave it are not there.

    The rows of a change that can't be made again are in the partitions of its files, until the table's layout changes.
    """
    why: dict[str, str] = {}
    places: set[PartitionValues] = set()
    is_whole = False
    for record in records:
        files = [file.partition for file in lost.get(record.id, ())]
        if record.id in gone:
            files += [file.partition for file in record.added]
            files += [values_of(path, record.partitioning) for path in record.superseded]
        if files:
            why[record.id] = gone.get(record.id) or f"{len(files)} data file(s) that it took over were erased"
            is_whole = is_whole or record.partitioning != head.partitioning
            places.update(files)
    return Unproven(None if is_whole else frozenset(places), why)


def gone_attachments(records: Iterable[ChangeRecord], erased: Erased, keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(change, why) for corrections whose given rows were erased. keys: name of an attachment → its key."""
    for record in records:
        names = record.given.attachments if record.given and record.kind in BY_HAND else ()
        change = next((found for name in names if (found := erased.change_of(keys[name]))), "")
        if change:
            yield record.id, f"the rows that were given to it were erased by change {change}"
