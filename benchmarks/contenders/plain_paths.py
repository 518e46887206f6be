"""The yardstick as a program has it whose impacted files lie among others: it names them one by one."""

from __future__ import annotations

from benchmarks.contenders.plain import PlainSpark
from benchmarks.data.workloads import APPLY
from benchmarks.server.stand import BUCKET


class PlainSparkPaths(PlainSpark):
    """Of more than 32 paths Spark looks at each in a task of its own before it reads."""

    name = "plain-paths"
    title = "the same, the files named one by one"
    does = frozenset({APPLY})
    folder = (BUCKET, "plain-paths/")

    def make(self, table: str) -> None:
        """Nothing: the base's files are read where they are."""

    def apply(self, table: str, batch: int) -> None:
        files = [self.world.base_url + name for name in self.world.prepared.impacted]
        self.spark.read.parquet(*files).write.format(self.format).save(self._url(table))
