"""Names and values that would be markup, a script or a trick of writing direction are text on every page."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest

from controller.pages.pages import Pages
from controller.pages.render import render_report
from controller.pages.report import read_report
from tests.browser.chrome import Browser
from tests.browser.conftest import Site
from tests.browser.lake import HOSTILE_COLUMN, HOSTILE_TEXTS

OWN_SCRIPTS = {"/pages.js"}


def addresses(site: Site) -> dict[str, str]:
    """Every page about the hostile table."""
    path = str(site.hostile.path)
    newest, oldest = (record.id for record in site.hostile.lineage().back())
    return {
        "overview": site.address(),
        "table": site.address("/table", path=path),
        "change": site.address("/change", path=path, change=newest),
        "load": site.address("/change", path=path, change=oldest),
        "diff": site.address("/diff", path=path, from_="previous"),
        "explain": site.address("/explain", path=path, key="3"),
        "no such key": site.address("/explain", path=path, key=HOSTILE_TEXTS[0]),
        "no such change": site.address("/diff", path=path, from_=HOSTILE_TEXTS[2]),
        "no such table": site.address("/table", path=HOSTILE_TEXTS[2]),
        "nothing": site.address("/" + "<img src=x onerror=document.title='hit'>"),
    }


@pytest.mark.parametrize(
    "page", ["overview", "table", "change", "load", "diff", "explain", "no such key", "no such change", "no such table", "nothing"]
)
def test_nothing_of_a_table_becomes_part_of_a_page(browser: Browser, site: Site, page: str) -> None:
    """No script runs, no element appears, nothing is asked for; the page is as wide as it should be."""
    browser.open(addresses(site)[page].replace("<", "%3C").replace(">", "%3E").replace("'", "%27").replace(" ", "%20"))
    if page.startswith("no"):
        browser.complaints()  # Chromium's own line about the status

    scripts = [script.get_attribute("src") for script in browser.all("script")]
    assert "hit" not in browser.driver.title
    assert {urljoin("/", (source or "inline").removeprefix(site.url)) for source in scripts} <= OWN_SCRIPTS
    assert browser.all("main img, main style, main iframe, main [onerror]") == []
    assert browser.script("problems") == []


def test_values_are_shown_as_they_are(browser: Browser, site: Site) -> None:
    """Each can be read, the long one cut, what would obey or turn the writing round spelled out."""
    browser.open(addresses(site)["change"])
    text = browser.text("main")

    assert HOSTILE_TEXTS[0] in text
    assert HOSTILE_TEXTS[1] in text
    assert HOSTILE_TEXTS[2] in text
    assert HOSTILE_COLUMN in text
    assert "שלום עולם" in text
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "\\x1b[31m" in text
    assert len(text) < 20_000


def test_commands_to_copy_name_the_table_safely(browser: Browser, site: Site) -> None:
    """Pasted into a shell, the hostile name is one word."""
    browser.open(addresses(site)["table"])
    lines = [element.get_attribute("data-copy") or "" for element in browser.all("code.command")]

    assert lines != []
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "dmslake"
        assert str(site.hostile.path) in words


def test_every_link_leads_somewhere(browser: Browser, site: Site) -> None:
    """From every page of every table, to pages of this server only."""
    starts = [*addresses(site).values()][:6] + [site.address("/table", path=site.path(name)) for name in site.lake.tables]
    seen: dict[str, int] = {}
    for start in starts:
        browser.open(start)
        for link in browser.driver.execute_script("return [...document.links].map((link) => link.href)"):
            seen.setdefault(link.split("#")[0], 0)
    for link in seen:
        assert link.startswith(site.url), link
        try:
            with urlopen(link, timeout=60) as answer:
                seen[link] = answer.status
        except HTTPError as error:
            seen[link] = error.code

    assert {link: status for link, status in seen.items() if status != 200} == {}
    assert len(seen) > 20


def test_the_report_is_one_file_that_asks_for_nothing(browser: Browser, site: Site, tmp_path: Path) -> None:
    """Opened from a disk, with and without script: all tables, no request, no complaint; its links lead into itself."""
    file = tmp_path / "report.html"
    file.write_text(render_report(read_report(Pages(site.session), 20, 5)), "utf-8")
    browser.open(file.as_uri())
    problems = browser.script("problems")
    with browser.without_script():
        browser.open(file.as_uri())
        shown = browser.text()
        browser.link("shop.orders").click()
        page = browser.text()

    assert problems == []
    assert "shop.stores" in shown
    assert "reapply" in page
    assert {url.split("#")[0] for url in browser.requests() if not url.startswith(("about:", "data:"))} == {file.as_uri()}
