"""The base's files written in another way, for a table that must be given them as its own program leaves files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.base import Base
from benchmarks.data.kept import kept_folder


def derived_base(base: Base, name: str, write: Callable[[pa.Table, Path], None]) -> list[Path]:
    """A file with the same rows for each of the base's, made by `write` and kept beside them as `name`."""

    def make(folder: Path) -> None:
        for path in base.paths():
            write(pq.read_table(path), folder / path.name)

    folder = kept_folder(base.folder / name, make)
    return [folder / path.name for path in base.paths()]
