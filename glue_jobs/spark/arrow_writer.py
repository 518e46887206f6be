"""Which Parquet files Arrow wrote: as of ours, of those it is known what stands in them."""

from __future__ import annotations

_CREATED_BY = "parquet-cpp-arrow version "


def is_by_arrow(created_by: str | None) -> bool:
    """created_by: what the file's footer says."""
    return str(created_by or "").startswith(_CREATED_BY)
