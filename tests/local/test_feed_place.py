"""Where a feed's files go: what is put is there, what is removed is gone, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from glue_jobs.core.errors import UsageError
from infra.local.feed.command import feed
from infra.local.feed.place import open_place
from infra.local.feed.wish import FeedWish
from tests.quick_aws import QuickAws


@pytest.mark.parametrize("is_s3", [True, False])
def test_only_what_is_removed_goes(is_s3: bool, quick_aws: QuickAws, tmp_path: Path) -> None:
    """In S3 and in a folder; removing again does no harm."""
    folder = f"{quick_aws.raw}placed/shop/things/" if is_s3 else str(tmp_path / "things")
    place = open_place(folder, quick_aws.environment())
    for path in ("LOAD00000001.parquet", "2024/05/01/20240501-120000000.parquet"):
        place.put(path, b"x")

    for _ in range(2):
        place.remove("2024/05/01/20240501-120000000.parquet")

    assert place.names() == {"LOAD00000001.parquet"}


@pytest.mark.parametrize("scheme", ["s3a", "s3n"])
def test_other_spellings_of_s3_are_s3(scheme: str, quick_aws: QuickAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As everywhere; no folder of this machine is named so."""
    monkeypatch.chdir(tmp_path)
    to = f"{quick_aws.raw}{scheme}/shop/things/"

    fed = feed(FeedWish(rows=2, rounds=1, changes=2, layout="transactions"), to.replace("s3://", f"{scheme}://"), quick_aws.environment())

    assert (fed.folder, fed.item["CdcPath"]) == (to, f"{quick_aws.raw}{scheme}/transactions/")
    assert open_place(to, quick_aws.environment()).names() == {"LOAD00000001.parquet"}
    assert len(open_place(fed.item["CdcPath"], quick_aws.environment()).names()) == fed.files - 1 > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    """Of a file that is put, and of one that is removed."""
    (tmp_path / "file").write_text("")
    place = open_place(str(tmp_path / "file"), {})

    for work in (lambda: place.put("a.parquet", b"x"), lambda: place.remove("a.parquet")):
        with pytest.raises(UsageError, match=r"file/a\.parquet can't be written: (File exists|Not a directory)"):
            work()
