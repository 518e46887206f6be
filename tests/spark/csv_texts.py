"""CSV raw files for tests, as DMS writes them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Sequence
from typing import Any

from glue_jobs.core.csv_form import CsvForm
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark.csv_bytes import CsvFile
from glue_jobs.spark.csv_files import CsvHead, read_csv, scan_csv

WHERE = "s3://raw/dms/shop/orders/20240501-120000000.csv"
SHOP: Schema = (Column("id", "bigint"), Column("name", "string"), Column("qty", "int"))


def csv_text(rows: Iterable[Sequence[Any]], *, delimiter: str = ",", null: str = "NULL", newline: str = "\n") -> bytes:
    """Rows as DMS writes them: quotes only where they must be, None as the null literal."""
    return b"".join((delimiter.join(_field(value, delimiter, null) for value in row) + newline).encode() for row in rows)


def _field(value: Any, delimiter: str, null: str) -> str:
    if value is None:
        return null
    text = str(value)
    quoted = not text or text == null or any(sign in text for sign in ('"', "\r", "\n", delimiter))
    return '"' + text.replace('"', '""') + '"' if quoted else text


def csv_file(data: bytes, *, name: str = WHERE, only: tuple[str, str] | None = None, **form: str) -> CsvFile:
    """The file in `data`; packed if the name says so."""
    stored = gzip.compress(data) if name.endswith(".gz") else data
    return CsvFile(lambda: io.BytesIO(stored), name, form.get("delimiter", ","), form.get("null", "NULL"), only)


def head_of(file: CsvFile, lake: Schema = SHOP, *, said: Schema = (), time: str = "") -> CsvHead:
    return scan_csv(file, Reading("raw/dms/shop/orders/", time, lake, CsvForm(said, file.delimiter, file.null)))


def rows_of(file: CsvFile, lake: Schema = SHOP, *, columns: Schema = (), said: Schema = (), time: str = "", **options: Any) -> list[Any]:
    """All rows as tuples: the columns, operation, row number."""
    head = head_of(file, lake, said=said, time=time)
    tables = list(read_csv(file, head, columns=columns or lake, **options))
    assert sum(table.num_rows for table in tables) == head.rows
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]
