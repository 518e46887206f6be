"""Removing versions by exact list: what is there, what goes, what S3 refuses; and that nothing else in the program does it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from glue_jobs.aws.objects import hide
from glue_jobs.aws.removal import held_versions, left_of, remove_versions
from glue_jobs.aws.versions import key_versions
from glue_jobs.core.errors import ConfigurationError, DmslakeError, LeaseLost, RetryLater
from glue_jobs.core.record import ErasedVersion
from tests.aws.faults import Injected, answer

ROOT = Path(__file__).parent.parent.parent
ODD = "t/a b=1%2F+é/old.parquet"


def put(s3: Any, bucket: str, key: str, *bodies: bytes) -> list[ErasedVersion]:
    """Versions of a key, oldest first."""
    return [ErasedVersion(key, s3.put_object(Bucket=bucket, Key=key, Body=body)["VersionId"], len(body)) for body in bodies]


def no_check() -> None:
    """Nothing to check."""


def refused(*versions: tuple[ErasedVersion, str]) -> Any:
    """S3's 200 with errors inside."""
    entries = "".join(
        f"<Error><Key>{each.key}</Key><VersionId>{each.version}</VersionId><Code>{code}</Code><Message>no</Message></Error>"
        for each, code in versions
    )
    return answer(200, f'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>{entries}</DeleteResult>')


def test_exactly_the_listed_versions_go(s3: Any, bucket: str) -> None:
    """Other versions of the same key, and its delete marker, stay."""
    first, second, third = put(s3, bucket, ODD, b"1", b"22", b"333")
    (other,) = put(s3, bucket, "t/other.parquet", b"o")
    hide(s3, bucket, [ODD])

    remove_versions(s3, bucket, [first, third], no_check)

    assert [each.version for each in held_versions(s3, bucket, "t/")] == [second.version, other.version]
    found = key_versions(s3, bucket, ODD)
    assert (found.visible, found.marked, [each.version_id for each in found.data]) == (False, True, [second.version])


def test_all_that_holds_data_is_listed(s3: Any, bucket: str) -> None:
    """Visible, hidden and overwritten versions with size and ETag; delete markers hold nothing."""
    put(s3, bucket, "t/a", b"1", b"22")
    put(s3, bucket, "t/b", b"333")
    hide(s3, bucket, ["t/b"])

    found = {(each.key, each.size_bytes): each.visible for each in held_versions(s3, bucket, "t/")}

    assert found == {("t/a", 1): False, ("t/a", 2): True, ("t/b", 3): False}
    assert all(re.fullmatch(r"[0-9a-f]{32}", each.etag) for each in held_versions(s3, bucket, "t/"))


def test_removing_again_is_fine(s3: Any, bucket: str) -> None:
    """A version that is gone is not left."""
    versions = put(s3, bucket, "t/a", b"1", b"22")
    assert left_of(s3, bucket, versions) == ((versions[0], False), (versions[1], True))

    remove_versions(s3, bucket, versions, no_check)
    remove_versions(s3, bucket, versions, no_check)

    assert left_of(s3, bucket, versions) == ()


def test_no_folder_is_listed_that_data_files_and_records_share(s3: Any, bucket: str) -> None:
    """Of a table right below the lake's folder that is the whole bucket, and a role may list the two folders only."""
    keys = [f"cdc/orders/{number:02}.parquet" for number in range(20)] + [
        f"_changes/cdc/orders/{number:02}-updates.parquet" for number in range(20)
    ]
    versions = [version for key in keys for version in put(s3, bucket, key, b"1")]
    asked: list[str] = []
    s3.meta.events.register("before-parameter-build.s3.ListObjectVersions", lambda params, **_: asked.append(params["Prefix"]))

    left = left_of(s3, bucket, versions)

    assert [each for each, _ in left] == versions
    assert asked == ["_changes/cdc/orders/", "cdc/orders/"]


def test_a_busy_s3_is_asked_again_for_what_is_left(s3: Any, bucket: str, pauses: list[float]) -> None:
    """Only for these versions."""
    versions = put(s3, bucket, "t/a", b"1", b"22")
    busy = Injected(s3, "DeleteObjects", refused((versions[0], "SlowDown")), None)

    remove_versions(s3, bucket, versions, no_check, pause=pauses.append)

    assert (busy.sent, len(pauses), [each.version for each in held_versions(s3, bucket, "t/")]) == (2, 1, [versions[1].version])


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [("AccessDenied", ConfigurationError, "access-denied"), ("SlowDown", RetryLater, "aws-busy"), ("Odd", DmslakeError, "not-removed")],
)
def test_what_s3_refuses_is_said_after_all_pages_were_tried(
    s3: Any, bucket: str, pauses: list[float], code: str, kind: type[Exception], name: str
) -> None:
    """With the first versions, and how to go on; the other pages are removed."""
    versions = put(s3, bucket, "t/a", b"1", b"22")
    Injected(s3, "DeleteObjects", *[refused((versions[0], code))] * 6) if code == "SlowDown" else Injected(
        s3, "DeleteObjects", refused((versions[0], code))
    )

    with pytest.raises(kind, match=versions[0].version) as caught:
        remove_versions(s3, bucket, versions, no_check, pause=pauses.append, page_size=1)

    assert isinstance(caught.value, DmslakeError)
    assert (caught.value.code, "--resume" in caught.value.todo) == (name, True)
    assert [each.version for each in held_versions(s3, bucket, "t/")] == [versions[0].version]


def test_a_lost_lease_ends_it_before_the_next_page(s3: Any, bucket: str) -> None:
    """What is removed is removed; the rest stays."""
    versions = put(s3, bucket, "t/a", b"1", b"22")
    checks: list[int] = []

    def check() -> None:
        checks.append(1)
        if len(checks) == 2:
            raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        remove_versions(s3, bucket, versions, check, page_size=1)

    assert [each.version for each in held_versions(s3, bucket, "t/")] == [versions[1].version]


def test_nothing_else_deletes_with_a_version_id() -> None:
    """Of all that the program is made of, only removal.py. hide puts delete markers; deploy takes back a template that it has lent."""
    sources = [path for folder in ("glue_jobs", "controller") for path in (ROOT / folder).rglob("*.py")]
    deleting = {f"{path.parent.name}/{path.name}" for path in sources if re.search(r"\bdelete_objects?\b", path.read_text("utf-8"))}
    removing = {path.name for path in sources if re.search(r"import .*\bremove_versions\b", path.read_text("utf-8"))}

    assert deleting == {"aws/objects.py", "aws/removal.py", "deploying/store.py"}
    assert "VersionId" not in (ROOT / "glue_jobs/aws/objects.py").read_text("utf-8").split("def hide(")[1]
    assert "VersionId" not in (ROOT / "controller/deploying/store.py").read_text("utf-8")
    assert removing == {"erase.py"}
