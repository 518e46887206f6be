"""What an adoption makes of listings, footers and items, without any file."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from glue_jobs.core.adoption import AdoptWish, place_in_raw, read_wish
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.foreign_folder import Footer, check_alone, check_same, data_files, merged_schema, partition_of, with_partition_types
from glue_jobs.core.partitioning import parse_partition_key
from glue_jobs.core.paths import S3Uri, TablePath
from glue_jobs.core.raw_names import RawFile, classify
from glue_jobs.core.schema import Column, Schema
from glue_jobs.core.state import TableState, default_item, read_state

LAKE = S3Uri("lake", "lake/shop/orders/")
PATH = TablePath("raw", "dms/shop/", "orders/")
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def state(**values: Any) -> TableState:
    return read_state({**default_item(PATH, str(LAKE)), **values})


def listed(*names: str, size: int = 10) -> dict[str, RawFile]:
    return {name: RawFile(LAKE.key + name, size, "etag", NOON) for name in names}


def raw(name: str, minutes: float = 0) -> RawFile:
    return RawFile(PATH.raw.key + name, 10, "etag", NOON + timedelta(minutes=minutes))


def footer(file: str, after: float, **columns: str) -> Footer:
    schema = tuple(Column(column, kind) for column, kind in columns.items())
    return Footer(file, RawFile(file, 10, "etag", NOON + timedelta(minutes=after)), 1, schema)


def code_of(error: pytest.ExceptionInfo[TableBlocked]) -> str:
    return error.value.code


def test_what_readers_pass_over_is_no_data() -> None:
    """Markers, hidden and temporary names and empty objects; a partition folder may begin with an underscore."""
    there = {**listed("a.parquet", "_x=1/b.parquet", "_temporary/0/c.parquet", ".d", "_SUCCESS"), **listed("e/", size=0)}

    files, passed_over = data_files(there, LAKE)

    assert (sorted(files), passed_over) == (["_x=1/b.parquet", "a.parquet"], (".d", "_SUCCESS", "_temporary/0/c.parquet", "e/"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        ("day=1/_delta_log/_last_checkpoint", "Delta Lake"),
        (".hoodie/hoodie.properties", "Apache Hudi"),
        ("metadata/v3.metadata.json", "Apache Iceberg"),
    ],
)
def test_a_table_with_a_log_is_refused(path: str, kind: str) -> None:
    """Of its files some are the table's and some were: rows that it has deleted would be back."""
    with pytest.raises(TableBlocked, match=f"the folder is a table of {kind}") as caught:
        data_files(listed("a.parquet", path), LAKE)

    assert code_of(caught) == "adopt-log"


@pytest.mark.parametrize(
    ("key", "path", "values"),
    [
        ("null", "a.parquet", ()),
        ("region", "region=a%2Fb/a.parquet", ("a/b",)),
        ("region,year(at) as year", "region=__HIVE_DEFAULT_PARTITION__/year=2024/a.parquet", (None, "2024")),
        ("month", "month=05/a.parquet", ("05",)),
        ("month(at) as month, day(at)", "month=5/at_day=__HIVE_DEFAULT_PARTITION__/a.parquet", ("5", None)),
    ],
)
def test_folders_that_the_partition_key_says(key: str, path: str, values: tuple[str | None, ...]) -> None:
    """Their values, unescaped."""
    assert partition_of(path, state(PartitionKey=key).partitioning, LAKE) == values


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("null", "region=a/a.parquet"),
        ("region", "a.parquet"),
        ("region", "Region=a/a.parquet"),
        ("region", "region=a%2fb/a.parquet"),
        ("region", "region=/a.parquet"),
        ("region", "region=a/b/a.parquet"),
        ("a,b", "b=1/a=2/a.parquet"),
        ("year(at) as year", "year=x/a.parquet"),
        ("year(at), month(at)", "at_year=2024/at_month=05/a.parquet"),
        ("day(at)", "at_day=007/a.parquet"),
        ("year(at)", "at_year=-1/a.parquet"),
    ],
)
def test_folders_that_it_does_not_say(key: str, path: str) -> None:
    """Other names, another order, another spelling of escapes and numbers, an empty value, too few or too many."""
    with pytest.raises(TableBlocked) as error:
        partition_of(path, state(PartitionKey=key).partitioning, LAKE)

    assert code_of(error) == "adopt-layout"


def test_the_newest_file_gives_the_order() -> None:
    """Columns of older files come behind; the wider of two types is taken, whichever file has it."""
    footers = [footer("a", 0, old="string", id="bigint"), footer("b", 2, name="string", id="int"), footer("c", 1, id="smallint")]

    schema, mixed = merged_schema(footers, LAKE)

    assert [(column.name, column.type) for column in schema] == [("name", "string"), ("id", "bigint"), ("old", "string")]
    assert mixed == ("id",)


def test_types_are_widened_over_more_than_two_files() -> None:
    """Also where the widest comes between narrower ones."""
    footers = [footer(name, minutes, id=kind) for name, minutes, kind in (("a", 0, "int"), ("b", 1, "bigint"), ("c", 2, "tinyint"))]

    assert merged_schema(footers, LAKE)[0] == (Column("id", "bigint"),)


def test_the_place_in_raw_is_what_the_item_says() -> None:
    """Load files up to a minute after the date, CDC files up to the cursor; the rest is pending."""
    files = [raw("LOAD00000001.parquet"), raw("LOAD00000002.parquet", 0.9), raw("LOAD00000003.parquet", 1.1)]
    names = ["20240501-120000000.parquet", "20240501-120001000.parquet", "20240501-120002000.parquet"]
    listing = classify([*files, *map(raw, names)], PATH.raw.key)

    place = place_in_raw(state(LastFullLoadDate="2024-05-01 12:00:00", LastIncrementalFile=f"{PATH}{names[1]}"), listing, False)

    assert [item.key.rsplit("/", 1)[-1] for item in place.generation.loads] == ["LOAD00000001.parquet", "LOAD00000002.parquet"]
    assert [file.base for file in place.pending_loads] == ["LOAD00000003.parquet"]
    assert [item.key.rsplit("/", 1)[-1] for item in place.applied] == names[:2]
    assert [file.base for file in place.pending] == names[2:]
    assert (place.cursor, place.last_full_load) == (f"{PATH}{names[1]}", "2024-05-01 12:00:00")


@pytest.mark.parametrize(
    ("names", "says_cursor", "is_refused"),
    [
        (("LOAD00000001.parquet",), False, True),
        (("LOAD00000001.parquet",), True, True),
        (("20240501-120000000.parquet",), False, True),
        (("20240501-120000000.parquet",), True, False),
        ((), False, False),
    ],
)
def test_an_item_that_says_nothing(names: tuple[str, ...], says_cursor: bool, is_refused: bool) -> None:
    """Refused where raw has something to say it of."""
    listing = classify(map(raw, names), PATH.raw.key)
    if not is_refused:
        assert place_in_raw(state(), listing, says_cursor).applied == ()
        return

    with pytest.raises(TableBlocked) as error:
        place_in_raw(state(), listing, says_cursor)

    assert code_of(error) == "adopt-from-where"


def test_a_partition_columns_type_by_who_says_it() -> None:
    """The person before the raw file before the catalog, whose names are in lower case."""
    fields = parse_partition_key("A,B,C")
    raw_schema: Schema = (Column("A", "int"), Column("B", "date"))

    schema = with_partition_types((), fields, {"A": "bigint"}, raw_schema, {"a": "string", "b": "string", "c": "string"}, LAKE)

    assert [column.type for column in schema] == ["bigint", "date", "string"]


def test_a_folder_that_is_another_tables() -> None:
    """The same, one inside, one around; neighbours with a longer name are none."""
    mine = state()
    for other in ("s3://lake/lake/shop/orders/", "s3://lake/lake/shop/orders/x/", "s3://lake/lake/shop"):
        with pytest.raises(TableBlocked):
            check_alone(mine, [{"path": "raw/dms/shop/others/", "out_path": other}])

    check_alone(
        mine, [{"path": str(PATH), "out_path": str(LAKE)}, {"path": "x", "out_path": "s3://lake/lake/shop/orders2/"}, {"path": "y"}]
    )


@pytest.mark.parametrize("after", [listed("a"), listed("a", "b", "c"), {**listed("a"), **listed("b", size=11)}])
def test_a_folder_that_changed(after: dict[str, RawFile]) -> None:
    """A file that went, came or is another one is named."""
    check_same(listed("a", "b"), listed("b", "a"), LAKE)

    with pytest.raises(TableBlocked, match=r"orders/[bc]\n"):
        check_same(listed("a", "b"), after, LAKE)


def test_a_wish_survives_the_jobs_arguments() -> None:
    """Also types with commas; what is not said is not given."""
    wish = AdoptWish("a,b", "null", (("c", "decimal(10,2)"), ("d", "date")), "20240501-120000000.parquet", "2024-05-01 12:00:00")

    assert read_wish(dict(wish.arguments())) == wish
    assert AdoptWish().arguments() == ()


@pytest.mark.parametrize("text", ["region=int", "[1]", '{"region": "text"}'])
def test_types_that_cant_be_read(text: str) -> None:
    """No JSON object, or no type of the lake."""
    with pytest.raises(UsageError):
        read_wish({"columns": text})
