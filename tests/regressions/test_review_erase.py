"""Erases: what holds a key goes, under whatever name and type; what holds none stays; and none is forgotten."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.removal import held_versions
from glue_jobs.core.paths import S3Uri
from glue_jobs.protocol.history import last_published
from infra.local.dms_files import cdc_file_name
from tests.lake import LakeTable
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Tables:
    """Makes tables that hold what was loaded."""

    def __init__(self, aws: QuickAws, clients: Clients) -> None:
        self._aws, self._clients = aws, clients

    def __call__(self, rows: Any = ((1, "one"), (2, "two")), columns: pa.Schema = COLUMNS, out_path: str = "") -> LakeTable:
        table = LakeTable(self._aws.environment(), self._aws.raw, self._aws.lake, columns, shared=self._clients)
        table.edit(LoadQuietMinutes="0", **({"out_path": out_path} if out_path else {}))
        table.out_path = S3Uri.parse(out_path) if out_path else table.out_path
        table.load(rows)
        assert table.run("LoadInitial") == 0
        return table


@pytest.fixture
def make(quick_aws: QuickAws, quick_clients: Clients) -> Tables:
    return Tables(quick_aws, quick_clients)


def erase(table: LakeTable, folder: Path, **keys: Any) -> None:
    """An erase by the columns of the keys, which must work."""
    path = folder / "keys.parquet"
    pq.write_table(pa.table(keys), path)
    assert table.run("Erase", erase_keys=str(path), key=",".join(keys)) == 0, table.item()["LastRun"]["error"]
    assert "Erasing" not in table.item()


def held(table: LakeTable, number: int) -> list[dict[str, Any]]:
    """The rows with that id in all versions that S3 keeps."""
    s3, lake, rows = table.clients.s3, table.out_path, []
    for each in held_versions(s3, lake.bucket, lake.key):
        data = s3.get_object(Bucket=lake.bucket, Key=each.key, VersionId=each.version)["Body"].read()
        rows += pq.read_table(io.BytesIO(data), partitioning=None).to_pylist()
    return [row for row in rows if row["id"] == number]


def take(table: LakeTable, *rows: Any, columns: pa.Schema | None = None, name: str | None = None) -> None:
    """A CDC file with the rows, and a run."""
    table.cdc(rows, columns=columns, name=name)
    assert table.run() == 0, table.item()["LastRun"]


def test_an_erase_without_files_is_found_where_the_item_went_back(make: Tables, tmp_path: Path) -> None:
    """It changed no data file; without it a later rollback would not know what it took."""
    table = make()
    take(table, ("D", (2, None)))
    head = table.item()["Head"]
    erase(table, tmp_path, id=[2])
    change = table.head()
    assert (change.added, change.superseded) == ((), ())

    table.edit(Head=head)

    assert last_published(table.clients.s3, table.out_path) == change.id
    assert table.verify() == ["state-went-back"]


def test_what_another_program_wrote_over_a_hidden_file_stays_visible(make: Tables, tmp_path: Path) -> None:
    """The listed version below it goes; the other's object holds no key."""
    table = make()
    take(table, ("U", (2, "TWO")))
    s3, lake = table.clients.s3, table.out_path
    path = next(path for record in table.lineage().back() for path in record.superseded)
    data = io.BytesIO()
    pq.write_table(pa.table({"id": [77], "name": ["theirs"]}), data)
    s3.put_object(Bucket=lake.bucket, Key=lake.key + path, Body=data.getvalue())

    erase(table, tmp_path, id=[1])

    assert path in table.visible()
    assert (held(table, 1), len(held(table, 77))) == ([], 1)


def test_a_table_whose_folder_is_inside_is_left_alone(make: Tables, tmp_path: Path) -> None:
    """Its files have names like ours, but stand in no partition's folder."""
    table = make()
    inner = make([(1, "theirs"), (3, "three")], out_path=f"{table.out_path}inner/")

    erase(table, tmp_path, id=[1])

    assert (table.rows(visible=set(table.snapshot().files)), inner.rows()) == ([(2, "two")], [(1, "theirs"), (3, "three")])
    inner.check_folder()
    assert any("not searched" in warning for warning in table.item()["LastRun"]["warnings"])


MAILS = pa.schema([("id", pa.int64()), ("mail", pa.string())])


def test_a_rename_of_an_earlier_load_means_no_column_of_this_one(make: Tables, tmp_path: Path) -> None:
    """The load brought the old name again, and later a column with the new one: the two are not the same."""
    table = make([(1, "x"), (2, "y")], MAILS)
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    table.load([(1, "x"), (2, "y"), (3, "z")])
    table.edit(Request="reload")
    assert table.run("LoadInitial") == 0
    later = cdc_file_name(datetime.now(timezone.utc) + timedelta(hours=1))
    take(table, ("I", (9, "y", "x")), columns=MAILS.append(pa.field("email", pa.string())), name=later)

    erase(table, tmp_path, email=["x"])

    assert [row[0] for row in table.rows()] == [1, 2, 3]
    assert (held(table, 9), len([row for row in held(table, 1) if row.get("mail")])) == ([], 2)


def test_names_with_the_word_to_are_followed(make: Tables, tmp_path: Path) -> None:
    """The record says `valid to to valid until`."""
    table = make([(1, "x"), (2, "y")], pa.schema([("id", pa.int64()), ("valid to", pa.string())]))
    table.edit(Request="schema-rename:valid to=valid until")
    assert table.run() == 0

    erase(table, tmp_path, **{"valid until": ["x"]})

    assert held(table, 1) == []


def test_a_key_is_found_in_files_of_a_load_with_another_type(make: Tables, tmp_path: Path) -> None:
    """The text of today was a number and a day, and in the same file stand texts that are none."""
    columns = pa.schema([("id", pa.int64()), ("price", pa.decimal128(12, 2)), ("day", pa.string())])
    table = make([(1, Decimal("1.50"), "2024-05-01"), (2, Decimal("2.00"), "never")], columns)
    columns = pa.schema([("id", pa.int64()), ("price", pa.string()), ("day", pa.date32())])
    table.load([(1, "1.50", date(2024, 5, 1)), (2, "2.00", None)], columns=columns)
    table.edit(Request="reload")
    assert table.run("LoadInitial") == 0

    erase(table, tmp_path, day=[date(2024, 5, 1)], price=["1.50"])

    assert (held(table, 1), len(held(table, 2))) == ([], 1)
