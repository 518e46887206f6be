"""`dmslake feed`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq

from controller.cli.feeding import feed
from infra.local.feed.wish import FeedWish
from tests.controller.past_world import Command


def test_every_part_of_a_wish_is_an_option() -> None:
    """And has the same default."""
    options = {parameter.name: parameter.default for parameter in feed.params}

    for item in dataclasses.fields(FeedWish):
        assert item.name in options
        if item.name not in ("op", "reload", "start") and item.default is not False:
            assert options[item.name] == item.default, item.name


def test_a_feed_in_words_and_for_programs(kept_command: Command, tmp_path: Path) -> None:
    """What happened, round by round, how many files and rows, and what the item must say."""
    words = ["feed", "--to", f"{tmp_path}/shop/things/", "--rows", "10", "--changes", "6", "--schema-changes", "--no-load-op"]
    words += ["--truth", f"{tmp_path}/truth.parquet"]

    done = kept_command(*words)
    data = kept_command(*words, "--output", "json").json

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.code == 0
    assert lines[:3] == [
        f"10 file(s) below {tmp_path}/shop/things/",
        "the full load: 10 rows",
        "round 1: column number grows from int32 to int64",
    ]
    assert "item PrimaryKey=id" in lines
    assert (data["feed"], data["files"], data["item"]) == (1, 10, {"PrimaryKey": "id"})
    assert data["truth_rows"] == pq.read_table(tmp_path / "truth.parquet").num_rows
    assert (tmp_path / "shop" / "things" / "LOAD00000001.parquet").exists()


def test_a_wrong_feed_is_a_wrong_call(kept_command: Command, tmp_path: Path) -> None:
    """Exit code 2, the reason, and nothing written."""
    to = f"{tmp_path}/things"
    for wrong, says in (
        (["--layout", "weekly"], "'weekly' is none of flat"),
        (["--round", "4"], "expected 0 to 3, found 4"),
        (["--start", "soon"], "expected a time as 2024-05-01T12:00:00Z"),
        (["--before-images", "--no-op"], "only inserts"),
    ):
        done = kept_command("feed", "--to", to, *wrong)
        assert (done.code, says in done.err) == (2, True), done.err
    assert not list(tmp_path.iterdir())


def test_a_place_that_can_not_be_written_is_a_wrong_call(kept_command: Command, tmp_path: Path) -> None:
    """Exit code 2, with the file and the option."""
    (tmp_path / "file").write_text("")
    small = ["feed", "--rows", "2", "--rounds", "1", "--changes", "2"]

    done = kept_command(*small, "--to", f"{tmp_path}/file/things")
    truth = kept_command(*small, "--to", f"{tmp_path}/things", "--truth", "/no/such/truth.parquet")

    assert (done.code, truth.code) == (2, 2), done.err + truth.err
    assert f"{tmp_path}/file/things/LOAD00000001.parquet can't be written: Not a directory" in done.err
    assert "/no/such/truth.parquet can't be written: No such file or directory" in truth.err
    assert ("give --to" in done.err, "give --truth" in truth.err) == (True, True)
