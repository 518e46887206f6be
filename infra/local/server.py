"""The loopback HTTP server in front of moto: threaded, keep-alive, closed to web pages, and with DynamoDB and Glue requests one at a time.

moto brings a server of its own; it closes the connection after every request, and its conditional writes to DynamoDB
race with each other (two winners of one condition were seen). It also answers the pages of any web site, and a request can start a job
run here, which is a process. All three are put right here, outside of moto.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import socket
import threading
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import moto.core.serialize
import moto.s3.models
from moto.iam.access_control import PermissionResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import FakeBucket, FakeDeleteMarker, FakeKey, S3Backend
from moto.s3.responses import S3Response
from werkzeug.serving import ThreadedWSGIServer

from infra.local.session import LOOPBACK

Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_NO_BODY_STATUS = frozenset({204, 304})
# A page that has its own name resolve to this machine is sent with that name. Any port: it may be a tunnel's. A bucket's name in front
# is refused too: boto3, aws, Arrow and delta-rs have it in the path by themselves here, Spark's connector where path.style.access is set.
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_REFUSED = "<Error><Code>AccessDenied</Code><Message>{}</Message></Error>"  # S3's form; clients of the others show it as it is

_parse_any_datetime = moto.core.serialize.parse_to_aware_datetime


def _parse_datetime(value: object) -> datetime.datetime:
    """moto turns every timestamp of a listing into text and back, by guessing its format: half the time of a listing."""
    if isinstance(value, str) and value.endswith("Z"):
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(value)
    parsed: datetime.datetime = _parse_any_datetime(value)
    return parsed


class _ListedKey(FakeKey):
    """A key in a listing: it shares the bytes of the key that is kept, and leaves them alone at its own end."""

    def __del__(self) -> None:
        pass


def _listed(kind: type[Any]) -> Callable[[Any, Any], Any]:
    """What deepcopy makes of a version. moto copies all versions of a bucket, bytes included, for each listing of versions; and keeps
    every copy in a list of all objects it ever made, unless it is made past its own __new__."""

    def copied(version: Any, _: Any) -> Any:
        shown = object.__new__(kind)
        shown.__dict__.update(version.__dict__)
        return shown

    return copied


_list_all_versions = S3Backend.list_object_versions


def _list_versions(backend: S3Backend, bucket_name: str, **given: Any) -> Any:
    """moto's listing of versions, of a bucket that has only the keys with the prefix."""
    kept = backend.get_bucket(bucket_name).keys
    prefix = given.get("prefix") or ""
    keys = SimpleNamespace(iterlists=lambda: [(key, kept.getlist(key)) for key in list(kept) if key.startswith(prefix)])
    narrowed: Any = SimpleNamespace(get_bucket=lambda _: SimpleNamespace(keys=keys))
    return _list_all_versions(narrowed, bucket_name, **given)


_list_uploads = S3Response.list_multipart_uploads


def _list_uploads_with_times(response: Any) -> Any:
    """moto's listing of uploads, of which all are said to be of 2010; here each is as old as its first part."""
    uploads = response.backend.list_multipart_uploads(response.bucket_name)
    write, now = response.serialized, datetime.datetime.now(datetime.timezone.utc)

    def serialized(result: Any) -> Any:
        for entry in result.result["Uploads"]:
            times = [part.last_modified.replace(tzinfo=datetime.timezone.utc) for part in uploads[entry["UploadId"]].parts.values()]
            entry["Initiated"] = min(times, default=now).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return write(result)

    response.serialized = serialized
    try:
        return _list_uploads(response)
    finally:
        del response.serialized


def make_listings_quick() -> None:
    """For the process of the server only: a parser for the one format that moto itself writes comes before its guess, a listing of
    versions looks at, and copies, no more than it shows, and one of uploads says when they were started."""
    S3Response.list_multipart_uploads = _list_uploads_with_times  # type: ignore[method-assign]
    moto.core.serialize.parse_to_aware_datetime = _parse_datetime
    moto.s3.models.FakeKey.__deepcopy__ = _listed(_ListedKey)  # type: ignore[attr-defined]
    moto.s3.models.FakeDeleteMarker.__deepcopy__ = _listed(FakeDeleteMarker)  # type: ignore[attr-defined]
    S3Backend.list_object_versions = _list_versions  # type: ignore[assignment,method-assign]


def leave_policies_alone() -> None:
    """For the process of the server only: bucket policies are kept and shown. moto knows no conditions: it takes a Deny of what comes
    without TLS for a Deny of everything."""
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL  # type: ignore[assignment,method-assign]


class _Dispatcher(DomainDispatcherApplication):
    """moto's dispatcher, which remembers what it found: it looks at a folder per AWS service for every request (40 % of
    the time of a small GET)."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._backends: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        if host not in self._backends:
            self._backends[host] = super().get_backend_for_host(host)
        return self._backends[host]


class EmbeddedApp:
    """A WSGI application: hands the job run operations of Glue to `job_runs` and every other request to moto.

    This is the one place where moto is taken apart: its own job runs execute nothing and always report success. The
    operations are caught here, on the wire, because the wire is documented and moto's classes are not.
    """

    def __init__(self, job_runs: WsgiApp, job_run_operations: frozenset[str]) -> None:
        self._moto = _Dispatcher()
        self._job_runs = job_runs
        self._job_run_operations = job_run_operations
        # moto checks a condition and then writes, without a lock: two threads can both find the condition true.
        # Its Glue catalog has the same shape of code (exists? no: insert), so it is serialized too.
        self._one_at_a_time = {"dynamodb": threading.Lock(), "glue": threading.Lock()}

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        service, operation = _target(environ)
        if service == "glue" and operation in self._job_run_operations:
            return self._job_runs(environ, start_response)
        with self._one_at_a_time.get(service, contextlib.nullcontext()):
            return self._moto(environ, start_response)


def _target(environ: Environ) -> tuple[str, str]:
    """('dynamodb', 'PutItem') of the header `DynamoDB_20120810.PutItem`; two empty strings for S3, which has none."""
    prefix, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")
    service = {"DynamoDB_20120810": "dynamodb", "AWSGlue": "glue"}.get(prefix, "")
    return service, operation


def _refusal(environ: Environ) -> str:
    """Why the request is not answered; empty for one of an AWS client.

    Browsers name themselves where a page asks: by Origin in all but some reads, by Sec-Fetch-Site in those, and by OPTIONS before what
    a page may not ask unasked. An address that a person types is no page's (`none`).
    """
    if not _OWN_HOST.fullmatch(environ.get("HTTP_HOST", "")):
        return (
            f"this server answers to {LOOPBACK}, localhost and [::1] only, buckets in the path: set AWS_ENDPOINT_URL=http://{LOOPBACK}:PORT"
        )
    page = "HTTP_ORIGIN" in environ or environ.get("HTTP_SEC_FETCH_SITE", "none") != "none"
    if page or environ["REQUEST_METHOD"] == "OPTIONS":
        return "this server answers AWS clients only, no web page"
    return ""


class RequestHandler(MotoRequestHandler):
    """One connection: requests one after the other until the client closes it (HTTP/1.1 keep-alive).

    werkzeug's handler closes after each request because it can't know whether the application read the whole body. Here
    the body is read to its end before the application runs, so that nothing of it is left in front of the next request.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body leave as two packets; with Nagle the second waits for a delayed ACK
    wbufsize = 64 * 1024

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)  # type: ignore[attr-defined]

    def finish(self) -> None:
        self.server.closed(self.connection)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            super().finish()

    def handle_expect_100(self) -> bool:
        """Asks for the body. Flushed at once: botocore waits a whole second for this line before it sends anyway."""
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.wfile.flush()
        return True

    def run_wsgi(self) -> None:
        """Answers one request: 403 if a web page may have made it. An exception of the application becomes a 500 with its text."""
        environ = self.environ = self.make_environ()
        body = self._read_body(environ)
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        refusal = _refusal(environ)
        if refusal:
            self._send("403 Forbidden", [("Content-Type", "application/xml")], _REFUSED.format(refusal).encode())
            return
        answer: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            answer.append((status, headers))

        try:
            chunks = self.server.app(environ, start_response)
            payload = b"".join(chunks)
            if hasattr(chunks, "close"):
                chunks.close()
            status, headers = answer[-1]
        # A defect of moto must reach the client as an answer, not as a dead connection.
        except Exception as error:  # noqa: BLE001
            status, headers = "500 Internal Server Error", [("Content-Type", "text/plain")]
            payload = f"{type(error).__name__}: {error}".encode()
        self._send(status, headers, payload)

    def _read_body(self, environ: Environ) -> bytes:
        if environ.get("wsgi.input_terminated"):  # Transfer-Encoding: chunked, unwrapped by werkzeug
            return bytes(environ["wsgi.input"].read())
        length = int(environ.get("CONTENT_LENGTH") or 0)
        return self.rfile.read(length) if length else b""

    def _send(self, status: str, headers: list[tuple[str, str]], payload: bytes) -> None:
        code = int(status.split(" ", 1)[0])
        self.send_response_only(code, status.partition(" ")[2])
        names = set()
        for name, value in headers:
            names.add(name.lower())
            self.send_header(name, value)
        has_body = self.command != "HEAD" and code not in _NO_BODY_STATUS
        # A HEAD answer carries the length of the object, not of its own (empty) body: it is moto's to say.
        if "content-length" not in names and code not in _NO_BODY_STATUS:
            self.send_header("Content-Length", str(len(payload)))
        if "date" not in names:
            self.send_header("Date", self.date_time_string())
        self.end_headers()
        if has_body:
            self.wfile.write(payload)
        self.wfile.flush()

    def log(self, type: str, message: str, *args: Any) -> None:
        """Says nothing: a line per request would bury what a person wants to see."""


class EmbeddedServer(ThreadedWSGIServer):
    """The listening socket and its threads; `start` returns when connections are accepted, `stop` closes them all."""

    request_queue_size = 128  # the default of 5 makes a burst of Spark tasks wait for a SYN to be sent again
    daemon_threads = True

    def __init__(self, app: WsgiApp | None = None, port: int = 0) -> None:
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__(LOOPBACK, port, app, RequestHandler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it, such as `http://127.0.0.1:40001`."""
        return f"http://{LOOPBACK}:{self.server_port}"

    def start(self) -> None:
        """Begins to answer. Connections made before wait in the queue of the socket, which listens since `__init__`."""
        self._thread.start()

    def stop(self) -> None:
        """Stops to listen and ends every open connection, so that no client waits for an answer."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def opened(self, connection: socket.socket) -> None:
        """A handler began to serve `connection`."""
        with self._connections_lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """A handler is done with `connection`."""
        with self._connections_lock:
            self._connections.discard(connection)
