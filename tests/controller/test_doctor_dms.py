"""What doctor says of the DMS endpoints and tasks that write to the raw folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from controller.doctor.dms import DmsFacts, dms_facts, dms_findings, item_names, writes_to
from controller.doctor.dms_tasks import Task, read_config, read_task, task_findings
from controller.doctor.endpoint_rules import RELOAD_START, RULES, endpoint_findings
from controller.doctor.finding import BLOCKS, FINE, WARNS
from controller.doctor.image_rules import ItemNames
from controller.doctor.looks import Seen
from controller.doctor.tables import Tables
from controller.raw_scope import RawScope
from glue_jobs.core.errors import ConfigurationError
from glue_jobs.core.state import read_state
from tests.controller.aws_lines import request_of
from tests.controller.world import item_of, table_path
from tests.infra.resolve import Resolved

DENIED = Seen(error=ConfigurationError("no", "access-denied"), permission="dms:Look")
SCOPE = RawScope.parse("s3://raw-bucket/dms/")
GOOD = {
    "BucketName": "raw-bucket", "BucketFolder": "dms", "DataFormat": "parquet", "IncludeOpForFullLoad": True, "TimestampColumnName": "ts",
}  # fmt: skip
HURTS: dict[str, tuple[str, Any]] = {
    "DataFormat": (WARNS, "csv"),
    "PreserveTransactions": (WARNS, True),
    "CdcPath": (BLOCKS, "changes"),
    "CdcInsertsOnly": (WARNS, True),
    "CdcInsertsAndUpdates": (WARNS, True),
    "IncludeOpForFullLoad": (WARNS, False),
    "TimestampColumnName": (WARNS, ""),
    "ParquetTimestampInMillisecond": (WARNS, True),
    "CannedAclForObjects": (WARNS, "public-read"),
    "CdcMaxBatchInterval": (WARNS, 5),
    "CdcMinFileSize": (WARNS, 10),
    "MaxFileSize": (WARNS, 1000),
}


def endpoint(**settings: Any) -> dict[str, Any]:
    return {"EndpointIdentifier": "raw", "EndpointArn": "arn:aws:dms:endpoint", "S3Settings": {**GOOD, **settings}}


def test_settings_of_an_endpoint() -> None:
    """Each setting that hurts is found alone, and its better value doesn't hurt; DMS takes what the line gives it."""
    found = {name: endpoint_findings(endpoint(**{name: value}), False) for name, (_, value) in HURTS.items()}
    assert {name: [finding.level for finding in some] for name, some in found.items()} == {
        name: [level] for name, (level, _) in HURTS.items()
    }
    assert endpoint_findings(endpoint(CannedAclForObjects="bucket-owner-full-control", CdcMaxBatchInterval=60), True) == []
    dated = [endpoint_findings(endpoint(DatePartitionEnabled=True, DatePartitionSequence=name), False) for name in ("YYYYMMDD", "DDMMYYYY")]
    assert [[finding.found for finding in some] for some in dated] == [
        [],
        ["DatePartitionSequence=DDMMYYYY"],
    ]
    assert {each.name for each in RULES} == {*HURTS, "DatePartitionSequence", "DatePartitionTimezone", "Rfc4180", "CsvRowDelimiter"}

    for each in (*RULES, RELOAD_START):
        assert not each.hurts({**GOOD, **each.better})
    (one,) = endpoint_findings(endpoint(PreserveTransactions=True), False)
    assert request_of(one.fix)["S3Settings"] == {"PreserveTransactions": False, "CdcPath": ""}


def test_names_in_another_time_zone() -> None:
    """Changes would be left out or applied twice: it blocks, where DMS heeds the zone, and UTC has many names."""

    def found(zone: str | None, is_dated: bool = True) -> list[tuple[str, str]]:
        dated = endpoint(DatePartitionEnabled=is_dated, DatePartitionSequence="YYYYMMDD", DatePartitionTimezone=zone)
        return [(finding.level, finding.found) for finding in endpoint_findings(dated, False)]

    for zone in ("America/New_York", "Asia/Seoul", "Europe/London", "Etc/GMT+5"):
        assert found(zone) == [(BLOCKS, f"DatePartitionTimezone={zone}")]
    assert [found(zone) for zone in (None, "", "UTC", "utc", "Etc/UTC", "GMT", "Etc/GMT", "Etc/GMT+0")] == [[]] * 8
    assert found("Asia/Seoul", is_dated=False) == []
    (one,) = endpoint_findings(endpoint(DatePartitionEnabled=True, DatePartitionTimezone="Asia/Seoul"), False)
    assert request_of(one.fix)["S3Settings"] == {"DatePartitionTimezone": "Etc/UTC"}


def test_settings_of_csv_files() -> None:
    """They are looked at where the files are CSV; line ends of either kind, however they are written, are fine."""
    csv = {"DataFormat": "csv", "Rfc4180": False, "CsvRowDelimiter": "|"}
    found = [(finding.level, finding.found) for finding in endpoint_findings(endpoint(**csv), False)]
    assert found == [(WARNS, "DataFormat=csv"), (WARNS, "Rfc4180=false"), (BLOCKS, "CsvRowDelimiter=|")]
    assert endpoint_findings(endpoint(**{**csv, "DataFormat": "parquet"}), False) == []
    for end in ("\n", "\\n", "\r\n"):
        assert len(endpoint_findings(endpoint(DataFormat="csv", Rfc4180=True, CsvRowDelimiter=end), False)) == 1


@pytest.mark.parametrize(("code", "level"), [("ResourceNotFoundFault", FINE), ("AccessDeniedException", WARNS)])
def test_an_account_without_a_target_on_s3_has_nothing_to_be_warned_of(code: str, level: str) -> None:
    """DMS answers with an error where nothing fits a filter."""

    class Dms:
        def describe_endpoints(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": code, "Message": "none"}}, "DescribeEndpoints")

    assert [finding.level for finding in dms_findings(dms_facts(Dms(), SCOPE), SCOPE)] == [level]


def test_what_the_template_makes_is_fine() -> None:
    """Endpoint, task and serverless replication of dms-source.yaml."""
    given = {"VpcId": "vpc-1", "SubnetIds": "a,b", "SecurityGroupIds": "c", "SourceSecretArn": "arn:aws:secretsmanager:x:1:secret:s"}
    stacks = [
        Resolved.read("dms-source.yaml", **given, RawBucket="raw-bucket", SchemaName="shop", Capacity=capacity)
        for capacity in ("instance", "serverless")
    ]
    target = {**endpoint(), "S3Settings": stacks[0].resource("TargetEndpoint")["S3Settings"], "EndpointArn": "arn"}
    task = stacks[0].resource("ReplicationTask")
    config = stacks[1].resource("ServerlessReplication")
    known = {
        "ReplicationTaskIdentifier": "t",
        "ReplicationTaskArn": "arn",
        "ReplicationConfigArn": "arn",
        "ReplicationConfigIdentifier": "r",
    }
    for name in ("TableMappings", "ReplicationSettings"):
        config[name] = config[name] if isinstance(config[name], str) else json.dumps(config[name])

    assert writes_to(target, SCOPE)
    for facts in (DmsFacts(Seen([target]), Seen([{**task, **known}])), DmsFacts(Seen([target]), Seen([]), Seen([{**config, **known}]))):
        assert {finding.level for finding in dms_findings(facts, SCOPE)} == {FINE}
    assert [read_task({**task, **known}).kind, read_config({**config, **known}).kind] == ["full-load-and-cdc"] * 2


IMAGES = {"rule-action": "add-before-image-columns", "before-image-def": {"column-prefix": "BI_", "column-suffix": ""}}
OTHER_IMAGES = {**IMAGES, "before-image-def": {"column-prefix": "OLD_"}}
SELECTION = {"rule-type": "selection", "rule-id": "7", "rule-action": "include"}
TASK = Task("shop", "arn:aws:dms:task", "arn:aws:dms:endpoint", "full-load-and-cdc", "running", "", {}, [SELECTION, IMAGES])
LEAVING = {"FullLoadSettings": {"TargetTablePrepMode": "DO_NOTHING"}}


def test_tasks() -> None:
    """One that stands, one without changes, without before images or with others, that leaves old files; several; none."""
    found = {
        "fine": task_findings([TASK]),
        "stands": task_findings([replace(TASK, status="failed", message="no network")]),
        "load": task_findings([replace(TASK, kind="full-load")]),
        "images": task_findings([replace(TASK, rules=[SELECTION])]),
        "other images": task_findings([replace(TASK, rules=[SELECTION, OTHER_IMAGES])]),
        "leaves": task_findings([replace(TASK, settings=LEAVING)]),
        "serverless": task_findings([replace(TASK, kind="full-load", rules=[], settings=LEAVING, serverless=True)]),
        "two": task_findings([TASK, replace(TASK, name="other")]),
        "none": task_findings([]),
    }

    assert {name: [finding.found for finding in some if finding.level == WARNS] for name, some in found.items()} == {
        "fine": [], "stands": ["failed no network"], "load": ["full-load"],
        "images": ["none"], "other images": [f"{OTHERWISE} %.% have"], "leaves": ["DO_NOTHING"],
        "serverless": ["full-load", "DO_NOTHING"], "two": ["2 tasks"], "none": ["none"],
    }  # fmt: skip
    words = shlex.split(found["images"][0].fix)
    mended = replace(TASK, rules=json.loads(words[words.index("--table-mappings") + 1])["rules"])
    assert [rule["rule-id"] for rule in mended.rules] == ["7", "8"]
    assert task_findings([mended])[0].level == FINE
    assert all(request_of(finding.fix) for some in found.values() for finding in some if finding.fix)
    assert {shlex.split(finding.fix)[2] for finding in found["serverless"]} == {"modify-replication-config"}


OTHERWISE = "another prefix or suffix than the items of"
LOADED = {
    "ReplicationTaskIdentifier": "load", "ReplicationTaskArn": "arn:aws:dms:load", "TargetEndpointArn": TASK.target,
    "MigrationType": "full-load", "Status": "stopped", "StopReason": "Stop Reason FULL_LOAD_ONLY_FINISHED",
    "TableMappings": json.dumps({"rules": [SELECTION]}),
}  # fmt: skip


def test_a_load_and_its_changes_in_two_tasks() -> None:
    """Both are as they should be: with changes too, the first would write to the folders of the second. Alone, it brings none."""
    load, changes = read_task(LOADED), replace(TASK, kind="cdc", settings=LEAVING)
    broken = read_task({**LOADED, "Status": "failed", "LastFailureMessage": "no network"})
    cut_off = read_task({**LOADED, "StopReason": "Stop Reason NORMAL"})
    found = {
        "pair": task_findings([load, changes]),
        "broken": task_findings([broken, changes]),
        "cut off": task_findings([cut_off, changes]),
        "alone": task_findings([load]),
        "elsewhere": task_findings([load, replace(changes, target="arn:aws:dms:other")]),
        "with both": task_findings([load, TASK]),
    }

    assert {name: [finding.found for finding in some if finding.level == WARNS] for name, some in found.items()} == {
        "pair": [], "broken": ["failed no network"], "cut off": ["stopped Stop Reason NORMAL"], "alone": ["full-load"],
        "elsewhere": ["full-load", "2 tasks"], "with both": ["2 tasks"],
    }  # fmt: skip


def test_two_endpoints_of_one_folder_are_one_place() -> None:
    """A load and its changes may have settings of their own; what they write lies together."""
    other = {**endpoint(BucketFolder="/dms/", MaxFileSize=500_000), "EndpointArn": "arn:aws:dms:endpoint:2", "EndpointIdentifier": "raw-2"}
    changes = {**LOADED, "ReplicationTaskArn": "arn:aws:dms:changes", "MigrationType": "cdc", "Status": "running",
               "TargetEndpointArn": other["EndpointArn"], "TableMappings": json.dumps({"rules": [SELECTION, IMAGES]})}  # fmt: skip
    far = {**other, "S3Settings": {**other["S3Settings"], "BucketFolder": "dms/eu"}}

    found = [
        [finding.found for finding in dms_findings(DmsFacts(Seen([endpoint(), there]), Seen([LOADED, changes])), SCOPE)
         if finding.check == "dms-task"] for there in (other, far)
    ]  # fmt: skip

    assert found == [["stopped"], ["full-load", "2 tasks"]]


def about(rule: dict[str, Any], schema: str, table: str) -> dict[str, Any]:
    return {**rule, "object-locator": {"schema-name": schema, "table-name": table}}


def test_before_images_of_another_name() -> None:
    """The items may know it: then no line makes the rules anew, and where all items of the scope do know it, nothing is wrong."""
    renamed = replace(TASK, rules=[SELECTION, OTHER_IMAGES])
    says = {"BeforeImagePrefix": "BI_, OLD_"}
    items = [
        item_of(table_path("orders"), **says), item_of(table_path("stores"), BeforeImagePrefix="OLD_"),
        item_of(table_path("new"), ActiveFlag="false"), item_of(table_path("made"), Source="none"),
    ]  # fmt: skip
    known = item_names(Seen(Tables(tuple(map(read_state, items)))), SCOPE)
    more = item_names(Seen(Tables(tuple(map(read_state, [*items, item_of(table_path("lines"))])))), SCOPE)

    (finding,) = task_findings([renamed])
    assert (finding.found, finding.fix) == (f"{OTHERWISE} %.% have", "")
    assert "BeforeImagePrefix = OLD_;" in finding.todo
    assert ([item.table for item in known], item_names(Seen(missing=True), SCOPE)) == (["orders", "stores"], [])

    def said(task: Task, names: Sequence[ItemNames]) -> list[tuple[str, str]]:
        return [(finding.found, finding.fix) for finding in task_findings([task], names) if finding.level != FINE]

    assert said(renamed, known) == []
    assert said(renamed, more) == [(f"{OTHERWISE} shop.lines have", "")]
    assert said(TASK, known) == [(f"{OTHERWISE} shop.stores have", "")], "BI_ is nothing to an item that says another name"
    assert said(replace(TASK, rules=[SELECTION]), known) == [("none", "")], "a rule for BI_ would be wrong for one of them"
    each = [about(IMAGES, "shop", "orders"), about(OTHER_IMAGES, "shop", "stores")]
    assert said(replace(TASK, rules=[SELECTION, *each]), known) == [], "each table is held to its own item"
    todo = [finding.todo for finding in task_findings([TASK], known) if finding.level != FINE]
    assert todo == ["add BI_ to BeforeImagePrefix in the tables' items, beside OLD_, which older files may have"]


def test_items_of_tables_that_a_task_leaves_out_or_renames() -> None:
    """What it leaves out is another task's; a table that it renames has an item of the new name, which no selection meets."""

    def names(**patterns: str) -> list[ItemNames]:
        return [ItemNames("shop", table, (pattern,)) for table, pattern in patterns.items()]

    def found(rules: list[dict[str, Any]], items: list[ItemNames]) -> list[str]:
        return [finding.found for finding in task_findings([replace(TASK, rules=rules)], items) if finding.level != FINE]

    left = [
        about(SELECTION, "shop", "%"),
        about({**SELECTION, "rule-action": "exclude"}, "shop", "stores"),
        about(IMAGES, "shop", "orders"),
    ]
    lower = {"rule-type": "transformation", "rule-action": "convert-lowercase", "rule-target": "schema"}
    renamed = [about(SELECTION, "SHOP", "%"), about(lower, "SHOP", "%")]
    items = names(orders="BI_*", stores="OLD_*")

    assert found(left, items) == []
    assert found([left[0], left[2]], items) == ["none for shop.stores"]
    assert found([*renamed, OTHER_IMAGES], names(orders="OLD_*")) == []
    assert found([*renamed, IMAGES], names(orders="OLD_*")) == [f"{OTHERWISE} SHOP.% have"]
    assert found([*renamed, OTHER_IMAGES], []) == [f"{OTHERWISE} SHOP.% have"]


@pytest.mark.parametrize(
    ("images", "without"),
    [
        ([("%", "%")], ""),
        ([("shop", "%"), ("crm", "people")], ""),
        ([("sho%", "%"), ("c%", "p%")], ""),
        ([("shop", "%")], "crm.people"),
        ([("shop", "orders"), ("crm", "people")], "shop.%"),
        ([("shop", "orders")], "shop.%, crm.people"),
    ],
)
def test_tables_for_which_no_rule_makes_before_images(images: list[tuple[str, str]], without: str) -> None:
    """They are named; rules that are there are left to the person who wrote them."""
    chosen = [about(SELECTION, "shop", "%"), about({**SELECTION, "rule-action": "explicit"}, "crm", "people")]
    left = about({**SELECTION, "rule-action": "exclude"}, "shop", "logs")
    task = replace(TASK, rules=[*chosen, left, *(about(IMAGES, *place) for place in images)])

    found = [(finding.found, finding.fix) for finding in task_findings([task]) if finding.level != FINE]

    assert found == ([(f"none for {without}", "")] if without else [])


def test_what_an_endpoint_and_its_tasks_say_together() -> None:
    """A folder beside the raw folder; a load's time that matters only where old files stay; what may not be looked at."""
    late = endpoint(UseTaskStartTimeForFullLoadTimestamp=True)
    mappings = json.dumps({"rules": [IMAGES]})
    task = {"ReplicationTaskIdentifier": "shop", "ReplicationTaskArn": "arn", "TableMappings": mappings, "Status": "running"}
    leaving = {**task, "ReplicationTaskSettings": json.dumps(LEAVING)}
    odd = {**task, "ReplicationTaskSettings": "{"}
    facts = {
        "cleared": DmsFacts(Seen([late]), Seen([odd])),
        "left": DmsFacts(Seen([late]), Seen([leaving])),
        "unknown": DmsFacts(Seen([late]), DENIED, DENIED),
        "denied": DmsFacts(DENIED),
        "folder": DmsFacts(Seen([endpoint(BucketFolder="dms/eu/")]), Seen([task])),
    }
    found = {name: [finding.found for finding in dms_findings(each, SCOPE) if finding.level != FINE] for name, each in facts.items()}

    late_found = "UseTaskStartTimeForFullLoadTimestamp=true"
    assert found == {
        "cleared": [], "left": [late_found, "DO_NOTHING"], "unknown": [late_found, "denied", "denied"], "denied": ["denied"],
        "folder": ["BucketFolder=dms/eu"],
    }  # fmt: skip
    (on_glue,) = (finding for finding in dms_findings(facts["folder"], SCOPE) if finding.level != FINE)
    assert (on_glue.fix, "--parameter RawPrefix=dms/eu/ --allow-replacement" in on_glue.todo) == ("", True)
    some = RawScope.parse("s3://raw-bucket/dms/sales_*")
    (here,) = (finding for finding in dms_findings(facts["folder"], some, is_local=True) if finding.level != FINE)
    assert here.fix == "export DMSLAKE_RAW='s3://raw-bucket/dms/eu/sales_*'"
    assert not writes_to(endpoint(BucketFolder="other"), SCOPE)
    assert not writes_to(endpoint(BucketName="another"), SCOPE)
    assert writes_to(endpoint(BucketFolder=None), SCOPE)
