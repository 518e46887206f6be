"""Feeds brought to tables: written round by round, run, and the lake compared with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pyarrow as pa

from infra.local.feed.command import schema_text
from infra.local.feed.oracle import Oracle
from infra.local.feed.rounds import Feed, Round, make_rounds
from infra.local.feed.wish import FeedWish
from tests.spark.tables import WorkTable, texts

SOME_COLUMNS = pa.schema([("id", pa.int64())])  # a WorkTable wants some; a feed brings its own
JOBS = ("LoadInitial", "LoadIncremental")
AT_ONCE = {"load_quiet_minutes": "0"}  # a reload counts although its files are new


def fed_table(make: Callable[..., WorkTable], wish: FeedWish, partition_key: str = "null") -> WorkTable:
    """A table whose item says what a person would have to say of the feed, types of CSV aside."""
    table = make(SOME_COLUMNS, primary_key=",".join(Feed(wish).source.key), partition_key=partition_key)
    if wish.is_transactions:
        table.edit(CdcPath=f"s3://{table.path.bucket}/{_shared(table)}")
    if wish.writes_csv and not wish.header and wish.timestamp_column:
        table.edit(TimestampColumn=wish.timestamp_column)
    return table


def _shared(table: WorkTable) -> str:
    return f"transactions-of-{table.table}/"


def follow(table: WorkTable, wish: FeedWish, **settings: str) -> None:
    """The whole feed, a run after each round, and the lake checked after each run."""
    for part in make_rounds(wish, ("shop", table.table)):
        deliver(table, wish, part)
        for job in JOBS if part.loads else JOBS[1:]:
            assert table.run(job, **AT_ONCE, **settings) == 0, (table.last_run(), part.number, wish)
        check(table, part.oracle, f"round {part.number} of {wish}: {'; '.join(part.said)}")


def deliver(table: WorkTable, wish: FeedWish, part: Round) -> None:
    """What a round writes and removes; of CSV the item is told the types of its columns."""
    if wish.writes_csv:
        table.edit(Schema=schema_text(part.oracle, wish))
    for path in part.removed:
        table.delete_raw(path)
    for file in part.files:
        key = _shared(table) if file.transactions else table.path.raw.key
        table.clients.s3.put_object(Bucket=table.path.bucket, Key=key + file.path, Body=file.encode())


def check(table: WorkTable, oracle: Oracle, said: object) -> None:
    """The lake is what the oracle says: columns, types, and every value of every row. said: of a failure."""
    found = table.read()
    wanted = {name: str(kind) for name, (_, kind) in oracle.types.items()}
    assert {field.name: str(field.type) for field in found.schema} == wanted, said
    names = list(wanted)
    lake = texts(zip(*(found.column(name).to_pylist() for name in names), strict=True))
    truth = texts(oracle.tuples(names))
    lost, extra = sorted(set(truth) - set(lake)), sorted(set(lake) - set(truth))
    assert (len(lake), lost[:2], extra[:2]) == (len(truth), [], []), said
    table.check_folder()


def reload_time(wish: FeedWish) -> datetime:
    """When the feed's reload begins, as the names of its files tell."""
    feed = Feed(wish)
    feed.load()
    for number in range(1, wish.rounds + 1):
        feed.round(number)
    assert feed.reloaded_at is not None
    return feed.reloaded_at
