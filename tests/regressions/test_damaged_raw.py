"""What damaged raw files did before the fuzz test met them."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.lake import START, DmsRow
from tests.work_tables import MakeTable


def test_damage_in_the_timestamp_column_names_the_file(new_table: MakeTable) -> None:
    """It is the first column that a load reads, and a reader's own error said nothing of the file."""
    table = new_table()
    table.timestamp_column = "changed"
    data = bytearray(table.parquet([DmsRow("I", (1, "a", 1), START)]))
    page = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(1).data_page_offset
    data[page : page + 8] = b"\xff" * 8
    key = table.put_raw("LOAD00000001.parquet", bytes(data))

    error = table.blocked()

    assert error["code"] == "bad-raw-file"
    assert key in error["message"]


def test_a_column_name_with_a_control_character_is_refused(new_table: MakeTable) -> None:
    """No catalog takes it, and it is a damaged footer sooner than a name."""
    columns = pa.schema([("id", pa.int64()), ("na\x00me", pa.string())])
    table = new_table(columns)
    key = table.load([(1, "a")])

    error = table.blocked()

    assert error["code"] == "reserved-column"
    assert key in error["message"]
