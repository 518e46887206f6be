"""A simulation cut into files, and what of them arrives when: the load, then rounds of changes; doubled, late, reloaded.

The order of a table's CDC files is that of their names, which are the times at which they were written. Those times never stand still.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from infra.local.feed.formats import Format, read_format
from infra.local.feed.layouts import read_layout
from infra.local.feed.oracle import Oracle
from infra.local.feed.sheets import SCHEMA, TABLE, Sheets, commit_text, transfer_text
from infra.local.feed.simulation import Change, Row, Simulation, SourceColumn
from infra.local.feed.wish import FeedWish

STEP = timedelta(hours=5, minutes=7)  # between two files: within the late window of a day, and soon in the next day's folder
SPLIT = timedelta(seconds=61)  # between two files whose rows DMS keeps apart
LOAD_BEFORE = timedelta(hours=1)


@dataclass(frozen=True)
class RawWrite:
    """A file to write. path: below the table's folder, or, of `transactions`, below the folder of all tables' changes."""

    path: str
    rows: int
    encode: Callable[[], bytes] = field(repr=False)
    transactions: bool = False


@dataclass(frozen=True)
class Round:
    """What happens between two runs: the files `removed` (paths below the table's folder) go, then `files` come, in this order.

    oracle: what the lake must hold afterwards. is_current: nothing is held back, so that it is the source as it is. said: sentences.
    """

    number: int
    said: tuple[str, ...]
    removed: tuple[str, ...]
    files: tuple[RawWrite, ...]
    oracle: Oracle
    is_current: bool
    loads: bool


@dataclass(frozen=True)
class _CdcFile:
    written: datetime
    changes: tuple[Change, ...]
    path: str
    form: Format


def make_rounds(wish: FeedWish, table: tuple[str, str] = (SCHEMA, TABLE)) -> Iterator[Round]:
    """The load as round 0, then `wish.rounds` rounds. The same wish gives the same bytes. table: (schema, table)."""
    feed = Feed(wish, table)
    yield feed.load()
    for number in range(1, wish.rounds + 1):
        yield feed.round(number)


class Feed:
    """A DMS task. source: the table as it is now. reloaded_at: when it was loaded again."""

    def __init__(self, wish: FeedWish, table: tuple[str, str] = (SCHEMA, TABLE)) -> None:
        self.wish, self.layout = wish, read_layout(wish.layout)
        self.source = Simulation(wish.seed, wish.key, inserts_only=wish.op == "none", moves_keys=wish.before_images, ties=wish.ties)
        self._sheets = Sheets(wish, self.source.key, table)
        self._chance = random.Random(wish.seed + 1)  # of its own: what arrives when does not change what happens
        self._clock = wish.start
        self._files = 0  # of which each takes the next of its formats
        self._base = Oracle(self.source.key, wish.timestamp_column)
        self._since: list[_CdcFile] = []  # that arrived since the last load
        self._held: list[_CdcFile] = []
        self._paths: list[str] = []  # of all CDC files that arrived
        self._history: list[Change] = []  # since the last load, for a task that starts again at an earlier point
        self.reloaded_at: datetime | None = None
        self._cached: list[Change] = []  # committed while the load ran, so that it has them already

    def load(self) -> Round:
        """The first full load."""
        self.source.fill(self.wish.rows)
        files = self._full_load(self.wish.start - LOAD_BEFORE)
        return Round(0, (f"the full load: {len(self.source.rows)} rows",), (), tuple(files), self._base.copy(), True, True)

    def round(self, number: int) -> Round:
        """What comes next; number: from 1."""
        said: list[str] = []
        late, self._held = self._held, []
        loads: list[RawWrite] = []
        removed: list[str] = []
        stale: list[_CdcFile] = []
        if self.wish.reload and number == (self.wish.rounds + 1) // 2:
            stale, late = [*late, *self._cut(self._happen(self._per_file()))], []
            loads = self._reload(said)
            if self.wish.reload == "gone" and not self.layout.transactions:
                removed, stale, self._paths = self._paths, [], []
        said += [f"{file.path} comes late" for file in late]
        fresh = self._changes(said)
        if self.wish.late and number < self.wish.rounds and len(fresh) > 1:
            self._held = [self._chance.choice(fresh[:-1])]
            said += [f"{file.path} is not there yet" for file in self._held]
        arrived = [file for file in (*late, *fresh) if file not in self._held]
        self._since += arrived
        self._paths += [file.path for file in (*stale, *arrived)]
        files = [*map(self._write, stale), *loads, *map(self._write, arrived)]
        return Round(number, tuple(said), tuple(removed), tuple(files), self._oracle(), not self._held, bool(loads))

    # --- the load

    def _full_load(self, at: datetime) -> list[RawWrite]:
        """Load files of the source as it is; whoever starts again also has rows that two of them share, and changes that are in both."""
        self._cached = self._happen(self._per_file()) if self.wish.duplicates else []
        rows = [(row, transfer_text(at, number)) for number, row in enumerate(self.source.rows.values())]
        self._base.load(self.source.columns, rows)
        form = read_format(self.wish.format)
        count = self.wish.load_files
        writes = []
        for number in range(count):
            start, stop = len(rows) * number // count, len(rows) * (number + 1) // count
            part = rows[max(0, start - self.wish.duplicates) : stop]
            this = form[number % len(form)]
            encode = partial(self._encode_load, self.source.columns, part, this)
            writes.append(RawWrite(self.layout.load_path(number, this.ending), len(part), encode))
        return writes

    def _encode_load(self, columns: tuple[SourceColumn, ...], rows: Sequence[tuple[Row, str]], form: Format) -> bytes:
        return form.encode(self._sheets.of_load(columns, rows))

    def _reload(self, said: list[str]) -> list[RawWrite]:
        self._since, self._history, self.reloaded_at = [], [], self._clock
        loads = self._full_load(self._clock)
        self._clock += STEP
        what = "kept" if self.layout.transactions else self.wish.reload  # in a folder of all tables nothing of one goes
        said.append(f"the table is loaded again: {len(self.source.rows)} rows; the CDC files from before are {what}")
        return loads

    # --- changes

    def _changes(self, said: list[str]) -> list[_CdcFile]:
        """The round's CDC files, in the order of their names."""
        files: list[_CdcFile] = []
        chunk: list[Change] = []
        for at in range(self.wish.files):
            if self.wish.schema_changes and at == self.wish.files // 2:
                said.append(self.source.alter())
            repeated = self._repeated() if self.wish.duplicates and not self._cached else []
            chunk = [*self._cached, *repeated, *self._happen(self._per_file())]
            self._cached = []
            files += self._cut(chunk)
        if self.wish.duplicates:
            said.append("DMS started again at earlier points: rows come twice, and the last file's under two names")
            files += self._cut(chunk)
        return files

    def _per_file(self) -> int:
        return max(1, self.wish.changes // self.wish.files)

    def _happen(self, count: int) -> list[Change]:
        changes = self.source.happen(count, self._clock)
        self._history += changes
        return changes

    def _repeated(self) -> list[Change]:
        """The last changes: a task that starts again repeats from a point and runs on, so all from there to the end."""
        count = self._chance.randint(0, self._per_file() * 3 // 2)
        return self._history[-count:] if count else []

    def _cut(self, changes: Sequence[Change]) -> list[_CdcFile]:
        """The files of what was captured by now: rows of two folders, or of two schemas, never share one."""
        files: list[_CdcFile] = []
        for _, group in groupby(changes, key=lambda change: (self.layout.folder_of(change.committed_at), change.columns)):
            rows = tuple(group)
            written = self._clock + SPLIT * (len(files) + 1) + timedelta(milliseconds=self._chance.randrange(1000))
            form = self._next_format()
            files.append(_CdcFile(written, rows, self.layout.cdc_path(written, rows[0].committed_at, form.ending), form))
        self._clock += STEP
        return files

    def _next_format(self) -> Format:
        forms = read_format(self.wish.format)
        if self.layout.transactions:
            forms = tuple(form for form in forms if ".csv" in form.ending) or read_format("csv")
        self._files += 1
        return forms[self._files % len(forms)]

    def _write(self, file: _CdcFile) -> RawWrite:
        return RawWrite(file.path, len(file.changes), partial(self._encode, file), self.layout.transactions)

    def _encode(self, file: _CdcFile) -> bytes:
        if self.layout.transactions:
            return self._sheets.transactions(file.changes, file.form)
        return file.form.encode(self._sheets.of_changes(file.changes))

    def _oracle(self) -> Oracle:
        oracle = self._base.copy()
        for file in sorted(self._since, key=lambda file: file.written):
            oracle.take(file.changes, commit_text)
        return oracle
