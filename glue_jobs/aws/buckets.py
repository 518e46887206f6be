"""What a lake bucket must have so that the promises hold: versioning, and no lifecycle rule that takes live or hidden files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from glue_jobs.aws.translate import ACCESS_DENIED, error_code
from glue_jobs.core.errors import ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MIN_ABORT_DAYS = 3


def check_lake_bucket(s3: S3Client, bucket: str, prefix: str = "") -> list[str]:
    """Warnings about the bucket of the lake below `prefix`; raises ConfigurationError where it would break a promise."""
    status = s3.get_bucket_versioning(Bucket=bucket).get("Status")
    if status != "Enabled":
        raise ConfigurationError(
            f"the lake's bucket {bucket} has versioning {'suspended' if status else 'off'}: a hidden file could not be brought back",
            "bucket-not-versioned",
            f"aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled",
        )
    try:
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket).get("Rules", [])
    except ClientError as error:
        if error_code(error) == "NoSuchLifecycleConfiguration":
            return []
        if error_code(error) in ACCESS_DENIED:
            return [
                f"the lifecycle rules of {bucket} could not be checked, because s3:GetLifecycleConfiguration is denied:"
                " a rule that expires live objects would lose data"
            ]
        raise
    for rule in rules:
        _check_rule(bucket, prefix, rule)
    return []


def noncurrent_days(s3: S3Client, bucket: str, prefix: str = "") -> int | None:
    """Days for which the bucket keeps the data of a hidden file below `prefix`, at least; None: for good."""
    try:
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket).get("Rules", [])
    except ClientError as error:
        if error_code(error) == "NoSuchLifecycleConfiguration":
            return None
        raise
    enabled = [rule for rule in rules if rule.get("Status") == "Enabled" and _covers(rule, prefix)]
    days = [rule.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays") for rule in enabled]
    return min((int(number) for number in days if number is not None), default=None)


def _check_rule(bucket: str, prefix: str, rule: Any) -> None:
    """Refuse a rule that takes files away which the program still counts on."""
    if rule.get("Status") != "Enabled" or not _covers(rule, prefix):
        return
    expiration = rule.get("Expiration", {})
    abort_days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
    if "Days" in expiration or "Date" in expiration:
        found = "it expires live objects (Expiration)"
    elif "NewerNoncurrentVersions" in rule.get("NoncurrentVersionExpiration", {}):
        found = "it counts noncurrent versions (NewerNoncurrentVersions) instead of days"
    elif abort_days is not None and abort_days < MIN_ABORT_DAYS:
        found = f"it aborts uploads after {abort_days} day(s) (AbortIncompleteMultipartUpload); a committed change may still need them"
    else:
        return
    raise ConfigurationError(
        f"a lifecycle rule of the lake's bucket breaks the lake: rule {rule.get('ID') or '(without id)'} of {bucket}: {found}",
        "bucket-lifecycle",
        f"take the prefix {prefix or '(whole bucket)'} out of the rule; NoncurrentDays, ExpiredObjectDeleteMarker and"
        f" AbortIncompleteMultipartUpload from {MIN_ABORT_DAYS} days are fine",
    )


def _covers(rule: Any, prefix: str) -> bool:
    """Whether the rule can meet an object of ours, which have no tags."""
    condition = rule.get("Filter", {})
    both = condition.get("And", {})
    if "Tag" in condition or both.get("Tags"):
        return False
    covered = str(condition.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or "")
    return covered.startswith(prefix) or prefix.startswith(covered)
