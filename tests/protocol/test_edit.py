"""Rows inserted, updated and deleted by the primary key, and tables that are made, through the Python functions; the oracle is a dict."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from glue_jobs import apply, erase
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import read_attachment, read_record
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import ConfigurationError, DmslakeError, TableBlocked, UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.record import ChangeRecord, Counts
from glue_jobs.protocol import create, table_run
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.recover import recover
from glue_jobs.protocol.replay import read_fold
from glue_jobs.rows import create_table, delete_rows, fake_rows, insert_rows, update_rows
from glue_jobs.spark.past import past_table
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.replay import replay_table
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import IN_PROCESS

SETTINGS = {"driver_bytes": "1000000000", "lease_seconds": "5"}
COLUMNS = "id bigint, line int, name string, price decimal(8,2), day date, at timestamp"
Row = dict[str, Any]


class Made:
    """A table of a test, and the functions on it."""

    def __init__(self, clients: Clients, name: str, schema: Any = COLUMNS, **definition: Any) -> None:
        self.clients, self.path = clients, f"s3://lake/made/shop/{name}/"
        self.table_path = TablePath.parse(self.path)
        self.lake = S3Uri.folder(self.path)
        self.place = reading_place(IN_PROCESS, "lake", self.lake, Limits())
        self.created = create_table(self.path, schema, environment=IN_PROCESS, **{**SETTINGS, **definition})

    def do(self, function: Callable[..., str], rows: Any, **options: Any) -> str:
        return function(self.path, rows, environment=IN_PROCESS, **{**SETTINGS, **options})

    def refused(self, function: Callable[..., str], rows: Any, **options: Any) -> DmslakeError:
        before = self.rows(), self.item().get("Head")
        with pytest.raises(DmslakeError) as caught:
            self.do(function, rows, **options)
        assert (self.rows(), self.item().get("Head")) == before
        return caught.value

    def rows(self) -> list[Row]:
        snapshot = read_snapshot(self.clients.s3, self.lake, str(self.item().get("Head", "")))
        rows: list[Row] = past_table(self.place, self.path, snapshot).read().to_pylist()
        return sorted(rows, key=repr)

    def item(self) -> Row:
        return StateTable(self.clients, IN_PROCESS["DMSLAKE_STATE_TABLE"]).get(str(self.table_path)) or {}

    def head(self) -> ChangeRecord:
        return read_record(self.clients.s3, self.lake, self.item()["Head"])

    def attached(self, name: str) -> list[Row]:
        rows: list[Row] = pq.read_table(io.BytesIO(read_attachment(self.clients.s3, self.lake, name))).to_pylist()
        return rows

    def differences(self) -> list[str]:
        """The codes of what differs between the table and a replay of all that was given to it."""
        report = replay_table(self.place, self.table_path, read_fold(self.clients.s3, self.lake, self.table_path, self.item()["Head"]))
        return [finding.code for finding in report.findings if finding.severity == "difference"]

    def files(self) -> list[str]:
        return [file.key[len(self.lake.key) :] for file in list_files(self.clients.s3, self.lake.bucket, self.lake.key)]


def line(number: int, at: int = 0, **values: Any) -> Row:
    day = date(2024, 1 + number % 3, 1)
    plain = {"id": number, "line": at, "name": f"n{number}", "price": Decimal("1.50"), "day": day, "at": None}
    return {**plain, **values}


@pytest.mark.parametrize("seed", range(2))
def test_any_edits_one_after_the_other(in_process: Clients, seed: int) -> None:
    """Random inserts, updates and deletes, allowed or refused, with and without --upsert, in two layouts: always the oracle's rows, and a
    replay of what was given finds the same."""
    choose = random.Random(seed)
    table = Made(in_process, f"any{seed}", primary_key="id,line", partition_key="year(day), month(day)" if seed else "null")
    oracle: dict[tuple[int, int], Row] = {}
    for number in range(6):
        keys = choose.sample([(number, at) for number in range(5) for at in range(2)], choose.randrange(1, 6))
        word, upsert = choose.choice(["insert", "update", "delete"]), choose.random() < 0.5
        known, unknown = [key for key in keys if key in oracle], [key for key in keys if key not in oracle]
        given = [line(*key, name=choose.choice(["x", "y", None, ""]), day=date(2024, choose.randrange(1, 4), 1)) for key in keys]
        if word == "update":
            given = [{name: row[name] for name in ("id", "line", *choose.sample(["name", "day", "price"], 2))} for row in given]
        if word == "delete":
            given = [{"id": row["id"], "line": row["line"], "name": "not looked at"} for row in given]
        function = {"insert": insert_rows, "update": update_rows, "delete": delete_rows}[word]
        if not upsert and (known if word == "insert" else unknown):
            assert table.refused(function, given).code == ("row-exists" if word == "insert" else "row-unknown")
            continue
        change = table.do(function, given, upsert=upsert, small_file_bytes=choose.choice(["0", "1000000"]))
        assert bool(change) == bool(known or word != "delete")
        for key, row in zip(keys, given, strict=True):
            nothing = dict.fromkeys(line(0))
            oracle[key] = {**(nothing if word == "insert" else oracle.get(key, nothing)), **row}
            if word == "delete":
                del oracle[key]
        assert table.rows() == sorted(oracle.values(), key=repr), (word, upsert, keys)
    assert table.differences() == []


def test_a_change_says_what_was_given(in_process: Clients) -> None:
    """Rows that replaced others and rows that did not stand apart beside the record; counts; the same small file takes all of them."""
    table = Made(in_process, "says", {"id": "bigint", "name": "string"}, primary_key=["id"])
    table.do(insert_rows, {"id": [1, 2], "name": ["a", None]})

    table.do(insert_rows, [{"id": 2, "name": "b"}, {"id": 3}], upsert=True)

    record = table.head()
    assert (record.kind, record.counts, record.details["edit"]) == ("edit", Counts(inserted=1, updated=1, table_rows=3), "insert")
    assert record.given is not None
    assert (record.given.key, record.given.deletes) == (("id",), "")
    assert table.attached(record.given.updates) == [{"id": 2, "name": "b"}]
    assert table.attached(record.given.inserts) == [{"id": 3, "name": None}]
    assert (len(table.files()), len(record.superseded)) == (1, 1)
    table.do(delete_rows, [{"id": 3}, {"id": 1}])
    assert (table.head().given, table.head().counts.deleted) == (type(record.given)(("id",), f"{table.head().id}.deletes.parquet"), 2)
    assert table.do(delete_rows, [{"id": 77}], upsert=True) == ""
    assert table.item()["LastRun"]["outcome"] == "nothing"


def test_the_timestamp_column_is_the_time_of_the_change(in_process: Clients) -> None:
    """Where rows don't say it, in the column's own form; the table is laid out by its year and month."""
    before = datetime.now(timezone.utc)
    table = Made(in_process, "timed", "id int, at timestamp", primary_key="id", timestamp_column="at")
    text = Made(in_process, "timed_text", "id int, at string, n int", primary_key="id", timestamp_column="at")

    table.do(insert_rows, [{"id": 1}, {"id": 2, "at": "2020-01-31"}, {"id": 3, "at": None}])
    text.do(insert_rows, {"id": [1], "at": ["2020-01-31 00:00:00"], "n": [1]})
    text.do(update_rows, {"id": [1], "n": [2]})

    at = {row["id"]: row["at"] for row in table.rows()}
    assert before <= at[1] <= datetime.now(timezone.utc)
    assert (at[2], at[3]) == (datetime(2020, 1, 31, tzinfo=timezone.utc), None)
    assert any(path.startswith("at_year=2020/at_month=1/") for path in table.files())
    moved = text.rows()[0]["at"]
    assert moved[:19] >= f"{before:%Y-%m-%d %H:%M:%S}"
    assert len(moved) == 26
    assert text.files()[0].startswith(f"at_year={before.year}/")


def test_a_table_without_key_is_only_added_to(in_process: Clients) -> None:
    """Equal rows stand there as often as they are given; a replay knows them."""
    table = Made(in_process, "keyless", "name string, n int")
    rows = [{"name": "x", "n": 1}, {"name": "x", "n": 1}]

    table.do(insert_rows, rows)
    table.do(insert_rows, rows[:1])

    assert table.rows() == [rows[0]] * 3
    assert table.head().counts == Counts(inserted=1, table_rows=3)
    assert (table.differences(), len(table.files())) == ([], 1)
    for function, options in ((update_rows, {}), (delete_rows, {}), (insert_rows, {"upsert": True})):
        assert table.refused(function, rows, **options).code == "no-key"


def test_a_run_that_was_started_twice_does_its_work_once(in_process: Clients) -> None:
    """Glue has no token for that: a start whose answer was lost is sent again."""
    table = Made(in_process, "twice", "name string")
    in_process.s3.put_object(Bucket="lake", Key="given/rows.csv", Body=b"name\nx\n")
    words = ["--path", str(table.table_path), "--edit", "insert", "--rows", "s3://lake/given/rows.csv", "--driver_bytes", "1000000000"]
    words += ["--state_table", IN_PROCESS["DMSLAKE_STATE_TABLE"]]

    codes = [apply.main([*words, "--run_id", run_id], IN_PROCESS) for run_id in ("one", "one", "two")]

    assert (codes, table.rows()) == ([0, 0, 0], [{"name": "x"}] * 2)


def test_a_run_that_was_started_twice_is_known_behind_another_change(in_process: Clients) -> None:
    """The second one may have waited for that; without a key the rows would be there twice."""
    table = Made(in_process, "behind", "name string")
    in_process.s3.put_object(Bucket="lake", Key="given/behind.csv", Body=b"name\nx\n")
    words = ["--path", str(table.table_path), "--edit", "insert", "--rows", "s3://lake/given/behind.csv", "--driver_bytes", "1000000000"]
    words += ["--state_table", IN_PROCESS["DMSLAKE_STATE_TABLE"], "--run_id", "one"]

    codes = [apply.main(words, IN_PROCESS)]
    table.do(insert_rows, [{"name": "y"}])
    codes.append(apply.main(words, IN_PROCESS))

    assert (codes, table.rows()) == ([0, 0], [{"name": "x"}, {"name": "y"}])


def test_keys_that_can_not_be_taken_are_named(in_process: Clients) -> None:
    """One that comes twice, one that is there already, rows that need too much memory, given ones or the table's; nothing is changed."""
    table = Made(in_process, "named", primary_key="id")
    table.do(insert_rows, [line(1, name="x" * 999)])

    twice = table.refused(insert_rows, [line(5), line(6), line(5)])
    there = table.refused(insert_rows, [line(9), line(1)])

    assert (type(twice), twice.code, "row 2 (5, as row 0)" in twice.message) == (UsageError, "given-twice", True)
    assert (type(there), there.code, "row 1 (1)" in there.message) == (TableBlocked, "row-exists", True)
    assert table.refused(insert_rows, {"id": [7], "name": ["x" * 999]}, apply_bytes="500").code == "too-much-given"
    assert table.refused(update_rows, {"id": [1], "line": [1]}, apply_bytes="500").code == "too-much-given"


def dms_table(clients: Clients) -> WorkTable:
    environment = {**IN_PROCESS, "DMSLAKE_DATABASE": ""}
    return WorkTable(environment, "s3://raw/dms/", "s3://lake/lake/", SHOP, shared=clients, partition_key="name")


def test_a_table_that_dms_writes_is_edited_too(in_process: Clients) -> None:
    """The cursor stays, and what DMS writes afterwards comes on top; rows come from a file, and are staged first."""
    table = dms_table(in_process)
    table.load([(1, "a", 1), (2, "b", 2)])
    table.sync()
    table.clients.s3.put_object(Bucket="raw", Key="given/r.json", Body=b'{"id": 2, "name": "a"}\n{"id": 3, "qty": 7, "name": "c"}')
    given = {"edit": "update", "rows": "s3://raw/given/r.json", "upsert": "true"}

    assert table.run("Apply", **given, dry_run="true") == 0
    assert table.run("Apply", **given, stage="true") == 0
    staged = table.item()["LastRun"]["staged"]
    assert table.rows() == [(1, "a", 1), (2, "b", 2)]
    changes = pq.read_table(io.BytesIO(read_attachment(table.clients.s3, table.out_path, f"{staged}.rows.parquet"))).to_pylist()
    assert [(row["id"], row["_change_type"]) for row in changes] == [(2, "update_preimage"), (2, "update_postimage"), (3, "insert")]
    assert table.commit(staged).code == 0
    assert table.rows() == [(1, "a", 1), (2, "a", 2), (3, "c", 7)]
    table.cdc([("U", (3, "c", 8)), ("D", (1, None, None))])
    table.sync()
    assert table.rows() == [(2, "a", 2), (3, "c", 8)]
    assert table.run("Rollback", undo=staged, resume="true") != 0
    assert table.verify() == []


def test_an_erase_finds_what_was_given(in_process: Clients) -> None:
    """The rows beside the records go too; a replay then says what it can't prove, and an insert that brings the key back is reported."""
    table = Made(in_process, "erased", "id int, name string", primary_key="id")
    inserted = table.do(insert_rows, [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}])
    head = ["--path", table.path, "--state_table", IN_PROCESS["DMSLAKE_STATE_TABLE"], "--driver_bytes", "1000000000"]
    in_process.s3.put_object(Bucket="raw", Key="given/keys.csv", Body=b"id\n1\n")

    assert erase.main([*head, "--key", "id", "--erase_keys", "s3://raw/given/keys.csv"], IN_PROCESS) == 0

    assert table.rows() == [{"id": 2, "name": "y"}]
    folder = S3Uri("lake", "made/_changes/shop/erased/")
    names = [file.key[len(folder.key) :] for file in list_files(in_process.s3, folder.bucket, folder.key)]
    assert (f"{inserted}.json" in names, f"{inserted}.inserts.parquet" in names) == (True, False)
    assert table.differences() == []
    table.do(insert_rows, [{"id": 1, "name": "again"}])
    assert table.head().details["erased_keys_back"] == 1


# --- tables that are made


def test_a_table_is_made_once(in_process: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Called again it is the same change; also after a crash before the commit and one before the publish step."""
    died = iter(["record", "converge"])

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt(next(died))

    for name in ("commit", "converge"):
        with monkeypatch.context() as patch:
            patch.setattr(table_run, name, die)
            with pytest.raises(KeyboardInterrupt):
                Made(in_process, "once", primary_key="id")
    table = Made(in_process, "once", primary_key="id")

    assert "Publishing" not in table.item()
    assert (table.head().kind, table.head().id, table.rows()) == ("create", table.created, [])
    assert Made(in_process, "once", primary_key="id").created == table.created
    item = table.item()
    assert (item["Source"], item["ActiveFlag"], item["PrimaryKey"], item["PartitionKey"]) == ("none", "true", "id", "null")
    with pytest.raises(TableBlocked) as other:
        Made(in_process, "once", primary_key="line")
    assert other.value.code == "table-exists"


def name_in_catalog(clients: Clients, database: str, name: str, path: str) -> None:
    """A Glue table of a table that another state table has."""
    clients.glue.create_database(DatabaseInput={"Name": database})
    table = {"Name": name, "Parameters": {"dmslake.path": path}, "StorageDescriptor": {"Location": "s3://other/", "Columns": []}}
    clients.glue.create_table(DatabaseName=database, TableInput=table)


def test_a_place_that_is_taken_is_refused(in_process: Clients) -> None:
    """A folder with objects, records of an earlier table, a folder of another table or inside of one, its catalog name (also that of a
    table in another state table), its own path; and a bucket that keeps no versions. No item is left behind."""
    table = dms_table(in_process)
    inside = f"{table.out_path}deep/er/"
    in_process.s3.put_object(Bucket="lake", Key="made/shop/full/x.parquet", Body=b"x")
    in_process.s3.put_object(Bucket="lake", Key="made/_changes/shop/gone/0000000001-000001-00000000.json", Body=b"{}")
    Made(in_process, "named-so", primary_key="id")
    places = {
        "s3://lake/made/shop/full/": "folder-not-empty",
        "s3://lake/made/shop/gone/": "records-exist",
        inside: "lake-folder-taken",
        "s3://lake/made/shop/named_so/": "catalog-name-taken",
        f"s3://{table.path}": "table-exists",
        "s3://lake/made/shop/elsewhere/": "catalog-name-taken",
        "s3://raw/made/shop/t/": "lake-not-versioned",
    }
    name_in_catalog(in_process, "both", "shop_elsewhere", "other/dms/shop/elsewhere/")
    items = StateTable(in_process, IN_PROCESS["DMSLAKE_STATE_TABLE"])
    before = sorted(item["path"] for item in items.scan())

    found = {}
    for place in places:
        with pytest.raises(DmslakeError) as caught:
            create_table(place, COLUMNS, environment=IN_PROCESS, **{**SETTINGS, "database": "both"})
        found[place] = caught.value.code

    assert found == {**places, "s3://raw/made/shop/t/": found["s3://raw/made/shop/t/"]}
    assert "version" in str(caught.value)
    assert isinstance(caught.value, ConfigurationError)
    assert sorted(item["path"] for item in items.scan()) == before


def test_a_catalog_that_does_not_answer_holds_up_no_new_table(in_process: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can say then whose the name is; the step after the change tells."""

    def denied(*_: Any) -> str:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetTable")

    monkeypatch.setattr(create, "owner_of", denied)

    change = create_table("s3://lake/made/shop/unasked/", COLUMNS, environment=IN_PROCESS, **{**SETTINGS, "database": "unasked"})

    items = StateTable(in_process, IN_PROCESS["DMSLAKE_STATE_TABLE"])
    assert items.get("lake/made/shop/unasked/")["Head"] == change


def test_no_table_is_made_over_files_that_could_not_be_adopted(in_process: Clients) -> None:
    """The refused adoption has left an item, and the files are another program's."""
    in_process.s3.put_object(Bucket="lake", Key="made/shop/refused/x.parquet", Body=b"no Parquet")
    items = StateTable(in_process, IN_PROCESS["DMSLAKE_STATE_TABLE"])
    items.create({"path": "lake/made/shop/refused/", "out_path": "s3://lake/made/shop/refused/", "Source": "none", "ActiveFlag": "true"})

    with pytest.raises(DmslakeError) as caught:
        create_table("s3://lake/made/shop/refused/", COLUMNS, environment=IN_PROCESS, **SETTINGS)

    assert caught.value.code == "folder-not-empty"
    assert "Head" not in items.get("lake/made/shop/refused/")


def test_a_made_table_whose_item_is_gone_is_recovered(in_process: Clients) -> None:
    """As the refusal to make it again says: its first change wrote no file, and so left no trace but its record."""
    table = Made(in_process, "lost", primary_key="id")
    items = StateTable(in_process, IN_PROCESS["DMSLAKE_STATE_TABLE"])
    head = table.item()["Head"]
    in_process.dynamodb.delete_item(TableName=items.name, Key={"path": {"S": str(table.table_path)}})
    with pytest.raises(DmslakeError) as caught:
        create_table(table.path, COLUMNS, environment=IN_PROCESS, **SETTINGS)
    assert caught.value.code == "records-exist"
    items.create({"path": str(table.table_path), "out_path": table.path, "Source": "none", "ActiveFlag": "true"})

    recover(in_process, items, table.table_path, dry_run=False)

    assert (table.item()["Head"], table.item()["PrimaryKey"]) == (head, "id")
    table.do(insert_rows, [{"id": 1, "name": "one"}])
    assert [row["id"] for row in table.rows()] == [1]


def test_made_up_rows_fit(in_process: Clients) -> None:
    """Keys that the table has not, the same for the same seed, null here and there; a table without key, with text keys, with few keys."""
    table = Made(in_process, "fake", COLUMNS + ", email string, shop string", primary_key="id,line", partition_key="shop, year(day)")
    table.do(insert_rows, [{"id": 1, "line": 1, "shop": "north", "day": "2024-01-01"}])

    rows = fake_rows(table.path, 40, 7, IN_PROCESS, **SETTINGS)

    assert rows == fake_rows(table.path, 40, 7, IN_PROCESS, **SETTINGS) != fake_rows(table.path, 40, 8, IN_PROCESS, **SETTINGS)
    assert {row["shop"] for row in rows} == {"north"}
    assert 0 < sum(row["email"] is None for row in rows) < 20
    assert all("@" in row["email"] for row in rows if row["email"] is not None)
    table.do(insert_rows, rows)
    assert len(table.rows()) == 41
    text = Made(in_process, "fake_text", "code string, at string", primary_key="code", timestamp_column="at")
    text.do(insert_rows, fake_rows(text.path, 5, 0, IN_PROCESS, **SETTINGS))
    assert len({row["code"] for row in text.rows()}) == 5
    few = Made(in_process, "fake_few", "flag boolean", primary_key="flag")
    with pytest.raises(UsageError, match="no free key"):
        fake_rows(few.path, 3, 0, IN_PROCESS, **SETTINGS)
    with pytest.raises(UsageError, match="made up"):
        fake_rows(few.path, -1, 0, IN_PROCESS, **SETTINGS)
    assert len(fake_rows(Made(in_process, "fake_keyless", "a int").path, 3, 0, IN_PROCESS, **SETTINGS)) == 3
