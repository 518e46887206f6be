"""A real MariaDB server in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions

from tests.machine import find_mariadbd

START_SECONDS = 60.0

OPTIONS = (
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--server-id=1",
    "--default-time-zone=+03:30",  # nobody may rely on the server's or the machine's zone
    "--character-set-server=utf8mb4",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
)


_AS_ROOT = ["--user=root"] if os.geteuid() == 0 else []
"""The server refuses to run as root unless told to."""


@dataclass(frozen=True)
class MariaDb:
    """A running server: root without a password, by socket and by port."""

    socket: Path
    port: int

    def url(self, database: str) -> str:
        """The URL of a database, by TCP."""
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str) -> str:
        """The URL of a database, by the Unix socket."""
        return f"mysql://root@localhost/{database}?unix_socket={self.socket}"

    def connect(self, database: str | None = None, **settings: Any) -> pymysql.connections.Connection[Any]:
        """A connection in UTC that gives TIME values as text; without autocommit unless told."""
        conv: dict[Any, Any] = {**conversions, FIELD_TYPE.TIME: str}
        return pymysql.connect(
            unix_socket=str(self.socket),
            user="root",
            database=database,
            charset="utf8mb4",
            conv=conv,
            init_command="SET time_zone = '+00:00'",
            **settings,
        )


@contextmanager
def running_mariadb() -> Iterator[MariaDb]:
    """Start a server with an empty data folder and row binlog; it is stopped and its folder removed at the end."""
    mariadbd = find_mariadbd()
    if mariadbd is None:
        raise RuntimeError("mariadbd: expected MariaDB's server on this machine, found none: apt-get install mariadb-server")
    with tempfile.TemporaryDirectory(prefix="maria") as folder:  # a socket's path has to be short
        _install(mariadbd, Path(folder))
        process, server = _started(mariadbd, Path(folder))
        try:
            yield server
        finally:
            process.terminate()
            process.wait(timeout=60)


def _install(mariadbd: Path, folder: Path) -> None:
    install = shutil.which("mariadb-install-db", path=f"{mariadbd.parent}:/usr/bin:/usr/local/bin")
    if install is None:
        raise RuntimeError("mariadb-install-db: expected beside mariadbd, found none: apt-get install mariadb-server")
    command = [install, "--no-defaults", f"--datadir={folder / 'data'}", *_AS_ROOT, "--skip-test-db"]
    command += ["--auth-root-authentication-method=normal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}\n{done.stderr}")


def _started(mariadbd: Path, folder: Path) -> tuple[subprocess.Popen[bytes], MariaDb]:
    """Another process can take the free port first: then the server ends, and is tried again on another one."""
    for _ in range(3):
        server = MariaDb(folder / "s", _free_port())
        command = [mariadbd, "--no-defaults", *_AS_ROOT, f"--datadir={folder / 'data'}", *OPTIONS]
        command += [f"--socket={server.socket}", f"--port={server.port}", f"--tmpdir={folder}"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        if _answers(process, server):
            return process, server
    raise RuntimeError(f"mariadbd doesn't start:\n{(folder / 'log').read_text()[-4000:]}")


def _answers(process: subprocess.Popen[bytes], server: MariaDb) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        try:
            server.connect().close()
        except pymysql.OperationalError:
            if time.monotonic() > deadline:
                process.kill()
                raise
            time.sleep(0.05)
        else:
            return True
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
