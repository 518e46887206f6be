"""A Parquet footer as DMS writes it, made from one that pyarrow wrote.

pyarrow can't write a file without logical types. They matter: a timestamp that has only the converted type is read as
UTC-adjusted by Spark, one that pyarrow wrote is not. So the footer (Thrift compact protocol) is read, the fields that
DMS's footer lacks are dropped, and it is written again; the pages stay as they are.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_LOGICAL_TIME = 7
_MAGIC = b"PAR1"


@dataclass
class _Struct:
    """A Thrift struct: (type, value) by field id, in ascending order."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def keep(self, *ids: int) -> None:
        self.fields = {key: value for key, value in self.fields.items() if key in ids}

    def children(self, key: int) -> list[_Struct]:
        """The structs of a list field, or the one struct of a struct field; none where the field isn't there."""
        kind, value = self.fields.get(key, (_LIST, (_STRUCT, [])))
        if kind == _STRUCT:
            return [value]
        structs: list[_Struct] = value[1]
        return structs


def as_dms_writes(parquet: bytes) -> bytes:
    """The file with a footer of format 1.0 by `AWS`: converted types only, no metadata, no indexes."""
    length = struct.unpack("<I", parquet[-8:-4])[0]
    start = len(parquet) - 8 - length
    footer = _Reader(parquet, start).struct()
    _strip(footer)
    out = _write_struct(footer)
    return parquet[:start] + out + struct.pack("<I", len(out)) + _MAGIC


def _strip(footer: _Struct) -> None:
    """Field ids are those of parquet.thrift, up to what format 1.0 knew."""
    footer.keep(1, 2, 3, 4, 6)  # not: key-value metadata, column orders
    footer.fields[1] = (_I32, 1)
    footer.fields[6] = (_BINARY, b"AWS")
    for element in footer.children(2):
        if any(_LOGICAL_TIME in logical.fields for logical in element.children(10)):
            # pyarrow leaves out the converted type of local times: 7 is TIME_MILLIS (INT32), 8 TIME_MICROS (INT64)
            element.fields[6] = (_I32, 7 if element.fields[1] == (_I32, 1) else 8)
        element.keep(1, 2, 3, 4, 5, 6, 7, 8)  # not: field id, logical type
    for group in footer.children(4):
        group.keep(1, 2, 3)
        for chunk in group.children(1):
            chunk.keep(1, 2, 3)  # not: column and offset index
            for column in chunk.children(3):
                column.keep(*range(1, 13))
                for statistics in column.children(12):
                    statistics.keep(1, 2, 3, 4)  # min_value and max_value need column orders


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def struct(self) -> _Struct:
        result, key = _Struct(), 0
        while True:
            header = self._byte()
            if header == 0:
                return result
            delta, kind = header >> 4, header & 0x0F
            key = key + delta if delta else _unzigzag(self._varint())
            result.fields[key] = (kind, self._value(kind, in_list=False))

    def _value(self, kind: int, in_list: bool) -> Any:
        if kind in (_TRUE, _FALSE):
            return self._byte() if in_list else kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return _unzigzag(self._varint())
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            header = self._byte()
            size, element = header >> 4, header & 0x0F
            size = self._varint() if size == 15 else size
            return element, [self._value(element, in_list=True) for _ in range(size)]
        if kind == _STRUCT:
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


def _write_struct(node: _Struct) -> bytes:
    out, last = bytearray(), 0
    for key, (kind, value) in sorted(node.fields.items()):
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value else _FALSE
        delta = key - last
        out += bytes([delta << 4 | kind]) if delta <= 15 else bytes([kind]) + _varint(_zigzag(key))
        out += b"" if kind in (_TRUE, _FALSE) else _write_value(kind, value)
        last = key
    return bytes(out) + b"\0"


def _write_value(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE, _BYTE):
        return bytes([value])
    if kind in (_I16, _I32, _I64):
        return _varint(_zigzag(value))
    if kind == _DOUBLE:
        return bytes(value)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _STRUCT:
        return _write_struct(value)
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
