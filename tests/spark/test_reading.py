"""Conditions and pages over batches of rows: errors from below come out as they are, and no more is read than is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.schema import Column
from glue_jobs.spark.condition import filtered
from glue_jobs.spark.past import past_table
from glue_jobs.spark.plain_rows import plain_rows
from glue_jobs.spark.reading import page, reading_place
from tests.aws.plain_gets import plain_gets
from tests.work_tables import MakeTable

SCHEMA = (Column("id", "bigint"), Column("ID", "string"))


def batches(read: list[int], fail_at: int = -1) -> Iterator[pa.RecordBatch]:
    """Ten batches of two rows; `read` gets the number of each that is asked for."""
    for number in range(10):
        read.append(number)
        if number == fail_at:
            raise TableBlocked("gone", "data-file-gone")
        yield pa.record_batch([pa.array([number, number]), pa.array([str(number), None])], names=["id", "ID"])


def test_an_error_below_a_condition_comes_out_as_it_is() -> None:
    """DuckDB makes a text of it."""
    with pytest.raises(TableBlocked, match="gone") as caught:
        list(filtered(batches([], fail_at=3), SCHEMA, "id >= 0"))

    assert caught.value.code == "data-file-gone"


def test_columns_whose_names_differ_by_case_keep_their_names() -> None:
    """DuckDB renames one of them while it works."""
    rows = pa.Table.from_batches(filtered(batches([]), SCHEMA, "id = 7"))

    assert (rows.column_names, plain_rows(rows)) == (["id", "ID"], [(7, "7"), (7, None)])


def test_files_come_in_order_and_are_not_all_fetched(new_table: MakeTable) -> None:
    """Some are fetched ahead, more of them the more were read; who stops early has asked for few."""
    table = new_table(partition_key="qty")
    table.load([(number, "x", number) for number in range(20)])
    assert table.run("LoadInitial") == 0
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    past = past_table(place, "t", table.snapshot())
    asked: list[str] = []
    place.s3.meta.events.register("before-call.s3.GetObject", lambda **_: asked.append(""), unique_id="asked")

    with plain_gets():
        rows = past.batches()
        first = [next(rows) for _ in range(3)]
        rows.close()
        few = len(asked)
        every = past.read()
    place.s3.meta.events.unregister("before-call.s3.GetObject", unique_id="asked")

    assert [batch.num_rows for batch in first] == [1, 1, 1]
    assert (few <= 6, len(asked) - few) == (True, 20)
    assert [str(number) for number in every["id"].to_pylist()] == [file.file.partition[0] for file in past.files]


def test_a_page_reads_no_further_than_it_must() -> None:
    """The rest of the table is left alone."""
    read: list[int] = []

    found = [row for piece in page(batches(read), ["ID", "id"], 3) for row in piece]

    assert (found, read) == ([("0", 0), (None, 0), ("1", 1)], [0, 1])
