"""What is asked of the lake's bucket."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.buckets import abort_days, check_lake_bucket, expiry_of
from glue_jobs.core.errors import ConfigurationError
from glue_jobs.core.raw_names import Expiry
from tests.aws.faults import Injected, answer, s3_error


def set_rule(s3: Any, bucket: str, **rule: Any) -> None:
    full = {"ID": "r1", "Status": "Enabled", "Filter": {"Prefix": ""}, **rule}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [full]})


def test_a_versioned_bucket_without_rules_is_fine(s3: Any, bucket: str) -> None:
    """No warning either."""
    assert check_lake_bucket(s3, bucket) == []


@pytest.mark.parametrize(("status", "word"), [(None, "off"), ("Suspended", "suspended")])
def test_a_bucket_without_versioning_is_refused(s3: Any, status: str | None, word: str) -> None:
    """The error has the command that turns it on."""
    name = f"plain-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    if status:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": status})

    with pytest.raises(ConfigurationError, match=f"versioning {word}") as caught:
        check_lake_bucket(s3, name)

    assert (caught.value.code, f"put-bucket-versioning --bucket {name}" in caught.value.todo) == ("bucket-not-versioned", True)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"Expiration": {"Days": 30}}, "expires live objects"),
        ({"Expiration": {"Date": "2030-01-01T00:00:00Z"}}, "expires live objects"),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}}, "aborts uploads after 2 day"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "lake/sales/"}}, "expires live objects"),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "la"}}, "expires live objects"),
        ({"Expiration": {"Days": 30}, "Filter": {"And": {"Prefix": "lake/", "ObjectSizeGreaterThan": 1}}}, "expires live objects"),
    ],
)
def test_a_rule_that_takes_files_of_the_lake_is_refused(s3: Any, bucket: str, rule: dict[str, Any], words: str) -> None:
    """The error names the rule."""
    set_rule(s3, bucket, **rule)

    with pytest.raises(ConfigurationError, match=f"rule r1 .*{words}") as caught:
        check_lake_bucket(s3, bucket, "lake/")

    assert caught.value.code == "bucket-lifecycle"


def test_a_rule_that_counts_noncurrent_versions_is_refused(s3: Any, bucket: str) -> None:
    """moto forgets that part of a rule, so S3's answer is put in its place."""
    noncurrent = "<NoncurrentDays>30</NoncurrentDays><NewerNoncurrentVersions>3</NewerNoncurrentVersions>"
    rule = f"<NoncurrentVersionExpiration>{noncurrent}</NoncurrentVersionExpiration>"
    body = f"<LifecycleConfiguration><Rule><ID>r1</ID><Status>Enabled</Status><Prefix/>{rule}</Rule></LifecycleConfiguration>"
    Injected(s3, "GetBucketLifecycleConfiguration", answer(200, body))

    with pytest.raises(ConfigurationError, match="NewerNoncurrentVersions"):
        check_lake_bucket(s3, bucket, "lake/")


@pytest.mark.parametrize(
    "rule",
    [
        {"Expiration": {"ExpiredObjectDeleteMarker": True}},
        {"NoncurrentVersionExpiration": {"NoncurrentDays": 30}},
        {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}},
        {"Expiration": {"Days": 30}, "Status": "Disabled"},
        {"Expiration": {"Days": 30}, "Filter": {"Prefix": "athena-results/"}},
        {"Expiration": {"Days": 30}, "Filter": {"Tag": {"Key": "k", "Value": "v"}}},
        {"Expiration": {"Days": 30}, "Filter": {"And": {"Prefix": "lake/", "Tags": [{"Key": "k", "Value": "v"}]}}},
    ],
)
def test_a_rule_that_takes_nothing_live_is_fine(s3: Any, bucket: str, rule: dict[str, Any]) -> None:
    """Hidden files may expire after days, and our objects have no tags."""
    set_rule(s3, bucket, **rule)

    assert check_lake_bucket(s3, bucket, "lake/") == []


def test_rules_that_may_not_be_read_are_a_warning(s3: Any, bucket: str) -> None:
    """The permission is not needed otherwise."""
    Injected(s3, "GetBucketLifecycleConfiguration", s3_error(403, "AccessDenied"))

    (warning,) = check_lake_bucket(s3, bucket)

    assert (bucket in warning, "s3:GetLifecycleConfiguration" in warning) == (True, True)


def test_another_error_about_the_rules_is_raised(s3: Any, bucket: str) -> None:
    """Not knowing is not the same as being denied."""
    Injected(s3, "GetBucketLifecycleConfiguration", s3_error(400, "Odd"))

    with pytest.raises(ClientError, match="Odd"):
        check_lake_bucket(s3, bucket)


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ({"Expiration": {"Days": 30}}, 30.0),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "dms/sales/orders/"}}, 30.0),
        ({"Expiration": {"Days": 30}, "Filter": {"Tag": {"Key": "k", "Value": "v"}}}, 30.0),  # raw files may have tags
        ({"Expiration": {"Date": "2030-01-01T00:00:00Z"}}, 0.0),
        ({"Expiration": {"Days": 30}, "Status": "Disabled"}, None),
        ({"Expiration": {"Days": 30}, "Filter": {"Prefix": "other/"}}, None),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 3}}, None),
    ],
)
def test_when_raw_files_expire_is_read_from_the_rules(s3: Any, bucket: str, rule: dict[str, Any], days: float | None) -> None:
    """Every rule that can meet a raw file counts."""
    set_rule(s3, bucket, **rule)

    assert expiry_of(s3, bucket, "dms/sales/") == Expiry(days)


def test_raw_files_of_a_bucket_without_rules_never_expire(s3: Any, bucket: str) -> None:
    """Most buckets have none."""
    assert expiry_of(s3, bucket, "dms/") == Expiry()


def test_rules_that_may_not_be_read_leave_open_when_raw_files_expire(s3: Any, bucket: str) -> None:
    """Which is another answer than never."""
    Injected(s3, "GetBucketLifecycleConfiguration", s3_error(403, "AccessDenied"))

    assert not expiry_of(s3, bucket, "dms/").is_known


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}, 7),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}, "Status": "Disabled"}, None),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}, "Filter": {"Prefix": "elsewhere/"}}, None),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 30}}, None),
    ],
)
def test_how_long_an_upload_may_wait(s3: Any, bucket: str, rule: dict[str, Any], days: int | None) -> None:
    """Days by the rules that can meet the lake's folder; None where none aborts uploads."""
    assert abort_days(s3, bucket, "lake/") is None
    set_rule(s3, bucket, **rule)

    assert abort_days(s3, bucket, "lake/") == days


def test_how_long_an_upload_may_wait_is_unknown_without_the_permission(s3: Any, bucket: str) -> None:
    """Whoever checks the bucket says so; another error is raised."""
    Injected(s3, "GetBucketLifecycleConfiguration", s3_error(403, "AccessDenied"), s3_error(400, "Odd"))

    assert abort_days(s3, bucket) is None
    with pytest.raises(ClientError, match="Odd"):
        abort_days(s3, bucket)
