"""What a replay and a late file are made of: files under names and with bytes that the records say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.schema_change import renamed
from glue_jobs.protocol.replay import read_fold
from tests.work_tables import MakeTable

RENAMED = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int32())])


def test_a_late_file_before_a_rename_leaves_no_nulls(new_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file after it has the column under its old name, and would bring null under the new one: a person must decide, where the record
    of the rename does not say up to which file the old name holds, as those of earlier versions."""
    monkeypatch.setattr("glue_jobs.spark.rewrite.renamed", lambda schema, old, new, _: renamed(schema, old, new, ""))
    table = new_table()
    table.load([(1, "a", 1), (2, "b", 2)])
    table.sync()
    late = table.next_name()
    table.cdc([("U", (1, "newest", 1))])
    table.sync()
    table.edit(Request="schema-rename:name=title")
    table.sync()
    table.cdc([("U", (1, "late", 7)), ("U", (2, "late", 7))], columns=RENAMED, name=late)

    error = table.blocked()

    assert (error["code"], late in error["message"]) == ("late-file-without-context", True)
    assert table.rows() == [(1, "newest", 1), (2, "b", 2)]
    table.edit(SkipFiles=late)
    table.cdc([("U", (2, "new", 2))], columns=RENAMED)
    table.sync()
    assert table.rows() == [(1, "newest", 1), (2, "new", 2)]


def test_a_raw_file_that_was_taken_twice_and_written_anew_between_makes_no_replay(new_table: MakeTable) -> None:
    """Its first bytes are gone, though its second ones are there."""
    table = new_table()
    table.load([(1, "a", 1)])
    name = table.cdc([("U", (1, "first", 1))]).rsplit("/", 1)[-1]
    table.sync()
    table.cdc([("U", (1, "second", 1))], name=name)
    table.sync()
    assert table.rows() == [(1, "second", 1)]

    with pytest.raises(TableBlocked, match="1 of 2 raw file") as raised:
        read_fold(table.clients.s3, table.out_path, table.path, str(table.item()["Head"]))

    assert raised.value.code == "replay-not-possible"
    assert name in raised.value.message
