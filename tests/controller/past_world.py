"""Tables with a past on the embedded AWS, and the command line pointed at it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from controller.cli import main
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.history_table import history_lake
from infra.local.embedded import EmbeddedAws
from tests.controller.world import as_json
from tests.lake import LakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
LOADED = [(1, "one"), (2, "two"), (3, "three")]
FIRST = [(1, "ONE"), (3, "three"), (4, "four")]
SECOND = [(1, "ONE"), (3, "THREE"), (5, "five")]
ROWS = (LOADED, FIRST, SECOND)


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return as_json(self.out)


Command = Callable[..., Done]


@dataclass
class PastWorld:
    """Tables of one test (or module) below a raw folder of their own."""

    aws: EmbeddedAws
    clients: Clients
    raw: str

    def environment(self) -> dict[str, str]:
        """Local runs, with a short lease."""
        return {**self.aws.environment(), "DMSLAKE_RAW": self.raw, "DMSLAKE_RUNNER": "local", "DMSLAKE_LEASE_SECONDS": "2"}

    def table(self, **values: Any) -> LakeTable:
        return LakeTable(self.environment(), self.raw, self.aws.lake, COLUMNS, shared=self.clients, **values)

    def loaded(self, **values: Any) -> LakeTable:
        table = self.table(**values)
        table.load(LOADED)
        assert table.run("LoadInitial") == 0
        return table

    def batched(self, **values: Any) -> LakeTable:
        """A load and a batch, both applied."""
        table = self.loaded(**values)
        table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
        assert table.run() == 0
        return table

    def history(self, **values: Any) -> LakeTable:
        """A load and two batches, all applied."""
        table = self.batched(**values)
        table.cdc([("U", (3, "THREE")), ("D", (4, None)), ("I", (5, "five"))])
        assert table.run() == 0
        return table


def make_world(aws: EmbeddedAws, clients: Clients) -> PastWorld:
    return PastWorld(aws, clients, f"s3://{aws.raw_bucket}/{uuid.uuid4().hex[:8]}/")


def command(world: PastWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process, against the world."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DMSLAKE_JOB_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = main([*words])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


def changes(table: LakeTable) -> list[str]:
    """All change ids, the first one first."""
    return [record.id for record in reversed(list(table.lineage().back()))]


def untouched(table: LakeTable) -> Any:
    """What a command that changes nothing leaves as it was."""
    return table.item(), table.visible(), table.open_uploads()


def expire_history(table: LakeTable) -> None:
    """Delete the data of all hidden files of the table's history, as the bucket's lifecycle rule would."""
    s3, lake = table.clients.s3, history_lake(table.out_path)
    for each in held_versions(s3, lake.bucket, lake.key):
        if not each.visible:
            s3.delete_object(Bucket=lake.bucket, Key=each.key, VersionId=each.version)


def expire(table: LakeTable, change: str) -> None:
    """Delete the data of a change's files, as the bucket's lifecycle rule would."""
    for path in table.snapshot(change).files:
        key = table.out_path.key + path
        versions = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=key)["Versions"]
        for version in versions:
            table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key, VersionId=version["VersionId"])
