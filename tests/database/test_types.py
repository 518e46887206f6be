"""Every column type comes out of SELECT and out of the binlog as the same column with the same value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from infra.local.capture import SetupError, capture
from tests.database.files import RawFiles
from tests.database.server import MariaDb

US = pa.timestamp("us", "UTC")

# column type, SQL of a value, type in the file, value there
CASES = [
    ("tinyint(1)", "-1", pa.int8(), -1),
    ("tinyint unsigned", "255", pa.uint8(), 255),
    ("smallint unsigned", "65535", pa.uint16(), 65535),
    ("mediumint", "-8388608", pa.int32(), -8388608),
    ("mediumint unsigned", "16777215", pa.uint32(), 16777215),
    ("int unsigned zerofill", "4294967295", pa.uint32(), 4294967295),
    ("bigint", "-9223372036854775808", pa.int64(), -(2**63)),
    ("bigint unsigned", "18446744073709551615", pa.uint64(), 2**64 - 1),
    ("decimal(38,38)", "-0." + "9" * 38, pa.decimal128(38, 38), Decimal("-0." + "9" * 38)),
    ("decimal(38,0)", "9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
    ("decimal(65,30)", "-" + "9" * 35 + "." + "1" * 30, pa.string(), "-" + "9" * 35 + "." + "1" * 30),
    ("decimal(65,30)", "0.1", pa.string(), "0.1" + "0" * 29),
    ("float", "16777217", pa.float32(), 16777216.0),
    ("float", "0.1", pa.float32(), 0.10000000149011612),
    ("double", "0.1", pa.float64(), 0.1),
    ("date", "'0001-01-01'", pa.date32(), date(1, 1, 1)),
    ("date", "'0000-00-00'", pa.date32(), None),
    ("date", "'2024-00-10'", pa.date32(), None),
    ("datetime(6)", "'9999-12-31 23:59:59.999999'", US, datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("datetime(1)", "'1500-02-28 01:02:03.4'", US, datetime(1500, 2, 28, 1, 2, 3, 400000)),
    ("datetime", "'0000-00-00 00:00:00'", US, None),
    ("timestamp(5) null", "'2024-07-01 12:00:00.12345'", US, datetime(2024, 7, 1, 12, 0, 0, 123450)),
    ("timestamp null", "0", US, None),
    ("time", "'-838:59:59'", pa.string(), "-838:59:59"),
    ("time", "'00:00:00'", pa.string(), "00:00:00"),
    ("time(6)", "'-00:00:00.000001'", pa.string(), "-00:00:00.000001"),
    ("time(3)", "'-01:02:59.500'", pa.string(), "-01:02:59.500"),
    ("time(2)", "'838:59:59.99'", pa.string(), "838:59:59.99"),
    ("time(1)", "'-10:00:00.5'", pa.string(), "-10:00:00.5"),
    ("year", "2155", pa.int16(), 2155),
    ("year", "0000", pa.int16(), 0),
    ("char(10)", "'ab  '", pa.string(), "ab"),
    ("varchar(300)", "'ab  '", pa.string(), "ab  "),
    ("varchar(20) collate utf8mb4_uca1400_ai_ci", "'😀é'", pa.string(), "😀é"),
    ("varchar(20) character set latin1", "'café €'", pa.string(), "café €"),
    ("varchar(20) character set cp1251", "'Привет'", pa.string(), "Привет"),
    ("longtext", "repeat('ä', 70000)", pa.string(), "ä" * 70000),
    ("json", """'{"a": "é"}'""", pa.string(), '{"a": "é"}'),
    ("enum('a','ü')", "'ü'", pa.string(), "ü"),
    ("enum('a','ü')", "''", pa.string(), ""),
    ("set('a','b','c')", "'c,a'", pa.string(), "a,c"),
    ("set('a','b','c')", "''", pa.string(), ""),
    ("binary(4)", "x'0100'", pa.binary(), b"\1\0\0\0"),
    ("binary(4)", "''", pa.binary(), b"\0\0\0\0"),
    ("varbinary(400)", "x'ff00'", pa.binary(), b"\xff\0"),
    ("varbinary(4)", "''", pa.binary(), b""),
    ("tinyblob", "''", pa.binary(), b""),
    ("mediumblob", "repeat(x'00ff', 50000)", pa.binary(), b"\0\xff" * 50000),
    ("bit(1)", "1", pa.bool_(), True),
    ("bit(1)", "0", pa.bool_(), False),
    ("bit(8)", "b'10000001'", pa.binary(), b"\x81"),
    ("bit(12)", "b'100000000011'", pa.binary(), b"\x08\x03"),
    ("bit(64)", "b'1'", pa.binary(), b"\0" * 7 + b"\1"),
    ("point", "ST_GeomFromText('POINT(1 2)')", pa.binary(), bytes(4) + b"\1" + b"\1\0\0\0" + bytes(6) + b"\xf0\x3f" + bytes(7) + b"\x40"),
    ("int as (1 + 1) virtual", None, pa.int32(), 2),
    ("int as (1 + 2) stored", None, pa.int32(), 3),
]  # fmt: skip


def _write_twice(connection: Any, raw: RawFiles, mariadb: MariaDb) -> None:
    """The row 1 into the full load, the same values as row 2 into the binlog; row 3 is all null where it can be."""
    given = [(f"c{index}", value) for index, (_, value, *_) in enumerate(CASES) if value is not None]
    names, values = ", ".join(name for name, _ in given), ", ".join(value for _, value in given)
    with connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")  # dates that are none are let in
        columns = ", ".join(f"c{index} {kind}" for index, (kind, *_) in enumerate(CASES))
        cursor.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
        cursor.execute(f"INSERT INTO t (id, {names}) VALUES (1, {values})")
        capture(mariadb.url(raw.database), raw.url, s3_client=raw.client, full_load=True)
        cursor.execute(f"INSERT INTO t (id, {names}) VALUES (2, {values})")
        cursor.execute("INSERT INTO t (id) VALUES (3)")
    capture(mariadb.socket_url(raw.database), raw.url, s3_client=raw.client)


def test_full_load_and_binlog_give_the_same_column_and_value(connection: Any, raw: RawFiles, mariadb: MariaDb) -> None:
    """Each type's column and value in the load file and in the CDC file are the expected ones."""
    _write_twice(connection, raw, mariadb)

    load, cdc = (raw.file("t", name).read() for name in raw.names("t"))

    assert load.schema.equals(cdc.schema)
    rows = [row for row in raw.rows("t") if row["id"] != 3]
    for index, (kind, _, type_, value) in enumerate(CASES):
        assert cdc.schema.field(f"c{index}").type == type_, kind
        assert [row[f"c{index}"] for row in rows] == [value, value], kind


def test_null_is_null_in_every_type(connection: Any, raw: RawFiles, mariadb: MariaDb) -> None:
    """A row without values comes out of the binlog as nulls, which an empty set is not."""
    _write_twice(connection, raw, mariadb)

    (row,) = [row for row in raw.rows("t") if row["id"] == 3]

    assert {row[f"c{index}"] for index, (_, value, *_) in enumerate(CASES) if value is not None} == {None}


def test_a_column_type_without_mapping_is_refused_by_name(connection: Any, raw: RawFiles, mariadb: MariaDb) -> None:
    """The column and its type are in the message, with the way to leave its table out."""
    connection.query("CREATE TABLE t (id int PRIMARY KEY, u uuid)")

    with pytest.raises(SetupError, match=r"column u: type uuid .*--tables"):
        capture(mariadb.url(raw.database), raw.url, s3_client=raw.client, full_load=True)
