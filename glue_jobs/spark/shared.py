"""Values that every task reads: packed once in the driver, unpacked at most once in each process.

What is large goes to each node as a file, which its processes map into memory: they share its pages, touch only those that they need, and
the machine may drop them again. So a task's memory does not grow with the batch.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark import SparkContext

_T = TypeVar("_T")

BROADCAST_BYTES = 1024 * 1024  # above it a value goes as a file
# Values that this process has unpacked: a worker lives for many tasks.
_UNPACKED: OrderedDict[str, Any] = OrderedDict()
_KEEP = 2


class Shared(ABC, Generic[_T]):
    """A value that every task reads. Pickled into tasks. unpack: makes the value of the packed bytes, which it may keep parts of."""

    def __init__(self, unpack: Callable[[Any], _T]) -> None:
        self._name = uuid.uuid4().hex
        self._unpack = unpack

    def get(self) -> _T:
        if self._name not in _UNPACKED:
            _UNPACKED[self._name] = self._unpack(self._packed())
            while len(_UNPACKED) > _KEEP:
                _UNPACKED.popitem(last=False)
        value: _T = _UNPACKED[self._name]
        return value

    @abstractmethod
    def _packed(self) -> Any:
        """The packed bytes, as anything that has a buffer."""


class Here(Shared[_T]):
    """A value that stays in this process: tables that are worked on at the same time don't push out each other's."""

    def __init__(self, payload: bytes, unpack: Callable[[Any], _T]) -> None:
        super().__init__(unpack)
        self._payload = payload

    def get(self) -> _T:
        return self._value

    @functools.cached_property
    def _value(self) -> _T:
        return self._unpack(self._packed())

    def _packed(self) -> bytes:
        return self._payload


class Broadcast(Shared[_T]):
    """A small value, which Spark keeps in each process."""

    def __init__(self, broadcast: Any, unpack: Callable[[Any], _T]) -> None:
        super().__init__(unpack)
        self._broadcast = broadcast

    def _packed(self) -> Any:
        return self._broadcast.value


class InFile(Shared[_T]):
    """A large value, in a file that Spark takes to each node."""

    def __init__(self, file_name: str, unpack: Callable[[Any], _T]) -> None:
        super().__init__(unpack)
        self.file_name = file_name

    def _packed(self) -> Any:
        return pa.memory_map(_path_on_node(self.file_name)).read_buffer()


_LOCK = threading.Lock()


def send_file(context: SparkContext, payload: bytes) -> str:
    """The name under which tasks of this context find the bytes as a file, until `drop_file`."""
    name = f"dmslake-{uuid.uuid4().hex}"
    path = _drivers_copy(name)
    path.write_bytes(payload)
    with _LOCK:
        context.addFile(str(path))
    return name


def drop_file(context: SparkContext, name: str, slots: int) -> None:
    """Give back the disk that a sent file takes: in the driver, and on the nodes that `slots` tasks reach, which mostly are all.

    The files are emptied, not removed: Spark lets a node that joins later fetch every file that was ever sent, and fails where one is gone.
    """
    _make_empty(_drivers_copy(name))
    context.parallelize(range(slots), slots).foreach(_DropOnNode(name))


class _DropOnNode:
    """A task: empties the node's copy of a sent file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _: int) -> None:
        _make_empty(Path(_path_on_node(self._name)))


def _make_empty(path: Path) -> None:
    """Put an empty file in its place: whoever has mapped the old one keeps its pages."""
    empty = path.with_name(f"{path.name}-{uuid.uuid4().hex}")
    empty.touch()
    empty.replace(path)


def _path_on_node(name: str) -> str:
    from pyspark import SparkFiles

    return SparkFiles.get(name)


def _drivers_copy(name: str) -> Path:
    return Path(_folder(os.getpid()).name) / name


@functools.lru_cache(maxsize=1)
def _folder(process: int) -> tempfile.TemporaryDirectory[str]:
    """A folder of this process's, removed when it ends."""
    return tempfile.TemporaryDirectory(prefix="dmslake-shared-")
