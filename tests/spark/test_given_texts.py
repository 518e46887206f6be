"""Texts that a person gives: by whatever command, the same are taken, and mean the same."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.cells import fit
from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Column
from glue_jobs.spark.edit_files import EditReader
from glue_jobs.spark.edit_rows import Wanted
from glue_jobs.spark.edit_values import fitted_values
from glue_jobs.spark.given_rows import Reader
from glue_jobs.spark.given_texts import values_of

MANY = 1 << 30
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
REFUSED = {
    "bigint": ["0x10", "0XFF", "1_000", "1,000", "1e3", "1.0", "9223372036854775808", "NULL"],
    "tinyint": ["0x7f", "128"],
    "double": ["1e999", "-1e999", "1.8e308", "1e-999", "0x10", "1_000", "+nan", "nan(1)", "9007199254740993", "1" * 30, "9" * 400],
    "float": ["1e39", "16777217", "16777217.0", "1e-60"],
    "boolean": ["1", "0", "t", "f", "yes", "on"],
    "decimal(8,2)": ["1.234", "1234567", "0x10", "1_0", "nan", "inf"],
    "decimal(38,0)": ["9" * 39, "1e38"],
    "decimal(2,2)": ["1.50", "0.505"],
    "date": ["0000-01-01", "2024-05-01 00:00:00", "2024-5-1", "20240501", "2024-02-30"],
    "timestamp": [
        "2024-05-01 12", "2024-05-01 24:00:00", "2024-05-01 12:00:00.1234567", "2024-05-01 12:00:00+25:00", "2024-05-01 12:00:00+02:60",
        "1714564800", "0000-12-31", "9999-12-31T23:59:59-02:00", "0001-01-01 00:00:00+02",
    ],
    "binary": ["0x00", "0"],
}  # fmt: skip
TAKEN = {
    "bigint": {"+1": 1, " 1 ": 1, "007": 7, "-9223372036854775808": -(2**63)},
    "double": {"+.5": 0.5, " 1.50": 1.5, "1E+5": 1e5, "1e23": 1e23, "-Infinity": float("-inf"), "9007199254740992": 2.0**53, "0e9": 0.0},
    "float": {"0.5": 0.5, "16777216": 2.0**24, "1.2345679E8": 123456792.0, "123456790": 123456792.0, "3.4028235e38": 3.4028234663852886e38},
    "boolean": {"TRUE": True, " false": False},
    "decimal(8,2)": {"+1.5": Decimal("1.50"), "1e2": Decimal("100.00"), " 1.500": Decimal("1.50")},
    "decimal(38,0)": {"9" * 38: Decimal("9" * 38)},
    "decimal(2,2)": {"0.50": Decimal("0.50"), ".5": Decimal("0.50")},
    "date": {" 2024-05-01": date(2024, 5, 1), "9999-12-31": date(9999, 12, 31), "0001-01-01": date(1, 1, 1)},
    "timestamp": {
        "2024-05-01T12:00": NOON, "2024-05-01 12:00:00z": NOON, "2024-05-01 12:00:00.000000000": NOON, "2024-05-01 14:00:00 +02:00": NOON,
        "2024-05-01 10:00:00-02": NOON, " 2024-05-01 12:00:00": NOON,
    },
    "binary": {"00FF": b"\x00\xff"},
}  # fmt: skip
PLAIN = {
    "tinyint": "-?[0-9]{1,4}",
    "bigint": "-?[0-9]{1,20}",
    "double": r"-?[0-9]{1,17}(\.[0-9]{1,21})?(e[+-]?[0-9]{1,3})?",
    "boolean": "true|false|True",
    "decimal(5,2)": r"-?[0-9]{1,4}(\.[0-9]{1,3})?",
    "decimal(38,0)": "-?[0-9]{36,40}",
    "date": "[12][0-9]{3}-[0-3][0-9]-[0-3][0-9]",
    "timestamp": r"[12][0-9]{3}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,7})?)?(Z|[+-][0-3][0-9](:?[0-9]{2})?)?",
}


def keys(path: Path, column: Column) -> list[Any]:
    """As `erase` and the deletes of `apply` read them."""
    (piece,) = Reader(None, MANY).keys(str(path), (column.name,), (column,), "t")
    return piece.rows.column(0).to_pylist()


def updates(path: Path, column: Column) -> list[Any]:
    """As `apply` reads them."""
    (piece,) = Reader(None, MANY).rows(str(path), (column,))
    return piece.rows.column(0).to_pylist()


def inserts(path: Path, column: Column) -> list[Any]:
    """As `insert` reads them."""
    (found,) = EditReader(None, MANY).fitted(str(path), Wanted((column,), (), "insert"))
    return found.rows.column(0).to_pylist()


def csv(folder: Path, *texts: str) -> Path:
    path = folder / "rows.csv"
    path.write_text("c\n" + "".join(f'"{text}"\n' for text in texts))
    return path


@pytest.mark.parametrize("read", [keys, updates, inserts])
@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts])
def test_a_text_that_says_no_value_is_refused(tmp_path: Path, read: Any, kind: str, text: str) -> None:
    """Each in the same way, whatever Arrow makes of it: 0x10 is not the key 16. File, row, column, type and text are named."""
    path = csv(tmp_path, *list(TAKEN.get(kind, {}))[:1], text)

    with pytest.raises(UsageError) as caught:
        read(path, Column("c", kind))

    assert caught.value.code == "given-value"
    for part in (str(path), f"row {1 if kind in TAKEN else 0}", "column 'c'", kind, text[:30]):
        assert part in caught.value.message


@pytest.mark.parametrize("read", [keys, updates, inserts])
@pytest.mark.parametrize("kind", TAKEN)
def test_texts_that_say_a_value(tmp_path: Path, read: Any, kind: str) -> None:
    """In all forms that can be meant in one way only."""
    assert read(csv(tmp_path, *TAKEN[kind]), Column("c", kind)) == list(TAKEN[kind].values())


@pytest.mark.parametrize("kind", PLAIN)
@given(data=st.data())
def test_what_arrow_reads_is_what_a_text_says(kind: str, data: st.DataObject) -> None:
    """Quick or one by one: the same values are taken, and the same texts refused."""
    texts = data.draw(st.lists(st.none() | st.from_regex(PLAIN[kind], fullmatch=True), max_size=4))
    expected, wrong = [], []
    for row, text in enumerate(texts):
        try:
            expected.append(fit(kind, text))
        except ValueError:
            expected.append(None)
            wrong.append(row)

    values, refused = values_of(pa.chunked_array([texts[:2], texts[2:]], pa.string()), kind)

    assert (values.to_pylist(), refused) == (expected, wrong)


@pytest.mark.parametrize("layout", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_a_column_of_texts_reads_alike_in_any_layout(layout: pa.DataType) -> None:
    """Arrow has several; in none of them `t` is a boolean."""
    texts = pa.array(["true", "t"])
    rows = pa.table({"on": texts.dictionary_encode() if pa.types.is_dictionary(layout) else texts.cast(layout)})

    with pytest.raises(UsageError, match=r"1 value.*row 1, column 'on': expected boolean, found 't'"):
        fitted_values(rows, Wanted((Column("on", "boolean"),), (), "insert"), MANY)
