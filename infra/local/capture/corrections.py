"""Where mysql-replication 1.0 reads a value wrong, read right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pymysqlreplication.row_event import RowsEvent

_MICROSECONDS_DIGITS = 6


def apply_corrections() -> None:
    """Replace the reader of TIME values: the original takes a negative time's fraction for a positive one."""
    RowsEvent._RowsEvent__read_time2 = _read_time


def _read_time(event: Any, column: Any) -> timedelta:
    """TIME is one big-endian number with an offset that makes it unsigned: whole part in 24 bits, then the fraction."""
    fraction_bytes = (column.fsp + 1) // 2
    fraction_bits = 8 * fraction_bytes
    number = int.from_bytes(event.packet.read(3 + fraction_bytes), "big") - (1 << (23 + fraction_bits))
    whole, fraction = divmod(abs(number), 1 << fraction_bits)
    time = timedelta(
        hours=whole >> 12 & 0x3FF,
        minutes=whole >> 6 & 0x3F,
        seconds=whole & 0x3F,
        microseconds=fraction * 10 ** (_MICROSECONDS_DIGITS - 2 * fraction_bytes),
    )
    return -time if number < 0 else time
