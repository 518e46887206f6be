"""repair: what verify finds is put right by exact lists, as one change or none; what is not ours stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.history_table import history_lake
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import stands_for
from glue_jobs.core.undo import root
from glue_jobs.protocol.converge import abort_uploads
from glue_jobs.protocol.repair import preview_repair
from glue_jobs.protocol.restore import copy_files
from glue_jobs.protocol.verify import Place
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import LONG_LEASE, die, forget_lease
from tests.protocol.test_verify import COLUMNS, attempt_completed, change_partition, drop, hidden_now, put, sell, versions
from tests.protocol.wire import Killed, Request, Wire, once

ROWS = [(1, "ONE", "a"), (2, "two", "a"), (3, "three", "b")]


@pytest.fixture
def sales(make_table: TableMaker) -> LakeTable:
    """A partitioned table with a load and one batch."""
    return sell(make_table(COLUMNS, partition_key="shop"))


@pytest.fixture(scope="module")
def tables() -> list[LakeTable]:
    """The tables that `mended` has made."""
    return []


@pytest.fixture
def mended(tables: list[LakeTable], make_table: TableMaker) -> LakeTable:
    """A table as `sales`, for tests after which it is as good as before; a new one where the last test left it otherwise."""
    if not tables or tables[-1].verify(quick=True):
        tables.append(sell(make_table(COLUMNS, partition_key="shop")))
    return tables[-1]


def repaired(table: LakeTable) -> list[str]:
    """The steps of a repair that must work, after which the table is what it should be."""
    done = table.repair()
    assert (done.code, done.error) == (0, None)
    assert table.verify() == []
    table.check_folder()
    return list(done.steps)


def without_run(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("LastRun", "Fence")}


def test_a_deleted_file_comes_back_as_a_copy(mended: LakeTable) -> None:
    """One change of kind repair with the head's state: rows, schema, cursor; the deleted key stays hidden for good."""
    path, before, item = min(mended.visible()), mended.head(), mended.item()
    origin = root(mended.snapshot().files[path])
    hidden_now(mended, path)

    steps = repaired(mended)

    record = mended.head()
    assert (len(steps), steps[0].startswith(f"restore {path} (")) == (1, True)
    assert mended.rows() == ROWS
    assert (record.kind, record.parent, record.target, record.superseded) == ("repair", before.id, stands_for(before), (path,))
    assert [file.origin for file in record.added] == [origin]
    assert path not in mended.visible()
    same = ("LastIncrementalFile", "LastFullLoadDate", "PrimaryKey", "ActiveFlag")
    assert {name: mended.item()[name] for name in same} == {name: item[name] for name in same}
    assert "Paused" not in mended.item()


def test_an_overwritten_file_comes_back_as_a_copy(mended: LakeTable) -> None:
    """Its own bytes are an older version of the key; the key with the others' bytes is hidden."""
    path = min(mended.visible())
    put(mended, path)

    repaired(mended)

    assert mended.rows() == ROWS
    assert len(versions(mended, path, "Versions")) == 2


def test_without_the_bytes_nothing_is_restored(sales: LakeTable) -> None:
    """The refusal names the file that is lost and the ways out; another file that could come back waits with it."""
    gone, hidden = sorted(sales.visible())
    drop(sales, gone, "Versions")
    hidden_now(sales, hidden)
    before = without_run(sales.item())

    done = sales.repair()

    assert done.error is not None
    assert (done.code, done.error.code) == (1, "version-gone")
    assert str(sales.out_path.join(gone)) in done.error.message
    assert "rollback" in done.error.todo
    assert (without_run(sales.item()), sales.visible(), sales.open_uploads()) == (before, set(), [])


def test_a_rollback_gets_out_of_lost_bytes(sales: LakeTable) -> None:
    """The change before has all its files: going back to it needs nothing of what is lost."""
    (lost,) = [file.path for file in sales.head().added]
    drop(sales, lost, "Versions")

    assert sales.run("Rollback", to="previous", resume="true") == 0

    assert (sales.verify(), sales.run()) == ([], 0)
    assert sales.rows() == ROWS


def test_a_superseded_file_that_came_back_is_hidden(mended: LakeTable) -> None:
    """No change is made for it."""
    old = mended.head().superseded[0]
    drop(mended, old, "DeleteMarkers")
    head = mended.item()["Head"]

    steps = repaired(mended)

    assert (steps, mended.item()["Head"]) == ([f"hide {old} (superseded by change {head}, and visible again)"], head)
    assert mended.rows() == ROWS


def test_a_completed_file_of_a_change_that_never_landed_is_hidden(sales: LakeTable, wire: Wire) -> None:
    """Its data stays as a version, and readers see each row once."""
    path = attempt_completed(sales, wire)

    repaired(sales)

    assert sales.rows() == [*ROWS[:2], (3, "THREE", "b")]
    assert len(versions(sales, path, "Versions")) == 1


def test_objects_of_others_are_never_touched(sales: LakeTable) -> None:
    """Neither Parquet files nor names like ours without a record; the difference stays for a person."""
    names = {"shop=a/part-0000.parquet", "_SUCCESS", "0000000099-000001-0123abcd-x.parquet", f"{sales.item()['Head']}-x.parquet"}
    for name in names:
        put(sales, name)
    path = min(path for path in sales.visible() if path in sales.snapshot().files)
    hidden_now(sales, path)

    done = sales.repair()

    assert done.code == 0
    assert names <= sales.visible()
    assert sales.verify() == ["foreign-file", "foreign-file", "stray-file"]


def test_an_unfinished_publish_is_finished_first(mended: LakeTable, wire: Wire) -> None:
    """Then what else is wrong is looked for."""
    mended.cdc([("U", (3, "three", "b"))])
    die(wire, mended, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    change = mended.item()["Head"]

    assert repaired(mended) == [f"finished change {change}"]

    assert mended.rows() == ROWS


def test_an_upload_that_was_forgotten_is_completed(sales: LakeTable, wire: Wire) -> None:
    """Somebody removed Publishing by hand before the files were visible: no copy is needed, and the superseded file is hidden."""
    sales.cdc([("U", (3, "THREE", "b"))])
    die(wire, sales, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    sales.remove("Publishing", "CatalogPending", "LeaseOwner")
    (file,), (old,) = sales.head().added, sales.head().superseded
    assert sales.verify() == ["missing-file", "stray-file"]

    steps = repaired(sales)

    assert [step.split()[0] for step in steps] == ["complete", "hide"]
    assert (file.path in sales.visible(), old in sales.visible()) == (True, False)


@pytest.mark.parametrize("moment", [None, Request.is_completion, Request.is_hide])
def test_an_upload_that_was_forgotten_below_later_changes_is_completed(
    sales: LakeTable, wire: Wire, moment: Callable[[Request], bool] | None
) -> None:
    """A batch of other files went on over the change that is not visible: its record still names the upload. A repair that is killed right
    before that request leaves it to the next one."""
    sales.cdc([("U", (3, "THREE", "b"))])
    die(wire, sales, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    sales.remove("Publishing", "CatalogPending", "LeaseOwner")
    (file,) = sales.head().added
    sales.cdc([("U", (2, "TWO", "a"))])
    assert sales.run() == 0
    if moment is not None:
        dying = Wire()
        dying.rule = once(moment, lambda forward: dying.kill())
        with dying.connected(), pytest.raises(Killed):
            sales.repair(lease_seconds=LONG_LEASE)
        forget_lease(sales)

    steps = repaired(sales)

    assert (f"complete the upload of {file.path}" in steps) == (moment is not Request.is_hide)
    assert sales.rows() == [ROWS[0], (2, "TWO", "a"), (3, "THREE", "b")]


def test_an_upload_that_was_forgotten_and_is_gone_is_a_loss(sales: LakeTable, wire: Wire) -> None:
    """The same, after the lifecycle rule aborted it: refused, and the file that still has the rows is left visible."""
    sales.cdc([("U", (3, "THREE", "b"))])
    die(wire, sales, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    sales.remove("Publishing", "CatalogPending", "LeaseOwner")
    (file,) = sales.head().added
    assert file.upload is not None
    key = sales.out_path.key + file.path
    sales.clients.s3.abort_multipart_upload(Bucket=sales.out_path.bucket, Key=key, UploadId=file.upload.id)

    done = sales.repair()

    assert done.error is not None
    assert done.error.code == "version-gone"
    assert sales.rows() == ROWS


def test_a_repair_whose_copies_vanish_before_they_are_published_is_taken_back(sales: LakeTable, wire: Wire) -> None:
    """What it supersedes was gone before it, and tells nothing of whether it was published."""
    path = min(sales.visible())
    hidden_now(sales, path)
    wire.rule = once(Request.is_completion, lambda forward: wire.kill())
    with pytest.raises(Killed), wire.connected():
        sales.repair(lease_seconds=LONG_LEASE)
    forget_lease(sales)
    abort_uploads(sales.clients.s3, sales.out_path, sales.head().added)

    code = sales.run()

    item = sales.item()
    assert (code, item["LastRun"].get("error"), sales.head().kind) == (0, None, "lost")
    assert ("was taken back" in item["Paused"], "Blocked" in item, sales.verify()) == (True, False, ["missing-file"])
    repaired(sales)
    assert sales.rows() == ROWS


# --- the catalog


def glue_input(table: LakeTable) -> dict[str, Any]:
    """The Glue table in the form in which it can be written back."""
    kept = ("Name", "TableType", "Parameters", "PartitionKeys", "StorageDescriptor")
    return {name: value for name, value in table.catalog_table().items() if name in kept}


def rewrite(table: LakeTable, change: Callable[[dict[str, Any]], Any]) -> None:
    """Another program changes the Glue table."""
    given = glue_input(table)
    change(given)
    table.clients.glue.update_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], TableInput=given)


def without_table(table: LakeTable) -> None:
    table.clients.glue.delete_table(DatabaseName=table.environment["DMSLAKE_DATABASE"], Name=table.item()["CatalogTable"])


def with_other_columns(table: LakeTable) -> None:
    rewrite(table, lambda given: given["StorageDescriptor"]["Columns"][0].update(Type="int"))


def with_other_layout(table: LakeTable) -> None:
    rewrite(table, lambda given: given.update(PartitionKeys=[{"Name": "region", "Type": "string"}]))


def elsewhere(table: LakeTable) -> None:
    rewrite(table, lambda given: given["StorageDescriptor"].update(Location="s3://elsewhere/x/"))


def without_partition(table: LakeTable) -> None:
    database = table.environment["DMSLAKE_DATABASE"]
    table.clients.glue.delete_partition(DatabaseName=database, TableName=table.item()["CatalogTable"], PartitionValues=["b"])


def with_old_types(table: LakeTable) -> None:
    change_partition(table, lambda storage: storage["Columns"][0].update(Type="int"))


BROKEN_CATALOGS = {
    "catalog-missing": without_table,
    "catalog-columns": with_other_columns,
    "catalog-partition-columns": with_other_layout,
    "catalog-location": elsewhere,
    "catalog-missing-partition": without_partition,
    "catalog-partition-types": with_old_types,
}


@pytest.mark.parametrize("code", BROKEN_CATALOGS)
def test_a_broken_catalog_is_found_and_written_anew(mended: LakeTable, code: str) -> None:
    """Each difference has a code of its own and names the Glue table; the repair makes no change for it."""
    table, head = mended, mended.item()["Head"]
    BROKEN_CATALOGS[code](table)
    found = table.verified(quick=True).findings
    names = [(finding.code, finding.is_difference, finding.where) for finding in found]
    assert names == [(code, True, f"{table.environment['DMSLAKE_DATABASE']}.{table.item()['CatalogTable']}")]

    steps = repaired(table)

    assert steps == [f"write the catalog ({code})"]
    assert (table.item()["Head"], "CatalogPending" in table.item()) == (head, False)


# --- when nothing is to be done, or not now


def test_repair_of_a_table_that_is_fine_writes_nothing(mended: LakeTable, wire: Wire) -> None:
    """Neither S3 nor Glue get a write; only lease and result go to the item."""
    with wire.connected():
        done = mended.repair()

    assert (done.code, done.steps, done.change) == (0, (), "")
    assert {request.operation for request in wire.requests if request.is_write} == {"UpdateItem"}


def test_a_dry_run_writes_nothing_and_says_all(mended: LakeTable, wire: Wire) -> None:
    """The same steps that the repair takes afterwards."""
    old = mended.head().superseded[0]
    drop(mended, old, "DeleteMarkers")
    hidden_now(mended, min(path for path in mended.visible() if path != old))
    without_partition(mended)
    place = Place(mended.clients.s3, mended.clients.glue, mended.state_table, mended.environment["DMSLAKE_DATABASE"])

    with wire.connected():
        shown = preview_repair(place, mended.path)

    assert [request for request in wire.requests if request.is_write] == []
    assert [step.split()[0] for step in shown.steps] == ["restore", "hide", "write"]
    assert repaired(mended) == list(shown.steps)


def test_repair_waits_for_no_run(mended: LakeTable) -> None:
    """A held lease: exit 4, nothing changed."""
    hidden_now(mended, min(mended.visible()))
    mended.edit(LeaseOwner="other", LeaseBeat=1, LeaseSeconds=20)
    before = mended.item()
    beat = iter(range(2, 1000))

    done = mended.repair(wait=lambda seconds: mended.edit(LeaseBeat=next(beat)))

    assert done.error is not None
    assert (done.code, done.error.code) == (4, "lease-held")
    assert {**mended.item(), "LeaseBeat": 1} == before


def test_what_a_person_asked_for_stays(sales: LakeTable) -> None:
    """A pause, a moved cursor and a reload by an earlier date are neither answered nor lost by a repair."""
    asked = {"Paused": "let me look", "LastIncrementalFile": f"{sales.path}0.parquet", "LastFullLoadDate": "2001-01-01 00:00:00"}
    sales.edit(**asked)
    hidden_now(sales, min(sales.visible()))

    repaired(sales)

    assert {name: sales.item()[name] for name in asked} == asked


def test_repair_and_rollback_go_together(sales: LakeTable) -> None:
    """A repair after a rollback keeps what can be re-applied; a rollback over a repair finds all files again."""
    second = sales.item()["Head"]
    assert sales.run("Rollback", to="previous") == 0
    hidden_now(sales, min(sales.visible()))

    repaired(sales)
    assert (sales.head().target, sales.rows()[0]) == (sales.lineage()(second).parent, (1, "one", "a"))
    assert sales.run("Rollback", reapply="all") == 0

    assert (sales.verify(), sales.rows()) == ([], ROWS)


def repairs(table: LakeTable) -> int:
    return sum(record.kind == "repair" for record in table.lineage().back())


@pytest.mark.parametrize("moment", [Request.is_copy, Request.is_commit, Request.is_completion, Request.is_hide])
def test_a_repair_that_dies_is_done_by_the_next(mended: LakeTable, wire: Wire, moment: Callable[[Request], bool]) -> None:
    """Killed right after that request took effect: never a row twice, and another repair ends it."""
    hidden_now(mended, min(mended.visible()))
    before = repairs(mended)

    def die_here(forward: Callable[[], Any]) -> Any:
        forward()
        return wire.kill()

    wire.rule = once(moment, die_here)
    with wire.connected(), pytest.raises(Killed):
        mended.repair(lease_seconds=LONG_LEASE)
    forget_lease(mended)
    repaired(mended)

    assert mended.rows() == ROWS
    assert repairs(mended) == before + 1


def test_a_copy_of_the_history_table_that_fails_leaves_none_of_the_lake(make_table: TableMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake's copies are made first; the next repair makes both."""
    table = make_table(COLUMNS, partition_key="shop")
    table.edit(History="true")
    sell(table)
    s3, bucket = table.clients.s3, table.out_path.bucket
    for folder in (table.out_path, history_lake(table.out_path)):
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix=folder.key).get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=entry["Key"])
    copied: list[str] = []

    def fails(s3: Any, lake: S3Uri, *given: Any) -> Any:
        copied.append(str(lake))
        if lake == history_lake(table.out_path):
            raise DmslakeError("no", "access-denied")
        return copy_files(s3, lake, *given)

    with monkeypatch.context() as patch:
        patch.setattr("glue_jobs.protocol.repair.copy_files", fails)
        done = table.repair()

    assert (done.code, len(copied), table.open_uploads()) == (1, 2, [])
    assert (table.repair().code, table.verify()) == (0, [])
