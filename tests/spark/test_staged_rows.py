"""The rows of a staged change that a person can look at are those that its commit makes."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.objects import list_files
from glue_jobs.aws.records import read_attachment, read_record
from glue_jobs.core.ids import attachment_name
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.staged import ROWS
from glue_jobs.spark.row_changes import as_told, row_changes
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])
LOADED = [(number, f"name {number}", "ab"[number % 2]) for number in range(40)]
CHANGES = [
    ("U", (3, "three", "b")),
    ("U", (4, "moved", "b")),
    ("U", (5, None, "b")),
    ("D", (6, None, None)),
    ("I", (7, "name 7", "b")),  # as it is already
    ("I", (90, "new", "c")),
    ("I", (91, "gone again", "c")),
    ("D", (91, None, None)),
    ("D", (95, None, None)),
]
STRATEGIES = [("driver", {}), ("broadcast", {"driver_bytes": "0"}), ("shuffle", {"driver_bytes": "0", "broadcast_bytes": "0"})]


def staged_by(table: WorkTable, job: str = "LoadIncremental", **settings: str) -> ChangeRecord:
    assert table.run(job, stage="true", **settings) == 0, table.last_run()
    return read_record(table.clients.s3, table.out_path, table.last_run()["staged"])


def kept(table: WorkTable, staged: ChangeRecord) -> pa.Table:
    data = read_attachment(table.clients.s3, table.out_path, attachment_name(staged.id, ROWS))
    return pq.read_table(io.BytesIO(data))


@pytest.fixture
def parted(new_table: MakeTable) -> WorkTable:
    """A table of two partitions, loaded, with a batch that waits."""
    return fill(new_table(COLUMNS, partition_key="part"))


def fill(table: WorkTable) -> WorkTable:
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc(CHANGES)
    return table


def test_the_rows_of_every_strategy_are_those_of_the_commit(spark_table: MakeTable) -> None:
    """Inserts, both images of updates, deletes; not what a batch says and does not change."""
    for name, settings in STRATEGIES:
        table = fill(spark_table(COLUMNS, partition_key="part"))
        before = table.read()
        staged = staged_by(table, **settings)
        rows = kept(table, staged)

        assert table.commit(staged.id).code == 0

        assert rows.equals(as_told(row_changes(before, table.read(), staged.schema, staged.primary_key))), name
        assert (staged.details["rows_kept"], staged.details["rows_changed"]) == (5, 6), name
        assert table.head().details["rows_kept"] == 5, name


def test_only_the_first_keys_are_kept(parted: WorkTable) -> None:
    """As many as the limit says; the record says of how many."""
    staged = staged_by(parted, sample_rows="2")

    assert kept(parted, staged)["id"].to_pylist() == [3, 3, 4, 4]
    assert (staged.details["rows_kept"], staged.details["rows_changed"]) == (2, 6)


@pytest.mark.parametrize("what", ["batch", "edit"])
def test_an_empty_text_that_the_commit_makes_null_is_shown_as_null(new_table: MakeTable, tmp_path: Path, what: str) -> None:
    """In a partition column, where EmptyPartition says so; a row that is null there already does not change."""
    table = new_table(COLUMNS, partition_key="part")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(EmptyPartition="null")
    table.load([(1, "one", None), (2, "two", "b")])
    table.sync()
    given = [(1, "one", ""), (2, "two", "")]
    if what == "batch":
        table.cdc([("U", row) for row in given])
        staged = staged_by(table)
    else:
        rows = str(tmp_path / "rows.parquet")
        pq.write_table(pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in given], COLUMNS), rows)
        staged = staged_by(table, "Apply", edit="update", rows=rows)

    assert [tuple(row.values()) for row in kept(table, staged).to_pylist()] == [
        (2, "two", "b", "update_preimage"), (2, "two", None, "update_postimage")
    ]  # fmt: skip
    assert table.commit(staged.id).code == 0
    assert sorted(table.rows()) == [(1, "one", None), (2, "two", None)]


def test_a_column_called_as_ours_is_shown(new_table: MakeTable) -> None:
    """The kind of the change then stands under the name that no table has."""
    table = new_table(pa.schema([("id", pa.int64()), ("_change_type", pa.string())]))
    table.load([(1, "a"), (2, "b")])
    table.sync()
    table.cdc([("U", (1, "A"))])

    rows = kept(table, staged_by(table))

    assert rows.to_pylist() == [
        {"id": 1, "_change_type": "a", "__op": "update_preimage"},
        {"id": 1, "_change_type": "A", "__op": "update_postimage"},
    ]


def test_without_a_key_inserts_are_kept(new_table: MakeTable) -> None:
    """Updates and deletes of such a table are ignored, and are not shown either."""
    table = fill(new_table(COLUMNS, primary_key="null"))

    staged = staged_by(table)

    rows = kept(table, staged)
    assert (rows["id"].to_pylist(), set(rows["_change_type"].to_pylist())) == ([7, 90, 91], {"insert"})
    assert staged.details["rows_changed"] == 3


def test_a_column_that_the_batch_brings_is_shown(parted: WorkTable) -> None:
    """Null before, its value after."""
    parted.cdc([("U", (8, "eight", "a", 5))], columns=COLUMNS.append(pa.field("more", pa.int32())))

    rows = kept(parted, staged_by(parted)).filter(pa.compute.field("id") == 8)

    assert rows["more"].to_pylist() == [None, 5]


def test_a_load_keeps_no_rows(new_table: MakeTable) -> None:
    """All of them are its rows: counts and files tell."""
    table = new_table(COLUMNS)
    table.load(LOADED)

    staged = staged_by(table, "LoadInitial")

    assert "rows_kept" not in staged.details
    assert staged.counts.inserted == len(LOADED)


def test_an_ordinary_run_keeps_no_rows(parted: WorkTable) -> None:
    """Nothing of it is in the normal path."""
    assert parted.run() == 0

    folder = changes_folder(parted.out_path)
    assert not [file.key for file in list_files(parted.clients.s3, folder.bucket, folder.key) if file.key.endswith(ROWS)]
    assert "rows_kept" not in parted.head().details
