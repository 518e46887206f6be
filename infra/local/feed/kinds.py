"""The types of columns that DMS writes: how a value looks in Parquet and in CSV, and what the lake has of it."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

WORDS = "lamp|tent|Café|knife|Steel Bottle|Zürich|naïve|東京|😀 emoji|notebook, dotted|monitor arm".split("|")
AWKWARD = (
    "", "NULL", "null", "-", "0", "true", 'say "hi"', "a,b;c\td", "two\nlines", "carriage\r\nreturn", " blanks ", "é" * 400, "'",
    "\\N", "D", "I,U",
)  # fmt: skip
REGIONS = ("north", "south", "east/west", "é=%", "NULL")
TENANTS = ("acme", "Acme", "a,b", "Zürich GmbH")


@dataclass(frozen=True)
class Kind:
    """A type of column. arrow: in DMS's Parquet; lake: the lake's name of its type; lake_arrow: that type as readers have it.

    make: a value of the source, never None; to_lake: such a value as the lake has it; to_text: as it stands in CSV. `grows`: the kind
    that an ALTER TABLE may make of it, '' for none.
    """

    arrow: pa.DataType
    lake: str
    lake_arrow: pa.DataType
    make: Callable[[random.Random], Any]
    to_lake: Callable[[Any], Any] = lambda value: value
    to_text: Callable[[Any], str] = str
    grows: str = ""


def _whole(low: int, high: int) -> Callable[[random.Random], int]:
    def make(chance: random.Random) -> int:
        return chance.choice((low, high, max(low, -1), 0, 1, chance.randint(low, high), chance.randint(max(low, -100), min(high, 100))))

    return make


def _digits(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    limit = 10**precision - 1

    def make(chance: random.Random) -> Decimal:
        number = chance.choice((limit, -limit, 0, 1, chance.randint(-limit, limit), chance.randint(-10_000, 10_000)))
        # From its digits: scaleb would round to the context's 28.
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))

    return make


def _single(value: float) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def _measure(chance: random.Random) -> float:
    return chance.choice((0.0, -0.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), float("nan"), chance.gauss(0, 1000)))


def _ratio(chance: random.Random) -> float:
    return chance.choice((0.0, -0.0, 0.1, float("inf"), float("nan"), chance.gauss(0, 1000)))


def _text(chance: random.Random) -> str:
    return chance.choice(AWKWARD) if chance.random() < 0.4 else f"{chance.choice(WORDS)} {chance.randint(1, 999)}"


def _far(chance: random.Random) -> date:
    return chance.choice((date(1, 1, 1), date(1582, 10, 14), date(1969, 12, 31), date(2024, 2, 29), date(3018, 1, 2), date(9999, 12, 31)))


def _moment(unit: timedelta) -> Callable[[random.Random], datetime]:
    """Times without a zone, whole in `unit`, as a source database has them."""

    def make(chance: random.Random) -> datetime:
        day = datetime.combine(_far(chance), time())
        return day + unit * chance.randint(0, timedelta(days=1) // unit - 1)

    return make


def _clock(chance: random.Random) -> time:
    return time(chance.randint(0, 23), chance.randint(0, 59), chance.randint(0, 59), chance.choice((0, 500_000, 7_000)))


def _clock_text(value: time) -> str:
    return value.isoformat("milliseconds") if value.microsecond else value.isoformat("seconds")


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=timezone.utc)


def _moment_text(value: datetime) -> str:
    return value.isoformat(" ", "microseconds")


def _flag_text(value: bool) -> str:
    return "true" if value else "false"


def _plain_number(value: Decimal) -> str:
    return format(value, "f")


def _decimal(precision: int, scale: int, grows: str = "") -> Kind:
    kind = pa.decimal128(precision, scale)
    return Kind(kind, f"decimal({precision},{scale})", kind, _digits(precision, scale), to_text=_plain_number, grows=grows)


_UTC = pa.timestamp("us", tz="UTC")

KINDS: dict[str, Kind] = {
    "int8": Kind(pa.int8(), "tinyint", pa.int8(), _whole(-(2**7), 2**7 - 1)),
    "int16": Kind(pa.int16(), "smallint", pa.int16(), _whole(-(2**15), 2**15 - 1)),
    "int32": Kind(pa.int32(), "int", pa.int32(), _whole(-(2**31), 2**31 - 1), grows="int64"),
    "int64": Kind(pa.int64(), "bigint", pa.int64(), _whole(-(2**63), 2**63 - 1)),
    "uint8": Kind(pa.uint8(), "smallint", pa.int16(), _whole(0, 2**8 - 1)),
    "uint16": Kind(pa.uint16(), "int", pa.int32(), _whole(0, 2**16 - 1)),
    "uint32": Kind(pa.uint32(), "bigint", pa.int64(), _whole(0, 2**32 - 1)),
    "uint64": Kind(pa.uint64(), "decimal(20,0)", pa.decimal128(20, 0), _whole(0, 2**64 - 1), Decimal),
    "float32": Kind(pa.float32(), "float", pa.float32(), lambda chance: _single(_ratio(chance)), to_text=repr, grows="float64"),
    "float64": Kind(pa.float64(), "double", pa.float64(), _measure, to_text=repr),
    "decimal(12,2)": _decimal(12, 2, grows="decimal(18,2)"),
    "decimal(18,2)": _decimal(18, 2),
    "decimal(38,10)": _decimal(38, 10),
    "boolean": Kind(pa.bool_(), "boolean", pa.bool_(), lambda chance: chance.random() < 0.5, to_text=_flag_text),
    # As PostgreSQL's booleans come, unless MapBooleanAsBoolean is set.
    "boolean-text": Kind(pa.string(), "string", pa.string(), lambda chance: chance.choice(("true", "false"))),
    "text": Kind(pa.string(), "string", pa.string(), _text),
    "region": Kind(pa.string(), "string", pa.string(), lambda chance: chance.choice(REGIONS)),
    "tenant": Kind(pa.string(), "string", pa.string(), lambda chance: chance.choice(TENANTS)),
    # A LOB: the row comes with null first, and as an update with the value right after.
    "lob": Kind(pa.string(), "string", pa.string(), lambda chance: f"{chance.choice(WORDS)} " * chance.randint(1, 300)),
    "binary": Kind(
        pa.binary(), "binary", pa.binary(), lambda chance: chance.choice((b"", b"\0\xff", chance.randbytes(20))), to_text=bytes.hex
    ),
    "date": Kind(pa.date32(), "date", pa.date32(), _far, to_text=date.isoformat),
    "day": Kind(pa.date32(), "date", pa.date32(), lambda chance: date(2024, chance.randint(1, 3), 15), to_text=date.isoformat),
    "time": Kind(pa.time32("ms"), "string", pa.string(), _clock, _clock_text, _clock_text),
    "timestamp-ms": Kind(pa.timestamp("ms"), "timestamp", _UTC, _moment(timedelta(milliseconds=1)), _utc, _moment_text),
    "timestamp-us": Kind(pa.timestamp("us"), "timestamp", _UTC, _moment(timedelta(microseconds=1)), _utc, _moment_text),
}
"""By name. A newcomer adds an entry, and a column of it in `simulation`."""
