"""Adoption: a folder that another program wrote becomes the first change as it is, and the table goes on from there."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.adoption import AdoptWish
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import escape, parse_partition_key
from glue_jobs.core.record import to_json
from glue_jobs.core.schema import Column
from glue_jobs.core.state import default_item
from glue_jobs.protocol.adopt import Look, plan_adoption
from glue_jobs.protocol.recover import recover
from glue_jobs.spark import adopt_files
from glue_jobs.spark.adopt_files import AdoptReader
from tests.core.test_record_schema import VALIDATOR
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import LONG_LEASE, die, run_on
from tests.protocol.test_forget import shown
from tests.protocol.test_state_went_back import as_new, overwrite
from tests.protocol.test_verify import drop, hidden_now
from tests.protocol.wire import Request, Wire, die_at, once

FUTURE = "2999-01-01 00:00:00"
SOLD = pa.schema([("id", pa.int64()), ("name", pa.string()), ("region", pa.string())])


def put(table: LakeTable, path: str, columns: dict[str, Any], **options: Any) -> str:
    """A Parquet file in the lake's folder, written by somebody else; `path`."""
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, **{"compression": "snappy", **options})
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, Body=data.getvalue())
    return path


def ids(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def put_sample(table: LakeTable) -> list[str]:
    """What the AWS sample leaves: `Op` first or last, a success marker, folder markers; rows 1 to 5."""
    files = [
        put(table, "part-00000-aa.c000.snappy.parquet", {"Op": ["I", "I"], "id": ids(3, 1), "name": ["three", "one"]}),
        put(table, "part-00001-bb.c000.snappy.parquet", {"id": ids(5), "name": ["five"], "Op": ["U"]}),
        put(table, "part-00002-cc.c000.snappy.parquet", {"Op": [None, "I"], "id": ids(2, 4), "name": ["two", None]}),
    ]
    for name in ("_SUCCESS", "_temporary/0/part.parquet", ".hidden", "old_$folder$"):
        table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + name, Body=b"x" * (name[0] in "_."))
    return files


ROWS = [(1, "one"), (2, "two"), (3, "three"), (4, None), (5, "five")]


@pytest.fixture
def sample(make_table: TableMaker) -> LakeTable:
    """A table that the AWS sample kept up: two CDC files applied, one more pending."""
    table = make_table()
    table.load(ROWS[:3])
    table.cdc([("I", (4, None))])
    key = table.cdc([("I", (5, "five"))])
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (6, "six"))])
    table.edit(LastFullLoadDate=FUTURE, LastIncrementalFile=f"{table.path.bucket}/{key}")
    put_sample(table)
    return table


def adopted(table: LakeTable, **wish: str) -> LakeTable:
    """The table after an adoption that must work; its folder and verify are fine."""
    assert table.run("Adopt", **wish) == 0, table.item()["LastRun"]
    assert set(table.snapshot().files) <= table.visible()
    assert "Publishing" not in table.item()
    assert table.verify() == []
    return table


def refused(table: LakeTable, **wish: str) -> dict[str, str]:
    """The error of an adoption that is refused; nothing was changed."""
    ours = ("LastRun", "Fence")
    before, objects = {name: value for name, value in table.item().items() if name not in ours}, table.visible()
    assert table.run("Adopt", **wish) != 0
    after = {name: value for name, value in table.item().items() if name not in ours}
    assert (after, table.visible()) == (before, objects)
    error: dict[str, str] = table.item()["LastRun"]["error"]
    return error


def test_the_samples_folder_becomes_change_one_as_it_is(sample: LakeTable) -> None:
    """Files, ETags, bounds and columns stand in the record; nothing was written into the folder."""
    before = sample.visible()

    adopted(sample)

    record = sample.head()
    listed = sample.snapshot().files
    assert (record.kind, record.parent, record.counts.inserted, record.counts.table_rows) == ("adopt", "", 5, 5)
    assert [(column.name, column.type) for column in record.schema] == [("id", "bigint"), ("name", "string")]
    assert [(file.rows, file.low, file.high) for file in listed.values()] == [(2, (1,), (3,)), (1, (5,), (5,)), (2, (2,), (4,))]
    assert all(file.etag and file.upload is None for file in listed.values())
    assert sample.rows(visible=set(listed)) == ROWS
    assert sample.visible() == before
    assert record.details["left_out"] == ["Op"]
    VALIDATOR.validate(json.loads(to_json(record)))


def test_an_adopted_table_is_recovered(sample: LakeTable) -> None:
    """Its only change wrote no file, and so left no trace but its record."""
    head = adopted(sample).item()["Head"]
    overwrite(sample, {**as_new(sample), "LastIncrementalFile": f"{sample.path}0.parquet"})
    codes = [sample.run(job) for job in ("LoadInitial", "LoadIncremental")]
    assert (codes, sample.item()["LastRun"]["error"]["code"]) == ([1, 1], "adopt-or-reload")

    recover(sample.clients, sample.state_table, sample.path, dry_run=False)

    assert sample.item()["Head"] == head
    sample.sync()
    assert sample.rows(visible=set(sample.snapshot().files)) == [(1, "ONE"), *ROWS[2:], (6, "six")]
    assert sample.verify() == []


def test_an_adoption_that_did_not_land_makes_no_file_the_tables(sample: LakeTable, wire: Wire) -> None:
    """Its record names them; a purge leaves them to whoever wrote them."""
    die(wire, sample, "Adopt", once(Request.is_commit, lambda _: wire.kill()))
    files = sample.visible()
    plan = shown(sample, purge=True)

    assert {sample.out_path.key + path for path in files} <= set(plan.foreign)
    assert sample.forget(plan).code == 0
    assert sample.visible() == files


def test_the_next_run_goes_on_behind_the_cursor(sample: LakeTable) -> None:
    """The pending CDC file is applied; rewritten files have no `Op`, the others keep theirs; the catalog has none."""
    adopted(sample)

    sample.sync(small_file_bytes="1")  # inserts take no file of a partition along

    files = sample.snapshot().files
    assert sample.rows(visible=set(files)) == [(1, "ONE"), (3, "three"), (4, None), (5, "five"), (6, "six")]
    assert sample.verify() == []
    kept = [path for path in files if path.startswith("part-")]
    assert kept == ["part-00001-bb.c000.snappy.parquet"]
    assert all("Op" not in names_in(sample, path) for path in set(files) - set(kept))
    assert [column["Name"] for column in sample.catalog_table()["StorageDescriptor"]["Columns"]] == ["id", "name"]


def names_in(table: LakeTable, path: str) -> list[str]:
    """The columns in a file of the lake."""
    body = table.clients.s3.get_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path)["Body"].read()
    return list(pq.read_schema(io.BytesIO(body)).names)


def test_a_late_file_and_a_reload_after_it(sample: LakeTable) -> None:
    """A CDC file below the cursor that was not listed then is late; new load files replace everything."""
    late = sample.next_name()
    name = late.replace("20240501-1200", "20240501-1159")
    adopted(sample)
    sample.sync()

    sample.cdc([("U", (3, "LATE"))], name=name)
    sample.sync()
    assert sample.head().kind == "late"
    assert (3, "LATE") in sample.rows(visible=set(sample.snapshot().files))
    sample.load([(7, "seven")], number=2)
    sample.delete_raw("LOAD00000001.parquet")
    sample.edit(Request="reload")  # the CDC files are as young as the load
    sample.sync(load_quiet_minutes="0")

    assert [record.kind for record in sample.lineage().back()][:2] == ["full-load", "late"]
    assert not any(path.startswith("part-0") for path in sample.visible())
    assert (7, "seven") in sample.rows(visible=set(sample.snapshot().files))
    assert sample.verify() == []


def test_rollback_hides_the_adopted_files_and_a_reapply_copies_them_back(sample: LakeTable) -> None:
    """To before the adoption is the empty table; the copies have our names and the same rows, and stay readable as `Op` files."""
    adopted(sample)
    first = sample.head().id
    originals = set(sample.snapshot().files)

    assert sample.run("Rollback", undo=first) == 0, sample.item()["LastRun"]
    assert originals & sample.visible() == set()
    assert sample.run("Rollback", reapply="all", resume="true") == 0, sample.item()["LastRun"]

    assert {file.origin for file in sample.snapshot().files.values()} == originals
    assert sample.rows(visible=set(sample.snapshot().files)) == ROWS
    assert sample.verify() == []
    sample.sync()
    assert sample.verify() == []


def test_rollback_to_the_adoption_after_a_batch(sample: LakeTable) -> None:
    """Superseded files of the other program come back from their versions, and the batch is pending again."""
    adopted(sample)
    sample.sync()

    assert sample.run("Rollback", to="previous", resume="true") == 0, sample.item()["LastRun"]
    assert sample.rows(visible=set(sample.snapshot().files)) == ROWS
    sample.sync()

    assert (1, "ONE") in sample.rows(visible=set(sample.snapshot().files))
    assert sample.verify() == []


def test_rollback_to_the_adoption_where_the_other_program_s_file_is_visible_again(sample: LakeTable) -> None:
    """A repair leaves alone what does not bear our name, so that the refusal names another way out."""
    files = set(adopted(sample).snapshot().files)
    sample.sync()
    path = min(files - sample.visible())
    drop(sample, path, "DeleteMarkers")

    assert sample.run("Rollback", to="previous", resume="true") == 1

    error = sample.item()["LastRun"]["error"]
    assert (error["code"], f"s3api delete-object --bucket {sample.out_path.bucket} --key {sample.out_path.key}{path}" in error["todo"]) == (
        "visible-again", True,
    )  # fmt: skip
    hidden_now(sample, path)
    assert sample.run("Rollback", to="previous", resume="true") == 0, sample.item()["LastRun"]
    assert sample.rows(visible=set(sample.snapshot().files)) == ROWS


def test_a_load_after_the_items_date_is_a_pending_reload(sample: LakeTable) -> None:
    """The plan warns of it and says how to count it as taken."""
    sample.edit(LastFullLoadDate="2020-01-01 00:00:00")

    adopted(sample)

    (warning,) = [text for text in sample.item()["LastRun"]["warnings"] if "load file" in text]
    assert "--load-date" in warning
    assert sample.head().generation.loads == ()


def test_the_place_in_raw_must_be_said(make_table: TableMaker) -> None:
    """An item without cursor and load date is refused; with options both go to the item in the same write as the change."""
    table = make_table()
    table.load(ROWS[:3])
    name = table.cdc([("I", (4, None))]).rsplit("/", 1)[-1]
    put_sample(table)

    assert refused(table)["code"] == "adopt-from-where"
    adopted(table, load_date=FUTURE, cursor=name)

    item = table.item()
    assert (item["LastFullLoadDate"], item["LastIncrementalFile"].rsplit("/", 1)[-1]) == (FUTURE, name)
    assert [key.rsplit("/", 1)[-1] for key in table.snapshot().applied] == [name]
    table.sync()
    assert table.item()["LastRun"]["outcome"] == "nothing"


def test_no_cdc_file_applied_can_be_said(make_table: TableMaker) -> None:
    """`--cursor 0.parquet`: all CDC files are pending."""
    table = make_table()
    table.cdc([("U", (1, "ONE"))])
    put(table, "a.parquet", {"id": ids(1, 2), "name": ["one", "two"]})

    assert refused(table)["code"] == "adopt-from-where"
    adopted(table, cursor="0.parquet")
    table.sync()

    assert table.rows() == [(1, "ONE"), (2, "two")]


def test_partition_folders(make_table: TableMaker) -> None:
    """Hive folders, escaped and null ones; the partition column's type is the newest raw file's, and stands behind the others."""
    table = make_table(columns=SOLD, partition_key="region")
    table.load([(1, "one", "a b"), (2, "two", None), (3, "three", "x:y")])
    table.edit(LastFullLoadDate=FUTURE)
    put(table, "region=a b/p.parquet", {"id": ids(1), "name": ["one"]})
    put(table, "region=__HIVE_DEFAULT_PARTITION__/p.parquet", {"id": ids(2), "name": ["two"]})
    put(table, "region=x%3Ay/p.parquet", {"id": ids(3), "name": ["three"]})

    adopted(table)
    table.cdc([("U", (1, "ONE", "a b")), ("U", (2, "two", "x:y")), ("D", (3, None, None))])
    table.sync()

    assert [column.name for column in table.snapshot().schema] == ["id", "name", "region"]
    assert table.rows() == [(1, "ONE", "a b"), (2, "two", "x:y")]
    assert table.verify() == []


def test_the_type_of_a_partition_column_is_never_guessed(make_table: TableMaker) -> None:
    """Without raw file, catalog table and option it is refused; the option's type must fit the folders."""
    table = lake_only(make_table, PartitionKey="day")
    put(table, "day=7/p.parquet", {"id": ids(1)})
    put(table, "day=8/p.parquet", {"id": ids(2)})

    assert refused(table)["code"] == "no-partition-type"
    assert refused(table, columns='{"day": "date"}')["code"] == "bad-partition-folder"
    adopted(table, columns='{"day": "int"}')

    assert table.rows() == [(1, 7), (2, 8)]


def test_a_folder_that_dmslake_would_spell_otherwise(make_table: TableMaker) -> None:
    """A row that changes would move to the other folder. A column of texts may have any spelling."""
    table = lake_only(make_table, PartitionKey="day")
    put(table, "day=7/p.parquet", {"id": ids(1)})
    put(table, "day=08/p.parquet", {"id": ids(2)})
    put(table, "day=__HIVE_DEFAULT_PARTITION__/p.parquet", {"id": ids(3)})

    error = refused(table, columns='{"day": "int"}')
    assert (error["code"], "folder day=08/; expected: day=8; found: day=08" in error["message"]) == ("adopt-layout", True), error
    adopted(table, columns='{"day": "string"}')

    assert table.rows() == [(1, "7"), (2, "08"), (3, None)]


@pytest.mark.parametrize(
    ("kind", "text", "written"),
    [
        ("int", "007", "7"),
        ("bigint", "-0", "0"),
        ("bigint", "+5", "5"),
        ("decimal(4,2)", "1.5", "1.50"),
        ("decimal(4,2)", "01.50", "1.50"),
        ("double", "1", "1.0"),
        ("double", "-0.0", "0.0"),
        ("double", "nan", "NaN"),
        ("float", "0.10", "0.1"),
        ("timestamp", "2024-01-01 00:00:00.0", "2024-01-01 00:00:00"),
        ("timestamp", "2024-01-01", "2024-01-01 00:00:00"),
        ("timestamp", "2024-01-01T10:00:00.5", "2024-01-01 10:00:00.5"),
    ],
)
def test_the_spelling_of_each_type(kind: str, text: str, written: str) -> None:
    """What dmslake writes is taken, another spelling of the same value is refused, and both are named as folders are."""
    schema, partitioning = (Column("c", kind), Column("at", "date")), parse_partition_key("year(at), c")
    reader = AdoptReader()

    reader.check_partitions(schema, partitioning, [("2024", written), ("2024", None), (None, written)])
    with pytest.raises(TableBlocked) as caught:
        reader.check_partitions(schema, partitioning, [("2024", written), ("2024", text)])

    assert caught.value.code == "adopt-layout"
    assert f"folder at_year=2024/c={escape(text)}/; expected: c={escape(written)}; found: c={escape(text)}" in caught.value.message
    assert "--column 'c=string'" in caught.value.todo


@pytest.mark.parametrize("beside", [{}, {"line": pa.array(["{}"]).cast(pa.json_())}], ids=["", "json"])
def test_a_key_that_stands_in_folder_names_only(make_table: TableMaker, beside: dict[str, Any]) -> None:
    """No file has a column of it: each row has the key of its folder, which may be null, or that of another row."""
    table = lake_only(make_table, PartitionKey="region", PrimaryKey="region")
    said = '{"region": "string"}'
    for region in ("eu", "us"):
        put(table, f"region={region}/p.parquet", {"id": ids(1), **beside})

    null = put(table, "region=__HIVE_DEFAULT_PARTITION__/p.parquet", {"id": ids(1), **beside})
    error = refused(table, columns=said)
    assert (error["code"], null in error["message"]) == ("null-key", True), error
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + null)
    put(table, "region=eu/p.parquet", {"id": ids(1, 2), **{name: pa.concat_arrays([values, values]) for name, values in beside.items()}})
    error = refused(table, columns=said)
    assert (error["code"], "region='eu' 2 times" in error["message"]) == ("key-not-unique", True), error
    put(table, "region=eu/p.parquet", {"id": ids(1), **beside})
    adopted(table, columns=said)

    assert [(file.low, file.high) for file in table.snapshot().files.values()] == [(("eu",), ("eu",)), (("us",), ("us",))]
    assert [file.rows for file in table.snapshot().files.values()] == [1, 1]
    assert beside or table.rows() == [(1, "eu"), (1, "us")]  # the test's own reader knows no JSON


def test_a_file_of_which_not_all_keys_are_read(make_table: TableMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """No adoption says of keys that it has not seen that none comes twice."""
    table = lake_only(make_table)
    put(table, "a.parquet", {"id": ids(1, 2)})
    read = adopt_files.read_rows
    monkeypatch.setattr(adopt_files, "read_rows", lambda *given: (rows.slice(1) for rows in read(*given)))

    error = refused(table)

    assert (error["code"], "expected: 2 rows; found: 1 rows" in error["message"]) == ("bad-data-file", True), error


def lake_only(make_table: TableMaker, **attributes: str) -> LakeTable:
    """A table without DMS: its path is the lake's folder."""
    table = make_table()
    table.path = type(table.path).parse(str(table.out_path))
    table.state_table.create({**default_item(table.path, str(table.out_path)), "Source": "none", "PrimaryKey": "id", **attributes})
    table.clients.dynamodb.delete_item(TableName=table.state_table.name, Key={"path": {"S": f"{table.raw[5:]}shop/{table.table}/"}})
    return table


def test_date_parts_as_another_program_named_them(make_table: TableMaker) -> None:
    """`year(at) as year` over folders `year=2024`; a timestamp in INT96, as Spark wrote it."""
    table = lake_only(make_table, PartitionKey="year(at) as year")
    at = pa.array([datetime(2024, 5, 1, 10, 0, 0, 123456, timezone.utc)], pa.timestamp("us", "UTC"))
    put(table, "year=2024/p.parquet", {"id": ids(1), "at": at}, use_deprecated_int96_timestamps=True)

    adopted(table)

    assert [(column.name, column.type) for column in table.snapshot().schema] == [("id", "bigint"), ("at", "timestamp")]
    assert table.rows() == [(1, datetime(2024, 5, 1, 10, 0, 0, 123456, timezone.utc))]


def test_columns_of_different_files_are_put_together(make_table: TableMaker) -> None:
    """The newest file's order, others behind; an int beside a bigint is a bigint; absent columns are null."""
    table = make_table()
    table.edit(LastFullLoadDate=FUTURE)
    put(table, "a.parquet", {"old": ["x"], "id": pa.array([1], pa.int32())})
    put(table, "b.parquet", {"name": ["two"], "id": ids(2)})

    adopted(table)
    names = {column.name: column.type for column in table.snapshot().schema}

    assert names == {"old": "string", "id": "bigint", "name": "string"}
    assert table.head().details["mixed_types"] == ["id"]
    assert sorted(row[names_of(table).index("id")] for row in table.rows()) == [1, 2]


@pytest.mark.parametrize("options", [{}, {"store_schema": False}], ids=["said by Arrow", "said by Parquet"])
@pytest.mark.parametrize("stream_file_bytes", ["0", "1000000"], ids=["in pieces", "in memory"])
def test_json_of_another_program_is_a_text(make_table: TableMaker, options: dict[str, Any], stream_file_bytes: str) -> None:
    """In the key and beside it, and a batch goes on with the file."""
    table = make_table(pa.schema([("id", pa.string()), ("line", pa.string())]))
    key = table.cdc([])
    table.cdc([("U", ("b", None))])
    table.edit(LastFullLoadDate=FUTURE, LastIncrementalFile=f"{table.path.bucket}/{key}")
    keys, lines = pa.array(["a", "b", "c"]).cast(pa.json_()), pa.array(["{}", "[]", ""]).cast(pa.json_())
    put(table, "a.parquet", {"id": keys, "line": lines}, row_group_size=1, **options)

    adopted(table)
    table.sync(stream_file_bytes=stream_file_bytes)

    assert [(column.name, column.type) for column in table.snapshot().schema] == [("id", "string"), ("line", "string")]
    assert table.rows() == [("a", "{}"), ("b", None), ("c", "")]
    assert table.verify() == []


def test_a_column_named_as_a_before_image_of_another_task_is_the_tables_own(make_table: TableMaker) -> None:
    """The item says how its before images begin; rows that are written anew with another one keep the column's values."""
    table = make_table(pa.schema([("id", pa.int64()), ("qty", pa.int64()), ("BI_qty", pa.int64())]))
    table.edit(LastFullLoadDate=FUTURE, BeforeImagePrefix="OLD_")
    put(table, "a.parquet", {"id": ids(1, 2), "qty": ids(10, 20), "BI_qty": ids(11, 22)})

    adopted(table)
    assert (names_of(table), "left_out" in table.head().details) == (["id", "qty", "BI_qty"], False)
    table.cdc([("U", (1, 15, 11))])
    table.sync()

    assert table.rows() == [(1, 15, 11), (2, 20, 22)]
    assert table.verify() == []


def test_before_images_with_the_tables_own_prefix_are_left_out(make_table: TableMaker) -> None:
    """The next batch, which has them too, is applied: they are no columns of the lake's, and tell the old key."""
    columns = [("id", pa.int64()), ("qty", pa.int64())]
    table = make_table(pa.schema(columns))
    table.edit(LastFullLoadDate=FUTURE, BeforeImagePrefix="OLD_")
    nothing = pa.nulls(2, pa.int64())
    put(table, "a.parquet", {"id": ids(1, 2), "qty": ids(10, 20), "OLD_id": nothing, "OLD_qty": nothing})

    adopted(table)
    assert (names_of(table), sorted(table.head().details["left_out"])) == (["id", "qty"], ["OLD_id", "OLD_qty"])
    table.cdc([("U", (3, 30, 2, 20))], columns=pa.schema([*columns, ("OLD_id", pa.int64()), ("OLD_qty", pa.int64())]))
    table.sync()

    assert table.rows() == [(1, 10), (3, 30)]
    assert table.verify() == []


def test_the_newest_raw_file_is_read_with_the_tables_own_prefix(make_table: TableMaker) -> None:
    """So it gives the type of a partition column that is named as a before image of another task."""
    columns = pa.schema([("id", pa.int64()), ("region", pa.string()), ("BI_region", pa.string())])
    table = make_table(columns, partition_key="BI_region")
    table.cdc([("U", (1, "b", "x"))])
    table.edit(LastFullLoadDate=FUTURE, BeforeImagePrefix="OLD_")
    put(table, "BI_region=x/a.parquet", {"id": ids(1), "region": ["a"]})

    adopted(table, cursor="0.parquet")
    table.sync()

    assert table.rows() == [(1, "b", "x")]


def names_of(table: LakeTable) -> list[str]:
    return [column.name for column in table.snapshot().schema]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"id": ["1"], "name": ["x"]}, "adopt-types"),
        ({"ID": ids(1), "name": ["x"]}, "columns-differ-by-case"),
        ({"id": ids(9), "tags": [["x"]]}, "unsupported-type"),
        ({"name": ["x"]}, "no-key-column"),
        ({"id": pa.array([None], pa.int64())}, "null-key"),
        ({"id": ids(1)}, "key-not-unique"),
        ({"id": ids(8, 9), "Op": ["I", "D"]}, "deleted-row"),
    ],
)
def test_a_folder_that_cant_be_taken_over(make_table: TableMaker, columns: dict[str, Any], code: str) -> None:
    """Each is refused with its reason, and nothing is changed."""
    table = lake_only(make_table)
    put(table, "a.parquet", {"id": ids(1, 2), "name": ["one", "two"]})
    put(table, "b.parquet", columns)

    error = refused(table)

    assert error["code"] == code
    assert "b.parquet" in error["message"] or "a.parquet" in error["message"]


def test_what_is_no_parquet_is_named(make_table: TableMaker) -> None:
    """A CSV file among the data files."""
    table = lake_only(make_table)
    put(table, "a.parquet", {"id": ids(1)})
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + "notes.csv", Body=b"id\n1\n")

    error = refused(table)

    assert (error["code"], "notes.csv" in error["message"]) == ("not-parquet", True)


@pytest.mark.parametrize("path", ["year=2024/a.parquet", "sub/a.parquet", "region=a%3ab/a.parquet"])
def test_folders_that_the_partition_key_does_not_say(make_table: TableMaker, path: str) -> None:
    """Partition folders without PartitionKey, plain folders, folders spelled otherwise than Hive spells them."""
    table = lake_only(make_table, PartitionKey="region" if "region" in path else "null")
    put(table, path, {"id": ids(1)})

    assert refused(table, columns='{"region": "string"}' if "region" in path else "")["code"] == "adopt-layout"


def test_an_empty_folder_a_loaded_table_and_another_tables_folder(make_table: TableMaker, loaded: LakeTable) -> None:
    """None of them can be adopted."""
    empty, clash = make_table(), make_table()
    put(empty, "_SUCCESS", {"id": ids(1)})
    clash.edit(out_path=f"{loaded.out_path}inside/")

    assert refused(empty)["code"] == "adopt-nothing"
    assert refused(loaded)["code"] == "adopt-loaded"
    assert refused(clash)["code"] == "lake-folder-taken"


def test_a_folder_that_another_stack_has_adopted_is_refused(make_table: TableMaker) -> None:
    """No item of this state table tells, and no file has a name of ours: the change record does."""
    first, second = lake_only(make_table), make_table()
    put(first, "a.parquet", {"id": ids(1)})
    adopted(first)
    first.clients.dynamodb.delete_item(TableName=first.state_table.name, Key={"path": {"S": str(first.path)}})
    second.out_path = first.out_path
    second.edit(Source="none", out_path=str(first.out_path))

    error = refused(second)
    look = Look(second.clients.s3, None, second.state_table, "", Limits(), AdoptReader())
    with pytest.raises(TableBlocked) as shown:
        plan_adoption(look, second.state(), AdoptWish(), check_keys=False)

    assert (error["code"], str(first.path) in error["message"]) == ("lake-folder-taken", True)
    assert (shown.value.code, shown.value.message) == (error["code"], error["message"]), "as a dry run says it"


def test_a_catalog_name_of_another_table_is_refused(make_table: TableMaker) -> None:
    """Both would be blocked once both had changes."""
    first, second = lake_only(make_table), lake_only(make_table)
    for table in (first, second):
        put(table, "a.parquet", {"id": ids(1)})
    adopted(first)
    second.edit(CatalogTable=first.item()["CatalogTable"])

    error = refused(second)

    assert (error["code"], str(first.path) in error["message"]) == ("catalog-name-taken", True)
    second.edit(CatalogTable=f"{second.table}_own")
    adopted(second)


def test_files_with_our_names_are_refused(make_table: TableMaker) -> None:
    """A copy of a lake table: its names would be taken for files of changes that this table never had."""
    table = lake_only(make_table)
    put(table, "0000000001-000001-0123abcd-1.parquet", {"id": ids(1)})

    assert refused(table)["code"] == "adopt-own-file"


def test_a_dry_run_changes_nothing(sample: LakeTable) -> None:
    """It says so and has no change."""
    objects = sample.visible()

    assert sample.run("Adopt", dry_run="true") == 0

    assert (sample.item()["LastRun"]["note"], sample.visible()) == ("dry run: nothing was changed", objects)
    assert "Head" not in sample.item()


def test_a_folder_that_another_program_writes_to_meanwhile(sample: LakeTable, wire: Wire) -> None:
    """A file that comes while the keys are read is named, and the table is not adopted."""

    def write(forward: Callable[[], Any]) -> Any:
        put(sample, "part-9.parquet", {"id": ids(9)})
        return forward()

    rule = once(lambda request: request.operation == "GetObject" and "part-00002" in request.key, write)
    assert run_on(wire, sample, "Adopt", rule) == 1

    error = sample.item()["LastRun"]["error"]
    assert (error["code"], "part-9.parquet" in error["message"], "Head" in sample.item()) == ("folder-changed", True, False)


def test_data_from_before_versioning(make_table: TableMaker) -> None:
    """Objects with the version id `null` are adopted, rewritten, and come back in a rollback."""
    table = make_table()
    bucket = f"old-{table.table}"
    table.clients.s3.create_bucket(Bucket=bucket)
    table.edit(LastFullLoadDate=FUTURE, out_path=f"s3://{bucket}/lake/shop/t/")
    table.out_path = type(table.out_path).folder(f"s3://{bucket}/lake/shop/t/")
    put(table, "a.parquet", {"id": ids(1, 2), "name": ["one", "two"]})
    table.clients.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    versions = table.clients.s3.list_object_versions(Bucket=bucket)["Versions"]
    assert [version["VersionId"] for version in versions] == ["null"]

    adopted(table)
    table.cdc([("U", (1, "ONE"))])
    table.sync()
    assert table.run("Rollback", to="previous") == 0, table.item()["LastRun"]

    assert table.rows() == [(1, "one"), (2, "two")]
    assert table.verify() == []


def test_a_glue_table_at_the_same_place_is_taken_over(make_table: TableMaker) -> None:
    """It gives the partition column's type, loses its `Op`, and its partitions get the table's columns."""
    table = lake_only(make_table, PartitionKey="region", CatalogTable="")
    name = f"shop_{table.table}"
    table.edit(CatalogTable=name)
    storage = {"Columns": [{"Name": "op", "Type": "string"}, {"Name": "id", "Type": "bigint"}], "Location": str(table.out_path)}
    database = table.environment["DMSLAKE_DATABASE"]
    table.clients.glue.create_table(
        DatabaseName=database,
        TableInput={"Name": name, "PartitionKeys": [{"Name": "region", "Type": "string"}], "StorageDescriptor": storage},
    )
    partition = {"Values": ["x"], "StorageDescriptor": {**storage, "Location": f"{table.out_path}region=x/"}}
    table.clients.glue.create_partition(DatabaseName=database, TableName=name, PartitionInput=partition)
    put(table, "region=x/a.parquet", {"Op": ["I"], "id": ids(1)})

    adopted(table)

    assert table.rows() == [(1, "x")]
    assert [column["Name"] for column in table.catalog_table()["StorageDescriptor"]["Columns"]] == ["id"]


def test_types_that_not_every_reader_takes_are_warned_of(make_table: TableMaker) -> None:
    """The files stay as they are, and the catalog says the lake's types."""
    table = make_table()
    table.edit(LastFullLoadDate=FUTURE)
    columns = {"at": pa.array([0], pa.timestamp("ns")), "clock": pa.array([0], pa.time64("us")), "large": pa.array([1], pa.uint32())}
    put(table, "a.parquet", {"id": ids(1), "small": pa.array([1], pa.uint8()), **columns})

    adopted(table)

    (warning,) = (text for text in table.item()["LastRun"]["warnings"] if "not every reader" in text)
    assert warning.startswith("at (timestamp[ns]), clock (time64[us]), large (uint32): ")
    assert "nanoseconds are cut" in warning


def test_a_deleted_file_of_the_other_program_is_repaired(sample: LakeTable) -> None:
    """It comes back from its version under one of our names, and is still read without its `Op`."""
    adopted(sample)
    (path,) = [path for path in sample.snapshot().files if "part-00002" in path]
    sample.clients.s3.delete_object(Bucket=sample.out_path.bucket, Key=sample.out_path.key + path)
    assert sample.verify() == ["missing-file"]

    assert sample.repair().code == 0

    assert sample.verify() == []
    assert sample.rows(visible=set(sample.snapshot().files)) == ROWS
    sample.sync()
    assert sample.verify() == []


def test_a_later_run_of_the_other_program_is_found(sample: LakeTable) -> None:
    """Verify names its file."""
    adopted(sample)

    put(sample, "part-00009.parquet", {"Op": ["I"], "id": ids(1), "name": ["one"]})

    assert sample.verify() == ["foreign-file"]


def test_a_deleted_item_can_be_adopted_again(sample: LakeTable) -> None:
    """The adoption leaves no trace in the folder: a new item says again where the table stands, and its change comes after."""
    adopted(sample)
    first, cursor = sample.head().id, sample.item()["LastIncrementalFile"].rsplit("/", 1)[-1]
    sample.clients.dynamodb.delete_item(TableName=sample.state_table.name, Key={"path": {"S": str(sample.path)}})
    sample.state_table.create({**default_item(sample.path, str(sample.out_path)), "PrimaryKey": "id"})

    adopted(sample, cursor=cursor, load_date=FUTURE)

    assert sample.head().id > first
    assert sample.head().parent == ""
    assert sample.rows(visible=set(sample.snapshot().files)) == ROWS


def test_a_table_without_key(make_table: TableMaker) -> None:
    """Rows may come twice; inserts are appended."""
    table = make_table(primary_key="null")
    table.edit(LastFullLoadDate=FUTURE)
    put(table, "a.parquet", {"id": ids(1, 1), "name": ["one", "one"]})

    adopted(table)
    table.cdc([("I", (1, "one"))])
    table.sync()

    assert table.rows() == [(1, "one")] * 3
    assert table.verify() == []


def test_a_key_of_several_columns_one_of_them_a_partition(make_table: TableMaker) -> None:
    """The folder's part of the key counts, in bounds and where keys come twice."""
    table = make_table(columns=SOLD, primary_key="region,id", partition_key="region")
    table.edit(LastFullLoadDate=FUTURE)
    put(table, "region=a/p.parquet", {"id": ids(1, 2), "name": ["a1", "a2"]})
    put(table, "region=b/p.parquet", {"id": ids(1), "name": ["b1"]})

    adopted(table, columns='{"region": "string"}')
    table.cdc([("U", (1, "B1", "b")), ("D", (2, None, "a"))])
    table.sync()

    assert table.rows() == [(1, "B1", "b"), (1, "a1", "a")]
    assert table.verify() == []


def test_every_rewrite_drops_what_is_no_column(sample: LakeTable) -> None:
    """A renamed column: the files of the other program are all replaced."""
    adopted(sample)
    sample.delete_raw("20240501-120002000.parquet")  # it has the column's old name
    sample.edit(Request="schema-rename:name=title")
    sample.sync()

    assert all(names_in(sample, path) == ["id", "title"] for path in sample.snapshot().files)
    assert sample.verify() == []


def requests_of(make: Callable[[], LakeTable], wire: Wire) -> list[Request]:
    """The requests of an undisturbed adoption."""
    assert run_on(wire, make(), "Adopt", lease_seconds=LONG_LEASE) == 0
    return list(wire.requests)


def test_an_adoption_that_dies_at_any_write(make_table: TableMaker) -> None:
    """Before or after each write: the next runs end with the adopted table, never with half of it."""

    def make() -> LakeTable:
        table = make_table()
        table.edit(LastFullLoadDate=FUTURE)
        put_sample(table)
        return table

    writes = [number for number, request in enumerate(requests_of(make, Wire())) if request.is_write]
    assert len(writes) >= 7
    for number in writes:
        for after in (False, True):
            table, wire = make(), Wire()
            die(wire, table, "Adopt", die_at(wire, number, after=after))
            landed = "Head" in table.item()

            code = table.run("Adopt")

            assert code == 0 or (landed and table.item()["LastRun"]["error"]["code"] == "adopt-loaded"), table.item()["LastRun"]
            assert [record.kind for record in table.lineage().back()] == ["adopt"]
            assert table.rows(visible=set(table.snapshot().files)) == ROWS
            assert table.verify() == []
            assert {"Publishing", "CatalogPending", "LeaseOwner"} & set(table.item()) == set()
