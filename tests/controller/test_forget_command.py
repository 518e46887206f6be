"""`dmslake forget`: what is shown, what is asked, what is done, and how a table comes back."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.controller.past_world import FIRST, Command, PastWorld, untouched


def test_a_dry_run_shows_and_changes_nothing(past_world: PastWorld, lake_command: Command) -> None:
    """What goes, what stays, what is not touched; the item whole, so that it can be put back."""
    table = past_world.batched()
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=f"{table.out_path.key}notes.txt", Body=b"x")
    before = untouched(table)

    plain = lake_command("forget", str(table.path), "--dry-run")
    data = lake_command("forget", str(table.path), "--purge", "--dry-run", "--output", "json")

    assert (plain.code, data.code, untouched(table)) == (0, 0, before)
    assert (data.json["files"], data.json["records"], data.json["item"]) == (1, 2, before[0])
    assert data.json["foreign"] == [f"{table.out_path.key}notes.txt"]
    assert data.json["catalog"] == [{"table": table.item()["CatalogTable"], "whose": "ours"}]
    words = ("nothing was changed", "is dropped", "1, ", "stay", "1 object(s) of others", "new and inactive")
    assert [word for word in words if word not in plain.out] == []


def test_a_forgotten_table_comes_back_by_the_commands_that_are_said(past_world: PastWorld, lake_command: Command) -> None:
    """Each line that forget prints is a command; after them it is as it was, and its next run makes the Glue table again."""
    table = past_world.batched()
    head = table.item()["Head"]

    done = lake_command("forget", str(table.path), "--yes")

    assert (done.code, table.item()) == (0, {}), done.err
    back = [shlex.split(line)[1:] for line in done.out.splitlines() if line.startswith("  dmslake")]
    assert [words[0] for words in back] == ["tables", "activate", "recover"]
    for words in back:
        said = lake_command(*words)
        assert said.code == 0, (words, said.err)
    item = table.item()
    assert (table.rows(), item["Head"], item["CatalogPending"], item["PrimaryKey"]) == (FIRST, head, head, "id")


def test_what_a_plain_forget_left_can_be_purged(past_world: PastWorld, lake_command: Command) -> None:
    """By its full path, though there is no item; when nothing is left, that is said."""
    table = past_world.batched()
    assert lake_command("forget", str(table.path), "--yes").code == 0
    assert lake_command("forget", table.path.name, "--yes").code == 2

    done = lake_command("forget", str(table.path), "--purge", "--yes")
    again = lake_command("forget", str(table.path), "--purge", "--yes")

    assert (done.code, table.visible(), table.item()) == (0, set(), {}), done.err
    assert (again.code, "is left to forget" in again.err) == (2, True)


def test_a_table_without_source_is_found_by_its_own_folder(past_world: PastWorld, lake_command: Command) -> None:
    """Its PATH is where it lies; --output json has the item, from which it can be made again."""
    table = past_world.loaded()
    folder = str(table.out_path)[len("s3://") :]
    copy = {**table.item(), "path": folder, "Source": "none"}
    assert table.state_table.create(copy)
    first = lake_command("forget", folder, "--yes", "--output", "json")
    assert (first.code, first.json["item"], "put the item back" in first.json["ways_back"][0]) == (0, copy, True), first.err

    planned = lake_command("forget", folder, "--dry-run", "--output", "json")

    assert (planned.code, planned.json["item"]["Source"], planned.json["files"]) == (0, "none", 1), planned.err


def test_without_a_terminal_it_wants_a_yes(past_world: PastWorld, lake_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could be asked; and a no is a no."""
    table = past_world.loaded()
    before = untouched(table)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)

    done = lake_command("forget", str(table.path))
    monkeypatch.setattr("click.confirm", lambda *words, **options: False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    refused = lake_command("forget", str(table.path))

    assert (done.code, refused.code, untouched(table)) == (2, 1, before)
    assert ("--yes" in done.err, "nothing was forgotten" in refused.err) == (True, True)


def test_a_refusal_is_said_with_the_way_out(past_world: PastWorld, lake_command: Command) -> None:
    """Before it is asked, with the table's path in the command."""
    table = past_world.loaded()
    table.edit(Publishing=table.item()["Head"])

    done = lake_command("forget", str(table.path), "--yes")

    assert (done.code, f"dmslake run {table.path}" in done.err) == (1, True)
