"""Objects as seekable files for pyarrow: small ones by one GET, big ones by ranged GETs."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from glue_jobs.aws.fetched_ahead import FetchedAhead, Range
from glue_jobs.aws.objects import file_changed, read_bytes

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

WHOLE_UP_TO_BYTES = 16 * 1024 * 1024
TAIL_BYTES = 64 * 1024
READ_AHEAD_BYTES = 256 * 1024


class RangedFile(io.RawIOBase):
    """A read-only, seekable file over an object of `size_bytes`. Each read beyond what is at hand is one GET.

    At hand are the last 64 KB (a Parquet footer), fetched once, the piece that the last small read fetched ahead, what `hold` fetched, and
    the pieces that `fetching_ahead` was told of.
    With `etag` every GET insists on that object: TableBlocked, raw-file-changed, if another one took its place.
    One position for all: threads may share it only through a reader that locks, as pyarrow's does.
    """

    def __init__(
        self,
        s3: S3Client,
        bucket: str,
        key: str,
        size_bytes: int,
        etag: str | None = None,
        version: str | None = None,
        read_ahead_bytes: int = READ_AHEAD_BYTES,
    ) -> None:
        super().__init__()
        self._s3, self._bucket, self._key = s3, bucket, key
        self._etag, self._version = etag, version
        self._size = size_bytes
        self._read_ahead = read_ahead_bytes
        self._at = 0
        self._tail_start = max(0, size_bytes - TAIL_BYTES)
        self._tail: bytes | None = None
        self._ahead_start, self._ahead = 0, b""
        self._held: list[tuple[int, bytes]] = []
        self._expected: FetchedAhead | None = None
        self._lock = threading.RLock()

    def size(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with self._lock:
            base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
            if base + offset < 0:
                raise ValueError(f"seek to {base + offset}, before the file's start")
            self._at = base + offset
            return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the file's end."""
        if self.closed:
            raise ValueError("read of a closed file")
        with self._lock:
            stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
            if stop <= self._at:
                return b""
            data = self._between(self._at, stop)
            self._at = stop
            return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def hold(self, ranges: Sequence[Range]) -> None:
        """Fetch these ranges (start, stop), each by one GET, and serve what is read of them from memory; instead of those held before."""
        with self._lock:
            self._held = []
            for start, stop in ranges:
                if start < min(stop, self._size):
                    self._held.append((start, self._get(start, min(stop, self._size))))

    @contextmanager
    def fetching_ahead(self, pieces: Sequence[Range]) -> Iterator[None]:
        """Inside, the next few of these pieces (start, stop) are fetched before they are read, by one GET each, and none of those that
        somebody outside expects. Other bytes may be read as well."""
        expected = FetchedAhead(self._get, pieces)
        with self._lock:
            outer, self._expected = self._expected, expected
        try:
            yield
        finally:
            with self._lock:
                self._expected = outer
            expected.close()

    def _between(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`: from what is at hand, else by one GET."""
        for first, data in self._held:
            if first <= start and stop <= first + len(data):
                return data[start - first : stop - first]
        came = None if self._expected is None else self._expected.take(start, stop)
        if came is not None:
            return came
        if start >= self._tail_start:
            if self._tail is None:
                self._tail = self._get(self._tail_start, self._size)
            return self._tail[start - self._tail_start : stop - self._tail_start]
        if not (self._ahead_start <= start and stop <= self._ahead_start + len(self._ahead)):
            if stop - start >= self._read_ahead:
                return self._get(start, stop)
            self._ahead = self._get(start, min(self._size, start + self._read_ahead))
            self._ahead_start = start
        return self._ahead[start - self._ahead_start : stop - self._ahead_start]

    def _get(self, start: int, stop: int) -> bytes:
        data = read_bytes(self._s3, self._bucket, self._key, self._version, start, stop, self._etag)
        if len(data) != stop - start:
            raise _shorter(self._bucket, self._key, f"{stop - start} bytes from {start}", len(data))
        return data


def open_object(
    s3: S3Client,
    bucket: str,
    key: str,
    size_bytes: int,
    etag: str | None = None,
    version: str | None = None,
    whole_up_to: int = WHOLE_UP_TO_BYTES,
) -> BinaryIO:
    """The object as a readable, seekable file: fetched whole by one GET up to `whole_up_to` bytes, else a RangedFile."""
    if size_bytes > whole_up_to:
        return cast(BinaryIO, RangedFile(s3, bucket, key, size_bytes, etag, version))
    data = read_bytes(s3, bucket, key, version, etag=etag)
    if len(data) != size_bytes:
        raise _shorter(bucket, key, f"{size_bytes} bytes", len(data))
    return io.BytesIO(data)


def _shorter(bucket: str, key: str, expected: str, found: int) -> Exception:
    return file_changed(f"s3://{bucket}/{key}", expected=expected, found=f"{found} bytes")
