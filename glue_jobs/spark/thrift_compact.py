"""Thrift's compact protocol, in which a Parquet file's footer is written: read as it stands, without knowing what its fields mean.

A struct that is written again has the same bytes, whatever a newer version of the format put into it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


@dataclass
class Struct:
    """A Thrift struct: (type, value) by field id. A list's value is the type of its items, and the items."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def keep(self, *ids: int) -> None:
        """Drop all other fields."""
        self.fields = {key: value for key, value in self.fields.items() if key in ids}

    def drop(self, *ids: int) -> None:
        for key in ids:
            self.fields.pop(key, None)

    def value(self, key: int, default: Any = None) -> Any:
        """Of a field that is no list."""
        return self.fields[key][1] if key in self.fields else default

    def children(self, key: int) -> list[Struct]:
        """The structs of a list field, or the one struct of a struct field; none where the field isn't there."""
        kind, value = self.fields.get(key, (LIST, (STRUCT, [])))
        if kind == STRUCT:
            return [value]
        structs: list[Struct] = value[1]
        return structs


def read_struct(data: bytes, start: int = 0) -> Struct:
    """The struct that begins there. ValueError for what a footer never has, IndexError for one that is cut off."""
    return _Reader(data, start).struct()


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def struct(self) -> Struct:
        result, key = Struct(), 0
        while True:
            header = self._byte()
            if header == 0:
                return result
            delta, kind = header >> 4, header & 0x0F
            key = key + delta if delta else _unzigzag(self._varint())
            result.fields[key] = (kind, self._value(kind, in_list=False))

    def _value(self, kind: int, in_list: bool) -> Any:
        if kind in (TRUE, FALSE):
            return self._byte() if in_list else kind == TRUE
        if kind == BYTE:
            return self._byte()
        if kind in (I16, I32, I64):
            return _unzigzag(self._varint())
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind in (LIST, SET):
            header = self._byte()
            size, element = header >> 4, header & 0x0F
            size = self._varint() if size == 15 else size
            return element, [self._value(element, in_list=True) for _ in range(size)]
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"Parquet footer: Thrift type {kind} is not expected there")

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        self.position += size
        return self.data[self.position - size : self.position]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def write_struct(node: Struct) -> bytes:
    """Its bytes, the fields in ascending order."""
    out, last = bytearray(), 0
    for key, (kind, value) in sorted(node.fields.items()):
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        delta = key - last
        out += bytes([delta << 4 | kind]) if delta <= 15 else bytes([kind]) + _varint(_zigzag(key))
        out += b"" if kind in (TRUE, FALSE) else _write_value(kind, value)
        last = key
    return bytes(out) + b"\0"


def _write_value(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE, BYTE):
        return bytes([value])
    if kind in (I16, I32, I64):
        return _varint(_zigzag(value))
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return write_struct(value)
    element, items = value
    size = len(items)
    header = bytes([size << 4 | element]) if size < 15 else bytes([0xF0 | element]) + _varint(size)
    return header + b"".join(_write_value(element, item) for item in items)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unzigzag(value: int) -> int:
    return value >> 1 if value & 1 == 0 else -(value + 1 >> 1)
