"""Glue job GenerateFeed: a change feed as DMS would write it, made of a table that has versions. Nothing but the feed is written.

The source, one of
--delta FOLDER --primary_key id [--version 0]       a Delta table, local or s3://, read by `deltalake`
--path bucket/prefix/schema/table [--as_of CHANGE]  a lake table of ours

What is made of it: changes to the rows of that version (Faker makes the values)
--inserts 10% --updates 10% --updated_twice 20% --deletes 5% --deleted_inserts 1 --seed 1 --start TIME --interval_seconds 60 --files 10
or, with --from A --to B, what lies between two versions or states: a file for each that changed rows.

--staging FOLDER        local or s3://; files are yyyy/mm/dd/<name of a CDC file>, or yyyy/m/d/yyyymmdd_hhmmss.parquet:
--file_name dms|sample
--full_load true        also write the version itself, as load files
--expected FILE         also write the rows that the table must have after the feed
--reader deltalake|spark, --timestamp_column, --drop, --created_column, --modified_column: see docs/feed.md

The same source, arguments and seed give the same files, byte for byte; so a run that broke off is started again as it was.

aws glue start-job-run --job-name GenerateFeed --arguments '{"--delta": "s3://…", "--primary_key": "id", "--staging": "s3://…"}'
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import chain, islice
from typing import Any

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.translate import translated
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import DmslakeError, UsageError
from glue_jobs.core.feed_wish import SPARK, FeedWish, read_feed_wish
from glue_jobs.core.printable import error_lines
from glue_jobs.core.undo import parse_to
from glue_jobs.entry import run_as_script
from glue_jobs.past import Past, open_past
from glue_jobs.protocol.job_log import JobLog
from glue_jobs.spark.change_feed import FEED_COLUMNS
from glue_jobs.spark.delta_source import DeltaSource
from glue_jobs.spark.feed_changes import changed_files
from glue_jobs.spark.feed_files import Written, open_folder, write_expected, write_feed, write_load
from glue_jobs.spark.feed_rows import make_feed
from glue_jobs.spark.feed_source import Between, Bronze, FeedSource, feed_schema, make_bronze
from glue_jobs.spark.row_changes import CHANGE_TYPE, COMMIT_TIMESTAMP, KIND


@dataclass(frozen=True)
class LakeSource:
    """A lake table of ours."""

    wish: FeedWish
    past: Past

    def bronze(self, version: str) -> Bronze:
        """The table as of a change or a time, '' for now."""
        snapshot = self.past.snapshot(version)
        name = f"{self.past.path} as of {f'change {snapshot.change}' if snapshot.change else 'before its first change'}"
        if snapshot.is_empty:
            raise UsageError(
                f"{name} has no rows that could change", "empty-source", "`dmslake run PATH` loads it, or give another --as-of"
            )
        rows = self.past.table(snapshot.change).read()
        return make_bronze(name, rows, self._key(snapshot.primary_key), self.wish, parse_to(snapshot.time))

    def exact(self, version: str) -> str:
        """The change that readers see at a change or a time, '' for now."""
        return self.past.snapshot(version).change or version

    def between(self, start: str, end: str) -> Iterator[Between]:
        """What each change after `start` up to `end` did, rollbacks included."""
        key: Sequence[str] = ()
        for state, changes in self.past.steps(start, end):
            key = state.primary_key or key or self.past.snapshot(start).primary_key  # after a rollback to the beginning there is none
            rows = changes.drop_columns(list(FEED_COLUMNS))
            schema = feed_schema(f"{self.past.path} as of change {state.change}", rows.schema, self._key(key), self.wish)
            yield Between(changes.column(COMMIT_TIMESTAMP)[0].as_py(), schema, rows.append_column(KIND, changes.column(CHANGE_TYPE)))

    def _key(self, key: Sequence[str]) -> tuple[str, ...]:
        if not key:
            raise UsageError(f"{self.past.path} has no primary key", "no-primary-key", "set PrimaryKey of its item")
        return tuple(key)


@dataclass(frozen=True)
class Generated:
    """What came of a wish. seed: None where nothing was made up."""

    wish: FeedWish
    seed: int | None
    written: Written
    expected_rows: int | None

    def facts(self) -> dict[str, Any]:
        """For logs and programs."""
        written = self.written
        return {
            "source": self.wish.delta or self.wish.path,
            "staging": self.wish.staging,
            "seed": self.seed,
            "files": len(written.paths),
            "first_file": written.paths[0] if written.paths else None,
            "last_file": written.paths[-1] if written.paths else None,
            "inserts": written.rows["I"],
            "updates": written.rows["U"],
            "deletes": written.rows["D"],
            "load_files": len(written.load_files),
            "load_rows": written.load_rows,
            "found_unchanged": written.found,
            "expected_rows": self.expected_rows,
        }


def open_source(wish: FeedWish, environment: Mapping[str, str], settings: Mapping[str, str]) -> FeedSource:
    """The table that the wish names."""
    if wish.path:
        # The lake keeps the timestamps that DMS sent; the feed has its own in their place.
        own = replace(wish, drop=(*wish.drop, wish.timestamp_column))
        return LakeSource(own, open_past(wish.path, environment, **settings))
    if wish.reader == SPARK:
        from glue_jobs.spark.delta_spark import SparkDeltaSource
        from glue_jobs.spark.session import spark_session

        return SparkDeltaSource(wish, spark_session())
    return DeltaSource(wish, environment)


def generate(wish: FeedWish, environment: Mapping[str, str], settings: Mapping[str, str] | None = None) -> Generated:
    """Make the feed and write it. settings: of the lake (`state_table`, limits). Errors of AWS are in our words."""
    with translated():
        source, written = open_source(wish, environment, settings or {}), Written()
        if wish.between is None:
            expected = _made_up(source, wish, environment, written)
        else:
            expected = _difference(source, wish, environment, written)
        if wish.expected:
            write_expected(wish.expected, expected, lambda: make_clients(environment).s3)
    seed = wish.making.seed if wish.between is None else None
    return Generated(wish, seed, written, expected.num_rows if wish.expected else None)


def _made_up(source: FeedSource, wish: FeedWish, environment: Mapping[str, str], written: Written) -> Any:
    """All files are made before the first is written: what can't be made leaves nothing behind."""
    feed = make_feed(source.bronze(wish.version or wish.as_of), wish)
    files = list(feed.files())
    folder = open_folder(wish.staging, lambda: make_clients(environment).s3)
    if wish.full_load:
        write_load(folder, feed.bronze, wish.timestamp_column, feed.start, written)
    write_feed(folder, files, written)
    return feed.expected()


def _difference(source: FeedSource, wish: FeedWish, environment: Mapping[str, str], written: Written) -> Any:
    """File by file, as versions are read. The first is read before any file is written: what can't be told leaves nothing behind."""
    assert wish.between is not None
    start, end = (source.exact(version) for version in wish.between)  # once: `previous` is another one after the next change
    steps = source.between(start, end)
    first = list(islice(steps, 1))
    folder = open_folder(wish.staging, lambda: make_clients(environment).s3)
    if wish.full_load:
        before = source.bronze(start)
        write_load(folder, before, wish.timestamp_column, before.time, written)
    write_feed(folder, changed_files(chain(first, steps), wish), written)
    return source.bronze(end).rows if wish.expected else None


def main(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Make the feed that argv asks for; the exit code of the job."""
    environment = os.environ if environment is None else environment
    log = JobLog(secrets.token_hex(8), lambda: datetime.now(timezone.utc))
    try:
        given = parse_arguments(argv)
        log = JobLog(given.get("run_id") or given.get("JOB_RUN_ID") or log.run_id, log.clock)
        made = generate(read_feed_wish(given), environment, {name: text for name, text in given.items() if name == "state_table" and text})
    except DmslakeError as error:
        log.event("failed", error={"code": error.code, "message": error.message, "todo": error.todo})
        print(*error_lines(error), sep="\n", file=sys.stderr)
        return error.exit_code
    log.event("generated", **made.facts())
    return 0


if __name__ == "__main__":
    run_as_script(main, sys.argv[1:])
