"""What a process keeps of the files it has fetched."""

from __future__ import annotations

from glue_jobs.spark.kept_bytes import KeptBytes


def test_what_was_put_is_there() -> None:
    """By its name, and not by another."""
    kept = KeptBytes(10)

    kept.put(("a", "1"), b"abc")

    assert (kept.get(("a", "1")), kept.get(("a", "2")), kept.size_bytes) == (b"abc", None, 3)


def test_what_was_put_first_goes_first() -> None:
    """No more than most_bytes are ever kept."""
    kept = KeptBytes(10)

    for name in ("a", "b", "c"):
        kept.put((name,), name.encode() * 4)

    assert ([kept.get((name,)) for name in ("a", "b", "c")], kept.size_bytes) == ([None, b"bbbb", b"cccc"], 8)


def test_putting_again_counts_once() -> None:
    """Two threads may fetch the same file."""
    kept = KeptBytes(10)

    for _ in range(5):
        kept.put(("a",), b"abcd")

    assert (kept.get(("a",)), kept.size_bytes) == (b"abcd", 4)


def test_more_than_may_be_kept_is_not_kept() -> None:
    """Nor anything else then; whoever wants it fetches it again."""
    kept = KeptBytes(10)

    kept.put(("a",), b"a" * 11)

    assert (kept.get(("a",)), kept.size_bytes) == (None, 0)
