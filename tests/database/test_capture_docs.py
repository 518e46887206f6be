"""docs/capture.md, command by command, with a real server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database.server import MariaDb
from tests.document_shell import ROOT, Block, DocumentShell, blocks


@pytest.fixture
def shell(mariadb: MariaDb, tmp_path: Path) -> Iterator[DocumentShell]:
    """A reader's shell in a folder with the checkout's `infra`, its MySQL port the server's; the sample database is dropped again."""
    (tmp_path / "infra").symlink_to(ROOT / "infra")
    client = shutil.which("mysql") or shutil.which("mariadb")  # newer Debian names MariaDB's client only so
    assert client is not None, "no mysql or mariadb client: apt-get install mariadb-client"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mysql").symlink_to(client)
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    variables = {"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "MYSQL_TCP_PORT": str(mariadb.port), "LC_ALL": "C.UTF-8"}
    shell = DocumentShell(tmp_path, variables)
    yield shell
    shell.close()
    with mariadb.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS sampledb")


def test_capture_from_top_to_bottom(shell: DocumentShell, mariadb: MariaDb) -> None:
    """Every command succeeds, and the report has the walkthrough's counts."""
    printed = [
        shell.run(Block(block.language, block.mark, block.text.replace(":3306/", f":{mariadb.port}/")))
        for block in blocks(ROOT / "docs" / "capture.md")
        if block.language == "sh"
    ]

    first, second = (" ".join(text.split()) for text in printed if "committed" in text)
    assert "3 committed; 8,458 inserted, 0 updated, 0 deleted" in first
    assert "3 committed; 1,346 inserted, 1 updated, 1 deleted" in second
