"""Looking at the versions of many keys at once: the same answers as one by one, in few requests."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.aws.objects import hide
from glue_jobs.aws.versions import MIN_FOUND_PER_PAGE, key_versions, versions_of


@pytest.fixture
def kept(s3: Any, bucket: str) -> list[str]:
    """60 keys, every third of them hidden, every fifth written twice; one begins with another's whole name, one was only ever hidden."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    keys = [f"t/p={number % 7}/f{number:02}" for number in range(58)]
    for number, key in enumerate(keys):
        for _ in range(2 if number % 5 == 0 else 1):
            s3.put_object(Bucket=bucket, Key=key, Body=b"x" * number)
    s3.put_object(Bucket=bucket, Key=keys[0] + "longer", Body=b"y")
    hide(s3, bucket, [*keys[::3], "t/p=3/only-hidden"])
    return [*keys, keys[0] + "longer", "t/p=3/only-hidden"]


class Listings:
    """Lets pages be short, and counts them."""

    def __init__(self, s3: Any, page_keys: int | None) -> None:
        self.count = 0
        self._page_keys = page_keys
        s3.meta.events.register("before-parameter-build.s3.ListObjectVersions", self._seen)

    def _seen(self, params: dict[str, Any], **_: Any) -> None:
        self.count += 1
        if self._page_keys is not None:
            params["MaxKeys"] = self._page_keys


@pytest.mark.parametrize("page_keys", [None, 1, 23, 37])
def test_many_keys_are_answered_as_one_by_one(s3: Any, bucket: str, kept: list[str], page_keys: int | None) -> None:
    """However the pages fall: also in the middle of a key's versions, and where a page finds too few of the keys."""
    wanted = [*kept, "t/p=1/never-there"]
    expected = {key: key_versions(s3, bucket, key) for key in wanted}
    Listings(s3, page_keys)

    found = versions_of(s3, bucket, wanted)

    assert found == expected
    assert (found["t/p=3/only-hidden"].data, found[kept[0]].visible, len(found[kept[0]].data)) == ((), False, 2)


def test_keys_of_one_folder_cost_a_page_and_few_keys_one_request_each(s3: Any, bucket: str, kept: list[str]) -> None:
    """Listed together where they lie together; asked for where they are few."""
    listings = Listings(s3, None)

    versions_of(s3, bucket, kept)
    together = listings.count
    versions_of(s3, bucket, kept[: MIN_FOUND_PER_PAGE - 1])

    assert (together, listings.count - together) == (1, MIN_FOUND_PER_PAGE - 1)
    assert versions_of(s3, bucket, []) == {}
