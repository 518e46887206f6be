"""Several files of one task at a time: while one waits for S3, another one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from glue_jobs.core.record import DataFile

_R = TypeVar("_R")

MOST_FILES = 4
# Of all files that one task has in hand: so its memory stays within what one big file needs.
MOST_BYTES = 16 * 1024 * 1024


def side_by_side(function: Callable[[DataFile], _R], files: Sequence[DataFile]) -> list[_R]:
    """function(file) for each file, in their order, a few at a time: Arrow and sockets let other threads run. Raises what the first failing
    one raised; none is begun after it, and those at work are waited for, so that nothing goes on unseen."""
    if len(files) < 2:
        return [function(file) for file in files]
    pool = ThreadPoolExecutor(MOST_FILES, thread_name_prefix="file")
    try:
        return list(_in_order(pool, function, files))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ThreadPoolExecutor, function: Callable[[DataFile], _R], files: Sequence[DataFile]) -> Iterator[_R]:
    waiting: deque[tuple[int, Future[_R]]] = deque()
    held = 0
    for file in files:
        while waiting and (len(waiting) >= MOST_FILES or held + file.size_bytes > MOST_BYTES):
            size, first = waiting.popleft()
            yield first.result()
            held -= size
        waiting.append((file.size_bytes, pool.submit(function, file)))
        held += file.size_bytes
    for _, last in waiting:
        yield last.result()
