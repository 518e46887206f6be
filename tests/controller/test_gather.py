"""Gathering from a moto: discovery, missing items, one table's failure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from controller.gather import Discovered, Facts, Gathered, Question, discover, gather
from controller.plan import plan_run
from controller.raw_scope import RawScope
from controller.status import read_status
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import write_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.state import default_item
from tests.controller.world import HEAD, NOW, SETTINGS, World, head_record, table_path

ORDERS, STORES = table_path("orders"), table_path("stores")
LOAD = "LOAD00000001.parquet"


def look(world: World, *paths: str, create: bool = True, **question: object) -> Gathered:
    return gather(world.clients, world.table, Question(SETTINGS, paths, create, **question), NOW)  # type: ignore[arg-type]


def test_a_table_whose_item_can_not_be_read_is_found_by_its_name(world: World) -> None:
    """Its own error is there, and not that there is no such table."""
    world.put_item(ORDERS, ActiveFlag="perhaps")
    world.put_item(STORES)
    world.clients.dynamodb.put_item(TableName=SETTINGS.state_table, Item={"path": {"S": "no-path"}})

    (fact,) = look(world, "shop.orders").tables

    assert (fact.path, fact.problem and fact.problem.code) == (str(ORDERS), "bad-attribute")
    assert [fact.path for fact in look(world, "stores").tables] == [str(STORES)]


def test_a_name_is_not_unique_because_one_of_its_items_can_not_be_read(world: World) -> None:
    """Else a command would act on the other table of that name."""
    world.put_item(ORDERS, ActiveFlag="perhaps")
    world.put_item(TablePath("raw-bucket", "old/shop/", "orders/"))

    with pytest.raises(UsageError, match="the name of 2 tables"):
        look(world, "shop.orders")


def test_discovers_tables_of_all_schemas(world: World) -> None:
    """Every schema and table folder, without DMS's control tables and our own change records."""
    world.put_raw(ORDERS, LOAD)
    world.put_raw(table_path("orders", "hr"), LOAD)
    world.put_raw(table_path("awsdms_status"), LOAD)
    world.put_raw(table_path("orders", "_changes"), "x.json")
    world.clients.s3.put_object(Bucket="raw-bucket", Key="dms/readme.txt", Body=b"x")

    found = discover(world.clients.s3, RawScope.parse(SETTINGS.raw))

    assert found == Discovered((table_path("orders", "hr"), ORDERS), ())


def test_discovers_more_than_a_page(world: World) -> None:
    """A schema with 1,100 tables is listed whole."""
    names = [f"t{number:04d}" for number in range(1100)]
    for name in names:
        world.clients.s3.put_object(Bucket="raw-bucket", Key=f"dms/shop/{name}/{LOAD}", Body=b"")

    found = discover(world.clients.s3, RawScope.parse(SETTINGS.raw))

    assert [path.table for path in found.paths] == names


def test_wildcard_takes_some_schemas(world: World) -> None:
    """`sales_*` leaves other schemas alone."""
    for schema in ("sales_eu", "sales_us", "hr"):
        world.put_raw(table_path("orders", schema), LOAD)

    found = discover(world.clients.s3, RawScope.parse("s3://raw-bucket/dms/sales_*"))

    assert [path.schema for path in found.paths] == ["sales_eu", "sales_us"]


def test_unsafe_names_are_reported(world: World) -> None:
    """A folder that can't be a table is named in a warning, and the others are found."""
    for name in ("a,b", "_hidden", "fine"):
        world.clients.s3.put_object(Bucket="raw-bucket", Key=f"dms/shop/{name}/{LOAD}", Body=b"")

    result = look(world)

    assert [fact.path for fact in result.tables] == ["raw-bucket/dms/shop/fine/"]
    assert len(result.warnings) == 2
    assert any("raw-bucket/dms/shop/a,b/" in text for text in result.warnings)


REFUSED = [".x", "_x", "a\\b", "a,b", " x", "x ", "a\x1b[2J", "a\x9b2J", "a\nb", "x" * 201, "ü" * 101, "a\uffff"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_no_lake_bears_is_refused_as_table_and_as_schema(world: World, name: str) -> None:
    """The warning names it without a character that a terminal would obey; nothing is written."""
    world.put_raw(table_path(name), LOAD)
    world.put_raw(table_path("orders", name), LOAD)

    result = look(world)

    assert [fact.path for fact in result.tables] == []
    shown = [text for text in result.warnings if "is left out" in text]
    assert len(shown) == 2
    assert all(text.isprintable() for text in shown)
    assert all(name in text for text in shown) == name.isprintable()
    assert list(world.table.scan()) == []


def test_a_name_too_long_for_the_catalog_is_refused(world: World) -> None:
    """Each of both fits, both together don't."""
    world.put_raw(table_path("t" * 150, "s" * 150), LOAD)

    result = look(world)

    assert [fact.path for fact in result.tables] == []
    assert "t" * 150 in result.warnings[0]


TAKEN = ["Order Details", "a=b", "a%2Fb", "a+b", "o'x", 'say "x"', "tick`s", "a.b.c", "😀", "$(x)", "größe"]


TXN = "CDC_TXN-20240501010000000.csv"


def test_transaction_files_beside_the_schemas_are_said_with_the_line_that_reads_them(world: World) -> None:
    """Active tables without changes of their own; the line sets the attribute."""
    world.put_raw(ORDERS, LOAD)
    world.put_raw(STORES, LOAD)
    world.clients.s3.put_object(Bucket="raw-bucket", Key=f"dms/changes/{TXN}", Body=b"x")
    look(world)
    assert look(world).warnings == ()  # nobody keeps the tables up

    for path in (ORDERS, STORES):
        world.table.set_attributes(str(path), {"ActiveFlag": "true"})
    (warning,) = look(world).warnings

    assert all(words in warning for words in ("s3://raw-bucket/dms/changes/", str(ORDERS), str(STORES), "CDC_TXN-"))
    line = shlex.split(warning[warning.index("aws dynamodb") :])
    told = {name: json.loads(line[line.index(name) + 1]) for name in ("--key", "--expression-attribute-values")}
    assert line[line.index("--table-name") + 1] == SETTINGS.state_table
    expression = line[line.index("--update-expression") + 1]
    world.clients.dynamodb.update_item(
        TableName=SETTINGS.state_table,
        Key=told["--key"],
        UpdateExpression=expression,
        ExpressionAttributeValues=told["--expression-attribute-values"],
    )

    found = look(world)
    assert [fact.listing.cdc[0].base for fact in found.tables if fact.listing.cdc] == [TXN]
    assert str(ORDERS) not in found.warnings[0].split("aws dynamodb")[0]


def test_tables_with_changes_of_their_own_are_not_spoken_of(world: World) -> None:
    """Another task may write the transaction files."""
    world.put_loaded(ORDERS, LOAD)
    world.put_raw(ORDERS, "20240501-010000000.parquet")
    world.clients.s3.put_object(Bucket="raw-bucket", Key=f"dms/changes/{TXN}", Body=b"x")

    assert look(world).warnings == ()


def test_special_names_are_taken_and_found_by_path(world: World) -> None:
    """The item's key, folder and lake folder have the names as they are; a person finds each by path and by schema.table."""
    paths = [table_path(name, "my schema=%2F+") for name in TAKEN]
    for path in paths:
        world.put_raw(path, LOAD)

    result = look(world)

    assert (sorted(fact.path for fact in result.tables), result.warnings) == (sorted(map(str, paths)), ())
    for path in paths:
        item = world.item(path)
        assert (item["folder"], item["out_path"]) == (path.folder, f"s3://lake-bucket/lake/my schema=%2F+/{path.folder}")
        assert [fact.path for fact in look(world, str(path), path.name, f"s3://{path}").tables] == [str(path)]


def test_dots_may_make_a_short_name_ambiguous(world: World) -> None:
    """Schema `a` with table `b.c` and schema `a.b` with table `c`: both are named."""
    both = [table_path("b.c", "a"), table_path("c", "a.b")]
    for path in both:
        world.put_item(path)

    with pytest.raises(UsageError) as caught:
        look(world, "a.b.c")

    assert [str(path) in caught.value.message for path in both] == [True, True]


def test_new_table_gets_an_inactive_item(world: World) -> None:
    """The item has the defaults that users of the AWS sample know, and the lake folder."""
    world.put_raw(ORDERS, LOAD)

    (fact,) = look(world).tables

    assert fact.is_new
    assert fact.state is not None
    assert not fact.state.active
    assert world.item(ORDERS) == default_item(ORDERS, "s3://lake-bucket/lake/shop/orders/")


def test_a_second_look_finds_the_item(world: World) -> None:
    """An item is created once; a person's edits stay."""
    world.put_raw(ORDERS, LOAD)
    look(world)
    world.table.set_attributes(str(ORDERS), {"ActiveFlag": "True", "PrimaryKey": "id"})

    (fact,) = look(world).tables

    assert not fact.is_new
    assert fact.state is not None
    assert fact.state.active
    assert [file.base for file in fact.listing.loads] == [LOAD]


def test_dry_look_writes_nothing(clients: Clients) -> None:
    """Without create neither the state table nor an item is made, and the table is shown as it would be."""
    clients.s3.create_bucket(Bucket="raw-bucket")
    world = World(clients)
    world.put_raw(ORDERS, LOAD)

    (fact,) = look(world, create=False).tables

    assert fact.is_new
    assert clients.dynamodb.list_tables()["TableNames"] == []


def test_state_table_is_created(clients: Clients) -> None:
    """The first run needs no state table."""
    clients.s3.create_bucket(Bucket="raw-bucket")
    world = World(clients)
    world.put_raw(ORDERS, LOAD)

    look(world)

    assert world.item(ORDERS)["ActiveFlag"] == "false"


def test_short_item_of_a_person_is_completed(world: World) -> None:
    """An item written by hand before the first run, with key and flag only, gets what it lacks and keeps what it has."""
    world.put_raw(ORDERS, LOAD)
    world.table.create({"path": str(ORDERS), "ActiveFlag": "true", "PrimaryKey": "id"})

    (fact,) = look(world).tables

    assert world.item(ORDERS) == {**default_item(ORDERS, "s3://lake-bucket/lake/shop/orders/"), "ActiveFlag": "true", "PrimaryKey": "id"}
    assert fact.state is not None
    assert fact.state.out_path == "s3://lake-bucket/lake/shop/orders/"


class Meanwhile(StateTable):
    """A state table in which something happens once all items are read. `again`: as often as one is read anew, too."""

    def __init__(self, world: World, happens: Callable[[], object], again: bool = False) -> None:
        super().__init__(world.clients, world.table.name)
        self._happens, self._again = happens, again

    def scan(self) -> Iterator[dict[str, Any]]:
        yield from super().scan()
        self._happens()

    def get(self, path: str) -> dict[str, Any] | None:
        item = super().get(path)
        if self._again:
            self._happens()
        return item


def look_meanwhile(world: World, happens: Callable[[], object], again: bool = False) -> Facts | None:
    """What is known of the table of a hand-made item, where something happens between the look at all items and the first write."""
    world.put_raw(ORDERS, LOAD)
    world.table.create({"path": str(ORDERS), "ActiveFlag": "true"})
    found = gather(world.clients, Meanwhile(world, happens, again), Question(SETTINGS, create=True), NOW).tables
    return found[0] if found else None


@pytest.mark.parametrize(
    "edit",
    [
        {"PrimaryKey": "id"},
        {"PrimaryKey": "id", "ActiveFlag": "false", "out_path": "s3://lake-bucket/lake/elsewhere/orders/"},
        {"LastFullLoadDate": "2024-05-01 00:00:00", "LastIncrementalFile": f"{ORDERS}20240501-010000000.parquet"},
        {"Paused": "an audit"},
    ],
)
def test_an_edit_of_a_short_item_between_look_and_write_stays(world: World, edit: dict[str, str]) -> None:
    """A person's key, or what another controller wrote: the item gets only what it lacks by then, and the plan is made of that."""
    fact = look_meanwhile(world, lambda: world.table.set_attributes(str(ORDERS), edit))

    expected = {**default_item(ORDERS, "s3://lake-bucket/lake/shop/orders/"), "ActiveFlag": "true", **edit}
    assert world.item(ORDERS) == expected
    assert fact is not None
    assert fact.state is not None
    assert fact.state.item == expected


def test_a_load_between_look_and_write_stays(world: World) -> None:
    """Of a run that another controller started: nothing is put back, and nothing added to a loaded table's item."""
    record = head_record(ORDERS, ())
    write_record(world.clients.s3, S3Uri.folder("s3://lake-bucket/lake/shop/orders/"), record)
    loaded = {"Head": HEAD, "Fence": 1, "out_path": "s3://lake-bucket/lake/shop/orders/", "LastFullLoadDate": record.last_full_load}

    fact = look_meanwhile(world, lambda: world.table.set_attributes(str(ORDERS), loaded))

    assert world.item(ORDERS) == {"path": str(ORDERS), "ActiveFlag": "true", **loaded}
    assert fact is not None
    assert fact.snapshot.change == HEAD


def test_an_item_that_is_deleted_between_look_and_write_is_not_made_anew(world: World) -> None:
    """No stump is left, the other tables are read, and the next look finds the table as a new one."""
    world.put_raw(STORES, LOAD)
    key = {"path": {"S": str(ORDERS)}}

    fact = look_meanwhile(world, lambda: world.clients.dynamodb.delete_item(TableName=world.table.name, Key=key))

    assert fact is not None
    assert (fact.path, world.table.get(str(ORDERS))) == (str(STORES), None)
    assert [(each.path, each.is_new) for each in look(world).tables] == [(str(ORDERS), True), (str(STORES), False)]


def test_an_item_that_is_edited_again_and_again_is_completed_by_the_next_look(world: World) -> None:
    """This one plans with what it read last."""
    lacking = iter(["PrimaryKey", "PartitionKey", "LastFullLoadDate", "LastIncrementalFile", "folder"])

    fact = look_meanwhile(world, lambda: world.table.set_attributes(str(ORDERS), {next(lacking): "null"}), again=True)

    assert fact is not None
    assert fact.state is not None
    assert fact.state.out_path == ""
    assert "out_path" not in world.item(ORDERS)
    look(world)
    assert world.item(ORDERS)["out_path"] == "s3://lake-bucket/lake/shop/orders/"


def test_out_path_of_a_loaded_table_is_never_made_up(world: World) -> None:
    """A loaded table whose out_path was taken away must not be sent to another folder."""
    world.put_raw(ORDERS, LOAD)
    world.put_item(ORDERS, Head=HEAD, out_path=None)

    look(world)

    assert "out_path" not in world.item(ORDERS)


def test_snapshot_and_listing_of_a_loaded_table(world: World) -> None:
    """The head's record gives files, rows and what was applied."""
    world.put_loaded(ORDERS, LOAD)
    world.put_raw(ORDERS, "20240501-010000000.parquet")

    (fact,) = look(world).tables

    assert fact.problem is None
    assert fact.snapshot.change == HEAD
    assert fact.snapshot.rows == 10
    assert [file.base for file in fact.listing.cdc] == ["20240501-010000000.parquet"]


def test_inactive_and_paused_tables_are_not_listed(world: World) -> None:
    """Nobody pays for listing what no run would touch; an unfinished step is looked at though the table is inactive."""
    world.put_loaded(ORDERS, LOAD, ActiveFlag="false")
    world.put_loaded(STORES, LOAD, ActiveFlag="false", Publishing=HEAD)

    orders, stores = look(world).tables

    assert orders.listing.loads == ()
    assert stores.snapshot.change == HEAD


def test_one_tables_failure_is_its_own(world: World) -> None:
    """A missing record, a nonsense attribute and a missing bucket are problems of three tables; the fourth is read."""
    world.put_loaded(STORES, LOAD)
    world.put_raw(ORDERS, LOAD)
    world.put_item(ORDERS, Head="0000000009-000001-0123abcd")
    world.put_item(table_path("bad"), ActiveFlag="perhaps")
    world.put_item(replace(table_path("away"), bucket="no-such-bucket"), out_path="s3://lake-bucket/lake/x/y/")

    facts = {fact.path: fact for fact in look(world, everything=True).tables}

    codes = {path: fact.problem.code if fact.problem else "" for path, fact in facts.items()}
    assert codes == {
        str(ORDERS): "record-gone", str(table_path("bad")): "bad-attribute", "no-such-bucket/dms/shop/away/": "no-bucket", str(STORES): "",
    }  # fmt: skip


def test_items_outside_of_the_scope_are_left_alone(world: World) -> None:
    """Another controller's tables are in the same state table. What a run of theirs left unfinished is theirs to finish: ours would enter
    the table in our database, and go on with its files."""
    other = replace(ORDERS, prefix="elsewhere/shop/")
    unfinished = replace(STORES, prefix="elsewhere/shop/")
    world.put_item(other)
    world.put_loaded(unfinished, LOAD, CatalogPending=HEAD, Publishing=HEAD)

    assert look(world).tables == ()
    assert [fact.path for fact in look(world, everything=True).tables] == [str(other), str(unfinished)]


def test_an_item_that_can_not_be_read_is_an_error_of_its_own_controller(world: World) -> None:
    """Not of every one; that of a table without a source, which is in every scope, of each."""
    world.put_item(replace(ORDERS, prefix="elsewhere/shop/"), ActiveFlag="perhaps")
    lake_only = replace(STORES, bucket="lake-bucket", prefix="made/")
    world.put_item(lake_only, Source="none", PartitionKey="year(")

    found = look(world).tables

    assert [(fact.path, fact.state) for fact in found] == [(str(lake_only), None)]


US = replace(ORDERS, prefix="us/shop/")  # of another controller with the same `--lake`


@pytest.mark.parametrize("attributes", [{}, {"Head": HEAD}, {"Head": HEAD, "ActiveFlag": "false"}], ids=["active", "loaded", "inactive"])
def test_a_table_outside_of_the_scope_has_the_same_folder(world: World, attributes: dict[str, str]) -> None:
    """Plan and status say so, and no run is started; nor where the tables are planned again, by their keys. Theirs is not planned."""
    world.put_raw(ORDERS, LOAD)
    world.put_item(ORDERS)
    world.put_item(US, out_path="s3://lake-bucket/lake/shop/orders/", **attributes)

    for question in ({}, {"keys": (str(ORDERS),)}):
        gathered = look(world, **question)
        plan, (status,) = plan_run(gathered), read_status(gathered)
        ((table,), problem) = plan.tables, plan.tables[0].problem
        assert (table.path, table.action, plan.runs) == (str(ORDERS), "blocked", ())
        assert problem is not None
        assert problem.code == "lake-folder-taken"
        assert str(US) in problem.message
        assert (status.state, status.problem) == ("blocked", problem)


def test_a_table_outside_of_the_scope_may_have_the_same_catalog_name(world: World) -> None:
    """In a database of its own, for all that is known."""
    world.put_raw(ORDERS, LOAD)
    world.put_item(ORDERS)
    world.put_item(US, out_path="s3://lake-bucket/us/shop/orders/")

    gathered = look(world)

    assert [str(state.path) for state in gathered.others] == [str(US)]
    assert [table.action for table in plan_run(gathered).tables] == ["load"]
    # Nor does it become one of this scope by an unfinished step.
    world.table.set_attributes(str(US), {"CatalogPending": HEAD})
    for question in ({"keys": (str(ORDERS),)}, {"everything": True, "keys": (str(ORDERS),)}):
        gathered = look(world, **question)
        assert ([table.action for table in plan_run(gathered).tables], gathered.siblings) == (["load"], ())
    assert [table.action for table in plan_run(look(world, str(ORDERS))).tables] == ["load"]


def test_tables_without_source_are_in_every_scope(world: World) -> None:
    """Nothing in raw tells where they belong, and verify or a rollback of all must not pass over them."""
    adopted = replace(STORES, prefix="elsewhere/shop/")
    world.put_loaded(adopted, LOAD, Source="none")

    assert [fact.path for fact in look(world).tables] == [str(adopted)]


@pytest.mark.parametrize("text", ["raw-bucket/dms/shop/orders", "s3://raw-bucket/dms/shop/orders/", "shop.orders", "orders"])
def test_a_person_names_a_table(world: World, text: str) -> None:
    """By its whole path in any spelling, or by its name."""
    world.put_item(ORDERS)
    world.put_item(STORES)

    assert [fact.path for fact in look(world, text, text).tables] == [str(ORDERS)]


@pytest.mark.parametrize("text", ["raw-bucket/dms/shop/nowhere", "nowhere", "shop.nowhere"])
def test_an_unknown_table_is_a_usage_error(world: World, text: str) -> None:
    """Nothing is read for a misspelled table."""
    world.put_item(ORDERS)

    with pytest.raises(UsageError, match="nowhere"):
        look(world, text)


def test_an_item_that_is_gone_is_no_error_where_no_person_named_it(world: World) -> None:
    """The tables of a plan are looked at again by their keys: one may have been forgotten meanwhile, and any key may stand there."""
    world.put_loaded(ORDERS, LOAD)
    world.put_raw(STORES, LOAD)
    world.table.create({"path": "junk"})

    found = look(world, keys=(str(STORES), "junk", str(ORDERS))).tables

    assert [(fact.path, fact.problem.code if fact.problem else "") for fact in found] == [("junk", "bad-path"), (str(ORDERS), "")]
    assert found[1].snapshot.change == HEAD


def test_an_item_whose_path_has_a_comma_is_refused(world: World) -> None:
    """It would be taken for two paths, and no table of the run that it shares would have its turn."""
    key = "raw-bucket/dms/shop/a,b/"
    world.put_raw(ORDERS, LOAD)
    world.put_item(ORDERS)
    world.table.create({"path": key, "ActiveFlag": "true", "PrimaryKey": "id", "out_path": "s3://lake-bucket/lake/shop/a,b/"})

    plan = plan_run(look(world))

    codes = {table.path: table.problem.code if table.problem else "" for table in plan.tables}
    assert codes == {key: "bad-path", str(ORDERS): ""}
    assert [run.paths for run in plan.runs] == [(str(ORDERS),)]


@pytest.mark.parametrize("key", ["raw-bucket/dms/shop/orders", "s3://raw-bucket/dms/shop/orders/", " raw-bucket/dms/shop/orders/ "])
def test_an_item_under_another_spelling_of_its_path_is_refused(world: World, key: str) -> None:
    """Jobs would not find it, and a run would be started for it each hour; the item with the right key is another table's, and read."""
    world.put_raw(ORDERS, LOAD)
    world.table.create({"path": key, "ActiveFlag": "true", "PrimaryKey": "id", "out_path": "s3://lake-bucket/lake/shop/orders/"})

    facts = {fact.path: fact for fact in look(world).tables}

    problem = facts[key].problem
    assert (set(facts), facts[key].state, facts[str(ORDERS)].problem) == ({key, str(ORDERS)}, None, None)
    assert problem is not None
    assert problem.code == "bad-path"
    assert repr(key) in problem.message
    assert repr(str(ORDERS)) in problem.message
    assert "delete this item" in problem.todo


def test_no_table_below_raw_says_what_to_check(world: World) -> None:
    """The warning names bucket, prefix and the DMS settings."""
    (warning,) = look(world).warnings

    for words in ("bucket raw-bucket", "'dms/'", "BucketName", "BucketFolder"):
        assert words in warning


def test_missing_raw_bucket_fails_the_call(clients: Clients) -> None:
    """There is nothing to plan where the raw bucket isn't: that is configuration."""
    with pytest.raises(Exception, match="NoSuchBucket") as raised:
        gather(clients, StateTable(clients, "T"), Question(SETTINGS), NOW)

    assert isinstance(aws_error(raised.value), ConfigurationError)
