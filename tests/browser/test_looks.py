"""How the pages look and behave for everybody: wide and narrow, light and dark, by keyboard, to a screen reader. Pictures are kept."""

from __future__ import annotations

import pytest

from infra.local.shop import ORDERS, PRODUCTS
from tests.browser.chrome import NARROW, WIDE, Browser
from tests.browser.conftest import Site

PAGES = ("overview", "table", "paused", "change", "diff", "explain", "hostile", "error")
TABS = 60


def address(site: Site, page: str) -> str:
    """The URL of one page of each kind."""
    orders, products = site.path(ORDERS), site.path(PRODUCTS)
    if page == "overview":
        return site.address()
    if page == "change":
        record = next(each for each in site.lake.tables[PRODUCTS].lineage().back() if each.kind == "incremental" and each.counts.updated)
        return site.address("/change", path=products, change=record.id)
    return {
        "table": site.address("/table", path=orders),
        "paused": site.address("/table", path=products),
        "diff": site.address("/diff", path=products, from_="previous"),
        "explain": site.address("/explain", path=orders, key="1180"),
        "hostile": site.address("/table", path=str(site.hostile.path)),
        "error": site.address("/table", path="no.such"),
    }[page]


@pytest.mark.parametrize("page", PAGES)
def test_each_page_at_each_width_and_in_each_light(browser: Browser, site: Site, page: str) -> None:
    """No text is too pale (AA), nothing is wider than the view, nothing lacks a name; a picture of each is kept."""
    problems: dict[str, list[object]] = {}
    for name, width in (("wide", WIDE), ("narrow", NARROW)):
        for scheme in ("light", "dark"):
            browser.look(width, scheme)
            browser.open(address(site, page))
            browser.picture(f"{page}-{name}-{scheme}")
            found = [*browser.script("problems"), *browser.script("contrast")]
            if found:
                problems[f"{name} {scheme}"] = found
    if page == "error":
        browser.complaints()  # Chromium's own line about the status

    assert problems == {}


@pytest.mark.parametrize("page", ["overview", "table", "change"])
def test_the_keyboard_reaches_everything_in_order(browser: Browser, site: Site, page: str) -> None:
    """Tab goes through the page from top to bottom, and what has the focus is seen and looks like it."""
    browser.open(address(site, page))
    reached = []
    for _ in range(TABS):
        browser.tab()
        place, words, is_seen = browser.script("focus")
        if reached and place <= reached[-1][0]:
            break
        reached.append((place, words, is_seen))

    assert "skip" in reached[0][1].lower()
    assert [words for _, words, is_seen in reached if not is_seen] == []
    assert len(reached) > 5


def test_the_skip_link_skips(browser: Browser, site: Site) -> None:
    """The next tab is in the content."""
    browser.open(address(site, "overview"))
    browser.tab().click()
    browser.tab()

    assert browser.driver.execute_script("return document.querySelector('main').contains(document.activeElement)")


def test_a_zoomed_page_is_whole(browser: Browser, site: Site) -> None:
    """At 320 pixels, as at 400 % of a laptop's screen, all that a row says first is still there."""
    browser.look(320)
    browser.open(address(site, "overview"))

    assert "shop.orders" in browser.text("table.tables")
    assert browser.script("problems") == []
