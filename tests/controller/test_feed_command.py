"""`dmslake generate-feed`: what it prints, what it refuses, and that its options are the job's arguments."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from controller.cli.generating import generate_feed
from glue_jobs.core.feed_wish import DEFAULTS
from tests.controller.past_world import Command, untouched
from tests.lake import LakeTable
from tests.spark.feed_tables import sample_rows


@pytest.fixture
def delta(tmp_path: Path) -> str:
    write_deltalake(str(tmp_path / "bronze"), sample_rows(40))
    DeltaTable(str(tmp_path / "bronze")).delete("id = 5")
    return str(tmp_path / "bronze")


def test_every_argument_of_the_job_is_an_option() -> None:
    """And the other way round."""
    options = {parameter.name for parameter in generate_feed.params if getattr(parameter, "opts", [""])[0].startswith("--")}

    assert set(DEFAULTS) <= options


def test_a_feed_in_words_and_for_programs(kept_command: Command, delta: str, tmp_path: Path) -> None:
    """Counts, the first and the last file, the seed; the second time all files are there already."""
    words = ["generate-feed", "--delta", delta, "--primary-key", "id", "--staging", str(tmp_path / "s"), "--files", "2", "--full-load"]
    words += ["--start", "2024-05-01T12:00:00Z", "--expected", str(tmp_path / "expected.parquet")]

    done = kept_command(*words)
    data = kept_command(*words, "--output", "json").json

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.code == 0
    assert lines == [
        f"{delta}: 2 file(s) below {tmp_path / 's'}",
        "full load 40 row(s) in 1 file(s)",
        "rows 4 inserts, 5 updates, 2 deletes",
        "first file 2024/05/01/20240501-120100000.parquet",
        "last file 2024/05/01/20240501-120200000.parquet",
        "seed 1",
        "expected 42 row(s)",
    ]
    assert (data["generate_feed"], data["files"], data["found_unchanged"], data["expected_rows"]) == (1, 2, 3, 42)
    assert pq.read_metadata(tmp_path / "expected.parquet").num_rows == 42


def test_no_difference_has_no_files(kept_command: Command, delta: str, tmp_path: Path) -> None:
    """Two versions with the same rows are no error."""
    DeltaTable(delta).update(updates={"src_file": "'two.csv'"})

    done = kept_command("generate-feed", "--delta", delta, "--primary-key", "id", "--from", "1", "--staging", str(tmp_path / "s"))

    assert (done.code, done.out.strip()) == (0, f"{delta}: no row changed between the two; no file was written")
    assert not (tmp_path / "s").exists()


def test_a_lake_table_is_only_read(kept_history: LakeTable, kept_command: Command, tmp_path: Path) -> None:
    """Its state, records and files are what they were."""
    before = untouched(kept_history)

    made = kept_command("generate-feed", str(kept_history.path), "--staging", str(tmp_path / "s"), "--inserts", "5", "--output", "json")
    between = kept_command("generate-feed", str(kept_history.path), "--from", "previous", "--staging", str(tmp_path / "t"))

    assert (made.code, between.code) == (0, 0)
    assert made.json["inserts"] == 5
    assert untouched(kept_history) == before


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (2, "either --delta FOLDER or a lake table's path", []),
        (2, "--staging is missing", ["shop.orders"]),
        (2, "no table 'shop.none' is known", ["shop.none", "--staging", "s"]),
        (2, "--inserts is 'many'", ["shop.none", "--staging", "s", "--inserts", "many"]),
        (2, "Invalid value for '--reader'", ["--reader", "pandas"]),
    ],
)
def test_a_wrong_call(kept_command: Command, code: int, said: str, words: list[str]) -> None:
    """Is refused before anything is written."""
    done = kept_command("generate-feed", *words)

    assert done.code == code
    assert said in done.err
