"""Change records in S3: written once, read one by one or together, listed in the order of their ids."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, TypeVar

from glue_jobs.aws.objects import list_files, read_bytes, write_bytes
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.ids import attachment_name, change_of_record, record_name
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import ChangeRecord, beginning, from_json, to_json

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")
COMPRESS_ABOVE_BYTES = 1_000_000
READ_THREADS = 16
# Of a record that is not wanted whole: what there is beside the files of a large table's checkpoint fits in.
BEGINNING_BYTES, BEGINNING_TEXT_BYTES = 128 * 1024, 1024 * 1024


def write_record(s3: S3Client, out_path: S3Uri, record: ChangeRecord) -> str:
    """Write the record of a change of the lake table at `out_path`; its key. The change's id makes sure it is written once."""
    data = to_json(record).encode()
    compressed = len(data) > COMPRESS_ABOVE_BYTES
    target = changes_folder(out_path).join(record_name(record.id, compressed))
    if compressed:
        write_bytes(s3, target.bucket, target.key, gzip.compress(data, compresslevel=6, mtime=0), "application/gzip")
    else:
        write_bytes(s3, target.bucket, target.key, data, "application/json")
    return target.key


def write_attachment(s3: S3Client, out_path: S3Uri, change_id: str, ending: str, data: bytes) -> str:
    """Write an object that stands beside a change's record; its name."""
    name = attachment_name(change_id, ending)
    target = changes_folder(out_path).join(name)
    write_bytes(s3, target.bucket, target.key, data, "application/octet-stream")
    return name


def read_attachment(s3: S3Client, out_path: S3Uri, name: str) -> bytes:
    """The object of that name beside the change records; raises TableBlocked, code attachment-gone, if there is none."""
    target = changes_folder(out_path).join(name)
    try:
        return read_bytes(s3, target.bucket, target.key)
    except TableBlocked as error:
        if error.code != "raw-file-gone":
            raise
    raise blocked(
        "attachment-gone",
        "rows that were kept beside a change record are not there",
        where=str(target),
        expected="the object, as it was written",
        found="no such object",
        todo=f"if nobody erased them, {_way_back(target)}",
    )


def _way_back(uri: S3Uri) -> str:
    """How a person brings back an object that was hidden: its newest version over the delete marker, which only Erase may remove."""
    bucket, key = (shlex.quote(part) for part in (uri.bucket, uri.key))
    return (
        f"bring back its newest version, then run again: `aws s3api list-object-versions --bucket {bucket} --prefix {key} "
        f"--query 'Versions[0].[Key,VersionId]' --output text` says KEY and ID; `aws s3api copy-object --bucket {bucket} --key KEY "
        f"--copy-source '{bucket}/KEY?versionId=ID'`"
    )


def read_record(s3: S3Client, out_path: S3Uri, change_id: str, *, with_checkpoint: bool = True) -> ChangeRecord:
    """The record of one change; raises TableBlocked, code record-gone, if there is none.

    Without the checkpoint, which is most of a record, the bytes read don't grow with the table.
    """
    if with_checkpoint:
        return _find(out_path, change_id, lambda uri: _decode(read_bytes(s3, uri.bucket, uri.key), uri, True))
    return _find(out_path, change_id, lambda uri: _read_beginning(s3, uri, with_checkpoint=False)[0])


def read_record_outline(s3: S3Client, out_path: S3Uri, change_id: str) -> tuple[ChangeRecord, bool]:
    """(the same record, maybe without the files of its checkpoint; whether it is whole)."""
    return _find(out_path, change_id, lambda uri: _read_beginning(s3, uri, with_checkpoint=True))


def _read_beginning(s3: S3Client, uri: S3Uri, *, with_checkpoint: bool) -> tuple[ChangeRecord, bool]:
    where = f"{uri.bucket}/{uri.key}"
    try:
        data = read_bytes(s3, uri.bucket, uri.key, start=0, stop=BEGINNING_BYTES)
    except TableBlocked as error:
        if error.code != "raw-file-changed":  # an empty object has no range
            raise
        data = b""
    is_whole = len(data) < BEGINNING_BYTES
    if is_whole and with_checkpoint:
        return _decode(data, uri, True), True
    part = beginning(_unpacked(data, uri), with_checkpoint=with_checkpoint)
    if part is None and is_whole:
        return _decode(data, uri, with_checkpoint), True
    if part is None:
        return _decode(read_bytes(s3, uri.bucket, uri.key), uri, with_checkpoint), True
    return from_json(part, where, with_checkpoint=with_checkpoint), False


def _unpacked(data: bytes, uri: S3Uri) -> str:
    """The text whose beginning the bytes are, '' if they are damaged."""
    try:
        whole = zlib.decompressobj(wbits=31).decompress(data, BEGINNING_TEXT_BYTES) if uri.key.endswith(".gz") else data
    except zlib.error:
        return ""
    return whole.decode(errors="ignore")


def _find(out_path: S3Uri, change_id: str, read: Callable[[S3Uri], _T]) -> _T:
    """What `read` makes of the change's record under that one of its two names that is there."""
    plain = changes_folder(out_path).join(record_name(change_id, False))
    for uri in (plain, changes_folder(out_path).join(record_name(change_id, True))):
        try:
            return read(uri)
        except TableBlocked as error:
            if error.code != "raw-file-gone":
                raise
    raise blocked(
        "record-gone",
        f"the change record of {change_id} is not there",
        where=f"{plain}[.gz]",
        expected="the record, as it was written",
        found="no such object",
        todo=_way_back(plain),
    )


def _decode(data: bytes, uri: S3Uri, with_checkpoint: bool) -> ChangeRecord:
    where = f"{uri.bucket}/{uri.key}"
    try:
        text = (gzip.decompress(data) if uri.key.endswith(".gz") else data).decode()
    except (OSError, EOFError, ValueError) as error:  # not gzip, cut off, not UTF-8
        raise TableBlocked(
            f"the change record s3://{where} can't be read: {error}", "bad-record", "restore the object's earlier version"
        ) from error
    return from_json(text, where, with_checkpoint=with_checkpoint)


def read_records(s3: S3Client, out_path: S3Uri, ids: Sequence[str], *, with_checkpoint: bool = True) -> list[ChangeRecord]:
    """The records of several changes, in the order of `ids`. with_checkpoint: as of read_record."""
    if len(ids) < 2:
        return [read_record(s3, out_path, change, with_checkpoint=with_checkpoint) for change in ids]
    with ThreadPoolExecutor(min(READ_THREADS, len(ids))) as pool:
        return list(pool.map(lambda change: read_record(s3, out_path, change, with_checkpoint=with_checkpoint), ids))


def list_hidden_records(s3: S3Client, out_path: S3Uri) -> Iterator[str]:
    """The ids of the changes that have, or until lately had, a record: also those whose record is hidden. In no order."""
    folder = changes_folder(out_path)
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=folder.bucket, Prefix=folder.key):
        for entry in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            change = change_of_record(entry["Key"])
            if change:
                yield change


def read_hidden_record(s3: S3Client, out_path: S3Uri) -> ChangeRecord | None:
    """The greatest record of which S3 keeps a version, hidden or not, without its checkpoint; None where there is none."""
    folder = changes_folder(out_path)
    newest: dict[str, str] = {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=folder.bucket, Prefix=folder.key):
        for entry in page.get("Versions", ()):  # of one key the newest comes first
            if change_of_record(entry["Key"]):
                newest.setdefault(entry["Key"], entry["VersionId"])
    if not newest:
        return None
    key = max(newest)
    return _decode(read_bytes(s3, folder.bucket, key, version=newest[key]), S3Uri(folder.bucket, key), False)


def list_records(s3: S3Client, out_path: S3Uri, after: str = "") -> Iterator[str]:
    """The ids of the changes that have a record, ascending; only those greater than `after`. Other objects are passed over."""
    folder = changes_folder(out_path)
    last = after
    for file in list_files(s3, folder.bucket, folder.key, folder.key + after if after else None):
        change = change_of_record(file.key)
        if change > last:
            last = change
            yield change
