"""What a person finds on each live page, with the shop's data, in Chromium."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from infra.local.shop import ORDERS, PRODUCTS, STORES
from tests.browser.chrome import Browser
from tests.browser.conftest import Site

STATES = ["blocked", "paused", "behind", "fine", "fine", "inactive"]
NAMES = "table.tables tbody tr:not([hidden]) > th > a"


def names(browser: Browser) -> list[str]:
    """The tables that are shown, the shop's by their plain names."""
    shown = [element.text for element in browser.all(NAMES) if element.is_displayed()]
    return ["hostile" if "script" in name else name for name in shown]


def test_the_overview_begins_with_what_needs_a_person(browser: Browser, site: Site) -> None:
    """Blocked, then paused, with reason and way out; then those behind."""
    browser.open(site.address())

    assert names(browser) == ["shop.stores", "shop.products", "shop.orders", "hostile", "shop.returns", "shop.visits"]
    assert browser.texts("table.tables .state") == STATES
    stores = browser.all("table.tables tbody")[0].text
    assert "notes.txt" in stores
    assert "dmslake unblock" in stores
    assert browser.driver.title


def test_the_overview_counts(browser: Browser, site: Site) -> None:
    """Its figures are those of the shop."""
    browser.open(site.address())

    row = next(row for row in browser.all("table.tables tbody") if "shop.orders" in row.text)
    counts = [table.snapshot().rows for table in (*site.lake.tables.values(), site.hostile)]
    assert f"{site.lake.tables[ORDERS].snapshot().rows:,}" in row.text
    assert f"{sum(counts):,} rows" in browser.text(".sums")


def test_rows_are_sorted_by_a_click(browser: Browser, site: Site) -> None:
    """By any column, up and down; the heading says how, to a screen reader too."""
    browser.open(site.address())
    head = browser.driver.find_element("xpath", "//table[contains(@class,'tables')]//th[contains(.,'Rows')]")
    button = head.find_element("css selector", "button")

    orders = []
    for _ in range(2):
        button.click()
        orders.append((head.get_attribute("aria-sort"), names(browser)))

    assert {direction for direction, _ in orders} == {"ascending", "descending"}
    (_, first), (_, second) = sorted(orders)
    assert first[-1] == "shop.orders"
    assert second[0] == "shop.orders"
    assert sorted(first) == sorted(second) == sorted(names(browser))


def test_tables_are_filtered_by_state_and_words(browser: Browser, site: Site) -> None:
    """The two together; a clear of both shows all."""
    browser.open(site.address())
    browser.one("label:has(#only-behind)").click()
    behind = names(browser)
    browser.one("label:has(#only-all)").click()
    browser.one("#words").send_keys("NOTES.txt")
    by_reason = names(browser)
    browser.one("#words").send_keys(Keys.CONTROL, "a")
    browser.one("#words").send_keys(Keys.DELETE)

    assert behind == ["shop.orders"]
    assert by_reason == ["shop.stores"]
    assert len(names(browser)) == len(STATES)


def test_without_script_all_is_there(browser: Browser, site: Site) -> None:
    """The tables, and the filter by state; what would need a script is not offered."""
    with browser.without_script():
        browser.open(site.address())
        every = names(browser)
        browser.one("label:has(#only-paused)").click()
        paused = names(browser)

        assert len(every) == len(STATES)
        assert paused == ["shop.products"]
        assert [element for element in browser.all(".with-script, th button") if element.is_displayed()] == []


def test_a_table_tells_its_changes(browser: Browser, site: Site) -> None:
    """Newest first, with the re-apply and the rollback that it took back; drawn and in numbers."""
    browser.open(site.address())
    browser.link("shop.orders").click()

    kinds = browser.texts("table.changes tbody td:nth-child(3)")
    assert kinds[0].startswith("reapply")
    assert kinds[1].startswith("rollback")
    assert kinds[-1].startswith("full-load")
    assert len(browser.all("svg.timeline rect")) >= len(kinds)
    assert "coupon" in browser.text("ul.schema")
    assert "order_date_year=2024" in browser.text("table.partitions").replace(" ", "")


def test_undone_changes_look_undone(browser: Browser, site: Site) -> None:
    """Greyed in the picture, said in words in the list."""
    browser.open(site.address("/table", path=site.path(PRODUCTS)))

    standings = browser.texts("table.changes tbody td:last-child")
    assert any("undone" in text for text in standings)
    assert browser.all("svg.timeline .undone") != []
    assert "paused" in browser.text("h1")


def test_what_waits_is_listed(browser: Browser, site: Site) -> None:
    """The raw file that the last round wrote."""
    browser.open(site.address("/table", path=site.path(ORDERS)))

    waiting = [name for name in site.lake.feed.names(ORDERS) if not name.startswith("LOAD")][-1]
    assert waiting in browser.text()
    assert f"dmslake run {site.path(ORDERS)}" in browser.text(".commands")


def test_a_change_shows_rows_side_by_side(browser: Browser, site: Site) -> None:
    """Old and new values, input, files, and the command that undoes it."""
    changes = [record.id for record in reversed(list(site.lake.tables[STORES].lineage().back()))]
    browser.open(site.address("/change", path=site.path(STORES), change=changes[1]))

    text = browser.text()
    assert "Juneau" in text
    assert "1 inserted" in browser.text(".sums")
    assert "dmslake rollback" in browser.text(".commands")
    assert browser.all("table.files") != []


def test_updates_show_before_and_after(browser: Browser, site: Site) -> None:
    """The values that differ are marked."""
    record = next(each for each in site.lake.tables[PRODUCTS].lineage().back() if each.kind == "incremental" and each.counts.updated)
    browser.open(site.address("/change", path=site.path(PRODUCTS), change=record.id))

    before, after = browser.texts("table.updates tr.before del"), browser.texts("table.updates tr.after ins")
    assert len(before) == len(after) >= 1
    assert before != after


def test_two_states_are_compared_by_the_form(browser: Browser, site: Site) -> None:
    """Typed into the table's page."""
    browser.open(site.address("/table", path=site.path(STORES)))
    first = browser.all("table.changes tbody th a")[-1].get_attribute("href") or ""
    change = re.search(r"change=([^&]+)", first)
    assert change is not None
    field = browser.one("form[action='/diff'] input[name='from']")
    field.clear()
    field.send_keys(change[1], Keys.ENTER)
    WebDriverWait(browser.driver, 30).until(lambda driver: "/diff" in driver.current_url)

    assert "1 inserted" in browser.text(".sums")
    assert "Juneau" in browser.text("table.inserts")


def test_a_row_is_explained_by_the_form(browser: Browser, site: Site) -> None:
    """By its key: each change that touched it, oldest first, and the row as it is."""
    browser.open(site.address("/table", path=site.path(ORDERS)))
    browser.one("form[action='/explain'] input[name='key']").send_keys("1180", Keys.ENTER)
    WebDriverWait(browser.driver, 30).until(lambda driver: "/explain" in driver.current_url)

    assert [text.split()[0] for text in browser.texts("ol.life h3")][:2] == ["insert", "update"]
    assert "shipped" in browser.text("ol.life")


@pytest.mark.parametrize(
    ("place", "query", "said"),
    [
        ("/table", {"path": "shop.nothing"}, "shop.nothing"),
        ("/change", {"path": "shop.orders", "change": "0000000001-000001-00000000"}, "0000000001-000001-00000000"),
        ("/explain", {"path": "shop.orders", "key": "no number"}, "no number"),
        ("/diff", {"path": "shop.orders", "from": "yesterday"}, "yesterday"),
    ],
)
def test_a_wrong_wish_is_answered_in_words(browser: Browser, site: Site, place: str, query: dict[str, str], said: str) -> None:
    """With a way back."""
    browser.open(site.address(place, **query))
    text = browser.text()
    browser.complaints()  # Chromium's own line about the status

    assert said in text
    assert "What to do" in text
    browser.one("a.brand").click()
    assert "shop.orders" in browser.text()


def reloads(browser: Browser, address: str) -> int:
    """How often a page was asked for again."""
    return sum(url == address for url in browser.requests()) - 1


def test_the_page_follows_what_happens(browser: Browser, site: Site) -> None:
    """It loads itself again until a person pauses it."""
    address = site.address(refresh="1")
    browser.open(address)
    WebDriverWait(browser.driver, 30).until(lambda _: reloads(browser, address) >= 1)
    browser.link("pause").click()

    assert "refresh=0" in browser.driver.current_url
    assert browser.all("body[data-refresh]") == []
    browser.link("go on").click()
    assert len(browser.all("body[data-refresh='60']")) == 1


def test_it_follows_without_script_too(browser: Browser, site: Site) -> None:
    """By the document's own head."""
    with browser.without_script():
        address = site.address("/table", path=site.path(STORES), refresh="1")
        browser.open(address)
        WebDriverWait(browser.driver, 30).until(lambda _: reloads(browser, address) >= 1)


@pytest.mark.parametrize("at", ["typing", "opened"])
def test_nobody_is_interrupted(browser: Browser, site: Site, at: str) -> None:
    """What is being typed or was opened stays; the page goes on when that is over."""
    address = site.address("/table", path=site.path(STORES), refresh="1")
    browser.open(address)
    busy = browser.one("form input[name=key]") if at == "typing" else browser.all("details > summary")[-1]
    if at == "typing":
        busy.send_keys("12")
    else:
        busy.click()
    browser.driver.execute_async_script("setTimeout(arguments[0], 2500)")  # longer than two refreshes, by the page's own clock

    assert reloads(browser, address) == 0
    if at == "typing":
        busy.clear()
    else:
        busy.click()
    browser.driver.execute_script("document.activeElement.blur()")
    WebDriverWait(browser.driver, 30).until(lambda _: reloads(browser, address) >= 1)
