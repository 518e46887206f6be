"""The values of the model: item, changes, keys, catalog and writers. Small and immutable, so that states can be compared and counted."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, eq=False)
class Change:
    """A change record. Made by `change`, which gives the same object for the same values, so that comparing is cheap.

    files: keys of its snapshot; `x@B1` is B1's copy of file x. stands_for: the ordinary change whose rows it has, None: itself.
    planned_with: (cursor, paused) of the item it was planned with. rests: one after which the table is to wait for a person.
    stranded: raw files made pending that were seen to be gone. unhidden: keys made visible again (only where restoring is by that).
    staged: it waits for a person; staged_as: the waiting change that this one commits. half: uploads that were seen to be gone by then.
    erased: of an erase, the keys whose versions it removes.
    """

    id: str
    parent: Change | None = None
    kind: str = "batch"
    fence: int = 0
    files: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    cursor: int = 0
    applied: frozenset[int] = frozenset()
    awaited: frozenset[int] = frozenset()
    stands_for: Change | None = None
    columns: str = ""
    layout: str = ""
    partitions: frozenset[str] = frozenset()
    planned_with: tuple[int, str] = (0, "")
    rests: bool = False
    stranded: frozenset[int] = frozenset()
    unhidden: tuple[str, ...] = ()
    staged: bool = False
    staged_as: Change | None = None
    half: frozenset[str] = frozenset()
    erased: frozenset[str] = frozenset()

    @functools.cached_property
    def history(self) -> frozenset[str]:
        return frozenset({self.id}) | (self.parent.history if self.parent else frozenset())

    @functools.cached_property
    def committed(self) -> frozenset[str]:
        """The staged changes that were committed on the way to this one."""
        own = {self.staged_as.id} if self.staged_as else set()
        return frozenset(own) | (self.parent.committed if self.parent else frozenset())

    @functools.cached_property
    def listed(self) -> frozenset[str]:
        """What the erases up to this change remove; one that was taken back never was."""
        before = self.parent.parent if self.kind == "lost" and self.parent else self.parent
        return self.erased | (before.listed if before else frozenset())

    @property
    def content(self) -> Change:
        return self.stands_for or self


change = functools.cache(Change)


def origins(files: Iterable[str]) -> frozenset[str]:
    """The files whose bytes these are copies of."""
    return frozenset(file.split("@")[0] for file in files)


def holds(name: str) -> bool:
    """Whether the file has the rows that an erase is about. It does unless it was made from files that have them not."""
    return not name.split("@")[0].endswith("-")


def made_from(files: Iterable[str]) -> str:
    """How the names of files end that are made from these."""
    return "" if any(holds(file) for file in files) else "-"


class Item(NamedTuple):
    """The table's item. '' where an attribute is absent. paused: by whom: person, rollback, or the id of the change that is staged."""

    head: str
    fence: int = 0
    owner: str = ""
    publishing: str = ""
    catalog_pending: str = ""
    cursor: int = 0
    paused: str = ""
    erasing: str = ""


class Key(NamedTuple):
    """What S3 has of one key. upload: open, done, gone. data: the data versions, oldest first: ours, foreign, expired."""

    upload: str = "gone"
    data: tuple[str, ...] = ()
    visible: bool = False


class Catalog(NamedTuple):
    """The Glue table. version: what UpdateTable compares."""

    version: int
    fence: int
    columns: str
    layout: str
    partitions: frozenset[str]


class Writer(NamedTuple):
    """One run: its next request (`at`) and all that it has in memory. jobs: what it will still do under its lease. eraser: it may remove
    versions; uploads: how many of `left` are such, and not versions; asked: for a new Glue table, which may have no partition yet."""

    name: str
    jobs: tuple[str, ...] = ()
    at: str = "end"
    fence: int = 0
    seen: Item | None = None
    mine: Change | None = None
    left: tuple[str, ...] = ()
    redo: bool = False
    missing: bool = False
    sent_with: int = 0
    counter: int = 0
    table: Catalog | None = None
    known_gone: frozenset[int] = frozenset()
    eraser: bool = False
    uploads: int = 0
    asked: bool = False


class Commit(NamedTuple):
    """The commit's conditional write on its way: what it sets and what it requires."""

    change: Change
    fence: int
    parent: str
    publishing: str


class State(NamedTuple):
    """Everything. records: by id. network: a commit that arrives late. reported: changes that a run said did not land."""

    item: Item
    records: tuple[tuple[str, Change], ...]
    keys: tuple[tuple[str, Key], ...]
    raw: frozenset[int]
    writers: tuple[Writer, ...]
    catalog: Catalog | None = None
    network: Commit | None = None
    reported: frozenset[str] = frozenset()
    edited: bool = False

    def record(self, id_: str) -> Change | None:
        return next((record for id_found, record in self.records if id_found == id_), None)

    def key(self, name: str) -> Key:
        return next((key for found, key in self.keys if found == name), Key())

    def with_key(self, name: str, key: Key) -> State:
        return self._replace(keys=tuple(sorted({**dict(self.keys), name: key}.items())))

    def with_record(self, record: Change) -> State:
        return self._replace(records=tuple(sorted({**dict(self.records), record.id: record}.items(), key=lambda entry: entry[0])))

    def with_writer(self, index: int, writer: Writer) -> State:
        return self._replace(writers=(*self.writers[:index], writer, *self.writers[index + 1 :]))


def visible(state: State) -> frozenset[str]:
    return frozenset(name for name, key in state.keys if key.visible)


def first_state(jobs: Iterable[tuple[str, ...]], inputs: int) -> State:
    """A published table of one file, `inputs` raw files to apply, and a writer for each tuple of jobs."""
    head = change("c0", files=frozenset({"f0"}), columns="c0", partitions=frozenset({"c0"}))
    writers = tuple(new_writer("ABC"[at], work) for at, work in enumerate(jobs))
    keys = (("f0", Key("done", ("ours",), visible=True)),)
    table = Catalog(0, 0, "c0", "", head.partitions)
    return State(Item("c0"), (("c0", head),), keys, frozenset(range(1, inputs + 1)), writers, table)


def new_writer(name: str, jobs: tuple[str, ...]) -> Writer:
    """A run that has not begun."""
    return Writer(name, jobs, "reader_look" if jobs == ("read",) else "look", eraser=bool({"erase", "resume"} & set(jobs)))


def canonical(state: State) -> State:
    """The state without what nobody can ever meet again: a run's memory after its end, attempts that can't land any more."""
    writers = tuple(Writer(writer.name) if writer.at == "end" else writer for writer in state.writers)
    head = state.record(state.item.head)
    kept = set(head.history) if head else set()
    kept.update(writer.mine.id for writer in writers if writer.mine)
    if state.network:
        kept.add(state.network.change.id)
    kept.update(record.id for _, record in state.records if record.staged and _is_waiting(state, record, writers))
    records = tuple(entry for entry in state.records if entry[0] in kept)
    added = {file for _, record in records for file in record.added}
    added.update(file for writer in writers if writer.mine for file in writer.mine.added)
    keys = tuple((name, key) for name, key in state.keys if key.data or (key.upload == "open" and name in added))
    reported = state.reported & ({state.network.change.id} if state.network else frozenset())
    return state._replace(writers=writers, records=records, keys=keys, reported=reported)


def _is_waiting(state: State, staged: Change, writers: Iterable[Writer]) -> bool:
    """Whether somebody may still do something with a staged change."""
    asked = any(writer.at != "end" and {"commit", "discard"} & set(writer.jobs) for writer in writers)
    return asked or any(state.key(name).upload == "open" for name in staged.added)
