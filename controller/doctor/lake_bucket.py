"""What only the lake bucket must have: versioning, and lifecycle rules that leave the rollback window alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.doctor.buckets import Bucket
from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, aws_line
from controller.doctor.lifecycle import (
    Days,
    Rule,
    counts_versions,
    covers,
    enabled,
    expires_live,
    least,
    lifecycle_line,
    may_meet,
    mended,
    rule_name,
    sleepy,
)
from controller.doctor.looks import not_checked
from glue_jobs.aws.buckets import MIN_ABORT_DAYS

MINUTES_PER_DAY = 24 * 60
CHECK = "lake-lifecycle"


@dataclass(frozen=True)
class Wish:
    """rollback_days: how far back one wants to be able to go. timeout_minutes: the longest that a job may run, 0 if that isn't known."""

    rollback_days: int
    timeout_minutes: int = 0

    @property
    def abort_days(self) -> int:
        """Days for which an upload must be able to wait: one more than a job may run."""
        return max(MIN_ABORT_DAYS, -(-self.timeout_minutes // MINUTES_PER_DAY) + 1)


def lake_findings(bucket: Bucket, wish: Wish) -> list[Finding]:
    """Versioning, MFA delete, object lock, lifecycle."""
    return [*_versioning(bucket), *_lock(bucket), *_lifecycle(bucket, wish)]


def _versioning(bucket: Bucket) -> list[Finding]:
    seen, check = bucket.versioning, "lake-versioning"
    if seen.is_unknown:
        return [not_checked(seen, check, bucket.where)]
    status = str(seen.answer.get("Status") or "off")
    if status != "Enabled":
        fix = aws_line("s3api", "put-bucket-versioning", bucket=bucket.name, versioning_configuration="Status=Enabled")
        what = "a hidden file could not be brought back: every run is refused"
        return [Finding(BLOCKS, check, bucket.where, what, "Enabled", status, fix)]
    findings = [Finding(FINE, check, bucket.where, found=status)]
    if seen.answer.get("MFADelete") == "Enabled":
        findings.append(_mfa_delete(bucket))
    return findings


def _mfa_delete(bucket: Bucket) -> Finding:
    what = (
        "changes and rollbacks work, because hiding a file by a delete marker needs no MFA; but `dmslake erase` can't remove versions,"
        " and S3 takes no lifecycle rules, so that old versions stay for good"
    )
    fix = aws_line(
        "s3api",
        "put-bucket-versioning",
        bucket=bucket.name,
        versioning_configuration="Status=Enabled,MFADelete=Disabled",
        mfa="SERIAL CODE",
    )
    return Finding(
        WARNS, "lake-mfa-delete", bucket.where, what, "Disabled", "Enabled", fix, "as the account's root user, with its MFA device"
    )


def _lock(bucket: Bucket) -> list[Finding]:
    seen, check = bucket.lock, "lake-object-lock"
    if seen.is_unknown:
        return [not_checked(seen, check, bucket.where)]
    lock: Mapping[str, Any] = (seen.answer or {}).get("ObjectLockConfiguration", {})
    rule = (lock.get("Rule") or {}).get("DefaultRetention")
    if not rule:
        return [Finding(FINE, check, bucket.where, found="no default retention")]
    period = f"{rule['Days']} day(s)" if rule.get("Days") else f"{rule.get('Years')} year(s)"
    what = (
        "S3 refuses an object without a checksum in such a bucket, and change records and copies have none; versions can't be erased nor"
        " expire while they are retained"
    )
    fix = aws_line(
        "s3api", "put-object-lock-configuration", bucket=bucket.name, object_lock_configuration='{"ObjectLockEnabled": "Enabled"}'
    )
    return [Finding(BLOCKS, check, bucket.where, what, "no default retention", f"{rule.get('Mode')} for {period}", fix)]


def _lifecycle(bucket: Bucket, wish: Wish) -> list[Finding]:
    """Every finding has the same line, which mends them all: S3 takes lifecycle rules only as a whole."""
    seen = bucket.lifecycle
    if seen.is_unknown:
        return [not_checked(seen, CHECK, bucket.where)]
    configuration: Mapping[str, Any] = seen.answer or {}
    rules: Sequence[Rule] = configuration.get("Rules", [])
    met = [rule for rule in enabled(rules) if may_meet(rule, bucket.uri.key)]
    days = Days(_days(met, bucket.uri.key, wish), wish.abort_days)
    line = lifecycle_line(bucket.name, configuration, mended(rules, bucket.uri.key, days))
    found = [(BLOCKS, *parts) for rule in met for parts in _harm(rule)]
    found += [(WARNS, *parts) for parts in (*_versions(met, bucket.uri.key, wish), *_markers(met, bucket.uri.key))]
    found += _uploads(met, bucket.uri.key, wish)
    if found:
        return [Finding(level, CHECK, str(bucket.uri), what, expected, says, line) for level, what, expected, says in found]
    return [Finding(FINE, CHECK, str(bucket.uri), found=f"hidden files are kept for {days.noncurrent} days")]


def _days(met: Sequence[Rule], prefix: str, wish: Wish) -> int:
    """The days that our rule gives: those that there are, if they are enough."""
    covering = [rule for rule in met if covers(rule, prefix)]
    return max(least(covering, "NoncurrentVersionExpiration", "NoncurrentDays") or 0, wish.rollback_days)


Parts = tuple[str, str, str]  # what, expected, found


def _harm(rule: Rule) -> list[Parts]:
    """What a rule does that breaks the lake."""
    found: list[Parts] = []
    if expires_live(rule):
        expiration = rule["Expiration"]
        when = f"after {expiration['Days']} day(s)" if "Days" in expiration else f"from {expiration['Date']}"
        found.append(("live data files expire: rows would be lost", "no Expiration of live objects", f"{rule_name(rule)}: {when}"))
    if counts_versions(rule):
        kept = rule["NoncurrentVersionExpiration"]["NewerNoncurrentVersions"]
        what = "versions are kept by number instead of by days: what a rollback needs could be gone at once"
        found.append((what, "no NewerNoncurrentVersions", f"{rule_name(rule)}: keeps {kept}"))
    classes = sleepy(rule, "Transitions")
    if classes:
        found.append(("live data files become unreadable", "no archive classes", f"{rule_name(rule)}: {', '.join(classes)}"))
    return found


def _versions(met: Sequence[Rule], prefix: str, wish: Wish) -> list[Parts]:
    """What is wrong with how long hidden files are kept."""
    days = least(met, "NoncurrentVersionExpiration", "NoncurrentDays")
    covering = [rule for rule in met if covers(rule, prefix)]
    found: list[Parts] = []
    if days is None:
        found.append(("hidden files are kept, and billed, for good", "NoncurrentVersionExpiration", "no such rule"))
    elif days < wish.rollback_days:
        found.append(("a rollback can't go back as far as is wished", f"at least {wish.rollback_days} days", f"{days} day(s)"))
    elif least(covering, "NoncurrentVersionExpiration", "NoncurrentDays") is None:
        found.append(("a part of the hidden files is kept for good", f"a rule for all below {prefix!r}", "rules with a narrower Filter"))
    for rule in met:
        classes = sleepy(rule, "NoncurrentVersionTransitions")
        if classes:
            what = "a rollback can't copy a hidden file until somebody restores it from the archive"
            found.append((what, "no archive classes", f"{rule_name(rule)}: {', '.join(classes)}"))
    return found


def _markers(met: Sequence[Rule], prefix: str) -> list[Parts]:
    if any((rule.get("Expiration") or {}).get("ExpiredObjectDeleteMarker") and covers(rule, prefix) for rule in met):
        return []
    what = "delete markers stay after the versions below them have gone: listings get slower with the years"
    return [(what, "ExpiredObjectDeleteMarker", "no such rule")]


def _uploads(met: Sequence[Rule], prefix: str, wish: Wish) -> list[tuple[str, str, str, str]]:
    """Level and parts: what is wrong with how long an upload may wait to be completed."""
    action, name = "AbortIncompleteMultipartUpload", "DaysAfterInitiation"
    days = least(met, action, name)
    if days is not None and days < MIN_ABORT_DAYS:  # first: a run refuses it, also where only some tables are below the rule's prefix
        what = "uploads of a committed change may be aborted before they are completed: runs are refused"
        return [(BLOCKS, what, f"at least {MIN_ABORT_DAYS} days", f"{days} day(s)")]
    if days is None or least([rule for rule in met if covers(rule, prefix)], action, name) is None:
        what = "what crashed runs had uploaded is kept, and billed, for good"
        return [(WARNS, what, action, "no rule for the whole folder")]
    if days < wish.abort_days:
        what = "a job may run so long that its uploads are aborted before it commits; the change is then undone"
        return [(WARNS, what, f"{wish.abort_days} days: one more than the jobs' timeout", f"{days} day(s)")]
    return []
