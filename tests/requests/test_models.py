"""The requests against the service models of the botocore versions that AWS's runtimes have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import boto3

from tests.requests.models import SERVICES, VERSIONS, paginated, refusal
from tests.requests.recorder import Call

ROOT = Path(__file__).parents[2]
# These run on a person's computer, with the person's boto3.
OF_PERSONS = ("controller/deploying", "controller/doctor")
NOT_PLAYED = {"delete_item": "`dmslake forget`, a person's command"}


@lru_cache(maxsize=1)
def code() -> tuple[frozenset[str], frozenset[str]]:
    """Of the code that AWS's runtimes run: the attributes that it names, and the methods whose paginators it asks for."""
    attributes, paginators = set(), set()
    for node in _nodes():
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_paginator":
            assert isinstance(node.args[0], ast.Constant), ast.unparse(node)
            paginators.add(str(node.args[0].value))
    return frozenset(attributes), frozenset(paginators)


def _nodes() -> Iterator[ast.AST]:
    for folder in ("glue_jobs", "controller"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(OF_PERSONS):
                yield from ast.walk(ast.parse(path.read_text("utf-8")))


@lru_cache(maxsize=1)
def operations() -> dict[str, set[str]]:
    """The operations that a method of our clients can be, such as create_table of two services."""
    found: dict[str, set[str]] = {}
    for service in SERVICES:
        client = boto3.client(service, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")  # type: ignore[call-overload]
        for method, operation in client.meta.method_to_api_mapping.items():
            found.setdefault(method, set()).add(operation)
    return found


def outline(value: Any) -> Any:
    """What the validation looks at: names, types, and whether it is empty."""
    if isinstance(value, dict):
        return tuple((name, outline(each)) for name, each in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(sorted({outline(each) for each in value}, key=repr))
    return type(value).__name__, value in ("", b"")


def test_every_request_of_the_code_was_made(calls: list[Call]) -> None:
    """Methods of the clients that stand in the code, and paginators, all came up in the scenario."""
    known, made = operations(), {call.operation for call in calls}
    attributes, paginators = code()
    methods = attributes & set(known)
    assert len(methods) > 25
    assert len(paginators) > 4
    assert {method for method in methods | paginators if not known[method] & made} == set(NOT_PLAYED)


def test_every_request_is_one_that_the_runtimes_botocore_takes(calls: list[Call]) -> None:
    distinct = {(call.service, call.operation, outline(call.params)): call for call in calls}
    said = {refusal(version, call.service, call.operation, call.params) for version in VERSIONS for call in distinct.values()}
    assert said == {""}
    made = {call.operation for call in calls}
    for version in VERSIONS:
        there = {operation for service in SERVICES for operation in paginated(version, service)}
        assert {operation for method in code()[1] for operation in operations()[method] & made} <= there


def test_the_old_models_do_refuse_what_they_do_not_know() -> None:
    """`IfNoneMatch` came with 2024's conditional writes: the two older versions don't have it, the newest does."""
    said = [refusal(version, "s3", "PutObject", {"Bucket": "b", "Key": "k", "IfNoneMatch": "*"}) for version in VERSIONS]
    assert [bool(text) for text in said] == [True, True, False]
    assert "no operation GetFutureThing" in refusal(VERSIONS[0], "glue", "GetFutureThing", {})
