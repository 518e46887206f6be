"""A reload takes over the objects of another program in the lake's folder, and never the files of another table."""

from __future__ import annotations

import pytest

from tests.lake import LakeTable
from tests.protocol.conftest import BEFORE, TableMaker


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
