"""A program for `test_dynamodb_race`: sixteen threads race for one conditional put, again and again.

Runs in a process of its own because it makes Python switch threads about every bytecode: a race that takes a bad moment
otherwise is then the rule. `bare` races against moto as it is (by hand: chance decides in which rounds there are
several winners), `embedded` against our application in front of it.
Prints the number of winners of each round as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import create_environ

from infra.local.server import EmbeddedApp

WRITERS = 16
ROUNDS = 40
SCOPE = "embedded/20260101/us-east-1/dynamodb/aws4_request"

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def no_job_runs(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Stands where the job runs are answered; never asked here."""
    raise AssertionError("no request is for a job run")


def call(app: WsgiApp, operation: str, body: dict[str, Any]) -> int:
    """Sends one DynamoDB request to `app`; returns the HTTP status."""
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host, Signature=0",
        "Content-Type": "application/x-amz-json-1.0",
    }
    statuses: list[str] = []
    environ = create_environ("/", method="POST", data=json.dumps(body), headers=headers)
    b"".join(app(environ, lambda status, headers, exc_info=None: statuses.append(status)))
    return int(statuses[-1].split()[0])


def winners(app: WsgiApp) -> list[int]:
    """How many writers of each round were told that their condition held."""
    table = {
        "TableName": "race",
        "KeySchema": [{"AttributeName": "path", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "path", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    assert call(app, "CreateTable", table) == 200
    barrier = threading.Barrier(WRITERS)

    def put(number: int) -> bool:
        body = {
            "TableName": "race",
            "Item": {"path": {"S": str(number)}},
            "ConditionExpression": "attribute_not_exists(#path)",
            "ExpressionAttributeNames": {"#path": "path"},
        }
        barrier.wait()
        return call(app, "PutItem", body) == 200

    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(WRITERS) as pool:
        return [sum(pool.map(put, [number] * WRITERS)) for number in range(ROUNDS)]


if __name__ == "__main__":
    apps: dict[str, Callable[[], WsgiApp]] = {
        "bare": lambda: DomainDispatcherApplication(create_backend_app),
        "embedded": lambda: EmbeddedApp(no_job_runs, frozenset()),
    }
    print(json.dumps(winners(apps[sys.argv[1]]())))
