"""HTML of pages, by the templates beside this file. Whatever comes from tables is text: it is escaped, shortened and isolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.pages.views import Page, Report


@dataclass(frozen=True)
class Live:
    """What the live pages have beyond a report. refresh_seconds: the page loads itself again after so long, 0 for never; the page has a
    link that changes the address's `refresh` to 0 and back to `every`."""

    refresh_seconds: float = 0.0
    every: float = 5.0


# What the live pages' Content-Security-Policy must allow, and no more.
LIVE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Of the live pages: address → (bytes, content type). Pages ask for nothing else of their own host but these and other pages.
ASSETS: Mapping[str, tuple[bytes, str]] = {}


def render(page: Page, live: Live | None = None) -> str:
    """The whole document of a live page. The forms of a table's page are GETs of /diff (path, from, to) and /explain (path, key)."""
    raise NotImplementedError


def render_report(report: Report) -> str:
    """One document that holds everything, needs no network and no script; its policy forbids both."""
    raise NotImplementedError
