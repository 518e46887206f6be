"""`dmslake demo`: what a person sees, its end, and that its check can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from glue_jobs.aws.objects import list_files
from infra.local import shop
from infra.local.demo import TRY_NEXT, Demo, DemoFailed
from infra.local.demo_screen import Screen
from infra.local.embedded import EmbeddedAws
from infra.local.row_changes import differences, row_changes
from infra.local.shop import open_shop, round_of

ROOT = Path(__file__).parents[2]
SECONDS = 120


@pytest.fixture(scope="module")
def said() -> str:
    """All that the command prints, on a machine whose shell knows no Java and no AWS."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "controller.cli", "demo"], env=environment, capture_output=True, text=True, timeout=2 * SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_demo_ends_equal_and_in_time(said: str) -> None:
    """The lake equals the shop at the end, within two minutes."""
    took = re.search(r"It took (\d+) s\.", said)

    assert "The lake equals the shop." in said
    assert took is not None
    assert int(took[1]) < SECONDS


def test_demo_shows_a_table_with_all_that_dms_may_write(said: str) -> None:
    """The made-up table comes as Parquet and CSV, with a late file, and is equal too."""
    flat = re.sub(r"\s+", " ", said)

    assert re.search(r"things: \S+/\S+ comes late", flat)
    assert "things: DMS started again at earlier points: rows come twice" in flat
    assert re.search(r"✓ things: [1-9]\d* rows, 2\d columns, all equal", flat)


def test_demo_shows_row_changes_old_to_new(said: str) -> None:
    """After each round: counts per table, an update as old → new, a delete and an insert with their values."""
    flat = re.sub(r"\s+", " ", said)

    assert "products ~1 updated −1 deleted" in flat
    assert "~ 14 price 119.00 → 109.00" in flat
    assert "− 25 name Rain Gauge, price 54.50" in flat
    assert "orders +40 inserted ~3 updated" in flat
    assert "+ 1201 order_date 2024-07-01" in flat
    assert "orders +25 inserted ~1 updated −1 deleted" in flat
    assert "~ 7 order_date 2024-01-01 → 2024-03-02" in flat
    assert "new column coupon, null in the rows from before" in flat


def test_readme_shows_what_the_demo_prints(said: str) -> None:
    """The README's excerpt is lines of the demo, in this order."""
    (excerpt,) = re.findall(r"^```text\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)

    assert "\n".join(line.strip() for line in excerpt.splitlines()) in "\n".join(line.strip() for line in said.splitlines())


def test_demo_ends_with_commands_that_can_be_pasted(said: str) -> None:
    """The five commands stand at the end, each whole on a line of its own, all else of that step is comments."""
    tail = [line.strip() for line in said[said.index("Five commands") :].splitlines()[1:]]

    commands = [line for line in tail if line and not line.startswith(("#", "source "))]
    assert commands == [command for command, _ in TRY_NEXT]
    assert len(commands) == 5


def test_demo_ends_with_a_report_and_names_its_file(said: str) -> None:
    """It has the shop's tables and what their changes did to rows, and stays."""
    named = re.search(r"^ *(\S+dmslake-demo-\S+report\.html)$", said, re.MULTILINE)

    assert named is not None
    text = Path(named[1]).read_text("utf-8")
    assert all(f"shop.{name}" in text for name in shop.TABLES)
    assert "<del><bdi>119.00</bdi></del>" in text
    assert "<ins><bdi>109.00</bdi></ins>" in text


@pytest.fixture(scope="module")
def loaded() -> Iterator[Demo]:
    """The demo up to its first load."""
    with EmbeddedAws() as aws:
        demo = Demo(aws, Screen(lambda text: None))
        demo.full_load()
        demo.activate()
        demo.load()
        yield demo


def test_check_finds_a_missing_data_file(loaded: Demo) -> None:
    """A lake that lacks a data file is not called equal."""
    s3 = loaded.aws.client("s3")
    before = loaded.check()
    file = next(iter(list_files(s3, loaded.aws.lake_bucket, "lake/shop/orders/")))
    s3.delete_object(Bucket=loaded.aws.lake_bucket, Key=file.key)

    assert (before, loaded.check()) == (True, False)


def test_failed_run_is_told_with_its_log(loaded: Demo) -> None:
    """A controller run that fails ends the demo with the table's error."""
    loaded.aws.client("s3").put_object(Bucket=loaded.aws.raw_bucket, Key="dms/shop/stores/readme.txt", Body=b"no DMS file")

    with pytest.raises(DemoFailed, match=r"(?s)ended FAILED.*readme\.txt"):
        loaded.controller("")


def test_row_changes_are_what_turns_one_image_into_the_other() -> None:
    """An insert, an update with the columns that changed, a delete; an added column that is null changes no row."""
    before = {1: {"id": 1, "a": 1}, 2: {"id": 2, "a": 2}, 3: {"id": 3, "a": 3}}
    after = {1: {"id": 1, "a": 1, "b": None}, 2: {"id": 2, "a": 5, "b": "x"}, 4: {"id": 4, "a": 4, "b": None}}

    changes = row_changes(before, after)

    assert [(change.operation, change.key) for change in changes] == [("UPDATE", 2), ("DELETE", 3), ("INSERT", 4)]
    assert changes[0].values() == {"a": (2, 5), "b": (None, "x")}


def test_not_a_number_is_no_difference() -> None:
    """NaN, which is not equal to itself, is the same value in both images."""
    assert row_changes({1: {"a": float("nan")}}, {1: {"a": float("nan")}}) == []
    assert differences({1: {"a": float("nan")}}, {1: {"a": 1.0}}) == ["row 1: a: expected nan, found 1.0"]


def test_differences_name_row_column_and_values() -> None:
    """Each row that differs is named, with expected and found; many are cut."""
    expected = {key: {"id": key, "a": key} for key in range(10)}
    found = {key: {"id": key, "a": key + (key == 1)} for key in range(1, 11)}

    assert differences(expected, expected) == []
    assert differences(expected, found) == ["row 0 is missing", "row 1: a: expected 1, found 2", "row 10 should not be there"]
    assert differences(expected, {})[-1] == "and 5 more"


def test_shop_is_the_same_wherever_it_is_built() -> None:
    """Two shops after the same rounds have the same rows; a round changes some."""
    one, other = open_shop(), open_shop()
    for number in range(1, 6):
        before = {table: dict(rows) for table, rows in one.rows.items()}
        round_of(number)(one)
        round_of(number)(other)

        assert one.rows == other.rows != before


def test_feed_goes_on_where_the_folder_stands(loaded: Demo) -> None:
    """`python -m infra.local.shop`, called anew each time: the full load, then rounds, under growing names."""
    s3, raw = loaded.aws.client("s3"), f"s3://{loaded.aws.raw_bucket}/feed/"
    now = datetime(2024, 7, 1, tzinfo=timezone.utc)
    stories = [shop.feed_next(s3, raw, now)[0] for _ in range(4)]

    names = shop.Feed(s3, raw).names("orders")
    assert stories[0] == "the full load of a shop"
    assert stories[1:] == [round_of(number)(_shop_after(number - 1))[0] for number in (1, 2, 3)]
    assert names == ["20240701-000000000.parquet", "20240701-000000001.parquet", "20240701-000000002.parquet", "LOAD00000001.parquet"]


def _shop_after(rounds: int) -> shop.Shop:
    done = open_shop()
    for number in range(1, rounds + 1):
        round_of(number)(done)
    return done


def test_feed_without_raw_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """No DMSLAKE_RAW: exit code 3 and the way out."""
    assert shop.main({}) == 3
    assert "dmslake up" in capsys.readouterr().err


def test_feed_into_some_schemas_says_which_folder_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    """A wildcard is no folder's name: exit code 2 and the way out, and nothing is written."""
    assert shop.main({"DMSLAKE_RAW": "s3://dmslake-raw/dms/sales_*"}) == 2
    assert "give --raw s3://dmslake-raw/dms/, or set DMSLAKE_RAW to it" in capsys.readouterr().err


def test_later_rounds_fit_the_columns() -> None:
    """Rows of every round have the table's columns as of then."""
    done = open_shop()
    for number in range(1, 5):
        round_of(number)(done)
        for table, rows in done.take().items():
            names = pa.schema(done.columns[table]).names
            assert {tuple(row.values) for row in rows} == {tuple(names)}
