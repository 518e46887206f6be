"""Forget: what goes, what stays, what is never touched, and what a crash at each of its writes leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from glue_jobs.aws.objects import list_files
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.errors import ConfigurationError, DmslakeError
from glue_jobs.core.history_table import history_catalog_name, history_lake
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.state import default_item
from glue_jobs.protocol.forget import ForgetPlan, look
from glue_jobs.protocol.job import Ended
from glue_jobs.protocol.recover import recover
from glue_jobs.protocol.verify import Place
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.runs import LONG_LEASE, forget_lease
from tests.protocol.wire import Killed, Request, Wire, once


def shown(table: LakeTable, *, purge: bool) -> ForgetPlan:
    """What a person is shown."""
    place = Place(table.clients.s3, table.clients.glue, table.state_table, table.environment["DMSLAKE_DATABASE"])
    return look(place, table.state(), purge=purge)


def forget_on(wire: Wire, table: LakeTable, plan: ForgetPlan) -> Ended:
    """A forget whose requests pass through the wire, under a lease that needs no renewal meanwhile."""
    with wire.connected():
        return table.forget(plan, lease_seconds=LONG_LEASE)


def records(table: LakeTable) -> list[str]:
    """The visible objects beside the table's records."""
    folder = changes_folder(table.out_path)
    return [file.key for file in list_files(table.clients.s3, folder.bucket, folder.key)]


def held(table: LakeTable) -> set[str]:
    """All data versions of files and records, visible or not."""
    prefixes = (table.out_path.key, changes_folder(table.out_path).key)
    return {each.version for prefix in prefixes for each in held_versions(table.clients.s3, table.out_path.bucket, prefix)}


def in_catalog(table: LakeTable) -> bool:
    tables = table.clients.glue.get_tables(DatabaseName=table.environment["DMSLAKE_DATABASE"])["TableList"]
    return f"shop_{table.table}" in [found["Name"] for found in tables]


def make_new_item(table: LakeTable, active: str = "true") -> None:
    """What the next run and a person do."""
    assert table.state_table.create(default_item(table.path, str(table.out_path)))
    table.edit(ActiveFlag=active, PrimaryKey="id")


@pytest.fixture
def kept(table: LakeTable) -> LakeTable:
    """A loaded table."""
    assert table.run("LoadInitial") == 0
    return table


@pytest.fixture
def two_changes(loaded: LakeTable) -> LakeTable:
    """A load and a batch, so that there are visible and hidden files."""
    assert loaded.run() == 0
    return loaded


def test_plain_forget_leaves_the_lake_and_recover_brings_the_table_back(two_changes: LakeTable) -> None:
    """Item and Glue table are gone, everything else is as it was; loading over the records is refused until they are taken up again."""
    table = two_changes
    visible, beside, versions = table.visible(), records(table), held(table)

    assert table.forget(shown(table, purge=False)) == Ended(0)

    assert (table.item(), in_catalog(table)) == ({}, False)
    assert (table.visible(), records(table), held(table)) == (visible, beside, versions)
    make_new_item(table)
    assert (table.run("LoadInitial"), table.state().blocked.code) == (1, "state-went-back")
    recover(table.clients, table.state_table, table.path, dry_run=False)
    table.cdc([("I", (5, "five"))])
    table.sync()
    assert table.rows() == [*AFTER, (5, "five")]
    assert (table.verify(), in_catalog(table)) == ([], True)


def test_purge_hides_all_of_the_table_and_nothing_else(two_changes: LakeTable) -> None:
    """What others wrote into its folders stays and is named; no version is deleted; the table can be loaded as a new one, under fences
    above all that were given out."""
    table, s3, bucket = two_changes, two_changes.clients.s3, two_changes.out_path.bucket
    own, beside, head = table.out_path.key, changes_folder(table.out_path).key, table.item()["Head"]
    foreign = [f"{own}notes.txt", f"{own}{head}-copy.parquet", f"{beside}x/{head}.json"]
    for key in foreign:
        s3.put_object(Bucket=bucket, Key=key, Body=b"of others")
    fence, versions = table.item()["Fence"], held(table)
    plan = shown(table, purge=True)
    assert sorted(plan.foreign) == sorted(foreign)
    assert plan.size_bytes == sum(file.size_bytes for file in table.snapshot().files.values())

    assert table.forget(plan) == Ended(0)

    assert {*(own + path for path in table.visible()), *records(table)} == set(foreign)
    assert (table.item(), in_catalog(table), held(table)) == ({}, False, versions)
    for key in foreign:
        s3.delete_object(Bucket=bucket, Key=key)
    make_new_item(table)
    table.sync()
    assert (table.rows(), table.item()["Fence"] > fence) == (AFTER, True)


def make_history(table: LakeTable) -> S3Uri:
    """A folder with data files, records and a Glue table as those of the table's history: copies of the table's own."""
    s3, glue, database = table.clients.s3, table.clients.glue, table.environment["DMSLAKE_DATABASE"]
    beside = history_lake(table.out_path)
    for source, target in ((table.out_path, beside), (changes_folder(table.out_path), changes_folder(beside))):
        for file in list_files(s3, source.bucket, source.key):
            key = target.key + file.key[len(source.key) :]
            s3.copy_object(Bucket=target.bucket, Key=key, CopySource={"Bucket": source.bucket, "Key": file.key})
    found = table.catalog_table()
    like = {name: found[name] for name in ("StorageDescriptor", "Parameters", "PartitionKeys")}
    glue.create_table(DatabaseName=database, TableInput={**like, "Name": history_catalog_name(found["Name"])})
    return beside


def test_a_history_table_goes_with_its_table(kept: LakeTable, make_table: TableMaker) -> None:
    """Its Glue table, its data files and its records; a table of that name that is no history is not touched."""
    other = make_table(table=f"{kept.table}_history")
    other.load(BEFORE)
    other.sync()
    plan = shown(kept, purge=True)
    assert ([folder.lake for folder in plan.folders], len(plan.catalog)) == ([str(kept.out_path)], 1)
    assert other.forget(shown(other, purge=True)) == Ended(0)
    folders = (kept.out_path, make_history(kept))

    plan = shown(kept, purge=True)
    assert ([folder.lake for folder in plan.folders], len(plan.files), len(plan.catalog)) == ([*map(str, folders)], 2, 2)
    assert kept.forget(plan) == Ended(0)

    s3 = kept.clients.s3
    left = [file for folder in (*folders, *map(changes_folder, folders)) for file in list_files(s3, folder.bucket, folder.key)]
    assert (left, in_catalog(kept), in_catalog(other)) == ([], False, False)


def test_a_purged_table_comes_back_by_its_versions(two_changes: LakeTable) -> None:
    """The newest version of each record is copied over its delete marker, which nobody may remove; the rest is recover's and repair's."""
    table, s3 = two_changes, two_changes.clients.s3
    assert table.forget(shown(table, purge=True)) == Ended(0)

    folder = changes_folder(table.out_path)
    versions = s3.list_object_versions(Bucket=folder.bucket, Prefix=folder.key)["Versions"]
    for key, version in {each["Key"]: each["VersionId"] for each in reversed(versions)}.items():
        s3.copy_object(Bucket=folder.bucket, Key=key, CopySource={"Bucket": folder.bucket, "Key": key, "VersionId": version})
    make_new_item(table, active="false")
    recover(table.clients, table.state_table, table.path, dry_run=False)
    table.repair()

    assert (table.rows(), table.verify()) == (AFTER, [])


def test_a_crash_at_any_write_is_ended_by_the_same_again(kept: LakeTable) -> None:
    """One after the other, each forget going on from what the one before has left. From the mark on no run changes anything any more."""
    left = []
    for operation, word in (("UpdateItem", b"Paused"), ("DeleteTable", b""), ("DeleteObjects", b""), ("DeleteObjects", b"_changes")):
        wire = Wire()
        wire.rule = once(partial(_is, operation, word), lambda send, wire=wire: (send(), wire.kill()))
        with pytest.raises(Killed):
            forget_on(wire, kept, shown(kept, purge=True))
        forget_lease(kept, 0.01)
        visible, beside = kept.visible(), records(kept)
        left.append(("Paused" in kept.item(), in_catalog(kept), bool(visible), bool(beside)))
        assert (kept.run(), kept.visible(), records(kept)) == (0 if beside else 1, visible, beside)

    assert left == [(True, True, True, True), (True, False, True, True), (True, False, False, True), (True, False, False, False)]
    undisturbed = Wire()
    assert forget_on(undisturbed, kept, shown(kept, purge=True)) == Ended(0)
    assert kept.item() == {}
    writes = [request.operation for request in undisturbed.requests if request.is_write]
    assert writes == ["UpdateItem", "UpdateItem", "DeleteItem", "UpdateItem", "UpdateItem"], "without an item the last two are refused"


def _is(operation: str, word: bytes, request: Request) -> bool:
    return request.operation == operation and word in request.body


@pytest.mark.parametrize(
    ("values", "code"), [({"Publishing": "x"}, "unfinished-publish"), ({"Erasing": "x"}, "unfinished-erase")], ids=["publish", "erase"]
)
def test_what_is_not_finished_comes_first(table: LakeTable, values: dict[str, str], code: str) -> None:
    """Refused with the way out, also if it began after the look."""
    plan = shown(table, purge=True)
    table.edit(**values)
    before = table.item()

    with pytest.raises(DmslakeError) as caught:
        shown(table, purge=True)
    ended = table.forget(plan)

    assert ended.error is not None
    assert caught.value.code == ended.error.code == code
    assert {name: table.item()[name] for name in before} == before


def _commits(table: LakeTable) -> None:
    table.cdc([("I", (6, "six"))])
    table.sync()


def _writes_foreign(table: LakeTable) -> None:
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=f"{table.out_path.key}late.txt", Body=b"x")


@pytest.mark.parametrize("meanwhile", [_commits, _writes_foreign], ids=["a change", "an object"])
def test_another_table_than_the_one_shown_is_not_forgotten(kept: LakeTable, meanwhile: Callable[[LakeTable], None]) -> None:
    """Nothing is marked or hidden then."""
    plan = shown(kept, purge=True)
    meanwhile(kept)
    visible = kept.visible()

    ended = kept.forget(plan)

    assert ended.error is not None
    assert (ended.code, ended.error.code) == (1, "moved-on")
    assert (kept.item()["ActiveFlag"], kept.visible()) == ("true", visible)


def test_a_table_inside_keeps_its_files_and_one_in_the_same_folder_forbids_a_purge(kept: LakeTable, make_table: TableMaker) -> None:
    """A folder in the folder is another table's; and so is a Glue table that says that it is."""
    inner = make_table()
    inner.edit(out_path=f"{kept.out_path}archive/")
    inner.out_path = inner.state().lake
    inner.load(BEFORE)
    inner.sync()
    plan = shown(kept, purge=True)
    assert (plan.inside, len(plan.foreign)) == ((str(inner.path),), 1)

    assert kept.forget(plan) == Ended(0)
    assert (inner.rows(), inner.verify(), in_catalog(inner)) == (BEFORE, [], True)

    other = make_table()
    other.edit(out_path=str(inner.out_path), CatalogTable=inner.item()["CatalogTable"])
    with pytest.raises(DmslakeError) as caught:
        shown(other, purge=True)
    assert caught.value.code == "lake-folder-taken"
    assert other.forget(shown(other, purge=False)) == Ended(0)
    assert (other.item(), inner.verify(), in_catalog(inner)) == ({}, [], True)


def test_a_run_at_work_is_let_work(table: LakeTable) -> None:
    """Exit code 4, and nothing is done."""
    plan = shown(table, purge=False)
    table.edit(LeaseOwner="another", LeaseSeconds=60, LeaseBeat=1, Fence=3)

    ended = table.forget(plan, wait=lambda seconds: table.edit(LeaseBeat=2))

    assert (ended.code, table.item()["Fence"], table.item()["ActiveFlag"]) == (4, 3, "true")


def test_a_bucket_without_versions_is_not_purged(table: LakeTable) -> None:
    """There a hidden file would be a deleted one."""
    bucket = f"{table.out_path.bucket}-plain"
    table.clients.s3.create_bucket(Bucket=bucket)
    table.edit(out_path=f"s3://{bucket}/lake/shop/{table.table}/")

    with pytest.raises(ConfigurationError) as caught:
        shown(table, purge=True)

    assert (caught.value.code, shown(table, purge=False).files) == ("bucket-not-versioned", ())


def test_a_table_without_a_folder_is_only_an_item(table: LakeTable) -> None:
    """Nobody has said where its lake is."""
    table.edit(out_path="")

    plan = shown(table, purge=True)

    assert (plan.folders, table.forget(plan), table.item()) == ((), Ended(0), {})


def test_another_s_lease_ends_a_forget(kept: LakeTable) -> None:
    """An item that was taken over since is not deleted; what was hidden stays hidden, and the same forget ends it."""
    wire = Wire(rule=lambda request, send: (kept.edit(Fence=99), send())[1] if request.operation == "DeleteTable" else send())

    ended = forget_on(wire, kept, shown(kept, purge=True))

    assert ended.error is not None
    assert (ended.error.code, kept.item()["Fence"], kept.visible()) == ("lease-lost", 99, set())


@pytest.mark.parametrize("has_head", [False, True])
def test_a_folder_of_a_table_in_another_state_table_is_not_purged(table: LakeTable, make_table: TableMaker, has_head: bool) -> None:
    """The records tell whose it is, also to a table with changes of its own, in the folder that it had before. Without --purge the other
    item may go."""
    other = make_table()
    if has_head:
        other.load(BEFORE)
        other.sync()
    table.load(BEFORE)
    table.sync()
    other.edit(out_path=str(table.out_path))
    table.clients.dynamodb.delete_item(TableName=table.state_table.name, Key={"path": {"S": str(table.path)}})
    visible = table.visible()

    with pytest.raises(DmslakeError) as caught:
        shown(other, purge=True)

    assert (caught.value.code, str(table.path) in str(caught.value)) == ("lake-folder-taken", True)
    assert other.forget(shown(other, purge=False)) == Ended(0)
    assert (other.item(), table.visible()) == ({}, visible)
