"""An empty table that a person makes: how it is written, and what contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.core.creation import define, read_schema, schema_of, table_path
from glue_jobs.core.errors import UsageError
from glue_jobs.core.partitioning import partition_key_text
from glue_jobs.core.row_edit import read_row_edit
from glue_jobs.core.schema import Column

SCHEMA = (Column("id", "bigint"), Column("a, b", "decimal(12,2)"), Column("at", "timestamp"))


@pytest.mark.parametrize(
    "text",
    [
        'id bigint, `a, b` decimal(12, 2), at TIMESTAMP',
        ' id  bigint ,"a, b" Decimal(12,2),\n at timestamp ',
        '{"id": "bigint", "a, b": "decimal(12, 2)", "at": "timestamp"}',
        '[{"name": "id", "type": "bigint"}, {"name": "a, b", "type": "decimal(12,2)"}, {"name": "at", "type": "timestamp"}]',
    ],
)  # fmt: skip
def test_a_schema_is_read(text: str) -> None:
    """As text, or as JSON in both forms."""
    assert read_schema(text) == SCHEMA
    assert schema_of([(column.name, column.type) for column in SCHEMA]) == SCHEMA


@pytest.mark.parametrize(
    "text", ["id", "id bigint,, b int", "id bigint b int", "a(b int", "{", '[{"name": "id"}]', '["x"]', "id bigint; drop"]
)
def test_a_text_that_is_no_schema(text: str) -> None:
    """Is refused with the place where it ends to be one."""
    with pytest.raises(UsageError) as caught:
        define(read_schema(text), ())

    assert caught.value.code == "bad-schema"


@pytest.mark.parametrize(
    ("key", "options", "code"),
    [
        (["nope"], {}, "bad-schema"),
        (["id", "id"], {}, "bad-schema"),
        (["a, b"], {}, "bad-schema"),
        (["id"], {"timestamp_column": "id"}, "bad-schema"),
        (["id"], {"timestamp_column": "nope"}, "bad-schema"),
        (["id"], {"partition_key": "year(id)"}, "no-date-parts"),
        (["id"], {"partition_key": "nope"}, "no-partition-column"),
        (["id"], {"partition_key": "year("}, "bad-partition-key"),
        (["id"], {"partition_key": "id, at, a"}, "no-partition-column"),
    ],
)
def test_a_definition_that_contradicts_itself(key: list[str], options: dict[str, Any], code: str) -> None:
    """Before anything is made."""
    with pytest.raises(UsageError) as caught:
        define(SCHEMA, key, **options)

    assert caught.value.code == code


@pytest.mark.parametrize(
    "schema",
    [
        (),
        (Column("a", "varchar"),),
        (Column(" a", "int"),),
        (Column("__op", "int"),),
        (Column("a\tb", "int"),),
        (Column("a", "int"), Column("A", "int")),
    ],
)
def test_columns_that_no_table_can_have(schema: tuple[Column, ...]) -> None:
    """None at all, of a type of other programs, with blanks around, of a name that jobs need, twice to a reader that sees no case."""
    with pytest.raises(UsageError) as caught:
        define(schema, ())

    assert caught.value.code == "bad-schema"


def test_the_layout_follows_the_timestamp_column() -> None:
    """Unless another one is given, or none; a layout that leaves files without a column is none."""
    layouts = [define(SCHEMA, ["id"], key, "at").partitioning for key in (None, "null", "id")]

    assert [partition_key_text(layout) for layout in layouts] == ["year(at), month(at)", "null", "id"]
    assert define(SCHEMA, ["id"]).partitioning == ()
    with pytest.raises(UsageError, match="every column"):
        define((Column("a", "int"),), (), "a")


def test_where_a_table_is_made() -> None:
    """Its folder, or its name below the lake."""
    assert str(table_path("s3://lake/p/shop/things/", "")) == str(table_path("shop.things", "s3://lake/p/")) == "lake/p/shop/things/"
    for text, lake in (
        ("things", "s3://lake/"),
        ("shop.things", ""),
        ("s3://lake/things", ""),
        ("lake/shop/_t", ""),
        ("lake/shop/a,b", ""),
    ):
        with pytest.raises(UsageError) as caught:
            table_path(text, lake)
        assert caught.value.code == "bad-path"


@pytest.mark.parametrize("given", [{"edit": "merge", "rows": "r"}, {"edit": "insert"}, {"edit": "insert", "rows": "r", "key": "id"}])
def test_arguments_of_the_job_that_mean_nothing(given: dict[str, str]) -> None:
    """An unknown word, no rows, an edit with a correction's arguments."""
    with pytest.raises(UsageError) as caught:
        read_row_edit(given)

    assert caught.value.code == "bad-argument"
