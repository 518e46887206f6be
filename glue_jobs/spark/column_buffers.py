"""How much of each column is fetched at a time, of a Parquet file that is read by ranges."""

from __future__ import annotations

# All together, and of each.
BUFFERS_BYTES = 40 * 1024 * 1024
LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES = 1024 * 1024, 4 * 1024 * 1024


def buffer_bytes(columns: int) -> int:
    """Of each column: large, because each piece is a request, but small where there are many columns."""
    return min(MOST_BUFFER_BYTES, max(LEAST_BUFFER_BYTES, BUFFERS_BYTES // max(1, columns)))
