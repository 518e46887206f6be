"""HTML of pages, by the templates beside this file. Whatever comes from tables is text: it is escaped, shortened and isolated."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import glue_jobs
from controller.history import HEAD, LIVE, LOST, STEP, UNDONE
from controller.pages import drawing, links, text
from controller.pages.links import Links, LiveLinks, ReportLinks
from controller.pages.views import ChangePage, DiffPage, ErrorPage, Overview, Page, Partition, Report, RowsApart, Step, TablePage
from glue_jobs.core.printable import printable

TEMPLATES = Path(__file__).parent / "templates"
# What the live pages' Content-Security-Policy must allow, and no more.
LIVE_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
# Of the live pages: address → (bytes, content type). Pages ask for nothing else of their own host but these and other pages.
ASSETS: Mapping[str, tuple[bytes, str]] = {
    "/pages.css": ((TEMPLATES / "pages.css").read_bytes(), "text/css; charset=utf-8"),
    "/pages.js": ((TEMPLATES / "pages.js").read_bytes(), "text/javascript; charset=utf-8"),
}
_STANDINGS = {
    HEAD: ("head", "The table has its state."),
    LIVE: ("live", "Its rows are in the table."),
    UNDONE: ("undone", "It is undone: its rows are not in the table."),
    LOST: ("lost", "It was taken back before it was published, because its uploads were gone."),
    STEP: ("step", "A step between states; the table has gone on since."),
    "staged": ("staged", "It is staged: readers see nothing of it."),
    "": ("–", ""),
}


@dataclass(frozen=True)
class Live:
    """What the live pages have beyond a report. refresh_seconds: the page loads itself again after so long, 0 for never; the page has a
    link that changes the address's `refresh` to 0 and back to `every`."""

    refresh_seconds: float = 0.0
    every: float = 5.0


def render(page: Page, live: Live | None = None) -> str:
    """The whole document of a live page. The forms of a table's page are GETs of /diff (path, from, to) and /explain (path, key)."""
    live, where = live or Live(), LiveLinks()
    name, title = _template(page)
    here = _here(page)
    return _ENVIRONMENT.get_template("live.html").render(
        body=_body(name, page, where, is_live=True),
        title=f"{title} – dmslake",
        links=where,
        now=getattr(page, "now", None),
        refresh=_seconds(live.refresh_seconds),
        refreshes=here is not None and bool(live.every),
        every=_seconds(live.every),
        pause=_with_refresh(here, 0.0),
        go_on=_with_refresh(here, live.every),
    )


def render_report(report: Report) -> str:
    """One document that holds everything, needs no network and no script; its policy forbids all but its own style and script."""
    numbers = {page.row.path: number for number, page in enumerate(report.tables, 1)}
    where = ReportLinks(numbers, frozenset((page.path, page.step.change) for page in report.changes))
    sections = [("overview", _body("overview.html", report.overview, where), "", "")]
    changes: dict[str, list[ChangePage]] = {}
    for change in report.changes:
        changes.setdefault(change.path, []).append(change)
    for page in report.tables:
        sections.append((where.table_id(page.row.path), _body("table.html", page, where), where.overview(), ""))
        for change in changes.get(page.row.path, ()):
            body = _body("change.html", change, where)
            sections.append((where.change_id(change.path, change.step.change), body, where.table(change.path), text.name(change.name)))
    style, script = (_inline(ASSETS[name][0]) for name in ("/pages.css", "/pages.js"))
    return _ENVIRONMENT.get_template("report.html").render(
        report=report, sections=sections, now=report.overview.now, version=glue_jobs.__version__, style=style, script=script,
        policy="; ".join((
            "default-src 'none'", f"style-src {_hash(style)}", f"script-src {_hash(script)}", "img-src data:", "base-uri 'none'",
            "form-action 'none'",
        )),
    )  # fmt: skip


def _body(template: str, page: Any, where: Links, *, is_live: bool = False) -> Markup:
    places = {"diff": links.DIFF, "explain": links.EXPLAIN}
    return Markup(_ENVIRONMENT.get_template(template).render(page=page, links=where, live=is_live, live_places=places))


def _template(page: Page) -> tuple[str, str]:
    """(the template of a page, its title)."""
    if isinstance(page, Overview):
        return "overview.html", "tables"
    if isinstance(page, TablePage):
        return "table.html", text.short(page.row.name, text.LONGEST_NAME)
    if isinstance(page, ErrorPage):
        return "error.html", text.short(page.title, text.LONGEST_NAME)
    name = text.short(page.name, text.LONGEST_NAME)
    if isinstance(page, ChangePage):
        return "change.html", f"change {page.step.change} of {name}"
    return ("diff.html", f"two states of {name}") if isinstance(page, DiffPage) else ("explain.html", f"a row of {name}")


def _here(page: Page) -> tuple[str, dict[str, str]] | None:
    """The address of a page that refreshes itself, without its refresh; None for others."""
    if isinstance(page, Overview):
        return links.OVERVIEW, {}
    if isinstance(page, TablePage):
        return links.TABLE, {"path": page.row.path, **({"at": page.at} if page.at else {})}
    return None


def _with_refresh(here: tuple[str, dict[str, str]] | None, seconds: float) -> str:
    return f"{here[0]}?{urlencode({**here[1], 'refresh': _seconds(seconds) or '0'})}" if here else ""


def _seconds(seconds: float) -> str:
    """`5`, `0.5`; '' for 0."""
    return f"{seconds:g}" if seconds else ""


def _inline(data: bytes) -> Markup:
    """A style or script as it stands in a document. It is ours, and holds nothing that would end its element."""
    source = data.decode("utf-8")
    assert "</" not in source
    return Markup(source)


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode('utf-8')).digest()).decode()}'"


def _iso(time: datetime) -> str:
    return f"{time.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _sizes(partition: Partition, small_bytes: int) -> drawing.Picture:
    return drawing.sizes(partition.sizes, small_bytes, partition.small > 1)


def _timeline(steps: tuple[Step, ...]) -> drawing.Picture:
    return drawing.timeline(steps)


def _number_columns(rows: RowsApart) -> frozenset[int]:
    """The places of the columns that hold numbers, as far as the rows that are shown tell."""
    shown = [*rows.inserted, *rows.deleted, *(update.after for update in rows.updated)]
    return frozenset(at for row in shown for at, given in enumerate(row) if text.is_number(given))


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        name=text.name, sentence=text.sentence, value=text.value, spelled=printable, count=text.count, size=text.size,
        duration=text.duration, change_id=text.change_id, moment=text.moment, moment_of=text.moment_of, exact=text.exact,
        of_change=text.of_change,
        factor=text.factor, iso=_iso,
        spark=drawing.spark, sizes=_sizes, timeline=_timeline, standing=lambda word: _STANDINGS[word][0],
        number_columns=_number_columns, standing_sentence=lambda word: _STANDINGS[word][1],
    )  # fmt: skip
    environment.tests["a_number"] = text.is_number
    environment.globals["history_command"] = lambda path: f"dmslake history {shlex.quote(path)} --all"
    return environment


_ENVIRONMENT = _environment()
