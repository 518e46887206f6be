"""Bytes that become the parts of a multipart upload while they are written: what is new goes up, what S3 has already it copies itself."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.aws.copies import ObjectRange, copy_part
from glue_jobs.aws.objects import bare_etag
from glue_jobs.aws.uploads import FinishedUpload, abort_upload, multipart_etag
from glue_jobs.aws.write_only import WriteOnly
from glue_jobs.core.limits import MIN_PART_BYTES
from glue_jobs.core.record import Part, Upload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PART_BYTES = 8 * 1024 * 1024
# At most, of what S3 copies in one part: two at a time take half as long as one, and if it doesn't, they pass through our memory.
COPIED_BYTES = 16 * 1024 * 1024
UPLOAD_THREADS = 2


class MultipartWriter(WriteOnly):
    """A binary file to write to, for pyarrow too, whose bytes become the parts of a multipart upload.

    Holds at most `threads` + 2 parts in memory, of what S3 refuses to copy twice as much. `finish` sends the rest; `close` sends nothing,
    so that a file closed by a failing writer stays unfinished. On an error, or as a context manager left by one, `abort`.

    S3 compares each part that is sent with its CRC32. An upload that begins with a copy names no checksum, because MinIO copies no part of
    one that does: its parts go with their MD5, and in any other upload nothing is copied.
    """

    def __init__(self, s3: S3Client, bucket: str, key: str, part_bytes: int = PART_BYTES, threads: int = UPLOAD_THREADS) -> None:
        self._s3, self._bucket, self._key = s3, bucket, key
        self._part_bytes, self._threads = part_bytes, threads
        self._held: list[memoryview] = []
        self._held_bytes = 0
        self._size = 0
        self._id = ""
        self._encrypted = False
        self._takes_copies = True  # until there is an upload that doesn't, or S3 refuses one
        self._is_named = False  # the upload names CRC32 as its checksum
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

    def copy(self, source: ObjectRange) -> int:
        """Take bytes of an object of this bucket; how many came. S3 copies them as far as the sizes of parts allow, and where it refuses
        they are read and sent. Raises what `read` does, here or later; ValueError if bytes are missing that S3 was to copy."""
        left = source.stop - source.start
        filling = max(0, MIN_PART_BYTES - self._held_bytes) if self._held else 0
        if not self._takes_copies or left - filling < MIN_PART_BYTES:
            return self._pass(source.start, source.stop, source)
        if not self._id:
            self._create(is_named=False)
        came = self._pass(source.start, source.start + filling, source)
        if self._held:
            self._send(self._take())
        left -= filling
        pieces = -(-left // COPIED_BYTES)
        bounds = [source.stop - left + left * number // pieces for number in range(pieces + 1)]
        for start, stop in zip(bounds, bounds[1:]):
            self._submit(self._copy, start, stop, source)  # they hold no memory while they wait: nobody waits for them here
        self._size += left
        return came + left

    def _pass(self, start: int, stop: int, source: ObjectRange) -> int:
        """Read bytes of the object and take them as new ones."""
        before = self._size
        if start < stop:
            with source.read(start, stop) as chunks:
                for chunk in chunks:
                    self.write(chunk)
        return self._size - before

    def _hold(self, piece: memoryview) -> None:
        self._held.append(piece)
        self._held_bytes += len(piece)

    def _take(self) -> bytes:
        """All that is held, which is not held any more."""
        held, self._held, self._held_bytes = self._held, [], 0
        return b"".join(held)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        self.closed = True

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
        """Have a part sent; waits where the upload threads are behind. Raises what an earlier part ran into."""
        self._collect(self._threads)
        self._submit(self._upload, data)

    def _submit(self, work: Callable[..., Part], *of: Any) -> None:
        """Hand a part to the upload threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="upload")
        self._waiting.append(self._pool.submit(work, self._next_number(), *of))

    def _collect(self, leave: int) -> None:
        while len(self._waiting) > leave:
            self._parts.append(self._waiting.popleft().result())

    def _next_number(self) -> int:
        if not self._id:
            self._create(is_named=True)
        self._sent += 1
        return self._sent

    def _create(self, is_named: bool) -> None:
        checksum: Any = {"ChecksumAlgorithm": "CRC32"} if is_named else {}
        answer = self._s3.create_multipart_upload(Bucket=self._bucket, Key=self._key, **checksum)
        self._id = answer["UploadId"]
        self._encrypted = str(answer.get("ServerSideEncryption", "")).startswith("aws:")
        self._is_named, self._takes_copies = is_named, not is_named

    def _upload(self, number: int, data: bytes) -> Part:
        crc32 = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode() if self._is_named else ""
        checked: Any = {"ChecksumCRC32": crc32} if self._is_named else {"ContentMD5": _md5(data)}
        answer = self._s3.upload_part(Bucket=self._bucket, Key=self._key, UploadId=self._id, PartNumber=number, Body=data, **checked)
        return Part(number, bare_etag(answer["ETag"]), crc32)

    def _copy(self, number: int, start: int, stop: int, source: ObjectRange) -> Part:
        """Where S3 refuses, whether the object is gone or we may not copy is for the reading of it to say."""
        if self._takes_copies:
            try:
                return copy_part(self._s3, source.source, (start, stop), self._key, self._id, number)
            except (ClientError, BotoCoreError):
                self._takes_copies = False
        with source.read(start, stop) as chunks:
            data = b"".join(chunks)
        if len(data) != stop - start:
            raise ValueError(f"{len(data)} bytes came of {stop - start} of {source.source.key}")
        return self._upload(number, data)

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
