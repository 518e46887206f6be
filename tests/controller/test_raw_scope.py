"""The setting --raw as a scope of tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.raw_scope import RawScope, is_control_table, is_table_name
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import TablePath


@pytest.mark.parametrize(
    ("raw", "scope"),
    [
        ("s3://bucket", RawScope("bucket", "")),
        ("s3://bucket/", RawScope("bucket", "")),
        ("s3://bucket/dms", RawScope("bucket", "dms/")),
        ("s3://bucket/dms/", RawScope("bucket", "dms/")),
        ("s3://bucket/a/b/", RawScope("bucket", "a/b/")),
        ("s3://bucket/dms/sales_*", RawScope("bucket", "dms/", "sales_*")),
        ("s3://bucket/dms/sales_?/", RawScope("bucket", "dms/", "sales_?")),
        ("s3://bucket/*", RawScope("bucket", "", "*")),
    ],
)
def test_parse(raw: str, scope: RawScope) -> None:
    """The last part is a wildcard only if it has one; slashes at the end don't matter."""
    assert RawScope.parse(raw) == scope


@pytest.mark.parametrize("raw", ["bucket/dms", "s3://bucket/d*/sales/", "s3://bucket/a,b/", "s3://"])
def test_parse_refuses(raw: str) -> None:
    """No address, a wildcard before the last part and a comma are usage errors."""
    with pytest.raises(UsageError):
        RawScope.parse(raw)


@pytest.mark.parametrize("raw", ["s3://bucket/dms", "s3a://bucket/dms/", "s3://bucket/dms/*"])
def test_the_folder_to_write_to(raw: str) -> None:
    """Where schemas are written, however the setting spells it."""
    assert RawScope.parse(raw).folder_to_write() == "s3://bucket/dms/"


def test_some_schemas_are_no_folder_to_write_to() -> None:
    """The folder is named that would do."""
    with pytest.raises(UsageError) as caught:
        RawScope.parse("s3://bucket/dms/sales_*").folder_to_write()

    assert "'s3://bucket/dms/sales_*'" in caught.value.message
    assert "--raw s3://bucket/dms/," in caught.value.todo


def test_wildcard_is_no_regular_expression() -> None:
    """Only * and ? are special, and the whole name must match."""
    scope = RawScope("bucket", "", "a.b+*")

    assert scope.has_schema("a.b+c")
    assert not scope.has_schema("axb+c")
    assert not scope.has_schema("xa.b+c")


@given(st.sampled_from(["", "dms/", "a/b/"]), st.text("ab_.", min_size=1), st.text("xy-", min_size=1))
def test_scope_has_its_own_tables(prefix: str, schema: str, table: str) -> None:
    """A table made in the scope lies in it, and not in the folder above or in another bucket."""
    scope = RawScope("bucket", prefix)
    path = scope.table(schema, table)

    assert scope.has(path)
    assert not RawScope("other", prefix).has(path)
    assert not RawScope("bucket", prefix + "more/").has(path)


def test_deeper_folder_is_not_in_scope() -> None:
    """`dms/` has `dms/shop/orders`, not `dms/eu/shop/orders`."""
    assert not RawScope("bucket", "dms/").has(TablePath.parse("bucket/dms/eu/shop/orders"))


def test_names() -> None:
    """A comma would split a job's --path; control tables are DMS's own."""
    assert is_table_name("orders 2024-é")
    assert not is_table_name("a,b")
    assert not is_table_name("_hidden")
    assert is_control_table("awsdms_status")
    assert not is_control_table("orders")
