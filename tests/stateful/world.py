"""What S3 and DynamoDB have of one table, looked at from outside after every step, and what may never be seen there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from glue_jobs.aws.objects import read_bytes
from glue_jobs.aws.records import read_record
from glue_jobs.aws.versions import KeyVersions, VersionEntry, versions_of
from glue_jobs.core.ids import change_of_name, change_of_record
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ChangeRecord, DataFile
from glue_jobs.core.snapshot import Snapshot
from tests.lake import LakeTable

FileRows = list[tuple[Any, ...]]


@dataclass
class World:
    """What is known of a table's folder. expired: keys whose data the machine itself removed, as a lifecycle rule does, or that an erase
    may remove."""

    table: LakeTable
    versions: dict[str, KeyVersions] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    item: dict[str, Any] = field(default_factory=dict)
    _fence: int = 0
    _markers: dict[str, int] = field(default_factory=dict)
    _rows: dict[str, FileRows] = field(default_factory=dict)
    _attached: dict[str, str] = field(default_factory=dict)  # rows beside the records: name → version
    _ids: dict[str, frozenset[int]] = field(default_factory=dict)
    _records: dict[str, ChangeRecord] = field(default_factory=dict)
    _snapshots: dict[str, Snapshot] = field(default_factory=dict)

    # --- looking

    def look(self) -> None:
        """Look anew, and compare with what was seen before."""
        self.item = self.table.item()
        self._take_note_of_erases()
        fence = int(self.item.get("Fence", 0))
        assert fence >= self._fence, f"the fence went back from {self._fence} to {fence}"
        self._fence = fence
        before, self.versions = self.versions, self._list_versions()
        for key, known in before.items():
            now = self.versions.get(key, KeyVersions())
            if key not in self.expired:
                assert known.data[-1:] == now.data[-1:], f"the data version of {key} was deleted"
        self._check_records()

    def _list_versions(self) -> dict[str, KeyVersions]:
        s3, lake = self.table.clients.s3, self.table.out_path
        listed: dict[str, list[Any]] = {}
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=lake.bucket, Prefix=lake.key):
            for entry in page.get("Versions", ()):
                listed.setdefault(entry["Key"], []).append(entry)
        found = {}
        for key, entries in listed.items():
            assert len(entries) == 1, f"{key} became visible more than once: {entries}"
            entry = entries[0]
            data = VersionEntry(entry["VersionId"], entry["ETag"].strip('"'), entry["Size"], entry["LastModified"])
            found[key[len(lake.key) :]] = KeyVersions((data,), bool(entry["IsLatest"]))
        return found

    def _check_records(self) -> None:
        s3, folder = self.table.clients.s3, changes_folder(self.table.out_path)
        keys, self._attached = [], {}
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=folder.bucket, Prefix=folder.key):
            entries = (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
            keys += [entry["Key"] for entry in entries if change_of_record(entry["Key"])]
            kept = (entry for entry in page.get("Versions", ()) if entry["Key"].endswith(".parquet"))
            self._attached.update({entry["Key"][len(folder.key) :]: entry["VersionId"] for entry in kept})
        twice = sorted({key for key in keys if keys.count(key) > 1})
        assert not twice, f"written twice: {twice}"

    def _take_note_of_erases(self) -> None:
        """What the erases up to the head list may be removed, and is for nobody any more."""
        lake = self.table.out_path
        for erase in self.erases():
            self.expired |= {each.key[len(lake.key) :] for each in self.record(erase).erased if each.key.startswith(lake.key)}

    def erases(self) -> tuple[str, ...]:
        """The erases up to the head."""
        return self.snapshot(self.head).erases

    def holding(self, keys: frozenset[int], before: str = "~") -> list[str]:
        """The data files, and rows beside the records, of changes before `before` of which a version with one of the keys is kept."""
        files = [path for path in self.versions if change_of_name(path.rpartition("/")[2]) < before]
        held = [path for path in files if any(row[0] in keys for row in self._rows_in(path))]
        return held + [name for name in self._attached if name < before and self._ids_attached(name) & keys]

    def _ids_attached(self, name: str) -> frozenset[int]:
        if name not in self._ids:
            folder = changes_folder(self.table.out_path)
            data = read_bytes(self.table.clients.s3, folder.bucket, folder.key + name, self._attached[name])
            rows = pq.read_table(pa.BufferReader(data)).to_pylist()
            self._ids[name] = frozenset(row["id"] for row in rows if "id" in row)
        return self._ids[name]

    @property
    def head(self) -> str:
        return str(self.item.get("Head", ""))

    @property
    def publishing(self) -> bool:
        return "Publishing" in self.item

    @property
    def visible(self) -> set[str]:
        return {path for path, versions in self.versions.items() if versions.visible}

    def record(self, change: str) -> ChangeRecord:
        if change not in self._records:
            self._records[change] = read_record(self.table.clients.s3, self.table.out_path, change)
        return self._records[change]

    def snapshot(self, change: str) -> Snapshot:
        if not change:
            return Snapshot()
        if change not in self._snapshots:
            self._snapshots[change] = self.table.snapshot(change)
        return self._snapshots[change]

    def landed_since(self, change: str) -> list[ChangeRecord]:
        """The records of the changes that followed `change`, the oldest first."""
        found: list[ChangeRecord] = []
        at = self.head
        while at != change:
            assert at > change, f"the history of {self.head} does not contain {change or 'its beginning'}"
            found.append(self.record(at))
            at = found[-1].parent
        return found[::-1]

    # --- data

    def rows_of(self, change: str) -> FileRows:
        """The rows of a change's snapshot, read by version from the files that its record names."""
        rows = [row for path in self.snapshot(change).files for row in self._rows_in(path)]
        return sorted(rows)

    def is_unread(self, change: str) -> bool:
        """Whether its rows can't be read any more, and never were: one run made the change visible and erased files of it."""
        return any(path in self.expired and path not in self._rows for path in self.snapshot(change).files)

    def rows_visible(self) -> FileRows:
        """The rows that a reader by path finds."""
        return sorted(row for path in self.visible for row in self._rows_in(path))

    def _rows_in(self, path: str) -> FileRows:
        if path not in self._rows:
            assert path in self.versions, f"{path} has no data version"
            lake = self.table.out_path
            data = read_bytes(self.table.clients.s3, lake.bucket, lake.key + path, self.versions[path].data[0].version_id)
            table = pq.read_table(pa.BufferReader(data))
            folder, _, _ = path.rpartition("/")
            part = folder.partition("=")[2]
            self._rows[path] = [(row["id"], part, row["name"]) for row in table.to_pylist()]
        return self._rows[path]

    def check_data(self, change: str) -> None:
        """Every file of the change's snapshot has the data version that its record describes."""
        for path, file in self.snapshot(change).files.items():
            if path not in self.expired:
                self._check_version(path, file)

    def _check_version(self, path: str, file: DataFile) -> None:
        assert path in self.versions, f"{path} has no data version"
        (version,) = self.versions[path].data
        assert (version.size, file.etag or version.etag) == (file.size_bytes, version.etag), f"{path} is not what its record says"

    # --- what S3 does by itself

    def expire(self, change: str) -> None:
        """Remove the data of the hidden files of a change's snapshot, as a rule for noncurrent versions does after its days."""
        s3, lake = self.table.clients.s3, self.table.out_path
        for path in self.snapshot(change).files:
            versions = self.versions.get(path)
            if versions is not None and not versions.visible:
                for version in versions.data:
                    s3.delete_object(Bucket=lake.bucket, Key=lake.key + path, VersionId=version.version_id)
                self.expired.add(path)

    def abort_uploads(self) -> set[str]:
        """Abort every open upload; the paths."""
        s3, lake = self.table.clients.s3, self.table.out_path
        uploads = s3.list_multipart_uploads(Bucket=lake.bucket, Prefix=lake.key).get("Uploads", [])
        for upload in uploads:
            s3.abort_multipart_upload(Bucket=lake.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        return {upload["Key"][len(lake.key) :] for upload in uploads}

    def is_expired(self, change: str) -> bool:
        """Whether a file of the change's snapshot, or the file it was copied from, has no data any more."""
        return any({path, file.origin} & self.expired for path, file in self.snapshot(change).files.items())


__all__ = ["World", "versions_of"]
