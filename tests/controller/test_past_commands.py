"""`dmslake history` and `show`: what is printed of a table's changes, and that it does not grow with the history."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from controller import past as past_module
from controller.past import read_past
from glue_jobs.aws.buckets import noncurrent_days
from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.records import write_record
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import Checkpoint
from glue_jobs.core.state import read_state
from glue_jobs.protocol.history_table import snapshot_at
from tests.aws.plain_gets import plain_gets
from tests.controller.past_world import Command, PastWorld, changes, expire, expire_history, untouched
from tests.controller.world import LAKE, NOW, World, head_record, item_of, table_path
from tests.lake import LakeTable


@pytest.fixture(scope="module")
def undone(kept_world: PastWorld) -> LakeTable:
    """A load and two batches, the second rolled back; beside them the record of a change that never landed."""
    table = kept_world.history()
    assert table.run("Rollback", to="previous") == 0
    never = ChangeId(int(table.item()["Fence"]), 2, "0123abcd")
    write_record(table.clients.s3, table.out_path, replace(table.head(), id=str(never), added=(), superseded=()))
    return table


def record_text(table: LakeTable, change: str) -> str:
    folder = changes_folder(table.out_path)
    return read_bytes(table.clients.s3, folder.bucket, f"{folder.key}{change}.json").decode()


# --- history


def test_history_as_json(undone: LakeTable, kept_command: Command) -> None:
    """Newest first, with kind, counts, standing, and whether one can go back; a change that never landed is not there."""
    load, first, second, rollback = changes(undone)

    data = kept_command("history", str(undone.path), "--output", "json").json

    shown = data["changes"]
    assert [(row["change"], row["kind"], row["standing"]) for row in shown] == [
        (rollback, "rollback", "head"), (second, "incremental", "undone"), (first, "incremental", "live"), (load, "full-load", "live"),
    ]  # fmt: skip
    assert [row["restorable"] for row in shown] == ["yes", "until", "yes", "until"]
    assert [(row["inserted"], row["updated"], row["deleted"], row["table_rows"]) for row in shown] == [
        (0, 0, 0, 3), (1, 1, 1, 3), (1, 1, 1, 3), (3, 0, 0, 3),
    ]  # fmt: skip
    assert (shown[0]["state_of"], data["head"], data["noncurrent_days"], data["more"]) == (first, rollback, 30, False)


def test_history_for_people(undone: LakeTable, kept_command: Command) -> None:
    """A line per change that fits a program too; as many as are asked for."""
    _, first, second, rollback = changes(undone)

    done = kept_command("history", undone.path.name, "--limit", "2")

    head, top, next_one, *rest = (line.split() for line in done.out.splitlines())
    assert head[:5] == ["change", "time", "(UTC)", "epoch", "kind"]
    assert (top[0], top[4:6], top[-2:]) == (rollback, ["rollback", first], ["head", "yes"])
    assert (next_one[0], next_one[-3:-1]) == (second, ["undone", "until"])
    assert rest[0] == ["older", "changes:", "--limit", "N,", "or", "--all"]
    assert len(kept_command("history", undone.path.name, "--all").out.splitlines()) == 6


@pytest.mark.parametrize("name", ["epoch", "time"])
def test_a_time_of_the_history_means_its_change(undone: LakeTable, kept_command: Command, name: str) -> None:
    """`rollback --to` with it goes to that very change."""
    row = kept_command("history", str(undone.path), "--output", "json").json["changes"][2]

    done = kept_command("rollback", str(undone.path), "--to", str(row[name]), "--dry-run")

    assert f"to change {row['change']}" in done.out


def test_a_change_whose_data_is_gone_says_so(past_world: PastWorld, lake_command: Command) -> None:
    """S3 is asked: `no`, in the list and for the change alone; a rollback to it is refused at once, with how far back one can go."""
    table = past_world.history()
    load, first, _ = changes(table)
    expire(table, load)
    before = untouched(table)

    assert lake_command("history", str(table.path), "--output", "json").json["changes"][-1]["restorable"] == "no"
    assert "no: data of its files is gone" in lake_command("show", str(table.path), load).out
    refused = lake_command("rollback", str(table.path), "--to", load)
    assert (refused.code, untouched(table)) == (1, before)
    assert f"as far as change {first}" in refused.err
    assert "started" not in refused.err


def test_a_change_whose_history_files_are_gone_says_so(past_world: PastWorld, lake_command: Command) -> None:
    """A backfill hides all of the history's files and none of the table's: once they expired, what a rollback refuses is `no`. Changes from
    before the history began need none of them."""
    table = past_world.batched()
    table.edit(History="true")
    for row in ((3, "THREE"), (3, "drei")):
        table.cdc([("U", row)])
        table.sync()
    assert table.run("BackfillHistory") == 0, table.item()["LastRun"]
    expire_history(table)
    load, first, *kept, _ = changes(table)

    shown = lake_command("history", str(table.path), "--output", "json").json["changes"][::-1]
    alone = [lake_command("show", str(table.path), change, "--output", "json").json["restorable"] for change in changes(table)]
    refused = lake_command("rollback", str(table.path), "--to", kept[-1])

    assert [row["restorable"] for row in shown] == alone == ["until", "until", *["no"] * len(kept), "yes"]
    assert (refused.code, "of that change's history table" in refused.err) == (1, True)
    storage = lake_command("status", str(table.path), "--storage", "--output", "json").json["tables"][0]["storage"]
    assert storage["oldest_change"] == load
    assert lake_command("rollback", str(table.path), "--to", first, "--dry-run").code == 0


def test_how_far_one_can_go_back_counts_the_history(past_world: PastWorld, lake_command: Command) -> None:
    """A refusal names a change to which a rollback works, although the table's own files reach further back."""
    table = past_world.table()
    table.edit(History="true")
    table.load([(1, "one"), (2, "two")])
    table.sync()
    for row in ((1, "uno"), (1, "eins"), (1, "un")):
        table.cdc([("U", row)])
        table.sync()
    load, _, second, _ = changes(table)
    history = snapshot_at(table.clients.s3, table.out_path, table.snapshot(load))
    needed = snapshot_at(table.clients.s3, table.out_path, table.snapshot(second)).files
    for path in sorted(set(history.files) - set(needed)):
        remove_data(table, history_lake(table.out_path).key + path)

    refused = lake_command("rollback", str(table.path), "--to", load)

    (oldest,) = re.findall(r"as far as change (\S+)", refused.err)
    assert (refused.code, oldest > load) == (1, True)
    assert lake_command("rollback", str(table.path), "--to", oldest, "--dry-run").code == 0


def remove_data(table: LakeTable, key: str) -> None:
    s3, bucket = table.clients.s3, table.out_path.bucket
    for version in key_versions(s3, bucket, key).data:
        s3.delete_object(Bucket=bucket, Key=key, VersionId=version.version_id)


def test_many_files_are_not_looked_up(undone: LakeTable, kept_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a number of files the bucket's rule is believed, and that is said."""
    monkeypatch.setattr(past_module, "MOST_LOOKED_UP", 1)

    assert "was not looked up in S3" in kept_command("history", str(undone.path)).out


def test_a_damaged_record_ends_the_list(past_world: PastWorld, lake_command: Command) -> None:
    """What comes after it is shown; then the record is named, with exit code 1."""
    table = past_world.history()
    load, first, second = changes(table)
    folder = changes_folder(table.out_path)
    table.clients.s3.put_object(Bucket=folder.bucket, Key=f"{folder.key}{first}.json", Body=b"{")

    done = lake_command("history", str(table.path))

    assert done.code == 1
    assert second in done.out
    assert load not in done.out
    assert f"{first}.json" in done.err


def long_history(world: World, count: int) -> Any:
    """The state of a table with so many changes, each of which replaced its one file."""
    path = table_path()
    record = head_record(path, ())
    for number in range(1, count + 1):
        before, file = record, replace(record.added[0], path=f"{number}.parquet")
        record = replace(
            before, id=str(ChangeId(number, 1, "0123abcd")), parent=before.id if number > 1 else "", added=(file,),
            kind="incremental", superseded=(before.added[0].path,) if number > 1 else (), checkpoint=Checkpoint((file,)),
        )  # fmt: skip
        write_record(world.clients.s3, S3Uri.folder(record.lake), record)
    return read_state(item_of(path, Head=record.id, Fence=count))


def test_a_limit_reads_no_more_of_a_long_history(world: World) -> None:
    """Twenty changes of many cost the records of about a hundred, at most; without a history table none is asked for."""
    state = long_history(world, 300)
    asked: list[str] = []
    events = world.clients.s3.meta.events
    events.register("before-call.s3.GetObject", lambda params, **_: asked.append(params["url_path"]), unique_id="count")
    try:
        with plain_gets():
            past = read_past(world.clients.s3, state, 20, NOW)
    finally:
        events.unregister("before-call.s3.GetObject", unique_id="count")

    assert [len(past.changes), past.more] == [20, True]
    assert len(asked) < 100
    assert not [key for key in asked if "_history/" in key]


# --- the bucket's rule


@pytest.mark.parametrize(
    ("rules", "days"),
    [
        ([], None),
        ([("lake/", 30)], 30),
        ([("", 90), ("lake/", 30), ("other/", 1)], 30),
        ([("lake/shop/orders/", 7)], 7),
    ],
)
def test_noncurrent_days(world: World, rules: list[tuple[str, int]], days: int | None) -> None:
    """The least of the rules that meet the table's folder; None without one. A disabled rule does nothing."""
    given = [
        {"ID": str(at), "Status": "Enabled", "Filter": {"Prefix": prefix}, "NoncurrentVersionExpiration": {"NoncurrentDays": number}}
        for at, (prefix, number) in enumerate([*rules, ("lake/", 1)])
    ]
    given[-1]["Status"] = "Disabled"
    world.clients.s3.put_bucket_lifecycle_configuration(Bucket="lake-bucket", LifecycleConfiguration={"Rules": given})

    assert noncurrent_days(world.clients.s3, "lake-bucket", "lake/shop/orders/") == days


def test_noncurrent_days_without_rules(world: World) -> None:
    """A bucket that has no lifecycle configuration keeps everything."""
    assert noncurrent_days(world.clients.s3, "lake-bucket", LAKE) is None


# --- show


def test_show_as_json_has_the_record_as_it_is_stored(undone: LakeTable, kept_command: Command) -> None:
    """With what became of it beside it."""
    first = changes(undone)[1]

    data = kept_command("show", str(undone.path), f" {first} ", "--output", "json").json

    assert data["record"] == json.loads(record_text(undone, first))
    assert (data["standing"], data["restorable"]) == ("live", "yes")


def test_show_for_people(undone: LakeTable, kept_command: Command) -> None:
    """What it took, what it did, files with sizes, cursor, standing."""
    load, first, _, _ = changes(undone)

    lines = [" ".join(line.split()) for line in kept_command("show", str(undone.path), first).out.splitlines()]

    assert {f"change {first}", f"parent {load}", "kind incremental", "standing live: its rows are in the table"} <= set(lines)
    assert "rows 3 → 3: 1 inserted, 1 updated, 1 deleted" in lines
    assert "cursor (none) → 20240501-120000000.parquet" in lines
    assert any(line.startswith("20240501-120000000.parquet 3 ") for line in lines)
    (added,), (gone,) = undone.snapshot(first).files.values(), undone.snapshot(load).files.values()
    assert f"{added.path} 3 {added.size_bytes} B" in lines
    assert f"{gone.path} 3 {gone.size_bytes} B" in lines


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_what_show_says_to_paste_works(undone: LakeTable, kept_command: Command, place: int) -> None:
    """The load, a live batch, the undone one and the rollback: each has commands, and each is one that is not refused."""
    commands = kept_command("show", str(undone.path), changes(undone)[place], "--output", "json").json["commands"]

    assert commands
    for text in commands.values():
        done = kept_command(*shlex.split(text)[1:], *([] if "--dry-run" in text else ["--dry-run"]))
        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(("change", "said"), [("0000000009-000001-0123abcd", "took effect"), ("0000000001", "not a change id")])
def test_an_unknown_change_is_refused(undone: LakeTable, kept_command: Command, change: str, said: str) -> None:
    """Exit code 2, with the command that lists them. A record whose change never landed is unknown too."""
    done = kept_command("show", str(undone.path), change)

    assert done.code == 2
    assert said in done.err
    assert f"`dmslake history {undone.path}`" in done.err
