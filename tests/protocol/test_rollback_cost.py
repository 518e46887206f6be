"""What a rollback costs: it grows with the files that differ, not with the table's size nor with its history's length."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from glue_jobs.aws.records import write_record
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.snapshot import apply
from glue_jobs.core.work import Work
from glue_jobs.protocol.commit import make_record
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import LONG_LEASE, run_on
from tests.protocol.wire import Wire


def lengthen(table: LakeTable, changes: int) -> None:
    """Give the table as many more changes, each of which leaves its files as they are. They are of the day before: among those of the last
    two hours a run looks whether its start was sent twice."""
    state, snapshot = table.state(), table.snapshot()
    records = []
    for number in range(changes):
        work = Work(
            kind="cursor",
            schema=snapshot.schema,
            primary_key=snapshot.primary_key,
            partitioning=snapshot.partitioning,
            generation=snapshot.generation,
            cursor_after=snapshot.cursor,
            last_full_load=snapshot.last_full_load,
        )
        change = str(ChangeId(state.fence or 0, number + 2, "00000000"))
        now = datetime.now(timezone.utc) - timedelta(days=1)
        records.append(make_record(state, snapshot, work, change, now=now, run_id="", window_hours=24))
        snapshot = apply(snapshot, records[-1])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda record: write_record(table.clients.s3, table.out_path, record), records))
    table.edit(Head=records[-1].id)


def cost(table: LakeTable, **wish: str) -> Counter[str]:
    """The requests of a rollback by operation, those of the lease's renewal aside."""
    wire = Wire()
    assert run_on(wire, table, "Rollback", lease_seconds=LONG_LEASE, **wish) == 0
    return Counter(request.operation for request in wire.requests)


@pytest.fixture(scope="module")
def costs() -> dict[int, list[Counter[str]]]:
    """History length → requests of the undo of the last change and of its re-apply."""
    return {}


@pytest.mark.parametrize("changes", [10, 100, 1000])
def test_cost_does_not_grow_with_the_history(make_table: TableMaker, costs: dict[int, list[Counter[str]]], changes: int) -> None:
    """Undo and re-apply of the last change send the same requests after 10, 100 and 1,000 changes."""
    table = make_table(partition_key="name")
    table.load([(key, f"p{key}") for key in range(4)])
    assert table.run("LoadInitial") == 0
    lengthen(table, changes)
    table.cdc([("U", (1, "p1")), ("D", (2, None))])
    assert table.run() == 0

    costs[changes] = [cost(table, to="previous"), cost(table, reapply="all")]

    assert all(found == costs[10] for found in costs.values())
    assert costs[changes][0]["GetObject"] <= 6


def test_a_long_way_back_is_read_many_records_at_a_time(make_table: TableMaker) -> None:
    """A rollback over 300 changes reads each of their records once, after one listing; a damaged one that never landed is passed over."""
    table = make_table()
    table.load([(1, "one")])
    assert table.run("LoadInitial") == 0
    first = table.item()["Head"]
    lengthen(table, 300)
    table.cdc([("U", (1, "ONE"))])
    assert table.run() == 0
    stray = f"lake/_changes/shop/{table.table}/{first[:10]}-000002-ffffffff.json"
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=stray, Body=b"{")
    wire = Wire()

    assert run_on(wire, table, "Rollback", to=first, lease_seconds=LONG_LEASE) == 0

    records = Counter(request.key for request in wire.of("GetObject") if "/_changes/" in request.key)
    assert len(wire.of("ListObjectsV2")) <= 4
    assert stray in records
    assert (len(records) >= 300, max(records.values()) <= 3) == (True, True)
    assert table.rows() == [(1, "one")]


def test_cost_grows_with_the_files_that_differ_not_with_the_table(make_table: TableMaker) -> None:
    """The undo of a change of one file is the same whether the table has 3 files or 120."""
    found = []
    for files in (3, 120):
        table = make_table(partition_key="name")
        table.load([(key, f"p{key}") for key in range(files)])
        assert table.run("LoadInitial") == 0
        table.cdc([("D", (2, None))])
        assert table.run() == 0
        table.cdc([("U", (1, "p1"))])
        assert table.run() == 0
        found.append(cost(table, to="previous"))

    assert found[0] == found[1]
    assert found[0]["UploadPartCopy"] == 1
