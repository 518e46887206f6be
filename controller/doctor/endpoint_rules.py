"""Settings of a DMS endpoint for S3 that hurt, and what each does to dmslake: one table. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import BLOCKS, WARNS, Finding, aws_line

S3Settings = Mapping[str, Any]
CHECK = "dms-endpoint"
OLD_ORDER = ("MMYYYYDD", "DDMMYYYY")
SAFE_ACLS = ("none", "bucket-owner-full-control")
# As AWS writes a zone, Area/Location, and as people write this one.
UTC = frozenset(area + name for area in ("", "etc/") for name in "utc uct zulu universal gmt gmt0 gmt+0 gmt-0 greenwich".split())
LINE_ENDS = (None, "", "\n", "\r\n", "\\n", "\\r\\n")  # also as they are written in the console
LEAST_INTERVAL_SECONDS = 30
LEAST_CDC_KB = 1_000
LEAST_LOAD_KB = 32_000


@dataclass(frozen=True)
class Rule:
    """hurts: of the endpoint's settings. better: the setting that mends it; {} where nothing but a new endpoint does."""

    level: str
    name: str
    hurts: Callable[[S3Settings], bool]
    what: str
    better: Mapping[str, Any]


def _is_csv(settings: S3Settings) -> bool:
    return str(settings.get("DataFormat") or "csv").lower() == "csv"  # csv is DMS's default


def _below(name: str, least: int) -> Callable[[S3Settings], bool]:
    return lambda settings: settings.get(name) is not None and int(settings[name]) < least


def _is_in_another_zone(settings: S3Settings) -> bool:
    """Whether DMS converts the times of names; it heeds the zone only where it makes folders of dates."""
    zone = str(settings.get("DatePartitionTimezone") or "utc").strip().lower()
    return bool(settings.get("DatePartitionEnabled")) and zone not in UTC


RULES: tuple[Rule, ...] = (
    Rule(
        WARNS, "DataFormat", _is_csv,
        "the files are CSV, which has no types: each new table's item must say them in Schema (docs/csv.md), and an empty text may come as"
        " null",
        {"DataFormat": "parquet"},
    ),
    Rule(
        WARNS, "Rfc4180", lambda settings: _is_csv(settings) and settings.get("Rfc4180") is False,
        "texts with quotes or line ends come without quotes: a table that has one is blocked as bad-csv-row",
        {"Rfc4180": True},
    ),
    Rule(
        BLOCKS, "CsvRowDelimiter", lambda settings: _is_csv(settings) and settings.get("CsvRowDelimiter") not in LINE_ENDS,
        "rows do not end with a line end: a file is read as one row",
        {"CsvRowDelimiter": "\\n"},
    ),
    Rule(
        WARNS, "PreserveTransactions", lambda settings: bool(settings.get("PreserveTransactions")),
        "the changes of all tables come in files of one folder, as CSV: each table's item must say CdcPath (docs/layouts.md), and each run"
        " reads the new files once for each table",
        {"PreserveTransactions": False, "CdcPath": ""},
    ),
    Rule(
        BLOCKS, "CdcPath", lambda settings: bool(settings.get("CdcPath")) and not settings.get("PreserveTransactions"),
        "the changes go to a folder of their own, in which no table looks for them",
        {"CdcPath": ""},
    ),
    Rule(
        WARNS, "CdcInsertsOnly", lambda settings: bool(settings.get("CdcInsertsOnly")),
        "updates and deletes never come: the lake keeps rows that the source no longer has",
        {"CdcInsertsOnly": False},
    ),
    Rule(
        WARNS, "CdcInsertsAndUpdates", lambda settings: bool(settings.get("CdcInsertsAndUpdates")),
        "deletes never come: the lake keeps rows that the source no longer has",
        {"CdcInsertsAndUpdates": False},
    ),
    Rule(
        WARNS, "IncludeOpForFullLoad", lambda settings: not settings.get("IncludeOpForFullLoad"),
        "load files have no Op; without TimestampColumnName too, a table's own first column counts as the commit time if it looks like one",
        {"IncludeOpForFullLoad": True},
    ),
    Rule(
        WARNS, "TimestampColumnName", lambda settings: not settings.get("TimestampColumnName"),
        "rows have no commit time: where a reload begins is guessed from its files' times, and no commit time can be shown",
        {"TimestampColumnName": "dms_timestamp"},
    ),
    Rule(
        WARNS, "ParquetTimestampInMillisecond", lambda settings: bool(settings.get("ParquetTimestampInMillisecond")),
        "the microseconds of timestamps are cut off before dmslake sees them",
        {"ParquetTimestampInMillisecond": False},
    ),
    Rule(
        WARNS, "DatePartitionSequence",
        lambda settings: bool(settings.get("DatePartitionEnabled")) and settings.get("DatePartitionSequence") in OLD_ORDER,
        "folders do not sort by time: each run lists all CDC files of a table instead of the newest",
        {"DatePartitionSequence": "YYYYMMDD"},
    ),
    Rule(
        BLOCKS, "DatePartitionTimezone", _is_in_another_zone,
        "the names of CDC files have that zone's time, and are compared with a load's, in UTC: west of UTC the changes of the hours after a"
        " load are left out for good, east of it older ones are applied over it, and the hour that autumn repeats is applied in a wrong"
        " order; once it is mended, have DMS load the tables again, into folders without the old files (docs/layouts.md)",
        {"DatePartitionTimezone": "Etc/UTC"},
    ),
    Rule(
        WARNS, "CannedAclForObjects",
        lambda settings: str(settings.get("CannedAclForObjects") or "none").lower().replace("_", "-") not in SAFE_ACLS,
        "a bucket that does without ACLs refuses the files; one with ACLs may let others read them, or the owner not",
        {"CannedAclForObjects": "bucket-owner-full-control"},
    ),
    Rule(
        WARNS, "CdcMaxBatchInterval", _below("CdcMaxBatchInterval", LEAST_INTERVAL_SECONDS),
        "a great many small files: each costs requests, and a change takes up only so many (batch_files)",
        {"CdcMaxBatchInterval": 60},
    ),
    Rule(
        WARNS, "CdcMinFileSize", _below("CdcMinFileSize", LEAST_CDC_KB),
        "a great many small files: each costs requests, and a change takes up only so many (batch_files)",
        {"CdcMinFileSize": 32_000},
    ),
    Rule(
        WARNS, "MaxFileSize", _below("MaxFileSize", LEAST_LOAD_KB),
        "a full load comes in a great many small files",
        {"MaxFileSize": 1_048_576},
    ),
)  # fmt: skip


# Only where a task leaves the old files when it loads again.
RELOAD_START = Rule(
    WARNS, "UseTaskStartTimeForFullLoadTimestamp", lambda settings: bool(settings.get("UseTaskStartTimeForFullLoadTimestamp")),
    "a table that is loaded again seems to have been loaded when the task began: the CDC files since then, which its task leaves there,"
    " are applied to it again",
    {"UseTaskStartTimeForFullLoadTimestamp": False},
)  # fmt: skip


def endpoint_findings(endpoint: Mapping[str, Any], leaves_files: bool) -> list[Finding]:
    """What hurts in one endpoint's S3Settings. leaves_files: a task of it may leave old files when it loads a table again."""
    settings: S3Settings = endpoint.get("S3Settings") or {}
    rules = (*RULES, RELOAD_START) if leaves_files else RULES
    return [_finding(rule, endpoint, settings) for rule in rules if rule.hurts(settings)]


def _finding(rule: Rule, endpoint: Mapping[str, Any], settings: S3Settings) -> Finding:
    fix = aws_line("dms", "modify-endpoint", endpoint_arn=str(endpoint.get("EndpointArn")), s3_settings=json.dumps(dict(rule.better)))
    expected = ", ".join(f"{name}={_shown(value)}" for name, value in rule.better.items())
    where = f"DMS endpoint {endpoint.get('EndpointIdentifier')}"
    return Finding(rule.level, CHECK, where, rule.what, expected, f"{rule.name}={_shown(settings.get(rule.name))}", fix)


def _shown(value: Any) -> str:
    return "(not set)" if value in (None, "") else str(value).lower() if isinstance(value, bool) else str(value)
