"""The pictures of the README: `make pictures`, or python -m tests.browser.pictures."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from controller.pages.pages import Pages
from glue_jobs.aws.clients import make_clients
from infra.local.session import aws_environment
from infra.local.shop import ORDERS
from tests.browser.chrome import Browser, started
from tests.browser.lake import ShopLake, serving
from tests.quick_aws import QuickAws

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
WIDTH, HEIGHTS = 1100, {"overview": 640, "table": 1000}  # CSS pixels


def main() -> int:
    """Fill a lake, serve it, and keep a picture of the overview and one of a table."""
    os.environ.update(aws_environment())
    with QuickAws(raw="s3://dmslake-raw/dms/", lake="s3://dmslake-lake/lake/").connected() as aws:
        aws.create()
        lake = ShopLake(aws.environment(), make_clients(aws.environment())).fill()
        with serving(Pages(lake.session()), _broken, every_seconds=5.0) as url, started() as browser:
            _keep(browser, f"{url}/", "overview", "light")
            _keep(browser, str(browser.link(f"shop.{ORDERS}").get_attribute("href")), "table", "dark")
    return 0


def _keep(browser: Browser, address: str, name: str, scheme: str) -> None:
    browser.look(WIDTH, scheme, HEIGHTS[name])
    browser.open(address)
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(browser.picture(name, whole=False), FOLDER / f"{name}.png")
    print(FOLDER / f"{name}.png")


def _broken(address: str, error: BaseException) -> None:
    raise SystemExit(f"{address}: {error!r}")


if __name__ == "__main__":
    sys.exit(main())
