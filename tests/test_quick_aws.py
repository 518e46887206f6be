"""The AWS in this process stands beside those who mock AWS in it, and leaves nothing behind."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.httpsession import URLLib3Session
from moto import mock_aws

from glue_jobs.aws.clients import Clients, make_clients
from infra.local.session import embedded_client
from tests.quick_aws import QuickAws
from tests.work_tables import IN_PROCESS


def put(s3: Any, bucket: str, **key: Any) -> None:
    s3.put_object(Bucket=bucket, Key="a", Body=b"x" * 600_000, **key)  # moto keeps it in a file


def test_what_it_holds_outlives_a_mock(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """moto forgets all at the begin and end of mock_aws; of ours nothing, and neither sees the other's buckets."""
    put(quick_clients.s3, quick_aws.raw_bucket)
    with mock_aws():
        mocked = make_clients(IN_PROCESS).s3
        mocked.create_bucket(Bucket="raw")
        put(mocked, "raw")
        assert [bucket["Name"] for bucket in mocked.list_buckets()["Buckets"]] == ["raw"]
        put(quick_clients.s3, quick_aws.raw_bucket)
    with mock_aws():
        assert make_clients(IN_PROCESS).s3.list_buckets()["Buckets"] == []

    found = quick_clients.s3.get_object(Bucket=quick_aws.raw_bucket, Key="a")["Body"].read()
    buckets = {bucket["Name"] for bucket in quick_clients.s3.list_buckets()["Buckets"]}
    assert len(found) == 600_000
    assert {quick_aws.lake_bucket, quick_aws.raw_bucket} <= buckets  # other tests add theirs
    assert "raw" not in buckets
    assert quick_aws.state_table in quick_clients.dynamodb.list_tables()["TableNames"]


def test_other_endpoints_are_left_alone(quick_aws: QuickAws) -> None:
    """A request to another port is sent there."""
    client = embedded_client("s3", "http://127.0.0.1:10")  # where nobody listens either
    client.meta.events.register_first("needs-retry.s3", lambda **_: None)

    with pytest.raises(EndpointConnectionError):
        client.list_buckets()


def test_of_racing_conditional_writes_one_wins(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """As on AWS, and not as in moto by itself."""

    def put_item(number: int) -> bool:
        item = {"path": {"S": "race/"}, "by": {"N": str(number)}}
        try:
            quick_clients.dynamodb.put_item(
                TableName=quick_aws.state_table,
                Item=item,
                ConditionExpression="attribute_not_exists(#path)",
                ExpressionAttributeNames={"#path": "path"},
            )
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ConditionalCheckFailedException"  # noqa: PT017
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put_item, range(16))) == 1
    quick_clients.dynamodb.delete_item(TableName=quick_aws.state_table, Key={"path": {"S": "race/"}})


def test_its_end_leaves_nothing() -> None:
    """Neither patches nor variables."""
    send, variables = URLLib3Session.send, dict(os.environ)
    with QuickAws("111111111111", "s3://other-raw/", "s3://other-lake/").connected():
        assert URLLib3Session.send is not send

    assert URLLib3Session.send is send
    assert dict(os.environ) == variables


def test_a_defect_is_an_answer(quick_aws: QuickAws) -> None:
    """As behind a socket: what the application raises is a server's error, not an exception in the test."""
    signed = "AWS4-HMAC-SHA256 Credential=x/20240101/us-east-1/glue/aws4_request, SignedHeaders=host, Signature=0"
    headers = {"X-Amz-Target": "AWSGlue.GetTable", "Authorization": signed, "Content-Type": "application/x-amz-json-1.1"}
    request = AWSPreparedRequest("POST", f"{quick_aws.endpoint_url}/", headers, b"no json", None)

    answer = quick_aws.answer(request)

    assert answer.status_code == 500
    assert "JSONDecodeError" in answer.text


def test_a_value_of_every_type_comes_back(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """Also false, empty ones and one in another: values are written past moto's guesses at their names."""
    values: dict[str, Any] = {
        "path": {"S": "types/"}, "text": {"S": ""}, "number": {"N": "0"}, "bytes": {"B": b"\0\xff"}, "texts": {"SS": ["a", "b"]},
        "numbers": {"NS": ["1"]}, "parts": {"BS": [b"\0"]}, "no": {"BOOL": False}, "nothing": {"NULL": True},
        "list": {"L": [{"S": "x"}, {"L": []}, {"M": {"no": {"BOOL": False}}}]}, "map": {"M": {"S": {"N": "1"}, "empty": {"M": {}}}},
    }  # fmt: skip

    quick_clients.dynamodb.put_item(TableName=quick_aws.state_table, Item=values)

    key = {"path": values["path"]}
    assert quick_clients.dynamodb.get_item(TableName=quick_aws.state_table, Key=key)["Item"] == values
    quick_clients.dynamodb.delete_item(TableName=quick_aws.state_table, Key=key)


def test_signatures_name_key_region_and_service(quick_aws: QuickAws) -> None:
    """Which is what moto reads of them; two requests of one client don't have each other's."""
    seen: list[str] = []
    clients = make_clients({**quick_aws.environment(), "AWS_REGION": "eu-west-1"})
    for client in (clients.s3, clients.dynamodb):
        client.meta.events.register("before-send", lambda request, **_: seen.append(request.headers["Authorization"].decode()))

    clients.s3.list_buckets()
    clients.dynamodb.list_tables()

    assert [text.split("/")[2:4] for text in seen] == [["eu-west-1", "s3"], ["eu-west-1", "dynamodb"]]
