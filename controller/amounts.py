"""Numbers as people read them: sizes, counts, durations."""

from __future__ import annotations


def size_text(size_bytes: float) -> str:
    """`12.3 MiB`; '' for nothing."""
    if not size_bytes:
        return ""
    value, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def count_text(count: float, sign: str = "") -> str:
    """`12,345`, with a sign before it; '' for 0."""
    return f"{sign}{count:,.0f}" if count else ""


def duration_text(seconds: float | None) -> str:
    """`45 s`, `12 min`, `3.5 h`, `2.1 d`; '' if it isn't known."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} d"
