"""Where a deployed stack's roles let a table lie: its folder and that of its change records, which is beside the folder around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from glue_jobs.core.paths import S3Uri, changes_folder
from tests.infra.lake_stack import PROGRAM, ROLES, LakeStack
from tests.infra.resolve import Resolved

PAGE = Path(__file__).parents[2] / "docs" / "adopt.md"
ROW = re.compile(r"\| `(\S+/)` \| `(\S+/)` \| `(\S+/)` \| (allowed|`access-denied`) \|")


def missing(prefix: str, folder: str) -> Iterator[str]:
    """The roles that lack a right in a lake at `prefix` on files in `folder`, with the action."""
    stack = LakeStack("", Resolved.read("lake.yaml", **PROGRAM, RawBucket="raw", LakeBucket="lake", LakePrefix=prefix))
    file = f"arn:aws:s3:::lake/{folder}name"
    for role in ROLES:
        for action in ("s3:GetObject",) if role == "ControllerRole" else ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
            given = (each for each in stack.role_statements(role) if action in each.actions)
            if not any(fnmatchcase(file, resource) for each in given for resource in each.resources):
                yield f"{role}: {action}"


@pytest.mark.parametrize(
    ("prefix", "below", "works"),
    [
        ("lake/", "shop/orders/", True),
        ("lake/", "orders/", True),
        ("lake/", "a/shop/orders/", True),
        ("data/lake/", "shop/orders/", True),
        ("data/lake/", "orders/", False),
        ("a/data/lake/", "orders/", False),
    ],
)
def test_two_folders_below_the_lakes_or_right_below_one_that_is_a_single_folder(prefix: str, below: str, works: bool) -> None:
    """docs/adopt.md: else a job may write the table's files and not its records, and ends with `access-denied`."""
    records = changes_folder(S3Uri("lake", prefix + below))

    assert (list(missing(prefix, records.key)) == []) == works


def test_the_page_shows_where_records_lie_and_what_is_denied() -> None:
    """The table of docs/adopt.md, of both answers."""
    rows = [match.groups() for match in map(ROW.fullmatch, PAGE.read_text("utf-8").splitlines()) if match]

    assert {said for *_, said in rows} == {"allowed", "`access-denied`"}
    for prefix, table, records, said in rows:
        assert (table.startswith(prefix), changes_folder(S3Uri("lake", table)).key) == (True, records)
        assert (list(missing(prefix, records)) == []) == (said == "allowed")
