"""The lake's types: what DMS's types become, and which may grow into which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.schema import (
    ARROW_TO_LAKE,
    SIMPLE_TYPES,
    Column,
    decimal_parts,
    find,
    is_column_name,
    is_type,
    lake_type,
    names,
    widened,
)

DECIMALS = st.integers(1, 38).flatmap(lambda precision: st.integers(0, precision).map(lambda scale: f"decimal({precision},{scale})"))
TYPES = st.one_of(st.sampled_from(SIMPLE_TYPES), DECIMALS)
RANGES = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


@pytest.mark.parametrize(("arrow", "lake"), sorted(ARROW_TO_LAKE.items()))
def test_every_type_of_the_mapping_is_one_the_lake_has(arrow: str, lake: str) -> None:
    """And is found by the function that callers use."""
    assert (lake_type(arrow), is_type(lake)) == (lake, True)


@pytest.mark.parametrize(("bits", "lake"), [(8, "smallint"), (16, "int"), (32, "bigint")])
def test_an_unsigned_integer_fits_its_lake_type(bits: int, lake: str) -> None:
    """The next wider signed one."""
    assert ARROW_TO_LAKE[f"uint{bits}"] == lake
    assert 2**bits <= 2 ** RANGES[lake]


def test_unsigned_64_bits_fit_a_decimal() -> None:
    """No signed integer of the lake holds them."""
    assert (lake_type("uint64"), len(str(2**64 - 1))) == ("decimal(20,0)", 20)


@pytest.mark.parametrize(
    ("arrow", "lake"),
    [
        ("timestamp[us]", "timestamp"),
        ("timestamp[ns, tz=UTC]", "timestamp"),
        ("decimal128(38, 10)", "decimal(38,10)"),
        ("decimal256(38, 0)", "decimal(38,0)"),
        ("decimal32(5, 2)", "decimal(5,2)"),
        ("dictionary<values=string, indices=int32, ordered=0>", "string"),
        ("decimal256(39, 0)", None),
        ("decimal128(5, -2)", None),
        ("list<item: int32>", None),
        ("struct<a: int32>", None),
        ("null", None),
        ("", None),
    ],
)
def test_types_with_parameters_are_read(arrow: str, lake: str | None) -> None:
    """What the lake can't hold is None, never a guess."""
    assert lake_type(arrow) == lake


@pytest.mark.parametrize("text", ["decimal(39,0)", "decimal(0,0)", "decimal(5,6)", "decimal(5)", "varchar(10)", "INT", ""])
def test_what_the_lake_does_not_have_is_no_type(text: str) -> None:
    """Also decimals whose numbers make no sense."""
    assert not is_type(text)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "tinyint", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(12,2)", "decimal(12,2)"),
        ("decimal(12,2)", "decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,3)", None),
        ("bigint", "decimal(20,0)", None),
        ("int", "double", None),
        ("int", "string", None),
        ("date", "timestamp", None),
        ("string", "binary", None),
    ],
)
def test_only_safe_widenings_are_taken(old: str, new: str, expected: str | None) -> None:
    """A later file with the narrower type doesn't narrow the lake."""
    assert widened(old, new) == expected


@given(TYPES, TYPES)
def test_widening_does_not_depend_on_the_order_of_files(one: str, two: str) -> None:
    """Commutative, and the result holds both."""
    wide = widened(one, two)

    assert wide == widened(two, one)
    assert wide is None or (widened(wide, one), widened(wide, two)) == (wide, wide)


@given(TYPES)
def test_widening_to_itself_changes_nothing(name: str) -> None:
    """Idempotent."""
    assert widened(name, name) == name


@given(TYPES, TYPES, TYPES)
def test_widening_of_three_does_not_depend_on_grouping(one: str, two: str, three: str) -> None:
    """Associative; None, once reached, stays."""

    def join(first: str | None, second: str | None) -> str | None:
        return None if first is None or second is None else widened(first, second)

    assert join(join(one, two), three) == join(one, join(two, three))


@given(DECIMALS)
def test_a_decimals_numbers_are_read(name: str) -> None:
    """Other types have none."""
    precision, scale = decimal_parts(name) or (0, 0)

    assert (f"decimal({precision},{scale})", decimal_parts("int")) == (name, None)


def test_a_column_is_found_by_its_exact_name() -> None:
    """`ID` is another column."""
    schema = (Column("id", "int"), Column("Name", "string"))

    assert (find(schema, "Name"), find(schema, "name"), names(schema)) == (schema[1], None, ("id", "Name"))


def test_no_column_of_a_table_is_called_like_one_of_ours() -> None:
    """All names that stand beside the lake's columns in a job are refused as names of columns."""
    root = Path(__file__).parent.parent.parent / "glue_jobs"
    ours = {name for source in root.rglob("*.py") for name in re.findall(r"\"(__[a-z]+_?)\"", source.read_text("utf-8"))}

    assert {"__op", "__order"} <= ours
    assert not {name for name in (*ours, "__p0", "__p12", "__before_id") if is_column_name(name)}
    assert all(map(is_column_name, ("__order_id", "__position2", "__parts", "_op", "op")))
