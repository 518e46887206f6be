"""The rows of CSV raw files with a header, by a reader of its own: RFC 4180 character by character, values by Python's types."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from glue_jobs.core.schema import decimal_parts
from tests.spark.independent import RawRow, Values, with_operations

NULLS = ("", "NULL")
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
TRUTHS = {**dict.fromkeys(("true", "t", "1", "y"), True), **dict.fromkeys(("false", "f", "0", "n"), False)}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
Field = tuple[str, bool]  # its text, whether it was quoted


def csv_rows(data: bytes, types: Mapping[str, str]) -> list[RawRow] | None:
    """The rows, or None where the file is not one with a header and values of these types: column → lake type."""
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
        records = [record for record in _records(text) if record != [("", False)]]
        return with_operations(_values(records, {"Op": "string", **types}))
    except (ValueError, EOFError, OSError, zlib.error, ArithmeticError):
        return None


def _values(records: list[list[Field]], types: Mapping[str, str]) -> Iterator[Values]:
    names = [name for name, _ in records[0]] if records else []
    if len(set(names)) < len(names) or set(names) - set(types):
        raise ValueError(f"a header: {names}")
    for record in records[1:]:
        if len(record) != len(names):
            raise ValueError(f"{len(names)} fields: {record}")
        pairs = [(name, text) for name, (text, quoted) in zip(names, record, strict=True) if quoted or text not in NULLS]
        yield {name: _value(types[name], text) for name, text in pairs}


def _records(text: str) -> Iterator[list[Field]]:
    """Of a text whose last line may lack its end."""
    at, record = 0, list[Field]()
    while at < len(text):
        if text[at] == '"':
            parts = []
            while True:
                end = text.index('"', at + 1)
                parts.append(text[at + 1 : end])
                at = end + 1
                if text[at : at + 1] != '"':
                    break
            field = ('"'.join(parts), True)
        else:
            found = re.compile(r'[^",\r\n]*').match(text, at)
            assert found is not None
            at, field = found.end(), (found[0], False)
        record.append(field)
        after = text[at : at + 1]
        if after == ",":
            at += 1
            if at == len(text):
                record.append(("", False))
        elif after in ("\n", "") or text[at : at + 2] == "\r\n":
            yield record
            record = []
            at += 2 if after == "\r" else 1
        else:
            raise ValueError(f"a field that ends before {after!r}")
    if record:
        yield record


def _value(kind: str, text: str) -> Any:
    """In the canonical form of tests.spark.independent. ValueError for a text that says no such value."""
    if kind == "string":
        return text
    if kind in BITS:
        _must(r"[+-]?\d+", text)
        if not -(2 ** (BITS[kind] - 1)) <= int(text) < 2 ** (BITS[kind] - 1):
            raise ValueError(text)
        return int(text)
    if kind in ("float", "double"):
        return "float", repr(_float(kind, text))
    if kind == "boolean":
        if text.lower() not in TRUTHS:
            raise ValueError(text)
        return "truth", TRUTHS[text.lower()]
    if kind == "binary":
        _must(r"(0x|\\x)?([0-9a-fA-F]{2})*", text)
        return bytes.fromhex(re.sub(r"^(0x|\\x)", "", text))
    if kind == "date":
        _must(r"\d{4}-\d{2}-\d{2}", text)
        return "day", date.fromisoformat(text).toordinal() - EPOCH.toordinal()
    if kind == "timestamp":
        return "moment", _moment(text)
    return _decimal(kind, text)


def _must(pattern: str, text: str) -> None:
    if not re.fullmatch(pattern, text, re.ASCII):
        raise ValueError(text)


def _float(kind: str, text: str) -> float:
    if re.fullmatch(r"(?i)nan|[+-]?inf(inity)?", text, re.ASCII):
        return float(text)
    _must(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
    number = float(text)
    found: float = struct.unpack("<f", struct.pack("<f", number))[0] if kind == "float" else number
    if found in (float("inf"), float("-inf")):
        raise ValueError(text)
    return found


def _decimal(kind: str, text: str) -> Decimal:
    precision, scale = decimal_parts(kind) or (0, 0)
    _must(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
    number = Decimal(text)
    sign, digits, exponent = number.as_tuple()
    whole = int("".join(map(str, digits))) * (-1 if sign else 1)
    assert isinstance(exponent, int)
    shift = exponent + scale
    if abs(shift) > 80 or (shift < 0 and whole % 10**-shift):
        raise ValueError(text)
    unscaled = whole * 10**shift if shift >= 0 else whole // 10**-shift
    if abs(unscaled) >= 10**precision:
        raise ValueError(text)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _moment(text: str) -> int:
    found = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,12}))?(Z|[+-]\d{2}(?::?\d{2})?)?", text, re.ASCII)
    if found is None:
        raise ValueError(text)
    day, clock, below, zone = found.groups()
    when = datetime.fromisoformat(f"{day}T{clock}+00:00")
    offset = timedelta()
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)
    micros = int((below or "").ljust(6, "0")[:6])
    return (when - EPOCH) // timedelta(microseconds=1) + micros - offset // timedelta(microseconds=1)
