"""A Delta table's versions read by Spark, where Delta is configured (`--datalake-formats delta` of a Glue job, or its package).

What `deltalake` can't read, Spark can. All rows of a version come to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import pyarrow as pa

from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.feed_wish import FeedWish
from glue_jobs.spark.delta_source import named, step_between
from glue_jobs.spark.feed_source import Between, Bronze, make_bronze


@dataclass(frozen=True)
class SparkDeltaSource:
    """A Delta table at any address that Spark reads."""

    wish: FeedWish
    spark: Any

    def bronze(self, version: str) -> Bronze:
        """The rows of a version, '' for version 0."""
        number = int(version or 0)
        rows = self._rows(number)
        return make_bronze(named(self.wish.delta, number), rows, self.wish.primary_key, self.wish, self._time(number))

    def exact(self, version: str) -> str:
        """The version, '' for the last one."""
        return version or str(max(self._history()))

    def between(self, start: str, end: str) -> Iterator[Between]:
        """What each version after `start` up to `end` did."""
        first, last = int(start), int(end)
        if last < first:
            raise UsageError(f"version {last} is before version {first}", "bad-order", "give the older one as --from")
        before = self._rows(first)
        for old, new in pairwise(range(first, last + 1)):
            after = self._rows(new)
            names = (named(self.wish.delta, old), named(self.wish.delta, new))
            yield step_between(self.wish, names, (before, after), self._time(new))
            before = after

    def _rows(self, version: int) -> pa.Table:
        with self._said(version):
            return arrow_rows(self.spark.read.format("delta").option("versionAsOf", version).load(self.wish.delta))

    def _time(self, version: int) -> datetime:
        known = self._history()
        return known[min((each for each in known if each >= version), default=max(known))]

    def _history(self) -> dict[int, datetime]:
        with self._said(None):
            quoted = self.wish.delta.replace("`", "``")
            found = self.spark.sql(f"DESCRIBE HISTORY delta.`{quoted}`").selectExpr("version", "unix_micros(timestamp) AS at").collect()
        return {int(row["version"]): datetime.fromtimestamp(row["at"] / 1_000_000, timezone.utc) for row in found}

    @contextmanager
    def _said(self, version: int | None) -> Iterator[None]:
        """Spark's errors in our words."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            text = " ".join(str(error).split())
            if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text or "DeltaCatalog" in text:
                todo = "configure it (a Glue job: --datalake-formats delta), or use --reader deltalake"
                raise ConfigurationError("this Spark has no Delta", "no-package", todo) from error
            if version is not None and "Cannot time travel" in text:
                todo = "its history lists the versions that are kept"
                raise UsageError(f"{self.wish.delta} has no version {version}", "no-version", todo) from error
            what = f"{self.wish.delta}{'' if version is None else f' version {version}'} can't be read: {text[:300]}"
            raise UsageError(what, "delta-unreadable", "look at the table and at the access to it") from error


def arrow_rows(frame: Any) -> pa.Table:
    """All rows of a DataFrame as Arrow has them: without pandas in between, which would change types."""
    if hasattr(frame, "toArrow"):  # Spark 4
        return frame.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()
