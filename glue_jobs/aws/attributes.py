"""DynamoDB's typed attribute values as plain Python values, and back so that reading and writing one changes nothing.

S str · N int, float, or Decimal where a float would lose digits · BOOL bool · NULL None · B bytes · L list · M dict · sets tuple
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

MAX_WHOLE = 1e37  # DynamoDB keeps 38 digits


def plain_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item (attribute name → typed value) with plain values."""
    return {name: plain(value) for name, value in item.items()}


def plain(typed: Mapping[str, Any]) -> Any:
    """The plain value of one typed value."""
    ((kind, value),) = typed.items()
    if kind in ("S", "BOOL", "B"):
        return value
    if kind == "N":
        return _number(value)
    if kind == "NULL":
        return None
    if kind == "L":
        return [plain(part) for part in value]
    if kind == "M":
        return plain_item(value)
    if kind == "NS":
        return tuple(_number(part) for part in value)
    if kind in ("SS", "BS"):
        return tuple(value)
    raise ValueError(f"unknown DynamoDB type {kind!r}")


def typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: typed(value) for name, value in item.items()}


def typed(value: Any) -> dict[str, Any]:
    """The typed value of a plain one. A tuple is a set of texts, numbers or bytes, and so can't be empty."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, (int, float, Decimal)):
        return {"N": _digits(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"B": bytes(value)}
    if isinstance(value, list):
        return {"L": [typed(part) for part in value]}
    if isinstance(value, Mapping):
        return {"M": typed_item(value)}
    if isinstance(value, (tuple, set, frozenset)) and value:
        return _typed_set(tuple(value))
    raise TypeError(f"no DynamoDB type for {value!r}")


def _typed_set(values: tuple[Any, ...]) -> dict[str, Any]:
    if all(isinstance(value, str) for value in values):
        return {"SS": list(values)}
    if all(isinstance(value, bytes) for value in values):
        return {"BS": list(values)}
    return {"NS": [_digits(value) for value in values]}


def _number(digits: str) -> Any:
    exact = Decimal(digits)
    if exact == exact.to_integral_value():
        return int(exact)
    rounded = float(exact)
    return rounded if Decimal(repr(rounded)) == exact else exact


def _digits(value: Any) -> str:
    if isinstance(value, float):
        # Read back as an int, so all digits of it: the shortest form of a large float is another number.
        return str(int(value)) if value.is_integer() and abs(value) < MAX_WHOLE else repr(value)
    return str(value)
