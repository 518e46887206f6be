"""Folders that are made once and kept: whole or not there at all, also when two runs make the same one."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def kept_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made by `make` in another place and then renamed, if it is not there."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}-part-", dir=folder.parent))
        try:
            make(part)
            with contextlib.suppress(OSError):  # another run was first
                part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder
