"""What is in the wheel, and what installing it asks for."""

from __future__ import annotations

import email
import zipfile
from pathlib import Path

import glue_jobs

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
    assert set(found.get_all("Provides-Extra")) == {"jobs", "cli", "query", "local", "capture", "feed", "dev"}
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
