"""Listings that pass over keys."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.aws.pages import folders_passing, list_passing
from tests.aws.faults import Injected
from tests.aws.test_objects import put, small_pages


def test_a_listing_goes_on_behind_what_it_is_told_to_pass_over(s3: Any, bucket: str) -> None:
    """In the order of keys; the gap is said; of a page that was read everything is there."""
    put(s3, bucket, *(f"t/{number}" for number in range(9)), "u/1")
    small_pages(s3, "ListObjectsV2")
    sent = Injected(s3, "ListObjectsV2")

    files, gaps = list_passing(s3, bucket, "t/", lambda key: "t/6" if "t/1" <= key < "t/6" else None)

    assert [file.key for file in files] == ["t/0", "t/1", "t/7", "t/8"]
    assert (gaps, sent.sent) == ([("t/1", "t/6")], 2)


def test_without_anything_to_pass_over_a_listing_is_whole(s3: Any, bucket: str) -> None:
    """Odd characters included, and without a gap."""
    keys = sorted(f"t/a b+c%2F&é日{number}" for number in range(5))
    put(s3, bucket, *keys)
    small_pages(s3, "ListObjectsV2")

    files, gaps = list_passing(s3, bucket, "t/", lambda key: None)

    assert ([file.key for file in files], gaps) == (keys, [])
    assert list_passing(s3, bucket, "none/", lambda key: None) == ([], [])


def test_folders_are_listed_by_name_over_pages(s3: Any, bucket: str) -> None:
    """Only the level directly below, each once, no objects."""
    put(s3, bucket, "p/a/1", "p/a/2", "p/b/c/1", "p/c/1", "p/d/1", "p/file")
    small_pages(s3, "ListObjectsV2")

    assert folders_passing(s3, bucket, "p/", "CDC_") == (["a", "b", "c", "d"], False)


@pytest.mark.parametrize("before", [[], ["A"], ["A", "B", "B2"]])
def test_many_files_beside_the_folders_cost_one_page(s3: Any, bucket: str, before: list[str]) -> None:
    """The folders before and behind them are there; other files in between are not asked for."""
    put(s3, bucket, *(f"p/CDC_{number:02}.csv" for number in range(30)), *(f"p/{name}/1" for name in (*before, "D", "a", "b")))
    small_pages(s3, "ListObjectsV2")
    sent = Injected(s3, "ListObjectsV2")

    assert folders_passing(s3, bucket, "p/", "CDC_") == ([*before, "D", "a", "b"], True)
    assert sent.sent <= 3 + len(before)


def test_a_folder_with_such_a_name_is_a_folder(s3: Any, bucket: str) -> None:
    """Its files are not passed over."""
    put(s3, bucket, "p/CDC_a/1", "p/CDC_b/1", "p/CDC_c/1", "p/z/1")
    small_pages(s3, "ListObjectsV2")

    assert folders_passing(s3, bucket, "p/", "CDC_") == (["CDC_a", "CDC_b", "CDC_c", "z"], False)
