"""Server-side copies of a data version: nothing is visible before the upload is completed, and nothing is left where one fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from glue_jobs.aws import copies
from glue_jobs.aws.copies import copy_version
from glue_jobs.aws.objects import hide, read_bytes
from glue_jobs.aws.uploads import complete_upload, list_open_uploads
from glue_jobs.aws.versions import VersionEntry, key_versions
from glue_jobs.core.errors import TableBlocked
from tests.aws.visible import exists

MIB = 1024 * 1024
DATA = bytes(range(256)) * (11 * MIB // 256) + b"the end"


@pytest.fixture
def version(s3: Any, bucket: str) -> VersionEntry:
    """The data version of a hidden key with a name that wants quoting."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="a b=1%2F+é/old", Body=DATA)
    hide(s3, bucket, ["a b=1%2F+é/old"])
    return key_versions(s3, bucket, "a b=1%2F+é/old").data[0]


@pytest.mark.parametrize("part_bytes", [copies.COPY_PART_BYTES, 5 * MIB, len(DATA)])
def test_a_hidden_version_comes_back_under_a_new_key(
    s3: Any, bucket: str, version: VersionEntry, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one part or in several; size and ETag are those of the object to be."""
    monkeypatch.setattr(copies, "COPY_PART_BYTES", part_bytes)

    made = copy_version(s3, bucket, "a b=1%2F+é/old", version, "new")
    before = exists(s3, bucket, "new")
    complete_upload(s3, bucket, "new", made.upload, look_first=False)

    (found,) = key_versions(s3, bucket, "new").data
    assert (before, len(made.upload.parts)) == (False, -(-len(DATA) // part_bytes))
    assert (found.size, found.etag) == (made.size_bytes, made.etag)
    assert read_bytes(s3, bucket, "new") == DATA
    assert not exists(s3, bucket, "a b=1%2F+é/old")


def test_a_version_that_is_gone_leaves_no_upload(s3: Any, bucket: str, version: VersionEntry) -> None:
    """The error names key and version, and the upload is aborted."""
    with pytest.raises(TableBlocked, match="old") as caught:
        copy_version(s3, bucket, "a b=1%2F+é/old", replace(version, version_id="0" * 32), "new")

    assert caught.value.code == "version-gone"
    assert list(list_open_uploads(s3, bucket, "new")) == []
