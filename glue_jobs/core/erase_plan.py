"""The plan of an erase: what S3 keeps for a table, which versions hold one of the keys, and what goes. Values; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glue_jobs.core.erasure import NAMED, Erased, digest_of
from glue_jobs.core.errors import blocked
from glue_jobs.core.ids import ATTACHMENT_ENDING, change_of_name
from glue_jobs.core.partitioning import Partitioning
from glue_jobs.core.record import ChangeRecord, Counts, DataFile, ErasedVersion
from glue_jobs.core.replay import renamed
from glue_jobs.core.schema import Schema, find


@dataclass(frozen=True)
class HeldVersion:
    """A version of a key that holds data, as S3 lists it. visible: whether a plain GET finds it."""

    key: str
    version: str
    size_bytes: int
    etag: str
    visible: bool = False


@dataclass(frozen=True)
class FileShape:
    """The columns, key and layout that a record, `change`, had when it wrote a file."""

    schema: Schema = ()
    primary_key: tuple[str, ...] = ()
    partitioning: Partitioning = ()
    generation: int = 0
    change: str = ""


@dataclass(frozen=True)
class Rename:
    """A column that a change of the generation renamed. undone: the table's state is not one that came of it."""

    change: str
    generation: int
    old: str
    new: str
    undone: bool = False


@dataclass(frozen=True)
class Searchable:
    """A version to look into. path: below the table's folder, '' for an attachment. file, shape: as a record has them, None where no
    record knows the object; file only if its size and ETag are this version's. older: name → those that the column may have there,
    because it was renamed later."""

    held: HeldVersion
    path: str = ""
    file: DataFile | None = None
    shape: FileShape | None = None
    older: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Holdings:
    """What S3 keeps for a table. unsearched: keys of objects that are not ours or no Parquet."""

    searchable: tuple[Searchable, ...] = ()
    unsearched: tuple[str, ...] = ()


def renames_of(record: ChangeRecord) -> tuple[Rename, ...]:
    """The column that the change renamed. Names may be such that its detail can be read in two ways: then both."""
    told = renamed(record)
    pairs = ((told[: -len(f" to {column.name}")], column.name) for column in record.schema if told.endswith(f" to {column.name}"))
    return tuple(Rename(record.id, record.generation.number, old, new) for old, new in pairs if find(record.schema, old) is None)


def older_names(renames: Iterable[Rename], generation: int = 0, change: str = "") -> dict[str, tuple[str, ...]]:
    """Name → the names that the column may have in files that the change of the generation wrote, 0 and '' for any: a load begins with
    names of its own, which no earlier rename of an earlier generation means. A later one may: the load was undone since. renames: oldest
    first. After one that was undone the column had the new name in files of that time, and not the old name before it is another's."""
    older: dict[str, set[str]] = {}
    for rename in renames:
        if rename.undone and (not change or rename.change <= change):
            for names in (names for name, names in older.items() if rename.old in names):
                names.add(rename.new)
            older.setdefault(rename.old, set()).add(rename.new)
        elif not rename.undone and (rename.generation >= generation or rename.change > change):
            older.setdefault(rename.new, set()).update({rename.old, *older.get(rename.old, ())})
    return {name: tuple(sorted(names)) for name, names in older.items()}


@dataclass(frozen=True)
class Hit:
    """A version that holds some of the keys. keys: positions in the given ones."""

    item: Searchable
    keys: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Found:
    """What a search found. texts: the canonical texts of the given keys. lacking: versions without a key column; unlike: keys of
    objects that could not be compared."""

    columns: tuple[str, ...]
    texts: tuple[str, ...] = field(repr=False)
    hits: tuple[Hit, ...] = ()
    searched: int = 0
    read: int = 0
    lacking: int = 0
    unlike: tuple[str, ...] = ()
    engine: str = "driver"


@dataclass(frozen=True)
class Rewritten:
    """The head's files without the rows: what comes and what goes."""

    added: tuple[DataFile, ...] = ()
    superseded: tuple[str, ...] = ()
    counts: Counts = Counts()


@dataclass(frozen=True)
class ErasePlan:
    """What an erase would do, shown before it is done. rows: of the head's snapshot; files: its data files that hold a key; versions:
    the exact list of what is removed, those files' included. history_rows, history_files: the same of the history table, whose versions
    are among `versions`. texts: the canonical texts of the given keys, for the digest alone."""

    head: str
    columns: tuple[str, ...]
    keys: int
    found_keys: int
    rows: int
    files: tuple[str, ...]
    versions: tuple[ErasedVersion, ...]
    searched: int = 0
    lacking: int = 0
    unsearched: tuple[str, ...] = ()
    engine: str = "driver"
    history_rows: int = 0
    history_files: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.versions)

    @property
    def digest(self) -> str:
        """The same for a plan that takes the same versions for the same keys."""
        return digest_of(self.versions, self.columns, self.texts)

    def facts(self) -> dict[str, Any]:
        """For records, logs and reports; no key is in it."""
        return {
            "keys_given": self.keys,
            "keys_found": self.found_keys,
            "rows_erased": self.rows,
            "files_rewritten": len(self.files),
            "history_rows_erased": self.history_rows,
            "history_files_rewritten": len(self.history_files),
            "versions": len(self.versions),
            "bytes": self.size_bytes,
            "versions_searched": self.searched,
            "versions_without_key": self.lacking,
            "unsearched": len(self.unsearched),
            "unsearched_first": list(self.unsearched[:NAMED]),
            "engine": self.engine,
        }


def is_attachment(name: str) -> bool:
    """Whether the object stands beside a change record and holds rows. name: below the table's `_changes` folder."""
    return name.endswith(ATTACHMENT_ENDING) and "/" not in name and bool(change_of_name(name))


def change_of_path(path: str) -> str:
    """The change whose data file the object is by its place and name, '' for an object of others. path: below the table's folder.

    In a folder that is no partition's stand the files of another table, whose folder is inside this one's.
    """
    *folders, name = path.split("/")
    return change_of_name(name) if all("=" in folder for folder in folders) else ""


def plan_of(head: str, files: Mapping[str, DataFile], found: Found, unsearched: Sequence[str], hidden: Erased, lake_key: str) -> ErasePlan:
    """The plan for what was found. files: of the head's snapshot; hidden: what earlier erases have on their lists.

    Raises TableBlocked, foreign-write, where somebody else wrote over a file of the snapshot, so that readers see other bytes. Bytes that
    another program left below it, before it was adopted, are none of the table's: they only go where they hold a key, and the file is
    written anew then, because a version of a file that the table has is never removed.
    """
    hits = [hit for hit in found.hits if not hidden.has(hit.item.held.key, hit.item.held.version)]
    in_head, own = [hit for hit in hits if hit.item.path in files], own_hits(files, hits)
    for hit in in_head:
        file, held = files[hit.item.path], hit.item.held
        if held.visible and not _is_own(file, held):
            raise blocked(
                "foreign-write",
                "somebody else wrote to a data file's key",
                where=f"{lake_key}{hit.item.path}",
                expected=f"{file.size_bytes} bytes, ETag {file.etag or 'any'}",
                found=f"{held.size_bytes} bytes, ETag {held.etag}, version {held.version}",
                todo="`dmslake verify PATH --repair` gives the table a file of its own again; then erase",
            )
    versions = sorted({ErasedVersion(hit.item.held.key, hit.item.held.version, hit.item.held.size_bytes) for hit in hits}, key=_order)
    return ErasePlan(
        head=head,
        columns=found.columns,
        keys=len(found.texts),
        found_keys=len({at for hit in hits for at in hit.keys}),
        rows=sum(hit.rows for hit in own.values()),
        files=tuple(sorted({hit.item.path for hit in in_head})),
        versions=tuple(versions),
        searched=found.searched,
        lacking=found.lacking,
        unsearched=(*unsearched, *found.unlike),
        engine=found.engine,
        texts=found.texts,
    )


def with_history(plan: ErasePlan, found: Found, history: ErasePlan, history_found: Found) -> ErasePlan:
    """The plan for a table and its history table, of the plans for each."""
    return replace(
        plan,
        found_keys=len({at for hit in (*found.hits, *history_found.hits) for at in hit.keys}),
        versions=tuple(sorted((*plan.versions, *history.versions), key=_order)),
        searched=plan.searched + history.searched,
        lacking=plan.lacking + history.lacking,
        unsearched=(*plan.unsearched, *history.unsearched),
        history_rows=history.rows,
        history_files=history.files,
    )


def own_hits(files: Mapping[str, DataFile], hits: Iterable[Hit]) -> dict[str, Hit]:
    """Path → the hit in the file's own bytes, once also where several versions have them. files: of the head's snapshot."""
    own = ((hit.item.path, hit) for hit in hits if hit.item.path in files)
    return {path: hit for path, hit in own if _is_own(files[path], hit.item.held)}


def _is_own(file: DataFile, held: HeldVersion) -> bool:
    return held.size_bytes == file.size_bytes and file.etag in ("", held.etag)


def _order(version: ErasedVersion) -> tuple[str, str]:
    return version.key, version.version
