"""A reload takes over the objects of another program in the lake's folder, and never the files of another table. Nor does a first load or
a recover take the change records of another table for its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glue_jobs.aws.records import write_record
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.protocol.recover import recover
from glue_jobs.rows import create_table
from tests.lake import LakeTable
from tests.protocol.conftest import AFTER, BEFORE, TableMaker
from tests.protocol.test_converge import committed
from tests.protocol.test_forget import make_new_item, shown
from tests.protocol.wire import Wire


def put(table: LakeTable, name: str) -> str:
    """An object that somebody else wrote into the table's folder; its name."""
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + name, Body=b"PAR1")
    return name


def error(table: LakeTable) -> str:
    """The code of the error that the table's last run ended with."""
    return str(table.item()["LastRun"]["error"]["code"])


@pytest.fixture
def inner(table: LakeTable, make_table: TableMaker) -> LakeTable:
    """A loaded table, no longer active, whose lake folder lies inside that of `table`, which is not loaded yet."""
    inner = make_table()
    inner.out_path = table.out_path.join("archive/")
    inner.edit(out_path=str(inner.out_path))
    inner.load([(9, "nine")])
    inner.sync()
    inner.edit(ActiveFlag="false")
    return inner


@pytest.mark.parametrize("request_", ["", "reload"])
def test_files_of_a_table_inside_are_not_replaced(table: LakeTable, inner: LakeTable, request_: str) -> None:
    """A first load names the other table instead of advising a reload, and a reload takes none of its files."""
    table.edit(Request=request_)

    code = table.run("LoadInitial")

    assert (code, error(table), table.visible()) == (1, "lake-folder-taken", {f"archive/{path}" for path in inner.visible()})
    assert str(inner.path) in table.item()["LastRun"]["error"]["message"]
    inner.check_folder()
    assert inner.rows() == [(9, "nine")]


def test_files_of_a_table_around_are_not_replaced(table: LakeTable, make_table: TableMaker) -> None:
    """Of a table without a source, which is never active, and one of whose folders the new table is to have."""
    outer = make_table()
    outer.edit(Source="none", ActiveFlag="false")
    table.out_path = outer.out_path.join("region=north/")
    table.edit(out_path=str(table.out_path), Request="reload")
    path = put(table, "part-0.parquet")

    assert (table.run("LoadInitial"), error(table), table.visible()) == (1, "lake-folder-taken", {path})


def test_files_of_a_table_whose_item_is_lost_are_not_replaced(table: LakeTable, inner: LakeTable) -> None:
    """Their names tell whose they are. Objects of another program are replaced, by a reload that was asked for only."""
    key = {"path": {"S": str(inner.path)}}
    table.clients.dynamodb.delete_item(TableName=table.state_table.name, Key=key)
    table.edit(Request="reload")

    assert (table.run("LoadInitial"), error(table)) == (1, "lake-folder-taken")
    assert table.visible() == {f"archive/{path}" for path in inner.visible()}

    table.out_path = table.out_path.join("new/")
    table.edit(out_path=str(table.out_path), Request="null")
    foreign = put(table, "part-0000.parquet")
    assert (table.run("LoadInitial"), error(table), table.visible()) == (1, "adopt-or-reload", {foreign})
    table.edit(Request="reload")
    assert (table.run("LoadInitial"), table.rows()) == (0, BEFORE)
    assert foreign not in table.visible()


@pytest.fixture
def second(make_table: TableMaker) -> LakeTable:
    """A table with a load that is not taken yet, of another raw folder."""
    table = make_table()
    table.load([(8, "eight"), (9, "nine")])
    return table


def share(second: LakeTable, first: LakeTable) -> None:
    """Give the second table the first one's lake folder, as `--lake` does where schema and table have the same names."""
    second.out_path = first.out_path
    second.edit(out_path=str(first.out_path))


def lose_item(table: LakeTable) -> None:
    """What the state table of another stack knows of the table."""
    table.clients.dynamodb.delete_item(TableName=table.state_table.name, Key={"path": {"S": str(table.path)}})


def check_refused(table: LakeTable, owner: str, job: str = "LoadInitial") -> None:
    """The table's run and its recover name the owner of the folder, and neither item nor folder have anything of the table."""
    before, head = table.visible(), table.item().get("Head")

    assert (table.run(job), error(table)) == (1, "lake-folder-taken")
    assert owner in table.item()["LastRun"]["error"]["message"]
    assert f"set out_path of {table.path}" in table.item()["LastRun"]["error"]["todo"]
    fence = table.item()["Fence"]
    for dry_run in (True, False):
        with pytest.raises(TableBlocked, match=owner) as caught:
            recover(table.clients, table.state_table, table.path, dry_run)
        assert caught.value.code == "lake-folder-taken"
    item = table.item()
    assert (item.get("Head"), item["Fence"], "Publishing" in item, table.visible()) == (head, fence, False, before)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_loaded_table_is_not_handed_to_another(loaded: LakeTable, second: LakeTable, is_known: bool) -> None:
    """Also where the state table does not know it, and after it has gone on; it is as it was, and goes on."""
    share(second, loaded)
    item = loaded.item()
    if not is_known:
        lose_item(loaded)
    check_refused(second, str(loaded.path))
    loaded.state_table.create(item)

    assert (loaded.rows(), loaded.verify()) == (BEFORE, [])
    loaded.sync()
    check_refused(second, str(loaded.path))

    assert (loaded.rows(), loaded.verify()) == (AFTER, [])
    loaded.check_folder()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_that_is_made_and_still_empty_is_not_handed_to_another(second: LakeTable, is_known: bool) -> None:
    """Its folder has no object, and its only change left no trace but its record."""
    made = S3Uri.folder(f"{str(second.out_path)[:-1]}_made/")
    settings = {"state_table": second.state_table.name, "lease_seconds": "5"}
    create_table(str(made), "id bigint, name string", primary_key="id", environment=second.environment, **settings)
    second.out_path = made
    second.edit(out_path=str(made))
    path = str(made)[len("s3://") :]
    if not is_known:
        second.clients.dynamodb.delete_item(TableName=second.state_table.name, Key={"path": {"S": path}})

    check_refused(second, path)

    assert second.visible() == set()


def test_a_load_that_is_committed_and_not_published_is_not_handed_to_another(table: LakeTable, second: LakeTable, wire: Wire) -> None:
    """Its files can't be seen yet."""
    share(second, table)
    committed(wire, table, "LoadInitial")
    assert table.visible() == set()

    assert (second.run("LoadInitial"), error(second), second.visible()) == (1, "lake-folder-taken", set())

    table.sync()
    assert (table.rows(), "Head" in second.item()) == (BEFORE, False)


def test_a_table_in_whose_folder_another_was_loaded_is_not_given_that_ones_head(loaded: LakeTable, second: LakeTable) -> None:
    """By an earlier version, say: each of them must be told that there are two."""
    theirs = replace(loaded.head(), id="0000000099-000001-0123abcd", table=str(second.path))
    write_record(loaded.clients.s3, loaded.out_path, theirs)

    check_refused(loaded, str(second.path), "LoadIncremental")

    assert f"`dmslake forget {loaded.path}` comes first" in loaded.item()["LastRun"]["error"]["todo"]
    assert loaded.forget(shown(loaded, purge=False)).code == 0
    loaded.out_path = second.out_path
    make_new_item(loaded)
    loaded.sync()
    assert loaded.rows() == AFTER


def test_a_purged_table_leaves_its_folder_to_another(loaded: LakeTable, second: LakeTable) -> None:
    """The raw folder moved, and the lake's is to stay."""
    assert loaded.forget(shown(loaded, purge=True)).code == 0
    share(second, loaded)

    second.sync()

    assert (second.rows(), second.verify()) == ([(8, "eight"), (9, "nine")], [])


def test_a_table_given_a_folder_of_its_own_is_loaded(loaded: LakeTable, second: LakeTable) -> None:
    """The way out that the error names."""
    own = second.out_path
    share(second, loaded)
    check_refused(second, str(loaded.path))

    second.out_path = own
    second.edit(out_path=str(own))
    second.sync()

    assert second.rows() == [(8, "eight"), (9, "nine")]
    second.check_folder()


def test_an_attempt_of_another_table_stops_no_loaded_one(loaded: LakeTable, second: LakeTable) -> None:
    """Nothing of it was published, and the loaded table has given out its fence: it never landed."""
    head = loaded.head()
    never = tuple(replace(file, path="never.parquet") for file in head.added)
    attempt = replace(head, id="0000000001-000009-0123abcd", table=str(second.path), added=never)
    write_record(loaded.clients.s3, loaded.out_path, attempt)

    loaded.sync()

    assert (loaded.rows(), loaded.verify(quick=True)) == (AFTER, [])
