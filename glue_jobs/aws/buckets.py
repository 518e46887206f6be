"""What a lake bucket must have so that the promises hold: versioning, and no lifecycle rule that takes live or hidden files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from glue_jobs.aws.translate import ACCESS_DENIED, error_code
from glue_jobs.core.errors import ConfigurationError
from glue_jobs.core.raw_names import Expiry

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MIN_ABORT_DAYS = 3


def check_lake_bucket(s3: S3Client, bucket: str, prefix: str = "") -> list[str]:
    """Warnings about the bucket of the lake below `prefix`; raises ConfigurationError where it would break a promise."""
    check_versioning(s3, bucket)
    return check_lifecycle(s3, bucket, prefix)


def check_versioning(s3: S3Client, bucket: str) -> None:
    """Raise ConfigurationError where the bucket of the lake does not keep what is hidden."""
    status = s3.get_bucket_versioning(Bucket=bucket).get("Status")
    if status != "Enabled":
        raise ConfigurationError(
            f"the lake's bucket {bucket} has versioning {'suspended' if status else 'off'}: a hidden file could not be brought back",
            "bucket-not-versioned",
            f"aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled",
        )


def check_lifecycle(s3: S3Client, bucket: str, *prefixes: str) -> list[str]:
    """Warnings about the bucket's lifecycle rules; raises ConfigurationError for one that takes live or hidden files below a prefix."""
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
    for prefix in prefixes:
        for rule in rules:
            _check_rule(bucket, prefix, rule)
    return []


def noncurrent_days(s3: S3Client, bucket: str, prefix: str = "") -> int | None:
    """Days for which the bucket keeps the data of a hidden file below `prefix`, at least; None: for good."""
    return _least_days(s3, bucket, prefix, "NoncurrentVersionExpiration", "NoncurrentDays")


def abort_days(s3: S3Client, bucket: str, prefix: str = "") -> int | None:
    """Days after which the bucket aborts an upload below `prefix` that was not completed, at least; None: never, or nobody may know."""
    try:
        return _least_days(s3, bucket, prefix, "AbortIncompleteMultipartUpload", "DaysAfterInitiation")
    except ClientError as error:
        if error_code(error) in ACCESS_DENIED:
            return None
        raise


def _least_days(s3: S3Client, bucket: str, prefix: str, action: str, name: str) -> int | None:
    """The least number of days that an enabled rule has for the action, None without any."""
    try:
        rules: list[Any] = list(s3.get_bucket_lifecycle_configuration(Bucket=bucket).get("Rules", []))
    except ClientError as error:
        if error_code(error) == "NoSuchLifecycleConfiguration":
            return None
        raise
    enabled = [rule for rule in rules if rule.get("Status") == "Enabled" and _covers(rule, prefix)]
    days = [rule.get(action, {}).get(name) for rule in enabled]
    return min((int(number) for number in days if number is not None), default=None)


def expiry_of(s3: S3Client, bucket: str, prefix: str) -> Expiry:
    """After how many days the first objects below `prefix` expire by the bucket's rules; one with a date takes them at any time.

    Rules for tagged objects count as well: a raw file may have tags.
    """
    try:
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket).get("Rules", [])
    except ClientError as error:
        if error_code(error) == "NoSuchLifecycleConfiguration":
            return Expiry()
        if error_code(error) in ACCESS_DENIED:
            return Expiry(is_known=False)
        raise
    enabled = [rule for rule in rules if rule.get("Status") == "Enabled" and _meets(_prefix_of(rule), prefix)]
    expirations = [rule.get("Expiration", {}) for rule in enabled]
    days = [0.0 if "Date" in found else float(found["Days"]) for found in expirations if "Days" in found or "Date" in found]
    return Expiry(min(days, default=None))


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
    return _meets(_prefix_of(rule), prefix)


def _prefix_of(rule: Any) -> str:
    condition = rule.get("Filter", {})
    return str(condition.get("Prefix") or condition.get("And", {}).get("Prefix") or rule.get("Prefix") or "")


def _meets(one: str, other: str) -> bool:
    """Whether a key can begin with both."""
    return one.startswith(other) or other.startswith(one)
