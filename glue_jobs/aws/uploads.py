"""Multipart uploads: parts first, visible later. A MultipartWriter sends the parts, complete_upload makes them an object."""

from __future__ import annotations

import base64
import hashlib
import re
import time
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Literal

from botocore.exceptions import ClientError

from glue_jobs.aws.clients import Unanswered
from glue_jobs.aws.objects import bare_etag
from glue_jobs.aws.translate import RETRYABLE, error_code
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import RetryLater
from glue_jobs.core.record import Part, Upload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PART_BYTES = 8 * 1024 * 1024
UPLOAD_THREADS = 2
COMPLETE_ATTEMPTS = 5
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class FinishedUpload:
    """All parts are there, nothing is visible yet. etag: of the object to be, '' where it can't be known (KMS)."""

    upload: Upload
    size_bytes: int
    etag: str


@dataclass(frozen=True)
class OpenUpload:
    """An upload that was neither completed nor aborted."""

    key: str
    id: str
    started: datetime


class MultipartWriter:
    """A binary file to write to, for pyarrow too, whose bytes become the parts of a multipart upload.

    Holds at most `threads` + 2 parts in memory. `finish` sends the rest; `close` sends nothing, so that a file closed by a
    failing writer stays unfinished. On an error, or as a context manager left by one, `abort`.
    """

    def __init__(self, s3: S3Client, bucket: str, key: str, part_bytes: int = PART_BYTES, threads: int = UPLOAD_THREADS) -> None:
        self._s3, self._bucket, self._key = s3, bucket, key
        self._part_bytes, self._threads = part_bytes, threads
        self._held: list[memoryview] = []
        self._held_bytes = 0
        self._size = 0
        self._id = ""
        self._encrypted = False
        self._sent = 0
        self._parts: list[Part] = []
        self._waiting: deque[Future[Part]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        # Kept as they come and joined once, for a part: growing a buffer would copy all bytes twice more, with the interpreter held.
        view = memoryview(data if isinstance(data, bytes) else bytes(memoryview(data).cast("B")))
        start = 0
        while self._held_bytes + len(view) - start >= self._part_bytes:
            end = start + self._part_bytes - self._held_bytes
            self._hold(view[start:end])
            self._send(self._take())
            start = end
        if start < len(view):
            self._hold(view[start:])
        self._size += len(view)
        return len(view)

    def _hold(self, piece: memoryview) -> None:
        self._held.append(piece)
        self._held_bytes += len(piece)

    def _take(self) -> bytes:
        """All that is held, which is not held any more."""
        held, self._held, self._held_bytes = self._held, [], 0
        return b"".join(held)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing: parts have their size."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def finish(self) -> FinishedUpload:
        """Send what is left (an empty file is one empty part), wait for all parts; nothing is completed."""
        self.closed = True
        try:
            if self._held or not self._sent:
                rest = self._take()
                if self._sent:
                    self._send(rest)
                else:
                    self._parts.append(self._upload(self._next_number(), rest))  # one part: no thread needed
            self._collect(0)
        finally:
            self._end_pool()
        parts = tuple(sorted(self._parts, key=lambda part: part.number))
        etag = "" if self._encrypted else multipart_etag([part.etag for part in parts])
        return FinishedUpload(Upload(self._id, parts), self._size, etag)

    def abort(self) -> None:
        """Drop the upload. Parts on their way are waited for first, because one that arrives later would stay and cost."""
        self.closed = True
        self._end_pool()
        if self._id:
            abort_upload(self._s3, self._bucket, self._key, self._id)

    def __enter__(self) -> MultipartWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.abort()
        self.close()

    def _send(self, data: bytes) -> None:
        """Hand a part to the upload threads; waits where they are behind. Raises what an earlier part ran into."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="upload")
        number = self._next_number()
        self._collect(self._threads)
        self._waiting.append(self._pool.submit(self._upload, number, data))

    def _collect(self, leave: int) -> None:
        while len(self._waiting) > leave:
            self._parts.append(self._waiting.popleft().result())

    def _next_number(self) -> int:
        if not self._id:
            answer = self._s3.create_multipart_upload(Bucket=self._bucket, Key=self._key, ChecksumAlgorithm="CRC32")
            self._id = answer["UploadId"]
            self._encrypted = str(answer.get("ServerSideEncryption", "")).startswith("aws:")
        self._sent += 1
        return self._sent

    def _upload(self, number: int, data: bytes) -> Part:
        crc32 = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
        answer = self._s3.upload_part(
            Bucket=self._bucket, Key=self._key, UploadId=self._id, PartNumber=number, Body=data, ChecksumCRC32=crc32
        )
        return Part(number, bare_etag(answer["ETag"]), crc32)

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def multipart_etag(part_etags: list[str]) -> str:
    """The ETag that S3 gives the completed object: MD5 over the parts' MD5s and their count; '' if a part's is no MD5."""
    if not all(_MD5.fullmatch(etag) for etag in part_etags):
        return ""
    digest = hashlib.md5(b"".join(map(bytes.fromhex, part_etags)), usedforsecurity=False)
    return f"{digest.hexdigest()}-{len(part_etags)}"


def complete_upload(
    s3: S3Client,
    bucket: str,
    key: str,
    upload: Upload,
    *,
    look_first: bool,
    pause: Callable[[float], None] = time.sleep,
    attempts: int = COMPLETE_ATTEMPTS,
) -> Literal["done", "gone"]:
    """Make the upload an object. 'done': the key has data, now or already, hidden or not; 'gone': there is no such upload.

    After a lost answer or a server's error it looks before it sends again, because a second completion is an error on AWS and
    a second version elsewhere. Whether data found there is ours, is for the caller to check. RetryLater if it stays unclear.
    """
    parts = [_part_request(part) for part in upload.parts]
    for attempt in range(attempts):
        if attempt:
            pause(0.2 * 2**attempt)
        if (attempt or look_first) and key_versions(s3, bucket, key).data:
            return "done"
        if attempt and not _is_open(s3, bucket, key, upload.id):
            return _after_the_end(s3, bucket, key)
        try:
            s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload.id, MultipartUpload={"Parts": parts})
            return "done"
        except Unanswered:
            continue
        except ClientError as error:
            if error_code(error) == "NoSuchUpload":
                return _after_the_end(s3, bucket, key)
            if error_code(error) in RETRYABLE:
                continue
            raise
    raise RetryLater(
        f"S3 did not say whether the upload of s3://{bucket}/{key} was completed, asked {attempts} times",
        "aws-busy",
        "run again: the next run looks and goes on",
    )


def _after_the_end(s3: S3Client, bucket: str, key: str) -> Literal["done", "gone"]:
    """How an upload that is there no more has ended: looked at afterwards, or one that is completed right now would look gone."""
    return "done" if key_versions(s3, bucket, key).data else "gone"


def _is_open(s3: S3Client, bucket: str, key: str, upload_id: str) -> bool:
    """Whether S3 still has the upload."""
    try:
        s3.list_parts(Bucket=bucket, Key=key, UploadId=upload_id, MaxParts=1)
    except ClientError as error:
        if error_code(error) != "NoSuchUpload":
            raise
        return False
    return True


def has_parts(s3: S3Client, bucket: str, key: str, upload: Upload) -> bool:
    """Whether S3 has the upload with these very parts; False also if it was completed or aborted."""
    found: set[tuple[int, str]] = set()
    try:
        for page in s3.get_paginator("list_parts").paginate(Bucket=bucket, Key=key, UploadId=upload.id):
            found.update((entry["PartNumber"], bare_etag(entry["ETag"])) for entry in page.get("Parts", ()))
    except ClientError as error:
        if error_code(error) != "NoSuchUpload":
            raise
        return False
    return found == {(part.number, part.etag) for part in upload.parts}


def _part_request(part: Part) -> Any:
    request: dict[str, Any] = {"PartNumber": part.number, "ETag": f'"{part.etag}"'}
    if part.crc32:
        request["ChecksumCRC32"] = part.crc32
    return request


def abort_upload(s3: S3Client, bucket: str, key: str, upload_id: str) -> None:
    """Drop the upload's parts; fine if the upload was completed or aborted before."""
    try:
        s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
    except ClientError as error:
        if error_code(error) not in ("NoSuchUpload", "404"):
            raise


def list_open_uploads(s3: S3Client, bucket: str, prefix: str) -> Iterator[OpenUpload]:
    """The open uploads of keys below `prefix`."""
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Uploads", ()):
            yield OpenUpload(entry["Key"], entry["UploadId"], entry["Initiated"])
