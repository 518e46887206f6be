"""Pieces of an object that are fetched before they are asked for: while a reader works on one, the next ones are on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

# On their way, or there and not asked for: one of the largest pieces, or a few small ones.
AHEAD_BYTES = 4 * 1024 * 1024
MOST_AHEAD = 4

Range = tuple[int, int]  # (start, stop)


@dataclass
class _Piece:
    """coming: of one that is on its way, or there. is_begun: some of it was read already."""

    start: int
    stop: int
    coming: Future[bytes] | None = None
    is_begun: bool = False


class FetchedAhead:
    """Fetches pieces in the order in which a reader said that it will begin them, as many at a time as their bytes allow.

    What is read need not be cut as the pieces are, nor come in their order; a piece is held until its end was read. For one thread at a
    time.
    """

    def __init__(self, get: Callable[[int, int], bytes], pieces: Iterable[Range]) -> None:
        """get: fetches a range. pieces: no two that overlap."""
        self._get = get
        self._pieces = [_Piece(*each) for each in pieces]
        self._pool = ThreadPoolExecutor(MOST_AHEAD, thread_name_prefix="fetch")
        self._fetch_more()

    def take(self, start: int, stop: int) -> bytes | None:
        """The bytes, waited for if they are on their way, what is in no piece fetched; None if they begin in none. Raises what fetching
        raised."""
        parts: list[bytes] = []
        at = start
        while at < stop:
            piece = self._at(at)
            if piece is None and not parts:
                return None
            end = stop if piece is None else min(stop, piece.stop)
            parts.append(self._get(at, end) if piece is None else self._of(piece, at, end))
            at = end
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Fetch nothing more; what is on its way is waited for."""
        self._pieces.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _at(self, place: int) -> _Piece | None:
        return next((piece for piece in self._pieces if piece.start <= place < piece.stop), None)

    def _of(self, piece: _Piece, start: int, stop: int) -> bytes:
        """Some bytes of a piece; the next ones are on their way by then."""
        coming = piece.coming or self._pool.submit(self._get, piece.start, piece.stop)
        piece.coming, piece.is_begun = coming, True
        if stop == piece.stop:
            self._pieces.remove(piece)
        self._fetch_more()
        data = coming.result()
        return data if len(data) == stop - start else data[start - piece.start : stop - piece.start]

    def _fetch_more(self) -> None:
        ahead = [piece for piece in self._pieces if not piece.is_begun]
        held = sum(piece.stop - piece.start for piece in ahead if piece.coming)
        count = sum(1 for piece in ahead if piece.coming)
        for piece in ahead:
            if piece.coming is None:
                held, count = held + piece.stop - piece.start, count + 1
                if count > MOST_AHEAD or (count > 1 and held > AHEAD_BYTES):
                    return
                piece.coming = self._pool.submit(self._get, piece.start, piece.stop)
