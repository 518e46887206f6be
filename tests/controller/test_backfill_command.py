"""`dmslake backfill-history` and the Glue job BackfillHistory: what is shown, what is done, what is refused."""

from __future__ import annotations

from tests.controller.past_world import Command, PastWorld, untouched
from tests.spark.histories import check_history, versions


def test_shown_then_done_by_the_command_and_by_glue(past_world: PastWorld, lake_command: Command) -> None:
    """A history that began after a load and a batch goes back to the load; the second time it is the same."""
    table = past_world.batched()
    path = str(table.path)
    assert lake_command("backfill-history", path).code == 2
    table.edit(History="true")
    table.sync()
    begun, before = len(versions(table)), untouched(table)

    shown = lake_command("backfill-history", path, "--dry-run", "--output", "json")
    assert (shown.code, untouched(table)) == (0, before), shown.err
    assert (shown.json["changes"], shown.json["raw_files"], shown.json["versions_replaced"]) == (3, 2, begun)
    done = lake_command("backfill-history", path)
    assert done.code == 0, done.err
    assert "2 read again" in done.err
    whole = [(row["id"], row["name"], row["operation"]) for row in check_history(table)]
    run = past_world.aws.run_job("BackfillHistory", {"--path": path})

    assert run["JobRunState"] == "SUCCEEDED", run
    assert whole == [(row["id"], row["name"], row["operation"]) for row in check_history(table)]
    first, second = [(1, "one", "insert"), (1, "ONE", "update")], [(2, "two", "insert"), (2, "two", "delete")]
    assert whole == [*first, *second, (3, "three", "insert"), (4, "four", "insert")]


def test_a_raw_file_that_is_gone_is_named(past_world: PastWorld, lake_command: Command) -> None:
    """Before a run is started."""
    table = past_world.loaded()
    table.edit(History="true")
    table.sync()
    table.delete_raw("LOAD00000001.parquet")
    before = untouched(table)

    done = lake_command("backfill-history", str(table.path))

    assert (done.code, untouched(table)) == (1, before)
    assert "LOAD00000001.parquet" in done.err
    assert "started" not in done.err
