"""What DMS can write, in combination: layout × format × columns × behaviour. After every round the lake is what the oracle says.

Every pair of two factors' values stands together in some combination (tests/pairwise.py). A failure names the wish:
`make_rounds(FeedWish(…))` gives the same files again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from infra.local.feed.wish import START, FeedWish
from tests.fed_tables import fed_table, follow, reload_time
from tests.pairwise import Row, pairwise
from tests.work_tables import MakeTable

DATED = ("YYYYMMDD", "YYYYMMDDHH", "YYYYMM", "MMYYYYDD", "DDMMYYYY")
CSV = ("csv", "mixed")
FACTORS: dict[str, tuple[Any, ...]] = {
    "folder": ("flat", *DATED, "unpadded", "transactions"),
    "delimiter": ("", "-dash", "-underscore", "-none"),
    "format": ("parquet", "parquet-gzip", "parquet-2.0", "parquet-pandas", *CSV),
    "header": (False, True),
    "name": ("dash", "underscore", "digits-0", "digits-4", "digits-10"),
    "load": ("one-folder", "load-folders", "load-segments"),
    "load_files": (1, 11),
    "op": ("all", "cdc", "none"),
    "timestamp_column": ("dms_timestamp", "changed at", ""),
    "before_images": (False, True),
    "change_sequence": (False, True),
    "key_only_deletes": (False, True),
    "ties": (0.0, 0.9),
    "duplicates": (False, True),
    "late": (False, True),
    "reload": ("", "kept", "gone"),
    "schema_changes": (False, True),
    "key": ("single", "composite"),
    "partition": ("null", "region", "year(day),month(day)"),
}


def allowed(row: Row) -> bool:
    """Whether a feed can be so (see FeedWish), and none of it says nothing."""
    shared, is_csv = row.get("folder") == "transactions", row.get("format") in CSV
    tells_names = row.get("header", True) and not shared
    wrong = (
        row.get("folder", DATED[0]) not in DATED and row.get("delimiter"),
        row.get("op") == "none" and (row.get("before_images") or row.get("key_only_deletes")),
        row.get("header") and (shared or row.get("format", CSV[0]) not in CSV),
        (is_csv or shared) and not tells_names and (row.get("before_images") or row.get("schema_changes")),
        shared and (row.get("op") == "none" or row.get("change_sequence")),
        shared and row.get("reload") and row.get("timestamp_column", " ") == "",  # two loads can't both be now
    )
    return not any(wrong)


ROWS = pairwise(FACTORS, allowed)


def wish_of(row: Row, seed: int) -> FeedWish:
    """The feed of a combination. Without a timestamp column the time at which load files are written counts, so the load is now."""
    layout = ",".join((row["folder"] + row["delimiter"], row["name"], row["load"]))
    same = {name: row[name] for name in row if name not in ("folder", "delimiter", "name", "load", "partition")}
    now = datetime.now(timezone.utc).replace(microsecond=0)
    wish = FeedWish(
        seed=seed, rows=40, rounds=2, changes=24, files=2, layout=layout, start=START if row["timestamp_column"] else now, **same
    )
    return replace(wish, start=now + (now - reload_time(wish))) if wish.reload and not wish.timestamp_column else wish


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_the_lake_is_what_the_oracle_says(quick_table: MakeTable, number: int) -> None:
    """After the load, and after every round of changes; whatever the files look like and in whatever order they arrive."""
    wish = wish_of(ROWS[number], seed=number)

    follow(fed_table(quick_table, wish, ROWS[number]["partition"]), wish)


ON_SPARK = (
    FeedWish(rounds=1, key="composite", layout="YYYYMMDDHH,load-segments", load_files=3, duplicates=True, before_images=True),
    FeedWish(rounds=2, format="mixed", header=True, late=True, reload="kept", key_only_deletes=True),
)


@pytest.mark.parametrize("wish", ON_SPARK, ids=lambda wish: wish.format)
def test_spark_makes_the_same_lake(spark_table: MakeTable, wish: FeedWish) -> None:
    """Some of it where Spark ranks and joins."""
    follow(fed_table(spark_table, wish, "region"), wish, driver_bytes="0")
