"""`dmslake serve` as a person starts and ends it."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import threading
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from controller.cli import main
from tests.controller.terminal import Terminal
from tests.controller.world import World, table_path

PATH = table_path()


def address(terminal: Terminal) -> str:
    """The URL that it prints."""
    lines = terminal.until(lambda lines: any("Ctrl-C" in line for line in lines))
    found = re.search(r"http://127\.0\.0\.1:\d+/", "\n".join(lines))
    assert found is not None
    return found[0]


def test_it_serves_until_ctrl_c(served: World) -> None:
    """At the address that it prints, what is there at the time; then it ends well."""
    with Terminal(["serve"], os.environ) as terminal:
        url = address(terminal)
        served.put_loaded(PATH, "LOAD00000001.parquet")
        with urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
        code = terminal.interrupt()

    assert "shop.orders" in text
    assert 'content="5"' in text
    assert code == 0
    assert b"Traceback" not in terminal.raw


def test_pages_that_don_t_refresh(served: World) -> None:
    """--every 0."""
    with Terminal(["serve", "--every", "0"], os.environ) as terminal, urlopen(address(terminal), timeout=60) as answer:
        text = answer.read().decode()

    assert "refresh" not in text.split("<main")[0].lower()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def test_it_ends_although_aws_hangs(served: World, silent: socket.socket) -> None:
    """Threads that wait for an answer, of a table's record here, don't keep the process."""
    served.put_loaded(PATH, "LOAD00000001.parquet")
    environment = {**os.environ, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{silent.getsockname()[1]}", "DMSLAKE_RAW": ""}
    with Terminal(["serve"], environment) as terminal:
        url = address(terminal)
        person = threading.Thread(target=_look, args=(url,), daemon=True)
        person.start()
        asked, _ = silent.accept()
        code = terminal.interrupt()
        asked.close()
        person.join(60)

    assert code == 0


def _look(url: str) -> None:
    try:
        urlopen(url, timeout=60).close()
    except OSError:  # the server went away before it had an answer
        return


def test_a_package_that_is_missing_is_named(served: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that installs it."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "werkzeug" else real(name, *rest))

    assert main(["serve"]) == 3
    assert "pip install --editable '.[cli]'" in capsys.readouterr().err
