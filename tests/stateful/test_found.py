"""What the machine found, each as the few steps that show it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import make_clients
from infra.local.dms_files import DmsRow
from tests.lake import LakeTable
from tests.quick_aws import QuickAws


@pytest.fixture
def table(quick_aws: QuickAws) -> LakeTable:
    """A table of keys and names, loaded at noon."""
    columns, environment = pa.schema([("id", pa.int64()), ("name", pa.string())]), quick_aws.environment()
    clients = make_clients(environment)
    table = LakeTable(environment, quick_aws.raw, quick_aws.lake, columns, timestamp_column="ts", shared=clients)
    table.edit(LoadQuietMinutes="0")
    load(table, "2024-05-01 12:00:00", (1, "loaded"))
    table.sync()
    return table


def load(table: LakeTable, time: str, row: tuple[int, str]) -> None:
    table.put_raw("LOAD00000001.parquet", table.parquet([DmsRow("I", row, time)]))


def cdc(table: LakeTable, second: int, row: tuple[int, str]) -> None:
    table.put_raw(f"20240501-1200{second:02d}000.parquet", table.parquet([DmsRow("U", row, f"2024-05-01 12:00:{second:02d}")]))


def names(table: LakeTable) -> list[str]:
    return [row[-1] for row in table.rows()]


@pytest.mark.usefixtures("names_of_any_age")
@pytest.mark.parametrize("is_taken", [True, False])
def test_an_emptied_table_takes_no_cdc_files_from_before_its_load(table: LakeTable, is_taken: bool) -> None:
    """DMS reloads before or after everything is undone: the older CDC file would put an older row in the place of the load's."""
    first = table.head().id
    cdc(table, 10, (1, "older"))
    table.sync()
    if is_taken:
        load(table, "2024-05-01 12:00:20", (1, "reloaded"))
        table.sync()
    assert table.run("Rollback", undo=first, resume="true") == 0
    if not is_taken:
        load(table, "2024-05-01 12:00:20", (1, "reloaded"))

    table.sync()

    assert names(table) == ["reloaded"]


def test_a_skipped_file_that_is_replayed_is_no_longer_skipped(table: LakeTable) -> None:
    """A rollback left it out, then a person moved the cursor back before it: it was among the applied and the skipped files."""
    cdc(table, 10, (1, "ten"))
    table.sync()
    assert table.run("Rollback", to="previous", skip="true", resume="true") == 0
    skipped = set(table.snapshot().skipped)
    table.edit(LastIncrementalFile=f"{table.path}0.parquet")

    table.sync()

    assert (len(skipped), table.snapshot().skipped, set(table.snapshot().applied) >= skipped) == (1, {}, True)
    assert names(table) == ["ten"]
