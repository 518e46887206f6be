"""Lifecycle rules read as to what they do to the files below a folder, and rules that do what dmslake wants. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.doctor.finding import aws_line

Rule = Mapping[str, Any]
ABORT_DAYS = 7  # what we write into a rule
# Their objects must be restored by a person before anything can read them.
ASLEEP = frozenset({"GLACIER", "DEEP_ARCHIVE"})
DEFAULT_SIZE = "all_storage_classes_128K"  # S3's own default: below it nothing moves to another storage class


def enabled(rules: Iterable[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.get("Status") == "Enabled"]


def may_meet(rule: Rule, prefix: str) -> bool:
    """Whether the rule can take an object below `prefix`. Ours have no tags."""
    condition = rule.get("Filter") or {}
    if "Tag" in condition or (condition.get("And") or {}).get("Tags"):
        return False
    own = rule_prefix(rule)
    return own.startswith(prefix) or prefix.startswith(own)


def covers(rule: Rule, prefix: str) -> bool:
    """Whether the rule takes all objects below `prefix`, of whatever size."""
    condition = rule.get("Filter") or {}
    narrowed = {"Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan"} & set(condition) or set(condition.get("And") or {}) - {"Prefix"}
    return not narrowed and prefix.startswith(rule_prefix(rule))


def rule_prefix(rule: Rule) -> str:
    condition = rule.get("Filter") or {}
    return str(condition.get("Prefix") or (condition.get("And") or {}).get("Prefix") or rule.get("Prefix") or "")


def rule_name(rule: Rule) -> str:
    return f"rule {rule.get('ID') or '(without id)'}"


def expires_live(rule: Rule) -> bool:
    """Whether it takes objects that are in use."""
    expiration = rule.get("Expiration") or {}
    return "Days" in expiration or "Date" in expiration


def counts_versions(rule: Rule) -> bool:
    """Whether it keeps versions by number, however young the others are."""
    return "NewerNoncurrentVersions" in (rule.get("NoncurrentVersionExpiration") or {})


def least(rules: Iterable[Rule], action: str, name: str) -> int | None:
    """The least number that a rule has for the action, None without any."""
    numbers = [(rule.get(action) or {}).get(name) for rule in rules]
    return min((int(number) for number in numbers if number is not None), default=None)


def sleepy(rule: Rule, action: str) -> list[str]:
    """The storage classes that nothing can read, to which the rule moves objects. action: Transitions or NoncurrentVersionTransitions."""
    return sorted({str(step.get("StorageClass")) for step in rule.get(action) or ()} & ASLEEP)


@dataclass(frozen=True)
class Days:
    """How long hidden files are kept, and uploads that nobody completed: at least."""

    noncurrent: int
    abort: int = ABORT_DAYS


def mended(rules: Sequence[Rule], prefix: str, days: Days) -> list[dict[str, Any]]:
    """The rules without what hurts below `prefix`, and one of ours. Those that can't meet the folder stay as they are."""
    ours = {
        "ID": f"dmslake {prefix}".strip(),
        "Status": "Enabled",
        "Filter": {"Prefix": prefix},
        "NoncurrentVersionExpiration": {"NoncurrentDays": days.noncurrent},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": max(days.abort, ABORT_DAYS)},
    }
    others = [rule for rule in rules if rule.get("ID") != ours["ID"]]
    kept = [_harmless(rule, days) if rule.get("Status") == "Enabled" and may_meet(rule, prefix) else dict(rule) for rule in others]
    return [_filtered(rule) for rule in kept if any(rule.get(action) for action in _ACTIONS)] + [ours]


_ACTIONS = ("Expiration", "NoncurrentVersionExpiration", "Transitions", "NoncurrentVersionTransitions", "AbortIncompleteMultipartUpload")


def _harmless(rule: Rule, days: Days) -> dict[str, Any]:
    """The rule without what takes, moves or aborts what is needed."""
    noncurrent = least([rule], "NoncurrentVersionExpiration", "NoncurrentDays")
    abort = least([rule], "AbortIncompleteMultipartUpload", "DaysAfterInitiation")
    hurts = {
        "Expiration": expires_live(rule),
        "NoncurrentVersionExpiration": counts_versions(rule) or (noncurrent is not None and noncurrent < days.noncurrent),
        "AbortIncompleteMultipartUpload": abort is not None and abort < days.abort,
        "Transitions": bool(sleepy(rule, "Transitions")),
        "NoncurrentVersionTransitions": bool(sleepy(rule, "NoncurrentVersionTransitions")),
    }
    return {name: value for name, value in rule.items() if not hurts.get(name)}


def _filtered(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The rule with its prefix in a Filter: S3 refuses a configuration that has both forms."""
    moved = {name: value for name, value in rule.items() if name != "Prefix"}
    return {"Filter": {"Prefix": rule_prefix(rule)}, **moved}


def lifecycle_line(bucket: str, configuration: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> str:
    """The command that writes `rules`. configuration: as it was read, for what it says beside them."""
    size = configuration.get("TransitionDefaultMinimumObjectSize") or DEFAULT_SIZE
    own_size = {} if size == DEFAULT_SIZE else {"transition_default_minimum_object_size": size}
    text = json.dumps({"Rules": rules}, default=_date)
    return aws_line("s3api", "put-bucket-lifecycle-configuration", bucket=bucket, lifecycle_configuration=text, **own_size)


def _date(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON of {type(value).__name__}")
