"""The client factory."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import botocore.loaders
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError
from botocore.loaders import JSONFileLoader

import glue_jobs.aws.clients as module
from glue_jobs import __version__
from glue_jobs.aws.clients import Deadline, make_clients, worker_s3
from glue_jobs.core.errors import ConfigurationError, LeaseLost
from tests.aws.faults import Injected, no_connection

PAST = -1.0


def test_an_endpoint_for_one_service_wins_over_the_one_for_all(environment: dict[str, str]) -> None:
    """AWS_ENDPOINT_URL_S3 is S3's alone; DynamoDB and Glue keep AWS_ENDPOINT_URL."""
    clients = make_clients({**environment, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"})

    endpoints = [client.meta.endpoint_url for client in (clients.s3, clients.dynamodb, clients.glue)]

    assert endpoints == ["http://127.0.0.1:9", environment["AWS_ENDPOINT_URL"], environment["AWS_ENDPOINT_URL"]]


def test_s3_is_addressed_by_path_at_an_endpoint_of_its_own(s3: Any, bucket: str) -> None:
    """No DNS name is made of the bucket, which would not resolve."""
    seen = Injected(s3, "ListObjectsV2")

    s3.list_objects_v2(Bucket=bucket)

    assert f"/{bucket}?" in seen.requests[0].url


def test_a_request_says_who_asks(clients: Any) -> None:
    """In S3's access logs and CloudTrail one finds what dmslake did, and which version of it."""
    seen = [Injected(clients.s3, "ListBuckets"), Injected(clients.dynamodb, "ListTables")]

    clients.s3.list_buckets()
    clients.dynamodb.list_tables()

    for each in seen:
        assert each.requests[0].headers["User-Agent"].decode().startswith(f"dmslake/{__version__} Botocore/")


def test_what_botocore_knows_of_the_services_is_read_once(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's own clients and those of its tasks are of different sessions."""
    read: list[str] = []
    really = JSONFileLoader.load_file
    monkeypatch.setattr(botocore.session, "create_loader", botocore.loaders.create_loader)  # the tests' own remembers its loader
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda self, path: read.append(path) or really(self, path))
    module._models.cache_clear()

    first, second = make_clients(environment), make_clients(environment)
    _ = first.s3, first.dynamodb
    assert read
    read.clear()
    _ = second.s3, second.dynamodb

    assert read == []


def test_further_models_are_found_where_the_configuration_says(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sessions that are made before and after it do not share them."""
    model = {"version": "2.0", "metadata": {"endpointPrefix": "ours", "protocol": "json", "serviceId": "ours"}, "operations": {}}
    (tmp_path / "ours" / "2020-01-01").mkdir(parents=True)
    (tmp_path / "ours" / "2020-01-01" / "service-2.json").write_text(json.dumps(model))
    before = make_clients(environment)
    _ = before.s3
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    after = make_clients(environment)
    _ = after.s3

    found = ["ours" in each._session.get_available_services() for each in (before, after) if each._session]

    assert found == [False, True]


def test_without_an_endpoint_aws_is_addressed(environment: dict[str, str]) -> None:
    """An empty variable counts as not given, and the region decides."""
    clients = make_clients({**environment, "AWS_ENDPOINT_URL": "", "AWS_REGION": "eu-central-1"})

    assert clients.dynamodb.meta.endpoint_url == "https://dynamodb.eu-central-1.amazonaws.com"


def test_aws_default_region_counts_where_aws_region_is_missing() -> None:
    """Both names are in use."""
    clients = make_clients({"AWS_DEFAULT_REGION": "eu-west-3"})

    assert clients.glue.meta.region_name == "eu-west-3"


def test_an_endpoint_needs_no_region(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server works without any AWS configuration."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    clients = make_clients({"AWS_ENDPOINT_URL": endpoint})

    assert clients.s3.meta.region_name == "us-east-1"


def test_no_region_and_no_endpoint_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to set."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(ConfigurationError, match="AWS_REGION") as caught:
        make_clients({}).dynamodb  # noqa: B018

    assert caught.value.code == "region"


def test_an_older_botocore_gets_no_options_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Glue's Python shell has a botocore whose Config refuses the checksum options."""

    def old_config(**options: Any) -> Config:
        if "request_checksum_calculation" in options:
            raise TypeError("Got unexpected keyword argument 'request_checksum_calculation'")
        return Config(**options)

    monkeypatch.setattr(module, "Config", old_config)

    config: Any = module._config(path_style=True)

    assert (config.retries["mode"], config.s3) == ("standard", {"addressing_style": "path"})


def test_a_worker_makes_its_client_once(environment: dict[str, str]) -> None:
    """The order of the variables doesn't matter."""
    items = tuple(environment.items())

    assert worker_s3(items) is worker_s3(items[::-1])


def test_threads_that_want_the_worker_client_at_once_get_one(environment: dict[str, str]) -> None:
    """Making one takes as long as a dozen requests."""
    items, all_here = (*environment.items(), ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:13")), threading.Barrier(8)

    def ask(_: int) -> int:
        all_here.wait(60)
        return id(worker_s3(items))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


def test_impatient_clients_try_once_and_keep_the_deadline(environment: dict[str, str]) -> None:
    """A caller that asks again itself would else wait for botocore's attempts, each on a connection that hangs."""
    first = make_clients(environment, Deadline())
    client = first.impatient(2.5).dynamodb
    broken = Injected(client, "UpdateItem", no_connection)
    request: dict[str, Any] = {"TableName": "any", "Key": {"path": {"S": "any"}}}

    with pytest.raises(ConnectionClosedError):
        client.update_item(**request)
    sent = broken.sent
    assert first.deadline is not None
    first.deadline.set(PAST)
    with pytest.raises(LeaseLost):
        client.update_item(**request)

    assert (sent, client.meta.config.connect_timeout, client.meta.config.read_timeout) == (1, 2.5, 2.5)


def test_clients_beside_others_have_a_deadline_of_their_own(environment: dict[str, str]) -> None:
    """Of the same session, and to the same endpoints."""
    first, own = make_clients(environment, Deadline()), Deadline()

    other = first.beside(own)
    own.set(PAST)

    assert other.s3.meta.endpoint_url == first.s3.meta.endpoint_url
    with pytest.raises(LeaseLost):
        other.s3.put_object(Bucket="any", Key="any", Body=b"")
    first.deadline.check()  # type: ignore[union-attr]
