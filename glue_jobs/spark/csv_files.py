"""DMS's CSV files: what their columns are, and their rows in the lake's types with operation and row number, as dms_files has those of
Parquet.

A file is read twice, both times as a stream: `scan_csv` looks at every row's form and counts them, `read_csv` gives the rows. What is wrong
with a value or a row is refused with file, line (on which the row begins, from 1), column and value.

A file with the rows of several tables (`op,table,schema,values…`, no header) is read with `CsvFile.only` = (schema, table): then only
the rows of that table come, their `__row` is their number among all rows of the file, and `CsvHead.rows` counts them alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from glue_jobs.core.csv_columns import LEAD, CsvColumns, Facts, Table
from glue_jobs.core.dms_columns import BEFORE_IMAGES, OP_COLUMN, before_images, excluded_columns
from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Schema, find
from glue_jobs.spark.arrow_types import LostDigits, first_failing, null_where, shown
from glue_jobs.spark.csv_bytes import NEW_COPY, ROW_LIMIT_BYTES, CsvFile, Seen, bad_row, bad_text
from glue_jobs.spark.csv_values import digits_lost, from_texts
from glue_jobs.spark.dms_files import has_value, looks_like_timestamp
from glue_jobs.spark.row_marks import BEFORE, OPERATIONS, ROW, RowMarks

BLOCK_BYTES = 4 * 1024 * 1024
_LONGER = 8  # times, if a row is longer than a block
_STRADDLES = "straddl"  # in what Arrow says then


@dataclass(frozen=True)
class CsvHead:
    """What a look at a whole CSV file says. columns: of its fields; has_header: whether the first record is one; rows: without it.

    block_bytes: in pieces of so many bytes the file can be read; facts: of the values of some fields; fine_times: there may be digits
    below the microsecond; taken_bytes: of the rows, unpacked.
    """

    columns: CsvColumns
    has_header: bool
    rows: int
    block_bytes: int
    facts: Mapping[int, Facts] = field(default_factory=dict)
    fine_times: bool = False
    taken_bytes: int = 0

    def facts_of(self, name: str) -> Facts:
        """The facts of a column that was looked at."""
        place = self.columns.place(name)
        return Facts() if place is None else self.facts.get(place, Facts())


def scan_csv(file: CsvFile, reading: Reading, patterns: Sequence[str] = BEFORE_IMAGES, with_images: bool = False) -> CsvHead:
    """What the file's columns are, and how many rows it has. patterns: of the names of before images; with_images: look at their values.

    Raises TableBlocked for what is no CSV, for rows of another length, and where columns or types can't be told.
    """
    table = Table(reading, file.where, patterns)
    lead = len(LEAD) if file.only else 0
    first = file.first_record()
    if first is not None:
        renamed = reading.renamed(file.where, first, patterns)
        first = tuple(renamed.get(name, name) for name in first)
    header = first is not None and not file.only and table.is_header(first)
    if first is None and file.only and not (reading.lake or reading.form.schema):
        return CsvHead(CsvColumns((), ()), False, 0, BLOCK_BYTES)  # nothing of a new table: its types are not wanted yet
    if first is None:
        return CsvHead(table.columns(None, False, {}, 0), False, 0, BLOCK_BYTES)
    pieces = _Pieces(file, tuple(f"field {place + 1}" for place in range(len(first))), header, BLOCK_BYTES)
    wanted = table.fields_to_look_at(first, header, lead, with_images)
    while True:
        seen = Seen()
        try:
            rows, facts = _looked_at(pieces.batches(wanted, file.stream(seen=seen)))
            break
        except _RowTooLongError:
            if pieces.block_bytes >= ROW_LIMIT_BYTES:
                raise _too_long(file) from None
            pieces = replace(pieces, block_bytes=min(pieces.block_bytes * _LONGER, ROW_LIMIT_BYTES))
    columns = table.columns(first, header, facts, rows, lead)
    return CsvHead(columns, header, rows, pieces.block_bytes, facts, seen.fine, seen.taken_bytes)


def read_csv(
    file: CsvFile,
    head: CsvHead,
    *,
    columns: Schema,
    before: Sequence[str] = (),
    lost: LostDigits | None = None,
    patterns: Sequence[str] = BEFORE_IMAGES,
) -> Iterator[pa.Table]:
    """The rows of the file in their order, in pieces, as `dms_files.read_dms` gives those of a Parquet file. head: of `scan_csv`."""
    if not head.rows:
        return
    fields = head.columns.fields
    theirs = before_images(fields, patterns)
    images = {BEFORE + column: theirs[column] for column in before if column in theirs}
    kinds = {column.name: column.type for column in columns if column.name in fields}
    kinds.update({theirs[name]: column.type for name in before if name in theirs and (column := find(columns, name)) is not None})
    op_column = OP_COLUMN if OP_COLUMN in fields else None
    own = tuple(replace(column, name=BEFORE + column.name) for column in columns if column.name in before)
    marks = RowMarks(file.where, op_column, images, own)
    texts = _Texts(file, head)
    row = 0
    numbers: list[int] = []
    wanted = [fields.index(name) for name in (*kinds, op_column) if name]
    for batch in _Pieces(file, fields, head.has_header, head.block_bytes).batches(wanted, file.stream(numbers)):
        values = {name: texts.typed(batch.column(str(fields.index(name))), name, kind, row, lost) for name, kind in kinds.items()}
        if op_column:
            values[op_column] = texts.operations(batch.column(str(fields.index(op_column))), row)
        counted = values or {"": pa.nulls(batch.num_rows)}
        found = marks.lake_rows(pa.RecordBatch.from_pydict(counted), columns, row, None)
        yield _numbered(found, numbers, row) if file.only else found
        row += batch.num_rows


def csv_excluded(head: CsvHead, patterns: Sequence[str] = BEFORE_IMAGES) -> tuple[str, ...]:
    """DMS's own columns in the file, `Op` aside."""
    return excluded_columns([name for name in head.columns.fields if name], patterns)


def _numbered(rows: pa.Table, numbers: Sequence[int], first: int) -> pa.Table:
    """The rows with their numbers among all rows of the file."""
    place = rows.column_names.index(ROW)
    return rows.set_column(place, ROW, pa.array(np.asarray(numbers[first : first + rows.num_rows], np.int64)))


# --- Arrow


class _RowTooLongError(Exception):
    """A row does not fit into a block."""


@dataclass(frozen=True)
class _Pieces:
    """Gives a file's rows in pieces of about `block_bytes`. fields: of a record, for messages."""

    file: CsvFile
    fields: Sequence[str]
    has_header: bool
    block_bytes: int

    def batches(self, wanted: Sequence[int], stream: io.RawIOBase) -> Iterator[pa.RecordBatch]:
        """The rows' texts, null where null stands, in columns "0", "1" … of which only `wanted` are there (the first, if none is)."""
        width = len(self.fields)
        names = [str(place) for place in range(width)]
        try:
            batches = pacsv.open_csv(
                stream,
                pacsv.ReadOptions(use_threads=False, block_size=self.block_bytes, column_names=names),
                # A blank line is a row of one empty field, and no row where there are more fields.
                pacsv.ParseOptions(delimiter=self.file.delimiter, newlines_in_values=True, ignore_empty_lines=width > 1),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=[str(place) for place in wanted] or names[:1],
                    null_values=sorted({self.file.null} if self.file.empty_is_text else {self.file.null, ""}),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            is_first = self.has_header
            for batch in batches:
                yield batch.slice(1) if is_first else batch
                is_first = False
        except pa.ArrowInvalid as error:
            if _STRADDLES in str(error):
                raise _RowTooLongError from error
            raise _told(error, self.file, self.fields) from error


def _looked_at(batches: Iterable[pa.RecordBatch]) -> tuple[int, dict[int, Facts]]:
    """How many rows there are, and the facts of each field; a field's place is its column's name."""
    rows = 0
    found: dict[int, _Gathered] = {}
    for batch in batches:
        rows += batch.num_rows
        for name, texts in zip(batch.schema.names, batch.columns, strict=True):
            found.setdefault(int(name), _Gathered()).add(texts)
    return rows, {place: gathered.facts() for place, gathered in found.items()}


class _Gathered:
    """The facts of a field, piece by piece."""

    def __init__(self) -> None:
        self._rows, self._operations, self._times, self._valued = 0, True, True, False
        self._least, self._last, self._backward = "", "", 0

    def add(self, texts: pa.Array) -> None:
        if not len(texts):
            return
        self._operations = self._operations and bool(pc.all(pc.fill_null(pc.is_in(texts, value_set=OPERATIONS), False)).as_py())
        self._times = self._times and looks_like_timestamp(texts)
        self._valued = self._valued or has_value(texts)
        known = texts.drop_null()
        if len(known) and (self._times or not self._operations):
            both = pa.concat_arrays([pa.array([self._last] if self._last else [], pa.string()), known])
            self._backward += pc.sum(pc.less(both.slice(1), both.slice(0, len(both) - 1))).as_py() or 0
            self._last = known[-1].as_py()
        if self._times:
            least = pc.min(texts).as_py()
            self._least = min(self._least, least) if self._least else least
        self._rows += len(texts)

    def facts(self) -> Facts:
        if not self._rows:
            return Facts()
        return Facts(self._operations, self._times, self._least if self._times else "", self._backward, self._valued)


@dataclass(frozen=True)
class _Texts:
    """Texts of a file as values; refuses those that are none, with the line."""

    file: CsvFile
    head: CsvHead

    def typed(self, texts: pa.Array, name: str, kind: str, first: int, lost: LostDigits | None) -> pa.Array:
        """first: the number of the first text's row."""
        convert = from_texts(kind)
        texts = texts if kind == "string" else self._empty_as_null(texts)
        if kind == "timestamp" and lost is not None:
            lost[name] += digits_lost(texts)
        try:
            return convert(texts)
        except pa.ArrowInvalid as error:
            row = first_failing(convert, texts)
            if row is None:
                raise
            raise blocked(
                "csv-value",
                f"a value of column {name!r} is no {kind}",
                where=f"file {self.file.where}, line {self._line(first + row)}",
                expected=f"{kind}, as docs/csv.md has it",
                found=shown(texts[row]),
                todo="correct the type in the attribute Schema if that is wrong; if the source's type really changed, reload the table in "
                "DMS, or skip the file: `dmslake unblock PATH --skip-file NAME`",
            ) from error

    def operations(self, texts: pa.Array, first: int) -> pa.Array:
        """The texts, if each is an operation or null."""
        texts = self._empty_as_null(texts)
        wrong = pc.index(pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, value_set=OPERATIONS))), True).as_py()
        if wrong < 0:
            return texts
        raise blocked(
            "bad-operation",
            f"column {OP_COLUMN!r} has a value that is no operation",
            where=f"file {self.file.where}, line {self._line(first + wrong)}",
            expected="I, U, D or null",
            found=shown(texts[wrong]),
            todo="a source column of that name must be renamed by a DMS transformation rule; otherwise skip the file: "
            "`dmslake unblock PATH --skip-file NAME`",
        )

    def _empty_as_null(self, texts: pa.Array) -> pa.Array:
        """What is empty says no value but a text's."""
        return null_where(pc.equal(texts, ""), texts) if self.file.empty_is_text else texts

    def _line(self, row: int) -> int:
        numbers: list[int] = []
        if self.file.only:
            stream = self.file.stream(numbers)
            while len(numbers) <= row and stream.read(BLOCK_BYTES):
                pass
            row = numbers[row]
        wanted = row + self.head.has_header
        width = len(self.head.columns.fields)
        records = (line for line, fields in self.file.records() if fields or width == 1)
        return next((line for number, line in enumerate(records) if number == wanted), 0)


# --- errors


def _told(error: Exception, file: CsvFile, fields: Sequence[str]) -> TableBlocked:
    """What Arrow says of a file, with the line of the first row that is wrong."""
    width = len(fields)
    for line, record in file.records():
        if (not record and width > 1) or (file.only is not None and not _is_of(record, file.only)):
            continue
        if len(record) != width:
            found = f"{len(record)}: {file.delimiter.join(record).encode('latin-1').decode(errors='replace')}"
            return bad_row(file, line, "a row has another number of fields than the first", f"{width} fields", found)
        for name, text in zip(fields, record, strict=True):
            raw = text.encode("latin-1")
            try:
                raw.decode()
            except UnicodeDecodeError:
                return bad_text(file.where, line, name, raw)
    found = " ".join(str(error).split())[:200]
    return blocked("bad-raw-file", "the file can't be read as CSV", where=f"file {file.where}", found=found, todo=NEW_COPY)


def _is_of(record: Sequence[str], only: tuple[str, str]) -> bool:
    """Whether a record of a file of several tables is of this one."""
    names = tuple(text.encode("latin-1").decode(errors="replace") for text in record[1:3])
    return names == (only[1], only[0])


def _too_long(file: CsvFile) -> TableBlocked:
    return blocked(
        "bad-raw-file",
        "a row of the CSV file is longer than a row can be",
        where=f"file {file.where}",
        expected=f"at most {ROW_LIMIT_BYTES} bytes",
        todo=NEW_COPY,
    )
