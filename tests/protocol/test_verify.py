"""verify: each thing that can be wrong with a table is really done to one, and found; what runs do meanwhile is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.records import read_record
from glue_jobs.aws.uploads import complete_upload
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.verify import Finding, Verified
from glue_jobs.protocol.verify import FileChecks, Place, verify
from glue_jobs.spark.verify_files import check_files
from glue_jobs.spark.verify_history import check_history
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import die, forget_lease
from tests.protocol.wire import Request, Wire, once
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("shop", pa.string())])
LOADED = [(1, "one", "a"), (2, "two", "a"), (3, "three", "b")]
Sale = tuple[Any, ...]


def sell(table: LakeTable) -> LakeTable:
    """The table after a load and one batch, which replaced the file of partition a and left that of b."""
    table.load(LOADED)
    table.cdc([("U", (1, "ONE", "a"))])
    table.sync()
    return table


@pytest.fixture
def sales(make_table: TableMaker) -> LakeTable:
    """A partitioned table for one test alone."""
    return sell(make_table(COLUMNS, partition_key="shop"))


@pytest.fixture(scope="module")
def one_for_all(quick_aws: QuickAws, clients: Clients) -> LakeTable:
    aws = quick_aws
    return sell(LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, partition_key="shop", shared=clients))


@pytest.fixture
def kept(one_for_all: LakeTable) -> Iterator[LakeTable]:
    """A table as `sales`, for tests that only add to lake and item, or edit it; what they did is taken away again."""
    table, before, item = one_for_all, set(all_versions(one_for_all)), one_for_all.item()
    yield table
    for key, version in set(all_versions(table)) - before:
        table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key, VersionId=version)
    added = tuple(set(table.item()) - set(item))
    table.state_table.set_attributes(str(table.path), {name: value for name, value in item.items() if name != "path"}, added)


def all_versions(table: LakeTable) -> Iterator[tuple[str, str]]:
    """(key, version) of all data and delete markers of the table and its records."""
    for folder in (table.out_path, changes_folder(table.out_path)):
        found = table.clients.s3.list_object_versions(Bucket=folder.bucket, Prefix=folder.key)
        yield from ((entry["Key"], entry["VersionId"]) for entry in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())))


def hidden_now(table: LakeTable, path: str) -> None:
    """A person deletes a data file."""
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path)


def put(table: LakeTable, path: str, data: bytes = b"something") -> None:
    """Another program writes into the folder."""
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, Body=data)


def versions(table: LakeTable, path: str, kind: str) -> list[str]:
    """The ids of a key's `Versions` or `DeleteMarkers`."""
    found = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=table.out_path.key + path)
    return [entry["VersionId"] for entry in found.get(kind, ())]


def drop(table: LakeTable, path: str, kind: str) -> None:
    """Somebody with the permission to do so deletes versions for good."""
    for version in versions(table, path, kind):
        table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, VersionId=version)


def only(found: Verified) -> Finding:
    (finding,) = found.findings
    return finding


def at_rest(table: LakeTable, check: Any = None, wait: Callable[[float], None] = lambda seconds: None) -> Verified:
    place = Place(table.clients.s3, table.clients.glue, table.state_table, table.environment["DMSLAKE_DATABASE"])
    return verify(place, table.path, FileChecks(check, check_history) if check else None, wait)


# --- the folder


def test_a_table_that_is_fine_has_no_finding_and_nothing_is_written(kept: LakeTable, wire: Wire) -> None:
    """All files and rows are counted, no request changes anything, and no lease is taken."""
    with wire.connected():
        found = kept.verified()

    assert (found.findings, found.files, found.rows, found.change) == ((), 2, 3, kept.item()["Head"])
    assert [request for request in wire.requests if request.is_write] == []


def test_a_deleted_file_is_missing_and_its_version_is_named(kept: LakeTable) -> None:
    """A delete marker that is not ours: the rows are not there for readers, the bytes are for us."""
    path = min(kept.visible())
    hidden_now(kept, path)

    finding = only(kept.verified())

    assert (finding.code, finding.where, finding.is_difference) == ("missing-file", str(kept.out_path.join(path)), True)
    assert (finding.found, finding.todo) == ("not visible; its data version still exists", "`dmslake verify PATH --repair`")


def test_a_file_whose_version_is_gone_is_told_apart(sales: LakeTable) -> None:
    """Nothing can bring the bytes back, so the way out is another one."""
    drop(sales, min(sales.visible()), "Versions")

    finding = only(sales.verified())

    assert (finding.code, finding.found) == ("missing-file", "not visible; its data version is no more")
    assert "dmslake rollback" in finding.todo
    assert "reload" in finding.todo


def test_a_superseded_file_that_is_visible_again_is_a_stray(sales: LakeTable) -> None:
    """Its delete marker was removed: readers see its rows twice. The finding names the change that superseded it."""
    (old,) = sales.head().superseded
    drop(sales, old, "DeleteMarkers")

    finding = only(sales.verified())

    assert (finding.code, finding.where) == ("stray-file", str(sales.out_path.join(old)))
    assert finding.found == f"superseded by change {sales.item()['Head']}, and visible again"


def attempt_completed(table: LakeTable, wire: Wire) -> str:
    """A change dies before its commit, the next run does its work anew, and then somebody completes its upload; the file's path."""
    table.cdc([("U", (3, "THREE", "b"))])
    records: list[str] = []

    def before_commit(request: Request, forward: Callable[[], Any]) -> Any:
        if request.is_record():
            records.append(request.key.rsplit("/", 1)[-1].removesuffix(".json"))
        return wire.kill() if request.is_commit() else forward()

    die(wire, table, "LoadIncremental", before_commit)
    assert table.run() == 0
    (file,) = read_record(table.clients.s3, table.out_path, records[0]).added
    assert file.upload is not None
    assert complete_upload(table.clients.s3, table.out_path.bucket, table.out_path.key + file.path, file.upload, look_first=False) == "done"
    return file.path


def test_a_file_of_a_change_that_never_landed_is_a_stray(sales: LakeTable, wire: Wire) -> None:
    """It has our name and a record, and no snapshot of the head ever had it."""
    path = attempt_completed(sales, wire)

    finding = only(sales.verified())

    assert (finding.code, finding.where) == ("stray-file", str(sales.out_path.join(path)))
    assert finding.found.endswith("which never landed")


def test_a_file_with_our_name_that_no_record_lists_is_a_stray_for_a_person(kept: LakeTable) -> None:
    """Left from a task's first attempt, say: --repair works by exact lists, so a person has to decide."""
    put(kept, f"shop=a/{kept.item()['Head']}-left-over.parquet")

    finding = only(kept.verified())

    assert finding.code == "stray-file"
    assert finding.todo.startswith("delete it by hand")


@pytest.mark.parametrize("name", ["shop=a/part-0000.parquet", "0000000099-000001-0123abcd-x.parquet", "shop=a/rows.csv"])
def test_objects_of_others_that_readers_read_are_differences(kept: LakeTable, name: str) -> None:
    """A Parquet file doubles rows, anything else makes readers by path fail; also if its name looks like one of ours."""
    put(kept, name)

    finding = only(kept.verified())

    assert (finding.code, finding.where, finding.is_difference) == ("foreign-file", str(kept.out_path.join(name)), True)


def test_objects_of_others_that_readers_skip_are_notes(kept: LakeTable) -> None:
    """Markers, hidden names and hidden folders are only mentioned."""
    for name in ("_SUCCESS", ".part.crc", "_temporary/0/part.parquet", "shop=c/"):
        put(kept, name, b"" if name.endswith("/") else b"x")

    found = kept.verified()

    assert [(finding.code, finding.is_difference) for finding in found.findings] == [("foreign-file", False)] * 4


def test_an_overwritten_data_file_is_found_without_reading_it(kept: LakeTable) -> None:
    """Size or ETag are not those of the record."""
    path = min(kept.visible())
    put(kept, path)

    finding = only(kept.verified(quick=True))

    assert (finding.code, finding.where) == ("wrong-file", str(kept.out_path.join(path)))
    assert finding.found.startswith("9 bytes")


def test_uploads_that_an_attempt_left_are_a_note(sales: LakeTable) -> None:
    """Nobody sees them; one note for each change."""
    key = f"{sales.out_path.key}shop=a/{sales.item()['Head']}-x.parquet"
    for _ in range(2):
        sales.clients.s3.create_multipart_upload(Bucket=sales.out_path.bucket, Key=key)

    finding = only(sales.verified())

    assert (finding.code, finding.is_difference) == ("open-upload", False)
    assert finding.found == f"2 open upload(s) of change {sales.item()['Head']}"


# --- the item


def test_an_unfinished_publish_is_one_difference(sales: LakeTable, wire: Wire) -> None:
    """A run died after its commit: what it has yet to complete and to hide is neither missing nor stray."""
    sales.cdc([("U", (3, "THREE", "b"))])
    die(wire, sales, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))

    assert sales.verify() == ["unfinished-publish"]


def test_an_unfinished_catalog_step_is_a_difference(kept: LakeTable) -> None:
    """The catalog itself is not compared until the step was done."""
    kept.edit(CatalogPending=kept.item()["Head"])

    assert kept.verify() == ["unfinished-catalog"]


def test_an_item_that_went_back_is_found(kept: LakeTable) -> None:
    """The records know a later change; nothing else is compared with the wrong snapshot."""
    kept.edit(Head=kept.head().parent)

    assert kept.verify() == ["state-went-back"]


def test_a_cursor_that_a_person_moved_is_a_note(kept: LakeTable) -> None:
    """The next batch goes on from there: nothing is wrong."""
    kept.edit(LastIncrementalFile=f"{kept.path}0.parquet")

    finding = only(kept.verified())

    assert (finding.code, finding.is_difference, finding.found) == ("cursor-moved", False, "no cursor")


@pytest.mark.parametrize(("damage", "code"), [(None, "record-gone"), (b"{", "bad-record")])
def test_a_damaged_record_is_a_finding(kept: LakeTable, damage: bytes | None, code: str) -> None:
    """Without the head's record nothing can be compared."""
    folder = changes_folder(kept.out_path)
    key = f"{folder.key}{kept.item()['Head']}.json"
    if damage is None:
        kept.clients.s3.delete_object(Bucket=folder.bucket, Key=key)
    else:
        kept.clients.s3.put_object(Bucket=folder.bucket, Key=key, Body=damage)

    assert kept.verify() == [code]


def test_a_bucket_that_lost_its_versioning_is_a_difference(kept: LakeTable) -> None:
    """No hidden file could be brought back any more."""
    bucket = kept.out_path.bucket
    kept.clients.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    try:
        assert kept.verify() == ["bucket-not-versioned"]
    finally:
        kept.clients.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def test_a_table_without_a_change_is_only_noted(make_table: TableMaker) -> None:
    """There is nothing to compare yet."""
    finding = only(make_table().verified())

    assert (finding.code, finding.is_difference) == ("not-loaded", False)


def test_a_table_without_its_head_but_with_records_is_a_difference(kept: LakeTable) -> None:
    """Its item was made anew."""
    kept.remove("Head", "Fence")

    assert kept.verify() == ["state-went-back"]


def test_a_table_that_was_rolled_back_to_nothing_is_fine(sales: LakeTable) -> None:
    """An empty folder is what its head says."""
    first = min(record.id for record in sales.lineage().back())
    assert sales.run("Rollback", undo=first) == 0

    assert (sales.visible(), sales.verify()) == (set(), [])


def test_a_change_that_was_taken_back_is_fine(sales: LakeTable, wire: Wire) -> None:
    """Its uploads were gone before they were published: what it had superseded is in the snapshot again."""
    sales.cdc([("U", (3, "THREE", "b"))])
    die(wire, sales, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    for file in sales.head().added:
        assert file.upload is not None
        key = sales.out_path.key + file.path
        sales.clients.s3.abort_multipart_upload(Bucket=sales.out_path.bucket, Key=key, UploadId=file.upload.id)

    assert sales.run() == 0

    assert "lost" in {record.kind for record in sales.lineage().back()}
    assert sales.verified().findings == ()


def test_odd_partitions_are_fine(make_table: TableMaker) -> None:
    """Folders of a date's parts, escaped characters, null: in S3, in the files and in the catalog."""
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("shop", pa.string())])
    table = make_table(columns, partition_key="year(day), shop", primary_key="id,shop")
    shops = ["a b", "x/y=z%2F", "ü'\"`", "😀"]
    table.load([(number, date(2020 + number, 5, 1), shop) for number, shop in enumerate(shops)])
    assert table.run("LoadInitial") == 0

    found = table.verified()

    assert (found.findings, found.files) == ((), 4)


# --- the catalog: what --repair can put right is in test_repair.py


def change_partition(table: LakeTable, change: Callable[[dict[str, Any]], Any]) -> None:
    """Another program changes how Glue stores partition b."""
    where = {"DatabaseName": table.environment["DMSLAKE_DATABASE"], "TableName": table.item()["CatalogTable"]}
    storage = table.clients.glue.get_partition(**where, PartitionValues=["b"])["Partition"]["StorageDescriptor"]
    change(storage)
    table.clients.glue.update_partition(**where, PartitionValueList=["b"], PartitionInput={"Values": ["b"], "StorageDescriptor": storage})


def test_a_partition_that_points_elsewhere_is_found(kept: LakeTable) -> None:
    """Readers of the catalog would not see the files of that partition."""
    right = str(kept.out_path.join("shop=b/"))
    change_partition(kept, lambda storage: storage.update(Location="s3://elsewhere/shop=b/"))

    finding = only(kept.verified(quick=True))
    change_partition(kept, lambda storage: storage.update(Location=right))

    assert (finding.code, finding.is_difference) == ("catalog-partition-location", True)


def test_a_glue_table_of_another_program_is_found(kept: LakeTable) -> None:
    """A run would refuse to write it."""
    kept.edit(CatalogTable="of_another_program")
    columns = {"Columns": [{"Name": "x", "Type": "int"}], "Location": "s3://elsewhere/x/"}
    given = {"Name": "of_another_program", "StorageDescriptor": columns, "Parameters": {"dmslake.path": "another/table/here/"}}
    kept.clients.glue.create_table(DatabaseName=kept.environment["DMSLAKE_DATABASE"], TableInput=given)

    assert kept.verify(quick=True) == ["catalog-name-taken"]


def test_a_partition_without_files_is_a_note(sales: LakeTable) -> None:
    """Partitions are never removed."""
    sales.cdc([("D", (3, None, None))])
    assert sales.run() == 0

    finding = only(sales.verified())

    assert (finding.code, finding.is_difference) == ("catalog-empty-partition", False)
    assert "shop=b" in finding.found


def test_without_a_database_the_catalog_is_said_to_be_unchecked(kept: LakeTable) -> None:
    """No request goes to Glue."""
    finding = only(verify(Place(kept.clients.s3, None, kept.state_table, ""), kept.path))

    assert (finding.code, finding.is_difference) == ("catalog-unchecked", False)


# --- while runs work


def test_a_change_that_lands_during_the_look_is_no_difference(sales: LakeTable, wire: Wire) -> None:
    """A whole run takes place between reading the records and listing the folder: all is looked at anew."""
    sales.cdc([("U", (3, "THREE", "b"))])
    before = sales.item()["Head"]

    def run_first(forward: Callable[[], Any]) -> Any:
        wire.rule = None
        assert sales.run() == 0
        return forward()

    listing = once(lambda request: request.operation == "ListObjectsV2" and "lifecycle" in seen(wire), run_first)
    wire.rule = listing
    with wire.connected():
        found = at_rest(sales)

    assert found.findings == ()
    assert found.change == sales.item()["Head"] != before


def seen(wire: Wire) -> set[str]:
    """`lifecycle` once the bucket was looked at, which comes right before the folder."""
    return {"lifecycle"} if wire.of("GetBucketLifecycleConfiguration") else set()


def test_files_that_are_hidden_while_they_are_read_are_no_difference(sales: LakeTable) -> None:
    """A data file never changes: one that a run superseded since the listing is read by its version."""
    sales.cdc([("U", (1, "uno", "a")), ("U", (3, "tre", "b"))])

    def check(*given: Any) -> Any:
        assert sales.run() == 0
        return check_files(*given)

    found = at_rest(sales, check)

    assert (found.findings, found.rows) == ((), 3)
    assert sales.verify() == []


def test_a_table_that_never_stands_still_is_said_to_be_busy(kept: LakeTable, wire: Wire) -> None:
    """Every look meets another fence: nothing is claimed."""

    def move(request: Request, forward: Callable[[], Any]) -> Any:
        if request.operation == "GetBucketVersioning":
            kept.edit(Fence=kept.item()["Fence"] + 1)
        return forward()

    wire.rule = move
    with wire.connected():
        found = at_rest(kept)

    assert (found.is_busy, only(found).code, found.differences) == (True, "run-working", ())


def test_a_run_that_publishes_is_waited_for(kept: LakeTable) -> None:
    """The lease's owner shows signs of life, and ends."""
    kept.edit(LeaseOwner="other", LeaseBeat=1, LeaseSeconds=30, Publishing=kept.item()["Head"])
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            kept.remove("LeaseOwner", "LeaseBeat", "LeaseSeconds", "Publishing")

    found = at_rest(kept, wait=wait)

    assert (found.findings, found.is_busy) == ((), False)


def test_a_run_that_goes_on_publishing_makes_the_table_busy(kept: LakeTable) -> None:
    """Signs of life without end."""
    kept.edit(LeaseOwner="other", LeaseBeat=1, LeaseSeconds=30, Publishing=kept.item()["Head"])

    found = at_rest(kept, wait=lambda seconds: kept.edit(LeaseBeat=kept.item()["LeaseBeat"] + 1))

    assert found.is_busy


def test_a_run_that_died_while_it_published_is_unfinished(kept: LakeTable) -> None:
    """No sign of life for the lease's length."""
    kept.edit(LeaseOwner="other", LeaseBeat=1, Publishing=kept.item()["Head"])
    forget_lease(kept)

    assert kept.verify() == ["unfinished-publish"]
