"""The bytes of a CSV raw file: unpacked, held against RFC 4180, and, of a file with the rows of several tables, those of one.

Arrow takes a quote that is never closed, or one in the middle of a field, without a word; so its bytes are looked at before it gets them.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from glue_jobs.core.errors import TableBlocked, blocked

READ_BYTES = 4 * 1024 * 1024
ROW_LIMIT_BYTES = 256 * 1024 * 1024  # of one row: what is longer is taken for damage, so that memory has a bound
NEW_COPY = "let DMS write the file again (reload the table), or skip it: `dmslake unblock PATH --skip-file NAME`"
_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some programs put before a text
_GZIP = b"\x1f\x8b"
_LF, _CR, _QUOTE = 10, 13, 34
_FINE = re.compile(rb":\d\d\.\d{6}\d{0,5}[1-9]")
_FINE_LENGTH = 32  # more than such a text has
_FIELD_LIMIT = (1 << 31) - 1


@dataclass(frozen=True)
class CsvFile:
    """A CSV raw file. open: its bytes as they are stored, from the start, each time anew. where: s3:// address, for messages.

    null: the unquoted text that stands for null. only: (schema, table), of a file whose rows are those of several tables and begin with
    operation, table, schema: the others are passed over. None for a file of one table. empty_is_text: as of core.csv_form.
    """

    open: Callable[[], BinaryIO]
    where: str
    delimiter: str = ","
    null: str = "NULL"
    only: tuple[str, str] | None = None
    empty_is_text: bool = False

    def stream(self, rows: list[int] | None = None, seen: Seen | None = None) -> io.RawIOBase:
        """The text's bytes, checked. rows: takes up each row's number in the file, where `only` leaves some out; seen: what is noticed."""
        blocks = _checked(_blocks(self) if seen is None else _watched(_blocks(self), seen), self)
        if self.only is not None:
            blocks = _rows_of(blocks, self, [] if rows is None else rows)
        return BlockStream(blocks if seen is None else _counted(blocks, seen))

    def first_record(self) -> tuple[str, ...] | None:
        """The fields of the first record, None if there is none. Quotes are taken off, so that null can't be told here.

        A blank line is a record only in a file of one field; else the first record is behind it.
        """
        blocks = _checked(_blocks(self), self)
        source = blocks if self.only is None else _rows_of(blocks, self, [])
        blank = None
        for line, fields in _records(_bounded(source, self), self):
            if not fields:
                blank = ("",)
            elif blank and len(fields) == 1:
                return blank
            else:
                return tuple(_text(field, self.where, line) for field in fields)
        return blank

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """(line on which it begins, from 1; fields with one character a byte) of each record, blank lines without a field. Slow: for
        errors only. Of all tables; nothing is checked."""
        return _records(_blocks(self), self)


@dataclass
class Seen:
    """What is noticed of a text while it is read. fine: something reads like a time with digits below the microsecond. taken_bytes: of the
    rows that are taken, unpacked."""

    fine: bool = False
    taken_bytes: int = 0


class BlockStream(io.RawIOBase):
    """Blocks of bytes as a file that is read from start to end."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the end: Arrow takes what one call gives for a block."""
        parts, have = [self._rest], len(self._rest)
        while size is None or size < 0 or have < size:
            block = next(self._blocks, None)
            if block is None:
                break
            parts.append(block)
            have += len(block)
        data = b"".join(parts) if len(parts) > 1 else parts[0]
        taken = data if size is None or size < 0 else data[:size]
        self._rest = data[len(taken) :]
        return taken

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


def _blocks(file: CsvFile) -> Iterator[bytes]:
    """The text's bytes in pieces. Packed or not is told by the first bytes: no text in UTF-8 begins like gzip."""
    source: Any = file.open()
    if isinstance(source, io.RawIOBase):
        source = io.BufferedReader(source, READ_BYTES)
    start = source.read(len(_GZIP))
    source.seek(0)
    if not start:
        return
    named_gzip = file.where.endswith(".gz")
    if named_gzip and start != _GZIP:
        raise _bad(file, "the file is not packed by gzip, as its name says", "bytes 1f 8b first", start.hex(" "))
    packed = gzip.GzipFile(fileobj=source) if start == _GZIP else source
    first = True
    while True:
        try:
            block = packed.read(READ_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _bad(file, "the file can't be unpacked", "a whole gzip file", str(error)[:200]) from error
        if not block:
            return
        if first and block.startswith(_MARK):
            block = block[len(_MARK) :]
        first = False
        if block:
            yield block


def _watched(blocks: Iterator[bytes], seen: Seen) -> Iterator[bytes]:
    """The same blocks."""
    end = b""
    for block in blocks:
        seen.fine = seen.fine or bool(_FINE.search(end + block[:_FINE_LENGTH]) or _FINE.search(block))
        end = (end + block)[-_FINE_LENGTH:]
        yield block


def _counted(blocks: Iterator[bytes], seen: Seen) -> Iterator[bytes]:
    """The same blocks."""
    for block in blocks:
        seen.taken_bytes += len(block)
        yield block


def _checked(blocks: Iterator[bytes], file: CsvFile) -> Iterator[bytes]:
    """The same blocks, if quotes and line ends stand where RFC 4180 has them; whether they do is told by how many quotes come before."""
    inside, before, line, opened = 0, _LF, 1, 0
    delimiter = ord(file.delimiter)
    for block in blocks:
        data = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(data == _QUOTE)
        opens, closes = quotes[inside::2], quotes[1 - inside :: 2]
        previous = np.where(opens > 0, data[opens - 1], before)
        wrong = opens[~np.isin(previous, (delimiter, _LF, _CR, _QUOTE))]
        following = closes[closes + 1 < len(data)]
        late = following[~np.isin(data[following + 1], (delimiter, _LF, _CR, _QUOTE))]
        if not inside and before == _QUOTE and data[0] not in (delimiter, _LF, _CR, _QUOTE):
            late = np.concatenate([[0], late])
        returns = _lone_returns(data, quotes, inside, before)
        for places, what in (
            (wrong, "a quote stands in a field that does not begin with one"),
            (late, "a quote that closes a field is followed by more of it"),
            (returns, "a carriage return outside quotes has no line feed behind it"),
        ):
            if len(places):
                where = line + int(np.count_nonzero(data[: int(places[0])] == _LF))
                raise bad_row(file, where, what, "fields as RFC 4180 has them (DMS endpoint setting Rfc4180=true)", "")
        inside = (inside + len(quotes)) % 2
        if inside and len(opens):
            opened = line + int(np.count_nonzero(data[: int(opens[-1])] == _LF))
        line += int(np.count_nonzero(data == _LF))
        before = int(data[-1])
        yield block
    if inside:
        raise bad_row(file, opened, "a quote is never closed", "its closing quote before the file's end", "the file's end")


def _lone_returns(data: Any, quotes: Any, inside: int, before: int) -> Any:
    """Where a carriage return outside quotes is not followed by a line feed; at a block's end it is told with the next one."""
    returns = np.flatnonzero(data == _CR)
    returns = returns[(inside + np.searchsorted(quotes, returns)) % 2 == 0]
    inner = returns[returns + 1 < len(data)]
    lone = inner[data[inner + 1] != _LF]
    return np.concatenate([[0], lone]) if before == _CR and not inside and data[0] != _LF else lone


def _rows_of(blocks: Iterator[bytes], file: CsvFile, rows: list[int]) -> Iterator[bytes]:
    """The bytes of those records that begin with an operation, the table and the schema; `rows` takes up their numbers in the file."""
    assert file.only is not None
    schema, table = (_spellings(name, file.delimiter) for name in file.only)
    start_of_row = _row_start(file.delimiter)
    rest, number, line = b"", 0, 1
    for block in _then_end(blocks):
        data = rest + (block or b"")
        taken, start = [], 0
        for end in _record_ends(data, last=block is None):
            if data[start:end].strip(b"\r\n"):
                found = start_of_row.match(data, start, end)
                if found is None:
                    line += data.count(b"\n", 0, start)
                    raise bad_row(
                        file, line, "a row has no operation, table and schema", "op,table,schema,values…", data[start:end].decode("latin-1")
                    )
                if found[1] in table and found[2] in schema:
                    taken.append(data[start:end])
                    rows.append(number)
                number += 1
            start = end
        line += data.count(b"\n", 0, start)
        rest = data[start:]
        if len(rest) > ROW_LIMIT_BYTES:
            raise _too_long(file)
        if taken:
            yield b"".join(taken)


def _then_end(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield from blocks
    yield None


def _record_ends(data: bytes, last: bool) -> list[int]:
    """Where records end: behind a line feed that an even number of quotes precedes. last: what is left is a record too."""
    array = np.frombuffer(data, np.uint8)
    quotes, feeds = np.flatnonzero(array == _QUOTE), np.flatnonzero(array == _LF)
    ends: list[int] = (feeds[np.searchsorted(quotes, feeds) % 2 == 0] + 1).tolist()
    return [*ends, len(data)] if last and (ends[-1] if ends else 0) < len(data) else ends


def _row_start(delimiter: str) -> re.Pattern[bytes]:
    """Operation, table and schema; groups 1 and 2 are the last two as they are written."""
    sign = re.escape(delimiter).encode()
    field = rb'("(?:[^"]|"")*"|[^"\r\n' + sign + rb"]*)"
    return re.compile(field.replace(b"(", b"(?:", 1) + sign + field + sign + field + rb"(?:" + sign + rb"|\r?\n|\Z)")


def _spellings(name: str, delimiter: str) -> frozenset[bytes]:
    """How a name can stand in a field."""
    quoted = '"' + name.replace('"', '""') + '"'
    plain = [] if any(sign in name for sign in ('"', "\r", "\n", delimiter)) else [name]
    return frozenset(text.encode() for text in (quoted, *plain))


def _bounded(blocks: Iterator[bytes], file: CsvFile) -> Iterator[bytes]:
    """Blocks up to the most that a record may have, blank lines before it aside."""
    size = 0
    for block in blocks:
        yield block
        size += len(block if size else block.lstrip(b"\r\n"))
        if size > ROW_LIMIT_BYTES:
            raise _too_long(file)


def _records(blocks: Iterator[bytes], file: CsvFile) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_FIELD_LIMIT)  # of the whole process; 128 KiB are too few for a LOB
    lines = io.TextIOWrapper(io.BufferedReader(BlockStream(blocks), READ_BYTES), "latin-1", newline="\n")
    reader = csv.reader(lines, delimiter=file.delimiter)
    line = 1
    for fields in reader:
        yield line, fields
        line = reader.line_num + 1


def _text(field: str, where: str, line: int) -> str:
    raw = field.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise bad_text(where, line, "", raw) from error


# --- errors


def _bad(file: CsvFile, what: str, expected: str, found: str) -> TableBlocked:
    return blocked("bad-raw-file", what, where=f"file {file.where}", expected=expected, found=found, todo=NEW_COPY)


def _too_long(file: CsvFile) -> TableBlocked:
    return _bad(file, "a row is longer than a row can be", f"at most {ROW_LIMIT_BYTES} bytes", "no end of the row in so many")


def bad_row(file: CsvFile, line: int, what: str, expected: str, found: str) -> TableBlocked:
    """A record that is no row. line: on which it begins, from 1."""
    return blocked("bad-csv-row", what, where=f"file {file.where}, line {line}", expected=expected, found=shortened(found), todo=NEW_COPY)


def bad_text(where: str, line: int, column: str, raw: bytes) -> TableBlocked:
    """A field that is not UTF-8."""
    what = f"a value of column {column!r} is not UTF-8" if column else "the first row is not UTF-8"
    return blocked(
        "bad-text", what, where=f"file {where}, line {line}", expected="text in UTF-8", found=f"{raw[:40]!r}", todo=NEW_COPY
    )  # fmt: skip


def shortened(text: str, most: int = 120) -> str:
    """A text of a raw file as an error shows it: on one line."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"
