"""A table whose keys are random, so that key filters are of use, and what stands in them."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.core.key_filter import FOLDER, KeyFilter, decode, head_bytes, is_filter_name, signature
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.schema import Column
from glue_jobs.spark.key_filter_bits import hashes_of, sections_of
from glue_jobs.spark.place import Shape
from tests.protocol.wire import Request
from tests.spark.tables import WorkTable

COLUMNS = pa.schema([("id", pa.string()), ("part", pa.int32()), ("name", pa.string())])
FILES, ROWS = 40, 30
Row = tuple[str, int, str]


def random_rows(seed: int = 1) -> list[Row]:
    """Rows whose keys say nothing about their file."""
    rng = np.random.default_rng(seed)
    return [(str(uuid.UUID(bytes=rng.bytes(16))), number // ROWS, f"n{number}") for number in range(FILES * ROWS)]


def loaded(table: WorkTable) -> WorkTable:
    """40 files, each of whose key ranges meets nearly every key. They are as large as that inserts don't go to them."""
    table.load(random_rows())
    assert table.run("LoadInitial") == 0, table.last_run()
    assert len(table.snapshot().files) == FILES
    return table


class Source:
    """What the table must be like."""

    def __init__(self, table: WorkTable) -> None:
        self.table = table
        self.rows = {row[0]: row for row in random_rows()}
        self._batch = 0

    def change(self, parts: range, **settings: Any) -> tuple[int, int, str]:
        """A batch that updates a row, deletes one and inserts one in each of the partitions. How many files were searched, how many spared
        by filters (−1 where they were not asked), and what was wrong with these."""
        self._batch += 1
        found: list[tuple[str, tuple[Any, ...]]] = []
        for part in parts:
            first, second, *_ = [row for row in self.rows.values() if row[1] == part]
            changed = (first[0], part, f"changed {self._batch}")
            new = (str(uuid.UUID(int=self._batch << 64 | part << 100)), part, f"new {self._batch}")
            found += [("U", changed), ("D", second), ("I", new)]
            del self.rows[second[0]]
            self.rows |= {first[0]: changed, new[0]: new}
        self.table.cdc(found)
        assert self.table.run(**{"small_file_bytes": "0", **settings}) == 0, self.table.last_run()
        details = self.table.head().details
        said = [int(details.get(name, -1)) for name in ("files_searched", "files_spared_by_key_filters")]
        return said[0], said[1], str(details.get("key_filters_trouble", ""))

    def check(self, ordered: bool = True) -> None:
        """ordered: as of `WorkTable.check_files`."""
        assert self.table.rows() == sorted(self.rows.values(), key=repr)
        self.table.check_folder()
        self.table.check_files(ordered)
        check_filters(self.table)


def filter_keys(table: WorkTable) -> list[str]:
    """The keys of the visible objects of key filters."""
    folder = changes_folder(table.out_path)
    return [file.key for file in list_files(table.clients.s3, folder.bucket, folder.join(FOLDER).key)]


def filters(table: WorkTable) -> list[KeyFilter]:
    """What stands in them, of a table whose key is `id`."""
    signed, found = signature(("id",), ("string",)), []
    for key in filter_keys(table):
        if not is_filter_name(key[len(changes_folder(table.out_path).key) :]):
            continue
        data = read_bytes(table.clients.s3, table.out_path.bucket, key)
        assert head_bytes(data) <= len(data)
        for entry in decode(data, signed):
            sections = [span.section(data[span.start : span.stop]) for span in entry.spans]
            found.append(KeyFilter(entry.path, entry.size_bytes, entry.rows, entry.etag, tuple(each for each in sections if each)))
    return found


def filtered_paths(table: WorkTable) -> set[str]:
    """The data files that have a filter."""
    return {each.path for each in filters(table)}


def check_filters(table: WorkTable) -> None:
    """Those of the table's files have all keys of the rows that they say, and no others: else a change would be lost, or files opened."""
    shape = Shape("t", (Column("id", "string"),), ("id",))
    for each in filters(table):
        if each.path not in table.snapshot().files:
            continue
        data = read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + each.path)
        keys = pq.read_table(pa.BufferReader(data), columns=["id"], partitioning=None)
        expected = sections_of([hashes_of(keys, shape)], [section.rows for section in each.sections])
        assert expected == each.sections, each.path


def of_filters(request: Request) -> bool:
    """Whether it writes, hides or removes an object of key filters."""
    return request.is_write and (FOLDER in request.key or FOLDER.encode() in request.body)
