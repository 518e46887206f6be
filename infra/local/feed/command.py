"""`dmslake feed` without its command line."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from glue_jobs.core.dms_columns import SEQUENCE_COLUMN
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from infra.local.feed.oracle import Oracle
from infra.local.feed.place import RawPlace, is_s3, open_place, writing
from infra.local.feed.rounds import RawWrite, Round, make_rounds
from infra.local.feed.simulation import KEYS
from infra.local.feed.wish import FeedWish

TRANSACTIONS = "transactions"  # the folder of all tables' changes, beside that of the schemas


@dataclass
class Fed:
    """What was written. said: a sentence per thing that happened, by round; item: what the table's item must say, attribute → text."""

    folder: str
    files: int = 0
    removed: int = 0
    rows: int = 0
    said: dict[int, tuple[str, ...]] = field(default_factory=dict)
    item: dict[str, str] = field(default_factory=dict)
    truth_rows: int = 0
    is_current: bool = True

    def facts(self) -> dict[str, Any]:
        """For programs."""
        rounds = {str(number): list(said) for number, said in self.said.items()}
        return {**self.__dict__, "said": rounds}


def feed(wish: FeedWish, to: str, variables: Mapping[str, str], *, only: int | None = None, truth: Path | None = None) -> Fed:
    """Write the feed's files below `to` (`s3://bucket/prefix/schema/table/`, or a folder that ends so).

    only: write this round (0: the load) and no other; those before it are taken to be there. truth: a file for the rows that the lake
    must have afterwards, as Parquet. Raises UsageError if there are files that this feed would not have written by then, a file of
    another table would be written over, or one can't be written.
    """
    to = str(S3Uri.folder(to)) if is_s3(to) else to
    schema, table = _table_of(to)
    if only is not None and not 0 <= only <= wish.rounds:
        raise UsageError(f"--round: expected 0 to {wish.rounds}, found {only}", "bad-feed")
    place, fed, last = open_place(to, variables), Fed(to), wish.rounds if only is None else only
    shared = transactions_of(to)
    beside = open_place(shared, variables) if wish.is_transactions else place
    rounds = [part for part in make_rounds(wish, (schema, table)) if part.number <= last]
    known = {file.path for part in rounds for file in part.files}
    foreign = sorted(place.names() - known)
    if foreign:
        raise UsageError(f"{to} has files that this feed did not write, the first is {foreign[0]}", "bad-feed", "give an empty folder")
    wanted = rounds if only is None else rounds[only:]
    _refuse_others(shared, beside, [file for part in wanted for file in part.files if file.transactions])
    for part in wanted:
        fed.said[part.number] = part.said
        fed.removed += len(part.removed)
        for path in part.removed:
            place.remove(path)
        for file in part.files:
            (beside if file.transactions else place).put(file.path, file.encode())
            fed.files, fed.rows = fed.files + 1, fed.rows + file.rows
    _finish(fed, wish, rounds[-1], shared)
    if truth is not None:
        with writing(truth, "--truth"):
            pq.write_table(rounds[-1].oracle.table(), truth)
    return fed


def _refuse_others(shared: str, place: RawPlace, files: Sequence[RawWrite]) -> None:
    """Refuse to write over what another feed has written to the folder of all tables: the rows of its table would be gone."""
    there = place.names() if files else set()
    for file in files:
        if file.path in there and place.get(file.path) != file.encode():
            raise UsageError(
                f"{shared}{file.path} is there with other rows: another feed wrote it, of another table or with other options",
                "bad-feed",
                "give another --seed or --start, so that its files have other names",
            )


def _finish(fed: Fed, wish: FeedWish, last: Round, shared: str) -> None:
    fed.truth_rows, fed.is_current = len(last.oracle.rows), last.is_current
    fed.item["PrimaryKey"] = ",".join(column.name for column in KEYS[wish.key])
    if wish.writes_csv:
        fed.item["Schema"] = schema_text(last.oracle, wish)
    if any(file.transactions for file in last.files):
        fed.item["CdcPath"] = shared


def schema_text(oracle: Oracle, wish: FeedWish) -> str:
    """The attribute Schema for the feed's CSV: column → lake type, in the order of the files' fields after operation and timestamp."""
    types = {name: kind for name, kind in oracle.schema().items() if name != wish.timestamp_column}
    if wish.change_sequence and not wish.header:
        types[SEQUENCE_COLUMN] = "string"
    return json.dumps(types, separators=(",", ":"))


def _table_of(to: str) -> tuple[str, str]:
    """(schema, table): the last two folders."""
    parts = [part for part in to.replace("\\", "/").split("/") if part not in ("", ".", "s3:")]
    if len(parts) < (4 if to.startswith("s3://") else 1):
        raise UsageError(f"--to: expected s3://bucket/prefix/schema/table/ or a folder, found {to!r}", "bad-feed")
    return (parts[-2] if len(parts) > 1 else "shop"), parts[-1]


def transactions_of(to: str) -> str:
    """The folder of transaction files: beside the schema's."""
    return posixpath.join(posixpath.dirname(posixpath.dirname(to.rstrip("/"))), TRANSACTIONS, "")
