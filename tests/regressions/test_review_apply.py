"""Corrections and what comes after them: nothing of a correction is taken back by what was applied before it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Column, Schema
from glue_jobs.spark.given_rows import Reader
from tests.spark.tables import WorkTable
from tests.spark.test_replay_rows import proved
from tests.work_tables import MakeTable

LINES = pa.schema([("id", pa.int64()), ("name", pa.string())])
SCHEMA: Schema = (Column("id", "bigint"), Column("name", "string"))


def file(folder: Path, text: str) -> str:
    """A CSV of rows that a person gives."""
    path = folder / "given.csv"
    path.write_text(text)
    return str(path)


def late_loser(table: WorkTable, folder: Path) -> str:
    """Rows 1 and 2, updated by an applied file, then 1 corrected and 2 deleted; the name of a file that goes before the applied one."""
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load([(1, "one"), (2, "two"), (3, "three")])
    table.sync()
    late = table.next_name()
    table.cdc([("U", (1, "ONE")), ("U", (2, "TWO"))])
    assert table.run() == 0
    assert table.run("Apply", key="id", updates=file(folder, "id,name\n1,corrected\n")) == 0
    assert table.run("Apply", key="id", deletes=file(folder, "id\n2\n")) == 0
    return late


def test_a_late_file_that_loses_takes_no_correction_back(new_table: MakeTable, tmp_path: Path) -> None:
    """Its rows lose to a file that was applied before the correction: that file's image is not written a second time."""
    table = new_table(LINES)
    late = late_loser(table, tmp_path)
    table.cdc([("U", (1, "late")), ("U", (2, "late")), ("U", (3, "late")), ("I", (4, "late"))], name=late)

    assert table.run() == 0, table.last_run()

    assert table.head().kind == "late"
    assert table.rows() == [(1, "corrected"), (3, "late"), (4, "late")]
    proved(table)


@pytest.mark.parametrize("text", ['id,name\n1,"open\n2,b\n3,c\n', 'id,name\n1,a\n2,"', 'id,name\n1,"a""\n2,b\n', 'id,name\n"1,a\n'])
def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path, text: str) -> None:
    """It would swallow all lines behind it as the text of one value."""
    with pytest.raises(UsageError, match=r"quote|columns") as caught:
        Reader(None, 1 << 20).rows(file(tmp_path, text), SCHEMA)

    assert caught.value.code == "given-not-read"


@pytest.mark.parametrize("text", ["id,name", "id,name\n", "id,name\r\n"])
def test_a_file_with_names_only_has_no_rows(tmp_path: Path, text: str) -> None:
    """Whether or not its line ends."""
    (piece,) = Reader(None, 1 << 20).rows(file(tmp_path, text), SCHEMA)

    assert piece.rows.num_rows == 0
    assert piece.rows.schema.names == ["id", "name"]


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    """And a value may be the word that is put behind the last line to see whether it is read."""
    (piece,) = Reader(None, 1 << 20).rows(file(tmp_path, 'id,name\n1,last\n2,"last"'), SCHEMA)

    assert piece.rows.to_pydict() == {"id": [1, 2], "name": ["last", "last"]}
