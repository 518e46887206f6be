"""The data files of a history table, read: is each row version whole, has each key at most one that is open, do the records say so?

As verify_files does with a lake table: footers, and of the rows the key and the history's own columns. What the open versions say of the
table's rows comes back as a count and a checksum of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from glue_jobs.core.history_table import COLUMNS, DELETE, FLAG, INSERT, OPERATION, PARTITIONING, UPDATE, VALID_FROM, VALID_TO
from glue_jobs.core.keys import Bound
from glue_jobs.core.partitioning import PartitionValues
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile
from glue_jobs.core.record import DataFile
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import FileReport, Finding
from glue_jobs.spark.arrow_types import conform
from glue_jobs.spark.data_file_reader import read_rows
from glue_jobs.spark.doubled_keys import BUCKET_ROWS, Seen, doubled_keys
from glue_jobs.spark.key_columns import bounds, normalised_keys
from glue_jobs.spark.key_hashes import Hashes, key_hashes
from glue_jobs.spark.partition_columns import partition_values
from glue_jobs.spark.verify_files import THREADS, KeySum, checked_by
from glue_jobs.spark.verify_reader import Checked, Reader, fetched, outside, range_of, wider_bounds

OWN = (OPERATION, VALID_FROM, VALID_TO, FLAG)


def check_history(
    s3: Any, lake: S3Uri, snapshot: Snapshot, there: Mapping[str, RawFile], *, threads: int = THREADS, bucket_rows: int = BUCKET_ROWS
) -> FileReport:
    """Check the files of the history's snapshot that are `there` (path → object as it was listed). lake: the history's folder."""
    reader = HistoryReader(s3, lake, snapshot)
    files = [file for path, file in sorted(snapshot.files.items()) if path in there]
    findings: list[Finding] = []
    rows = bytes_read = 0
    sums = KeySum()
    with ThreadPoolExecutor(threads) as pool, Seen(sum(file.rows for file in files), bucket_rows) as seen:
        for number, checked in enumerate(checked_by(pool, reader, files, threads * 2)):
            findings += checked.findings
            rows, bytes_read = rows + checked.rows, bytes_read + checked.bytes_read
            seen.add(number, checked.hashes)
            sums = sums.plus(checked.keys)
        findings += doubled_keys(reader, files, seen)
    return FileReport(tuple(findings), len(files), rows, bytes_read, sums.rows, sums.value)


class HistoryReader(Reader):
    """Reads and checks the files of a history table. Keys are those of open versions: closed ones may have been of another key."""

    def key_of(self, file: DataFile) -> tuple[str, ...]:
        return self.key if file.low is not None else ()

    def of_statistics(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[tuple[str, str]]:
        """None: the record gives the bounds of open versions, a footer those of all."""
        return iter(())

    def checked(self, file: DataFile, version: str | None = None) -> Checked:
        parquet = self.open(file, version)
        wrong = [*self.of_footer(file, parquet)]
        read, count = fetched(parquet, {*self.key, *OWN}), parquet.metadata.num_rows
        if wrong:
            return Checked(file, self.wrong(file, wrong), rows=count, bytes_read=read)
        hashes: list[Hashes] = [np.empty(0, np.uint64)]
        living = [np.empty(0, np.bool_)]
        found: tuple[Bound, Bound] | None = None
        for rows in self._versions(file, parquet):
            wrong += [each for each in _wrong_versions(rows, file) if each not in wrong]
            latest = self._open_keys(rows)
            if any(column.null_count for column in latest.select(list(self.key)).itercolumns()):
                wrong.append(("a key in every open version", "a null in a key column"))
                break
            if latest.num_rows:
                found = wider_bounds(found, bounds(latest, self.key))
                hashes.append(key_hashes(normalised_keys(latest, self.key)))
                living.append(np.asarray(pc.not_equal(latest[OPERATION], DELETE).to_numpy()))
        wrong += self._wrong_bounds(file, found)
        return Checked(file, self.wrong(file, wrong), np.concatenate(hashes), count, read, np.concatenate(living))

    def keys(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[pa.Table]:
        """The key columns of open versions, in pieces."""
        for rows in self._versions(file, parquet):
            yield self._open_keys(rows).select(list(self.key))

    def _versions(self, file: DataFile, parquet: pq.ParquetFile) -> Iterator[pa.Table]:
        names = [name for name in (*self.key, *OWN) if name in parquet.schema_arrow.names]
        wanted = (*self.key_schema, *(column for column in COLUMNS if column.name in OWN))
        for rows in read_rows(parquet, names, file.path):
            yield conform(rows, wanted, file.path)

    def _open_keys(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.equal(rows[FLAG], 1))

    def _wrong_bounds(self, file: DataFile, found: tuple[Bound, Bound] | None) -> Iterable[tuple[str, str]]:
        if found is None:
            return ()
        if file.low is None:
            return [("no open version, as the record gives no key range", "open versions: a batch would pass over them")]
        return list(outside(found, *range_of(self.snapshot, file), "keys of open versions"))


def _wrong_versions(rows: pa.Table, file: DataFile) -> Iterator[tuple[str, str]]:
    """(expected, found) for versions that contradict themselves."""

    def some(mask: Any) -> bool:
        return bool(pc.any(pc.fill_null(mask, True)).as_py())

    if some(pc.invert(pc.is_in(rows[FLAG], pa.array([0, 1], pa.int32())))) or some(
        pc.invert(pc.is_in(rows[OPERATION], pa.array([INSERT, UPDATE, DELETE])))
    ):
        yield "validity_flag 0 or 1, operation insert, update or delete", "other values"
    if some(pc.not_equal(pc.equal(rows[FLAG], 1), pc.is_null(rows[VALID_TO]))):
        yield "a valid_to where validity_flag is 0, none where it is 1", "versions that say otherwise"
    if some(pc.is_null(rows[VALID_FROM])) or pc.any(pc.less(rows[VALID_TO], rows[VALID_FROM])).as_py():
        yield "a valid_from, not later than valid_to", "versions that end before they begin, or have no begin"
    if _months(rows[VALID_FROM]) - {file.partition}:
        yield f"valid_from in the month {'-'.join(map(str, file.partition))}", "versions of another month"


def _months(times: pa.ChunkedArray) -> set[PartitionValues]:
    """The partitions of the first and the last of the times. By Arrow: Python has no year 0, and none after 9999."""
    ends = pa.chunked_array([pa.repeat(end, 1) for end in (pc.min(times), pc.max(times))]).drop_null()
    values = partition_values(pa.table({VALID_FROM: ends}), PARTITIONING, COLUMNS, False, VALID_FROM)
    return set(zip(*values.to_pydict().values(), strict=True))
