"""One Chromium, one lake and one server of the live pages for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pytest

from controller.pages.pages import Pages
from controller.reads import Reads
from controller.session import Session
from glue_jobs.aws.clients import Clients
from tests.browser.chrome import Browser, started
from tests.browser.lake import ShopLake, serving
from tests.protocol.until import until
from tests.quick_aws import QuickAws
from tests.spark.tables import WorkTable


@dataclass
class Site:
    """The live pages at `url`. defects: what the application did not expect; reads: those of its pages."""

    lake: ShopLake
    session: Session
    hostile: WorkTable
    defects: list[str] = field(default_factory=list)
    reads: Reads = field(default_factory=Reads)
    url: str = ""

    def address(self, place: str = "/", **query: str) -> str:
        """The URL of a page; `from_` stands for from."""
        words = urlencode({name.rstrip("_"): text for name, text in query.items()})
        return f"{self.url}{place}" + (f"?{words}" if words else "")

    def path(self, table: str) -> str:
        """The path of a table of the shop."""
        return str(self.lake.tables[table].path)


@pytest.fixture(scope="session")
def site(quick_aws: QuickAws, quick_clients: Clients) -> Iterator[Site]:
    """The shop's lake, served in this process."""
    own = {"DMSLAKE_RAW": f"{quick_aws.raw}seen/", "DMSLAKE_STATE_TABLE": "seen", "DMSLAKE_DATABASE": "seen"}
    lake = ShopLake({**quick_aws.environment(), **own}, quick_clients).fill()
    site = Site(lake, lake.session(), lake.add_hostile())
    with serving(Pages(site.session), lambda address, error: site.defects.append(f"{address}: {error!r}"), site.reads) as site.url:
        yield site


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, site: Site) -> Iterator[Browser]:
    """The browser; after the test it must have complained of nothing and asked nobody else, and the server met no defect.

    It leaves the page then: a page asks again by itself, and tests that count this process's requests may come next.
    """
    chromium.fresh()
    yield chromium
    chromium.leave()
    until(lambda: not site.reads.are_going_on(), "what was asked for is read")
    foreign = [url for url in chromium.requests() if not url.startswith((f"{site.url}/", "about:", "file:"))]
    assert foreign == []
    assert chromium.complaints() == []
    assert site.defects == []
