"""Names, values, numbers and times as HTML text. What comes from tables can neither end a tag nor turn the writing round."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup, escape

from controller.amounts import duration_text, size_text
from controller.history import rounded_up, time_text
from controller.pages.steps import when
from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.printable import printable

LONGEST_NAME = 120
LONGEST_VALUE = 200
LONGEST_SENTENCE = 2000
_CODE = re.compile(r"`([^`\n]+)`")


def short(text: str, most: int) -> str:
    """The text on one line, cut off with its length told; what would turn the writing round or can't be seen is spelled out."""
    if len(text) <= most:
        return printable(text)
    return f"{printable(text[:most])}… ({len(text):,} characters)"


def name(text: object, most: int = LONGEST_NAME) -> Markup:
    """A name of a table, column, file or folder, isolated from the direction of the text around it."""
    return Markup("<bdi>{}</bdi>").format(short(str(text), most))


def sentence(text: object) -> Markup:
    """A message: what stands between backquotes is code."""
    parts = _CODE.split(short(str(text), LONGEST_SENTENCE))
    html = [escape(part) if place % 2 == 0 else Markup("<code>{}</code>").format(part) for place, part in enumerate(parts)]
    return Markup("<bdi>{}</bdi>").format(Markup("").join(html))


def value(given: Any) -> Markup:
    """A value of a row. Null and the empty text are told apart from texts that say so."""
    if given is None:
        return Markup('<i class="null">null</i>')
    if given == "":
        return Markup('<i class="null">empty</i>')
    if isinstance(given, bool):
        return Markup("true" if given else "false")
    return name(given if isinstance(given, str) else str(given), LONGEST_VALUE)


def is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)


def count(number: float | None) -> str:
    """`12,345`; a dash for what isn't known."""
    return "–" if number is None else f"{number:,.0f}"


def size(number: float | None) -> str:
    """`12.3 MiB`; a dash for what isn't known."""
    return "–" if number is None else size_text(number) or "0 B"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if 0 < seconds < 10 else duration_text(seconds)


def change_id(change: str) -> Markup:
    """A change's id, short: lease and number in it, which no other change of the table has; the whole one as its title."""
    try:
        at = ChangeId.parse(change)
    except UsageError:
        return name(change)
    return Markup('<span class="id" title="{}">{}-{}</span>').format(change, at.fence, at.counter)


def moment(time: datetime | None, now: datetime) -> Markup:
    """How long ago it was, with the time in UTC as title."""
    if time is None:
        return Markup("–")
    utc = time.astimezone(timezone.utc)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", of_change(utc), _ago((now - utc).total_seconds())
    )


def moment_of(written: str, now: datetime) -> Markup:
    """The same of a time that is written as a text (ISO 8601); the text itself where it is none."""
    try:
        return moment(when(written), now)
    except (ValueError, TypeError):
        return name(written)


def _ago(seconds: float) -> str:
    if seconds < 0:
        return "just now" if seconds > -60 else f"in {duration_text(-seconds)}"
    return "just now" if seconds < 5 else f"{duration_text(seconds)} ago"


def exact(time: datetime | None) -> str:
    """`2024-05-01 12:00:00 UTC`."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC" if time is not None else ""


def of_change(time: datetime | None) -> str:
    """`2024-05-01 12:00:00.735 UTC`: who copies it means that change, not the one before."""
    return f"{time_text(rounded_up(time), 'milliseconds')} UTC" if time is not None else ""


def factor(number: float | None) -> str:
    """`×30`, `×1.4`."""
    if number is None:
        return "–"
    return f"×{number:,.0f}" if number >= 10 else f"×{number:.1f}"
