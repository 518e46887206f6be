"""Tables whose changes come in transaction files, which they share with others (PreserveTransactions)."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.lake import START
from tests.protocol.wire import Request, Wire
from tests.spark.csv_texts import csv_text
from tests.spark.histories import check_history
from tests.spark.tables import WorkTable
from tests.spark.test_explain import told
from tests.spark.test_replay_rows import proved
from tests.work_tables import MakeTable

LOADED = [(1, "one", 1), (2, "two", 2), (3, "three", 3)]
BLANK = [("I", "others", "shop", 9, "x", 9)]
Line = tuple[Any, ...]


@dataclass
class Shop:
    """Two tables and the folder in which DMS writes the changes of both; a file a minute, from START on."""

    orders: WorkTable
    lines: WorkTable
    folder: str
    _minutes: Any = field(default_factory=itertools.count, repr=False)

    def write(self, *rows: Line, minute: float | None = None, ending: str = ".csv", since: datetime = START) -> str:
        """A transaction file with these rows; its key."""
        time = since + timedelta(minutes=next(self._minutes) if minute is None else minute)
        key = f"{self.folder}CDC_TXN-{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03d}{ending}"
        data = csv_text(rows)
        self.orders.clients.s3.put_object(Bucket=self.bucket, Key=key, Body=gzip.compress(data) if ending == ".csv.gz" else data)
        return key

    @property
    def bucket(self) -> str:
        return self.orders.path.bucket

    def of(self, table: WorkTable, *changes: Sequence[Any]) -> list[Line]:
        """Rows of a table, from (operation, values…)."""
        return [(op, table.table, "shop", *values) for op, *values in changes]

    def sync(self, **settings: str) -> None:
        for table in (self.orders, self.lines):
            table.sync(**settings)


@pytest.fixture
def shop(quick_table: MakeTable) -> Shop:
    """Both are loaded; DMS began before START."""
    orders, lines = quick_table(), quick_table()
    folder = f"dms/changes-{orders.table}/"
    for table in (orders, lines):
        table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
        table.edit(CdcPath=f"s3://{table.path.bucket}/{folder}")
        table.put_raw("LOAD00000001.parquet", table.parquet([("I", row) for row in LOADED]))
    made = Shop(orders, lines, folder)
    made.sync(load_start_margin_minutes="99999999")
    return made


def names(table: WorkTable) -> list[str]:
    """Of the head's inputs, with their rows."""
    return [f"{item.key.rsplit('/', 1)[1][8:20]}: {item.rows}" for item in table.head().inputs]


def test_each_table_takes_its_own_rows_in_their_order(shop: Shop) -> None:
    """Those whose schema and table are spelled as its folders are; each has its own cursor, and its own undo."""
    orders, lines = shop.orders, shop.lines
    table = orders.table
    last = shop.write(
        *shop.of(orders, ("U", 1, "first", 1)),
        *shop.of(lines, ("D", 1, "one", 1)),
        *shop.of(orders, ("U", 1, "second", None), ("D", 2, None, None), ("I", 4, 'with, "quotes"\nand line', 4)),
        ("U", table, "SHOP", 3, "another schema", 0),
        ("U", table.upper(), "shop", 3, "another table", 0),
        ("U", f" {table}", "shop", 3, "another table", 0),
        *shop.of(lines, ("I", 1, "again", 1)),
    )

    shop.sync()

    assert orders.rows() == [(1, "second", None), (3, "three", 3), (4, 'with, "quotes"\nand line', 4)]
    assert lines.rows() == [(1, "again", 1), *LOADED[1:]]
    assert {each.item()["LastIncrementalFile"] for each in (orders, lines)} == {f"{shop.bucket}/{last}"}
    assert (names(orders), names(lines)) == (["202405011200: 4"], ["202405011200: 2"])
    assert told(orders, "2")[-1] == ("delete", (), (), last.rsplit("/", 1)[1], 3), "rows are counted in the whole file"
    assert orders.run("Rollback", to="previous") == 0
    assert orders.rows() == LOADED
    orders.remove("Paused")
    orders.sync()
    assert len(orders.rows()) == 3
    for each in (orders, lines):
        each.check_folder()
        proved(each)


def test_a_file_without_rows_that_is_written_anew_is_read_anew(shop: Shop) -> None:
    """What a run knows of it is of the bytes that it read."""
    orders = shop.orders
    key = shop.write(*BLANK, minute=7)
    shop.write(*shop.of(orders, ("I", 7, "seven", 7)), minute=8)
    wire, anew = Wire(), csv_text(shop.of(orders, ("I", 8, "eight", 8)))
    written: list[str] = []

    def rule(request: Request, really: Callable[[], Any]) -> Any:
        answer = really()
        if request.operation == "GetObject" and request.key.endswith(key) and not written:
            written.append(key)
            orders.clients.s3.put_object(Bucket=shop.bucket, Key=key, Body=anew)
        return answer

    wire.rule = rule
    with wire.connected():
        assert orders.run(listing_seconds="0", batch_files="1") == 0

    assert written
    assert orders.run() == 0
    assert orders.rows() == [*LOADED, (7, "seven", 7), (8, "eight", 8)]


@pytest.mark.parametrize(("ending", "limit"), [(".csv", "batch_files"), (".csv.gz", "batch_rows")])
def test_rounds_of_many_files(shop: Shop, ending: str, limit: str) -> None:
    """Some with rows of one table, some of both, some of neither; batches of two files, or rows."""
    truth: dict[str, dict[int, Line]] = {each.table: {row[0]: row for row in LOADED} for each in (shop.orders, shop.lines)}
    for number in range(12):
        rows: list[Line] = list(BLANK)
        for table in [shop.orders, shop.lines, shop.orders][: number % 4]:
            key = number * 7 % 5
            rows += shop.of(table, ("U" if key in truth[table.table] else "I", key, f"file {number}", len(rows)))
            truth[table.table][key] = (key, f"file {number}", len(rows) - 1)
        shop.write(*rows, ending=ending)
        if number % 5 == 4:
            shop.sync(**{limit: "2"})
    shop.sync(**{limit: "2"})

    for table in (shop.orders, shop.lines):
        assert table.rows() == sorted(truth[table.table].values(), key=repr)
        proved(table)


def test_files_without_a_row_of_the_table_make_no_change(shop: Shop) -> None:
    """The next one that has a row takes them along; a run reads each of them once."""
    table, head = shop.orders, shop.orders.item()["Head"]
    keys = [shop.write(*BLANK) for _ in range(3)]
    wire = Wire()

    with wire.connected():
        assert table.run() == 0

    assert (table.item()["Head"], table.last_run()["outcome"]) == (head, "nothing")
    assert "3 transaction file(s) have none of the table" in table.last_run()["note"]
    read = [request.key for request in wire.of("GetObject") if request.key in keys]
    assert sorted(set(read)) == keys
    shop.write(*shop.of(table, ("I", 7, "seven", 7)))
    shop.write(*BLANK)
    table.sync()
    assert names(table) == [f"20240501120{minute}: {1 if minute == 3 else 0}" for minute in range(5)]
    assert (7, "seven", 7) in table.rows()


def test_many_files_without_a_row_move_the_cursor_in_one_change(shop: Shop) -> None:
    """Or else each run would read more of them again; the change has no file, and can be undone."""
    table = shop.orders
    keys = [shop.write(*BLANK) for _ in range(5)]

    table.sync(batch_files="3")

    assert table.item()["LastIncrementalFile"] == f"{shop.bucket}/{keys[-1]}"
    record = table.head()
    assert (record.kind, record.added, record.superseded, record.counts.table_rows) == ("incremental", (), (), 3)
    assert [item.rows for item in record.inputs] == [0] * 5
    assert table.rows() == LOADED
    proved(table)


def test_a_late_file_is_ranked_with_the_rows_of_this_table(shop: Shop) -> None:
    """What came after it wins; a late one without a row of the table changes nothing."""
    table = shop.orders
    shop.write(*shop.of(table, ("U", 1, "at 0", 0)), minute=0)
    shop.write(*shop.of(table, ("U", 2, "at 4", 4)), minute=4)
    shop.write(*BLANK, minute=5)
    shop.write(*shop.of(table, ("U", 3, "at 6", 6)), minute=6)
    table.sync()
    shop.write(*shop.of(table, ("U", 1, "late", 2), ("U", 2, "late", 2)), *BLANK, minute=2)
    shop.write(*BLANK, minute=3)

    table.sync()
    table.sync()

    assert table.rows() == [(1, "late", 2), (2, "at 4", 4), (3, "at 6", 6)]
    assert table.head().kind == "late"
    proved(table)


def test_a_first_load_takes_no_transactions_from_before_it(quick_table: MakeTable) -> None:
    """The folder is older than the table: a row of that time would replace a newer one of the load."""
    table = quick_table()
    shop = Shop(table, quick_table(), f"dms/changes-{table.table}/")
    table.edit(CdcPath=shop.folder)
    now = datetime.now(timezone.utc)
    shop.write(*shop.of(table, ("U", 1, "long ago", 0), ("I", 9, "deleted since", 0)), minute=-60, since=now)
    shop.write(*shop.of(table, ("U", 2, "after", 0)), minute=1, since=now)
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", row) for row in LOADED]))

    table.sync()

    assert table.rows() == [LOADED[0], (2, "after", 0), LOADED[2]]


def test_a_reload_goes_on_with_the_transactions_of_its_own_time(shop: Shop) -> None:
    """As with files of the table's own; those before it are the old load's, pending or not."""
    table = shop.orders
    shop.write(*shop.of(table, ("U", 1, "applied", 0)))
    table.sync()
    shop.write(*shop.of(table, ("U", 2, "pending", 0)))
    table.put_raw("LOAD00000001.parquet", table.parquet([("I", (1, "again", 1)), ("I", (2, "again", 2))]))
    table.edit(LoadQuietMinutes="0", Request="reload")  # the older files are as young as the load, as in a folder that was copied
    shop.write(*shop.of(table, ("I", 5, "after", 5)), minute=1, since=datetime.now(timezone.utc))

    table.sync()

    assert table.rows() == [(1, "again", 1), (2, "again", 2), (5, "after", 5)]


def test_a_task_may_be_changed_to_transactions_and_back(shop: Shop) -> None:
    """Files of the table's own and shared ones are one order."""
    table = shop.orders
    shop.write(*shop.of(table, ("U", 1, "shared", 0)), minute=0)
    table.cdc([("U", (1, "own", 1)), ("U", (2, "own", 1))], name="20240501-120100000.parquet")
    shop.write(*shop.of(table, ("U", 2, "shared", 2)), minute=2)
    table.sync()
    table.cdc([("U", (3, "own", 3))], name="20240501-120300000.parquet")
    table.sync()
    table.remove("CdcPath")
    table.cdc([("U", (3, "last", 4))], name="20240501-120400000.parquet")

    table.sync()

    assert table.rows() == [(1, "own", 1), (2, "shared", 2), (3, "last", 4)]
    proved(table)


def test_a_table_may_begin_with_transactions(quick_table: MakeTable) -> None:
    """Without a load its types come from the item."""
    table = quick_table()
    shop = Shop(table, quick_table(), f"dms/changes-{table.table}/")
    table.edit(CdcPath=shop.folder)
    shop.write(*BLANK)
    table.sync()
    assert "no load file" in table.last_run()["note"]
    shop.write(*shop.of(table, ("I", 1, "one", 1), ("I", 2, "two", 2), ("D", 1, "one", 1)))
    assert table.blocked()["code"] == "csv-needs-schema"
    table.edit(Schema='{"id": "bigint", "name": "string", "qty": "int"}')

    table.sync()

    assert table.rows() == [(2, "two", 2)]


def test_a_file_that_changed_its_form_blocks_and_names_the_line(shop: Shop) -> None:
    """A row of this table with a field more; rows of others may have any number."""
    key = shop.write(*BLANK, ("I", "others", "shop", 1), *shop.of(shop.orders, ("U", 1, "a", 1), ("U", 2, "b", 2, "more")))

    error = shop.orders.blocked()

    assert error["code"] == "bad-csv-row"
    assert f"{key}, line 4" in error["message"]
    assert shop.orders.rows() == LOADED
    shop.lines.sync()


def test_a_history_is_kept_over_files_without_a_row(shop: Shop) -> None:
    """The change that only moves the cursor leaves it current."""
    table = shop.orders
    table.edit(History="true")
    shop.write(*shop.of(table, ("U", 1, "new", 1)))
    for _ in range(4):
        shop.write(*BLANK)
    table.sync(batch_files="1")
    shop.write(*BLANK)
    table.sync(batch_files="1")
    shop.write(*shop.of(table, ("D", 2, "two", 2)))

    table.sync()

    assert table.rows() == [(1, "new", 1), (3, "three", 3)]
    kept = check_history(table)
    assert table.run("BackfillHistory") == 0
    assert len(check_history(table)) == len(kept)


def test_late_files_without_a_row_do_not_move_the_cursor_back(shop: Shop) -> None:
    """As many as a change takes: what lies beyond them was applied, or a person skipped it."""
    table = shop.orders
    skipped = shop.write(*shop.of(table, ("D", 1, "one", 1)), minute=10)
    table.edit(LastIncrementalFile=f"{shop.bucket}/{skipped}")
    last = shop.write(*shop.of(table, ("D", 2, "two", 2)), minute=11)
    table.sync()
    late = [shop.write(*BLANK, minute=minute) for minute in (3, 4)]

    table.sync(batch_files="2")

    assert [item.key for item in table.head().inputs] == late
    assert table.item()["LastIncrementalFile"] == f"{shop.bucket}/{last}"
    table.sync()
    assert table.rows() == [LOADED[0], LOADED[2]]
    assert {skipped} == set(table.snapshot().skipped)
