"""Several files of one task at a time: while one waits for S3, another one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

MOST_FILES = 4
# Of all files that one task has in hand: so its memory stays within what one big file needs.
MOST_BYTES = 16 * 1024 * 1024


def side_by_side(function: Callable[[_T], _R], items: Sequence[_T], size_bytes: Callable[[_T], int]) -> list[_R]:
    """function(item) for each item, in their order, a few at a time: Arrow and sockets let other threads run. size_bytes: of one's file.

    Raises what the first failing one raised; none is begun after it, and those at work are waited for, so that nothing goes on unseen.
    """
    if len(items) < 2:
        return [function(item) for item in items]
    with in_order(function, items, size_bytes) as results:
        return list(results)


@contextmanager
def in_order(function: Callable[[_T], _R], items: Sequence[_T], size_bytes: Callable[[_T], int]) -> Iterator[Iterator[_R]]:
    """The same one by one: while the caller has a result in hand, the next ones are worked on. Those at work are waited for at the end."""
    pool = ThreadPoolExecutor(MOST_FILES, thread_name_prefix="file")
    try:
        yield _in_order(pool, function, items, size_bytes)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ThreadPoolExecutor, function: Callable[[_T], _R], items: Sequence[_T], size_bytes: Callable[[_T], int]) -> Iterator[_R]:
    waiting: deque[tuple[int, Future[_R]]] = deque()
    held = 0
    for item in items:
        size = size_bytes(item)
        while waiting and (len(waiting) >= MOST_FILES or held + size > MOST_BYTES):
            held -= waiting[0][0]
            yield waiting.popleft()[1].result()  # no name keeps it: the caller is done with it before the next one is begun
        waiting.append((size, pool.submit(function, item)))
        held += size
    while waiting:
        yield waiting.popleft()[1].result()
