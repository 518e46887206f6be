"""Names and values in pages are text: they can neither end a tag, nor turn the writing round, nor fill a page."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from markupsafe import Markup

from controller.pages import text

NOW = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
HOSTILE = ("<script>alert(1)</script>", "\"' onmouseover=alert(1)", "&lt;b&gt;", "</title>", "\u202etxt.exe", "a\nb\x00\x1b[31m")


@pytest.mark.parametrize("given", HOSTILE)
@pytest.mark.parametrize("show", [text.name, text.sentence, text.value])
def test_hostile_text_is_text(show: object, given: str) -> None:
    """No character of it has a meaning in HTML, or to the direction of the writing."""
    shown = show(given)  # type: ignore[operator]
    inside = str(shown).removeprefix("<bdi>").removesuffix("</bdi>")

    assert isinstance(shown, Markup)
    assert str(shown).startswith("<bdi>")
    assert not set(inside) & set("<>\"'\u202e\n\x00\x1b")
    assert Markup(inside).unescape().replace("\\n", "\n").startswith(given[0].replace("\u202e", "\\u202e"))


def test_a_long_value_is_cut_and_says_so() -> None:
    """Its length is told."""
    shown = str(text.value("x" * 10_000))

    assert len(shown) < 300
    assert "… (10,000 characters)" in shown


def test_null_and_empty_are_not_texts_that_say_so() -> None:
    """They are marked up."""
    assert text.value(None) == Markup('<i class="null">null</i>')
    assert text.value("") == Markup('<i class="null">empty</i>')
    assert text.value("null") == Markup("<bdi>null</bdi>")
    assert text.value(True) == Markup("true")
    assert text.value(1.5) == Markup("<bdi>1.5</bdi>")


def test_commands_in_a_message_are_code() -> None:
    """And stay text."""
    assert text.sentence("`dmslake run <b>` does") == Markup("<bdi><code>dmslake run &lt;b&gt;</code> does</bdi>")


def test_times_are_told_as_people_do_with_utc_beside() -> None:
    """How long ago, and when."""
    shown = text.moment(NOW - timedelta(minutes=3), NOW)

    assert shown == Markup('<time datetime="2024-05-01T11:57:00Z" title="2024-05-01 11:57:00.000 UTC">3 min ago</time>')
    assert text.moment(None, NOW) == Markup("–")
    assert text.moment_of("2024-05-01T11:57:00Z", NOW) == shown
    assert text.moment_of("<soon>", NOW) == Markup("<bdi>&lt;soon&gt;</bdi>")
    assert ">just now<" in text.moment(NOW + timedelta(seconds=30), NOW)
    assert ">in 3 min<" in text.moment(NOW + timedelta(minutes=3), NOW)


def test_a_change_id_is_short_and_whole() -> None:
    """Lease and number tell a table's changes apart; the whole id is its title. What is none stays what it is, as text."""
    assert text.change_id("0000000012-000003-0123abcd") == Markup('<span class="id" title="0000000012-000003-0123abcd">12-3</span>')
    assert text.change_id("the empty <table>") == Markup("<bdi>the empty &lt;table&gt;</bdi>")


def test_numbers_have_units_and_dashes() -> None:
    """A dash is what isn't known; nothing is 0."""
    assert (text.count(12345), text.count(0), text.count(None)) == ("12,345", "0", "–")
    assert (text.size(0), text.size(None), text.size(3 << 20)) == ("0 B", "–", "3.0 MiB")
    assert (text.factor(None), text.factor(1.44), text.factor(31.6)) == ("–", "×1.4", "×32")
    assert (text.duration(None), text.duration(0.25), text.duration(600)) == ("–", "0.2 s", "10 min")
