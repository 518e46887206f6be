"""Tables whose source takes texts for one key that are spelled in different ways: attribute KeyCollation."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glue_jobs.core.collation import Collation, KeyColumn, parse_collation
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.limits import Limits
from glue_jobs.protocol.recover import recover
from glue_jobs.rows import delete_rows, insert_rows, update_rows
from glue_jobs.spark.differences import difference
from glue_jobs.spark.key_columns import collated_texts
from glue_jobs.spark.reading import reading_place
from glue_jobs.spark.verify_files import check_files
from tests.core.test_collation import COLLATIONS, TEXTS
from tests.protocol.test_state_went_back import as_new, overwrite
from tests.spark.histories import versions
from tests.spark.tables import WorkTable
from tests.spark.test_explain import told
from tests.spark.test_replay_rows import differences, proved
from tests.spark.test_shuffle import STRATEGIES
from tests.work_tables import MakeTable

NAMES = pa.schema([("name", pa.string()), ("qty", pa.int32())])
LINES = pa.schema([("shop", pa.int64()), ("name", pa.string()), ("part", pa.string()), ("qty", pa.int32())])
LOADED = [("abc", 1), ("Straße", 2), ("zoë", 3)]
SMALL_FILES = {"target_file_bytes": "1", "small_file_bytes": "0"}


@pytest.fixture
def make(quick_table: MakeTable) -> MakeTable:
    """Makes tables whose names are ci,ai,pad, with a load."""

    def make(rows: Iterable[Sequence[Any]] = LOADED, collation: str = "utf8mb4_general_ci", **attributes: Any) -> WorkTable:
        table = quick_table(**{"columns": NAMES, "primary_key": "name", **attributes})
        if collation:
            table.edit(KeyCollation=collation)
        table.load(rows)
        assert table.run("LoadInitial", **SMALL_FILES) == 0, table.last_run()
        return table

    return make


def batch(table: WorkTable, *rows: Any, **settings: str) -> tuple[int, int, int]:
    """Rows inserted, updated, deleted by a CDC file of its own change; the table is as its records say."""
    table.cdc(rows)
    assert table.run(**settings) == 0, table.last_run()
    table.check_files()
    table.check_folder()
    return table.counts()


def wrong(table: WorkTable) -> list[str]:
    """What `dmslake verify` finds; these runs have no catalog."""
    return [code for code in table.verify() if not code.startswith("catalog")]


# --- one form of a text


@given(COLLATIONS, st.lists(st.none() | TEXTS, max_size=6))
def test_arrow_and_python_make_the_same_form(collation: Collation, texts: list[str | None]) -> None:
    """Of texts that are ASCII and texts that are not, in one piece and in many."""
    expected = [None if text is None else collation.form(text) for text in texts]
    whole = pa.array(texts, pa.string())
    pieces = pa.chunked_array([whole.slice(at, 1) for at in range(len(texts))], pa.string())

    assert collated_texts(whole, collation).to_pylist() == expected
    assert collated_texts(pieces, collation).to_pylist() == expected


# --- batches


def test_another_spelling_is_the_same_row(make: MakeTable) -> None:
    """The row keeps the spelling that was written last; a delete needs not know it."""
    table = make()

    assert batch(table, ("U", ("ABC", 10)), ("D", ("ZOE ", None)), ("I", ("new", 4))) == (1, 1, 1)
    assert table.rows() == [("ABC", 10), ("Straße", 2), ("new", 4)]
    assert batch(table, ("I", ("NEW", 5)), ("U", ("Ñew", 6)), ("D", ("nEW", None)), ("I", ("abç", 7))) == (0, 1, 1)
    assert table.rows() == [("Straße", 2), ("abç", 7)]
    assert wrong(table) == []


def test_only_files_whose_range_meets_the_form_are_opened(make: MakeTable) -> None:
    """The records have the bounds of the form: by their bytes, Zoe would come before abc."""
    table = make([("A-name", 0), ("a-OTHER", 0)])
    for letter in "bCdE":
        batch(table, ("I", (f"{letter}-name", 0)), **SMALL_FILES)
    before = table.snapshot().files
    bounds = [(("a-name",), ("a-other",)), *((((f"{letter}-name",),) * 2) for letter in "bcde")]
    assert sorted((file.low, file.high) for file in before.values() if file.low and file.high) == bounds

    assert batch(table, ("U", ("a-NAME", 1)), ("U", ("C-NAME", 2)), **SMALL_FILES) == (0, 2, 0)

    assert len(set(before) - set(table.snapshot().files)) == 2
    assert table.rows() == [("C-NAME", 2), ("E-name", 0), ("a-NAME", 1), ("a-OTHER", 0), ("b-name", 0), ("d-name", 0)]


def test_a_key_that_is_a_folder_too(make: MakeTable) -> None:
    """A new spelling is a new folder: the row moves there."""
    table = make(partition_key="name")

    assert batch(table, ("U", ("ABC", 10)), ("D", ("STRASSE", None))) == (0, 1, 0)

    assert table.rows() == [("ABC", 10), ("Straße", 2), ("zoë", 3)]
    assert {file.partition for file in table.snapshot().files.values()} == {("ABC",), ("Straße",), ("zoë",)}


def test_other_columns_of_the_key_compare_as_ever(make: MakeTable) -> None:
    """Only texts have a collation."""
    table = make([(1, "a", "p", 1), (2, "a", "q", 2)], columns=LINES, primary_key="shop,name", partition_key="part")

    assert batch(table, ("U", (2, "A", "p", 20)), ("I", (3, "a", "q", 3))) == (1, 1, 0)

    assert table.rows() == [(1, "a", "p", 1), (2, "A", "p", 20), (3, "a", "q", 3)]


def test_a_before_image_of_the_same_key_in_another_spelling(make: MakeTable) -> None:
    """DMS tells a changed key; it is none here, and the row stays."""
    table = make()
    images = pa.schema([*NAMES, ("BI_name", pa.string())])
    table.cdc([("U", ("ABC", 10, "abc")), ("U", ("moved", 3, "ZOE"))], columns=images)

    assert table.run() == 0

    assert table.rows() == [("ABC", 10), ("Straße", 2), ("moved", 3)]


def test_a_key_that_is_only_spelled_anew_is_one_update_in_the_history(make: MakeTable) -> None:
    """Its before image has other bytes, and is the same key."""
    table = make()
    table.edit(History="true")
    table.sync()
    table.cdc([("U", ("ABC", 10, "abc")), ("U", ("moved", 3, "ZOE"))], columns=pa.schema([*NAMES, ("BI_name", pa.string())]))

    assert table.run() == 0, table.last_run()

    told = sorted((row["name"], row["operation"]) for row in versions(table))
    assert told[:2] == [("ABC", "update"), ("Straße", "insert")]
    assert told[2:] == [("abc", "insert"), ("moved", "insert"), ("zoë", "delete"), ("zoë", "insert")]


ROWS = st.tuples(st.sampled_from(["a", "A", "á", "a ", "b", "B", "ß", "ﬁ", "FI", "fi "]), st.integers(0, 9))
CHANGES = st.lists(st.lists(st.tuples(st.sampled_from("IUD"), ROWS), min_size=1, max_size=6), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["ci", "ai", "pad", "ci,ai,pad", "general,pad", "ci,width"]), CHANGES, st.sampled_from(["null", "name"]))
def test_any_changes_leave_what_a_source_with_that_collation_has(new_table: MakeTable, words: str, rounds: Any, partition_key: str) -> None:
    """A dict from the form of the key to the row is the source."""
    table = new_table(NAMES, primary_key="name", partition_key=partition_key)
    table.edit(KeyCollation=words)
    source: dict[str, Any] = {}
    for changes in rounds:
        for op, row in changes:
            source[parse_collation(words).form(row[0])] = row if op != "D" else None
        table.cdc(changes)
        assert table.run(**SMALL_FILES) == 0, table.last_run()
        table.check_files()

    assert table.rows() == sorted([row for row in source.values() if row], key=repr)
    proved(table)


# --- a collation that comes, goes, or is not the source's


def test_setting_it_on_a_loaded_table_is_a_change_of_the_key(make: MakeTable) -> None:
    """The bounds are written anew; taking it away is another such change, and a rollback brings the attribute back."""
    table = make([("Abc", 1), ("b", 2)], collation="")
    assert [file.low for file in table.snapshot().files.values()] == [("Abc",)]
    table.edit(KeyCollation="ci")

    assert table.run() == 0, table.last_run()

    record = table.head()
    assert (record.kind, record.key_collation) == ("rekey", "ci")
    assert record.details["reason"] == "KeyCollation was changed to ci"
    assert table.snapshot().primary_key == ("name",)
    assert [file.low for file in table.snapshot().files.values()] == [("abc",)]
    table.check_files()
    assert batch(table, ("U", ("ABC", 10))) == (0, 1, 0)
    table.remove("KeyCollation")
    assert table.run() == 0
    assert (table.head().kind, table.head().key_collation) == ("rekey", "")
    assert table.run("Rollback", to="previous") == 0, table.last_run()
    assert table.item()["KeyCollation"] == "ci"
    assert table.head().key_collation == "ci"
    assert table.rows() == [("ABC", 10), ("b", 2)]


def test_an_item_that_is_made_anew_gets_its_collation_back(make: MakeTable) -> None:
    """No command sets it, and without it the next run would make other keys."""
    table = make(collation="utf8mb4_general_ci")
    item = {name: value for name, value in as_new(table).items() if name != "KeyCollation"}
    overwrite(table, item)

    recover(table.clients, table.state_table, table.path, dry_run=False)

    assert table.item()["KeyCollation"] == "general,pad"
    assert batch(table, ("U", ("ABC", 10))) == (0, 1, 0)


@pytest.mark.parametrize("text", ["ci", "utf8mb4_0900_as_ci", " CI "])
def test_another_name_for_the_same_is_no_change(make: MakeTable, text: str) -> None:
    """What counts is what the name says."""
    table = make(collation="ci")
    head = table.item()["Head"]
    table.edit(KeyCollation=text)

    assert table.run() == 0

    assert table.item()["Head"] == head


def test_rows_that_are_one_key_then_are_named(make: MakeTable) -> None:
    """Nothing is changed; after a load from a source that has one row for both it is possible."""
    table = make([("abc", 1), ("ABC", 2), ("x", 3)], collation="")
    table.edit(KeyCollation="ci")

    error = table.blocked()

    assert error["code"] == "key-not-unique"
    assert "'ABC' and 'abc'" in error["message"] or "'abc' and 'ABC'" in error["message"]
    assert len(table.rows()) == 3
    table.load([("ABC", 2), ("x", 3)])
    table.edit(Request="reload")
    assert table.run("LoadInitial", load_quiet_minutes="0") == 0, table.last_run()
    assert (table.rows(), table.head().key_collation) == ([("ABC", 2), ("x", 3)], "ci")


def test_a_load_with_two_spellings_is_refused(quick_table: MakeTable) -> None:
    """The collation is coarser than the source's: keeping the last one would lose a row. The same key twice is fine."""
    table = quick_table(NAMES, primary_key="name")
    table.edit(KeyCollation="ci,ai")
    table.load([("Ä", 1), ("A", 2), ("x", 3)])

    error = table.blocked()

    assert error["code"] == "key-spelled-twice"
    assert "'A'" in error["message"]
    assert "'Ä'" in error["message"]
    table.edit(KeyCollation="ci")
    table.load([("x", 3)], 2)
    assert table.run("LoadInitial") == 0
    assert table.rows() == [("A", 2), ("x", 3), ("Ä", 1)]


def test_a_collation_that_is_not_known_is_refused_by_name(quick_table: MakeTable) -> None:
    """By whatever looks at the table's item; no run begins."""
    table = quick_table(NAMES, primary_key="name")
    table.load(LOADED)
    table.edit(KeyCollation="latin1_swedish_ci")

    assert table.run("LoadInitial") == 1
    with pytest.raises(TableBlocked, match="'latin1_swedish_ci'") as caught:
        table.state()
    assert caught.value.code == "bad-attribute"


# --- what else looks for keys


def test_verify_replays_by_the_form(make: MakeTable) -> None:
    """In one pass, and in many, each over a part of the keys."""
    table = make()
    batch(table, ("U", ("ABC", 10)), ("I", ("new", 4)))
    batch(table, ("D", ("NÉW", None)), ("U", ("Zoe", 30)))

    assert (wrong(table), differences(table)) == ([], [])
    proved(table)


def test_verify_finds_two_spellings(make: MakeTable) -> None:
    """Two rows of a key are a difference, whatever bytes they have."""
    table = make([("abc", 1), ("ABC", 2)], collation="")
    table.edit(KeyCollation="ci")
    snapshot = table.snapshot()
    key = tuple(KeyColumn(name, Collation(ci=True)) for name in snapshot.primary_key)
    collated = replace(snapshot, primary_key=key)

    report = check_files(table.clients.s3, table.out_path, collated, dict.fromkeys(snapshot.files))  # type: ignore[arg-type]

    assert "doubled-key" in {finding.code for finding in report.findings}


def test_explain_and_diff_follow_the_row(make: MakeTable) -> None:
    """Under any spelling: an update, not a delete and an insert."""
    table = make()
    first = table.snapshot()
    batch(table, ("U", ("ABC", 10)))
    batch(table, ("D", ("abć", None)))

    assert [what for what, *_ in told(table, "Abc")] == ["insert", "update", "delete"]
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())
    middle = table.snapshot(table.head().parent)
    found = difference(place, "t", first, middle, 10)
    assert (found.inserts, found.updates, found.deletes) == (0, 1, 0)


def test_the_history_has_one_chain(make: MakeTable) -> None:
    """Each version in its own spelling."""
    table = make()
    table.edit(History="true")
    assert table.run() == 0
    batch(table, ("U", ("ABC", 10)))
    batch(table, ("D", ("Abc", None)), ("U", ("ZOE", 30)))

    chain = [(row["name"], row["operation"], row["validity_flag"]) for row in versions(table) if row["name"].lower() == "abc"]
    assert sorted(chain, key=lambda version: version[1:]) == [("ABC", "delete", 1), ("abc", "insert", 0), ("ABC", "update", 0)]
    assert wrong(table) == []


def test_the_history_of_a_key_that_gets_a_collation(make: MakeTable) -> None:
    """Its open versions are brought under the new key in the same change."""
    table = make(collation="")
    table.edit(History="true")
    assert table.run() == 0
    table.edit(KeyCollation="ci")
    assert table.run() == 0, table.last_run()
    batch(table, ("U", ("ABC", 10)))

    assert sum(row["validity_flag"] for row in versions(table)) == len(table.rows()) == 3
    assert wrong(table) == []


def test_a_history_built_anew(make: MakeTable) -> None:
    """From raw files of before and after the collation."""
    table = make(collation="")
    table.edit(History="true")
    assert table.run() == 0
    batch(table, ("U", ("abc", 5)))
    table.edit(KeyCollation="ci")
    assert table.run() == 0
    batch(table, ("U", ("ABC", 10)), ("D", ("ZOË", None)))

    assert table.run("BackfillHistory") == 0, table.last_run()

    assert wrong(table) == []
    chain = [row["qty"] for row in versions(table) if row["name"].lower() == "abc"]
    assert sorted(chain) == [1, 5, 10]
    assert sum(row["validity_flag"] for row in versions(table) if row["operation"] != "delete") == len(table.rows()) == 2


def test_a_late_file_with_another_spelling(make: MakeTable) -> None:
    """What was written after it stays."""
    table = make()
    table.edit(History="true")
    assert table.run() == 0
    late = [table.next_name() for _ in range(2)]
    batch(table, ("U", ("ABC", 10)), ("I", ("new", 4)))
    table.cdc([("U", ("abc", 5)), ("U", ("ZOE", 30))], name=late[0])
    table.cdc([("D", ("NEW", None)), ("D", ("zoe", None))], name=late[1])

    assert table.run() == 0, table.last_run()

    assert table.head().kind == "late"
    assert table.rows() == [("ABC", 10), ("Straße", 2), ("new", 4)]
    assert wrong(table) == []
    proved(table)


def test_a_staged_change_says_that_a_row_is_updated(make: MakeTable) -> None:
    """And is committed as it was shown."""
    table = make()
    table.cdc([("U", ("ABC", 10)), ("D", ("zoe", None))])

    assert table.run(stage="true") == 0, table.last_run()

    staged = table.last_run()["staged"]
    assert table.rows() == sorted(LOADED, key=repr)
    table.commit(staged)
    assert table.rows() == [("ABC", 10), ("Straße", 2)]
    assert (table.head().counts.updated, table.head().counts.deleted) == (1, 1)


def keys_file(folder: Path, *rows: Sequence[Any], columns: Sequence[str] = ("name",)) -> str:
    path = folder / "given.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


def test_corrections_by_the_key(make: MakeTable, tmp_path: Path) -> None:
    """They find the row under any spelling, and a replay does too."""
    table = make()

    assert table.run("Apply", key="name", deletes=keys_file(tmp_path, ["ABC "])) == 0, table.last_run()
    assert table.run("Apply", key="name", updates=keys_file(tmp_path, ["ZOE", "30"], columns=NAMES.names)) == 0, table.last_run()

    assert table.rows() == [("Straße", 2), ("ZOE", 30)]
    proved(table)


def test_rows_written_by_hand(make: MakeTable) -> None:
    """A row whose key is there in another spelling can't be inserted, but be changed and deleted."""
    table = make()
    given: dict[str, Any] = {"environment": table.environment, "lease_seconds": "60"}

    with pytest.raises(TableBlocked) as caught:
        insert_rows(str(table.path), [{"name": "ABC", "qty": 9}], **given)
    assert caught.value.code == "row-exists"
    update_rows(str(table.path), [{"name": "ABC", "qty": 9}], **given)
    delete_rows(str(table.path), [{"name": "ZOE"}], **given)

    assert table.rows() == [("ABC", 9), ("Straße", 2)]
    proved(table)


def test_an_erase_finds_every_spelling(make: MakeTable, tmp_path: Path) -> None:
    """In versions from before the collation too, whose bounds are of the bytes; a batch that brings the key back in another spelling is
    told."""
    table = make([("ABC", 1), ("B", 2)], collation="")
    batch(table, ("U", ("ABC", 10)))
    table.edit(KeyCollation="ci")
    assert table.run() == 0
    batch(table, ("U", ("abc", 11)))

    assert table.run("Erase", erase_keys=keys_file(tmp_path, ["aBc"])) == 0, table.last_run()

    assert table.rows() == [("B", 2)]
    assert len(table.head().erased) == 4
    batch(table, ("I", ("Abc", 1)))
    assert table.head().details["erased_keys_back"] == 1


# --- Spark


@pytest.mark.parametrize("partition_key", ["null", "part"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_spark_compares_the_same_form(spark_table: MakeTable, strategy: str, partition_key: str) -> None:
    """Loads, batches and a new key, by Arrow, with broadcast changes and by shuffle."""
    table = spark_table(LINES, primary_key="name,shop", partition_key=partition_key)
    table.edit(KeyCollation="ci,pad")
    table.load([(at % 3, f"Näme{at:02}", "pq"[at % 2], at) for at in range(30)])
    table.load([(at % 3, f"Näme{at:02}", "pq"[at % 2], 100 + at) for at in range(5)], 2)
    assert table.run("LoadInitial", **STRATEGIES[strategy], target_file_bytes="2000") == 0, table.last_run()
    table.check_files()

    table.cdc([("U", (0, "nÄME00 ", "q", 1000)), ("I", (1, "new", "p", 1)), ("U", (1, "NEW", "q", 2)), ("D", (1, "NÄMe01", None, None))])
    table.cdc([("U", (2, "näme02", "p", 1002))])
    assert table.run(**STRATEGIES[strategy]) == 0, table.last_run()

    assert table.counts() == (1, 2, 1)
    table.check_files()
    rows = {row[1]: row[3] for row in table.rows()}
    assert len(rows) == 30
    assert (rows["nÄME00 "], rows["NEW"], rows["näme02"], rows["Näme04"]) == (1000, 2, 1002, 104)
    table.edit(KeyCollation="ci,ai,pad")
    assert table.run(**STRATEGIES[strategy]) == 0, table.last_run()
    assert table.head().key_collation == "ci,ai,pad"
    table.check_files()


@pytest.mark.parametrize("partition_key", ["null", "part"])
def test_spark_refuses_what_is_no_key(spark_table: MakeTable, partition_key: str) -> None:
    """A load with two spellings, and rows that a new collation makes one, both named."""
    table = spark_table(LINES, primary_key="name", partition_key=partition_key)
    table.edit(KeyCollation="ci")
    table.load([(1, "abc", "p", 1), (2, "ABC", "q", 2), (2, "x", "q", 2), (2, "x", "q", 3)])
    error = table.blocked(driver_bytes="0")
    assert (error["code"], "'ABC' and 'abc'" in error["message"]) == ("key-spelled-twice", True)
    table.edit(KeyCollation="null")
    assert table.run("LoadInitial", driver_bytes="0") == 0, table.last_run()
    assert len(table.rows()) == 3
    table.edit(KeyCollation="ci")
    error = table.blocked(driver_bytes="0")
    assert (error["code"], "'ABC' and 'abc'" in error["message"]) == ("key-not-unique", True)
