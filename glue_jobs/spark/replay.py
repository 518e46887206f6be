"""`dmslake verify --replay`: are the rows that readers see those that a fresh replay gives?

Both sides are compared by an order-independent checksum per partition, in as many passes over parts of the keys as memory asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.aws.copies import version_gone
from glue_jobs.aws.versions import VersionEntry, versions_of
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.partitioning import PartitionValues, folder_of
from glue_jobs.core.paths import TablePath
from glue_jobs.core.record import DataFile
from glue_jobs.core.replay import NAMED, NOT_POSSIBLE, Fold, Unproven, passes, unproven
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.verify import DIFFERENCE, NOTE, FileReport, Finding
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.locate import GivenKeys
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.partition_columns import partition_values, split_by_partition
from glue_jobs.spark.past import PastFile, find_versions
from glue_jobs.spark.place import Place, Shape
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.replay_rows import Part, ReplayRows, in_threads_ahead
from glue_jobs.spark.row_changes import DELETE, INSERT, KIND, row_changes
from glue_jobs.spark.row_hashes import Checksum, row_hashes

TODO = (
    "`dmslake explain PATH --key …` tells what became of a row; find out who wrote it, then roll back to a change before, or reload the "
    "table in DMS and `dmslake reload PATH`"
)
TEXT_LENGTH = 200


@dataclass
class _Sums:
    """Of one partition over all passes."""

    expected: Checksum = Checksum()
    found: Checksum = Checksum()
    differs: bool = False
    samples: list[str] = field(default_factory=list)


def replay_table(place: Place, path: TablePath, fold: Fold) -> FileReport:
    """What differs between the rows of the fold's head and a fresh replay of its changes. Reads only.

    Raises TableBlocked, code replay-not-possible, where the replay can't be made.
    """
    adopted, lost = adopted_files(place, fold)
    leaves_open = unproven(fold.records, lost, fold.gone, fold.head)
    count = passes(str(path), fold.records, fold.head, place.limits.replay_bytes) if fold.records else 1
    lake = _LakeRows(place, str(path), fold.head)
    source = ReplayRows(place, str(path), fold, adopted)
    sums: dict[PartitionValues, _Sums] = {}
    for number in range(count):
        part = Part(number, count)
        _compare(sums, _by_partition(source.rows(part), fold.head, str(path)) if fold.records else {}, lake, part)
    findings = [*_differences(place, fold.head, sums, leaves_open), *_notes(place, fold, sums, leaves_open, count)]
    rows = sum(each.found.rows for each in sums.values())
    read = sum(item.size_bytes for record in fold.records for item in (*record.inputs, *record.context))
    return FileReport(tuple(findings), len(fold.head.files), rows, count * (read + fold.head.size_bytes))


def adopted_files(place: Place, fold: Fold) -> tuple[list[PastFile], dict[str, list[DataFile]]]:
    """(the files of an adopted base with the versions that hold their bytes, those that were erased by their change)."""
    if not fold.adopted:
        return [], {}
    record = fold.records[0]
    versions = find_versions(place, fold.adopted, fold.erased)
    there: list[PastFile] = []
    lost: dict[str, list[DataFile]] = {}
    for file in fold.adopted:
        version, key = versions[file.path], place.lake.key + file.path
        if version is not None:
            there.append(PastFile(file, version))
        elif fold.erased.change_of(key):
            lost.setdefault(record.id, []).append(file)
        else:
            gone = version_gone(place.lake.bucket, key, f"a data file of change {record.id}")
            todo = "`dmslake verify PATH` proves all but the rows; the next full load is the base of a replay again"
            raise blocked(NOT_POSSIBLE, gone.message, todo=todo)
    return there, lost


def _by_partition(rows: pa.Table, head: Snapshot, source: str) -> dict[PartitionValues, pa.Table]:
    if not head.partitioning:
        return {(): rows} if rows.num_rows else {}
    values = partition_values(rows, head.partitioning, head.schema, True, source)
    return dict(split_by_partition(rows, values))


# --- the lake's side


class _LakeRows:
    """The rows that readers see: of each data file what is visible under its key, else, where a run hid it meanwhile, its bytes."""

    def __init__(self, place: Place, table: str, head: Snapshot) -> None:
        self._place = place
        self._shape = Shape(table, head.schema, head.primary_key, head.partitioning)
        self.key = head.primary_key
        self.schema = head.schema
        self.nothing: pa.Table = arrow_schema(head.schema).empty_table()
        self._files: dict[PartitionValues, list[PastFile]] = {}
        lake = place.lake
        seen = versions_of(place.s3, lake.bucket, [lake.key + path for path in head.files])
        for path, file in sorted(head.files.items()):
            there = seen[lake.key + path]
            same = [entry for entry in there.data if entry.size == file.size_bytes and file.etag in ("", entry.etag)]
            chosen: Sequence[VersionEntry] = there.data[:1] if there.visible else same
            for entry in chosen[:1]:
                as_is = replace(file, size_bytes=entry.size, etag=entry.etag)
                self._files.setdefault(file.partition, []).append(PastFile(as_is, entry.version_id))

    def sums(self, part: Part) -> dict[PartitionValues, Checksum]:
        """Of each partition's rows."""

        def one(pair: tuple[PartitionValues, PastFile]) -> tuple[PartitionValues, Checksum]:
            sums = (Checksum.of(row_hashes(rows)) for rows in self._rows(pair[1], part))
            return pair[0], sum(sums, Checksum())

        out: dict[PartitionValues, Checksum] = {}
        for partition, found in in_threads_ahead(one, [(values, each) for values, files in self._files.items() for each in files]):
            out[partition] = out.get(partition, Checksum()) + found
        return out

    def of(self, partition: PartitionValues, part: Part) -> pa.Table:
        """The rows of a partition."""
        tables = [rows for each in self._files.get(partition, ()) for rows in self._rows(each, part)]
        return pa.concat_tables([self.nothing, *tables])

    def _rows(self, each: PastFile, part: Part) -> Iterator[pa.Table]:
        """The rows of a file; none of one that can't be read, of which plain verify tells."""
        try:
            for rows in OpenFile.open(self._place, self._shape, each.file, version=each.version).batches():
                yield part.of(rows, self.key)
        except TableBlocked:
            return


# --- comparing


def _compare(sums: dict[PartitionValues, _Sums], expected: Mapping[PartitionValues, pa.Table], lake: _LakeRows, part: Part) -> None:
    """Add a pass to the sums; name some rows where both sides differ."""
    found = lake.sums(part)
    for partition in sorted({*expected, *found}, key=repr):
        rows = expected.get(partition)
        wanted = Checksum.of(row_hashes(rows)) if rows is not None else Checksum()
        there = found.get(partition, Checksum())
        entry = sums.setdefault(partition, _Sums())
        entry.expected, entry.found = entry.expected + wanted, entry.found + there
        if wanted == there:
            continue
        entry.differs = True
        if len(entry.samples) < NAMED:
            mine = rows if rows is not None else lake.nothing
            entry.samples += samples(mine, lake.of(partition, part), lake, NAMED - len(entry.samples))


def samples(expected: pa.Table, found: pa.Table, lake: _LakeRows, most: int) -> list[str]:
    """The first rows that differ, in words. Rows whose key comes twice are told apart by all their values."""
    is_unique = bool(lake.key) and all(len(GivenKeys.of(rows, lake.key)) == rows.num_rows for rows in (expected, found))
    key = lake.key if is_unique else ()
    changes = row_changes(expected, found, lake.schema, key)
    kinds = changes[KIND]
    names = [column.name for column in lake.schema]
    texts: list[str] = []
    chosen = changes.filter(pc.is_in(kinds, pa.array([DELETE, INSERT]))).slice(0, most)
    for kind, row in zip(chosen[KIND].to_pylist(), plain_rows(chosen.select(names)), strict=True):
        said = [f"{name}={value}" for name, value in zip(names, row, strict=True) if not key or name in key]
        texts.append(_short(", ".join(said)) + (": missing" if kind == DELETE else ": not expected"))
    pairs = changes.filter(pc.invert(pc.is_in(kinds, pa.array([DELETE, INSERT])))).slice(0, 2 * (most - len(texts)))
    rows = plain_rows(pairs.select(names))
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        values = list(zip(names, before, after, strict=True))
        said = [f"{name}={old}" for name, old, _ in values if name in key]
        differ = [f"{name} is {_short(str(new))}, expected {_short(str(old))}" for name, old, new in values if repr(old) != repr(new)]
        texts.append(f"{', '.join(said)}: {'; '.join(differ)}")
    return texts


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"


# --- what is said


def _differences(place: Place, head: Snapshot, sums: Mapping[PartitionValues, _Sums], leaves_open: Unproven) -> Iterator[Finding]:
    for partition, each in sorted(sums.items(), key=lambda pair: repr(pair[0])):
        if each.differs and not leaves_open.has(partition):
            where = str(place.lake.join(folder_of(head.partitioning, partition)))
            found = f"{each.found}: {' | '.join(each.samples)}" if each.samples else str(each.found)
            yield Finding("replay-differs", DIFFERENCE, where, str(each.expected), found, TODO)


def _notes(place: Place, fold: Fold, sums: Mapping[PartitionValues, _Sums], leaves_open: Unproven, count: int) -> Iterator[Finding]:
    for change, why in leaves_open.why.items():
        where = "all rows" if leaves_open.partitions is None else f"the rows of {len(leaves_open.partitions)} partition(s)"
        yield Finding("replay-unproven", NOTE, str(place.lake), "every row proved", f"{where} can't be proved: change {change}: {why}")
    proved = [each for partition, each in sums.items() if not each.differs and not leaves_open.has(partition)]
    rows = sum(each.found.rows for each in proved)
    base = f"from change {fold.records[0].id} ({fold.records[0].kind}) on" if fold.records else "before the first change"
    more = f", in {count} passes" if count > 1 else ""
    text = f"{rows} rows in {len(proved)} partition(s) are those of a replay of {len(fold.records)} change(s) {base}{more}"
    yield Finding("replayed", NOTE, str(place.lake), "", text)
