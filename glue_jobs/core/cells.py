"""Values that a person gives, from JSON, CSV or Python, as the Python values that a lake type has. Strict: nothing is lost in silence."""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Callable

from glue_jobs.core.schema import decimal_parts

INTEGER_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
EXACT_FLOAT = 1 << 53  # whole numbers up to it are what a double says
SHOWN = 40  # characters of a value in an error
_NULLS = ("NaTType", "NAType")  # pandas' own, by the names of their types: it need not be installed
_WHOLE = re.compile(r"[+-]?\d{1,40}")
_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?")
_WORDS = {"nan": "nan", "infinity": "inf", "+infinity": "inf", "-infinity": "-inf", "inf": "inf", "+inf": "inf", "-inf": "-inf"}
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?",
)


def fit(kind: str, value: Any) -> Any:
    """The value as one of a lake type; None and pandas' nulls are None. Texts that say a value are taken; a string column takes only texts.

    Times without an offset are UTC, binary is hexadecimal where it is text. Raises ValueError for a value that the type has not.
    """
    if value is None or type(value).__name__ in _NULLS:
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
    number = value if isinstance(value, float) else float(_number(value))
    held = _single(number) if kind == "float" else number
    if isinstance(value, float) and (held == value or math.isnan(value)):
        return value
    exact = _number(value)
    if math.isinf(held) or (exact and not held):
        raise ValueError  # beyond the greatest, or so small that nothing would be left
    is_whole = exact == exact.to_integral_value()
    if is_whole and exact != held and (isinstance(value, int) or exact not in _written(kind, held)):
        raise ValueError
    return held if number.is_integer() and not is_whole else number  # a fraction that a double has not either


def _single(number: float) -> float:
    """The nearest of the type float; OverflowError beyond its greatest."""
    single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return single


def _written(kind: str, held: float) -> list[Decimal]:
    """What texts say that mean this number in the fewest digits that tell it from its neighbours: not exactly it, 1e23 for one."""
    texts = [repr(held)]
    if kind == "float":
        shorter = (f"{held:.{digits}g}" for digits in range(6, 10))
        texts.append(next(text for text in shorter if _single(float(text)) == held))
    return [Decimal(text) for text in texts]


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
        _refuse_nanoseconds(value)
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
        _refuse_nanoseconds(value)
        return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    match = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError
    year, month, day, hour, minute, second, fraction, _zone, sign, hours, minutes = match.groups(default="")
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError
    digits = fraction.ljust(9, "0")
    if digits[6:] != "000":
        raise ValueError  # a timestamp has microseconds
    clock = time(int(hour or 0), int(minute or 0), int(second or 0), int(digits[:6]))
    moment = datetime.combine(date(int(year), int(month), int(day)), clock, timezone.utc)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return moment + offset if sign == "-" else moment - offset


def _refuse_nanoseconds(value: datetime) -> None:
    """pandas' times are Python's, with nanoseconds beside the microseconds that a timestamp has."""
    if getattr(value, "nanosecond", 0):
        raise ValueError


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
