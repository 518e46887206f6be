"""`dmslake status --storage`: what old versions take, for how long they are kept, and how far back one can go."""

from __future__ import annotations

from typing import Any

from controller.status import check, read_status, with_storage
from glue_jobs.aws.clients import Clients
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.protocol.storage import Storage, read_storage
from tests.aws.faults import Injected, s3_error
from tests.controller.past_world import Command, PastWorld, changes, expire
from tests.controller.world import facts, gathered, raw_file, table_path
from tests.lake import LakeTable


def hidden_bytes(table: LakeTable, *states: str) -> int:
    """The bytes of the files of these changes' states that the head has not."""
    head = table.snapshot().files
    files = {path: file for change in states for path, file in table.snapshot(change).files.items() if path not in head}
    return sum(file.size_bytes for file in files.values())


def shown(command: Command, table: LakeTable) -> Any:
    return command("status", str(table.path), "--storage", "--output", "json").json["tables"][0]["storage"]


def test_what_is_kept_and_how_far_back(past_world: PastWorld, lake_command: Command) -> None:
    """Superseded files count until they are gone; then the change that needs them is no more within reach. Without the option nobody
    looks."""
    table = past_world.history()
    first, second, _ = changes(table)
    days = table.clients.s3.get_bucket_lifecycle_configuration(Bucket=table.out_path.bucket)["Rules"]
    kept_days = next(rule["NoncurrentVersionExpiration"]["NoncurrentDays"] for rule in days if "NoncurrentVersionExpiration" in rule)

    kept = shown(lake_command, table)
    assert (kept["oldest_change"], kept["kept_days"], kept["noncurrent_files"]) == (first, kept_days, 2)
    assert kept["noncurrent_bytes"] == hidden_bytes(table, first, second)
    assert kept["oldest_time"] == next(record.time for record in table.lineage().back() if record.id == first)

    expire(table, first)
    told = lake_command("status", str(table.path), "--storage")
    assert (told.code, f"{kept_days} d" in told.out, second in told.out, first in told.out) == (0, True, True, False)
    assert shown(lake_command, table)["noncurrent_bytes"] == hidden_bytes(table, second)

    expire(table, second)
    assert (shown(lake_command, table)["oldest_change"], shown(lake_command, table)["noncurrent_bytes"]) == ("", 0)
    assert "the head only" in lake_command("status", str(table.path), "--storage").out
    assert lake_command("status", str(table.path), "--output", "json").json["tables"][0]["storage"] is None


def test_a_rule_that_may_not_be_read_is_not_known(past_world: PastWorld, clients: Clients) -> None:
    """The rest is shown all the same; a table without a change has nothing."""
    table = past_world.loaded()
    Injected(table.clients.s3, "GetBucketLifecycleConfiguration", s3_error(403, "AccessDenied"))

    kept = read_storage(table.clients.s3, table.out_path, table.snapshot())

    assert (kept, kept.kept_known) == (Storage(kept_known=False), False)
    assert read_storage(clients.s3, S3Uri("nowhere", "x/"), Snapshot()) == Storage()


def test_a_table_whose_versions_can_not_be_listed_is_an_error(clients: Clients) -> None:
    """A table that was never loaded has nothing to list; both are shown."""
    orders, new = table_path("orders"), table_path("new")
    load = raw_file(orders, "LOAD00000001.parquet")
    known = gathered(facts(orders, loaded=(load,)), facts(new, raw_file(new, "LOAD00000001.parquet")))

    broken, unloaded = with_storage(clients.s3, known, read_status(known))

    assert (broken.state, broken.problem.code if broken.problem else "", check([broken], 0)) == ("error", "no-bucket", [str(orders)])
    assert (unloaded.state, unloaded.storage) == ("not-loaded", None)
