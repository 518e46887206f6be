"""What a feed shall be like, and what of it can't be had together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from glue_jobs.core.errors import UsageError
from infra.local.feed.formats import read_format
from infra.local.feed.layouts import read_layout
from infra.local.feed.simulation import KEYS

OPS = ("all", "cdc", "none")
RELOADS = ("", "kept", "gone")
# A minute before midnight, at a month's end: files are named after it, and their folders before it.
START = datetime(2024, 9, 29, 23, 59, tzinfo=timezone.utc)


@dataclass(frozen=True)
class FeedWish:
    """A feed. rows: of the full load; changes, files: of each round; rounds: after the load. start: when the first change is committed.

    layout: names of `layouts`, separated by commas; format: a name in FORMATS. op: where the column Op stands: in all files, in CDC
    files only, in none (then rows are only inserted). ties: the share of changes with the commit time of the one before. duplicates:
    DMS starts again at an earlier point, in each round. late: a file arrives a round after its successors. reload: in the middle round,
    with the CDC files from before `kept` or `gone`. before_images: keys change, too.

    start is in UTC, in whatever zone it is given: names of files are made of it.
    """

    seed: int = 1
    rows: int = 100
    rounds: int = 3
    changes: int = 60
    files: int = 3
    load_files: int = 1
    key: str = "single"
    layout: str = ""
    format: str = "parquet"
    op: str = "all"
    timestamp_column: str = "dms_timestamp"
    ties: float = 0.5
    duplicates: bool = False
    late: bool = False
    reload: str = ""
    schema_changes: bool = False
    before_images: bool = False
    key_only_deletes: bool = False
    change_sequence: bool = False
    header: bool = False
    start: datetime = START

    def __post_init__(self) -> None:
        """Raises UsageError on what can't be."""
        read_layout(self.layout)
        read_format(self.format)
        for name, allowed in (("key", tuple(KEYS)), ("op", OPS), ("reload", RELOADS)):
            if getattr(self, name) not in allowed:
                raise _wrong(f"{name}: expected one of {', '.join(filter(None, allowed))}, found {getattr(self, name)!r}")
        for name in ("rows", "rounds", "changes", "files", "load_files"):
            least = 0 if name in ("rows", "rounds") else 1
            if getattr(self, name) < least:
                raise _wrong(f"{name}: expected at least {least}, found {getattr(self, name)}")
        if not 0 <= self.ties <= 1:
            raise _wrong(f"ties: expected a share from 0 to 1, found {self.ties}")
        if self.start.tzinfo is None:
            raise _wrong(f"start: expected a time with its zone, found {self.start.isoformat()}")
        object.__setattr__(self, "start", self.start.astimezone(timezone.utc))
        if self.before_images and self.op == "none":
            raise _wrong("before images are of updates, and without Op there are only inserts")
        if self.before_images and self.writes_csv and not self.header:
            raise _wrong("before images in CSV are known by the header: give --header")
        if self.schema_changes and self.writes_csv and not (self.header and not self.is_transactions):
            raise _wrong("without a header nobody can tell which column of a CSV file came or went: give --header")
        if (self.reload or self.is_transactions) and not self.timestamp_column and self.start == START:
            why = "without a timestamp column it is told by the time at which load files are written which CDC files come after them"
            raise _wrong(f"{why}: give --start, so that the names of CDC files fit")
        if self.is_transactions and (self.op == "none" or self.before_images or self.change_sequence):
            raise _wrong("transaction files have the operation, table and schema before each row, and nothing after it")

    @property
    def is_transactions(self) -> bool:
        """Whether its CDC files are those of all tables."""
        return read_layout(self.layout).transactions

    @property
    def writes_csv(self) -> bool:
        """Whether any of its files is CSV."""
        return any(".csv" in form.ending for form in read_format(self.format)) or self.is_transactions


def _wrong(text: str) -> UsageError:
    return UsageError(text, "bad-feed", "see `dmslake feed --help`")
