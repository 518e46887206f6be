"""What a deployment uploads, as bytes: the controller's wheel, the Spark jobs' zip, their entry scripts and the template.

The same code gives the same bytes on every machine: fixed order and times, nothing compressed (a compressor's output depends on its
version). It is read from the folders of the packages, so that a checkout and an installed distribution give the same.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import controller
import glue_jobs
from glue_jobs.core.errors import UsageError

JOBS_ZIP = "dmslake.zip"
TEMPLATE = "lake.yaml"
CONTROLLER_SCRIPT = "controller/main.py"
# What the packages are made of; tests compare it with what setup.py ships.
SUFFIXES = frozenset({".py", ".typed", ".json", ".sql", ".yaml", ".html", ".css", ".js", ".svg"})
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold
_UNIX, _READABLE = 3, 0o644 << 16
_LABEL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_GUARD = re.compile(rb'^if __name__ == "__main__":$', re.MULTILINE)

_METADATA = """Metadata-Version: 2.1
Name: dmslake
Version: {version}
Summary: The controller and the jobs of dmslake
License: Apache-2.0
Requires-Python: >=3.9
"""
_WHEEL = """Wheel-Version: 1.0
Generator: dmslake
Root-Is-Purelib: true
Tag: py3-none-any
"""


@dataclass(frozen=True)
class Artifact:
    """One file. name: its path below the version's prefix."""

    name: str
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Artifacts:
    """All files of one version, in the order of their names. label: what tells code between two versions apart, or ''."""

    files: tuple[Artifact, ...]
    label: str = ""

    @property
    def folder(self) -> str:
        """The version's own prefix, with a slash at its end."""
        return f"{glue_jobs.__version__}{'-' if self.label else ''}{self.label}/"

    @property
    def wheel(self) -> str:
        """The name of the controller's wheel."""
        return wheel_name()

    @property
    def digest(self) -> str:
        """Of all names and contents: eight hex digits."""
        lines = "".join(f"{file.digest}  {file.name}\n" for file in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()[:8]

    def file(self, name: str) -> Artifact:
        """The file of that name."""
        return next(file for file in self.files if file.name == name)

    def write(self, folder: Path) -> None:
        """Write the files below a folder of this machine."""
        for file in self.files:
            target = folder / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)


def build_artifacts(template: bytes, label: str = "") -> Artifacts:
    """The artifacts of the code that runs here. Raises UsageError for a label that can't stand in a prefix."""
    if label and not _LABEL.fullmatch(label):
        raise UsageError(f"not a label: {label!r}", "bad-argument", "take lower-case letters, digits and dots, such as fix.1")
    jobs = package_files(_folder(glue_jobs.__file__))
    shell = package_files(_folder(controller.__file__))
    files = [
        Artifact(wheel_name(), make_wheel({**shell, **jobs})),
        Artifact(JOBS_ZIP, make_zip(jobs)),
        Artifact(CONTROLLER_SCRIPT, shell[CONTROLLER_SCRIPT]),
        *(Artifact(name, data) for name, data in jobs.items() if is_entry_script(name, data)),
        Artifact(TEMPLATE, template),
    ]
    return Artifacts(tuple(sorted(files, key=lambda file: file.name)), label)


def is_entry_script(name: str, data: bytes) -> bool:
    """Whether Glue can be told to run this file of glue_jobs: it lies at the top and ends in a call of its main."""
    return name.count("/") == 1 and _GUARD.search(data) is not None


def package_files(folder: Path) -> dict[str, bytes]:
    """The files of a package by their names in an archive, whose root is where packages are imported from; in order."""
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in sorted(found)}


def make_zip(files: Mapping[str, bytes]) -> bytes:
    """A zip of the files in the order of their names."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system, entry.external_attr = _UNIX, _READABLE
            archive.writestr(entry, files[name])
    return packed.getvalue()


def wheel_name() -> str:
    """pip wants name, version and tags in it."""
    return f"dmslake-{glue_jobs.__version__}-py3-none-any.whl"


def make_wheel(files: Mapping[str, bytes]) -> bytes:
    """A wheel that requires nothing: a Python shell installs it without internet."""
    info = f"dmslake-{glue_jobs.__version__}.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": _METADATA.format(version=glue_jobs.__version__).encode(),
        f"{info}/WHEEL": _WHEEL.encode(),
    }
    lines = [f"{name},sha256={_record_digest(whole[name])},{len(whole[name])}" for name in sorted(whole)]
    record = f"{info}/RECORD"
    return make_zip({**whole, record: "\n".join([*lines, f"{record},,", ""]).encode()})


def _record_digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _folder(file: str | None) -> Path:
    """The folder of a package that is a folder; one that is imported from a zip can't be read so."""
    folder = Path(file or "").parent
    if not folder.is_dir():
        raise UsageError(f"the code is not in a folder: {folder}", "no-code-folder", "run it from a checkout or an installed distribution")
    return folder
