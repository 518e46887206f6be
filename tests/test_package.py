"""What is in the wheel, and what installing it asks for."""

from __future__ import annotations

import email
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import glue_jobs
from controller.artifacts import build_artifacts
from infra.aws import LAKE

ROOT = Path(__file__).parent.parent
NOT_SHIPPED = {".pyc"}


def metadata(wheel: Path) -> email.message.Message:
    """The METADATA file of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_nothing_is_required(wheel: Path) -> None:
    """Each requirement belongs to an extra: the Python shell installs the wheel without internet."""
    requirements = metadata(wheel).get_all("Requires-Dist", [])

    assert requirements
    assert [line for line in requirements if "extra ==" not in line] == []


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """Name, version, oldest Python, extras and license are those that the design states."""
    found = metadata(wheel)

    assert (found["Name"], found["Version"], found["Requires-Python"]) == ("dmslake", glue_jobs.__version__, ">=3.9")
    assert set(found.get_all("Provides-Extra")) == {"jobs", "cli", "query", "local", "capture", "feed", "bench", "dev"}
    assert "Apache-2.0" in {found["License"], found["License-Expression"]}


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    """Modules, type markers and data (SQL, templates, the awsglue shim): a missing one is noticed only on AWS."""
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in ("glue_jobs", "controller", "infra")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in NOT_SHIPPED
    }

    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert shipped == files


def test_an_installed_distribution_builds_the_same_files(wheel: Path, tmp_path: Path) -> None:
    """As a checkout does, byte for byte; and all that setup.py ships of the two packages is in the wheel."""
    with zipfile.ZipFile(wheel) as shipped:
        shipped.extractall(tmp_path / "installed")
        names = {name for name in shipped.namelist() if name.startswith(("glue_jobs/", "controller/"))}
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r}); from controller.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-I", "-c", code, "build", str(tmp_path / "built"), "--output", "json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    here = build_artifacts(LAKE.read_bytes())
    assert json.loads(done.stdout)["digest"] == here.digest
    assert {file.name: file.data for file in here.files} == {
        path.relative_to(tmp_path / "built").as_posix(): path.read_bytes() for path in (tmp_path / "built").rglob("*") if path.is_file()
    }
    with zipfile.ZipFile(io.BytesIO(here.file(here.wheel).data)) as built:
        assert {name for name in built.namelist() if ".dist-info/" not in name} == names
