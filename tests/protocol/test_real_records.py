"""Records of real runs, against the published schema."""

from __future__ import annotations

import json

import pytest

from glue_jobs.aws.objects import list_files, read_bytes
from tests.core.test_record_schema import VALIDATOR
from tests.lake import LakeTable
from tests.protocol.conftest import COLUMNS, TableMaker
from tests.protocol.test_converge import committed
from tests.protocol.test_lost_uploads import lose
from tests.protocol.wire import Wire


def records(table: LakeTable) -> list[dict[str, object]]:
    folder = f"lake/_changes/shop/{table.table}/"
    files = list_files(table.clients.s3, table.out_path.bucket, folder)
    return [json.loads(read_bytes(table.clients.s3, table.out_path.bucket, file.key)) for file in files]


@pytest.mark.usefixtures("names_of_any_age")
def test_records_of_every_kind_of_run_are_valid(make_table: TableMaker, wire: Wire) -> None:
    """Load, batch, late file, skipped file, new column, lost uploads, another key, another layout, a reload."""
    table = make_table(partition_key="name")
    table.load([(number, f"p{number}") for number in range(4)])
    table.sync()
    first, second = table.next_name(), table.next_name()
    table.cdc([("U", (1, "p2")), ("D", (2, "p2")), ("I", (9, "p9"))], name=second)
    table.sync()
    table.cdc([("U", (3, "p0"))], name=first)
    table.edit(SkipFiles=table.cdc([("I", (5, "p5"))]).rsplit("/", 1)[-1])
    table.sync()
    wider = COLUMNS.append(COLUMNS.field("name").with_name("note"))
    table.cdc([("I", (6, "p1", "new"))], columns=wider)
    lose(table, committed(wire, table))
    table.sync()
    table.edit(PrimaryKey="id,name")
    table.sync()
    table.edit(PrimaryKey="id", PartitionKey="null", Request="repartition")
    table.sync()
    table.load([(1, "one")])
    table.edit(LoadQuietMinutes="0")
    table.sync()

    written = records(table)
    for data in written:
        VALIDATOR.validate(data)

    kinds = [data["kind"] for data in written]
    assert {"full-load", "incremental", "late", "lost", "rekey", "repartition"} <= set(kinds), kinds
    assert any(data.get("skipped") for data in written)
    table.check_folder()
