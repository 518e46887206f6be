"""Tables that tell when Arrow would gather too many bytes of text at once, as it can't from 2 GiB on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.spark import key_columns
from glue_jobs.spark.net_changes import OP, NetChanges


class Narrow:
    """A table of which Arrow is asked for rows only as key_columns.take does it: of few bytes, or with 64-bit offsets."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        if name in {"schema", "nbytes", "num_rows"}:
            return getattr(self._table, name)
        raise AssertionError(f"{name} of rows that may be too many bytes")

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._table[name]

    def itercolumns(self) -> Iterator[pa.ChunkedArray]:
        yield from self._table.itercolumns()

    def slice(self, *where: int) -> Narrow:
        return Narrow(self._table.slice(*where))

    def cast(self, schema: pa.Schema) -> Narrow:
        return Narrow(self._table.cast(schema))

    def take(self, indices: pa.Array) -> pa.Table:
        narrow = [column.nbytes for column in self._table.itercolumns() if column.type in (pa.string(), pa.binary())]
        assert max(narrow, default=0) <= key_columns.GATHER_BYTES
        return self._table.take(indices)


def gather_little(monkeypatch: pytest.MonkeyPatch, most_bytes: int = 100) -> None:
    """The rows of net changes are gathered as if Arrow could gather no more than so many bytes of text."""
    monkeypatch.setattr(key_columns, "GATHER_BYTES", most_bytes)
    monkeypatch.setattr(NetChanges, "images", property(lambda net: Narrow(net.table.drop_columns([OP]))))
