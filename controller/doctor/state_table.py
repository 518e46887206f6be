"""The DynamoDB table with the state of all tables: it is the one thing that can't be made again from the buckets alone at no cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, aws_line
from controller.doctor.looks import Seen, look, not_checked
from glue_jobs.aws.state_table import KEY

KEY_SCHEMA = [{"AttributeName": KEY, "KeyType": "HASH"}]
KEY_TYPE = [{"AttributeName": KEY, "AttributeType": "S"}]


@dataclass(frozen=True)
class StateFacts:
    """name: of the table. backups: its continuous backups."""

    name: str
    table: Seen
    backups: Seen = Seen()


def state_facts(dynamodb: Any, name: str) -> StateFacts:
    """The table as DynamoDB describes it."""
    table = look("dynamodb:DescribeTable", dynamodb.describe_table, ("ResourceNotFoundException",), TableName=name)
    if table.answer is None:
        return StateFacts(name, table)
    return StateFacts(name, table, look("dynamodb:DescribeContinuousBackups", dynamodb.describe_continuous_backups, TableName=name))


def state_findings(facts: StateFacts) -> list[Finding]:
    """Whether it is there and has the right key; and what protects it."""
    if facts.table.is_unknown:
        return [not_checked(facts.table, "state-table", facts.name)]
    if facts.table.missing:
        what = "there is no such table: correct --state-table, or make it (the next run makes one too, without protection)"
        return [Finding(BLOCKS, "state-table", facts.name, what, "a table", "none", _create_line(facts.name))]
    table: Mapping[str, Any] = facts.table.answer["Table"]
    broken = [*_key(facts.name, table), *_status(facts.name, table)]
    found = broken or [Finding(FINE, "state-table", facts.name, found=str(table["TableStatus"]))]
    return [*found, *_protection(facts.name, table), *_backups(facts), *_billing(facts.name, table)]


def _create_line(name: str) -> str:
    return aws_line(
        "dynamodb", "create-table", table_name=name, attribute_definitions=f"AttributeName={KEY},AttributeType=S",
        key_schema=f"AttributeName={KEY},KeyType=HASH", billing_mode="PAY_PER_REQUEST", deletion_protection_enabled="",
    )  # fmt: skip


def _key(name: str, table: Mapping[str, Any]) -> list[Finding]:
    types = [item for item in table["AttributeDefinitions"] if item["AttributeName"] == KEY]
    if table["KeySchema"] == KEY_SCHEMA and types == KEY_TYPE:
        return []
    found = ", ".join(f"{item['AttributeName']} ({item['KeyType']})" for item in table["KeySchema"])
    what = "this is no state table"
    return [
        Finding(BLOCKS, "state-table-key", name, what, f"the key {KEY} (HASH), a text", found, todo="give another name by --state-table")
    ]


def _status(name: str, table: Mapping[str, Any]) -> list[Finding]:
    status = str(table["TableStatus"])
    if status in ("ACTIVE", "UPDATING"):
        return []
    level = WARNS if status == "CREATING" else BLOCKS
    fix = aws_line("dynamodb", "wait", "table-exists", table_name=name) if level == WARNS else ""
    return [Finding(level, "state-table", name, "the table can't be used now", "ACTIVE", status, fix)]


def _protection(name: str, table: Mapping[str, Any]) -> list[Finding]:
    check = "state-table-protection"
    if table.get("DeletionProtectionEnabled"):
        return [Finding(FINE, check, name, found="on")]
    fix = aws_line("dynamodb", "update-table", table_name=name, deletion_protection_enabled="")
    what = "one wrong call deletes the state of all tables (`dmslake recover` rebuilds it table by table)"
    return [Finding(WARNS, check, name, what, "deletion protection", "off", fix)]


def _backups(facts: StateFacts) -> list[Finding]:
    check, seen = "state-table-backups", facts.backups
    if seen.is_unknown:
        return [not_checked(seen, check, facts.name)]
    recovery = seen.answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    status = str(recovery.get("PointInTimeRecoveryStatus", "DISABLED"))
    if status == "ENABLED":
        return [Finding(FINE, check, facts.name, found=status)]
    fix = aws_line(
        "dynamodb", "update-continuous-backups", table_name=facts.name,
        point_in_time_recovery_specification="PointInTimeRecoveryEnabled=true",
    )  # fmt: skip
    what = "an item that somebody spoils can't be brought back as it was"
    return [Finding(WARNS, check, facts.name, what, "point-in-time recovery", status, fix)]


def _billing(name: str, table: Mapping[str, Any]) -> list[Finding]:
    check = "state-table-billing"
    mode = str(table.get("BillingModeSummary", {}).get("BillingMode") or "PROVISIONED")
    if mode == "PAY_PER_REQUEST":
        return [Finding(FINE, check, name, found="on demand")]
    fix = aws_line("dynamodb", "update-table", table_name=name, billing_mode="PAY_PER_REQUEST")
    what = "runs write in bursts: they are throttled, or idle capacity is paid for"
    return [Finding(WARNS, check, name, what, "PAY_PER_REQUEST (on demand)", mode, fix)]
