"""Threads within a task: several files at a time, so that while one waits for S3 another one is worked on; or reading beside writing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

MOST_FILES = 4
# Of all files that one task has in hand: so its memory stays within what one big file needs.
MOST_BYTES = 16 * 1024 * 1024


def file_threads() -> ThreadPoolExecutor:
    """The threads of one task that work on files; to be shut down."""
    return ThreadPoolExecutor(MOST_FILES, thread_name_prefix="file")


def side_by_side(
    function: Callable[[_T], _R], items: Sequence[_T], size_bytes: Callable[[_T], int], threads: ThreadPoolExecutor | None = None
) -> list[_R]:
    """function(item) for each item, in their order, a few at a time: Arrow and sockets let other threads run. size_bytes: of one's file.
    threads: of the task, None for its own ones.

    Raises what the first failing one raised; none is begun after it, and those at work are waited for, so that nothing goes on unseen.
    """
    if len(items) < 2:
        return [function(item) for item in items]
    with in_order(function, items, size_bytes, threads) as results:
        return list(results)


@contextmanager
def in_order(
    function: Callable[[_T], _R], items: Sequence[_T], size_bytes: Callable[[_T], int], threads: ThreadPoolExecutor | None = None
) -> Iterator[Iterator[_R]]:
    """The same one by one: while the caller has a result in hand, the next ones are worked on. Those at work are waited for at the end."""
    waiting: deque[tuple[int, Future[_R]]] = deque()
    with file_threads() if threads is None else nullcontext(threads) as pool:
        try:
            yield _in_order(pool, waiting, function, items, size_bytes)
        finally:
            left = [future for _, future in waiting]
            for future in left:
                future.cancel()
            wait(left)


def _in_order(
    pool: ThreadPoolExecutor,
    waiting: deque[tuple[int, Future[_R]]],
    function: Callable[[_T], _R],
    items: Sequence[_T],
    size_bytes: Callable[[_T], int],
) -> Iterator[_R]:
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


def one_behind(function: Callable[[_T], Callable[[], _R]], items: Sequence[_T]) -> list[_R]:
    """function(item)() for each item, in their order. What `function` returns is the end of an item's work: a thread does it, mostly by
    waiting for S3, while the next item is begun; the one after that waits for it.

    Raises what one of them raised; every end that was handed over has been done by then, so that nothing goes on unseen.
    """
    done: list[_R] = []
    ends: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="behind") as pool:
        for item in items:
            ends.append(pool.submit(function(item)))
            if len(ends) > 1:
                done.append(ends.popleft().result())
        done.extend(end.result() for end in ends)
    return done


# A row group is written when its rows are together, a few pieces; the next ones are read meanwhile. Pieces of wide rows are as large as
# pieces may be, and come one by one: there is no memory for more.
MOST_AHEAD = 2
LARGE_BYTES = 12 * 1024 * 1024
_END: Any = object()


@contextmanager
def read_ahead(items: Iterable[_T], size_bytes: Callable[[_T], int | None]) -> Iterator[Iterator[_T]]:
    """The items in their order: while the caller has one in hand, a thread gets the next ones, none where they are large. size_bytes: of
    one in memory, None if it says nothing of others; the next ones are taken to be like the largest so far.

    What getting one raised is raised in its turn. One that is under way is waited for at the end, so that nothing goes on unseen.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        yield _ahead(pool, iter(items), size_bytes)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ahead(pool: ThreadPoolExecutor, items: Iterator[_T], size_bytes: Callable[[_T], int | None]) -> Iterator[_T]:
    coming: deque[Future[_T]] = deque()
    largest = 0
    lock = Lock()  # who asks for the next one also says which place it has

    def ask_after(item: _T) -> None:
        nonlocal largest
        with lock:
            largest = max(largest, size_bytes(item) or 0)
            while largest <= LARGE_BYTES and len(coming) < MOST_AHEAD:
                coming.append(pool.submit(get))

    def get() -> _T:
        item = next(items, _END)
        if item is not _END:
            ask_after(item)  # fails where the caller is gone, and with it who would take the item
        return item

    # Without the thread where none is to come ahead: memory that one thread takes and another gives back is not used again at once.
    while (item := coming.popleft().result() if coming else next(items, _END)) is not _END:
        ask_after(item)
        yield item
        del item
