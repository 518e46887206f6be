"""The names that a raw file has for columns which were renamed in the lake since."""

from __future__ import annotations

import pytest

from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column, OldName

DAY = "raw/dms/shop/t/2024050{}-120000000.parquet"


def name(day: int) -> str:
    return DAY.format(day)


LAKE = (
    Column("id", "int"),
    Column("heading", "string", older=(OldName("name", name(2)), OldName("title", name(4)))),
    Column("name", "string"),
)
SWAPPED = (Column("a", "int", older=(OldName("b", name(2)),)), Column("b", "int", older=(OldName("a", name(2)),)))
BACK = (Column("name", "string", older=(OldName("name", name(2)), OldName("title", name(4)))),)
AGAIN = (
    Column("id", "int"),
    Column("b", "int", older=(OldName("a", name(2)),)),
    Column("c", "int", older=(OldName("a", name(4)),)),
)
NEVER = (Column("title", "string", older=(OldName("name", "raw/dms/shop/t/0.parquet"),)),)


@pytest.mark.parametrize(
    ("lake", "file", "names", "renamed"),
    [
        (LAKE, name(1), ["id", "name"], {"name": "heading"}),
        (LAKE, name(2), ["id", "name"], {"name": "heading"}),
        (LAKE, name(3), ["id", "name"], {}),
        (LAKE, name(3), ["id", "title"], {"title": "heading"}),
        (LAKE, name(5), ["id", "title"], {}),
        (LAKE, name(2), ["id", "name", "heading"], {}),
        (LAKE, "raw/dms/shop/t/LOAD00000001.parquet", ["id", "name"], {}),
        (LAKE, name(1), ["id", "name", "BI_id", "BI_name"], {"name": "heading", "BI_name": "BI_heading"}),
        (LAKE, name(1), ["id", "BI_name", "name"], {"name": "heading"}),
        (SWAPPED, name(1), ["a", "b"], {"a": "b", "b": "a"}),
        (BACK, name(1), ["name"], {}),
        (AGAIN, name(1), ["id", "a"], {"a": "b"}),
        (AGAIN, name(3), ["id", "a"], {"a": "c"}),
        (AGAIN, name(3), ["id", "b", "a"], {"a": "c"}),
        (AGAIN[::-1], name(1), ["id", "a"], {"a": "b"}),
        (NEVER, name(1), ["name"], {}),
    ],
)
def test_an_old_name_is_one_up_to_its_cursor(lake: tuple[Column, ...], file: str, names: list[str], renamed: dict[str, str]) -> None:
    """A file that has the new name, too, is from after the rename, wherever its own name puts it."""
    assert Reading(lake=lake).renamed(f"s3://{file}", names, ("BI_*",)) == renamed
