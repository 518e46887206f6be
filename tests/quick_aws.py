"""An AWS inside this process: the embedded server's application without its sockets, so that a request costs a call.

For whatever runs in this process: no job is started there, and another process, or a library that is not botocore, can't reach it.
It stands beside real servers and beside `mock_aws`, which shares nothing with it but moto's code.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session
from moto.core.base_backend import BackendDict
from moto.s3.models import FakeKey, FakeMultipart

from infra.local.cloudformation.lake import lake_lifecycle
from infra.local.embedded import WAIT_SECONDS
from infra.local.quick_moto import make_requests_quick
from infra.local.server import EmbeddedApp, make_listings_quick
from infra.local.session import aws_environment, embedded_client, embedded_session
from tests.aws.faults import RawBody

PORT = 13  # of this machine, where nobody listens; tests that want nobody to answer take another one
ENDPOINT = f"http://127.0.0.1:{PORT}"
ACCOUNT = "210987654321"  # not moto's usual one, which is of those who mock


class QuickAws:
    """Buckets, state table and Glue database, as an installation has them; with the part of EmbeddedAws's interface that tables need."""

    endpoint_url = ENDPOINT
    state_table = "DMSCDC_Controller"
    database = "dmslake"

    def __init__(self, account: str = ACCOUNT, raw: str = "s3://quick-raw/dms/", lake: str = "s3://quick-lake/lake/") -> None:
        make_listings_quick()
        make_requests_quick()
        self.raw, self.lake = raw, lake
        self._account = account
        self._app = EmbeddedApp(_no_job_runs, frozenset())
        self._clients: dict[str, Any] = {}
        self._clients_lock = threading.Lock()
        self._session = embedded_session()

    @property
    def raw_bucket(self) -> str:
        return self.raw.split("/")[2]

    @property
    def lake_bucket(self) -> str:
        return self.lake.split("/")[2]

    def environment(self) -> dict[str, str]:
        """What a run has in its environment."""
        return {
            **aws_environment(),
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "DMSLAKE_RAW": self.raw,
            "DMSLAKE_LAKE": self.lake,
            "DMSLAKE_STATE_TABLE": self.state_table,
            "DMSLAKE_DATABASE": self.database,
            "DMSLAKE_WAIT_SECONDS": WAIT_SECONDS,
        }

    def client(self, service: str) -> Any:
        """A boto3 client of `service`; one per service, shared by threads."""
        with self._clients_lock:
            if service not in self._clients:
                self._clients[service] = embedded_client(service, self.endpoint_url, self._session)
            return self._clients[service]

    @contextmanager
    def connected(self) -> Iterator[QuickAws]:
        """Requests to its endpoint come here, those to others go their way, and what is stored outlives `mock_aws`."""
        send, reset = URLLib3Session.send, BackendDict.reset

        def route(session: URLLib3Session, request: Any) -> Any:
            return self.answer(request) if urlsplit(request.url).port == PORT else send(session, request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(URLLib3Session, "send", route)
            patch.setattr(BackendDict, "reset", lambda *_: self._spared(reset))
            yield self

    def create(self) -> None:
        """What the stack of an installation creates, but the state table, which runs create too; to be called once, while connected."""
        s3 = self.client("s3")
        for bucket in (self.raw_bucket, self.lake_bucket):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=self.lake_bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_lifecycle_configuration(Bucket=self.lake_bucket, LifecycleConfiguration=lake_lifecycle())
        self.client("glue").create_database(DatabaseInput={"Name": self.database})

    def answer(self, request: Any) -> AWSResponse:
        """The answer to botocore's prepared request. As behind a socket, a defect of moto is an answer: 500."""
        status, headers = "500 Internal Server Error", [("Content-Type", "text/plain")]

        def start(given: str, lines: list[tuple[str, str]], exc_info: Any = None) -> None:
            nonlocal status, headers
            status, headers = given, lines

        try:
            body = b"".join(self._app(self._environ(request), start))
        except Exception as error:  # noqa: BLE001
            status, headers, body = (
                "500 Internal Server Error",
                [("Content-Type", "text/plain")],
                f"{type(error).__name__}: {error}".encode(),
            )
        return AWSResponse(request.url, int(status.split(" ", 1)[0]), dict(headers), RawBody(body))

    def _spared(self, reset: Any) -> None:
        """moto's reset, of all that others have stored."""
        kept = [(backends, backends.pop(self._account)) for backends in list(BackendDict._instances) if self._account in backends]
        for model in (FakeKey, FakeMultipart):  # a reset closes the data of all that were ever made
            model.instances_tracked = [made for made in model.instances_tracked if made.account_id != self._account]
        reset()
        for backends, own in kept:
            backends[self._account] = own
            BackendDict._instances.append(backends)

    def _environ(self, request: Any) -> dict[str, Any]:
        """The request as WSGI has it."""
        url = urlsplit(request.url)
        body = _bytes(request.body)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(url.path, "latin-1"),
            "RAW_URI": request.url[len(f"{url.scheme}://{url.netloc}") :],
            "QUERY_STRING": url.query,
            "SERVER_NAME": url.netloc,
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": url.netloc,
            "wsgi.url_scheme": url.scheme,
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.version": (1, 0),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in request.headers.items():
            key = name.upper().replace("-", "_")
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode() if isinstance(value, bytes) else str(value)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = self._account
        return environ


def _no_job_runs(environ: Any, start_response: Any) -> Iterable[bytes]:
    raise AssertionError("no job is started here")


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, (bytes, bytearray)) else bytes(body.read())
