"""Rows that a person gives: every format, every difference named, and the keys of both kinds held against each other."""

from __future__ import annotations

import io
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import Correction, read_correction, split_key
from glue_jobs.core.schema import Column
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.given_rows import GivenRows, Piece, Reader, given_rows

LINES = (Column("id", "bigint"), Column("order_id", "int"), Column("note", "string"))
ALL = (
    Column("b", "boolean"), Column("i", "int"), Column("d", "decimal(10,2)"), Column("f", "double"), Column("s", "string"),
    Column("x", "binary"), Column("day", "date"), Column("at", "timestamp"),
)  # fmt: skip
MANY = 1 << 30


def reader(limit: int = MANY, s3: Any = None) -> Reader:
    return Reader(s3, limit)


def parquet(path: Path, **columns: pa.Array) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def refused(read: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read()
    return caught.value


# --- formats


def test_csv_has_the_types_of_the_table(tmp_path: Path) -> None:
    """Nothing is null, "" is an empty text; a text may hold commas, quotes and line ends; columns are bound by name."""
    text = (
        'at,s,b,i,d,f,x,day\n2024-05-01T12:30:15.25Z,"a,""b""\nc",true,-1,12.30,NaN,00ff,2024-05-01\n'
        '2024-05-01 12:30:15+02:00,"",false,,5,-0.0,,\n2024-05-01,ä,,,,,,0001-01-01\n,,,,,,,\n'
    )

    (piece,) = reader().rows(written(tmp_path / "rows.csv", "\ufeff" + text), ALL)

    rows = [tuple(row.values()) for row in piece.rows.to_pylist()]
    assert piece.rows.schema == arrow_schema(ALL)
    assert repr(rows[0][3]) == "nan"
    assert rows[0][:3] + rows[0][4:] == (
        True, -1, Decimal("12.30"), 'a,"b"\nc', b"\x00\xff", date(2024, 5, 1), datetime(2024, 5, 1, 12, 30, 15, 250_000, timezone.utc)
    )  # fmt: skip
    assert rows[1] == (False, None, Decimal("5.00"), 0.0, "", None, None, datetime(2024, 5, 1, 10, 30, 15, tzinfo=timezone.utc))
    assert rows[2] == (None, None, None, None, "ä", None, date(1, 1, 1), datetime(2024, 5, 1, tzinfo=timezone.utc))
    assert rows[3] == (None,) * 8


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('name\na\n\n""\nb\n', ["a", None, "", "b"]),
        ("name\na\n\nb", ["a", None, "b"]),
        ("name\r\na\r\n\r\nb\r\n", ["a", None, "b"]),
        ("name\n\na\n\n", [None, "a", None]),
        ('name\n"a\n\nb"\n', ["a\n\nb"]),
        ("name\n", []),
        ("name", []),
    ],
)
def test_a_csv_of_one_column_has_its_nulls(tmp_path: Path, text: str, values: list[str | None]) -> None:
    """As `read` writes them: a blank line. A file's last line end begins no row."""
    schema = (Column("name", "string"),)

    (piece,) = reader().rows(written(tmp_path / "rows.csv", text), schema)

    assert piece.rows["name"].to_pylist() == values


def test_a_blank_line_among_the_keys_is_a_null(tmp_path: Path) -> None:
    """Which no key has; of more columns it is no row."""
    schema = (Column("id", "bigint"), Column("name", "string"))
    lines = {"one": "name\na\n\nb\n", "two": "id,name\n1,a\n\n2,b\n\n"}
    one, two = (reader().keys(written(tmp_path / f"{name}.csv", text), ("name",), schema, "t") for name, text in lines.items())

    error = refused(lambda: given_rows(("name",), schema, ("id",), one, []))

    assert (error.code, "'name' is null" in error.message, "one.csv, row 1" in error.message) == ("given-null-key", True, True)
    assert given_rows(("name",), schema, ("id",), two, []).keys.table["name"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("column", "text"),
    [("b", "yes"), ("i", "3000000000"), ("i", "1.5"), ("d", "1.234"), ("f", "much"), ("x", "0g"), ("day", "1.5.2024"), ("at", "noon")],
)
def test_a_csv_value_of_another_type_is_named(tmp_path: Path, column: str, text: str) -> None:
    """With file, row, column, what was expected and what was found."""
    (schema,) = [(item,) for item in ALL if item.name == column]
    where = written(tmp_path / "rows.csv", f"{column}\n{text}\n")

    error = refused(lambda: reader().rows(where, schema))

    assert error.code == "given-value"
    for part in (where, "row 0", repr(column), schema[0].type, text):
        assert part in error.message


def test_json_in_parquet_is_a_text(tmp_path: Path) -> None:
    """As in raw files."""
    columns = {"id": pa.array([1]), "order_id": pa.array([7]), "note": pa.array(['{"a": 1}']).cast(pa.json_())}

    (piece,) = reader().rows(parquet(tmp_path / "rows.parquet", **columns), LINES)

    assert piece.rows.to_pylist() == [{"id": 1, "order_id": 7, "note": '{"a": 1}'}]


def test_parquet_integers_may_be_of_any_width(tmp_path: Path) -> None:
    """If no value is lost by it; one that is lost is named."""
    columns = {"id": pa.array([1], pa.int32()), "order_id": pa.array([7], pa.uint64()), "note": pa.array(["x"], pa.large_string())}

    (piece,) = reader().rows(parquet(tmp_path / "rows.parquet", **columns), LINES)
    error = refused(
        lambda: reader().rows(parquet(tmp_path / "big.parquet", **{**columns, "order_id": pa.array([2**40], pa.int64())}), LINES)
    )

    assert piece.rows.to_pylist() == [{"id": 1, "order_id": 7, "note": "x"}]
    assert (error.code, "row 0" in error.message, "1099511627776" in error.message) == ("given-value", True, True)


def test_every_difference_of_columns_is_listed(tmp_path: Path) -> None:
    """Missing, unknown and of another type, all in one message."""
    where = parquet(tmp_path / "rows.parquet", id=pa.array(["1"]), order_id=pa.array([1.0]), more=pa.array([1]))

    error = refused(lambda: reader().rows(where, LINES))

    assert error.code == "given-columns"
    for part in ("'id' is string, the table has bigint", "'order_id' is double", "'note' (string) is missing", "'more' is no column"):
        assert part in error.message


def test_digits_below_the_microsecond_are_not_cut(tmp_path: Path) -> None:
    """Rows that a person gives are taken as they are or not at all."""
    schema = (Column("at", "timestamp"),)
    fine = parquet(tmp_path / "fine.parquet", at=pa.array([1_000], pa.timestamp("ns")))
    lost = parquet(tmp_path / "lost.parquet", at=pa.array([1_000, 1_001], pa.timestamp("ns")))

    assert reader().rows(fine, schema)[0].rows.num_rows == 1
    assert "row 1" in refused(lambda: reader().rows(lost, schema)).message


def test_deletes_need_the_key_and_may_have_more(tmp_path: Path) -> None:
    """Other columns of the table are left aside, whatever they hold; unknown ones are refused."""
    where = parquet(tmp_path / "keys.parquet", note=pa.array([1.5]), order_id=pa.array([3], pa.int64()))

    (piece,) = reader().keys(where, ("order_id",), LINES, "shop/lines")

    assert piece.rows.to_pylist() == [{"order_id": 3}]
    assert "'note' (string) is missing" not in refused(lambda: reader().keys(where, ("id",), LINES, "t")).message
    assert refused(lambda: reader().keys(where, ("nope",), LINES, "t")).code == "unknown-column"
    assert (
        refused(lambda: reader().keys(parquet(tmp_path / "o.parquet", oder_id=pa.array([3])), ("id",), LINES, "t")).code == "given-columns"
    )


def test_a_folder_of_parquet_files_is_read_whole(tmp_path: Path) -> None:
    """As Spark writes it: other files beside them are passed over; each file is named by itself."""
    for name in ("part-1.parquet", "part-0.parquet", "_part.parquet"):
        parquet(tmp_path / name, order_id=pa.array([len(name)], pa.int32()))
    written(tmp_path / "_SUCCESS", "")

    pieces = reader().keys(str(tmp_path), ("order_id",), LINES, "t")

    assert [Path(piece.name).name for piece in pieces] == ["part-0.parquet", "part-1.parquet"]


def test_s3_is_read_like_this_machine(in_process: Clients) -> None:
    """A file, a folder, and a folder whose name looks like a file's; what is not there is said."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"order_id": pa.array([5], pa.int32())}), sink)
    for key in ("given/keys.parquet", "given/folder/a.parquet", "given/folder/deep/b.parquet", "given/spark.parquet/part-0.parquet"):
        in_process.s3.put_object(Bucket="raw", Key=key, Body=sink.getvalue())
    in_process.s3.put_object(Bucket="raw", Key="given/keys.csv", Body=b"order_id\n6\n")

    def read(key: str) -> list[tuple[str, int]]:
        pieces = reader(s3=in_process.s3).keys(f"s3://raw/{key}", ("order_id",), LINES, "t")
        return [(piece.name, piece.rows["order_id"][0].as_py()) for piece in pieces]

    assert read("given/keys.parquet") == [("s3://raw/given/keys.parquet", 5)]
    assert read("given/keys.csv") == [("s3://raw/given/keys.csv", 6)]
    assert read("given/folder") == read("given/folder/") == [("s3://raw/given/folder/a.parquet", 5)]
    assert read("given/spark.parquet") == [("s3://raw/given/spark.parquet/part-0.parquet", 5)]
    assert refused(lambda: read("given/none.parquet")).code == "given-not-read"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("keys.parquet", b"PAR1 no PAR1"),
        ("keys.csv", b""),
        ("keys.csv", b"order_id\n1\n2,3\n"),
        ("keys.csv", b'order_id\n"1\n'),
        ("keys.csv", b"order_id\n\xff\n"),
        ("keys.txt", b"order_id\n1\n"),
    ],
)
def test_what_can_not_be_read_is_named(tmp_path: Path, name: str, data: bytes) -> None:
    """Damaged, empty, ragged, unfinished, not UTF-8, of an unknown kind."""
    where = written(tmp_path / name, data)

    error = refused(lambda: reader().keys(where, ("order_id",), LINES, "t"))

    assert error.code in ("given-not-read", "given-columns", "given-value")
    assert where in error.message
    assert refused(lambda: reader().keys(str(tmp_path / "none.csv"), ("order_id",), LINES, "t")).code == "given-not-read"


def test_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    """By the size of the file, or by that of the rows in it, all files together."""
    one = parquet(tmp_path / "one.parquet", note=pa.array(["x" * 1000] * 1000), order_id=pa.array([1] * 1000, pa.int32()))
    text = written(tmp_path / "one.csv", "order_id\n" + "1\n" * 1000)

    assert refused(lambda: reader(100_000).rows(one, LINES[1:])).code == "too-much-given"
    assert refused(lambda: reader(100).keys(text, ("order_id",), LINES, "t")).code == "too-much-given"
    assert len(reader(100_000).keys(one, ("order_id",), LINES, "t")) == 1


# --- both kinds together


def given(deletes: list[int | None], updates: list[tuple[Any, ...]], primary_key: tuple[str, ...] = ("id",)) -> GivenRows:
    keys = pa.table({"order_id": pa.array(deletes, pa.int32())})
    rows = pa.Table.from_pylist([dict(zip(("id", "order_id", "note"), row, strict=True)) for row in updates], arrow_schema(LINES))
    return given_rows(
        ("order_id",), LINES, primary_key, [Piece("deletes.csv", keys)], [Piece("a.csv", rows.slice(0, 1)), Piece("b.csv", rows.slice(1))]
    )


def test_keys_are_taken_once_deletes_first() -> None:
    """Each row of the updates knows the place of its key."""
    rows = given([5, 4, 5], [(1, 9, "a"), (2, 8, "b"), (3, 9, "c")])

    assert rows.keys.table["order_id"].to_pylist() == [5, 4, 9, 8]
    assert (rows.deleted, rows.key_of.tolist()) == (2, [2, 3, 2])


@pytest.mark.parametrize(
    ("deletes", "updates", "code", "words"),
    [
        ([1, None], [], "given-null-key", "deletes.csv, row 1"),
        ([], [(1, 9, "a"), (2, 8, "b"), (3, None, "c")], "given-null-key", "'order_id' is null; where: file b.csv, row 1"),
        ([], [(1, 9, "a"), (None, 8, "b")], "given-null-key", "primary key column 'id' is null; where: file b.csv, row 0"),
        ([7, 8], [(1, 9, "a"), (2, 8, "b")], "given-twice", "the key 8 is both to be deleted and updated; where: file b.csv, row 0"),
        ([], [(1, 9, "a"), (2, 8, "b"), (1, 7, "c")], "given-twice", "the primary key 1; where: file b.csv, row 1"),
    ],
)  # fmt: skip
def test_rows_that_contradict_each_other_are_refused(deletes: list[Any], updates: list[Any], code: str, words: str) -> None:
    """Nulls in a key, a key of both kinds, a primary key that comes twice; file and row are named."""
    error = refused(lambda: given(deletes, updates))

    assert error.code == code
    assert words in error.message


def test_a_table_without_primary_key_takes_equal_rows() -> None:
    """They count as often as they are given."""
    assert given([], [(1, 9, "a"), (1, 9, "a")], ()).updates.num_rows == 2


def test_the_arguments_of_the_job_say_the_correction() -> None:
    """Column names may hold commas and quotes; what says nothing is refused."""
    correction = Correction(("a,b", 'say "x"', "c"), "s3://x/d.csv", "", strict=True)

    assert read_correction(dict(correction.arguments())) == correction
    assert split_key(" a, b ") == ("a", "b")
    for wrong in (
        {"key": "a"},
        {"deletes": "d.csv"},
        {"deletes": "d.csv", "key": "a,a"},
        {"deletes": "d", "key": "a", "strict": "perhaps"},
    ):
        assert refused(lambda wrong=wrong: read_correction(wrong)).code == "bad-argument"
