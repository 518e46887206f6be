"""A folder's name says what it may import (and that the reader which says so sees a violation)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_rules import LAYERS, layer_of, module_name, violations

ROOT = Path(__file__).parent.parent
FOLDERS = ("glue_jobs", "controller", "infra", "tests", "benchmarks", "docs")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_no_module_breaks_its_folders_rule() -> None:
    """Every source file imports only what its folder may, and Glue's Python 3.9 can parse what runs there."""
    found = [line for path in SOURCES for line in violations(path, (ROOT / path).read_text("utf-8"))]

    assert not found, "\n".join(found)


def test_the_walk_reaches_every_layer() -> None:
    """Each layer that is a package has a file that was looked at: a renamed folder can't slip out of the rules."""
    reached = {layer_of(module_name(path)) for path in SOURCES}

    assert {name for name in LAYERS if name.startswith("glue_jobs")} <= reached
    assert "controller" in reached


REFUSED = [
    ("glue_jobs/core/a.py", "import os", "must not import os"),
    ("glue_jobs/core/a.py", "import logging", "must not import logging"),
    ("glue_jobs/core/a.py", "def f():\n    import time", "must not import time"),
    ("glue_jobs/core/a.py", "import urllib.request", "must not import urllib.request"),
    ("glue_jobs/core/a.py", "from urllib import request", "must not import urllib.request"),
    ("glue_jobs/core/a.py", "from random import choice", "must not import random.choice"),
    ("glue_jobs/core/a.py", "import boto3", "must not import boto3"),
    ("glue_jobs/core/a.py", "from glue_jobs import aws", "must not import glue_jobs.aws"),
    ("glue_jobs/core/a.py", "from . import b", "relative imports"),
    ("glue_jobs/core/a.py", "def f():\n    return open('x')", "call open()"),
    ("glue_jobs/core/a.py", "print('x')", "call print()"),
    ("glue_jobs/core/a.py", "from datetime import datetime, timezone\ndatetime.now(timezone.utc)", "read the clock"),
    ("glue_jobs/core/a.py", "from datetime import datetime as D\nclock = D.utcnow", "read the clock"),
    ("glue_jobs/core/a.py", "import datetime as dt\ndt.date.today()", "read the clock"),
    ("glue_jobs/core/a.py", "match x:\n    case 1: pass", "not Python 3.9"),
    (
        "glue_jobs/core/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mypy_boto3_s3 import S3Client",
        "must not import mypy_boto3_s3.S3Client",
    ),
    ("glue_jobs/aws/a.py", "import pyarrow", "must not import pyarrow"),
    ("glue_jobs/aws/a.py", "from glue_jobs.protocol import commit", "must not import glue_jobs.protocol"),
    ("glue_jobs/aws/a.py", "from mypy_boto3_s3 import S3Client", "must not import mypy_boto3_s3.S3Client"),
    (
        "glue_jobs/aws/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import mypy_boto3_s3",
        "must not import mypy_boto3_s3",
    ),
    ("glue_jobs/protocol/a.py", "import glue_jobs.spark.merge", "must not import glue_jobs.spark.merge"),
    ("glue_jobs/spark/a.py", "from glue_jobs.protocol import commit", "must not import glue_jobs.protocol.commit"),
    ("glue_jobs/spark/a.py", "import pandas", "must not import pandas"),
    ("glue_jobs/load_initial.py", "from controller import plan", "must not import controller.plan"),
    ("glue_jobs/extra/a.py", "", "has no rule"),
    ("controller/a.py", "import click", "must not import click"),
    ("controller/a.py", "from controller.cli import main", "must not import controller.cli.main"),
    ("controller/a.py", "from glue_jobs.spark import merge", "must not import glue_jobs.spark.merge"),
    ("controller/a.py", "import importlib\nimportlib.import_module('infra.local')", "must not import infra.local"),
    ("controller/cli/a.py", "from infra.local import up", "must not import infra.local.up"),
    ("controller/cli/a.py", "from importlib import import_module\nimport_module(name)", "computed name"),
    ("tests/spark/utils.py", "", "named 'utils'"),
    ("infra/common/a.py", "", "named 'common'"),
    ("infra/local/utils.py", "", "named 'utils'"),
]


@pytest.mark.parametrize(("path", "source", "says"), REFUSED)
def test_a_violation_is_found(path: str, source: str, says: str) -> None:
    """Each kind of forbidden import, call, syntax and name is reported, once, with the file's name."""
    found = violations(path, source)

    assert len(found) == 1
    assert path in found[0]
    assert says in found[0]


ALLOWED = [
    (
        "glue_jobs/core/a.py",
        "from glue_jobs.core.ids import ChangeId\nfrom urllib.parse import quote",
    ),
    (
        "glue_jobs/core/a.py",
        "from datetime import datetime\ndef f(run: datetime):\n    return run.now, run.today()",
    ),
    (
        "glue_jobs/aws/a.py",
        "from typing import TYPE_CHECKING\nimport os, boto3\nif TYPE_CHECKING:\n    from mypy_boto3_s3 import S3Client",
    ),
    ("glue_jobs/protocol/a.py", "from glue_jobs.aws import s3\nfrom glue_jobs import __version__\nimport logging"),
    (
        "glue_jobs/spark/a.py",
        "import pyarrow.parquet as pq\nfrom pyspark import sql\nmatch x:\n    case 1: pass",
    ),
    ("glue_jobs/load_initial.py", "from glue_jobs.spark import load\nfrom awsglue.utils import getResolvedOptions"),
    ("controller/a.py", "from glue_jobs.protocol import converge\nimport glue_jobs.core.ids\nimport subprocess"),
    ("controller/cli/a.py", "import click, rich\nfrom importlib import import_module\nimport_module('infra.local.up')"),
    ("infra/local/awsglue_shim/awsglue/utils.py", "import argparse"),
    ("infra/local/a.py", "from controller import cli\nimport moto"),
]


@pytest.mark.parametrize(("path", "source"), ALLOWED)
def test_what_a_folder_may_do_is_not_reported(path: str, source: str) -> None:
    """The rules refuse nothing that the design allows."""
    assert violations(path, source) == []
