"""The capture command: what it prints, its exit codes, its URL."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.capture import UsageError, run_capture
from infra.local.capture.source import Source
from infra.local.sample import run_script
from tests.database.files import RawFiles
from tests.database.server import MariaDb


def test_the_walkthrough_is_captured_and_told(mariadb: MariaDb, connection: Any, raw: RawFiles) -> None:
    """Initial script, full load, incremental script, CDC files: a line per table each time, exit code 0."""
    lines: list[str] = []
    run_script(connection, "initial")

    codes = [run_capture(mariadb.url(raw.database), raw.url, full_load=True, echo=lines.append, s3_client=raw.client)]
    run_script(connection, "incremental")
    codes.append(run_capture(mariadb.url(raw.database), raw.url, echo=lines.append, s3_client=raw.client))

    assert codes == [0, 0]
    assert [line for line in lines if "position" not in line] == [
        "product: 25 rows in 1 load files",
        "productorder: 8425 rows in 1 load files",
        "store: 8 rows in 1 load files",
        "no changes",
        "product: 0 inserts, 1 updates, 1 deletes in 1 CDC files",
        "productorder: 1345 inserts, 0 updates, 0 deletes in 1 CDC files",
        "store: 1 inserts, 0 updates, 0 deletes in 1 CDC files",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u@h/db",
        "mysql://host/db",
        "mysql://u@host",
        "mysql://u@host/",
        "mysql://u@host/a/b",
        "mysql://u@host/db?ssl=1",
        "mysql://u@host:port/db",
    ],
)
def test_a_wrong_url_is_a_usage_error(url: str) -> None:
    """Exit code 2, and what was expected."""
    lines: list[str] = []

    code = run_capture(url, "s3://raw/", echo=lines.append)

    assert code == 2
    assert "expected mysql://" in lines[0]


def test_the_message_about_a_wrong_url_hides_the_password() -> None:
    """Messages are logged and pasted."""
    with pytest.raises(UsageError) as caught:
        Source.from_url("mysql://me:s3cret@host")

    assert "s3cret" not in str(caught.value)
    assert "me:***@host" in str(caught.value)


def test_a_url_gives_user_password_host_port_socket_and_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Percent-encoded where needed; the password can come from MYSQL_PWD."""
    monkeypatch.setenv("MYSQL_PWD", "from env")

    full = Source.from_url("mysql://me%40home:p%2Fw@db.example:3307/shop?unix_socket=/run/my%20sock")
    short = Source.from_url("mysql://me@db.example/shop")

    expected = {"user": "me@home", "password": "p/w", "host": "db.example", "port": 3307, "unix_socket": "/run/my sock"}
    assert (full.settings, full.database) == (expected, "shop")
    assert short.settings == {"user": "me", "password": "from env", "host": "db.example", "port": 3306}


def test_a_wrong_raw_folder_is_a_usage_error(mariadb: MariaDb, database: str) -> None:
    """Exit code 2 for what is no s3:// URL."""
    assert run_capture(mariadb.url(database), "raw/dms", echo=[].append) == 2


def test_a_server_that_refuses_is_a_set_up_error(mariadb: MariaDb, raw: RawFiles) -> None:
    """Exit code 3 for an unknown database; the message names it."""
    lines: list[str] = []

    code = run_capture(mariadb.url("nowhere"), raw.url, echo=lines.append, s3_client=raw.client)

    assert code == 3
    assert "database nowhere" in lines[0]


def test_a_missing_bucket_is_a_set_up_error(mariadb: MariaDb, connection: Any, raw: RawFiles) -> None:
    """Exit code 3; the message names the bucket."""
    lines: list[str] = []

    code = run_capture(mariadb.url(raw.database), "s3://not-there/dms", echo=lines.append, s3_client=raw.client)

    assert code == 3
    assert "s3://not-there" in lines[0]
