"""CSV files are read with operations and row numbers as Parquet files are; what is wrong blocks the table and says where."""

from __future__ import annotations

import gzip
import io
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from glue_jobs.core.errors import LeaseLost, TableBlocked
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark import csv_bytes, csv_files
from glue_jobs.spark.arrow_types import LostDigits
from glue_jobs.spark.csv_bytes import CsvFile
from tests.spark.csv_texts import SHOP, WHERE, csv_file, csv_text, head_of, rows_of

NAME: Schema = (Column("id", "int"), Column("name", "string"))
ROWS = [("I", 1, "pen", 5), ("U", 2, None, None), ("D", 3, "", 0)]
READ = [(1, "pen", 5, 0, 0), (2, None, None, 1, 1), (3, "", 0, 2, 2)]


def refused(call: Callable[[], Any]) -> TableBlocked:
    with pytest.raises(TableBlocked) as caught:
        call()
    assert "s3://raw/dms/shop/orders/" in caught.value.message
    assert caught.value.todo
    return caught.value


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", [WHERE, WHERE + ".gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_rows_with_operations_and_numbers(newline: str, name: str, mark: bytes) -> None:
    """Without a header by places; packed or not, with either line end, with a byte order mark or not."""
    assert rows_of(csv_file(mark + csv_text(ROWS, newline=newline), name=name)) == READ


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_header_is_no_row(mark: bytes) -> None:
    """Columns are found by name in whatever order; one that is missing is null."""
    data = mark + csv_text([("Op", "qty", "id"), ("I", 5, 1), (None, 6, 2)])
    assert rows_of(csv_file(data)) == [(1, None, 5, 0, 0), (2, None, 6, 0, 1)]
    assert head_of(csv_file(data)).rows == 2


def test_the_last_line_may_lack_its_end() -> None:
    """RFC 4180 says so."""
    assert rows_of(csv_file(csv_text(ROWS)[:-1])) == READ


def test_quoted_fields_hold_anything() -> None:
    """Line ends, quotes, delimiters; \\r\\n stays as it is."""
    texts = ["a\nb", "a\r\nb", 'say "x"', ",", '"', '""', "\n", " blank ", "ü€😀", "\r"]
    data = csv_text([("I", at, text, 1) for at, text in enumerate(texts)])
    assert [row[1] for row in rows_of(csv_file(data))] == texts


def test_null_is_what_stands_unquoted() -> None:
    """The literal or nothing; in quotes both are texts."""
    data = b'I,1,NULL,1\nI,2,,2\nI,3,"",3\nI,4,"NULL",4\nI,5,null,5\nI,6,\\N,NULL\n'
    assert [row[1] for row in rows_of(csv_file(data))] == [None, None, "", "NULL", "null", "\\N"]
    assert [row[1] for row in rows_of(csv_file(data.replace(b",NULL\n", b",\\N\n"), null="\\N"))] == [
        "NULL",
        None,
        "",
        "NULL",
        "null",
        None,
    ]


def test_an_empty_field_may_be_a_text() -> None:
    """In a column of texts; in others it is null, quoted or not."""
    data = b'I,1,,1\nI,2,NULL,\nI,3,"",""\n,4,x,4\n'
    header = b"Op,id,name,qty\n"
    wanted = [(1, "", 1, 0, 0), (2, None, None, 0, 1), (3, "", None, 0, 2), (4, "x", 4, 0, 3)]
    assert rows_of(replace(csv_file(header + data), empty_is_text=True)) == wanted
    assert [row[1] for row in rows_of(csv_file(header + b'I,1,,1\nI,3,"",1\n'))] == [None, ""]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " "])
def test_another_delimiter(delimiter: str) -> None:
    """Then a comma is a character like any."""
    data = csv_text([("I", 1, "a,b", 2), ("I", 2, f"a{delimiter}b", 3)], delimiter=delimiter)
    assert [row[1] for row in rows_of(csv_file(data, delimiter=delimiter))] == ["a,b", f"a{delimiter}b"]


def test_deletes_may_carry_only_the_key() -> None:
    """The other fields are empty or null."""
    assert rows_of(csv_file(b"D,1,,\nD,2,NULL,NULL\n")) == [(1, None, None, 2, 0), (2, None, None, 2, 1)]


def test_the_commit_time() -> None:
    """By place and values; its least value and its steps back are those of the file."""
    lake = (Column("ts", "string"), *SHOP)
    times = ["2024-05-01 12:00:01.000000", "2024-05-01 12:00:00.000000", "2024-05-01 12:00:02.000000"]
    file = csv_file(csv_text([("I", when, at, "x", 1) for at, when in enumerate(times)]))
    head = head_of(file, lake, time="ts")
    assert head.columns.fields == ("Op", "ts", "id", "name", "qty")
    facts = head.facts_of("ts")
    assert (facts.times, facts.least, facts.backward) == (True, times[1], 1)
    assert [row[0] for row in rows_of(file, lake, time="ts")] == times


def test_before_images_and_the_change_sequence_by_header() -> None:
    """Images come in their column's type; the sequence is not taken up."""
    data = csv_text([("Op", "id", "name", "AR_H_CHANGE_SEQ", "BI_id"), ("U", 2, "x", "2024", 1), ("I", 3, "y", "2025", None)])
    found = rows_of(csv_file(data), columns=SHOP[:2], before=["id"])
    assert found == [(2, "x", 1, 0, 1), (3, "y", 0, 1, None)]
    head = head_of(csv_file(data))
    assert csv_files.csv_excluded(head) == ("AR_H_CHANGE_SEQ", "BI_id")
    assert head.columns.columns == SHOP[:2]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", [WHERE, WHERE + ".gz"])
def test_an_empty_file_has_no_rows(data: bytes, name: str) -> None:
    """That is fine."""
    assert rows_of(csv_file(data, name=name)) == []


def test_an_object_of_no_bytes_has_no_rows() -> None:
    """Also where its name says gzip."""
    assert rows_of(CsvFile(lambda: io.BytesIO(b""), WHERE + ".gz")) == []


def test_a_header_alone_has_no_rows() -> None:
    """And its columns are known."""
    head = head_of(csv_file(b"Op,id,name,qty\n"))
    assert (head.rows, head.columns.columns) == (0, SHOP)
    assert rows_of(csv_file(b"Op,id,name,qty\n")) == []


def test_blank_lines_are_no_rows_where_there_are_several_fields() -> None:
    """In a file of one field they are rows of null."""
    assert len(rows_of(csv_file(b"I,1,a,1\n\nI,2,b,2\n\n"))) == 2
    assert [row[0] for row in rows_of(csv_file(b"a\n\nb\n"), (Column("name", "string"),))] == ["a", None, "b"]


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("header", [b"", b"Op,id,name,qty\n"])
def test_blank_lines_before_the_first_row(monkeypatch: pytest.MonkeyPatch, header: bytes, newline: bytes, block: int) -> None:
    """They do not tell how many fields there are, however many they are."""
    for module in (csv_bytes, csv_files):
        monkeypatch.setattr(module, "ROW_LIMIT_BYTES", 100)
    monkeypatch.setattr(csv_bytes, "READ_BYTES", block)
    for blank in (b"\n", b"\n" * 300):
        data = (blank + header + b"I,1,a,1\nI,2,b,2\n").replace(b"\n", newline)
        assert rows_of(csv_file(data)) == [(1, "a", 1, 0, 0), (2, "b", 2, 0, 1)]


def test_a_file_of_one_field_may_begin_with_a_row_of_null() -> None:
    """Or have no other rows."""
    one = (Column("qty", "int"),)
    assert [row[0] for row in rows_of(csv_file(b"\n5\n"), one)] == [None, 5]
    assert [row[0] for row in rows_of(csv_file(b"\n\n"), one)] == [None, None]


def test_lines_behind_blank_ones_have_their_numbers() -> None:
    """A value, a row and a text that are wrong, in the first row that is none."""
    assert "line 3;" in refused(lambda: rows_of(csv_file(b"\n\nI,x,a,1\n"))).message
    assert "line 4;" in refused(lambda: rows_of(csv_file(b"\n\nI,1,a,1\nI,2,b\n"))).message
    assert "line 3;" in refused(lambda: rows_of(csv_file(b"\n\nI,1,\xff,1\n"))).message


def test_rows_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block grows with the longest row, and the second reading knows how far."""
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 100)
    long = 'x"\n' * 3000
    rows = [("I", at, "x" if at % 7 else long, at) for at in range(60)]
    file = csv_file(csv_text(rows))
    assert [row[1] for row in rows_of(file)] == [row[2] for row in rows]
    assert [row[-1] for row in rows_of(file)] == list(range(60))


def test_a_row_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has a bound, also where a whole file is one row."""
    for module in (csv_bytes, csv_files):
        monkeypatch.setattr(module, "ROW_LIMIT_BYTES", 10_000)
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 100)
    monkeypatch.setattr(csv_bytes, "READ_BYTES", 1000)
    assert refused(lambda: rows_of(csv_file(b'I,1,"' + b"x" * 50_000 + b'",1\n'))).code == "bad-raw-file"
    assert refused(lambda: rows_of(csv_file(b"I,1,a,1\n" + b'I,1,"' + b"x" * 50_000 + b'",1\n'))).code == "bad-raw-file"


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_pieces_of_any_size_say_the_same(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Quotes and line ends are told over the pieces' ends."""
    monkeypatch.setattr(csv_bytes, "READ_BYTES", block)
    texts = ['a"\nb', 'x""y\r\n,', "", "plain", '"', "\n\n"]
    data = csv_text([("I", at, text, 1) for at, text in enumerate(texts)], newline="\r\n")
    assert [row[1] for row in rows_of(csv_file(data))] == texts


# --- types

ALL: Schema = (
    Column("tiny", "tinyint"), Column("small", "smallint"), Column("whole", "int"), Column("big", "bigint"), Column("dec", "decimal(12,2)"),
    Column("wide", "decimal(38,10)"), Column("f", "float"), Column("d", "double"), Column("b", "boolean"), Column("day", "date"),
    Column("at", "timestamp"), Column("bin", "binary"), Column("text", "string"),
)  # fmt: skip


def value(kind: str, text: str) -> Any:
    """What a text says as a value of a type."""
    rows = rows_of(csv_file(b"I,1," + text.encode() + b"\n"), (Column("id", "int"), Column("v", kind)))
    return rows[0][1]


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("tinyint", "-128", -128),
        ("smallint", "+7", 7),
        ("int", "2147483647", 2147483647),
        ("bigint", "-9223372036854775808", -(2**63)),
        ("bigint", "007", 7),
        ("decimal(20,0)", "18446744073709551615", Decimal(18446744073709551615)),
        ("decimal(12,2)", "1.5", Decimal("1.50")),
        ("decimal(12,2)", "-.5", Decimal("-0.50")),
        ("decimal(12,2)", "1.500", Decimal("1.50")),
        ("decimal(12,2)", "1E+2", Decimal("100.00")),
        ("decimal(38,10)", "1234567890123456789012345678.0123456789", Decimal("1234567890123456789012345678.0123456789")),
        ("double", "1e308", 1e308),
        ("double", "0.1", 0.1),
        ("double", "Infinity", float("inf")),
        ("float", "-inf", float("-inf")),
        ("float", "1.5", 1.5),
        ("boolean", "true", True),
        ("boolean", "F", False),
        ("boolean", "1", True),
        ("boolean", "n", False),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("date", "9999-12-31", date(9999, 12, 31)),
        ("timestamp", "3018-05-01 10:11:12.123456", datetime(3018, 5, 1, 10, 11, 12, 123456, timezone.utc)),
        ("timestamp", "1969-12-31T23:59:59.5", datetime(1969, 12, 31, 23, 59, 59, 500000, timezone.utc)),
        ("timestamp", "2024-05-01 10:11:12", datetime(2024, 5, 1, 10, 11, 12, 0, timezone.utc)),
        ("timestamp", "2024-05-01 10:11:12+02:00", datetime(2024, 5, 1, 8, 11, 12, 0, timezone.utc)),
        ("timestamp", "2024-05-01 10:11:12.25+02", datetime(2024, 5, 1, 8, 11, 12, 250000, timezone.utc)),
        ("timestamp", "2024-05-01 10:11:12Z", datetime(2024, 5, 1, 10, 11, 12, 0, timezone.utc)),
        ("binary", "00FFab", b"\x00\xff\xab"),
        ("binary", "0x00ff", b"\x00\xff"),
        ("binary", '""', b""),
        ("string", "10:11:12", "10:11:12"),
        ("string", " x ", " x "),
    ],
)
def test_values(kind: str, text: str, wanted: Any) -> None:
    """Texts as DMS writes them, and their like."""
    assert value(kind, text) == wanted


def test_no_number_is_a_double() -> None:
    """NaN, which differs from itself."""
    assert value("double", "NaN") != value("double", "nan")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tinyint", "128"), ("int", "1.0"), ("int", "0x10"), ("int", " 1"), ("int", "1 "), ("int", '""'), ("bigint", "9223372036854775808"),
        ("int", "abc"), ("decimal(12,2)", "1.005"), ("decimal(4,2)", "100.00"), ("decimal(4,2)", "NaN"), ("decimal(4,2)", "1,5"),
        ("double", "1e999"), ("float", "1e39"), ("double", "abc"), ("double", "0x1p3"), ("double", '""'), ("boolean", "2"),
        ("boolean", "yes!"),
        ("date", "2024-02-30"), ("date", "2024-5-1"), ("date", "2024-05-01 00:00:00"), ("date", "0000-00-00"), ("timestamp", "2024-05-01"),
        ("timestamp", "2024-05-01 24:00:00"), ("timestamp", "2024-05-01 10:11"), ("timestamp", "01.05.2024 10:11:12"), ("binary", "0"),
        ("binary", "xy"),
    ],
)  # fmt: skip
def test_a_value_that_the_type_has_not_is_named(kind: str, text: str) -> None:
    """File, line, column, value; nothing is rounded."""
    shown = text if "," not in text else f'"{text}"'
    data = b'I,1,\nI,"2",NULL\nI,3,' + shown.encode() + b"\n"
    error = refused(lambda: rows_of(csv_file(data), (Column("id", "int"), Column("v", kind))))
    assert error.code == "csv-value"
    assert f"column 'v' is no {kind}" in error.message
    assert "20240501-120000000.csv, line 3" in error.message
    assert f"found: {text.strip(chr(34))!r}" in error.message


def test_lines_are_those_of_the_file() -> None:
    """A row begins behind the line ends within rows before it, a header and blank lines; packed files have lines too."""
    rows = [("Op", "id", "name", "qty"), ("I", 1, "a\nb\r\nc", 5), ("I", 2, "x", 5)]
    data = csv_text(rows) + b"\n" + csv_text([("I", 3, "\n", "many")])
    assert ".gz, line 7" in refused(lambda: rows_of(csv_file(data, name=WHERE + ".gz"))).message


def test_a_long_value_is_shortened() -> None:
    """Errors are for people."""
    error = refused(lambda: rows_of(csv_file(csv_text([("I", "9" * 5000, "a", 1)]))))
    assert len(error.message) < 400


def test_digits_below_the_microsecond_are_counted() -> None:
    """And cut off, downwards."""
    lost = LostDigits()
    data = b"I,1,1969-12-31 23:59:59.1234567\nI,2,2024-05-01 10:00:00.123456000\nI,3,NULL\n"
    rows = rows_of(csv_file(data), (Column("id", "int"), Column("at", "timestamp")), lost=lost)
    assert [row[1].microsecond for row in rows[:2]] == [123456, 123456]
    assert lost == {"at": 1}


@pytest.mark.parametrize("block", [1, 20, 1000])
def test_digits_below_the_microsecond_are_noticed_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """The look at the file tells whether it is worth counting them."""
    monkeypatch.setattr(csv_bytes, "READ_BYTES", block)
    lake = (Column("id", "int"), Column("at", "timestamp"))
    assert head_of(csv_file(b"I,1,2024-05-01 10:00:00.1234567\n"), lake).fine_times
    assert not head_of(csv_file(b"I,1,2024-05-01 10:00:00.123456000\n"), lake).fine_times


def test_all_types_beside_each_other() -> None:
    """A row of nulls too; the columns read may be some of them, in another order, and wider than the file's were."""
    row = ("I", -1, 2, 3, 4, "5.25", "6.5", 7.5, 8.5, "true", "2024-05-01", "2024-05-01 10:11:12.5", "00ff", "x")
    file = csv_file(csv_text([row, ("I", *[None] * 13)]))
    assert rows_of(file, ALL)[1][:13] == (None,) * 13
    assert rows_of(file, ALL, columns=(Column("text", "string"), Column("tiny", "bigint")))[0] == ("x", -1, 0, 0)


# --- what is wrong with a file


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"I,1,a,1\nI,2,b\n", "bad-csv-row", "line 2"),
        (b"I,1,a,1\nI,2,b,1,5\n", "bad-csv-row", "found: 5: I,2,b,1,5"),
        (b'I,1,"a\nb",1\n"I",2\n', "bad-csv-row", "line 3"),
        (b'I,1,a,1\nI,2,"b,1\nI,3,c,1\n', "bad-csv-row", "line 2; expected: its closing quote"),
        (b'I,1,a,1\nI,2,b"c,1\n', "bad-csv-row", "line 2"),
        (b'I,1,"a"b,1\n', "bad-csv-row", "line 1"),
        (b'I,1,a ""b"",1\n', "bad-csv-row", "line 1"),
        (b"I,1,a,1\rI,2,b,1\n", "bad-csv-row", "carriage return"),
        (b"I,1,a,1\nI,2,\xff,1\n", "bad-text", "line 2"),
        (b"\xff\xfeI\x00,\x001\x00\n\x00", "bad-text", "not UTF-8"),
        (b"Op,id,name,qty\nI,1,a,1\nX,2,b,1\n", "bad-operation", "line 3"),
        (b"PAR1\x00\x01\x02", "csv-columns", "field"),
    ],
)
def test_no_csv(data: bytes, code: str, said: str) -> None:
    """Each with the line of the row that is wrong."""
    error = refused(lambda: rows_of(csv_file(data)))
    assert (error.code, said in error.message) == (code, True), error.message


@pytest.mark.parametrize("data", [b'I,1,"a"b,1\n', b'I,1,a"b,1\n', b'I,1,"a\n,1\n', b"I,1,a,1\rI,2,b,1\n", b"I,1,a,1\r,"])
@pytest.mark.parametrize("block", [1, 2, 5, 8, 9])
def test_no_csv_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, data: bytes, block: int) -> None:
    """What is wrong may lie on both sides of a piece's end."""
    monkeypatch.setattr(csv_bytes, "READ_BYTES", block)
    error = refused(lambda: rows_of(csv_file(data)))
    assert (error.code, ", line 1;" in error.message) == ("bad-csv-row", True), error.message


def test_a_text_that_is_not_utf_8_names_its_column() -> None:
    """The scan looks at some columns only; the others tell when they are read."""
    assert "column 'name'" in refused(lambda: rows_of(csv_file(b"I,1,a,1\nI,2,\xff,1\n"))).message


@pytest.mark.parametrize("cut", [1, 5, 12, 20])
def test_damaged_gzip(cut: int) -> None:
    """Cut off, or no gzip at all."""
    packed = gzip.compress(csv_text(ROWS * 50, newline="\n"))
    for stored in (packed[:-cut], packed[:20] + b"\x00\x00" + packed[22:], b"Op,id\n"):
        error = refused(lambda stored=stored: rows_of(CsvFile(lambda: io.BytesIO(stored), WHERE + ".gz")))
        assert error.code == "bad-raw-file"


def test_gzip_is_told_by_its_bytes() -> None:
    """A name can be wrong; no text in UTF-8 begins so."""
    assert rows_of(CsvFile(lambda: io.BytesIO(gzip.compress(csv_text(ROWS))), WHERE)) == READ


def test_errors_of_the_storage_pass_through() -> None:
    """The file may be fine."""

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1000:
                raise LeaseLost("lost")
            return super().read(500 if size is None or size > 500 else size)

    data = csv_text(ROWS * 100)
    with pytest.raises(LeaseLost):
        rows_of(CsvFile(lambda: Broken(data), WHERE))


def test_damage_ends_in_an_error_or_in_rows() -> None:
    """Bytes flipped, cut and added: never a hang, nor an error without words."""
    chance = random.Random(7)
    good = csv_text([("I", at, 'a"b\n' if at % 3 else "plain", at) for at in range(30)])
    for _ in range(600):
        data = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            what, at = chance.randrange(3), chance.randrange(len(data))
            if what == 0:
                data[at] = chance.randrange(256)
            elif what == 1:
                del data[at:]
                data += b"" if data else b"x"
            else:
                data[at:at] = bytes([chance.choice(b'",\n\r0\x00\xff')])
        found = _rows_or_error(bytes(data))
        assert isinstance(found, list) or (WHERE in found.message and found.code and found.todo)


def _rows_or_error(data: bytes) -> list[Any] | TableBlocked:
    try:
        return rows_of(csv_file(data))
    except TableBlocked as error:
        return error


# --- files of several tables

MIXED = [
    ("I", "orders", "shop", 1, "a", 1),
    ("I", "stores", "shop", 7),
    ("U", "orders", "shop", 1, "b\n", 2),
    ("I", "orders", "other", "x", "y", "z"),
    ("D", "orders", "shop", 1, None, None),
]


def test_the_rows_of_one_table_of_several() -> None:
    """With their numbers in the file; other tables may have any columns."""
    file = csv_file(csv_text(MIXED), only=("shop", "orders"))
    assert rows_of(file) == [(1, "a", 1, 0, 0), (1, "b\n", 2, 1, 2), (1, None, None, 2, 4)]
    assert rows_of(csv_file(csv_text(MIXED), only=("shop", "none"))) == []
    assert rows_of(
        csv_file(csv_text(MIXED), only=("other", "orders")), (Column("a", "string"), Column("b", "string"), Column("c", "string"))
    ) == [("x", "y", "z", 0, 3)]


@pytest.mark.parametrize("name", [WHERE, f"{WHERE}.gz"])
def test_bytes_are_those_of_the_rows_unpacked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """However they are stored, and of one table of several those of its rows; a look that had to be begun anew counts them once."""
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 16)
    own = csv_text(row for row in MIXED if row[1:3] == ("orders", "shop"))

    assert head_of(csv_file(csv_text(MIXED), name=name, only=("shop", "orders"))).taken_bytes == len(own)
    plain = csv_text([("I", 1, "a" * 50, 1)])
    assert head_of(csv_file(plain, name=name)).taken_bytes == len(plain)


def test_names_of_tables_are_compared_whole() -> None:
    """Also such as must be quoted; a name is no pattern, and no part of another."""
    rows = [("I", 'a,"b"', "shop", 1), ("I", "a.b", "shop", 2), ("I", "axb", "shop", 3), ("I", "A.b", "shop", 4)]
    lake = (Column("id", "int"),)
    assert rows_of(csv_file(csv_text(rows), only=("shop", 'a,"b"')), lake) == [(1, 0, 0)]
    assert rows_of(csv_file(csv_text(rows), only=("shop", "a.b")), lake) == [(2, 0, 1)]
    assert rows_of(csv_file(b'"I","a.b","shop",2\n', only=("shop", "a.b")), lake) == [(2, 0, 0)]


@pytest.mark.parametrize("block", [1, 5, 64])
def test_rows_of_one_table_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """A row may begin in one piece and end in another."""
    monkeypatch.setattr(csv_bytes, "READ_BYTES", block)
    file = csv_file(csv_text(MIXED), only=("shop", "orders"))
    assert [row[-1] for row in rows_of(file)] == [0, 2, 4]


def test_what_is_wrong_in_a_file_of_several_tables_has_its_line() -> None:
    """Of the whole file."""
    bad_value = csv_text([*MIXED, ("I", "orders", "shop", "x", "a", 1)])
    assert ", line 7;" in refused(lambda: rows_of(csv_file(bad_value, only=("shop", "orders")))).message
    too_few = csv_text([*MIXED, ("I", "orders", "shop", 1)])
    assert ", line 7;" in refused(lambda: rows_of(csv_file(too_few, only=("shop", "orders")))).message
    nothing = csv_text([*MIXED, ("I", "orders")])
    error = refused(lambda: rows_of(csv_file(nothing, only=("shop", "orders"))))
    assert "line 7" in error.message
    assert "op,table,schema,values" in error.message


def test_what_was_found_can_be_sent_to_a_task() -> None:
    """As all heads."""
    head = head_of(csv_file(csv_text(ROWS)))
    assert pickle.loads(pickle.dumps(head)) == head
