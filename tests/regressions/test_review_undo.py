"""Back and forth: each raw file's rows are in the table once, none is left out in silence, and the catalog keeps step."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients
from glue_jobs.protocol import table_run
from infra.local.dms_files import cdc_file_name
from tests.lake import LakeTable
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
BY_DAY = pa.schema([("id", pa.int64()), ("day", pa.string())])
WIDER = BY_DAY.append(pa.field("extra", pa.string()))


class Tables:
    """Makes tables that hold the rows 1 and 2."""

    def __init__(self, aws: QuickAws, clients: Clients) -> None:
        self._aws, self._clients = aws, clients

    def __call__(self, columns: pa.Schema = COLUMNS, **values: Any) -> LakeTable:
        table = LakeTable(self._aws.environment(), self._aws.raw, self._aws.lake, columns, shared=self._clients, **values)
        table.edit(LoadQuietMinutes="0")
        table.load([(1, "one"), (2, "two")])
        assert table.run("LoadInitial") == 0
        return table


@pytest.fixture
def make(quick_aws: QuickAws, quick_clients: Clients) -> Tables:
    return Tables(quick_aws, quick_clients)


def take(table: LakeTable, *rows: Any, name: str | None = None, **settings: Any) -> str:
    """A CDC file with the rows, and a run; the head afterwards."""
    table.cdc(rows, name=name)
    assert table.run(**settings) == 0
    return str(table.item()["Head"])


def test_a_skip_that_goes_forth_takes_no_file_twice(make: Tables) -> None:
    """The change gone to has taken more than the head: without a key its files would be in the table twice."""
    table = make(primary_key="null")
    first, second = take(table, ("I", (3, "three"))), take(table, ("I", (4, "four")))
    take(table, ("I", (5, "five")))
    assert table.run("Rollback", to=first) == 0

    assert table.run("Rollback", to=second, skip="true", resume="true") == 0
    assert table.run() == 0

    assert table.rows() == [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")]


def test_a_late_file_that_was_skipped_can_be_wanted_back(make: Tables) -> None:
    """Neither rows nor cursor tell the two states apart."""
    table = make()
    late = table.next_name()
    first = take(table, ("I", (3, "three")))
    take(table, ("U", (2, "late")), name=late)
    assert table.run("Rollback", to=first, skip="true", resume="true") == 0

    assert table.run("Rollback", to=first, resume="true") == 0
    assert table.run() == 0

    assert table.rows() == [(1, "one"), (2, "late"), (3, "three")]


def test_a_late_file_is_taken_again_although_the_window_shrank(make: Tables) -> None:
    """It is awaited: leaving it out would lose its rows."""
    table = make()
    first = take(table, ("I", (3, "three")), name="20240501-120000000.parquet")
    take(table, ("U", (2, "late")), name="20240430-200000000.parquet")
    table.edit(LateWindowHours="0")
    assert table.run("Rollback", to=first, resume="true") == 0

    assert table.run() == 0

    assert table.rows() == [(1, "one"), (2, "late"), (3, "three")]


def test_a_late_file_that_is_taken_again_is_ranked_with_all_that_came_after_it(make: Tables) -> None:
    """Also with what the snapshot does not tell of any more, since the window shrank."""
    table = make()
    take(table, ("U", (2, "newer")), name="20240501-120000000.parquet")
    second = take(table, ("I", (3, "three")), name="20240501-130000000.parquet")
    take(table, ("U", (1, "late")), ("U", (2, "late")), name="20240430-200000000.parquet")
    table.edit(LateWindowHours="0")
    assert table.run("Rollback", to=second, resume="true") == 0

    assert table.run() == 0

    assert table.rows() == [(1, "late"), (2, "newer"), (3, "three")]


def test_a_file_from_long_ago_is_pending_again_once_its_change_is_undone(make: Tables) -> None:
    """A person had moved the cursor back to before it, because it had never been taken."""
    table = make()
    table.edit(LateWindowHours="0")
    take(table, ("U", (2, "newer")), name="20240501-120000000.parquet")
    first = take(table, ("I", (3, "three")), name="20240601-120000000.parquet")
    take(table, ("U", (1, "found")), ("U", (2, "found")), name="20240401-120000000.parquet")
    assert table.item()["Head"] == first
    table.edit(LastIncrementalFile=f"{table.path}20240301-120000000.parquet")
    assert table.run() == 0
    rows = [(1, "found"), (2, "newer"), (3, "three")]
    assert table.rows() == rows

    assert table.run("Rollback", to=first, resume="true") == 0
    assert table.rows() == [(1, "one"), (2, "newer"), (3, "three")]
    assert table.run() == 0

    assert table.rows() == rows


def test_an_older_late_file_does_not_win_after_a_skip_over_a_reload(make: Tables) -> None:
    """The rows gone back to have files of the new generation, too: those of a load that was only asked for."""
    table = make()
    older, newer, bad = (cdc_file_name(datetime.now(timezone.utc) + timedelta(hours=hours)) for hours in (1, 2, 3))
    first = take(table, ("U", (1, "newer")), name=newer)
    table.edit(Request="reload")
    table.sync()
    take(table, ("U", (2, "bad")), name=bad)
    assert table.run("Rollback", to=first, skip="true", resume="true") == 0

    take(table, ("U", (1, "older")), name=older)

    assert table.rows() == [(1, "newer"), (2, "two")]


def test_no_gap_is_left_behind_a_load_that_was_only_asked_for(make: Tables) -> None:
    """Its file is the one that the older state has: it will not bring what was taken before it."""
    table = make()
    # Not much older than the load: else the folder would look like a copy.
    older, name = (cdc_file_name(datetime.now(timezone.utc) - timedelta(minutes=minutes)) for minutes in (40, 30))
    first = take(table, ("I", (3, "three")), name=older)
    take(table, ("I", (4, "four")), name=name)
    table.delete_raw(name)
    table.edit(Request="reload")
    table.sync()

    assert table.run("Rollback", to=first) == 1

    assert table.item()["LastRun"]["error"]["code"] == "pending-file-gone"


def test_a_reload_that_a_person_asked_for_is_not_forgotten_by_a_skip(make: Tables) -> None:
    """The load date is set back by hand; the place in the raw files stays, and so does the wish."""
    table = make()
    take(table, ("I", (3, "three")))
    table.edit(LastFullLoadDate="1900-01-01 00:00:00")

    assert table.run("Rollback", to="previous", skip="true", resume="true") == 0
    assert table.run("LoadInitial") == 0

    assert table.head().kind == "full-load"


def test_a_part_that_cannot_be_re_applied_names_the_way_out(make: Tables) -> None:
    """There is no --skip of a re-apply, but all of it can be brought back."""
    table = make()
    loaded, first = table.item()["Head"], take(table, ("I", (3, "three")))
    name = table.next_name()
    take(table, ("I", (4, "four")), name=name)
    assert table.run("Rollback", to=loaded) == 0
    table.delete_raw(name)

    assert table.run("Rollback", reapply=first) == 1
    todo = table.item()["LastRun"]["error"]["todo"]
    assert table.run("Rollback", reapply="all") == 0

    assert "dmslake reapply" in todo
    assert "--skip" not in todo


def test_keys_go_back_also_by_way_of_the_empty_table(make: Tables) -> None:
    """The item still has the layout of the last change that had rows; the table would be blocked."""
    table = make(BY_DAY, partition_key="day")
    loaded = table.item()["Head"]
    table.edit(PartitionKey="null", Request="repartition")
    assert table.run() == 0
    assert table.run("Rollback", undo=loaded) == 0

    assert table.run("Rollback", to=loaded) == 0

    assert table.item()["PartitionKey"] == "day"


def test_a_time_at_which_a_lost_change_was_the_head_means_the_one_before(make: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers never saw it, and its files are nowhere."""
    table = make()
    table.cdc([("I", (3, "three"))])
    with monkeypatch.context() as patch:
        patch.setattr(table_run, "converge", _fail)
        assert table.run() == 1
    for file in table.head().added:
        assert file.upload is not None
        table.clients.s3.abort_multipart_upload(Bucket=table.out_path.bucket, Key=table.out_path.key + file.path, UploadId=file.upload.id)
    meanwhile = datetime.now(timezone.utc).isoformat()
    assert table.run() == 0

    assert table.run("Rollback", to=meanwhile) == 0

    assert table.rows() == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("is_emptied", [True, False])
def test_partitions_follow_a_load_with_other_columns(make: Tables, is_emptied: bool) -> None:
    """Those from before it, too: Athena refuses a partition whose columns are not the table's."""
    table = make(BY_DAY, partition_key="day")
    if is_emptied:
        assert table.run("Rollback", undo=table.item()["Head"], resume="true") == 0
    table.load([(1, "one", "more")], columns=WIDER)

    assert table.run("LoadInitial") == 0

    assert table.verify(quick=True) == []


def test_columns_of_a_change_whose_catalog_step_failed_reach_every_partition(make: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next change of the same run does the step for both, and says that nothing is left to do."""
    table = make(BY_DAY, partition_key="day")
    table.cdc([("I", (3, "one", "more"))], columns=WIDER)
    table.cdc([("I", (4, "one", "more"))], columns=WIDER)
    monkeypatch.setattr(table_run, "update_catalog", _fails_once(table_run.update_catalog))

    assert table.run(batch_files="1") == 0

    assert table.verify(quick=True) == []


def _fail(*_: Any, **__: Any) -> None:
    raise RuntimeError("no answer")


def _fails_once(work: Any) -> Any:
    calls = []

    def call(*values: Any, **named: Any) -> Any:
        calls.append(values)
        return _fail() if len(calls) == 1 else work(*values, **named)

    return call
