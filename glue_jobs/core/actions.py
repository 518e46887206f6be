"""What may be done next for a table: a closed set of actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import Input
from glue_jobs.core.state import BlockedBy


@dataclass(frozen=True)
class Rest:
    """Nothing to do. code: up-to-date, inactive, paused, no-files, no-source, reload-waits."""

    code: str
    reason: str


@dataclass(frozen=True)
class Stopped:
    """The table waits for a person. known: it was blocked before and nothing changed since."""

    by: BlockedBy
    known: bool = False


@dataclass(frozen=True)
class Finish:
    """A publish or catalog step was left unfinished; converge and catalog, then plan again."""

    reason: str


@dataclass(frozen=True)
class TakeLoad:
    """Load the table from its load files. reload: it replaces what is there.

    gone: files of the same load, and CDC files that were applied since, that are no longer there. All are from before its files were
    written; which of them belong to the load is known when it is read (`check_gone`). left_out: those of the new generation.
    passed: CDC files that a person skipped by the cursor, and no change has noted yet; of a load of the same files they stay skipped.
    cdc: all that were listed; which of them belong to the load is known when it is read (`load_start`).
    """

    files: tuple[RawFile, ...]
    reload: bool
    reason: str
    gone: tuple[Input, ...] = ()
    left_out: tuple[Input, ...] = ()
    passed: tuple[RawFile, ...] = ()
    cdc: tuple[RawFile, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class TakeBatch:
    """Apply CDC files. context: files applied before that are ranked again because `files` came late.

    skipped: files that a person skipped, by the cursor or by name; remaining: pending files beyond this batch. blank: keys of those
    among `files` that are known to have no row of the table. left_out: those of the generation, with what a person added since.
    """

    files: tuple[RawFile, ...]
    context: tuple[RawFile, ...] = ()
    skipped: tuple[RawFile, ...] = ()
    remaining: int = 0
    remaining_bytes: int = 0
    late: bool = False
    blank: frozenset[str] = frozenset()
    left_out: tuple[Input, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files + self.context)


@dataclass(frozen=True)
class Rewrite:
    """Rewrite all data files because a person asked: kind is widen, schema, repartition or rekey."""

    kind: str
    reason: str
    value: str = ""


@dataclass(frozen=True)
class Truncate:
    """Empty the table: the source table was emptied, as its raw files tell, and a person wants that to count."""

    reason: str


@dataclass(frozen=True)
class SyncHistory:
    """Bring the history table up to date with the lake table's rows: it begins, or rows changed without it."""

    reason: str


Action = Union[Rest, Stopped, Finish, TakeLoad, TakeBatch, Rewrite, Truncate, SyncHistory]
