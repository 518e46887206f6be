"""`dmslake run --stage`, `show`, `history`, `commit` and `discard`: what a person sees of a change before it counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from glue_jobs.core.ids import ChangeId
from glue_jobs.core.paths import changes_folder
from infra.local.dms_files import load_file_name
from tests.controller.past_world import LOADED, Command, PastWorld, untouched
from tests.lake import LakeTable

FIRST = [(1, "ONE"), (3, "three"), (4, "four")]


@pytest.fixture
def waiting(past_world: PastWorld) -> LakeTable:
    """A loaded table with a CDC file that waits."""
    table = past_world.loaded()
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    return table


def staged_by_run(table: LakeTable) -> str:
    """The id of a change that a run has staged."""
    assert table.run(stage="true") == 0
    return str(table.item()["LastRun"]["staged"])


def test_a_run_stages_the_next_change(waiting: LakeTable, lake_command: Command) -> None:
    """By the jobs, like any run; the report names the change and what can be done with it."""
    done = lake_command("run", str(waiting.path), "--stage")

    item = waiting.item()
    change = item["LastRun"]["staged"]
    assert (done.code, item["LastRun"]["outcome"], waiting.rows()) == (0, "staged", LOADED)
    assert f"dmslake show {waiting.path} {change}; then dmslake commit {waiting.path} {change}" in done.out
    assert "1 staged" in done.out
    assert item["Paused"].startswith(f"change {change} is staged")


def test_staging_wants_named_tables(past_world: PastWorld, lake_command: Command) -> None:
    """It pauses them."""
    done = lake_command("run", "--stage")

    assert (done.code, "none is named" in done.err) == (2, True)


def test_a_plan_of_staging_starts_nothing(waiting: LakeTable, lake_command: Command) -> None:
    """It is the plan of the run."""
    before = untouched(waiting)

    done = lake_command("run", str(waiting.path), "--stage", "--dry-run")

    assert (done.code, "apply" in done.out, untouched(waiting)) == (0, True, before)


def test_show_tells_a_staged_change(waiting: LakeTable, lake_command: Command) -> None:
    """What it would do, until when it can be committed, and the commands."""
    change = staged_by_run(waiting)

    done = lake_command("show", str(waiting.path), change)

    assert done.code == 0
    assert "staged: it waits for a person" in done.out
    assert "3 → 3: 1 inserted, 1 updated, 1 deleted" in done.out
    assert "3 of at most 3 kept" in done.out
    assert "UTC: from then on the bucket's rule may abort its uploads" in done.out
    assert f"dmslake commit {waiting.path} {change}" in done.out
    assert f"dmslake discard {waiting.path} {change}" in done.out


def test_show_as_json(waiting: LakeTable, lake_command: Command) -> None:
    """The record as it is stored, beside what became of it."""
    change = staged_by_run(waiting)

    data = lake_command("show", str(waiting.path), change, "--output", "json").json

    assert (data["standing"], data["record"]["staged"], data["committed_as"], data["between"]) == ("waiting", True, "", [])
    assert data["commit_until"] > data["time"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_show_writes_the_rows(waiting: LakeTable, lake_command: Command, tmp_path: Path, ending: str) -> None:
    """With `_change_type`, both images of an update; also once the change is committed."""
    change = staged_by_run(waiting)
    file = tmp_path / f"rows.{ending}"

    assert lake_command("show", str(waiting.path), change, "--rows", str(file)).code == 0

    if ending == "csv":
        assert file.read_text().splitlines() == [
            "id,name,_change_type", "1,one,update_preimage", "1,ONE,update_postimage", "2,two,delete", "4,four,insert",
        ]  # fmt: skip
    else:
        assert pq.read_table(file)["_change_type"].to_pylist() == ["update_preimage", "update_postimage", "delete", "insert"]
        lake_command("commit", str(waiting.path), change)
        again = tmp_path / "again.parquet"
        assert lake_command("show", str(waiting.path), waiting.item()["Head"], "--rows", str(again)).code == 0
        assert again.read_bytes() == file.read_bytes()


def test_a_change_without_kept_rows_says_so(waiting: LakeTable, lake_command: Command, tmp_path: Path) -> None:
    """And how to compare instead; a file name without a known ending is refused before anything is read."""
    load = waiting.item()["Head"]

    done = lake_command("show", str(waiting.path), load, "--rows", str(tmp_path / "rows.csv"))
    odd = lake_command("show", str(waiting.path), load, "--rows", "rows.xlsx")
    nowhere = lake_command("show", str(waiting.path), staged_by_run(waiting), "--rows", str(tmp_path / "no" / "rows.parquet"))

    assert (done.code, "a full load's are all its rows" in done.err, "dmslake diff" in done.err) == (2, True, True)
    assert (odd.code, "the name says the format" in odd.err) == (2, True)
    assert (nowhere.code, "can't write" in nowhere.err) == (1, True)


def test_commit_makes_it_count(waiting: LakeTable, lake_command: Command) -> None:
    """The command says as which change, and how to undo it."""
    change = staged_by_run(waiting)

    done = lake_command("commit", str(waiting.path), change)

    head = waiting.item()["Head"]
    assert (done.code, waiting.rows(), waiting.verify()) == (0, FIRST, [])
    assert f"is committed as change {head}" in done.out
    assert "not paused any more" in done.out
    assert f"dmslake rollback {waiting.path} --undo {head}" in done.out
    shown = lake_command("show", str(waiting.path), head).out
    assert [line for line in shown.splitlines() if line.startswith("staged as") and line.endswith(change)]


def test_commit_as_json(waiting: LakeTable, lake_command: Command) -> None:
    """Its change and counts."""
    change = staged_by_run(waiting)

    data = lake_command("commit", str(waiting.path), change, "--output", "json").json

    assert (data["staged"], data["change"], data["updated"], data["kind"]) == (change, waiting.item()["Head"], 1, "incremental")


def test_a_refused_commit_says_why(waiting: LakeTable, lake_command: Command) -> None:
    """On stderr, with the way out, and with an exit code; nothing is changed."""
    change = staged_by_run(waiting)
    waiting.remove("Paused")
    assert waiting.run() == 0
    before = waiting.visible()

    done = lake_command("commit", str(waiting.path), change)

    assert (done.code, done.out, waiting.visible()) == (1, "", before)
    assert f"came between: {waiting.item()['Head']}" in done.err
    assert f"dmslake discard {waiting.path} {change}" in done.err


def test_discard_drops_it(waiting: LakeTable, lake_command: Command) -> None:
    """Its uploads and its pause go; a commit afterwards is refused."""
    change = staged_by_run(waiting)

    done = lake_command("discard", str(waiting.path), change)
    after = lake_command("commit", str(waiting.path), change)

    assert (done.code, "1 upload(s) were aborted" in done.out, "not paused any more" in done.out) == (0, True, True)
    assert (after.code, "was discarded" in after.err, waiting.open_uploads()) == (2, True, [])
    assert lake_command("discard", str(waiting.path), change, "--output", "json").json["aborted"] == 0


@pytest.mark.parametrize("word", ["commit", "discard"])
@pytest.mark.parametrize(("change", "said"), [("yesterday", "not a change id"), ("0000000009-000001-0123abcd", "was staged")])
def test_a_change_that_is_none_is_refused(waiting: LakeTable, lake_command: Command, word: str, change: str, said: str) -> None:
    """In words that say what was looked for."""
    done = lake_command(word, str(waiting.path), change)

    assert (done.code, said in done.err) == (2, True)


def test_history_lists_staged_changes_and_what_became_of_them(waiting: LakeTable, lake_command: Command) -> None:
    """Beside the changes, of which none is staged."""
    dropped = staged_by_run(waiting)
    lake_command("discard", str(waiting.path), dropped)
    taken = staged_by_run(waiting)
    lake_command("commit", str(waiting.path), taken)
    head = waiting.item()["Head"]
    waiting.cdc([("U", (3, "THREE"))])
    open_one = staged_by_run(waiting)

    text = lake_command("history", str(waiting.path)).out
    data = lake_command("history", str(waiting.path), "--output", "json").json

    assert [(row["change"], row["standing"], row["committed_as"]) for row in data["staged"]] == [
        (open_one, "waiting", ""), (taken, "committed", head), (dropped, "discarded", ""),
    ]  # fmt: skip
    assert not {open_one, taken, dropped} & {row["change"] for row in data["changes"]}
    assert f"committed as {head}" in text
    assert [row["change"] for row in lake_command("history", str(waiting.path), "--limit", "1", "--output", "json").json["staged"]] == [
        open_one
    ]


def test_history_passes_over_a_damaged_record_that_never_landed(waiting: LakeTable, lake_command: Command) -> None:
    """Nothing builds on it; the staged change beside it is shown, and verify tells of the record."""
    change = staged_by_run(waiting)
    folder = changes_folder(waiting.out_path)
    never = ChangeId(int(waiting.item()["Fence"]), 9, "0123abcd")
    waiting.clients.s3.put_object(Bucket=folder.bucket, Key=f"{folder.key}{never}.json", Body=b"{")

    done = lake_command("history", str(waiting.path), "--output", "json")

    assert [row["change"] for row in done.json["staged"]] == [change]
    assert waiting.verify(quick=True) == ["bad-record"]


def test_a_first_load_can_be_staged(past_world: PastWorld, lake_command: Command) -> None:
    """A table without any change has a history of staged ones."""
    table = past_world.table()
    table.load(LOADED)
    assert table.run("LoadInitial", stage="true") == 0
    change = table.item()["LastRun"]["staged"]

    assert (change in lake_command("history", str(table.path)).out, lake_command("show", str(table.path), change).code) == (True, 0)
    assert lake_command("commit", str(table.path), change).code == 0
    assert table.rows() == LOADED


def test_verify_names_a_staged_change(waiting: LakeTable, lake_command: Command) -> None:
    """As a note, with the commands; it is no difference."""
    change = staged_by_run(waiting)

    done = lake_command("verify", str(waiting.path), "--quick", "--output", "json")

    (finding,) = done.json["tables"][0]["findings"]
    assert (done.code, finding["code"], change in finding["found"]) == (0, "staged-change", True)


def test_discarding_a_truncate_says_what_comes_next(past_world: PastWorld, lake_command: Command) -> None:
    """The next run empties the table, unless a person takes the attribute away that lets it."""
    table = past_world.loaded()
    table.edit(OnRawFilesGone="truncate")
    table.delete_raw(load_file_name(1))
    change = staged_by_run(table)

    done = lake_command("discard", str(table.path), change)

    assert (done.code, "the next run empties it, unless you take OnRawFilesGone" in done.out) == (0, True)
