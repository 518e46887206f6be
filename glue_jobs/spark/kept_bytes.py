"""Bytes that a process keeps because it wants them again soon, up to an amount."""

from __future__ import annotations

import threading
from collections import OrderedDict


class KeptBytes:
    """The last `most_bytes` of what was put, by name. Threads may share it. Whoever finds nothing fetches it again."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._size_bytes = most_bytes, 0
        self._kept: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Of all that is kept now."""
        return self._size_bytes

    def get(self, name: tuple[str, ...]) -> bytes | None:
        """The bytes put under this name, None if they are not kept any more."""
        with self._lock:
            return self._kept.get(name)

    def put(self, name: tuple[str, ...], data: bytes) -> None:
        """Keep the bytes; what was put first goes first."""
        with self._lock:
            self._size_bytes += len(data) - len(self._kept.pop(name, b""))
            self._kept[name] = data
            while self._size_bytes > self._most_bytes:
                self._size_bytes -= len(self._kept.popitem(last=False)[1])
