"""MinIO on a loopback port: an S3 server with real versioning that is not Python.

Why this one: it has what dmslake and its peers use of S3 (versions, delete markers, multipart uploads, UploadPartCopy, conditional
puts), counts requests and bytes itself, needs one folder and no set-up, and `go install` builds it from source at a pinned version.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import IO
from urllib.error import URLError

from benchmarks.folders import PROGRAMS, SERVERS
from benchmarks.server.counts import Counts, read_metrics
from infra.local.session import ACCESS_KEY, LOOPBACK, REGION, SECRET_KEY

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
PROGRAM = PROGRAMS / f"minio-{VERSION}"
START_SECONDS = 60.0
_METRICS = "/minio/metrics/v3/api/requests"
_NAMES = ("minio_api_requests_total", "minio_api_requests_traffic_received_bytes", "minio_api_requests_traffic_sent_bytes")


class ServerError(RuntimeError):
    """The S3 server did not start; the message has the end of its log."""


class MinioServer:
    """`with MinioServer() as server: …`; its data is gone at the end."""

    title = f"MinIO {VERSION}"

    def __init__(self) -> None:
        self.url = ""
        self._folder = SERVERS
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> MinioServer:
        SERVERS.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="minio-", dir=SERVERS))
        (self._folder / "data").mkdir()
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        self._log = (self._folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            [PROGRAM, "server", "--address", f"{LOOPBACK}:{port}", "--console-address", f"{LOOPBACK}:{free_port()}", self._folder / "data"],
            env={
                "HOME": str(self._folder),
                "MINIO_ROOT_USER": ACCESS_KEY,
                "MINIO_ROOT_PASSWORD": SECRET_KEY,
                "MINIO_REGION": REGION,
                "MINIO_PROMETHEUS_AUTH_TYPE": "public",
                "MINIO_BROWSER": "off",
                "MINIO_UPDATE": "off",
            },
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self._wait()
        except BaseException as error:
            self.stop()
            said = (self._folder / "server.log").read_text(errors="replace")[-2000:]
            shutil.rmtree(self._folder, ignore_errors=True)
            if not isinstance(error, Exception):  # Ctrl-C stays what it is
                raise
            raise ServerError(f"MinIO did not start: {error}; it said: {said}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """Ends the server; may be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()

    def counts(self) -> Counts | None:
        """What it was asked since its start."""
        return read_metrics(_get(self.url + _METRICS), *_NAMES)

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                _get(self.url + "/minio/health/ready")
                return
            except (URLError, ConnectionError):
                time.sleep(0.1)
        raise TimeoutError(f"not ready within {START_SECONDS:g} s")


def _get(url: str) -> str:
    # Without the proxies of the environment: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as answer:
        return str(answer.read().decode())


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
