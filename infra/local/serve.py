"""The process of the embedded AWS: `python -m infra.local.serve`, started by `EmbeddedAws` and by nobody else.

A process of its own keeps moto's global state away from tests that use moto in memory, and its work off the GIL of the
process that waits. It reads one line of JSON (`Settings`) from standard input, answers with one line `{"url": …}`, and
stops when standard input ends: closed by its owner, or by the death of its owner.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from moto.glue.exceptions import JobNotFoundException

from infra.local.artifacts import path_in_code_folder, put_artifacts
from infra.local.cloudformation.resource import backend
from infra.local.cloudformation.stacks import teach_moto
from infra.local.glue_api import JobRunApi
from infra.local.glue_runner import JobRunner, RunRefused
from infra.local.quick_moto import make_requests_quick
from infra.local.server import EmbeddedApp, EmbeddedServer, leave_policies_alone, make_listings_quick
from infra.local.session import embedded_client
from infra.local.settings import Settings

WANTED_OPEN_FILES = 65_536


def main() -> int:
    """Serves until standard input ends."""
    settings = Settings(**json.loads(sys.stdin.readline()))
    _allow_many_open_files()
    make_listings_quick()
    make_requests_quick()
    leave_policies_alone()
    teach_moto()
    put_artifacts(backend("s3"), Path(settings.code_folder))
    server, runner = _build(settings)
    server.start()
    print(json.dumps({"url": server.url}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()
    runner.close()
    server.stop()
    if settings.remove_folder:  # here, because the owner may be gone
        shutil.rmtree(settings.folder, ignore_errors=True)
    return 0


def _build(settings: Settings) -> tuple[EmbeddedServer, JobRunner]:
    """The server and the runner know each other: the server's address stands in the environment of the runs."""
    server = EmbeddedServer(port=settings.port)
    runtime = settings.runtime()
    environment = {**runtime.environment, "AWS_ENDPOINT_URL": server.url}
    runner = JobRunner(replace(runtime, environment=environment), _fetcher(server.url, runtime.code_folder))
    server.app = EmbeddedApp(JobRunApi(runner, _job_finder()), JobRunApi.OPERATIONS)
    return server, runner


def _job_finder() -> Any:
    """A function that returns a job as GetJob shows it; refused as Glue does if there is none."""

    def find(name: str) -> dict[str, Any]:
        try:
            job: dict[str, Any] = backend("glue").get_job(name).as_dict()
        except JobNotFoundException:
            raise RunRefused("EntityNotFoundException", f"Job {name} not found.") from None
        return job

    return find


def _fetcher(url: str, code_folder: Path) -> Any:
    """A function that copies an `s3://` script to a local file; one of the artifact folder comes from the code folder."""

    def fetch(location: str, target: Path) -> None:
        path = path_in_code_folder(location)
        if path is not None:
            shutil.copyfile(code_folder / path, target)
            return
        bucket, _, key = location.removeprefix("s3://").partition("/")
        embedded_client("s3", url).download_file(bucket, key, str(target))

    return fetch


def _allow_many_open_files() -> None:
    """moto keeps a temporary file open per object above 512 KB: a lake of 700 files meets the usual limit of 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_OPEN_FILES if hard == resource.RLIM_INFINITY else min(WANTED_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
