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
    planned_with: tuple[int, bool] = (0, False)
    rests: bool = False
    stranded: frozenset[int] = frozenset()
    unhidden: tuple[str, ...] = ()

    @functools.cached_property
    def history(self) -> frozenset[str]:
        return frozenset({self.id}) | (self.parent.history if self.parent else frozenset())

    @property
    def content(self) -> Change:
        return self.stands_for or self


change = functools.cache(Change)


def origins(files: Iterable[str]) -> frozenset[str]:
    """The files whose bytes these are copies of."""
    return frozenset(file.split("@")[0] for file in files)


class Item(NamedTuple):
    """The table's item. '' where an attribute is absent."""

    head: str
    fence: int = 0
    owner: str = ""
    publishing: str = ""
    catalog_pending: str = ""
    cursor: int = 0
    paused: bool = False


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
    """One run: its next request (`at`) and all that it has in memory. jobs: what it will still do under its lease."""

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
    writers = tuple(Writer("ABC"[at], work, "reader_look" if work == ("read",) else "look") for at, work in enumerate(jobs))
    keys = (("f0", Key("done", ("ours",), visible=True)),)
    table = Catalog(0, 0, "c0", "", head.partitions)
    return State(Item("c0"), (("c0", head),), keys, frozenset(range(1, inputs + 1)), writers, table)


def canonical(state: State) -> State:
    """The state without what nobody can ever meet again: a run's memory after its end, attempts that can't land any more."""
    writers = tuple(Writer(writer.name) if writer.at == "end" else writer for writer in state.writers)
    head = state.record(state.item.head)
    kept = set(head.history) if head else set()
    kept.update(writer.mine.id for writer in writers if writer.mine)
    if state.network:
        kept.add(state.network.change.id)
    records = tuple(entry for entry in state.records if entry[0] in kept)
    added = {file for _, record in records for file in record.added}
    added.update(file for writer in writers if writer.mine for file in writer.mine.added)
    keys = tuple((name, key) for name, key in state.keys if key.data or (key.upload == "open" and name in added))
    reported = state.reported & ({state.network.change.id} if state.network else frozenset())
    return state._replace(writers=writers, records=records, keys=keys, reported=reported)
