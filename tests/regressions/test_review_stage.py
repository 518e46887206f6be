"""Staged changes, and tables without source: what commands say is what happens next."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from controller import edits
from controller.edits import Edit
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import read_record
from glue_jobs.core.adoption import AdoptWish, read_wish
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import TablePath
from glue_jobs.core.state import TableState, default_item, read_state
from glue_jobs.protocol.converge import abort_uploads
from tests.lake import LakeTable
from tests.protocol.runs import LONG_LEASE, forget_lease
from tests.protocol.wire import Killed, Request, Wire, once
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.mark.parametrize("text", ["", " ", "null"])
def test_a_key_that_is_said_to_be_none_reaches_the_job(text: str) -> None:
    """Else the job would take the item's key, and do another thing than was shown."""
    wish = AdoptWish(primary_key=text, partition_key=text)

    said = read_wish(dict(wish.arguments()))

    state = said.on(
        read_state({**default_item(TablePath.parse("raw/dms/shop/t"), "s3://lake/shop/t/"), "PrimaryKey": "id", "PartitionKey": "id"})
    )
    assert (state.primary_key, state.partitioning) == ((), ())


@pytest.mark.parametrize("edit", [edits.reload, edits.widen, edits.accept_schema])
def test_a_table_without_source_takes_no_request_that_needs_raw_files(edit: Callable[[TableState], Edit]) -> None:
    """It would wait for ever."""
    item = default_item(TablePath.parse("lake/p/s/t"), "s3://lake/p/s/t/")

    with pytest.raises(UsageError, match="has no source"):
        edit(read_state({**item, "Source": "none", "Head": "0000000001-000001-00000000", "Fence": 1}))


def test_a_staged_batch_that_is_taken_back_is_not_said_to_be_done_again(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """It waits for the person who wanted to look first."""
    table = LakeTable(quick_aws.environment(), quick_aws.raw, quick_aws.lake, COLUMNS, shared=quick_clients)
    table.load([(1, "one")])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE"))])
    assert table.run(stage="true") == 0
    staged = read_record(table.clients.s3, table.out_path, table.item()["LastRun"]["staged"])
    wire = Wire()
    wire.rule = once(Request.is_completion, lambda _: wire.kill())
    with pytest.raises(Killed), wire.connected():
        table.commit(staged.id, lease_seconds=LONG_LEASE)
    forget_lease(table)
    abort_uploads(table.clients.s3, table.out_path, staged.added)

    assert table.run() == 0

    run = table.item()["LastRun"]
    assert [warning.endswith("it was taken back: do it again") for warning in run["warnings"]] == [True]
    assert (run["note"], table.rows()) == (table.item()["Paused"], [(1, "one")])
