"""Where a table lives: raw folder, lake folder, change records, catalog name."""

from __future__ import annotations

import shlex

import pytest

from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.paths import (
    MAX_NAME_BYTES,
    S3Uri,
    TablePath,
    by_path,
    catalog_collision,
    catalog_name,
    changes_folder,
    data_key,
    find_path,
    has_catalog_name,
    is_name,
    lake_folder,
)

ORDERS = TablePath("raw", "dms/sales/", "orders/")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/a/b", S3Uri("bucket", "a/b")),
        ("s3a://bucket/a/", S3Uri("bucket", "a/")),
        ("s3n://bucket", S3Uri("bucket", "")),
        ("  s3://bucket/ ", S3Uri("bucket", "")),
        ("s3://bucket/with space/ü", S3Uri("bucket", "with space/ü")),
    ],
)
def test_an_address_is_read(text: str, expected: S3Uri) -> None:
    """Whatever connector's scheme a person writes."""
    assert S3Uri.parse(text) == expected


@pytest.mark.parametrize("text", ["", "bucket/key", "s3://", "s3:///key", "s3://B/key", "s3://a_b/key", "https://bucket/key"])
def test_what_is_no_address_is_refused_with_its_text(text: str) -> None:
    """The message repeats what was given."""
    with pytest.raises(UsageError) as caught:
        S3Uri.parse(text)

    assert repr(text) in caught.value.message


@pytest.mark.parametrize(("text", "key"), [("s3://b12", ""), ("s3://b12/", ""), ("s3://b12/a", "a/"), ("s3://b12//a//", "a/")])
def test_a_folder_ends_in_exactly_one_slash(text: str, key: str) -> None:
    """Except the bucket itself, whose key is empty."""
    assert S3Uri.folder(text).key == key


@pytest.mark.parametrize(
    "text", ["raw/dms/sales/orders", "raw/dms/sales/orders/", "s3://raw/dms/sales/orders", " s3a://raw/dms/sales/orders/ "]
)
def test_every_way_to_write_a_table_means_the_same(text: str) -> None:
    """With and without scheme and slash."""
    path = TablePath.parse(text)

    assert (path, str(path), path.name, str(path.raw)) == (
        ORDERS,
        "raw/dms/sales/orders/",
        "sales.orders",
        "s3://raw/dms/sales/orders/",
    )


def test_a_table_may_lie_directly_in_the_bucket() -> None:
    """DMS has no folder then: schema and table are all there is."""
    path = TablePath.parse("raw/sales/orders")

    assert (path.prefix, path.schema, path.table) == ("sales/", "sales", "orders")


@pytest.mark.parametrize("text", ["", "orders", "raw/orders", "raw//sales/orders", "RAW/sales/orders"])
def test_what_is_no_table_path_is_refused(text: str) -> None:
    """A bucket, a schema and a table are the least."""
    with pytest.raises(UsageError, match="not a table path"):
        TablePath.parse(text)


@pytest.mark.parametrize("name", ["orders", "Order Details", "größe", "a$b", "2024", "x" * MAX_NAME_BYTES])
def test_names_that_sources_have_are_taken(name: str) -> None:
    """Also those that need quotes in SQL."""
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "_hidden", ".hidden", "a/b", "a\\b", "a\nb", "a\0", "\x1b[31m", "\x9b31m", "a\x7f", "a\ufffe", "a\uffff",
        " lead", "trail ", "\u3000x", "ü" * MAX_NAME_BYTES,
    ],
)  # fmt: skip
def test_names_that_would_hide_or_forge_are_refused(name: str) -> None:
    """Crawlers skip `_` and `.`, terminals obey control characters (of both blocks), XML has no U+FFFE and U+FFFF."""
    assert not is_name(name)


def test_a_path_stands_in_a_command_as_one_word() -> None:
    """A shell runs nothing in it, and gives it back."""
    path = TablePath("raw", "dms/o'x/", 'a `b` $(c) "d"/')

    assert shlex.split(f"dmslake run {path.in_shell}") == ["dmslake", "run", str(path)]
    assert ORDERS.in_shell == str(ORDERS)


@pytest.mark.parametrize(("key", "fits"), [("l/" + "x" * 1022, True), ("l/" + "x" * 1023, False), ("l/" + "ü" * 511 + "x", False)])
def test_a_key_longer_than_s3_takes_is_refused(key: str, fits: bool) -> None:
    """In bytes, the lake's prefix included; before anything is uploaded."""
    try:
        data_key(S3Uri("lake", "l/"), key[2:])
        found = ""
    except TableBlocked as error:
        found = error.code

    assert found == ("" if fits else "key-too-long")


def test_names_too_long_for_the_catalog_are_known() -> None:
    """Glue takes 255 characters, schema and table together."""
    found = [has_catalog_name(TablePath("raw", "s" * 127 + "/", "t" * length + "/")) for length in (127, 128)]

    assert found == [True, False]


def test_records_stand_beside_the_schema_folders() -> None:
    """`_changes` is skipped by crawlers and Spark only where it stands above schema and table."""
    lake = lake_folder("s3://lake/tables", ORDERS)

    assert (str(lake), str(changes_folder(lake))) == ("s3://lake/tables/sales/orders/", "s3://lake/tables/_changes/sales/orders/")


def test_a_lake_without_prefix_has_its_records_at_the_top() -> None:
    """The bucket itself may be the lake."""
    assert str(changes_folder(lake_folder("s3://lake", ORDERS))) == "s3://lake/_changes/sales/orders/"


def test_an_out_path_without_schema_folder_is_refused() -> None:
    """Its records would stand inside the table."""
    with pytest.raises(UsageError, match="out_path"):
        changes_folder(S3Uri("lake", "orders/"))


def test_catalog_names_that_collide_are_found() -> None:
    """Only another table's: a table doesn't collide with itself."""
    other = TablePath("raw", "dms/Sales/", "orders/")

    found = (catalog_name(ORDERS), catalog_collision(ORDERS, [ORDERS]), catalog_collision(ORDERS, [ORDERS, other]))

    assert found == ("sales_orders", None, other)


def test_other_characters_of_a_catalog_name_become_underscores() -> None:
    """Athena takes lower-case letters, digits and underscores."""
    assert catalog_name(TablePath("raw", "My-DB/", "Größe 2/")) == "my_db_gr__e_2"


def test_a_short_name_is_found_among_the_known() -> None:
    """`schema.table` wins over a table of that name alone."""
    known = [ORDERS, TablePath("raw", "dms/shop/", "products/"), TablePath("raw", "dms/x/", "sales.orders/")]

    assert [find_path(text, known) for text in ("sales.orders", "products", "raw/dms/sales/orders")] == [ORDERS, known[1], ORDERS]


def test_an_item_whose_key_is_no_path_is_passed_over() -> None:
    """Nor is another spelling of a path one: the item would never be found by it."""
    orders = {"path": str(ORDERS), "PrimaryKey": "id"}
    keys = ("x", "", f"s3://{ORDERS}", str(ORDERS)[:-1], "no bucket!/a/b/c/")

    assert by_path([*({"path": key} for key in keys), orders, {}]) == {ORDERS: orders}


def test_a_short_name_of_two_tables_is_refused_with_both() -> None:
    """A person chooses, never the program."""
    other = TablePath("raw", "dms2/sales/", "orders/")

    with pytest.raises(UsageError) as caught:
        find_path("sales.orders", [ORDERS, other])

    assert str(ORDERS) in caught.value.message
    assert str(other) in caught.value.message


def test_an_unknown_short_name_is_refused() -> None:
    """The way out is the list of tables."""
    with pytest.raises(UsageError, match="no table 'nowhere'"):
        find_path("nowhere", [ORDERS])
