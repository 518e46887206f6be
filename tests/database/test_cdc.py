"""CDC files: which rows they have, in which form and order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from infra.local.capture import CaptureError, CaptureOptions, TableSummary, UsageError
from tests.database.files import RawFiles
from tests.database.server import MariaDb
from tests.database.steps import Capture, ops, run


def test_changes_come_with_the_row_after_and_deletes_with_the_row_before(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """I, U and D in the order of the binlog, in one file for the round."""
    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')", "UPDATE t SET v = 'x' WHERE id < 3", "DELETE FROM t WHERE id = 2")

    summary = capture()

    assert ops(raw)[2:] == [("I", 3, "c"), ("U", 1, "x"), ("U", 2, "x"), ("D", 2, "x")]
    assert summary.tables == {"t": TableSummary(cdc_files=1, inserts=1, updates=2, deletes=1)}


def test_a_round_without_changes_writes_no_file_and_moves_the_position(
    connection: Any, raw: RawFiles, mariadb: MariaDb, table: str, capture: Capture
) -> None:
    """Other databases' changes don't make files, but needn't be read again."""
    before = capture(full_load=True).position
    run(connection, "CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.t (id int)", "INSERT INTO elsewhere.t VALUES (1)")

    summary = capture()
    run(connection, "DROP DATABASE elsewhere")

    assert summary.keys == []
    assert before is not None
    assert summary.position is not None
    assert summary.position.order > before.order


def test_rolled_back_work_never_comes(mariadb: MariaDb, raw: RawFiles, table: str, capture: Capture) -> None:
    """Neither a whole transaction nor what lies behind a savepoint, even where the binlog has to hold it."""
    capture(full_load=True)
    with mariadb.connect(raw.database) as other:
        run(other, "CREATE TABLE log (id int, v int) ENGINE=MyISAM", "INSERT INTO t VALUES (3, 'gone')")
        other.rollback()
        run(other, "INSERT INTO t VALUES (4, 'stays')", "SAVEPOINT s", "INSERT INTO t VALUES (5, 'gone')")
        run(other, "ROLLBACK TO SAVEPOINT s", "INSERT INTO t VALUES (6, 'stays')")
        other.commit()
        run(other, "INSERT INTO t VALUES (7, 'stays')", "SAVEPOINT s", "INSERT INTO t SELECT 8, 'gone'")
        run(other, "INSERT INTO log VALUES (1, 1)", "UPDATE log, t SET log.v = 2, t.v = 'gone' WHERE t.id = 1")
        run(other, "ROLLBACK TO SAVEPOINT s")
        other.commit()
        run(other, "INSERT INTO t VALUES (9, 'gone')", "UPDATE log, t SET log.v = 3, t.v = 'gone' WHERE t.id = 2")
        run(other, "CREATE TEMPORARY TABLE kept (id int) ENGINE=MyISAM", "INSERT INTO kept SELECT id FROM t")
        other.rollback()
        run(other, "INSERT INTO t VALUES (10, 'stays')")
        other.commit()

    capture()

    assert [row for row in ops(raw) if row[2] == "gone"] == []
    assert [row[1] for row in ops(raw)[2:]] == [4, 6, 7, 10]
    assert [row["v"] for row in raw.rows("log")] == [1, 2, 3], "a table without transactions keeps what was done"


def test_a_changed_key_is_one_u_with_the_new_key(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """As DMS writes it: nothing tells the old key."""
    capture(full_load=True)
    run(connection, "UPDATE t SET id = 10 WHERE id = 1")

    capture()

    assert ops(raw)[2:] == [("U", 10, "a")]


def test_before_images_tell_the_old_key(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """BI_ columns at the end: the row before on U, null on I and D."""
    options = CaptureOptions(before_images=True)
    capture(full_load=True, options=options)
    run(connection, "UPDATE t SET id = 10 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 'c')")

    capture(options=options)

    assert raw.rows(table)[2:] == [
        {"Op": "U", "id": 10, "v": "a", "BI_id": 1, "BI_v": "a"},
        {"Op": "D", "id": 2, "v": "b", "BI_id": None, "BI_v": None},
        {"Op": "I", "id": 3, "v": "c", "BI_id": None, "BI_v": None},
    ]


def test_the_timestamp_column_is_second_and_tells_when_the_statement_began(
    connection: Any, raw: RawFiles, table: str, capture: Capture
) -> None:
    """In CDC files it is in whole seconds of UTC, in load files the time of transfer; it is required."""
    options = CaptureOptions(timestamp_column="committed_at")
    capture(full_load=True, options=options)
    run(connection, "SET timestamp = 1600000000", "DELETE FROM t WHERE id = 1")

    capture(options=options)

    rows = raw.rows(table)
    assert list(rows[0]) == ["Op", "committed_at", "id", "v"]
    assert rows[2]["committed_at"] == "2020-09-13 12:26:40.000000"
    assert rows[0]["committed_at"] > rows[2]["committed_at"]
    assert not raw.file(table, raw.names(table)[0]).schema_arrow.field("committed_at").nullable


def test_changed_columns_begin_a_new_file(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """A file has one set of columns: that of the table when its rows were changed."""
    capture(full_load=True)
    run(connection, "INSERT INTO t VALUES (3, 'c')", "ALTER TABLE t ADD COLUMN w int", "INSERT INTO t VALUES (4, 'd', 9)")
    run(connection, "ALTER TABLE t DROP COLUMN v, MODIFY w bigint", "INSERT INTO t VALUES (5, 10)")

    summary = capture()

    schemas = [raw.file("t", name).schema_arrow for name in raw.names("t")[1:]]
    assert [schema.names for schema in schemas] == [["Op", "id", "v"], ["Op", "id", "v", "w"], ["Op", "id", "w"]]
    assert [schema.field("w").type for schema in schemas[1:]] == [pa.int32(), pa.int64()]
    assert summary.keys == sorted(summary.keys)


def test_only_named_tables_are_captured(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """Others have neither load nor CDC files."""
    options = CaptureOptions(tables=("t",))
    run(connection, "CREATE TABLE u (id int)", "INSERT INTO u VALUES (1)")

    capture(full_load=True, options=options)
    run(connection, "INSERT INTO u VALUES (2)", "INSERT INTO t VALUES (3, 'c')")
    capture(options=options)

    assert (raw.names("u"), len(raw.names("t"))) == ([], 2)
    with pytest.raises(UsageError, match="nope not in database"):
        capture(full_load=True, options=CaptureOptions(tables=("t", "nope")))


def test_a_table_that_is_not_there_is_warned_of(raw: RawFiles, table: str, capture: Capture) -> None:
    """It may be made later; under a wrong name nothing would ever be captured."""
    warnings = capture(options=CaptureOptions(tables=("t", "nope"))).warnings

    assert [warning for warning in warnings if "nope not in database" in warning] == warnings[:1]


def test_tables_whose_rows_go_with_others_are_warned_of(connection: Any, table: str, capture: Capture) -> None:
    """By a foreign key the server deletes and changes rows that no binlog has: once for each capture that begins, the load too."""
    run(
        connection,
        "CREATE TABLE line (id int PRIMARY KEY, t_id int, FOREIGN KEY (t_id) REFERENCES t (id) ON DELETE CASCADE)",
        "CREATE TABLE note (id int PRIMARY KEY, t_id int, FOREIGN KEY (t_id) REFERENCES t (id))",
        "INSERT INTO line VALUES (1, 1)",
    )
    warned = [*capture(full_load=True).warnings, *capture().warnings]
    run(connection, "DELETE FROM t WHERE id = 1")

    assert [text.split(":")[0] for text in warned] == ["line", "line"]
    assert list(capture().tables) == ["t"]


@pytest.mark.parametrize(
    ("before", "now", "is_load", "is_fine"),
    [
        (("t",), ("t", "t"), False, True),
        (("t",), None, False, False),
        (None, ("t",), False, False),
        (None, ("t",), True, False),
        (("t",), ("u",), True, False),
        (("t",), ("u", "t"), True, True),
        (("t",), None, True, True),
    ],
)
def test_a_position_is_of_the_tables_that_were_captured(
    connection: Any,
    raw: RawFiles,
    table: str,
    capture: Capture,
    before: tuple[str, ...] | None,
    now: tuple[str, ...] | None,
    is_load: bool,
    is_fine: bool,
) -> None:
    """Of others it says nothing: with them changes would be passed over. A full load of these and more begins anew for all."""
    run(connection, "CREATE TABLE u (id int PRIMARY KEY)")
    capture(full_load=True, options=CaptureOptions(tables=before))
    files = raw.listed()

    if is_fine:
        capture(full_load=is_load, options=CaptureOptions(tables=now))
    else:
        with pytest.raises(CaptureError, match=r"of other tables than are asked for.*expected --tables as before") as caught:
            capture(full_load=is_load, options=CaptureOptions(tables=now))
        assert (caught.value.code, raw.listed()) == ("other-tables", files)


def test_a_table_made_later_comes_by_cdc_files_alone(connection: Any, raw: RawFiles, table: str, capture: Capture) -> None:
    """It has no load file, since it wasn't there."""
    capture(full_load=True)
    run(connection, "CREATE TABLE late (id int PRIMARY KEY, v int)", "INSERT INTO late VALUES (1, 2)")

    capture()

    assert [name[:4] == "LOAD" for name in raw.names("late")] == [False]
    assert ops(raw, "late") == [("I", 1, 2)]


def test_names_that_need_quoting_are_captured(connection: Any, raw: RawFiles, capture: Capture) -> None:
    """Reserved words, spaces, quotes and other letters in table and column names."""
    run(connection, "CREATE TABLE `order` (`group` int, `a ``b` int, `größe 😊` int)".replace("😊", "ñ"))
    run(connection, "INSERT INTO `order` VALUES (1, 2, 3)")

    capture(full_load=True)
    run(connection, "INSERT INTO `order` VALUES (4, 5, 6)")
    capture()

    rows = raw.rows("order")
    assert [list(row) for row in rows] == [["Op", "group", "a `b", "größe ñ"]] * 2
    assert [row["a `b"] for row in rows] == [2, 5]
