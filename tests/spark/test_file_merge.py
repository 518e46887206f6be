"""The merge into one data file: whatever was asked of it before, and however it is read, the rows are the same. No Spark is needed."""

from __future__ import annotations

import gc
import io
import weakref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.collation import Collation, KeyColumn
from glue_jobs.core.keys import encode_bound
from glue_jobs.core.limits import Limits
from glue_jobs.core.partitioning import PartitionField
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.spark import data_file_reader, encoded_texts, open_file
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.data_file_reader import read_encoded
from glue_jobs.spark.encoded_texts import ENCODED_TEXT, decoded
from glue_jobs.spark.key_columns import bounds
from glue_jobs.spark.merge_file import FileMerge, KeyLookup, Tally
from glue_jobs.spark.net_changes import DELETE, OP, UPDATE, net_changes
from glue_jobs.spark.open_file import OpenFile
from glue_jobs.spark.place import Shape

ID, NAME, REGION = Column("id", "bigint"), Column("name", "string"), Column("region", "string")


@dataclass(frozen=True)
class Case:
    """A table of ten rows, of which 3 is updated and 5 deleted. stored: what a column is called in the file; categories: the columns that
    were one in memory when another program wrote it, as it says; region: how the changes spell it."""

    shape: Shape
    stored: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ()
    region: str = "north"

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.shape.schema]

    def rows(self, ids: list[int], text: str, region: str = "north") -> pa.Table:
        of = {"id": ids, "name": [f"{text}{number}" for number in ids], "region": [region] * len(ids)}
        return pa.table({name: of[name] for name in self.names}, arrow_schema(self.shape.schema))

    def merge(self, whole: bool, encoded: bool = False) -> FileMerge:
        folders = {field.column for field in self.shape.partitioning}
        stored = self.rows(list(range(10)), "old").drop_columns([name for name in self.names if name in folders])
        stored = stored.rename_columns([dict(self.stored).get(name, name) for name in stored.column_names])
        for name in self.categories:
            at = stored.column_names.index(name)
            stored = stored.set_column(at, name, stored[name].dictionary_encode())
        data = io.BytesIO()
        pq.write_table(stored, data, row_group_size=4)
        found = bounds(self.rows(list(range(10)), "old"), self.shape.key)
        assert found is not None
        low, high = (encode_bound(self.shape.key_types, bound, upper=upper) for bound, upper in zip(found, (False, True), strict=True))
        partition = ("north",) if self.shape.partitioning else ()
        file = DataFile("f.parquet", len(data.getvalue()), 10, partition=partition, low=low, high=high)
        place: Any = SimpleNamespace(lake=S3Uri("lake", "t/"), limits=Limits(stream_file_bytes=0))
        keys = {dict(self.stored).get(name, name) for name in self.shape.key}
        parquet, texts = read_encoded(data, "f.parquet", streamed=not whole, decoded=keys if encoded else None)
        changes = self.rows([3, 5, 77], "new", self.region).append_column(OP, pa.array([UPDATE, DELETE, UPDATE], pa.int8()))
        opened = OpenFile(place, self.shape, file, parquet, whole, self.stored, encoded=texts)
        return FileMerge(opened, net_changes(changes, self.shape))


CASES = {
    "plain": Case(Shape("t", (ID, NAME, REGION), ("id",))),
    "two columns": Case(Shape("t", (NAME, ID, REGION), ("region", "id"))),
    "a partition column in the key": Case(Shape("t", (ID, NAME, REGION), ("region", "id"), (PartitionField("region"),))),
    "nothing but the key": Case(Shape("t", (ID,), ("id",))),
    "the key has another name in the file": Case(Shape("t", (NAME, ID), ("id",)), (("id", "old_id"),)),
    "a category": Case(Shape("t", (ID, NAME, REGION), ("id",)), categories=("name", "region")),
    "a category in the key": Case(Shape("t", (NAME, ID, REGION), ("region", "id")), categories=("region",)),
    "nothing but a key with a category": Case(Shape("t", (REGION, ID), ("region", "id")), categories=("region",)),
    "a category that is spelled in another way": Case(
        Shape("t", (NAME, ID, REGION), (KeyColumn("region", Collation(ci=True)), "id")), categories=("region",), region="North"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("whole", [True, False], ids=["in memory", "streamed"])
@pytest.mark.parametrize("is_searched", [True, False], ids=["searched before", "at once"])
@pytest.mark.parametrize("encoded", [True, False], ids=["encoded", "decoded"])
def test_the_rows_are_the_same(case: Case, whole: bool, is_searched: bool, encoded: bool) -> None:
    merge, tally = case.merge(whole, encoded), Tally()

    if is_searched:
        assert merge.has_hits()
    pieces = list(merge.rows(tally))
    rows = pa.concat_tables(map(decoded, pieces))

    others = [column.name for column in case.shape.schema if column.type == "string" and column.name not in case.shape.key]
    assert {piece.schema.field(name).type.equals(ENCODED_TEXT) for piece in pieces for name in others} <= {encoded}
    kept, new = case.rows([0, 1, 2, 4, 6, 7, 8, 9], "old"), case.rows([3], "new", case.region)
    assert rows.to_pylist() == [*kept.to_pylist()[:3], *new.to_pylist(), *kept.to_pylist()[3:]]
    assert rows.schema == arrow_schema(case.shape.schema)
    assert tally.all_hits().tolist() == [0, 1]
    keys = {column.name for column in case.shape.schema if column.name in case.shape.key and column.type == "string"}
    assert {piece.schema.field(name).type for piece in pieces for name in keys} <= {pa.string()}
    assert all(bounds(piece, case.shape.key) for piece in pieces)


@pytest.mark.parametrize("whole", [True, False], ids=["in memory", "streamed"])
def test_a_category_with_a_large_dictionary_is_decoded(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other column of texts, whatever the program says that wrote the file."""
    monkeypatch.setattr(encoded_texts, "MOST_DICTIONARY_BYTES", -(2**40))

    pieces = list(CASES["a category"].merge(whole, encoded=True).rows(Tally()))

    assert {field.type for piece in pieces for field in piece.schema} == {pa.int64(), pa.string()}


@pytest.mark.parametrize("whole", [True, False], ids=["in memory", "streamed"])
def test_the_rows_of_a_merge_that_is_done_are_given_back_at_once(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the next garbage collection finds a cycle: a task merges hundreds of files."""
    monkeypatch.setattr(open_file, "LEAST_STORED_BYTES", 1)
    merge = CASES["plain"].merge(whole)
    assert merge.has_hits()
    kinds = {type(piece).__name__ for piece in merge.pieces(Tally())}
    assert kinds == ({"Table"} if whole else {"Table", "StoredGroup"})
    gone = weakref.ref(merge)

    gc.disable()
    try:
        del merge
        assert gone() is None
    finally:
        gc.enable()


def test_keys_of_a_file_in_memory_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And looked up once: its columns are read in two parts, none of them twice."""
    asked: list[list[str]] = []

    def read(parquet: pq.ParquetFile, columns: list[str], name: str = "") -> pa.Table:
        asked.append(list(columns))
        return data_file_reader.read_columns(parquet, columns, name)

    monkeypatch.setattr(open_file, "read_columns", read)
    merge = CASES["plain"].merge(whole=True)
    looked_up: list[int] = []
    positions = KeyLookup.positions
    monkeypatch.setattr(KeyLookup, "positions", lambda self, rows: looked_up.append(rows.num_rows) or positions(self, rows))

    assert merge.has_hits()
    list(merge.rows(Tally()))

    assert asked == [["id"], ["name", "region"]]
    assert looked_up == [10]
