"""The service models of the botocore versions that the runtimes have, read from their wheels, which are kept in .cache."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from botocore.handlers import handle_copy_source_param
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

ROOT = Path(__file__).parents[2]
# Python shell 3.9 before anything is installed; Glue 5.0; Glue 5.1.
VERSIONS = ("1.24.21", "1.34.131", "1.40.61")
SERVICES = ("s3", "dynamodb", "glue")


def folder_of(version: str) -> Path:
    """The folder with the models of our services; downloaded once, two test runs wait for each other."""
    folder = ROOT / ".cache" / f"botocore-{version}"
    folder.parent.mkdir(exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory() as downloads:
                _unpack(_download(version, Path(downloads)), folder)
            (folder / "complete").touch()
    return folder


def _download(version: str, to: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(to)]
    done = subprocess.run([*command, f"botocore=={version}"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = to.glob("*.whl")
    return wheel


def _unpack(wheel: Path, folder: Path) -> None:
    starts = tuple(f"botocore/data/{service}/" for service in SERVICES)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(starts) and ("service-2" in name or "paginators" in name):
                target = folder / name.removeprefix("botocore/data/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


@lru_cache(maxsize=len(VERSIONS) * len(SERVICES))
def service_model(version: str, service: str) -> ServiceModel:
    return ServiceModel(_loader(version).load_service_model(service, "service-2"), service)


@lru_cache(maxsize=len(VERSIONS) * len(SERVICES))
def paginated(version: str, service: str) -> frozenset[str]:
    """The operations that have a paginator."""
    return frozenset(_loader(version).load_service_model(service, "paginators-1")["pagination"])


def refusal(version: str, service: str, operation: str, params: dict[str, Any]) -> str:
    """What that botocore's parameter validation says against the call; '' if nothing."""
    model = service_model(version, service)
    if operation not in model.operation_names:
        return f"botocore {version}: {service} has no operation {operation}"
    prepared = dict(params)
    handle_copy_source_param(prepared)  # an event handler of botocore's, older than all of these, writes it as text
    report = ParamValidator().validate(prepared, model.operation_model(operation).input_shape)
    return f"botocore {version}: {service} {operation}: {report.generate_report()}" if report.has_errors() else ""


@lru_cache(maxsize=len(VERSIONS))
def _loader(version: str) -> Loader:
    return Loader(extra_search_paths=[str(folder_of(version))], include_default_search_paths=False)
