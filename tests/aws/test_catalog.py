"""The Glue catalog."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.catalog_partitions import add_partitions, read_partitions, refresh_partitions
from glue_jobs.aws.catalog_table import drop_table, owner_of, sync_table
from glue_jobs.core.errors import DmslakeError, RetryLater, TableBlocked
from glue_jobs.core.partitioning import parse_partition_key
from glue_jobs.core.schema import Column
from tests.aws.faults import Injected, after, answer, json_error, lost_answer

PATH = "raw/dms/sales/orders/"
LOCATION = "s3://lake/l/sales/orders/"
COLUMNS = (Column("Id", "bigint"), Column("amount", "decimal(10,2)"))
KEYS = [("odate_year", "int"), ("region", "string")]
PARTITIONING = parse_partition_key("year(odate), region")


@pytest.fixture
def database() -> str:
    return f"db_{uuid.uuid4().hex}"


def sync(glue: Any, database: str, name: str = "sales_orders", **given: Any) -> str:
    options = {"location": LOCATION, "columns": COLUMNS, "partition_columns": KEYS, "fence": 5, "path": PATH, **given}
    return sync_table(glue, database, name, **options)


def add(glue: Any, database: str, partitions: Any, **given: Any) -> None:
    add_partitions(glue, database, "sales_orders", partitions, location=LOCATION, columns=COLUMNS, partitioning=PARTITIONING, **given)


def refresh(glue: Any, database: str, **given: Any) -> int:
    options = {"location": LOCATION, "columns": COLUMNS, "partitioning": PARTITIONING, **given}
    return refresh_partitions(glue, database, "sales_orders", **options)


def table_of(glue: Any, database: str) -> Any:
    return glue.get_table(DatabaseName=database, Name="sales_orders")["Table"]


def column_types(glue: Any, database: str) -> dict[str, str]:
    return {column["Name"]: column["Type"] for column in table_of(glue, database)["StorageDescriptor"]["Columns"]}


def test_database_and_table_are_created(glue: Any, database: str) -> None:
    """External, Parquet, with our marks; names in lower case, as Athena wants them."""
    sync(glue, database)

    table = table_of(glue, database)
    storage = table["StorageDescriptor"]
    assert (table["TableType"], storage["Location"]) == ("EXTERNAL_TABLE", LOCATION)
    assert storage["SerdeInfo"]["SerializationLibrary"].endswith("ParquetHiveSerDe")
    assert storage["InputFormat"].endswith("MapredParquetInputFormat")
    assert table["Parameters"].items() >= {"classification": "parquet", "dmslake.fence": "5", "dmslake.path": PATH}.items()
    assert column_types(glue, database) == {"id": "bigint", "amount": "decimal(10,2)"}
    assert [(key["Name"], key["Type"]) for key in table["PartitionKeys"]] == KEYS


def test_an_existing_database_is_used(glue: Any, database: str) -> None:
    """Creating it is not even asked for: the permission is often missing."""
    glue.create_database(DatabaseInput={"Name": database})
    asked = Injected(glue, "CreateDatabase")

    sync(glue, database)

    assert (asked.sent, table_of(glue, database)["Name"]) == (0, "sales_orders")


def test_a_database_that_another_run_creates_is_used(glue: Any, database: str) -> None:
    """It was missing when we looked."""
    glue.create_database(DatabaseInput={"Name": database})
    Injected(glue, "GetDatabase", json_error(400, "EntityNotFoundException"))

    sync(glue, database)

    assert table_of(glue, database)["Name"] == "sales_orders"


@pytest.mark.parametrize("operation", ["GetTable", "GetDatabase", "CreateDatabase", "CreateTable"])
def test_being_denied_is_raised(glue: Any, database: str, operation: str) -> None:
    """Neither taken for missing nor for existing."""
    Injected(glue, operation, json_error(400, "AccessDeniedException"))

    with pytest.raises(ClientError, match="AccessDenied"):
        sync(glue, database)


def test_a_table_follows_the_schema(glue: Any, database: str) -> None:
    """Columns, fence and place."""
    sync(glue, database)

    sync(glue, database, columns=(*COLUMNS, Column("note", "string")), fence=6)

    assert column_types(glue, database) == {"id": "bigint", "amount": "decimal(10,2)", "note": "string"}
    assert table_of(glue, database)["Parameters"]["dmslake.fence"] == "6"


def test_what_a_person_added_stays(glue: Any, database: str) -> None:
    """Description, parameters, comments of columns."""
    sync(glue, database, description="orders of the shop")
    table = table_of(glue, database)
    columns = [{**column, "Comment": "money"} if column["Name"] == "amount" else column for column in table["StorageDescriptor"]["Columns"]]
    edited = {
        "Name": "sales_orders",
        "Owner": "shop",
        "PartitionKeys": table["PartitionKeys"],
        "Description": table["Description"],
        "Parameters": {**table["Parameters"], "team": "sales"},
        "StorageDescriptor": {**table["StorageDescriptor"], "Columns": columns},
    }
    glue.update_table(DatabaseName=database, TableInput=edited)

    sync(glue, database, fence=6)

    after_it = table_of(glue, database)
    comments = {column["Name"]: column.get("Comment") for column in after_it["StorageDescriptor"]["Columns"]}
    assert (after_it["Parameters"]["team"], comments["amount"]) == ("sales", "money")
    assert (after_it["Description"], after_it["Owner"]) == ("orders of the shop", "shop")


def test_another_layout_replaces_the_table_and_its_partitions(glue: Any, database: str) -> None:
    """A partition of the old layout fits no longer: the table is made anew."""
    sync(glue, database)
    add(glue, database, [("2024", "eu")])

    sync(glue, database, partition_columns=[("region", "string")], fence=6)

    assert [key["Name"] for key in table_of(glue, database)["PartitionKeys"]] == ["region"]
    assert [each.values for each in read_partitions(glue, database, "sales_orders")] == []


def test_a_greater_fence_is_left_alone(glue: Any, database: str) -> None:
    """We are late, another run knows better."""
    sync(glue, database, fence=10)

    sync(glue, database, columns=(Column("old", "int"),), fence=9)

    assert column_types(glue, database) == {"id": "bigint", "amount": "decimal(10,2)"}


def test_the_same_fence_may_write_again(glue: Any, database: str) -> None:
    """A change of the same lease; 10 is greater than 9 as a number, not as a text."""
    sync(glue, database, fence=9)
    sync(glue, database, fence=10)

    sync(glue, database, columns=(Column("new", "int"),), fence=10)

    assert column_types(glue, database) == {"new": "int"}


def test_an_update_insists_on_the_version_it_read_and_keeps_no_archive(glue: Any, database: str) -> None:
    """Archived versions count towards a quota of the account."""
    sync(glue, database)
    version = table_of(glue, database)["VersionId"]
    sent = Injected(glue, "UpdateTable")

    sync(glue, database, fence=6)

    body = json.loads(sent.requests[0].body)
    assert (body["VersionId"], body["SkipArchive"]) == (version, True)


@pytest.mark.parametrize("found", [{"dmslake.path": "raw/dms/sales/Orders/"}, {}], ids=["another path's", "another program's"])
def test_a_name_that_is_taken_blocks_the_table(glue: Any, database: str, found: dict[str, str]) -> None:
    """The error names both, and nothing is changed."""
    glue.create_database(DatabaseInput={"Name": database})
    storage = {"Columns": [{"Name": "x", "Type": "int"}], "Location": "s3://elsewhere/x/"}
    glue.create_table(DatabaseName=database, TableInput={"Name": "sales_orders", "Parameters": found, "StorageDescriptor": storage})

    with pytest.raises(TableBlocked, match=f"{PATH}.*s3://elsewhere/x/") as caught:
        sync(glue, database)

    assert (caught.value.code, column_types(glue, database)) == ("catalog-name-taken", {"x": "int"})


def test_a_table_of_nobody_at_our_place_becomes_ours(glue: Any, database: str) -> None:
    """A crawler made it, of the very folder."""
    glue.create_database(DatabaseInput={"Name": database})
    storage = {"Columns": [], "Location": LOCATION.rstrip("/")}
    glue.create_table(DatabaseName=database, TableInput={"Name": "sales_orders", "StorageDescriptor": storage})

    sync(glue, database)

    assert table_of(glue, database)["Parameters"]["dmslake.path"] == PATH


def test_a_lake_that_moved_takes_its_table_with_it(glue: Any, database: str) -> None:
    """The path is the table's identity, not the place."""
    sync(glue, database)

    moved = [sync(glue, database, location="s3://lake2/sales/orders/", fence=fence) for fence in (6, 7)]

    assert moved == ["moved", "updated"]
    assert table_of(glue, database)["StorageDescriptor"]["Location"] == "s3://lake2/sales/orders/"


def test_partitions_follow_a_table_that_moved(glue: Any, database: str) -> None:
    """Each has a place of its own, where Athena would go on reading."""
    sync(glue, database)
    add(glue, database, [("2024", "a/b"), ("2024", None)])

    changed = [refresh(glue, database, location="s3://lake2/sales/orders/") for _ in range(2)]

    assert changed == [2, 0]
    assert {each.location for each in read_partitions(glue, database, "sales_orders")} == {
        "s3://lake2/sales/orders/odate_year=2024/region=a%2Fb/",
        "s3://lake2/sales/orders/odate_year=2024/region=__HIVE_DEFAULT_PARTITION__/",
    }


def test_a_partition_that_a_person_put_elsewhere_stays_there(glue: Any, database: str) -> None:
    """Of which the table has no rows; it gets the columns all the same."""
    sync(glue, database)
    add(glue, database, [("2024", "a"), ("1999", "a")])
    refresh(glue, database, location="s3://archive/orders/")
    grown = (Column("Id", "decimal(20,0)"), COLUMNS[1])

    assert refresh(glue, database, columns=grown, placed={("2024", "a")}) == 2

    found = {each.values: (each.location, each.columns[0][1]) for each in read_partitions(glue, database, "sales_orders")}
    assert found == {
        ("2024", "a"): (f"{LOCATION}odate_year=2024/region=a/", "decimal(20,0)"),
        ("1999", "a"): ("s3://archive/orders/odate_year=1999/region=a/", "decimal(20,0)"),
    }


def test_what_another_program_noted_goes_with_it(glue: Any, database: str) -> None:
    """Spark would take columns and place from its own notes, Athena partitions from theirs. What a person said stays, also later."""
    glue.create_database(DatabaseInput={"Name": database})
    theirs = {"spark.sql.sources.provider": "parquet", "spark.sql.sources.schema.part.0": "{}", "projection.enabled": "true"}
    table = {
        "Name": "sales_orders", "StorageDescriptor": {"Columns": [], "Location": LOCATION},
        "PartitionKeys": [{"Name": name, "Type": kind} for name, kind in KEYS],
        "Parameters": {**theirs, "storage.location.template": "s3://x/", "table_type": "DELTA", "owner_team": "sales"},
    }  # fmt: skip
    glue.create_table(DatabaseName=database, TableInput=table)

    sync(glue, database)

    found = table_of(glue, database)["Parameters"]
    assert (found["owner_team"], [name for name in found if not name.startswith("dmslake.")]) == (
        "sales", ["owner_team", "EXTERNAL", "classification"]
    )  # fmt: skip
    glue.update_table(DatabaseName=database, TableInput={**table, "Parameters": {**found, "projection.enabled": "true"}})
    sync(glue, database, fence=6)
    assert table_of(glue, database)["Parameters"]["projection.enabled"] == "true"


def test_a_concurrent_update_is_tried_again_on_what_is_there_then(glue: Any, database: str, pauses: list[float]) -> None:
    """The other one had the greater fence: ours gives way."""
    sync(glue, database)
    other = after(
        lambda: sync(glue, database, columns=(Column("newer", "int"),), fence=8), json_error(400, "ConcurrentModificationException")
    )
    Injected(glue, "UpdateTable", other)

    sync(glue, database, fence=7, pause=pauses.append)

    assert (column_types(glue, database), len(pauses)) == ({"newer": "int"}, 1)


def test_a_creation_whose_answer_was_lost_is_a_creation(glue: Any, database: str, pauses: list[float]) -> None:
    """The second one finds the table there already; it has no partition all the same."""
    Injected(glue, "CreateTable", lost_answer)

    synced = sync(glue, database, pause=pauses.append)

    assert (synced, column_types(glue, database)) == ("created", {"id": "bigint", "amount": "decimal(10,2)"})


def test_updates_by_others_that_never_end_are_for_a_later_run(glue: Any, database: str, pauses: list[float]) -> None:
    """After a bounded number of attempts."""
    sync(glue, database)
    Injected(glue, "UpdateTable", *[json_error(400, "ConcurrentModificationException")] * 6)

    with pytest.raises(RetryLater, match="sales_orders"):
        sync(glue, database, fence=6, pause=pauses.append)

    assert len(pauses) == 5


def test_partitions_are_added_with_their_folders(glue: Any, database: str) -> None:
    """Values as they are, folders escaped, null by Hive's name."""
    sync(glue, database)

    add(glue, database, [("2024", "a/b"), ("2023", None)])

    found = glue.get_partitions(DatabaseName=database, TableName="sales_orders")["Partitions"]
    places = {tuple(partition["Values"]): partition["StorageDescriptor"]["Location"] for partition in found}
    assert places == {
        ("2024", "a/b"): LOCATION + "odate_year=2024/region=a%2Fb/",
        ("2023", "__HIVE_DEFAULT_PARTITION__"): LOCATION + "odate_year=2023/region=__HIVE_DEFAULT_PARTITION__/",
    }
    assert sorted((each.values for each in read_partitions(glue, database, "sales_orders")), key=str) == [("2023", None), ("2024", "a/b")]


def test_partitions_are_added_by_the_hundred(glue: Any, database: str) -> None:
    """Glue's limit."""
    sync(glue, database)
    sent = Injected(glue, "BatchCreatePartition")

    add(glue, database, [(str(year), "r") for year in range(1800, 2030)])

    assert (sent.sent, len([each.values for each in read_partitions(glue, database, "sales_orders")])) == (3, 230)


def test_a_partition_that_exists_is_left_as_it_is(glue: Any, database: str) -> None:
    """The others of the page are added."""
    sync(glue, database)
    add(glue, database, [("2024", "a")])

    add(glue, database, [("2024", "a"), ("2024", "b"), ("2024", "b")])

    assert sorted(each.values for each in read_partitions(glue, database, "sales_orders")) == [("2024", "a"), ("2024", "b")]


def test_no_partitions_ask_nothing(glue: Any, database: str) -> None:
    """Glue refuses an empty list."""
    sent = Injected(glue, "BatchCreatePartition")

    add(glue, database, [])

    assert sent.sent == 0


def batch_errors(*entries: tuple[str, list[str]]) -> Any:
    """A 200 of BatchCreatePartition with errors inside."""
    errors = [{"PartitionValues": values, "ErrorDetail": {"ErrorCode": code, "ErrorMessage": "m"}} for code, values in entries]
    return answer(200, json.dumps({"Errors": errors}))


def test_a_partition_that_glue_was_too_busy_for_is_tried_again(glue: Any, database: str, pauses: list[float]) -> None:
    """Only that one."""
    sync(glue, database)
    sent = Injected(glue, "BatchCreatePartition", batch_errors(("ThrottlingException", ["2024", "a"])))

    add(glue, database, [("2024", "a"), ("2024", "b")], pause=pauses.append)

    second = [entry["Values"] for entry in json.loads(sent.requests[1].body)["PartitionInputList"]]
    assert (second, len(pauses)) == ([["2024", "a"]], 1)


def test_a_partition_that_glue_is_always_too_busy_for_is_for_a_later_run(glue: Any, database: str, pauses: list[float]) -> None:
    """After a bounded number of attempts."""
    sync(glue, database)
    Injected(glue, "BatchCreatePartition", *[batch_errors(("InternalServiceException", ["2024", "a"])) for _ in range(6)])

    with pytest.raises(RetryLater, match="1 partitions"):
        add(glue, database, [("2024", "a")], pause=pauses.append)

    assert len(pauses) == 5


def test_a_partition_that_is_refused_is_an_error(glue: Any, database: str) -> None:
    """With its values and Glue's words."""
    sync(glue, database)
    Injected(glue, "BatchCreatePartition", batch_errors(("InvalidInputException", ["2024", "a"])))

    with pytest.raises(DmslakeError, match="2024/a of sales_orders: InvalidInputException: m"):
        add(glue, database, [("2024", "a")])


def test_partitions_follow_a_column_whose_type_grew(glue: Any, database: str) -> None:
    """Athena refuses a partition whose type isn't the table's; place and values stay."""
    sync(glue, database)
    add(glue, database, [("2024", "a"), ("2024", None)])
    grown = (Column("Id", "decimal(20,0)"), COLUMNS[1])

    changed = [refresh(glue, database, columns=grown) for _ in range(2)]

    found = glue.get_partitions(DatabaseName=database, TableName="sales_orders")["Partitions"]
    types = {column["Type"] for partition in found for column in partition["StorageDescriptor"]["Columns"] if column["Name"] == "id"}
    assert (changed, types, len(found)) == ([2, 0], {"decimal(20,0)"}, 2)
    assert found[0]["StorageDescriptor"]["Location"].startswith(LOCATION + "odate_year=2024/region=")


def test_partitions_are_listed_over_all_pages(glue: Any, database: str) -> None:
    """Glue answers with a bounded number of them."""
    sync(glue, database)
    add(glue, database, [("2024", "a"), ("2024", "b")])
    storage = {"Columns": [], "Location": LOCATION}
    first = {"Partitions": [{"Values": ["2023", "z"], "StorageDescriptor": storage}], "NextToken": "more"}
    Injected(glue, "GetPartitions", answer(200, json.dumps(first)))

    assert sorted(each.values for each in read_partitions(glue, database, "sales_orders")) == [("2023", "z"), ("2024", "a"), ("2024", "b")]


@pytest.mark.parametrize("owner", [None, PATH, "raw/dms/sales/others/", ""])
def test_a_table_is_dropped_where_it_says_that_it_is_ours(glue: Any, database: str, owner: str | None) -> None:
    """None: there is no such table. One that says nothing is another program's, wherever it lies."""
    if owner is None:
        glue.create_database(DatabaseInput={"Name": database})
    else:
        sync(glue, database, path=owner)

    found = owner_of(glue, database, "sales_orders")
    dropped = drop_table(glue, database, "sales_orders", PATH)

    assert (found, dropped) == (owner, owner == PATH)
    assert len(glue.get_tables(DatabaseName=database)["TableList"]) == (1 if owner in ("", "raw/dms/sales/others/") else 0)


def test_a_table_that_another_drops_at_the_same_time_is_gone(glue: Any, database: str) -> None:
    """No error; being denied is one."""
    sync(glue, database)
    Injected(glue, "DeleteTable", json_error(400, "EntityNotFoundException"), json_error(400, "AccessDeniedException"))

    assert drop_table(glue, database, "sales_orders", PATH) is False
    with pytest.raises(ClientError, match="AccessDenied"):
        drop_table(glue, database, "sales_orders", PATH)
