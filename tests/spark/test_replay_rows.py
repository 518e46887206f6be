"""`verify --replay`: a fresh replay gives the rows that the table has, whatever happened to it; and finds every damage, where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.core.raw_names import cdc_name
from glue_jobs.core.state import read_state
from glue_jobs.core.verify import FileReport, Finding
from glue_jobs.protocol.replay import look_for_never_taken, read_fold
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.replay import replay_table
from infra.local.dms_files import DmsRow
from tests.spark.tables import SHOP, WorkTable
from tests.work_tables import MakeTable

LOADED = [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


def report(table: WorkTable, replay_bytes: int = 1 << 30) -> FileReport:
    place = reading_place(table.environment, table.path.bucket, table.out_path, replace(Limits(), replay_bytes=replay_bytes))
    state = read_state(table.item())
    fold = read_fold(place.s3, table.out_path, table.path, state.head)
    found = replay_table(place, table.path, fold)
    return replace(found, findings=(*found.findings, *look_for_never_taken(place.s3, state, fold, place.limits)))


def differences(table: WorkTable, replay_bytes: int = 1 << 30) -> list[Finding]:
    return [finding for finding in report(table, replay_bytes).findings if finding.is_difference]


def proved(table: WorkTable) -> None:
    """The replay finds nothing, at once and in many passes."""
    assert differences(table) == []
    if len({record.primary_key for record in table.lineage().back()}) == 1:
        assert differences(table, replay_bytes=1) == []


def batch(table: WorkTable, *rows: Any, **values: Any) -> str:
    """A CDC file of its own change."""
    key = table.cdc(rows, **values)
    table.sync()
    return key


@pytest.fixture
def table(new_table: MakeTable) -> WorkTable:
    """A table by qty with a load and two batches."""
    table = new_table(partition_key="qty")
    table.load(LOADED)
    table.sync()
    batch(table, ("U", (1, "A", 2)), ("D", (3, None, None)), ("I", (4, "d", 4)))
    batch(table, ("U", (4, "D", 4)), ("I", (5, None, 5)))
    return table


# --- what happened to a table


def test_a_replay_of_a_load_and_batches_finds_nothing(table: WorkTable) -> None:
    """It says what was proved."""
    proved(table)
    (note,) = report(table).findings
    assert (note.code, "4 rows in 3 partition(s) are those of a replay of 3 change(s)" in note.found) == ("replayed", True)


def test_many_passes_prove_the_same(table: WorkTable) -> None:
    """Each has its share of the keys."""
    (note,) = report(table, replay_bytes=100).findings

    assert "4 rows in 3 partition(s)" in note.found
    assert "passes" in note.found


def test_after_rollbacks_and_re_applies(table: WorkTable) -> None:
    """The rows come from the ordinary changes only."""
    environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.environment = environment
    assert table.run("Rollback", to="previous", skip="true", resume="true") == 0
    proved(table)
    batch(table, ("I", (9, "i", 9)))
    proved(table)
    assert table.run("Rollback", to="previous", resume="true") == 0
    proved(table)
    table.sync()
    proved(table)


def test_after_a_cursor_was_moved_back(table: WorkTable) -> None:
    """Its files are read twice, the second time after those that came before."""
    first = batch(table, ("U", (1, "older", 1)))
    batch(table, ("U", (1, "newer", 1)))
    table.edit(LastIncrementalFile=f"{table.path.bucket}/{first}")
    table.sync(batch_files=1)
    table.edit(LastIncrementalFile=f"{table.path.bucket}/{sorted(table.snapshot().applied)[0]}")
    table.sync()

    proved(table)


def test_after_a_late_file(table: WorkTable) -> None:
    """It is ranked with those after it, as it was."""
    late = table.next_name()
    batch(table, ("U", (1, "latest", 1)))
    table.cdc([("U", (1, "late", 1)), ("U", (2, "late", 2)), ("D", (5, None, None))], name=late)
    table.sync()

    assert table.head().kind == "late"
    proved(table)


def test_after_a_column_came_and_another_grew(table: WorkTable) -> None:
    """Rows from before have null in it."""
    wide = pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int64()), ("note", pa.string())])
    batch(table, ("I", (6, "f", 6, "new")), ("U", (1, "x", 7, None)), columns=wide)

    proved(table)


def test_after_a_rename_another_key_and_another_layout(new_table: MakeTable) -> None:
    """A change of the key leaves the rows as they are; the replay goes on with the new one."""
    table = new_table()
    table.load(LOADED)
    table.sync()
    batch(table, ("U", (1, "A", 1)))
    table.edit(Request="schema-rename:name=title")
    table.sync()
    columns = pa.schema([("id", pa.int64()), ("title", pa.string()), ("qty", pa.int32())])
    batch(table, ("U", (2, "B", 2)), columns=columns)
    proved(table)
    table.edit(PartitionKey="qty", Request="repartition")
    table.sync()
    proved(table)
    table.edit(PrimaryKey="id,qty")
    table.sync()
    batch(table, ("U", (3, "C", 3)), ("D", (1, None, 1)), columns=columns)

    proved(table)


def test_after_a_reload_and_after_a_truncate(table: WorkTable) -> None:
    """Nothing before it is read: those files may be gone."""
    keys = list(table.snapshot().applied)
    for key in keys:
        table.clients.s3.delete_object(Bucket=table.path.bucket, Key=key)
    table.load([(7, "g", 7)], number=2)
    table.edit(Request="reload")
    table.sync(load_quiet_minutes=0)
    assert table.head().kind == "full-load"
    proved(table)
    for entry in table.clients.s3.list_objects_v2(Bucket=table.path.bucket, Prefix=table.path.raw.key)["Contents"]:
        table.clients.s3.delete_object(Bucket=table.path.bucket, Key=entry["Key"])
    table.edit(OnRawFilesGone="truncate")
    table.sync()
    assert table.head().kind == "truncate"
    proved(table)
    batch(table, ("I", (8, "h", 8)))
    proved(table)


def test_a_table_without_a_key_is_compared_as_a_bag(new_table: MakeTable) -> None:
    """Equal rows count as often as they stand there."""
    table = new_table(primary_key="null", partition_key="qty")
    table.load([*LOADED, LOADED[0]])
    table.sync()
    batch(table, ("I", (1, "a", 1)), ("U", (2, "ignored", 2)), ("I", (None, None, None)))

    proved(table)
    rewrite(table, lambda rows: rows.slice(1), "qty=1")
    (found,) = differences(table)
    assert found.found.endswith("id=1, name=a, qty=1: missing")


def test_special_values_are_equal_to_themselves(new_table: MakeTable) -> None:
    """NaN, −0.0, null, an empty text in a partition that is written as null."""
    columns = pa.schema([("id", pa.int64()), ("place", pa.string()), ("x", pa.float64())])
    table = new_table(columns, partition_key="place")
    table.edit(EmptyPartition="null")
    table.load([(1, "", float("nan")), (2, None, -0.0), (3, "p", None)])
    table.sync()
    batch(table, ("U", (3, "", 0.0)), ("U", (2, "p", float("nan"))))

    proved(table)


def test_a_key_that_was_changed_at_the_source_leaves_no_row(new_table: MakeTable) -> None:
    """Where DMS writes before images."""
    table = new_table()
    table.load(LOADED)
    table.sync()
    columns = pa.schema([*SHOP, ("BI_id", pa.int64())])
    table.cdc([DmsRow("U", (9, "a", 1, 1))], columns=columns)
    table.sync()

    assert (9, "a", 1) in table.rows()
    proved(table)


# --- what can't be replayed


def test_a_replay_without_a_raw_file_is_refused(table: WorkTable) -> None:
    """It says which, and from where on all are there."""
    first, _ = sorted(table.snapshot().applied)
    table.clients.s3.delete_object(Bucket=table.path.bucket, Key=first)

    with pytest.raises(TableBlocked, match=r"1 of 3 raw file.* the 1 change.*since") as caught:
        report(table)

    assert (caught.value.code, first in caught.value.message) == ("replay-not-possible", True)


def test_a_raw_file_that_was_written_anew_is_no_input(table: WorkTable) -> None:
    """Its rows were never applied."""
    key = sorted(table.snapshot().applied)[-1]
    table.clients.s3.put_object(Bucket=table.path.bucket, Key=key, Body=b"something else")

    with pytest.raises(TableBlocked, match="written anew"):
        report(table)


# --- damage


def rewrite(table: WorkTable, change: Callable[[pa.Table], pa.Table], part: str = "") -> str:
    """Write a data file of the folder `part` anew, as somebody who goes around dmslake would; its path."""
    path = next(path for path in sorted(table.snapshot().files) if path.startswith(part))
    data = read_bytes(table.clients.s3, table.out_path.bucket, table.out_path.key + path)
    sink = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(pa.BufferReader(data))), sink)
    body = sink.getvalue().to_pybytes()
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, Body=body)
    return path


def renamed_to(value: str | None) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.set_column(1, "name", pa.array([value] * rows.num_rows, pa.string()))


@pytest.mark.parametrize(
    ("change", "part", "words"),
    [
        (renamed_to("x"), "qty=4", "id=4: name is x, expected D"),
        (renamed_to(None), "qty=4", "id=4: name is None, expected D"),
        (renamed_to("x"), "qty=5", "id=5: name is x, expected None"),
        (lambda rows: rows.filter(pc.not_equal(rows["id"], 1)), "qty=2", "id=1: missing"),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "qty=4", "id=4, name=D, qty=4: not expected"),
    ],
)
@pytest.mark.parametrize("replay_bytes", [1 << 30, 200])
def test_damage_is_found_in_its_partition(
    table: WorkTable, change: Callable[[pa.Table], pa.Table], part: str, words: str, replay_bytes: int
) -> None:
    """A value, a row too few, a row too many: the partition, and the keys."""
    rewrite(table, change, part)

    (found,) = differences(table, replay_bytes)

    assert (found.code, found.where) == ("replay-differs", f"{table.out_path}{part}/")
    assert words in found.found


def test_a_row_in_the_wrong_partition_is_found_in_both(table: WorkTable) -> None:
    """Too many here, too few there."""
    lost: list[pa.Table] = []

    def without(rows: pa.Table) -> pa.Table:
        lost.append(rows)
        return rows.slice(0, 0)

    rewrite(table, without, "qty=5")
    rewrite(table, lambda rows: pa.concat_tables([rows, lost[0]]), "qty=4")

    assert [found.where.rsplit("/", 2)[1] for found in differences(table)] == ["qty=4", "qty=5"]


# --- anything


OPS = st.sampled_from("IUD")
ROW = st.tuples(st.integers(1, 6), st.sampled_from([None, "", "x", "y"]), st.integers(1, 3))
FILE = st.lists(st.tuples(OPS, ROW), min_size=1, max_size=5)
STEP = st.one_of(
    st.tuples(st.just("batch"), FILE),
    st.tuples(st.just("batches"), st.tuples(FILE, FILE)),
    st.tuples(st.just("late"), st.tuples(FILE, FILE)),
    st.tuples(st.just("moved"), st.integers(0, 3)),
    st.tuples(st.just("reload"), st.lists(ROW, min_size=1, max_size=4, unique_by=lambda row: row[0])),
    st.tuples(st.just("back"), st.booleans()),
    st.tuples(st.just("again"), st.none()),
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, min_size=1, max_size=6), st.booleans())
def test_whatever_happens_a_replay_finds_nothing(new_table: MakeTable, steps: list[tuple[str, Any]], partitioned: bool) -> None:
    """Batches, late files, moved cursors, reloads, rollbacks and re-applies in any order."""
    table = new_table(partition_key="qty" if partitioned else "null")
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load(LOADED)
    table.sync()
    for number, (word, value) in enumerate(steps, 2):
        _do(table, word, value, number)
    table.remove("Paused")
    table.run()

    proved(table)


def _do(table: WorkTable, word: str, value: Any, number: int) -> None:
    """One step; what can't be done is left out."""
    if word == "batch":
        table.cdc(value)
    elif word == "batches":
        for rows in value:
            table.cdc(rows)
            table.run()
    elif word == "late":
        name = table.next_name()
        table.cdc(value[0])
        table.run()
        table.cdc(value[1], name=name)
    elif word == "moved":
        applied = sorted(key for key in table.snapshot().applied if cdc_name(key))
        if applied and "Paused" not in table.item():
            table.edit(LastIncrementalFile=f"{table.path.bucket}/{applied[value % len(applied)]}")
    elif word == "reload":
        table.load(value, number=number)
        table.edit(Request="reload")
        table.run("LoadInitial", load_quiet_minutes=0)
    elif word == "back":
        table.run("Rollback", to="previous", resume="true" if value else "false")
    else:
        table.run("Rollback", reapply="")
    table.run()
