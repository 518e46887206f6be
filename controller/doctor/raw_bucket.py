"""What only the raw bucket should have: no versions, and files that stay. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.doctor.buckets import Bucket
from controller.doctor.finding import FINE, WARNS, Finding, aws_line
from controller.doctor.lifecycle import covers, enabled, expires_live, least, rule_name, rule_prefix, sleepy
from controller.doctor.looks import not_checked


def raw_findings(bucket: Bucket, is_lake_bucket: bool) -> list[Finding]:
    """Versioning and lifecycle. is_lake_bucket: raw and lake share the bucket, so that it must have versions."""
    return [*_versioning(bucket, is_lake_bucket), *_lifecycle(bucket)]


def _versioning(bucket: Bucket, is_lake_bucket: bool) -> list[Finding]:
    seen, check = bucket.versioning, "raw-versioning"
    if seen.is_unknown:
        return [not_checked(seen, check, bucket.where)]
    status = str(seen.answer.get("Status") or "off")
    if status != "Enabled":
        return [Finding(FINE, check, bucket.where, found=status)]
    rules = enabled((bucket.lifecycle.answer or {}).get("Rules", []))
    days = least([rule for rule in rules if covers(rule, bucket.uri.key)], "NoncurrentVersionExpiration", "NoncurrentDays")
    if days is not None:
        return [Finding(FINE, check, bucket.where, found=f"Enabled; old versions go after {days} days")]
    what = "DMS advises against versions in its target: listing the old ones can make its tests of the endpoint time out"
    if is_lake_bucket:
        what = f"{what}; the lake in the same bucket needs them"
        todo = "a bucket of its own for raw: another BucketName in the DMS endpoint, and --raw; or a rule that expires the old versions"
        return [Finding(WARNS, check, bucket.where, what, "off", "raw and lake in one bucket", todo=todo)]
    fix = aws_line("s3api", "put-bucket-versioning", bucket=bucket.name, versioning_configuration="Status=Suspended")
    return [Finding(WARNS, check, bucket.where, what, "off or Suspended", status, fix)]


def _lifecycle(bucket: Bucket) -> list[Finding]:
    """A raw file may have tags: rules for tagged objects count as well."""
    seen, check = bucket.lifecycle, "raw-lifecycle"
    if seen.is_unknown:
        return [not_checked(seen, check, str(bucket.uri))]
    rules = enabled((seen.answer or {}).get("Rules", []))
    prefix = bucket.uri.key
    meeting = [rule for rule in rules if rule_prefix(rule).startswith(prefix) or prefix.startswith(rule_prefix(rule))]
    found = [_expiry(bucket, check, rule) for rule in meeting if expires_live(rule)]
    found += [_archive(bucket, check, rule, asleep) for rule in meeting if (asleep := sleepy(rule, "Transitions"))]
    return found or [Finding(FINE, check, str(bucket.uri), found="no rule takes raw files")]


def _archive(bucket: Bucket, check: str, rule: Mapping[str, Any], asleep: Sequence[str]) -> Finding:
    what = "raw files in an archive can't be read: no reload from them, no `verify --replay`, and one that goes before it was applied waits"
    fix = aws_line("s3api", "get-bucket-lifecycle-configuration", bucket=bucket.name)
    found = f"{rule_name(rule)}: to {', '.join(asleep)}"
    return Finding(WARNS, check, str(bucket.uri), what, "a storage class that can be read at once", found, fix)


def _expiry(bucket: Bucket, check: str, rule: Mapping[str, Any]) -> Finding:
    expiration = rule["Expiration"]
    when = f"after {expiration['Days']} day(s)" if "Days" in expiration else f"from {expiration['Date']}"
    what = (
        "raw files that are gone can't be applied again: no reload from them, no `verify --replay`, and a rollback that makes them pending"
        " is refused; one that goes before it was applied is lost"
    )
    fix = aws_line("s3api", "get-bucket-lifecycle-configuration", bucket=bucket.name)
    expected = "more days than a rollback may go back, or no rule"
    return Finding(
        WARNS,
        check,
        str(bucket.uri),
        what,
        expected,
        f"{rule_name(rule)}: {when}",
        fix,
        "take the rule out of what this prints, and put the rest back",
    )
