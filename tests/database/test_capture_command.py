"""The capture command: what it prints, its exit codes, its URL."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from controller.cli.entry import run as run_command
from infra.local.capture import CaptureOptions, UsageError, capture, run_capture
from infra.local.capture.source import Source
from infra.local.sample import run_script
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import ops, run


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


def test_tables_and_before_images_are_options(
    mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command line on: other tables have no file, and a changed key is told."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", raw.client.meta.endpoint_url)
    run(connection, "CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (1)")
    words = ["capture", "--mysql", mariadb.url(raw.database), "--raw", raw.url, "--tables", "t", "--before-images"]

    codes = [run_command([*words, "--full-load"])]
    run(connection, "UPDATE t SET id = 10 WHERE id = 1", "INSERT INTO u VALUES (2)")
    codes.append(run_command(words))

    assert codes == [0, 0], capsys.readouterr().err
    assert raw.names("u") == []
    assert raw.rows(table)[2:] == [{"Op": "U", "id": 10, "v": "a", "BI_id": 1, "BI_v": "a"}]


class _Interrupted:
    """An S3 client at which Ctrl-C comes before it puts a file of the table t."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **given: Any) -> Any:
        if "/t/" in given["Key"]:
            raise KeyboardInterrupt
        return self._client.put_object(**given)


@pytest.mark.parametrize("follow", [False, True])
def test_ctrl_c_in_a_full_load_is_no_success(mariadb: MariaDb, raw: RawFiles, table: str, follow: bool) -> None:
    """Exit code 130, and what it left is not gone on from: only another full load puts it right."""
    lines: list[str] = []

    def run_it(client: Any, **given: Any) -> int:
        return run_capture(mariadb.url(raw.database), raw.url, echo=lines.append, s3_client=client, **given)

    codes = [run_it(_Interrupted(raw.client), full_load=True, follow=follow), run_it(raw.client)]
    told = list(lines)
    codes += [run_it(raw.client, full_load=True), run_it(raw.client)]

    assert codes == [130, 1, 0, 0]
    assert "run it again with --full-load" in told[0]
    assert "did not come to its end" in told[1]
    assert ops(raw) == [("I", 1, "a"), ("I", 2, "b")]


def test_ctrl_c_in_a_large_table_does_not_wait_for_the_rest_of_its_rows(mariadb: MariaDb, connection: Any, raw: RawFiles) -> None:
    """80 MB of them: what the server sent in vain is what lay in the sockets' buffers."""
    run(
        connection,
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(2000))",
        "INSERT INTO t SELECT seq, REPEAT('x', 2000) FROM seq_1_to_40000",
    )

    def sent() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Bytes_sent'")
            return int(cursor.fetchone()[1])

    before = sent()
    options = CaptureOptions(load_file_rows=10)
    with pytest.raises(KeyboardInterrupt):
        capture(mariadb.url(raw.database), raw.url, s3_client=_Interrupted(raw.client), full_load=True, options=options)

    assert sent() - before < 40_000_000


def test_ctrl_c_before_a_full_load_begins_changes_nothing(
    mariadb: MariaDb, raw: RawFiles, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told so, and the captures go on."""
    lines: list[str] = []
    url = mariadb.url(raw.database)
    assert run_capture(url, raw.url, full_load=True, s3_client=raw.client) == 0
    before = raw.listed()

    def press(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Source, "check", press)
        code = run_capture(url, raw.url, full_load=True, echo=lines.append, s3_client=raw.client)

    assert (code, lines) == (130, ["interrupted: nothing was changed"])
    assert (run_capture(url, raw.url, s3_client=raw.client), raw.listed()) == (0, before)


def test_ctrl_c_under_the_lock_of_a_full_load_is_told_as_such(
    mariadb: MariaDb, connection: Any, raw: RawFiles, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an answer, where the server does not tell the snapshot's position: on MySQL. The tables can be written to again."""
    lines: list[str] = []

    def press(locked: Any) -> Any:
        with locked.cursor() as cursor:
            cursor.execute("SELECT seq FROM seq_1_to_100000")
            raise KeyboardInterrupt

    monkeypatch.setattr("infra.local.capture.source._snapshot_position", lambda connection: None)
    monkeypatch.setattr("infra.local.capture.source.binlog_end", press)
    code = run_capture(mariadb.url(raw.database), raw.url, full_load=True, echo=lines.append, s3_client=raw.client)
    run(connection, "SET SESSION lock_wait_timeout = 10", "INSERT INTO t VALUES (3, 'c')")

    assert (code, lines) == (130, ["interrupted: nothing was changed"])


def test_ctrl_c_after_the_full_load_loses_nothing(mariadb: MariaDb, connection: Any, raw: RawFiles, table: str) -> None:
    """Exit code 130, but for a following capture, which ends so; the next one goes on from the saved position."""
    lines: list[str] = []

    class Pressed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    def run_it(client: Any, **given: Any) -> int:
        return run_capture(mariadb.url(raw.database), raw.url, echo=lines.append, s3_client=client, **given)

    codes = [run_it(raw.client, full_load=True, follow=True, stop=Pressed())]
    run(connection, "INSERT INTO t VALUES (3, 'c')")
    codes += [run_it(_Interrupted(raw.client)), run_it(raw.client)]

    assert codes == [0, 130, 0]
    assert [line for line in lines if "goes on from the saved position" in line] == [
        "stopped; the next capture goes on from the saved position",
        "interrupted; the next capture goes on from the saved position",
    ]
    assert ops(raw) == [("I", 1, "a"), ("I", 2, "b"), ("I", 3, "c")]


def test_the_server_waits_while_a_file_is_uploaded(mariadb: MariaDb, database: str) -> None:
    """For a day: by itself it drops whoever takes no rows for a minute, and the full load with it."""
    with Source.from_url(mariadb.url(database)).connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@net_write_timeout, @@wait_timeout")

        assert cursor.fetchall() == ((86_400, 86_400),)


def test_a_missing_bucket_is_a_set_up_error(mariadb: MariaDb, connection: Any, raw: RawFiles) -> None:
    """Exit code 3; the message names the bucket."""
    lines: list[str] = []

    code = run_capture(mariadb.url(raw.database), "s3://not-there/dms", echo=lines.append, s3_client=raw.client)

    assert code == 3
    assert "s3://not-there" in lines[0]
