"""`verify --replay` of tables whose rows do not all come from DMS: corrections, erases, adopted files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_replay_rows import LOADED, batch, differences, proved, renamed_to, report, rewrite
from tests.work_tables import MakeTable

MORE = [*LOADED, (4, "d", 2), (5, "e", 2)]


@pytest.fixture
def table(new_table: MakeTable) -> WorkTable:
    """Five rows by qty, three of which have qty 2, and a batch."""
    table = new_table(partition_key="qty")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load(MORE)
    table.sync()
    batch(table, ("U", (1, "A", 1)))
    return table


def done(table: WorkTable, job: str, **settings: str) -> WorkTable:
    assert table.run(job, **settings) == 0, table.item()["LastRun"]
    return table


def given(folder: Path, name: str, rows: list[Any], columns: pa.Schema = SHOP) -> str:
    """A file of rows that a person gives."""
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], columns), path)
    return str(path)


def keys(folder: Path, *ids: int) -> str:
    path = folder / "keys.csv"
    path.write_text("\n".join(["id", *map(str, ids)]) + "\n")
    return str(path)


def corrected(table: WorkTable, folder: Path, **settings: str) -> WorkTable:
    """The rows of qty 2 replaced by two others, those of qty 3 deleted; qty 9 is no key of the table."""
    updates = given(folder, "updates", [(2, "B", 2), (6, "f", 2)])
    deletes = given(folder, "deletes", [(3,), (9,)], pa.schema([("qty", pa.int32())]))
    return done(table, "Apply", key="qty", updates=updates, deletes=deletes, **settings)


def codes(table: WorkTable) -> list[str]:
    return [finding.code for finding in report(table).findings]


def test_rows_of_a_correction_are_replayed_as_they_took_effect(table: WorkTable, tmp_path: Path) -> None:
    """By a key that is not unique; a batch after it overrides it."""
    corrected(table, tmp_path)

    assert table.rows() == [(1, "A", 1), (2, "B", 2), (6, "f", 2)]
    proved(table)
    batch(table, ("U", (6, "later", 2)), ("I", (3, "again", 3)), ("D", (2, None, None)))
    proved(table)


def test_a_correction_that_was_staged_is_replayed_once_it_is_committed(table: WorkTable, tmp_path: Path) -> None:
    """Its rows stand beside the record of the staged change."""
    corrected(table, tmp_path, stage="true")
    proved(table)
    assert table.commit(table.last_run()["staged"]).code == 0

    assert (6, "f", 2) in table.rows()
    proved(table)


def test_a_correction_by_hand_of_its_rows_is_found(table: WorkTable, tmp_path: Path) -> None:
    """Damage in a file that it wrote."""
    corrected(table, tmp_path)
    rewrite(table, renamed_to("x"), "qty=2")

    (found,) = differences(table)

    assert "id=2: name is x, expected B" in found.found


def test_erased_rows_do_not_come_back_in_a_replay(table: WorkTable, tmp_path: Path) -> None:
    """The raw files still have them; the record knows their hashes. A batch after it may bring one back."""
    done(table, "Erase", erase_keys=keys(tmp_path, 1, 4))

    assert [row[0] for row in table.rows()] == [2, 3, 5]
    proved(table)
    batch(table, ("I", (4, "back", 2)))
    assert (4, "back", 2) in table.rows()
    proved(table)


def test_what_an_erase_took_from_a_correction_can_not_be_proved(table: WorkTable, tmp_path: Path) -> None:
    """A note says which change; the other partitions are proved, and damage there is found."""
    corrected(table, tmp_path)
    done(table, "Erase", erase_keys=keys(tmp_path, 6))

    assert differences(table) == []
    assert codes(table) == ["replay-unproven", "replayed"]
    rewrite(table, renamed_to("x"), "qty=1")
    assert [found.where.rsplit("/", 2)[1] for found in differences(table)] == ["qty=1"]


def adopted(new_table: MakeTable, **attributes: Any) -> WorkTable:
    """Two files of another program, taken over."""
    table = new_table(**attributes)
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(Source="none")
    for name, ids in (("a", [1, 2]), ("b", [3])):
        data = io.BytesIO()
        rows = {"Op": ["I"] * len(ids), "id": ids, "name": [name] * len(ids), "qty": pa.array([7] * len(ids), pa.int32())}
        pq.write_table(pa.table(rows), data)
        table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=f"{table.out_path.key}part-{name}.parquet", Body=data.getvalue())
    return done(table, "Adopt")


@pytest.mark.parametrize("key", ["id", "null"])
def test_adopted_files_are_a_base(new_table: MakeTable, tmp_path: Path, key: str) -> None:
    """Their bytes are still there, also those of files that were rewritten since."""
    table = adopted(new_table, primary_key=key)
    proved(table)
    done(table, "Apply", key="id", deletes=given(tmp_path, "deletes", [(1,)], pa.schema([("id", pa.int64())])))

    assert [row[0] for row in table.rows(visible=set(table.snapshot().files))] == [2, 3]
    proved(table)


def test_what_an_erase_took_from_adopted_files_can_not_be_proved(new_table: MakeTable, tmp_path: Path) -> None:
    """The other rows of an erased file are known by nobody."""
    table = done(adopted(new_table), "Erase", erase_keys=keys(tmp_path, 1))

    assert differences(table) == []
    assert codes(table)[0] == "replay-unproven"
