"""The commands of docs/run-on-aws.md that can be run without an account."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from textwrap import dedent

from click.testing import CliRunner

from controller.cli import adopting
from glue_jobs.core.errors import UsageError
from glue_jobs.protocol.job import job_settings

CDC_FILE = "20240501-120000000.parquet"
DOC = Path(__file__).parents[2] / "docs/run-on-aws.md"


def sample_item(table: str, **values: str) -> dict[str, dict[str, str]]:
    """An item as the AWS sample writes it, with its defaults."""
    path = f"raw/dms/shop/{table}/"
    item = {
        "path": path, "bucket": "raw", "prefix": "dms/shop/", "folder": f"{table}/", "PrimaryKey": "null", "PartitionKey": "null",
        "LastFullLoadDate": "1900-01-01 00:00:00", "LastIncrementalFile": f"{path}0.parquet", "ActiveFlag": "true", "out_path": "lake/cdc/",
    }  # fmt: skip
    return {name: {"S": value} for name, value in {**item, **values}.items()}


def test_the_lines_that_take_over_the_samples_tables(tmp_path: Path) -> None:
    items = [
        sample_item("orders", PrimaryKey="id,line no", PartitionKey="region", LastIncrementalFile=f"raw/dms/shop/orders/{CDC_FILE}"),
        sample_item("log", LastFullLoadDate="2024-05-01 12:00:00"),
        sample_item("idle", ActiveFlag="false"),
    ]  # fmt: skip
    program = tmp_path / "aws"
    program.write_text(f"#!/bin/sh\nprintf '%s' {shlex.quote(json.dumps({'Items': items}))}\n")
    program.chmod(0o755)
    (block,) = (text for text in re.findall(r"```sh\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL) if "dynamodb scan" in text)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", dedent("   " + block)], env=environment, check=True, timeout=60, capture_output=True, text=True)
    lines = [shlex.split(line) for line in done.stdout.splitlines()]
    assert [line[:3] for line in lines] == [["dmslake", "adopt", "raw/dms/shop/orders/"], ["dmslake", "adopt", "raw/dms/shop/log/"]]
    options = dict(zip(lines[0][3::2], lines[0][4::2], strict=True))
    assert options == {
        "--primary-key": "id,line no",
        "--partition-key": "region",
        "--out-path": "s3://lake/cdc/orders/",
        "--cursor": CDC_FILE,
        "--load-date": "1900-01-01 00:00:00",
    }
    assert lines[1][3:] == [
        "--primary-key", "null", "--partition-key", "null", "--out-path", "s3://lake/cdc/log/",
        "--cursor", "0.parquet", "--load-date", "2024-05-01 12:00:00",
    ]  # fmt: skip
    help_text = CliRunner().invoke(adopting.adopt, ["--help"]).output
    assert [option for option in options if option not in help_text] == []


def test_the_arguments_that_are_said_to_be_refused_are() -> None:
    (row,) = (line for line in DOC.read_text("utf-8").splitlines() if "`sample-argument`" in line)
    names = re.findall(r"--(\w+)", row.split("|")[1])
    assert len(names) == 6
    refused = []
    for name in names:
        try:
            job_settings({"path": "raw/dms/shop/orders/", name: "x"}, {})
        except UsageError as error:
            refused.append(error.code)
    assert refused == ["sample-argument"] * 6
