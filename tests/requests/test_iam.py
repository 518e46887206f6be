"""The roles of lake.yaml against the requests that the jobs really make: all are allowed, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.requests.actions import Need, key_needs, needs_of
from tests.requests.policy import JOB_RESOURCE, KEY, Role, Statement, role_of_job, roles, stack
from tests.requests.recorder import PERSON, Call

ROOT = Path(__file__).parents[2]
# What only AWS's own machinery asks for, so that no request of ours shows it.
ASKED_BY_AWS = {
    "JobPolicy.ReadProgram s3:GetObject": "Glue fetches script and packages with the job's role",
    "JobPolicy.WriteLogs logs:CreateLogGroup": "Glue writes what a job prints",
    "JobPolicy.WriteLogs logs:CreateLogStream": "the same",
    "JobPolicy.WriteLogs logs:PutLogEvents": "the same",
    "JobPolicy.WriteGlueMetrics cloudwatch:PutMetricData": "--enable-metrics",
}
# What DynamoDB's guide asks of whoever uses a table under a customer's key; our requests show no more than that they use it.
ASKED_BY_DYNAMODB = {"kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey", "kms:CreateGrant"}


@pytest.fixture(scope="module")
def needs(calls: list[Call]) -> dict[str, list[Need]]:
    """What each role needs, by its name; each need once."""
    found: dict[str, dict[tuple[object, ...], Need]] = {}
    of_job = role_of_job()
    for call in calls:
        if call.job != PERSON:
            for need in needs_of(call):
                kept = (need.action, need.resource, *sorted(need.context.items()))
                found.setdefault(of_job[call.job], {}).setdefault(kept, need)
    return {role: list(each.values()) for role, each in found.items()}


def refused(role: Role, needs: Iterable[Need]) -> list[str]:
    return sorted({f"{role.name}: {need.action} on {need.resource} {dict(need.context) or ''}" for need in needs if not role.allows(need)})


def never_used(every: dict[str, Role], needs: dict[str, list[Need]]) -> list[str]:
    """Actions of statements that cover no need of any role that has the statement."""
    pairs = {f"{one.name} {action}" for role in every.values() for one in role.allowing for action in one.actions}
    return sorted(pairs - set(_used(every, needs)))


def _used(every: dict[str, Role], needs: dict[str, list[Need]]) -> Iterator[str]:
    for name, role in every.items():
        for one in role.allowing:
            for action in one.actions:
                narrow = replace(one, actions=(action,))
                if any(narrow.covers(need) for need in needs[name]):
                    yield f"{one.name} {action}"


def test_every_job_that_there_is_was_played(calls: list[Call]) -> None:
    jobs = stack().resources(JOB_RESOURCE)
    scripts = {name: properties["Command"]["ScriptLocation"].removeprefix("s3://artifacts/v1/") for name, properties in jobs.items()}
    assert {name for name, script in scripts.items() if (ROOT / script).is_file()} == {call.job for call in calls} - {PERSON}


def test_every_role_allows_what_its_jobs_do(needs: dict[str, list[Need]]) -> None:
    assert set(needs) == set(roles())
    assert [line for name, role in roles().items() for line in refused(role, needs[name])] == []


def test_nothing_is_allowed_that_no_job_does(needs: dict[str, list[Need]]) -> None:
    """Of a policy that roles share: that none of them does."""
    assert never_used(roles(), needs) == sorted(ASKED_BY_AWS)


def test_with_a_key_every_role_may_use_it_and_no_more(needs: dict[str, list[Need]]) -> None:
    every = roles(KEY)
    with_key = {name: [*each, *(of_key for need in each for of_key in key_needs(need, KEY))] for name, each in needs.items()}
    assert [line for name, role in every.items() for line in refused(role, with_key[name])] == []
    unused = {line for line in never_used(every, with_key) if line not in ASKED_BY_AWS}
    assert {line.split(" ")[1] for line in unused} <= ASKED_BY_DYNAMODB
    assert {line.split(" ")[0] for line in unused} == {"JobPolicy.UseKeyForState"}


def test_what_the_check_would_notice(needs: dict[str, list[Need]]) -> None:
    """An action that is missing, one too many, a prefix too narrow; each in a copy of the roles."""
    every, name = roles(), "LoadRole"
    role = every[name]
    for place, statement in enumerate(role.allowing):
        if statement.name.startswith("JobPolicy"):
            continue
        covered = [need for need in needs[name] if statement.covers(need)]
        for less in (replace(statement, actions=statement.actions[1:]), replace(statement, resources=("arn:aws:s3:::elsewhere/*",))):
            narrow = replace(role, allowing=(*role.allowing[:place], less, *role.allowing[place + 1 :]))
            assert refused(narrow, covered), less
    more = Statement("Extra", "Allow", ("s3:GetObjectTagging",), ("*",), {})
    wide = {**every, name: replace(role, allowing=(*role.allowing, more))}
    assert "Extra s3:GetObjectTagging" in never_used(wide, needs)


@pytest.mark.parametrize(("role", "action", "resource"), [
    ("LoadRole", "s3:PutObject", "arn:aws:s3:::raw/dms/shop/orders/x.parquet"),  # raw files are DMS's
    ("LoadRole", "s3:DeleteObjectVersion", "arn:aws:s3:::lake/lake/shop/orders/x.parquet"),
    ("LoadRole", "s3:GetObject", "arn:aws:s3:::lake/others/x.parquet"),
    ("RollbackRole", "s3:GetObject", "arn:aws:s3:::raw/dms/shop/orders/x.parquet"),
    ("RollbackRole", "s3:DeleteObjectVersion", "arn:aws:s3:::lake/lake/shop/orders/x.parquet"),
    ("ControllerRole", "s3:PutObject", "arn:aws:s3:::lake/lake/shop/orders/x.parquet"),
    ("ControllerRole", "s3:GetObject", "arn:aws:s3:::lake/lake/shop/orders/x.parquet"),  # it reads change records only
    ("EraseRole", "s3:DeleteObjectVersion", "arn:aws:s3:::lake/work/x.parquet"),
])  # fmt: skip
def test_what_a_role_may_not(role: str, action: str, resource: str) -> None:
    assert not roles()[role].allows(Need(action, resource))


def test_the_lakes_bucket_refuses_to_delete_versions_whatever_a_role_is_allowed() -> None:
    everything = Statement("Everything", "Allow", ("*",), ("*",), {})
    version = Need("s3:DeleteObjectVersion", "arn:aws:s3:::lake/lake/shop/orders/x.parquet")
    allowed = {name: replace(role, allowing=(everything,)).allows(version) for name, role in roles().items()}
    assert [name for name, may in allowed.items() if may] == ["EraseRole"]
