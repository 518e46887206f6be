"""What a merge holds in memory does not grow with the file or with its row groups, nor what a load sorts with the table."""

from __future__ import annotations

from pathlib import Path

from benchmarks import load_memory
from benchmarks.memory import Case, measure, write_file

MEGABYTES = 48


def needed(folder: Path, case: Case) -> int:
    path = folder / f"{case.megabytes}-{case.one_group}-{case.text}.parquet"
    if not path.exists():
        write_file(path, case)
    measured = measure(path, case)
    return int(measured["peak_bytes"] - measured["before_bytes"])


def test_a_merge_needs_no_more_memory_for_a_larger_file(tmp_path: Path) -> None:
    """Held whole, the second file would need 64 MB more, compressed; decoded, several times that."""
    small, large = (needed(tmp_path, Case(megabytes, True, 2000)) for megabytes in (MEGABYTES, MEGABYTES + 64))

    assert small < 220e6
    assert large < small + 40e6


def test_a_merge_needs_little_more_memory_for_more_changes(tmp_path: Path) -> None:
    """Net changes are mapped: what is touched of 300,000 of them are some tens of megabytes, which the machine may drop again."""
    few, many = (needed(tmp_path, Case(MEGABYTES, True, changes)) for changes in (2000, 300_000))

    assert many < few + 90e6


def test_a_merge_needs_little_more_memory_for_wide_rows(tmp_path: Path) -> None:
    """65,536 of these would be 1.3 GB, and are all that the file has."""
    assert needed(tmp_path, Case(96, True, 200, text=20_000)) < 350e6


def test_a_load_that_does_not_fit_in_a_task_is_left_to_a_shuffle() -> None:
    """Three million rows would be 520 MB, their widest column counted twice; 400,000 are 70, and are sorted."""
    few, many = (load_memory.measure(load_memory.Case(rows)) for rows in (400_000, 3_000_000))

    assert (few["is_sorted"], many["is_sorted"]) == (True, False)
    for measured in (few, many):
        assert measured["peak_bytes"] - measured["before_bytes"] < 420e6
