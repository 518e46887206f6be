"""Whole runs on raw files of every layout: the lake is what the source was, after each round."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from tests.raw_folders import BY_TIME, LAYOUTS, Layout
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

Row = tuple[int, str, int]
Change = tuple[str, Row]
START = datetime(2024, 5, 20, 22, 30, tzinfo=timezone.utc)


@dataclass
class Source:
    """A source table as a dict, and what DMS writes of it. behind: how much older commits are than their file."""

    table: WorkTable
    chance: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    now: datetime = START
    behind: timedelta = timedelta(hours=2)

    def load(self, *names: str) -> None:
        """All rows, in as many load files."""
        rows = sorted(self.rows.values())
        for number, name in enumerate(names):
            self.table.put_raw(name, self.table.parquet([("I", row) for row in rows[number :: len(names)]]))

    def round(self, layout: Layout, files: int = 2) -> list[str]:
        """Changes of some rows, in so many files; their names."""
        names = []
        for _ in range(files):
            self.now += timedelta(hours=self.chance.choice((1, 7, 20)), seconds=11)
            names.append(layout.name(self.now, self.now - self.behind))
            self.table.put_raw(names[-1], self.table.parquet(self.changes()))
        return names

    def changes(self) -> list[Change]:
        """Some rows change, and some come and go."""
        out: list[Change] = []
        for _ in range(3):
            number = self.chance.randrange(12)
            if number in self.rows and self.chance.random() < 0.3:
                out.append(("D", self.rows.pop(number)))
                continue
            op = "U" if number in self.rows else "I"
            self.rows[number] = (number, f"at {self.now:%d %H:%M:%S} {len(out)}", len(out))
            out.append((op, self.rows[number]))
        return out

    def check(self) -> None:
        assert self.table.rows() == sorted(self.rows.values(), key=repr)


@pytest.fixture
def source(quick_table: MakeTable) -> Source:
    """A table of five rows that was not loaded yet."""
    return Source(quick_table(), random.Random(7), {number: (number, "loaded", number) for number in range(5)})


# Some of each kind; test_layout_listings has all pairs.
SWITCHES = list(zip(LAYOUTS, reversed(LAYOUTS), strict=True))[: len(LAYOUTS) // 2 + 1 : 3]


@pytest.mark.parametrize(("first", "second"), SWITCHES, ids=str)
def test_a_table_is_kept_up_whatever_layout_its_task_is_changed_to(source: Source, first: Layout, second: Layout) -> None:
    """And changed back. Load, and three rounds."""
    source.load("LOAD00000009.parquet", "LOAD0000000A.parquet")
    for layout in (first, second, first):
        source.round(layout)
        source.table.sync()
        source.check()
    assert source.table.head().counts.table_rows == len(source.rows)


def test_old_files_are_passed_over_in_whole_runs(source: Source) -> None:
    """With pages of a few keys: what comes while DMS lags days behind is taken, and a file that comes late in an old folder."""
    source.table.edit(LateWindowHours="60")
    source.load("LOAD00000001.parquet")
    layout = Layout("YYYYMMDD")
    source.round(layout, 8)
    source.table.sync()
    few_keys(source.table, 4)
    source.now, source.behind = source.now + timedelta(days=6), timedelta(days=6)  # the task was stopped
    for _ in range(3):
        names = source.round(layout, 3)
        late = read(source.table, names[0])
        source.table.delete_raw(names[0])
        source.table.sync()
        source.table.put_raw(names[0], late)
        source.table.sync()
        source.check()
        source.behind -= timedelta(days=2)


def few_keys(table: WorkTable, count: int) -> None:
    """S3 answers with so many keys a page, of the table's raw folder."""

    def cut(params: dict[str, Any], **_: Any) -> None:
        if params["Bucket"] == table.path.bucket and params["Prefix"].startswith(table.path.raw.key):
            params["MaxKeys"] = count

    table.clients.s3.meta.events.register("before-parameter-build.s3.ListObjectsV2", cut)


@pytest.mark.parametrize(
    "names",
    [
        ["LOAD00000009.parquet", "LOAD0000000A.parquet", "LOAD00000010.parquet"],
        ["SEGMENT1_LOAD00000001.parquet", "SEGMENT2_LOAD00000001.parquet", "SEGMENT10_LOAD00000001.parquet"],
        ["p1/LOAD00000001.parquet", "p2/LOAD00000001.parquet", "2024/LOAD00000001.parquet"],
        ["p1/SEGMENT1_LOAD00000001.parquet", "p1/SEGMENT2_LOAD00000001.parquet", "LOAD00000001.parquet"],
    ],
)
def test_loads_in_parts_are_one_load(source: Source, names: list[str]) -> None:
    """Counters past 9, segments, folders of partitions; changes in folders by date come on top."""
    source.load(*names)
    source.table.sync()
    assert len(source.table.head().generation.loads) == 3
    source.round(Layout("YYYYMM", "dash"))

    source.table.sync()

    source.check()
    source.table.sync()
    assert source.table.snapshot().generation.number == 1, "no folder is taken for a reload"


# --- loads that are written, replaced, deleted


def test_a_load_that_is_still_written_is_taken_by_a_later_run(source: Source) -> None:
    """The first run finds one of three files, the next two, the last all of them and a change: never half a table for good."""
    table = source.table
    rows = sorted(source.rows.values())
    table.edit(LoadQuietMinutes="0")
    for number, part in enumerate((rows[:2], rows[2:4], rows[4:]), 1):
        table.put_raw(f"LOAD0000000{number}.parquet", table.parquet([("I", row) for row in part]))
        table.sync()
        assert table.rows() == sorted(rows[: number * 2], key=repr)
    source.now = datetime.now(timezone.utc)
    source.round(Layout())

    table.sync()

    source.check()
    assert len(table.snapshot().generation.loads) == 3


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("pending", [True, False])
def test_a_reload_with_old_cdc_files_kept_or_gone_and_some_pending(source: Source, kept: bool, pending: bool) -> None:
    """What was written before it belongs to the old load, applied or not; what comes after it is applied."""
    table = source.table
    source.load("LOAD00000001.parquet")
    names = source.round(Layout())
    table.sync()
    source.check()
    if pending:
        names += source.round(Layout())
    if not kept:
        for name in names:
            table.delete_raw(name)
    table.edit(LoadQuietMinutes="0")
    if kept:
        table.edit(Request="reload")  # the old files are as young as the load, as in a folder that was copied
    source.rows = {number: (number, "again", 0) for number in (1, 3, 50)}
    source.load("LOAD00000001.parquet")
    source.now = datetime.now(timezone.utc)
    source.round(Layout("YYYYMMDD"))

    table.sync()

    source.check()
    assert table.snapshot().generation.number == 2
    table.sync()
    source.check()


def test_a_table_that_was_dropped_and_made_anew_with_other_columns(source: Source) -> None:
    """Its folder was emptied, its load has another schema: the lake table is the new one, and the old one can be rolled back to."""
    table = source.table
    source.load("LOAD00000001.parquet")
    names = source.round(Layout())
    table.sync()
    old, before = table.item()["Head"], table.rows()
    for name in (*names, "LOAD00000001.parquet"):
        table.delete_raw(name)
    table.sync()
    assert table.rows() == before, "files that are gone take no rows"
    columns = pa.schema([("id", pa.string()), ("price", pa.float64())])
    table.edit(LoadQuietMinutes="0")
    table.load([("a", 1.5), ("b", None)], columns=columns)
    table.cdc([("U", ("b", 2.5))], columns=columns, name=Layout().name(datetime.now(timezone.utc)))

    table.sync()

    assert table.rows() == [("a", 1.5), ("b", 2.5)]
    assert [(column.name, column.type) for column in table.snapshot().schema] == [("id", "string"), ("price", "double")]
    assert table.run("Rollback", to=old) == 0
    assert table.rows() == before


@pytest.mark.parametrize("layout", BY_TIME[:6], ids=str)
def test_files_delivered_twice_under_new_names_change_nothing(source: Source, layout: Layout) -> None:
    """After a resume DMS writes rows again: from some point on all of them, in their order."""
    source.load("LOAD00000001.parquet")
    names = source.round(layout, 4)
    source.table.sync()
    bodies = [read(source.table, name) for name in names]
    for body in bodies[1:]:
        source.now += timedelta(minutes=1)
        source.table.put_raw(layout.name(source.now, source.now - source.behind), body)

    source.table.sync()

    source.check()


def read(table: WorkTable, name: str) -> bytes:
    body: bytes = table.clients.s3.get_object(Bucket=table.path.bucket, Key=table.path.raw.key + name)["Body"].read()
    return body


def test_a_late_file_whose_context_is_gone_blocks_until_a_person_decides(source: Source) -> None:
    """In folders by date as anywhere: the table stays as it was."""
    source.load("LOAD00000001.parquet")
    layout = Layout("YYYYMMDDHH")
    names = source.round(layout, 3)
    held = read(source.table, names[1])
    source.table.delete_raw(names[1])
    source.table.sync()
    before = source.table.rows()
    source.table.put_raw(names[1], held)
    source.table.delete_raw(names[2])

    error = source.table.blocked()

    assert error["code"] == "late-file-without-context"
    assert source.table.rows() == before
    source.table.edit(SkipFiles=names[1].rsplit("/", 1)[-1])
    source.table.sync()
    assert source.table.rows() == before
