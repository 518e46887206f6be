"""`dmslake watch` in a real terminal, a pipe, and with an AWS that goes away."""

from __future__ import annotations

import os
from typing import Any

import pytest

from controller.cli import main
from tests.controller.terminal import Terminal
from tests.controller.world import World, as_json, table_path

PATH, OTHER = table_path("orders"), table_path("stores")
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"
ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture
def seen(served: World) -> World:
    """A table that is loaded, and one that nobody keeps up."""
    served.put_loaded(PATH, "LOAD00000001.parquet")
    served.put_raw(OTHER, "LOAD00000001.parquet")
    return served


def test_it_follows_tables_and_window_until_ctrl_c(seen: World) -> None:
    """A new file shows at the next look, a new size at once, and at the end the terminal is as it was."""
    with Terminal(["watch", "--every", "1"], os.environ) as terminal:
        first = terminal.until(lambda lines: any("shop.orders" in line for line in lines) and lines[-1].startswith("read"))
        seen.put_raw(PATH, "20240501-120000000.parquet")
        terminal.until(lambda lines: any("shop.orders" in line and "behind" in line and "1 file" in line for line in lines))
        terminal.resize(50, 12)
        # Bytes come as they come: the lines of one look are not all there at once.
        terminal.until(
            lambda lines: (
                len(lines) == 12
                and lines[-1].startswith("read")
                and "1 behind" in lines[0]
                and any("shop.orders" in line for line in lines)
            )
        )
        code = terminal.interrupt()

    assert "1 fine · 1 inactive" in first[0]
    assert code == 0
    assert terminal.raw.count(ENTER_SCREEN) == terminal.raw.count(LEAVE_SCREEN) == 1
    assert terminal.raw.rindex(SHOW_CURSOR) > terminal.raw.rindex(HIDE_CURSOR)


def test_what_was_read_stays_when_aws_goes_away(seen: World) -> None:
    """With what is wrong, and since when."""
    with Terminal(["watch", "--every", "1"], os.environ, columns=120) as terminal:
        terminal.until(lambda lines: any("shop.orders" in line for line in lines))
        for bucket in ("raw-bucket",):
            for item in seen.clients.s3.list_objects_v2(Bucket=bucket)["Contents"]:
                seen.clients.s3.delete_object(Bucket=bucket, Key=item["Key"])
            seen.clients.s3.delete_bucket(Bucket=bucket)
        lines = terminal.until(lambda lines: "since then: AWS answered NoSuchBucket" in lines[-1])

        assert any("shop.orders" in line for line in lines)
        assert terminal.interrupt() == 0


def test_wrong_calls_end_as_with_any_command(seen: World) -> None:
    """Before the screen is taken."""
    with Terminal(["watch", "no.such"], os.environ) as terminal:
        assert terminal.ended() == 2
        shown = "\n".join(terminal.lines)

    assert "no.such" in shown
    assert ENTER_SCREEN not in terminal.raw


def test_a_pipe_gets_it_once(seen: World, capsys: pytest.CaptureFixture[str]) -> None:
    """And says so, on the other stream."""
    code = main(["watch"])

    printed = capsys.readouterr()
    assert code == 0
    assert "shown once" in printed.err
    assert [line.split()[:2] for line in printed.out.splitlines()] == [
        ["table", "state"],
        ["shop.orders", "fine"],
        ["shop.stores", "inactive"],
    ]


def test_json_is_the_overview(seen: World, capsys: pytest.CaptureFixture[str]) -> None:
    """One document, of the tables that were named."""
    assert main(["watch", "shop.orders", "--output", "json"]) == 0

    data: Any = as_json(capsys.readouterr().out)
    assert data["watch"] == 1
    assert [(table["name"], table["state"], table["rows"]) for table in data["tables"]] == [("shop.orders", "fine", 10)]
    assert data["totals"]["tables"] == 1
