"""Snapshots: the data files after a change, and all else that the next change starts from. Pure: record on record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.partitioning import Partitioning
from glue_jobs.core.raw_names import cdc_name, window_start
from glue_jobs.core.record import ChangeRecord, Checkpoint, Counts, DataFile, Generation, HistoryAt, Input, stands_for, without_upload
from glue_jobs.core.schema import Schema

TOTALS = "table"  # the detail of a record that has the number of its snapshot's files and their bytes
CHECKPOINT_EVERY = 10  # records between two checkpoints, at most
CHECKPOINT_ALWAYS_FILES = 256  # a table of up to so many files has its checkpoint in every record
CHECKPOINT_ALWAYS_AWAITED = 2_000  # unless more raw files than this are awaited
SKIPPED_KEPT = 5_000  # inputs from before the window that a checkpoint still names as skipped, the newest


class _LeftOut(Mapping[str, DataFile]):
    """In the place of files that were not read: whoever asks for one is wrong."""

    def __getitem__(self, path: str) -> DataFile:
        raise AssertionError("this snapshot was read without its files")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("this snapshot was read without its files")

    def __len__(self) -> int:
        raise AssertionError("this snapshot was read without its files")


@dataclass(frozen=True)
class Totals:
    """Of a snapshot's files."""

    files: int
    size_bytes: int


@dataclass(frozen=True)
class Snapshot:
    """The state of a lake table after `change` ('' before the first). applied, skipped: raw key → input, of this generation,
    names before twice the late window left out, but for the newest skipped ones. known_from: digits of the first name for which these
    two are complete.
    stands_for: the ordinary change whose rows these are. awaited: raw key → input that is pending again, after an undo, a reload of the
    same load or a cursor that was moved back, and must not be missing when its turn comes. totals: of a snapshot that was read without
    its files (`outline`).
    """

    change: str = ""
    stands_for: str = ""
    files: Mapping[str, DataFile] = field(default_factory=dict)
    applied: Mapping[str, Input] = field(default_factory=dict)
    skipped: Mapping[str, Input] = field(default_factory=dict)
    awaited: Mapping[str, Input] = field(default_factory=dict)
    generation: Generation = Generation()
    schema: Schema = ()
    primary_key: tuple[str, ...] = ()
    partitioning: Partitioning = ()
    timestamp_column: str = ""
    cursor: str = ""
    last_full_load: str = ""
    table_rows: int = 0
    time: str = ""
    known_from: str = ""
    chain: tuple[str, ...] = ()  # the next record's chain: changes since the last checkpoint, this one included
    erases: tuple[str, ...] = ()  # the erases that the table ever had; a rollback does not undo them
    history: HistoryAt | None = None
    totals: Totals | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the table was never loaded: it has no change yet, or its first one was taken back."""
        return not self.schema

    @property
    def rows(self) -> int:
        return self.table_rows if self.totals else sum(file.rows for file in self.files.values())

    @property
    def size_bytes(self) -> int:
        return self.totals.size_bytes if self.totals else sum(file.size_bytes for file in self.files.values())

    @property
    def file_count(self) -> int:
        return self.totals.files if self.totals else len(self.files)


def apply(parent: Snapshot, record: ChangeRecord, *, with_files: bool = True) -> Snapshot:
    """The snapshot after `record`, whose parent's snapshot is `parent` (any snapshot will do if the record has a checkpoint)."""
    if record.checkpoint is not None:
        files = {file.path: file for file in record.checkpoint.files} if with_files else {}
        applied = {item.key: item for item in record.checkpoint.applied}
        skipped = {item.key: item for item in record.checkpoint.skipped}
        awaited = {item.key: item for item in record.checkpoint.awaited}
        known_from = record.checkpoint.known_from
        chain: tuple[str, ...] = (record.id,)
    else:
        if parent.change != record.parent:
            raise TableBlocked(
                f"change {record.id} follows {record.parent or 'nothing'}, not {parent.change or 'nothing'}",
                "broken-history",
            )
        files = _files_after(parent, record) if with_files else {}
        same = parent.generation.number == record.generation.number
        inputs = {item.key: item for item in record.inputs}
        waiting = _waiting(parent, record)
        kept = _kept(waiting, record)
        applied = {**(parent.applied if same else {}), **kept, **inputs}
        left_out = {key: item for key, item in parent.skipped.items() if key not in inputs}  # a replay may take what was skipped
        skipped = {**(left_out if same else {}), **{item.key: item for item in record.skipped if item.key not in kept}}
        if _goes_back(parent.cursor, record.cursor_after):
            # Beyond the cursor of before are files that a reload has yet to reach: those that were left out for good stay so.
            beyond = {key: item for key, item in skipped.items() if cdc_name(key) and not _is_behind(key, parent.cursor)}
            skipped = {**_up_to_cursor(skipped, record.cursor_after), **beyond}
        awaited = _still_awaited(waiting, parent.cursor, record, {**inputs, **skipped, **kept}, same)
        known_from = parent.known_from if same else ""
        chain = (*record.chain, record.id)
    return Snapshot(
        change=record.id,
        stands_for=stands_for(record),
        files=files,
        applied=_up_to_cursor(applied, record.cursor_after),
        skipped=skipped,
        awaited=awaited,
        generation=record.generation,
        schema=record.schema,
        primary_key=record.primary_key,
        partitioning=record.partitioning,
        timestamp_column=record.timestamp_column,
        cursor=record.cursor_after,
        last_full_load=record.last_full_load,
        table_rows=record.counts.table_rows,
        time=record.time,
        known_from=known_from,
        chain=chain,
        erases=record.erases,
        history=record.history,
    )


def _up_to_cursor(inputs: Mapping[str, Input], cursor: str) -> Mapping[str, Input]:
    """The inputs up to the cursor. Those beyond it were applied or skipped before a person moved the cursor back: they are
    pending again, all of them, because the files after a replayed one must be replayed too."""
    if cdc_name(cursor) is None:
        return inputs
    return {key: item for key, item in inputs.items() if cdc_name(key) is None or _is_behind(key, cursor)}


def _goes_back(before: str, after: str) -> bool:
    """Whether a person moved the cursor back. What a reload of the same load leaves out lies beyond the cursor, too, and stays left out."""
    return _is_behind(after, before) and not _is_behind(before, after)


def _waiting(parent: Snapshot, record: ChangeRecord) -> Mapping[str, Input]:
    """What the parent awaits, and what it had applied and the change makes pending again. A person who moves the cursor back, or loads the
    same load again, wants what is there now, which may be corrected files."""
    goes_back = bool(record.inputs) and _goes_back(parent.cursor, record.cursor_after)
    is_again = record.kind == "full-load" and loads_again(parent.generation.loads, record.generation.loads)
    if not (goes_back or is_again):
        return parent.awaited
    had = {key: replace(item, etag="") for key, item in parent.applied.items() if cdc_name(key) and not item.is_blank}
    if goes_back:
        return {**parent.awaited, **{key: item for key, item in had.items() if not _is_behind(key, record.cursor_after)}}
    return {**{key: replace(item, rows=-1) for key, item in had.items()}, **parent.awaited}  # without rows: the table has none of them


def _kept(waiting: Mapping[str, Input], record: ChangeRecord) -> dict[str, Input]:
    """What a person passes over by moving the cursor forth that the table had applied before it was moved back: it still has the rows."""
    known = {key for key, item in waiting.items() if not item.etag and item.rows >= 0}
    return {item.key: item for item in record.skipped if item.key in known and _is_behind(item.key, record.cursor_before)}


def loads_again(before: Sequence[Input], files: Sequence[Input]) -> bool:
    """Whether a load of these files is a load of those that a generation has: they are the same, or some of them were not written since.
    DMS writes all of them anew, and may write the same bytes."""
    known = {item.key: item for item in before}
    same = [known[item.key] for item in files if item.key in known and known[item.key].etag == item.etag]
    times = {item.key: item.modified for item in files}
    return bool(same) and (len(same) == len(files) or any(item.modified == times[item.key] for item in same))


def _still_awaited(
    waiting: Mapping[str, Input], cursor_before: str, record: ChangeRecord, taken: Mapping[str, Input], same_generation: bool
) -> dict[str, Input]:
    """What of `waiting` is awaited after the change: not what it took, nor what a person passed over by moving the cursor.

    After a full load only the CDC files that belong to it are.
    """
    passed = {key for key in waiting if _is_behind(key, record.cursor_after) and not _is_behind(key, cursor_before)}
    left = {key: item for key, item in waiting.items() if key not in taken and key not in passed}
    if same_generation:
        return left
    return {key: item for key, item in left.items() if (name := cdc_name(key)) and name.digits >= record.generation.cdc_from}


def _is_behind(key: str, cursor: str) -> bool:
    """Whether the raw file is a CDC file up to the cursor."""
    name, last = cdc_name(key), cdc_name(cursor)
    return name is not None and last is not None and name <= last


def _files_after(parent: Snapshot, record: ChangeRecord) -> dict[str, DataFile]:
    files = dict(parent.files)
    for path in record.superseded:
        if files.pop(path, None) is None and record.kind != "full-load":  # which replaces files of other programs too, that no snapshot has
            raise TableBlocked(f"change {record.id} supersedes {path}, which its parent's snapshot has not", "broken-history")
    for file in record.added:
        files[file.path] = without_upload(file)
    return files


def replay(records: Iterable[ChangeRecord]) -> Snapshot:
    """The snapshot after the last of `records`, which begin with one that has a checkpoint or no parent."""
    snapshot = Snapshot()
    for record in records:
        snapshot = apply(snapshot, record)
    return snapshot


def outline(records: Iterable[ChangeRecord]) -> Snapshot:
    """The same without its files: the last record, which may lack those of its checkpoint as the others may, says how many there are."""
    snapshot, totals = Snapshot(), Totals(0, 0)
    for record in records:
        snapshot = apply(snapshot, record, with_files=False)
        totals = Totals(**record.details[TOTALS]) if TOTALS in record.details else totals
    return replace(snapshot, files=_LeftOut(), totals=totals)


def recalled(snapshot: Snapshot, records: Iterable[ChangeRecord]) -> Snapshot:
    """The snapshot with the applied inputs that checkpoints have left out. records: the changes that its rows come from, oldest first.

    Skipped inputs are not brought back: a file from before `known_from` that is not among the applied ones may be one of them.
    """
    first, end = snapshot.generation.cdc_from, snapshot.known_from
    items = (item for record in records for item in record.inputs if cdc_name(item.key) and first <= _digits(item.key) < end)
    older = {item.key: item for item in items if item.key not in snapshot.skipped and _is_behind(item.key, snapshot.cursor)}
    return replace(snapshot, applied={**older, **snapshot.applied})


def totals_of(snapshot: Snapshot) -> dict[str, int]:
    """The detail TOTALS of a record whose snapshot it is."""
    return {"files": snapshot.file_count, "size_bytes": snapshot.size_bytes}


def checkpoint_due(parent: Snapshot, files: int) -> bool:
    """Whether the next record, with `files` data files after it, should carry the whole snapshot."""
    is_small = files <= CHECKPOINT_ALWAYS_FILES and len(parent.awaited) <= CHECKPOINT_ALWAYS_AWAITED
    return is_small or len(parent.chain) >= CHECKPOINT_EVERY


def checkpoint_of(snapshot: Snapshot, window_hours: float) -> Checkpoint:
    """The checkpoint of a snapshot. Inputs named long before the late window are left out: no plan looks at them any more, but for a reload
    of the same load, which must not take what was skipped."""
    oldest: str | None = window_start(snapshot.cursor, 2 * window_hours)

    def is_recent(item: Input) -> bool:
        return not oldest or _digits(item.key) >= oldest

    by_name = sorted(snapshot.skipped.values(), key=lambda item: (_digits(item.key), item.key), reverse=True)
    kept = {item.key: item for place, item in enumerate(by_name) if place < SKIPPED_KEPT or is_recent(item)}
    files = tuple(file for _, file in sorted(snapshot.files.items()))
    applied = tuple(item for _, item in sorted(snapshot.applied.items()) if is_recent(item))
    skipped = tuple(item for _, item in sorted(kept.items()))
    left_out = len(applied) + len(skipped) < len(snapshot.applied) + len(snapshot.skipped)
    known_from = max(snapshot.known_from, oldest or "") if left_out else snapshot.known_from
    return Checkpoint(files, applied, skipped, known_from, tuple(item for _, item in sorted(snapshot.awaited.items())))


def _digits(key: str) -> str:
    name = cdc_name(key)
    return name.digits if name else ""


def table_rows(files: Iterable[DataFile]) -> int:
    return sum(file.rows for file in files)


__all__ = ["Counts", "Snapshot", "apply", "checkpoint_due", "checkpoint_of", "replay", "table_rows"]
