"""Chromium for tests: one browser, what it asked for, what it complained of, how it looks at a width and in the dark."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.machine import find_chromium

PICTURES = Path(__file__).parent.parent.parent / ".cache" / "pictures"
WIDE, NARROW = 1280, 390  # CSS pixels
SCRIPTS = Path(__file__).parent


@dataclass
class Browser:
    """A started Chromium, and what tests want to know of a page."""

    driver: Chrome
    asked: list[str] = field(default_factory=list)  # URLs that pages requested since `fresh`

    def fresh(self) -> None:
        """As at the start: an empty page, wide and light; what earlier pages asked for and complained of is forgotten."""
        self.look(WIDE)
        self.leave()
        self._logs()
        self.driver.get_log("browser")
        self.asked.clear()

    def leave(self) -> None:
        """Go to an empty page, which asks for nothing."""
        self.driver.get("about:blank")

    def open(self, url: str) -> None:
        """Go to a page."""
        self.driver.get(url)

    def look(self, width: int, scheme: str = "light", height: int = 844) -> None:
        """Set the width of the view and the person's colour scheme."""
        self._do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self._do("Emulation.setEmulatedMedia", features=features)

    @contextmanager
    def without_script(self) -> Iterator[None]:
        """Pages opened within run no script."""
        self._do("Emulation.setScriptExecutionDisabled", value=True)
        try:
            yield
        finally:
            self._do("Emulation.setScriptExecutionDisabled", value=False)

    def _do(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    # --- what is there

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The one element of a CSS selector; there must be exactly one."""
        (found,) = self.all(selector)
        return found

    def text(self, selector: str = "body") -> str:
        """What a person reads there."""
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def link(self, text: str) -> WebElement:
        """The first link whose words hold the text."""
        return self.driver.find_element(By.PARTIAL_LINK_TEXT, text)

    def script(self, name: str, *arguments: Any) -> Any:
        """What a script of this folder returns."""
        return self.driver.execute_script((SCRIPTS / f"{name}.js").read_text("utf-8"), *arguments)

    def tab(self, *, back: bool = False) -> WebElement:
        """Press the tab key; the element that has the focus then."""
        keys = (Keys.SHIFT, Keys.TAB) if back else (Keys.TAB,)
        self.driver.switch_to.active_element.send_keys(*keys)
        return self.driver.switch_to.active_element

    # --- what it did

    def complaints(self) -> list[str]:
        """Lines of the console since `fresh`: errors, refused styles and scripts, warnings."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The URLs that were requested since `fresh`."""
        self._logs()
        return list(self.asked)

    def _logs(self) -> None:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.asked.append(message["params"]["request"]["url"])

    def picture(self, name: str, *, whole: bool = True) -> Path:
        """Keep a picture of the page, all of its height or the view's, as .cache/pictures/<name>.png."""
        size = self.driver.execute_script("const e = document.documentElement; return [e.clientWidth, e.scrollHeight, innerHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 6000) if whole else size[2], "scale": 1}
        shot = self._do("Page.captureScreenshot", format="png", captureBeyondViewport=whole, clip=clip)
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        path.write_bytes(base64.b64decode(shot["data"]))
        return path


@contextmanager
def started() -> Iterator[Browser]:
    """A Chromium without a window. Fails where there is none."""
    found = find_chromium()
    if found is None:
        raise AssertionError("no chromium with its driver (Debian: apt-get install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = str(found[0])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    words = ["--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en"]
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # Chromium refuses to be root in its sandbox
    for word in words:
        options.add_argument(word)
    driver = Chrome(options=options, service=Service(executable_path=str(found[1])))
    try:
        driver.set_page_load_timeout(30)
        yield Browser(driver)
    finally:
        driver.quit()
