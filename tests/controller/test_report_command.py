"""`dmslake report`: one file, here or in S3."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli import main
from glue_jobs.aws.clients import Clients
from tests.controller.pages_world import Document, PagesWorld
from tests.quick_aws import QuickAws
from tests.spark.tables import WorkTable


@pytest.fixture(scope="module")
def pages_world(quick_aws: QuickAws, quick_clients: Clients) -> PagesWorld:
    return PagesWorld(quick_aws.environment(), quick_clients)


@pytest.fixture(scope="module")
def orders(pages_world: PagesWorld) -> WorkTable:
    return pages_world.orders()


@pytest.fixture
def environment(pages_world: PagesWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process's variables are those of the world."""
    for name, value in pages_world.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("environment")
def test_a_report_is_written_to_a_file(orders: WorkTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says where, and how much is in it."""
    out = tmp_path / "report.html"

    code = main(["report", "--out", str(out), "--rows", "2"])

    document = Document(out.read_text("utf-8"))
    assert code == 0
    assert document.problems == []
    assert {"shop.orders", "THREE"} <= set(document.text.split())
    assert f"{out}: 1 table(s), 5 change(s)" in capsys.readouterr().out


@pytest.mark.usefixtures("environment")
def test_a_report_is_written_to_s3(orders: WorkTable, pages_world: PagesWorld, capsys: pytest.CaptureFixture[str]) -> None:
    """As a page that a browser shows."""
    code = main(["report", "--out", f"s3://{orders.out_path.bucket}/reports/today.html", "--output", "json"])

    found: dict[str, Any] = dict(pages_world.clients.s3.get_object(Bucket=orders.out_path.bucket, Key="reports/today.html"))
    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["ContentType"] == "text/html; charset=utf-8"
    assert (answer["report"], answer["bytes"], answer["tables"]) == (1, len(found["Body"].read()), 1)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("out", ["s3://lake/", "s3://lake/reports/", "."])
def test_a_folder_is_no_file(out: str, orders: WorkTable, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before anything is read."""
    assert main(["report", "--out", out]) == 2
    assert "folder" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_a_file_that_can_not_be_written_is_said(orders: WorkTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words."""
    assert main(["report", "--out", str(tmp_path / "nowhere" / "report.html")]) == 1
    assert "can't write" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_without_the_package_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the command line does of all that it needs."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "jinja2" else find(name, *rest))

    assert main(["report", "--out", str(tmp_path / "report.html")]) == 3
    assert "pip install --editable '.[cli]'" in capsys.readouterr().err
