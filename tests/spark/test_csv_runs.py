"""Tables whose raw files are CSV: loads, batches, late files, and every later look at the raw files, as with Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.core.csv_form import DETAIL
from tests.lake import START
from tests.spark.csv_texts import csv_text
from tests.spark.histories import check_history
from tests.spark.tables import SHOP, WorkTable
from tests.spark.test_explain import told
from tests.spark.test_replay_rows import proved
from tests.work_tables import MakeTable

SCHEMA = '{"id": "bigint", "name": "string", "qty": "int"}'
LOADED = [(1, "a", 1), (2, "b\nb", 2), (3, "c", 3)]
HEAD = ("Op", "id", "name", "qty")
Rows = Iterable[Sequence[Any]]


def made(make: MakeTable, **attributes: str) -> WorkTable:
    """A table of CSV files."""
    table = make()
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.edit(**{"Schema": SCHEMA, **attributes})
    return table


def load(table: WorkTable, rows: Rows, number: int = 1, **form: str) -> None:
    table.put_raw(f"LOAD{number:08X}.csv", csv_text(rows, **form))


def cdc(table: WorkTable, rows: Rows, ending: str = ".csv", name: str | None = None, **form: str) -> str:
    data = csv_text(rows, **form)
    base = (name or table.next_name()).removesuffix(".parquet")
    table.put_raw(base + ending, gzip.compress(data) if ending == ".csv.gz" else data)
    return base + ending


def inserts(rows: Rows) -> list[tuple[Any, ...]]:
    return [("I", *row) for row in rows]


def at(second: int) -> str:
    return f"{START + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}.000000"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("header", [True, False], ids=["header", "bare"])
def test_a_load_and_batches(quick_table: MakeTable, header: bool, ending: str) -> None:
    """With a header or without; the record says rows and form, and what it says can be replayed."""
    table, heads = made(quick_table), [HEAD] if header else []
    load(table, [*heads, *inserts(LOADED)])
    cdc(table, [*heads, ("U", 1, 'say "x"', 1), ("D", 2, None, None), ("I", 4, None, None), ("U", 4, "", 4)], ending)
    cdc(table, [*heads, ("I", 5, "NULL", 5)], ending)

    table.sync()

    assert table.rows() == [(1, 'say "x"', 1), (3, "c", 3), (4, "", 4), (5, "NULL", 5)]
    record = table.head()
    assert [item.rows for item in record.inputs] == [4, 1]
    assert record.details[DETAIL] == {"delimiter": ",", "null": "NULL", "columns": ["id", "name", "qty"]}
    table.check_folder()
    proved(table)
    assert [step[0] for step in told(table, "4")] == ["insert"]
    assert told(table, "4")[0][3:] == (record.inputs[0].key.rsplit("/", 1)[1], 3)


def test_all_types_and_the_commit_time(quick_table: MakeTable) -> None:
    """The commit time stands first, is found by its values, and says where a reload begins."""
    kinds = {
        "id": "int", "price": "decimal(12,2)", "rate": "double", "on": "boolean", "day": "date", "made": "timestamp", "bytes": "binary",
    }  # fmt: skip
    table = made(quick_table, Schema=json.dumps(kinds), TimestampColumn="ts")
    load(table, [("I", at(0), 1, "1.50", "0.1", "true", "2024-05-01", "2024-05-01 10:11:12.5", "00ff")])
    cdc(table, [("I", at(9), 2, *[None] * 6), ("I", at(8), 3, "-2", "NaN", "f", "3018-01-01", "0001-01-01 00:00:00", "")])

    table.sync()

    rows = {row[1]: row for row in table.rows()}
    when = datetime(2024, 5, 1, 10, 11, 12, 500000, timezone.utc)
    assert rows[1] == (at(0), 1, Decimal("1.50"), 0.1, True, date(2024, 5, 1), when, b"\x00\xff")
    assert rows[2] == (at(9), 2, *[None] * 6)
    assert rows[3][2] == Decimal("-2.00")
    assert (table.head().timestamp_column, table.head().counts.backward) == ("ts", 1)
    proved(table)


def test_the_lakes_types_hold_for_files_beside_parquet(quick_table: MakeTable) -> None:
    """A table of Parquet files needs no Schema: with a header or without, packed or not, one batch or several."""
    table = quick_table()
    table.environment = {"DMSLAKE_DATABASE": "", **table.environment}
    table.load(LOADED)
    table.sync()
    cdc(table, [("U", 1, "bare", 10)])
    table.cdc([("U", (2, "parquet", 20))])
    cdc(table, [HEAD, ("U", 3, "header", 30)], ".csv.gz")

    table.sync()

    assert table.rows() == [(1, "bare", 10), (2, "parquet", 20), (3, "header", 30)]
    proved(table)


def test_a_column_that_parquet_files_of_the_batch_have_needs_no_schema(quick_table: MakeTable) -> None:
    """They say its type."""
    table = quick_table()
    table.load(LOADED)
    table.cdc([("I", (4, "d", 4, 0.5))], columns=SHOP.append(pa.field("rate", pa.float64())))
    cdc(table, [(*HEAD, "rate"), ("I", 5, "e", 5, "1.5")])

    table.sync()

    assert [row[3] for row in table.rows()] == [None, None, None, 0.5, 1.5]


def test_a_new_column_waits_for_its_type(quick_table: MakeTable) -> None:
    """The lake is as it was until a person says it; then the table goes on by itself."""
    table = made(quick_table)
    load(table, [HEAD, *inserts(LOADED)])
    table.sync()
    name = cdc(table, [(*HEAD, "age"), ("I", 4, "d", 4, 40)])

    error = table.blocked()

    assert error["code"] == "csv-needs-schema"
    assert name in error["message"]
    assert "'age'" in error["message"]
    assert '\\"age\\": \\"TYPE\\"' in error["todo"]
    assert len(table.rows()) == 3
    table.edit(Schema='{"age": "smallint"}')
    table.sync()
    assert table.rows()[-1] == (4, "d", 4, 40)
    assert [column.added for column in table.head().schema] == [False, False, False, True]
    proved(table)


def test_a_new_column_without_a_header(quick_table: MakeTable) -> None:
    """In the middle of the fields: Schema says where; without it the lake's order would be a guess."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    table.sync()
    cdc(table, [("I", 4, "d", 40, 4)])
    assert table.blocked()["code"] == "csv-columns"
    table.edit(Schema='{"id": "bigint", "name": "string", "age": "int", "qty": "int"}')
    table.sync()
    assert table.rows()[-1] == (4, "d", 4, 40)
    table.remove("Schema")
    cdc(table, [("I", 5, "e", 50, 5)])
    error = table.blocked()
    assert (error["code"], "order" in error["message"]) == ("csv-needs-schema", True)
    proved(table)


def test_files_from_before_a_new_column_do_not_wait_for_a_word_on_it(quick_table: MakeTable) -> None:
    """Both are pending when a run begins, and no Schema fits both: the first is taken, and the table waits at the second."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    table.sync()
    cdc(table, [("U", 1, "A", 1)])
    new = cdc(table, [("I", 4, "d", 4, 40)])
    cdc(table, [("I", 5, "e", 5, 50)])

    error = table.blocked()

    assert (error["code"], new in error["message"]) == ("csv-columns", True)
    assert [row[1] for row in table.rows()] == ["A", "b\nb", "c"]
    table.edit(Schema='{"id": "bigint", "name": "string", "qty": "int", "age": "int"}')
    table.sync()
    assert table.rows()[-2:] == [(4, "d", 4, 40), (5, "e", 5, 50)]
    proved(table)


def test_a_new_table_needs_schema(quick_table: MakeTable) -> None:
    """Nothing is loaded without; once it is there, all is."""
    table = quick_table()
    load(table, [HEAD, *inserts(LOADED)])
    assert table.run("LoadInitial") == 1
    error = table.last_run()["error"]
    assert (error["code"], "LOAD00000001.csv" in error["message"]) == ("csv-needs-schema", True)
    table.edit(Schema=SCHEMA)
    table.sync()
    assert table.rows() == LOADED


def test_a_value_that_does_not_parse_blocks_the_table(quick_table: MakeTable) -> None:
    """With file, line, column and value; nothing of the batch is applied."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    cdc(table, [("U", 1, "x\ny", 1)])
    table.sync()
    name = cdc(table, [("U", 1, "later\n\n", 7), ("U", 2, "z", "many")])

    error = table.blocked()

    assert error["code"] == "csv-value"
    assert f"{name}, line 4; expected: int" in error["message"]
    assert "column 'qty'" in error["message"]
    assert "found: 'many'" in error["message"]
    assert table.rows()[0] == (1, "x\ny", 1)


def test_a_late_file(quick_table: MakeTable) -> None:
    """It is ranked with those that were applied before it."""
    table = made(quick_table)
    names = [table.next_name() for _ in range(4)]
    load(table, inserts(LOADED))
    cdc(table, [("U", 1, "first", 1)], name=names[0])
    cdc(table, [("D", 2, None, None)], name=names[2])
    table.sync()
    cdc(table, [HEAD, ("U", 1, "late", 1), ("U", 2, "late", 2)], ".csv.gz", name=names[1])

    table.sync()

    assert table.rows() == [(1, "late", 1), (3, "c", 3)]
    assert table.head().kind == "late"
    proved(table)


def test_what_was_read_is_read_the_same_way_again(quick_table: MakeTable) -> None:
    """A changed attribute does not change the past: delimiter, null literal and places are those of each change."""
    table = made(quick_table, CsvDelimiter=";", CsvNullValue="\\N", CsvEmptyIsText="true")
    table.put_raw("LOAD00000001.csv", b"I;1;NULL;1\nI;2;a,b;2\nI;5;;\n")
    cdc(table, [("I", 3, None, 3)], delimiter=";", null="\\N")
    table.sync()
    table.edit(CsvDelimiter="\\t", CsvNullValue="nil", Schema='{"qty": "int", "id": "bigint", "name": "string"}')
    cdc(table, [("I", 4, 4, None)], delimiter="\t", null="nil")
    table.sync()

    assert table.rows() == [(1, "NULL", 1), (2, "a,b", 2), (3, None, 3), (4, None, 4), (5, "", None)]
    proved(table)
    table.remove("Schema", "CsvDelimiter", "CsvNullValue", "CsvEmptyIsText")
    proved(table)
    assert told(table, "2")[0][3:] == ("LOAD00000001.csv", 1)


def test_a_change_that_was_staged_is_read_as_it_was(quick_table: MakeTable) -> None:
    """Its form stands in the record of the commit too."""
    table = made(quick_table, CsvDelimiter=";")
    load(table, inserts(LOADED), delimiter=";")
    table.sync()
    cdc(table, [("U", 1, "a,b", 1)], delimiter=";")
    assert table.run(stage="true") == 0, table.last_run()
    assert table.commit(table.last_run()["staged"]).code == 0
    table.remove("CsvDelimiter")

    assert table.head().details[DETAIL]["delimiter"] == ";"
    proved(table)


def test_an_undone_change_is_taken_again(quick_table: MakeTable) -> None:
    """The raw files are pending again, and re-applied as they were."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    table.sync()
    cdc(table, [("D", 1, None, None)])
    table.sync()
    undone = table.item()["Head"]
    assert table.run("Rollback", to="previous") == 0, table.last_run()
    assert len(table.rows()) == 3
    assert table.run("Rollback", to=undone) == 0, table.last_run()
    assert len(table.rows()) == 2
    proved(table)


def test_rows_sent_twice_and_digits_cut_are_told(quick_table: MakeTable) -> None:
    """By the change sequence, and by fractions of more than six digits; over the files of a change."""
    table = made(quick_table, Schema='{"id": "int", "at": "timestamp"}')
    names = ("Op", "id", "at", "AR_H_CHANGE_SEQ")
    load(table, [names, ("I", 1, "2024-05-01 12:00:00.1234567", None), ("I", 2, "2024-05-01 12:00:00.123456000", None)])
    table.sync()
    assert table.head().details["digits_cut"] == {"at": 1}
    cdc(table, [names, ("U", 1, None, "01"), ("U", 2, None, "02")])
    cdc(table, [names, ("U", 2, None, "02"), ("D", 1, None, "03")], ".csv.gz")

    table.sync()

    assert table.head().details["repeated_rows"] == 1
    assert "digits_cut" not in table.head().details


def test_a_changed_key_is_told_by_its_before_image(quick_table: MakeTable) -> None:
    """By the header's BI_ columns."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    cdc(table, [(*HEAD, "BI_id"), ("U", 9, "a", 1, 1), ("U", 3, "C", 3, 3), ("D", 2, None, None, None)])

    table.sync()

    assert table.rows() == [(3, "C", 3), (9, "a", 1)]
    proved(table)


def test_a_reload_may_change_types(quick_table: MakeTable) -> None:
    """Schema says the new ones; of a column that it does not name the lake knows the type."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    table.sync()
    load(table, [("Op", "id", "name", "qty"), ("I", 1, "2024-05-01", 1)])
    table.edit(Request="reload", Schema='{"name": "date"}')

    table.sync(load_quiet_minutes="0")

    assert table.rows() == [(1, date(2024, 5, 1), 1)]
    proved(table)


def test_inserts_without_operation(quick_table: MakeTable) -> None:
    """A load without IncludeOpForFullLoad, and CDC files without it (CdcInsertsOnly)."""
    table = made(quick_table)
    load(table, LOADED)
    load(table, [("id", "name", "qty"), (4, "d", 4)], 2)
    cdc(table, [(5, "e", 5)])

    table.sync()

    assert [row[0] for row in table.rows()] == [1, 2, 3, 4, 5]
    proved(table)


def test_empty_files_count_as_taken(quick_table: MakeTable) -> None:
    """Without a byte, and with a header alone; no column seems to be gone."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    load(table, [], 2)
    table.sync()
    cdc(table, [("I", 4, "d", 4)])
    cdc(table, [HEAD])
    cdc(table, [])

    table.sync()

    assert len(table.rows()) == 4
    assert [item.rows for item in table.head().inputs] == [1, 0, 0]
    assert not any(column.absent for column in table.head().schema)
    proved(table)


def test_a_history_of_csv_files_can_be_built_anew(quick_table: MakeTable) -> None:
    """It is the one that was kept: raw file and row of each version too."""
    table = made(quick_table, TimestampColumn="ts")
    table.edit(History="true")
    load(table, [("Op", "ts", "id", "name", "qty"), *(("I", at(0), *row) for row in LOADED)])
    table.sync()
    assert {row["valid_from"] for row in check_history(table)} == {START}
    cdc(table, [("U", at(5), 1, "A", 1), ("U", at(6), 1, "B", 1), ("D", at(7), 2, None, None)])
    table.sync()
    kept = [{name: row[name] for name in row if name != "change_id"} for row in check_history(table)]

    assert table.run("BackfillHistory") == 0, table.last_run()

    assert [{name: row[name] for name in row if name != "change_id"} for row in check_history(table)] == kept
    assert {row["source_file"][-4:] for row in kept} == {".csv"}


def test_erased_keys_that_come_back_are_told(quick_table: MakeTable, tmp_path: Path) -> None:
    """As those of Parquet files are."""
    table = made(quick_table)
    load(table, inserts(LOADED))
    table.sync()
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n2\n")
    assert table.run("Erase", key="id", erase_keys=str(keys)) == 0, table.last_run()
    cdc(table, [HEAD, ("I", 2, "again", 2), ("D", 1, None, None)], ".csv.gz")

    table.sync()

    assert table.head().details["erased_keys_back"] == 1


@pytest.mark.parametrize("strategy", ["broadcast", "shuffle"])
def test_on_spark(spark_table: MakeTable, strategy: str) -> None:
    """A whole file a task: heads, load, batches and their errors."""
    table = made(spark_table)
    settings = {"driver_bytes": "0", **({"broadcast_bytes": "0"} if strategy == "shuffle" else {})}
    rows = [(number, f"name {number}\n", number) for number in range(3000)]
    load(table, inserts(rows[:2000]))
    load(table, [HEAD, *inserts(rows[2000:])], 2)
    cdc(table, [("U", number, f"new {number}", number) for number in range(0, 3000, 3)], ".csv.gz")
    cdc(table, [HEAD, *(("D", number, None, None) for number in range(0, 3000, 4))])

    table.sync(**settings)

    wanted = [(number, f"new {number}" if number % 3 == 0 else text, qty) for number, text, qty in rows if number % 4]
    assert table.rows() == sorted(wanted, key=repr)
    assert [item.rows for item in table.head().inputs] == [1000, 750]
    assert table.head().details["engine"] == "spark"
    cdc(table, [("U", 1, "one more", 1)])
    wider = cdc(table, [("U", 2, "x", 1, "more")])
    assert (wider in table.blocked(**settings)["message"], (1, "one more", 1) in table.rows()) == (True, True)
    table.edit(SkipFiles=wider)
    name = cdc(table, [("U", 1, "x\n", 1), ("U", 2, "x", "many")])
    assert f"{name}, line 3" in table.blocked(**settings)["message"]
