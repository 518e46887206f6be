"""`dmslake watch`: what the terminal shows, at any size, whatever the tables are called."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from rich.cells import cell_len
from rich.text import Text

from controller.cli.watch_screen import Size, plain_rows, screen, spark
from controller.pages.views import Bar, Overview, TableRow, Totals

NOW = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
BLOCKED = TableRow(
    "raw/dms/shop/stores/", "shop.stores", "blocked", "a raw file has a name that DMS does not give: notes.txt",
    "dmslake unblock shop.stores --skip-file notes.txt", 720.0, 3, 4000, "c1", "incremental", NOW - timedelta(minutes=3), 8, 1234, 1,
)  # fmt: skip
FINE = TableRow("raw/dms/shop/orders/", "shop.orders", "fine", lag_seconds=0.0, rows=1264, bytes=12_345_678, files=7)
FOOT = Text("read 0 s ago")


def overview(*tables: TableRow) -> Overview:
    states = {state: sum(row.state == state for row in tables) for state in ("blocked", "fine")}
    return Overview(NOW, tables, Totals(len(tables), sum(row.rows for row in tables), sum(row.bytes for row in tables), 8, states, 720.0))


def lines(shown: Overview, width: int, height: int) -> list[str]:
    return screen(shown, NOW, Size(width, height), FOOT).plain.split("\n")


def many(count: int) -> tuple[TableRow, ...]:
    return tuple(replace(FINE, path=f"raw/dms/shop/t{at}/", name=f"shop.t{at}") for at in range(count))


def test_a_table_that_needs_a_person_says_why_and_what_to_do() -> None:
    """Before all tables are listed."""
    shown = lines(overview(BLOCKED, FINE), 100, 24)

    at = shown.index("shop.stores  blocked")
    assert shown[at + 1 : at + 3] == ["  a raw file has a name that DMS does not give: notes.txt", f"  → {BLOCKED.todo}"]
    assert shown[0] == "1 needs a person · 1 blocked · 1 fine"
    row = next(line for line in shown[at + 3 :] if "shop.stores" in line)
    assert row.split() == "! shop.stores blocked 12 min 3 files 3 min ago incremental 8 1.2 KiB 1".split()


@pytest.mark.parametrize(("width", "height"), [(200, 50), (80, 24), (60, 16), (40, 10), (20, 5), (1, 1), (80, 2)])
@pytest.mark.parametrize("tables", [0, 1, 30, 1000])
def test_it_fits_every_terminal(width: int, height: int, tables: int) -> None:
    """As many lines as the terminal has, none wider than it; the last says how old it is."""
    hostile = replace(BLOCKED, name="shop.\x1b[31m表表表" + "x" * 10_000, reason="a\nb\x1b]0;title\x07" + "y" * 10_000)
    shown = lines(overview(*((hostile, BLOCKED, *many(tables)) if tables else ())), width, height)

    assert len(shown) == height
    assert all(cell_len(line) <= width for line in shown)
    assert shown[-1].startswith("read 0 s ago"[: width - 1])
    assert not any(char in line for line in shown for char in "\x1b\x07\u202e")


def test_eighty_columns_keep_what_counts() -> None:
    """Table, state, lag and last change; a wide terminal has the rest."""
    narrow, wide = lines(overview(BLOCKED, FINE), 80, 24), lines(overview(BLOCKED, FINE), 160, 24)

    heads = [next(line for line in shown if "last change" in line).split() for shown in (narrow, wide)]
    assert heads[0][:4] == ["table", "state", "lag", "waiting"]
    assert heads[1] == "table state lag waiting last change kind rows bytes files recent".split()


def test_what_has_no_room_is_counted() -> None:
    """Nobody takes the screen for all there is."""
    shown = lines(overview(*many(100)), 80, 24)

    listed = sum(line.strip().startswith("shop.t") for line in shown)
    assert f"… and {100 - listed} more tables: dmslake status" in shown


def test_a_long_way_out_is_shown_whole_where_there_is_room() -> None:
    """A command that is cut off can't be typed."""
    long = replace(BLOCKED, todo=f"remove the file, or `dmslake unblock raw/dms/shop/stores/ --skip-file {'x' * 40}.txt`")
    high, low = lines(overview(long, FINE), 80, 24), lines(overview(long, *many(40)), 80, 18)

    assert f"{'x' * 40}.txt`" in "".join(high)
    assert next(line for line in low if line.startswith("  → remove the file")).endswith("…")


def test_reasons_without_room_are_counted() -> None:
    """The list of tables keeps a part of the screen."""
    shown = lines(overview(*(replace(BLOCKED, name=f"shop.b{at}") for at in range(20))), 80, 24)

    told = sum(line == f"shop.b{at}  blocked" for line in shown for at in range(20))
    assert 1 <= told < 20
    assert f"… and {20 - told} more that need a person" in shown
    assert any(line.startswith("!") for line in shown)


def test_little_bars() -> None:
    """The rows of each change by their size; one that is undone is a dot, one without rows the least."""
    bars = [Bar("1", "full-load", inserted=1200), Bar("2", "incremental", 3, 40), Bar("3", "incremental", 9, undone=True), Bar("4", "x")]

    assert spark(bars) == "█▅·▁"
    assert spark([]) == ""
    assert len(spark(bars * 100)) == 12


def test_a_pipe_gets_all_columns_but_the_drawn_ones() -> None:
    """For grep and awk."""
    columns, rows = plain_rows((BLOCKED,), NOW)

    assert columns == ("table", "state", "lag", "waiting", "last change", "kind", "rows", "bytes", "files")
    assert rows == [["shop.stores", "blocked", "12 min", "3 files", "3 min ago", "incremental", "8", "1.2 KiB", "1"]]
