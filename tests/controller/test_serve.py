"""`dmslake serve`: what it answers, to whom, and what it never does. The looks are tested in tests/browser."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from controller.pages.pages import Pages
from controller.pages.render import ASSETS
from controller.pages.serve import App, listen
from controller.pages.views import Overview
from controller.reads import Reads
from glue_jobs.core.errors import UsageError
from tests.controller.world import HEAD, World, table_path

READS = ("Get", "List", "Head", "Describe", "Query", "Scan", "BatchGet")
PATH = table_path()
TABLE = {"path": str(PATH)}
HOST = "127.0.0.1:4711"


class Browser:
    """Asks an application as a browser on this machine would. defects: what the application did not expect."""

    def __init__(self, pages: Pages, **reads: Any) -> None:
        self.defects: list[str] = []
        self.reads = Reads(**reads)
        self.app = App(pages, self.reads, 5.0, lambda address, error: self.defects.append(f"{address}: {error}"))

    def ask(self, address: str = "/", query: dict[str, str] | None = None, method: str = "GET", **headers: str) -> TestResponse:
        environ = {"HTTP_HOST": HOST, **{f"HTTP_{name.upper()}": value for name, value in headers.items()}}
        return Client(self.app).open(address, method=method, query_string=query, environ_overrides=environ)


@contextmanager
def operations(world: World) -> Iterator[list[str]]:
    """What is asked of AWS within, by the operations' names."""
    seen: list[str] = []

    def note(model: Any, **_: Any) -> None:
        seen.append(model.name)

    events = [client.meta.events for client in (world.clients.s3, world.clients.dynamodb, world.clients.glue)]
    for each in events:
        each.register("before-call", note)
    try:
        yield seen
    finally:
        for each in events:
            each.unregister("before-call", note)


@pytest.fixture
def browser(world: World) -> Browser:
    world.put_loaded(PATH, "LOAD00000001.parquet")
    return Browser(Pages(world.session()))


def test_the_overview(browser: Browser) -> None:
    """Lists the table, with a link to its page."""
    got = browser.ask()

    assert (got.status_code, got.content_type) == (200, "text/html; charset=utf-8")
    assert "shop.orders" in got.text
    assert "/table?path=raw-bucket%2Fdms%2Fshop%2Forders%2F" in got.text
    assert browser.defects == []


@pytest.mark.parametrize(
    ("address", "query"), [("/table", TABLE), ("/change", {**TABLE, "change": HEAD}), ("/table", {**TABLE, "refresh": "0"})]
)
def test_pages(browser: Browser, address: str, query: dict[str, str]) -> None:
    """Each is a document about the table."""
    got = browser.ask(address, query)

    assert got.status_code == 200, got.text
    assert "shop.orders" in got.text
    assert HEAD in got.text


def test_a_table_without_an_item_has_a_page(browser: Browser, world: World) -> None:
    """The overview lists what it finds below the raw folder, and its link leads somewhere before any run has been there."""
    found = table_path("returns")
    world.put_raw(found, "LOAD00000001.parquet")

    got = browser.ask("/table", {"path": str(found)})

    assert "/table?path=raw-bucket%2Fdms%2Fshop%2Freturns%2F" in browser.ask().text
    assert got.status_code == 200
    assert "inactive" in got.text
    assert "dmslake activate" in got.text


@pytest.mark.parametrize("address", ["/", "/table", "/nothing", *ASSETS])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_answer_forbids_other_origins(browser: Browser, address: str, method: str) -> None:
    """By a policy without exceptions for what stands in the page; nothing is kept in a cache."""
    got = browser.ask(address, method=method)

    policy = got.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "frame-ancestors 'none'" in policy
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Referrer-Policy"] == "no-referrer"
    assert got.headers["Cache-Control"] == "no-store"
    assert bool(got.data) == (method == "GET")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4711", "127.0.0.1.evil.example", "localhost@evil", "", "[::1]:1", "127.0.0.1:", "a b"]
)
def test_a_foreign_host_is_refused(browser: Browser, world: World, host: str) -> None:
    """A page of another origin whose name was made to lead here gets nothing of ours."""
    with operations(world) as asked:
        got = browser.ask("/", host=host)

    assert got.status_code == 421
    assert "shop.orders" not in got.text
    assert asked == []


@pytest.mark.parametrize("host", ["127.0.0.1:4711", "localhost:4711", "LOCALHOST", "localhost:80"])
def test_this_machine_is_not(browser: Browser, host: str) -> None:
    """By either name, and through a tunnel that ends at another port."""
    assert browser.ask("/", host=host).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_lead_here_but_not_load(browser: Browser, site: str) -> None:
    """A link works, a hidden picture or frame doesn't make us read."""
    assert browser.ask("/", sec_fetch_site=site, sec_fetch_dest="document").status_code == 200
    assert browser.ask("/", sec_fetch_site=site, sec_fetch_dest="image").status_code == 403
    assert browser.ask("/", sec_fetch_site=site, sec_fetch_dest="iframe").status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
def test_nothing_can_be_sent(browser: Browser, method: str) -> None:
    """Only looks are answered."""
    got = browser.ask("/table", TABLE, method)

    assert got.status_code == 405
    assert got.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("address", "query", "status", "said"),
    [
        ("/table", {"path": "no.such"}, 404, "no.such"),
        ("/table", {"path": "raw-bucket/dms/shop/nothing/"}, 404, "raw-bucket/dms/shop/nothing/"),
        ("/change", {**TABLE, "change": "0000000009-000001-0123abcd"}, 404, "0000000009-000001-0123abcd"),
        ("/change", {**TABLE, "change": "../../x"}, 400, "../../x"),
        ("/nothing", {}, 404, "/nothing"),
        ("/table", {}, 400, "path"),
        ("/explain", {**TABLE, "key": " "}, 400, "key"),
        ("/table", {**TABLE, "colour": "red"}, 400, "colour"),
        ("/", {"refresh": "soon"}, 400, "soon"),
        ("/", {"refresh": "-1"}, 400, "-1"),
        ("/", {"refresh": "nan"}, 400, "nan"),
        ("/", {"refresh": "inf"}, 400, "inf"),
    ],
)
def test_what_is_not_there(browser: Browser, address: str, query: dict[str, str], status: int, said: str) -> None:
    """A page says so, in the same frame as any other."""
    got = browser.ask(address, query)

    assert (got.status_code, browser.defects) == (status, [])
    assert said in got.text
    assert "Traceback" not in got.text
    assert 'href="/"' in got.text


def test_a_name_given_twice_is_refused(browser: Browser) -> None:
    """Nobody guesses which one was meant."""
    got = browser.ask(f"/table?path={PATH}&path={PATH}")

    assert got.status_code == 400


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'&lt;"])
def test_what_was_asked_comes_back_as_text(browser: Browser, text: str) -> None:
    """An address can't bring markup into a page."""
    for address, query in [("/table", {"path": text}), ("/nothing" + text, {}), ("/table", {**TABLE, "at": text}), ("/", {text: text})]:
        got = browser.ask(address, query)

        assert got.status_code in (400, 404), (address, got.status_code)
        assert "<script>alert" not in got.text
        assert "<img" not in got.text
        assert "onerror=alert(1)>" not in got.text


class Fails(Pages):
    """Pages whose overview can't be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def glance(self, paths: Any = ()) -> Overview:
        raise self.error


def test_a_defect_is_words_without_a_traceback() -> None:
    """The person who started the server is told too."""
    browser = Browser(Fails(KeyError("<secret>")))

    got = browser.ask()

    assert got.status_code == 500
    assert "KeyError" in got.text
    assert "<secret>" not in got.text
    assert "Traceback" not in got.text
    assert browser.defects == ["/: '<secret>'"]


def test_aws_that_does_not_answer(world: World) -> None:
    """Gone, or refusing: a page with AWS's words and what to do, which is no defect."""
    world.clients.dynamodb.delete_table(TableName=world.table.name)
    world.clients.s3.delete_bucket(Bucket="raw-bucket")
    browser = Browser(Pages(world.session()))

    got = browser.ask()

    assert (got.status_code, browser.defects) == (502, [])
    assert "NoSuchBucket" in got.text
    assert "--raw" in got.text


def test_aws_that_is_slow_is_waited_for_by_the_page(world: World) -> None:
    """The page says so and asks again by itself; then it has the answer of the first read."""

    class Slow(Pages):
        go, reads = threading.Event(), 0

        def glance(self, paths: Any = ()) -> Overview:
            self.reads += 1
            assert self.go.wait(60)
            return super().glance(paths)

    pages = Slow(world.session())
    browser = Browser(pages, wait_seconds=0)
    first = browser.ask()
    pages.go.set()
    assert browser.reads._reads["/",].over.wait(60)
    later = browser.ask()

    assert (first.status_code, later.status_code, pages.reads) == (503, 200, 1)
    assert first.headers["Retry-After"] == "5"
    assert 'http-equiv="refresh"' in first.text.lower()


def test_several_tabs_cost_one_read(browser: Browser, world: World) -> None:
    """A second look within a second asks AWS nothing, whether it refreshes or not."""
    browser.ask()
    with operations(world) as asked:
        again = [browser.ask(query=query).status_code for query in ({}, {"refresh": "0"}, {"refresh": "60"})]

    assert again == [200, 200, 200]
    assert asked == []


def test_looking_writes_nothing(browser: Browser, world: World) -> None:
    """No page of any kind sends AWS anything but reads."""
    queries: list[tuple[str, dict[str, str]]] = [
        ("/", {}), ("/table", TABLE), ("/change", {**TABLE, "change": HEAD}), ("/diff", {**TABLE, "from": "previous"}),
        ("/explain", {**TABLE, "key": "1"}),
    ]  # fmt: skip
    with operations(world) as asked:
        for address, query in queries:
            browser.ask(address, query)

    assert asked != []
    assert [operation for operation in asked if not operation.startswith(READS)] == []


def test_the_page_refreshes_by_itself_unless_paused(browser: Browser) -> None:
    """Without a script, by the document's own head; a link pauses and resumes it."""
    running, paused = browser.ask(), browser.ask(query={"refresh": "0"})

    assert 'http-equiv="refresh"' in running.text.lower()
    assert "refresh=0" in running.text
    assert 'http-equiv="refresh"' not in paused.text.lower()


@pytest.fixture
def port(browser: Browser) -> Iterator[int]:
    """The server itself, on a free port."""
    server = listen(browser.app)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.port
    server.shutdown()
    thread.join(60)


def test_the_server_answers_this_machine_only(port: int) -> None:
    """It is bound to the loopback address, and says nothing of what it is made of."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    got = connection.getresponse()
    text = got.read().decode()

    assert got.status == 200
    assert "shop.orders" in text
    assert "werkzeug" not in str(got.headers).lower()
    connection.close()


def test_a_taken_port(port: int, browser: Browser) -> None:
    """Is said, with the way out."""
    with pytest.raises(UsageError) as caught:
        listen(browser.app, port)

    assert caught.value.code == "port-taken"
    assert str(port) in caught.value.message
