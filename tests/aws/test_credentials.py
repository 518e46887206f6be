"""Where a client's credentials come from."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from glue_jobs.aws.clients import make_clients, worker_s3
from glue_jobs.core.errors import ConfigurationError

KEYS = {"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T"}


def test_an_unknown_profile_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the profile."""
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(ConfigurationError, match="nobody") as caught:
        make_clients({"AWS_PROFILE": "nobody", "AWS_REGION": "us-east-1"}).s3  # noqa: B018

    assert caught.value.code == "profile"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a profile with credentials and region; the process's environment has neither."""
    config = tmp_path / "config"
    config.write_text("[profile work]\nregion = eu-north-1\naws_access_key_id = A\naws_secret_access_key = B\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_DEFAULT_REGION", *KEYS):
        monkeypatch.delenv(name, raising=False)
    return "work"


def test_a_profile_gives_credentials_and_region(profile: str) -> None:
    """AWS_PROFILE is honoured from the given environment, not only from the process's."""
    session = make_clients({"AWS_PROFILE": profile})._new_session()

    assert (session.region_name, session.get_credentials().access_key) == ("eu-north-1", "A")


@pytest.mark.parametrize("are_told", [True, False], ids=["told", "a worker's"])
def test_keys_win_over_a_profile(profile: str, monkeypatch: pytest.MonkeyPatch, are_told: bool) -> None:
    """As with the AWS CLI; the region is the profile's. A worker is told the profile alone, and has the keys in its process."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    session = make_clients({"AWS_PROFILE": profile, **(KEYS if are_told else {})})._new_session()

    found: Any = session.get_credentials()
    assert (session.region_name, found.access_key, found.secret_key, found.token) == ("eu-north-1", *KEYS.values())


@pytest.mark.parametrize("name", sorted(KEYS))
def test_half_of_the_keys_is_no_credentials(profile: str, name: str) -> None:
    """The profile's are taken."""
    session = make_clients({"AWS_PROFILE": profile, name: KEYS[name]})._new_session()

    assert session.get_credentials().access_key == "A"


class Metadata(BaseHTTPRequestHandler):
    """An instance metadata service that is too busy for `busy` requests, then gives credentials."""

    busy = 0

    def do_GET(self) -> None:
        Metadata.busy -= 1
        if Metadata.busy >= 0:
            self.send_error(503)
            return
        role = {"Code": "Success", "AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C", "Expiration": "2999-01-01T00:00:00Z"}
        body = (json.dumps(role) if self.path.endswith("/role") else "role").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.send_error(404)  # no token is needed

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Metadata]]:
    """A machine whose credentials come from there alone."""
    for name in (*KEYS, "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Metadata
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_busy_metadata_service_is_asked_again(metadata: type[Metadata]) -> None:
    """Botocore alone would give up after the first attempt."""
    metadata.busy = 2

    found: Any = make_clients({"AWS_REGION": "us-east-1"})._new_session().get_credentials()

    assert found.access_key == "A"


def test_a_worker_that_got_no_credentials_asks_again(metadata: type[Metadata]) -> None:
    """Its client would be without any for as long as the process lives."""
    items = (("AWS_REGION", "us-east-1"), ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:14"))
    metadata.busy = 1000
    with pytest.raises(ConfigurationError, match="Unable to locate credentials"):
        worker_s3(items)
    metadata.busy = 0

    assert worker_s3(items).meta.endpoint_url == "http://127.0.0.1:14"


def test_how_often_the_metadata_service_is_asked_can_be_set(metadata: type[Metadata], monkeypatch: pytest.MonkeyPatch) -> None:
    """By botocore's own variable."""
    monkeypatch.setenv("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")
    metadata.busy = 1

    assert make_clients({"AWS_REGION": "us-east-1"})._new_session().get_credentials() is None
