"""How answers are printed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from controller.cli.output import Answer, JsonOutput, Output, TextOutput, View, aligned, count_text, duration_text, size_text
from controller.cli.reading import print_csv, print_json
from glue_jobs.core.errors import ConfigurationError

VIEW = View(("table", "rows", "reason"), [["b/s/orders/", "1,234", "two\nlines"], ["b/s/a/", "", ""]])


class Terminal(io.StringIO):
    """A stream that says a person watches."""

    def isatty(self) -> bool:
        return True


def test_columns_are_aligned() -> None:
    """Numbers stand on the right, a row is one line."""
    assert aligned(VIEW) == [
        "table         rows  reason",
        "b/s/orders/  1,234  two lines",
        "b/s/a/",
    ]


def test_text_prints_tables_then_lines() -> None:
    """An empty table has no heads."""
    stream = io.StringIO()

    TextOutput(stream).show(Answer({}, [View(("a",), []), VIEW], ["a line"]))

    assert stream.getvalue().splitlines()[0].startswith("table")
    assert stream.getvalue().splitlines()[-1] == "a line"


def test_a_terminal_gets_frames_and_no_markup() -> None:
    """Square brackets in names are shown as they are."""
    stream = Terminal()

    TextOutput(stream).show(Answer({}, [View(("table",), [["[red]x"]])]))

    assert "[red]x" in stream.getvalue()
    assert len(stream.getvalue().splitlines()) > 2


def test_rows_as_json_are_safe_to_print(capsys: pytest.CaptureFixture[str]) -> None:
    """A name or a value that would move a cursor, turn the writing round or begin a line is spelled out, and reads back as it was."""
    forged = "a\x9b31m\u202egnp.exe\u2028b\r\nc\u2066é"

    print_json({"path": forged}, ("id", forged), iter([[(1, forged)], [(2, None)]]))

    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    assert json.loads(out) == {"path": forged, "rows": [{"id": 1, forged: forged}, {"id": 2, forged: None}]}


def test_rows_are_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is not escaped into another one: CSV has no escapes, and JSON others than Python."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)

    print_csv(("n\u00e4me",), iter([[("\U0001f600",)], [], [("\u2212",)]]))
    print_json({"read": 1}, ("n\u00e4me",), iter([[("\U0001f600",)], [], [("\u2212",)]]))

    csv, _, document = out.buffer.getvalue().decode("utf-8").partition("{")
    assert csv == "n\u00e4me\n\U0001f600\n\u2212\n"
    assert json.loads("{" + document) == {"read": 1, "rows": [{"n\u00e4me": "\U0001f600"}, {"n\u00e4me": "\u2212"}]}


class Full(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_rows_that_can_not_be_printed_are_told_from_rows_that_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is said as that; what reading raises passes as it is; nobody who reads any more is no error of ours."""

    def unreadable() -> Iterator[list[tuple[Any, ...]]]:
        raise OSError("a damaged file")
        yield []

    with pytest.raises(OSError, match="a damaged file"):
        print_csv((), unreadable())
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(ConfigurationError, match="No space left on device; what was done stands") as raised:
        print_csv(("id",), iter([[(1,)]]))
    assert raised.value.code == "not-printed"
    monkeypatch.setattr(Full, "write", lambda *_: (_ for _ in ()).throw(BrokenPipeError()))
    with pytest.raises(BrokenPipeError):
        print_csv(("id",), iter([[(1,)]]))


class Unread(io.StringIO):
    """A pipe from which nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("output", [JsonOutput(), TextOutput()], ids=["json", "text"])
def test_an_answer_that_nobody_reads_does_not_end_the_command(monkeypatch: pytest.MonkeyPatch, output: Output) -> None:
    """It is printed when all is done, and the command has an exit code of its own."""
    monkeypatch.setattr(sys, "stdout", Unread())

    output.show(Answer({"name": "x"}, [VIEW], ["a line"]))


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the data, names as they are."""
    JsonOutput().show(Answer({"name": "Größe"}, [VIEW], ["a line"]))

    out = capsys.readouterr().out
    assert json.loads(out) == {"name": "Größe"}
    assert "Größe" in out


@pytest.mark.parametrize(
    ("size", "text"), [(0, ""), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (3 * 1024**5, "3072.0 TiB")]
)
def test_size_text(size: int, text: str) -> None:
    """Binary units, one digit."""
    assert size_text(size) == text


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2.0 h"), (172800, "2.0 d")])
def test_duration_text(seconds: float | None, text: str) -> None:
    """The unit that a person would take."""
    assert duration_text(seconds) == text


def test_count_text() -> None:
    """Nothing for nothing, and a sign where one is wanted."""
    assert [count_text(0), count_text(1234), count_text(5, "+")] == ["", "1,234", "+5"]
