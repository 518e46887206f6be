"""Values that a person gives, from JSON, CSV or Python, as the Python values that a lake type has. Strict: nothing is lost in silence."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Callable

from glue_jobs.core.schema import decimal_parts

INTEGER_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
EXACT_FLOAT = 1 << 53  # whole numbers up to it are what a double says
GREATEST_FLOAT = 3.4028234663852886e38  # of the type float
SHOWN = 40  # characters of a value in an error
_WHOLE = re.compile(r"[+-]?\d{1,40}")
_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?")
_WORDS = {"nan": "nan", "infinity": "inf", "+infinity": "inf", "-infinity": "-inf", "inf": "inf", "+inf": "inf", "-inf": "-inf"}
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?",
)


def fit(kind: str, value: Any) -> Any:
    """The value as one of a lake type; None stays. Texts that say a value are taken; in a string column only texts are.

    Times without an offset are UTC, binary is hexadecimal where it is text. Raises ValueError for a value that the type has not.
    """
    if value is None:
        return None
    parts = decimal_parts(kind)
    try:
        return _decimal(value, *parts) if parts else _FITTING[kind](kind, value)
    except (ArithmeticError, TypeError, AttributeError) as error:  # of values that no type has: lists, objects, numbers without end
        raise ValueError(str(error)) from error


def shown(value: Any) -> str:
    """A value as an error shows it: short, on one line."""
    text = "null" if value is None else str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _boolean(_: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError


def _integer(kind: str, value: Any) -> int:
    number = _whole(value)
    if not -(1 << INTEGER_BITS[kind]) <= number < 1 << INTEGER_BITS[kind]:
        raise ValueError
    return number


def _whole(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_FLOAT:  # what pandas makes of numbers beside a null
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 40 and value == value.to_integral_value():
        return int(value)
    raise ValueError


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    number = _number(value)
    if not number.is_finite() or abs(number.adjusted()) > 400:
        raise ValueError
    # By its digits: arithmetic of Decimal rounds to those of the context.
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole, shift = int("".join(map(str, digits))), exponent + scale
    unscaled, lost = (whole * 10**shift, 0) if shift >= 0 else divmod(whole, 10**-shift)
    if lost or unscaled >= 10**precision:
        raise ValueError
    return Decimal((sign, tuple(map(int, str(unscaled))), -scale))


def _number(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise ValueError
    if isinstance(value, (int, Decimal)):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value))  # the digits that a person sees
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        try:
            return Decimal(value.strip())
        except InvalidOperation as error:
            raise ValueError from error
    raise ValueError


def _float(kind: str, value: Any) -> float:
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return float(_WORDS[value.strip().lower()])
    if isinstance(value, float):
        number = value
    else:
        exact = _number(value)
        number = float(exact)
        if isinstance(value, int) and int(number) != value:
            raise ValueError
        if number in (float("inf"), float("-inf")):
            raise ValueError
    if kind == "float" and GREATEST_FLOAT < abs(number) < float("inf"):
        raise ValueError
    return number


def _string(_: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    value.encode("utf-8")  # half a surrogate pair is no text
    return value


def _binary(_: str, value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return bytes.fromhex(value)
    raise ValueError


def _date(_: str, value: Any) -> date:
    if isinstance(value, datetime):
        if (value.hour, value.minute, value.second, value.microsecond) != (0, 0, 0, 0):
            raise ValueError
        return value.date()
    if isinstance(value, date):
        return value
    match = _DAY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError
    return date(*(int(part) for part in match.groups()))


def _timestamp(_: str, value: Any) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    match = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError
    year, month, day, hour, minute, second, fraction, _zone, sign, hours, minutes = match.groups(default="")
    digits = fraction.ljust(9, "0")
    if digits[6:] != "000":
        raise ValueError  # a timestamp has microseconds
    clock = time(int(hour or 0), int(minute or 0), int(second or 0), int(digits[:6]))
    moment = datetime.combine(date(int(year), int(month), int(day)), clock, timezone.utc)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return moment + offset if sign == "-" else moment - offset


_FITTING: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(INTEGER_BITS, _integer),
    "boolean": _boolean,
    "float": _float,
    "double": _float,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "timestamp": _timestamp,
}
