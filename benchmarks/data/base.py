"""The table that every contender starts from: rows made from a seed, in files of one layout, kept on disk."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.kept import kept_folder
from benchmarks.folders import DATA

KEY = "id"
SEQUENCE, UUID = "sequence", "uuid"
MANY, LARGE = "many", "large"
FULL_ROWS = 10_000_000
FULL_FILES = 700
LEAST_FILES = 20  # of the layout `many`: fewer say nothing about the cost of files
LARGE_FILE_BYTES = 128 << 20
ROW_BYTES = 64  # of a Parquet file, about
FIRST_SECOND = 1_577_836_800  # 2020-01-01
DAYS = 1250
DAY_0 = 18_262
STATUSES = ("NEW", "PAID", "SHIPPED", "RETURNED")
DASHES = (8, 12, 16, 20)
SEED = 20_240_501


@dataclass(frozen=True)
class Base:
    """A table of `rows` rows. layout: `many` (700 files of 10 million rows) or `large` (files of 128 MB). keys: `sequence`, the files
    sorted by it, or `uuid`: random, so that every file spans all keys."""

    rows: int = FULL_ROWS
    layout: str = MANY
    keys: str = SEQUENCE

    @property
    def files(self) -> int:
        if self.layout == LARGE:
            return max(1, -(-self.rows * ROW_BYTES // LARGE_FILE_BYTES))
        return max(LEAST_FILES, self.rows * FULL_FILES // FULL_ROWS)

    @property
    def name(self) -> str:
        return f"{self.rows}-{self.layout}-{self.keys}"

    @property
    def folder(self) -> Path:
        """Of the code that makes what is in it: of other code it is another."""
        return DATA / f"{self.name}-{_code_state()}"

    @property
    def schema(self) -> pa.Schema:
        return schema(pa.string() if self.keys == UUID else pa.int64())

    def bounds(self) -> list[int]:
        """The first row of each file, and the count of all rows at the end."""
        return [self.rows * number // self.files for number in range(self.files + 1)]

    def file_name(self, number: int) -> str:
        return f"part-{number:05d}.parquet"

    def paths(self) -> list[Path]:
        """The files, made when they are first asked for."""
        folder = kept_folder(self.folder / "files", self._write)
        return [folder / self.file_name(number) for number in range(self.files)]

    def _write(self, folder: Path) -> None:
        for number, rows in enumerate(self.pieces()):
            write(rows, folder / self.file_name(number))

    def pieces(self) -> Iterator[pa.Table]:
        """The rows of each file."""
        bounds = self.bounds()
        for start, stop in pairwise(bounds):
            yield make_rows(np.arange(start, stop), self, np.random.default_rng([SEED, start]))

    def read(self) -> pa.Table:
        """All rows, in the order of the files."""
        return pa.concat_tables([pq.read_table(path) for path in self.paths()])

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths())


@functools.cache
def _code_state() -> str:
    """A hash of this folder's code. Files that older code made would be measured, and compared with its truth, as if they were of this."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def schema(key: pa.DataType) -> pa.Schema:
    """Nine columns: a key, two ints, a date, an int, a decimal, a status, 40 random characters, a timestamp."""
    return pa.schema(
        [
            (KEY, key),
            ("store_id", pa.int32()),
            ("product_id", pa.int32()),
            ("order_date", pa.date32()),
            ("qty", pa.int32()),
            ("amount", pa.decimal128(12, 2)),
            ("status", pa.string()),
            ("note", pa.string()),
            ("modified", pa.timestamp("us", "UTC")),
        ]
    )


def make_rows(numbers: Any, base: Base, rng: np.random.Generator) -> pa.Table:
    """The rows with these numbers; all but a sequential key, the day and the time is random."""
    count = len(numbers)
    cents = rng.integers(0, 100_000, count)
    days = (DAY_0 + numbers * DAYS // base.rows).astype(np.int32)
    columns = [
        pa.array(numbers) if base.keys == SEQUENCE else uuids(count, rng),
        pa.array(rng.integers(0, 1000, count, dtype=np.int32)),
        pa.array(rng.integers(0, 25_000, count, dtype=np.int32)),
        pa.array(days).cast(pa.date32()),
        pa.array(rng.integers(0, 20, count, dtype=np.int32)),
        _cents(cents),
        pa.array(STATUSES).take(pa.array(rng.integers(0, len(STATUSES), count))),
        hexadecimal(count, 40, rng),
        pa.array((FIRST_SECOND + numbers * 10) * 1_000_000).cast(pa.timestamp("us", "UTC")),
    ]
    return pa.Table.from_arrays(columns, schema=base.schema)


def hexadecimal(count: int, characters: int, rng: np.random.Generator) -> pa.Array:
    """Random text of hexadecimal digits."""
    return _text(_digits(count, characters, rng))


def uuids(count: int, rng: np.random.Generator) -> pa.Array:
    """Random UUIDs as text."""
    digits = _digits(count, 32, rng)
    dash = np.full((count, 1), b"-", dtype="S1")
    parts = np.split(digits, DASHES, axis=1)
    joined = [part for pair in zip(parts, [dash] * len(DASHES), strict=False) for part in pair]
    return _text(np.concatenate([*joined, parts[-1]], axis=1))


def _digits(count: int, characters: int, rng: np.random.Generator) -> Any:
    text = rng.bytes(count * characters // 2).hex().encode()
    return np.frombuffer(text, dtype="S1").reshape(count, characters)


def _text(characters: Any) -> pa.Array:
    """Rows of single characters as an array of strings, without a Python object per row."""
    count, width = characters.shape
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    data = np.ascontiguousarray(characters).tobytes()
    return pa.StringArray.from_buffers(count, offsets.buffers()[1], pa.py_buffer(data))


def _cents(cents: Any) -> pa.Array:
    """Whole cents as decimal(12,2): the 128 bits of a decimal are its unscaled number."""
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def write(rows: pa.Table, path: Path) -> None:
    """A file as Spark's writer leaves it: snappy, microseconds, no metadata of Arrow."""
    pq.write_table(rows, path, compression="snappy", store_schema=False)
