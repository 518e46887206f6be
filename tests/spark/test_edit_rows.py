"""Rows to edit a table with, from files and from programs: what is taken, and what is said of the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import RowEdit, read_row_edit
from glue_jobs.core.schema import Column
from glue_jobs.spark.edit_files import EditReader
from glue_jobs.spark.edit_rows import Fitted, Wanted, together
from glue_jobs.spark.edit_values import fitted_values

SCHEMA = tuple(
    Column(name, kind)
    for name, kind in {
        "id": "bigint", "small": "tinyint", "name": "string", "price": "decimal(8,2)", "rate": "double", "on": "boolean",
        "day": "date", "at": "timestamp", "blob": "binary",
    }.items()
)  # fmt: skip
INSERT, UPDATE, DELETE = (Wanted(SCHEMA, ("id",), word) for word in ("insert", "update", "delete"))
MOMENT = datetime(2024, 5, 1, 12, 0, 0, 250000, timezone.utc)
FULL = {
    "id": 1, "small": 2, "name": "Pen", "price": Decimal("1.50"), "rate": 0.5, "on": True, "day": date(2024, 5, 1), "at": MOMENT,
    "blob": b"\x00\xff",
}  # fmt: skip
NULLS: dict[str, Any] = {**dict.fromkeys(FULL), "id": 2}
TEXTS = {**FULL, "price": 1.50, "day": "2024-05-01", "at": "2024-05-01T12:00:00.25Z", "blob": "00ff"}
LIMIT = 1 << 20


def read(path: Path, wanted: Wanted = INSERT) -> Fitted:
    (found,) = EditReader(None, LIMIT).fitted(str(path), wanted)
    return found


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refused(path: Path, wanted: Wanted = INSERT) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(path, wanted)
    return caught.value


def test_all_forms_of_files_say_the_same_rows(tmp_path: Path) -> None:
    """JSON as a list or by lines, CSV with texts, Parquet in other types than the table's."""
    text = json.dumps(TEXTS)
    csv = "id,small,name,price,rate,on,day,at,blob\n1,2,Pen,1.5,.5,true,2024-05-01,2024-05-01 14:00:00.25+02:00,00ff\n2,,,,,,,,\n"
    wide = pa.table(
        {
            **{name: [value, None] for name, value in FULL.items() if name not in ("id", "price", "at")},
            "id": pa.array([1, 2], pa.int16()),
            "price": pa.array([1.5, None]),
            "at": pa.array([MOMENT, None], pa.timestamp("ns")),
        }
    )
    pq.write_table(wide, tmp_path / "rows.parquet")
    files = [
        written(tmp_path, "list.json", f"[{text}, {json.dumps(NULLS)}]"),
        written(tmp_path, "lines.jsonl", f"\ufeff{text}\n\n{json.dumps(NULLS)}\n"),
        written(tmp_path, "rows.CSV", csv),
        tmp_path / "rows.parquet",
    ]

    assert [read(file).rows.to_pylist() for file in files] == [[FULL, NULLS]] * 4


def test_a_csv_of_one_column_has_its_nulls(tmp_path: Path) -> None:
    """A blank line is one, also where a value is wanted: there it is named."""
    names = Wanted((Column("name", "string"),), (), "insert")

    assert read(written(tmp_path, "r.csv", 'name\na\n\n""\nb\n'), names).rows["name"].to_pylist() == ["a", None, "", "b"]
    assert read(written(tmp_path, "w.csv", "id,name\n1,a\n\n2,\n\n")).rows["name"].to_pylist() == ["a", None]
    error = refused(written(tmp_path, "k.csv", "id\n1\n\n2\n"), DELETE)
    assert error.code == "given-value"
    assert "1 value(s) of " in error.message
    assert "row 1, column 'id': expected a value" in error.message


def test_rows_of_programs(tmp_path: Path) -> None:
    """Arrow, dicts, lists, numpy, pandas where it is there; what a row does not say is known."""
    table = pa.Table.from_pylist([FULL, NULLS])
    partial = fitted_values([{"id": 1, "name": None}, {"id": 2, "small": np.int64(3)}], UPDATE, LIMIT)

    for rows in (table, table.to_batches()[0], table.to_pydict(), table.to_pylist(), {"id": np.array([1, 2])}):
        expected = [FULL, NULLS] if not isinstance(rows, dict) or len(rows) > 1 else [{"id": 1}, {"id": 2}]
        assert fitted_values(rows, INSERT, LIMIT).rows.to_pylist() == expected
    assert partial.rows.to_pylist() == [{"id": 1, "small": None, "name": None}, {"id": 2, "small": 3, "name": None}]
    assert {name: mask.tolist() for name, mask in partial.said.items()} == {"name": [True, False], "small": [False, True]}
    assert fitted_values({"id": [1], "name": [5]}, DELETE, LIMIT).rows.to_pylist() == [{"id": 1}]


def test_data_frames_of_pandas() -> None:
    """Numbers beside nulls are floats there; a column may hold values of several types."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "small": [3.0, float("nan")], "price": ["1.5", 2], "at": [pandas.Timestamp(MOMENT), None]})

    rows = fitted_values(frame, INSERT, LIMIT).rows.to_pylist()

    assert rows == [
        {"id": 1, "small": 3, "price": Decimal("1.50"), "at": MOMENT},
        {"id": 2, "small": None, "price": Decimal("2.00"), "at": None},
    ]


NANOSECONDS = """
import json, sys
import pyarrow as pa
from glue_jobs.core.errors import UsageError
from glue_jobs.spark.without_pandas import leave_out_pandas
if sys.argv[2] == "without":
    leave_out_pandas()
from glue_jobs.core.schema import Column
from glue_jobs.spark.edit_files import EditReader
from glue_jobs.spark.edit_rows import Wanted
wanted = Wanted((Column("at", "timestamp"), Column("name", "string")), (), "insert")
try:
    EditReader(None, 1 << 20).fitted(sys.argv[1], wanted)
except UsageError as error:
    print(error.message)
print(hasattr(pa.scalar(1, pa.timestamp("ns")), "as_py") and "pandas" in sys.modules)
"""
NANOS = 1_714_564_800_123_456_000  # 2024-05-01 12:00:00.123456


@pytest.mark.parametrize("pandas", ["with", "without"])
def test_nanoseconds_are_never_cut(tmp_path: Path, pandas: str) -> None:
    """A time that would lose digits is named, by itself, also where Python has no such time: pandas need not be there."""
    times, lengths = pa.array([NANOS, NANOS + 789], pa.timestamp("ns")), pa.array([None, 1], pa.duration("ns"))
    pq.write_table(pa.table({"at": times, "name": lengths}), tmp_path / "rows.parquet")

    command = [sys.executable, "-c", NANOSECONDS, str(tmp_path / "rows.parquet"), pandas]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    message, found = ended.stdout.splitlines()
    assert "2 value(s)" in message, message
    assert "row 1, column 'at': expected timestamp, found 2024-05-01 12:00:00.123456789;" in message
    assert "row 1, column 'name': expected string, found" in message
    assert found == str(pandas == "with")


@pytest.mark.parametrize("form", ["arrow", "zone", "list", "numpy", "frame", "objects"])
def test_nanoseconds_that_say_microseconds_are_taken(form: str) -> None:
    """Beside others that are refused, in each form that has them."""
    pandas = pytest.importorskip("pandas")

    def rows(*times: int) -> Any:
        ids = list(range(len(times)))
        if form in ("arrow", "zone"):
            return pa.table({"id": ids, "at": pa.array(times, pa.timestamp("ns", "UTC" if form == "zone" else None))})
        if form == "numpy":
            return {"id": ids, "at": np.array(times, "datetime64[ns]")}
        stamps = [pandas.Timestamp(time) for time in times]
        if form == "list":
            return [{"id": number, "at": stamp} for number, stamp in zip(ids, stamps, strict=True)]
        return pandas.DataFrame({"id": ids, "at": pandas.Series(stamps, dtype=object if form == "objects" else None)})

    taken = fitted_values(rows(NANOS, 0), INSERT, LIMIT).rows.column("at").to_pylist()

    assert taken == [MOMENT.replace(microsecond=123456), datetime(1970, 1, 1, tzinfo=timezone.utc)]
    with pytest.raises(UsageError, match=r"1 value\(s\).*row 1, column 'at'"):
        fitted_values(rows(NANOS, NANOS + 1), INSERT, LIMIT)


def test_times_of_numpy_and_pandas_are_no_numbers() -> None:
    """numpy makes a whole number of a time that Python has not; a day has no nanoseconds."""
    pandas = pytest.importorskip("pandas")
    odd = [
        np.datetime64(NANOS, "ns"), np.datetime64(10**6, "Y"), np.timedelta64(5, "ns"), np.datetime64(5, "ps"),
        pandas.Timestamp(NANOS), pandas.Timedelta(5),
    ]  # fmt: skip

    with pytest.raises(UsageError, match=r"6 value\(s\)"):
        fitted_values({"id": odd}, INSERT, LIMIT)
    with pytest.raises(UsageError, match=r"1 value\(s\).*column 'day': expected date"):
        fitted_values({"id": [1], "day": [pandas.Timestamp(1)]}, INSERT, LIMIT)


def test_nulls_of_pandas_are_null() -> None:
    """In any column and form; NaN is a number where the column has such. A key needs a value."""
    pandas = pytest.importorskip("pandas")
    nulls = [None, pandas.NaT, pandas.NA, np.datetime64("NaT")]
    columns = {"id": [1, 2, 3, 4], **dict.fromkeys(("small", "name", "price", "rate", "on", "day", "at", "blob"), nulls)}
    listed = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    for rows in (columns, listed, pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in columns.items()})):
        assert fitted_values(rows, INSERT, LIMIT).rows.to_pylist() == [{**NULLS, "id": number} for number in (1, 2, 3, 4)]
    rate = fitted_values([{"id": 1, "rate": float("nan")}], INSERT, LIMIT).rows.column("rate")[0].as_py()
    assert rate != rate
    with pytest.raises(UsageError, match=r"1 value\(s\).*row 0, column 'id': expected a value"):
        fitted_values([{"id": pandas.NaT, "name": "x"}], INSERT, LIMIT)


def test_a_whole_number_that_a_float_has_not_is_refused(tmp_path: Path) -> None:
    """Whatever it is given as; the next one is taken."""
    wanted = Wanted((Column("id", "bigint"), Column("rate", "float")), ("id",), "insert")
    odd, even = 16777217, 16777218
    forms = {
        "rows.json": '{{"id": 1, "rate": {}}}', "lines.jsonl": '{{"id": 1, "rate": {}.0}}', "rows.csv": "id,rate\n1,{}\n",
    }  # fmt: skip

    for name, form in forms.items():
        assert read(written(tmp_path, name, form.format(even)), wanted).rows["rate"].to_pylist() == [even]
        assert "column 'rate': expected float" in refused(written(tmp_path, name, form.format(odd)), wanted).message
    for values in ([odd], pa.array([odd]), np.array([float(odd)]), pa.array([float(odd)])):
        with pytest.raises(UsageError, match="column 'rate': expected float"):
            fitted_values({"id": [1], "rate": values}, wanted, LIMIT)


def test_a_text_of_json_may_hold_any_line_end_but_ours(tmp_path: Path) -> None:
    """JSON allows U+2028, U+2029 and U+0085 in a text; lines end at a line feed, behind a carriage return or not, and are counted all."""
    names = ["a\u2028b", "\u2029", "x\u0085", "\x7f\u00a0"]
    lines = [json.dumps({"id": row, "name": name}, ensure_ascii=False) for row, name in enumerate(names)]

    found = read(written(tmp_path, "rows.jsonl", "\r\n\n".join(lines) + "\r\n"))
    wrong = refused(written(tmp_path, "wrong.jsonl", "\r\n\n".join([*lines, "{"])))

    assert found.rows["name"].to_pylist() == names
    assert "line 9: " in wrong.message


@pytest.mark.parametrize("number", ["1e99999999999999999999999", "9" * 5000])
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_a_number_that_nobody_can_read_is_told(tmp_path: Path, name: str, number: str) -> None:
    """With the file's name, and the line where there are lines."""
    text = f'{{"id": 1}}\n{{"id": {number}}}' if name.endswith("l") else f'[{{"id": {number}}}]'

    wrong = refused(written(tmp_path, name, text))

    assert (wrong.code, name in wrong.message, "number" in wrong.message) == ("given-not-read", True, True)


def test_everything_that_is_wrong_is_named(tmp_path: Path) -> None:
    """Rows counted from 0, columns, values shortened; only so many; null keys too, and texts that are none."""
    many = refused(written(tmp_path, "many.json", json.dumps({"id": None, "price": "x" * 99, "on": 1})))
    lines = refused(written(tmp_path, "lines.csv", "id,small\n" + "".join(f"{row},{row}\n" for row in range(100, 160))))
    texts = refused(written(tmp_path, "texts.csv", "id,small,rate,on\n1,0x10,1e999,1\n"))
    broken = pa.table({"id": [1], "name": pa.array([b"\xff"]).view(pa.string())})

    assert many.code == lines.code == "given-value"
    for part in ("3 value(s) of ", "row 0, column 'id': expected a value", "row 0, column 'price': expected decimal(8,2), found 'xxx", "…"):
        assert part in many.message
    assert ("3 value(s)" in texts.message, "column 'on': expected boolean, found '1'" in texts.message) == (True, True)
    assert "row 28, column 'small': expected tinyint, found '128'" in lines.message
    assert lines.message.endswith("and 12 more")
    with pytest.raises(UsageError, match="column 'name': expected string, found b'"):
        fitted_values(broken, INSERT, LIMIT)


@pytest.mark.parametrize(
    ("name", "data", "wanted", "code", "said"),
    [
        ("r.json", '{"ID": 1, "nope": 2}', INSERT, "given-columns", "(it has 'id'); 'nope' is no column of the table; the key column 'id'"),
        ("r.csv", "id,id\n1,2\n", INSERT, "given-columns", "'id' stands there 2 times"),
        ("r.csv", "name\nx\n", DELETE, "given-columns", "the key column 'id' is missing"),
        ("r.json", '{"id": 1}', UPDATE, "given-columns", "nothing but the key"),
        ("r.json", "[]", INSERT, "bad-argument", "no rows are given"),
        ("r.json", "", INSERT, "bad-argument", "no rows are given"),
        ("r.json", "[1]", INSERT, "given-not-read", "row 0 is no object"),
        ("r.json", '[{"id": 1}', INSERT, "given-not-read", "can't be read"),
        ("r.json", '{"id": 1}\n{"id": 2', INSERT, "given-not-read", "line 2"),
        ("r.json", '[{"id": 1, "id": 2}]', INSERT, "given-not-read", "'id' twice"),
        ("r.json", b"\xff", INSERT, "given-not-read", "can't be read"),
        ("r.json", '{"id": [1], "name": {}}', INSERT, "given-value", "2 value(s)"),
        ("r.parquet", "PAR1", INSERT, "given-not-read", "can't be read"),
        ("r.xls", "x", INSERT, "given-not-read", "can't be told by its name"),
        ("r.csv", "id,name\n1,\"x\n", INSERT, "given-not-read", "never closed"),
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, name: str, data: str | bytes, wanted: Wanted, code: str, said: str) -> None:
    """With what was found; nothing else was looked at."""
    error = refused(written(tmp_path, name, data), wanted)

    assert (error.code, said in error.message) == (code, True), error.message


@pytest.mark.parametrize("rows", ["id", {"id": "12"}, {"id": [1], "name": []}, [], [1]])
def test_values_that_are_no_rows(rows: Any) -> None:
    """The forms that are taken are named."""
    with pytest.raises(UsageError) as caught:
        fitted_values(rows, INSERT, LIMIT)

    assert caught.value.code == "bad-argument"


def test_json_in_parquet_is_a_text(tmp_path: Path) -> None:
    """As in raw files."""
    pq.write_table(pa.table({"id": [1], "name": pa.array(['{"a": 1}']).cast(pa.json_())}), tmp_path / "rows.parquet")

    rows = together(EditReader(None, LIMIT).fitted(str(tmp_path / "rows.parquet"), INSERT), INSERT)

    assert rows.rows.to_pylist() == [{"id": 1, "name": '{"a": 1}'}]


def test_more_than_the_memory_allows_is_refused(tmp_path: Path) -> None:
    """Files by their size and by what they hold; values by what they hold."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": list(range(5000)), "name": ["x" * 50] * 5000}), path)

    for limit in (1000, path.stat().st_size + 1000):
        with pytest.raises(UsageError, match="more than"):
            EditReader(None, limit).fitted(str(path), INSERT)
    with pytest.raises(UsageError, match="more than"):
        fitted_values({"id": list(range(5000))}, INSERT, 1000)


def test_rows_of_a_folder_are_told_apart(tmp_path: Path) -> None:
    """Parts need not have the same columns; an error names the file and its row."""
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [3], "name": ["x"]}), tmp_path / "b.parquet")

    rows = together(EditReader(None, LIMIT).fitted(str(tmp_path), INSERT), INSERT)

    assert rows.rows.to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": None}, {"id": 3, "name": "x"}]
    assert (rows.said["name"].tolist(), rows.place(2)) == ([False, False, True], f"{tmp_path / 'b.parquet'}, row 0")


def test_an_edit_is_told_to_the_job() -> None:
    """And read from its arguments again."""
    edit = RowEdit("update", "s3://b/r.csv", upsert=True, stage=True)
    argv = [text for name, value in edit.arguments() for text in (f"--{name}", value)]

    assert read_row_edit(parse_arguments(argv)) == edit
    assert read_row_edit({"key": "id"}) is None
