"""`dmslake erase`: what is shown, what is asked, what is done; and what other commands say afterwards."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from controller.cli.erasing import write_list
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.errors import UsageError
from tests.controller.past_world import LOADED, SECOND, Command, PastWorld, changes, untouched
from tests.lake import LakeTable


@pytest.fixture
def keys(tmp_path: Path) -> str:
    """A file with the key 3, which the load and both batches wrote."""
    file = tmp_path / "keys.csv"
    file.write_text("id\n3\n")
    return str(file)


def held(table: LakeTable) -> list[str]:
    return [each.version for each in held_versions(table.clients.s3, table.out_path.bucket, table.out_path.key)]


def test_a_dry_run_shows_and_lists_and_changes_nothing(past_world: PastWorld, lake_command: Command, keys: str, tmp_path: Path) -> None:
    """Counts and bytes, the first versions, and all of them in a file."""
    table = past_world.history()
    before = (untouched(table), held(table))

    done = lake_command("erase", str(table.path), "--keys", keys, "--dry-run", "--list", str(tmp_path / "list"), "--output", "json")

    listed = [json.loads(line) for line in (tmp_path / "list").read_text().splitlines()]
    assert (done.code, (untouched(table), held(table))) == (0, before)
    assert (done.json["rows_erased"], done.json["versions"], done.json["keys_found"], len(listed)) == (1, 3, 1, 3)
    assert {each["version"] for each in listed} == set(held(table))


def test_what_is_shown_is_done(past_world: PastWorld, lake_command: Command, keys: str) -> None:
    """Shown on stderr, done by the job Erase; the report says what happened."""
    table = past_world.history()
    before = held(table)

    done = lake_command("erase", str(table.path), "--keys", keys, "--yes")

    assert (done.code, table.rows()) == (0, [row for row in SECOND if row[0] != 3]), done.err
    assert "3 removed for good" in done.err
    assert not set(before) & set(held(table))
    assert "docs/erase.md" in done.out


def test_without_a_terminal_it_wants_a_yes(
    past_world: PastWorld, lake_command: Command, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could be asked."""
    table = past_world.loaded()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    before = untouched(table)

    done = lake_command("erase", str(table.path), "--keys", keys)

    assert (done.code, untouched(table)) == (2, before)
    assert "--yes" in done.err


@pytest.mark.parametrize(
    "words", [(), ("--resume", "--keys", "k.csv"), ("--resume", "--key", "id")], ids=["no keys", "resume with keys", "resume with key"]
)
def test_calls_that_can_not_be_meant(past_world: PastWorld, lake_command: Command, words: tuple[str, ...]) -> None:
    """A wrong call, before anything is read."""
    assert lake_command("erase", "shop.orders", *words).code == 2


def test_a_key_that_is_nowhere_is_an_error(past_world: PastWorld, lake_command: Command, tmp_path: Path) -> None:
    """Exit code 1, nothing asked, nothing done."""
    table = past_world.loaded()
    (tmp_path / "other.csv").write_text("id\n99\n")
    before = untouched(table)

    done = lake_command("erase", str(table.path), "--keys", str(tmp_path / "other.csv"))

    assert (done.code, untouched(table)) == (1, before)
    assert "none of the 1 key(s)" in done.err


def test_a_glue_job_reads_no_file_of_this_machine(past_world: PastWorld, lake_command: Command, keys: str) -> None:
    """Said before anything is started."""
    table = past_world.loaded()

    done = lake_command("erase", str(table.path), "--keys", keys, "--runner", "glue", "--yes")

    assert (done.code, "can't read" in done.err) == (2, True)


def test_readers_of_the_past_say_which_erase_took_it(past_world: PastWorld, lake_command: Command, keys: str) -> None:
    """read, diff, rollback and explain name version-erased with the erase's id; history and show go on, without a key."""
    table = past_world.history()
    load, first, _ = changes(table)
    assert lake_command("erase", str(table.path), "--keys", keys, "--yes").code == 0
    erase, path = table.item()["Head"], str(table.path)

    for words in (("read", path, "--as-of", load), ("diff", path, load), ("rollback", path, "--to", first, "--dry-run")):
        done = lake_command(*words)
        assert (done.code, "were erased for good" in done.err, erase in done.err) == (1, True, True), (words, done.err)
    told = lake_command("explain", path, "--key", "1")
    assert (told.code, f"erased for good by change {erase}" in told.out) == (0, True)
    assert lake_command("read", path, "--output", "json").json["rows"] == [{"id": 1, "name": "ONE"}, {"id": 5, "name": "five"}]
    assert lake_command("history", path).code == 0
    shown = lake_command("show", path, erase, "--output", "json")
    assert (shown.code, lake_command("verify", path).code) == (0, 0)
    record = table.head()
    assert record.erased_keys is not None
    assert (shown.json["erased_left"], len(record.erased), "three" in shown.out.lower()) == (0, 3, False)
    assert "3 version(s) on its list, 0 of them not removed yet" in lake_command("show", path, erase).out


def test_an_erase_of_the_history_alone_can_not_be_undone(past_world: PastWorld, lake_command: Command, keys: str) -> None:
    """The table has not had the key for long; the change before, whose history had it, says no, and nothing offers to undo the erase."""
    table = past_world.table()
    table.edit(History="true")
    table.load(LOADED)
    table.sync()
    table.cdc([("D", (3, None))])
    table.sync()
    assert lake_command("erase", str(table.path), "--keys", keys, "--yes").code == 0
    erase, path = table.head(), str(table.path)

    shown = lake_command("history", path, "--output", "json").json["changes"]
    commands = lake_command("show", path, erase.id, "--output", "json").json["commands"]
    refused = lake_command("rollback", path, "--undo", erase.id, "--dry-run")

    assert (erase.kind, erase.superseded) == ("erase", ())
    assert [row["restorable"] for row in shown] == ["yes", "no", "no"]
    assert commands == {}
    assert (refused.code, "were erased for good by change" in refused.err, erase.id in refused.err) == (1, True, True)


def test_resume_ends_an_erase_and_says_if_there_is_none(past_world: PastWorld, lake_command: Command, keys: str) -> None:
    """A version that came back to the list's place counts as left; without any there is nothing to do."""
    table = past_world.history()
    assert lake_command("erase", str(table.path), "--keys", keys, "--yes").code == 0
    assert "0 erased version(s) left" in lake_command("erase", str(table.path), "--resume").out
    table.edit(Erasing=table.item()["Head"])
    status, verified = lake_command("status", str(table.path)), lake_command("verify", str(table.path))
    assert ("--resume" in status.out, verified.code) == (True, 5)

    done = lake_command("erase", str(table.path), "--resume", "--yes")

    assert (done.code, "Erasing" in table.item()) == (0, False), done.err


def test_a_list_that_can_not_be_written_is_a_wrong_call(tmp_path: Path) -> None:
    """Said with the option's name, before anything is erased."""
    with pytest.raises(UsageError) as caught:
        write_list(tmp_path, ())

    assert (caught.value.code, str(tmp_path) in caught.value.message) == ("bad-argument", True)
