"""A capture of a real database under random concurrent changes adds up to the database."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from infra.local.capture import CaptureOptions, capture
from tests.database.files import RawFiles, sorted_rows
from tests.database.server import MariaDb
from tests.database.steps import one, until
from tests.database.workload import Workload


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_files_add_up_to_the_tables_after_every_round(mariadb: MariaDb, database: str, raw: RawFiles, seed: int) -> None:
    """Full load, then rounds of concurrent transactions with a column added in between: always equal to SELECT *."""
    workload = Workload(lambda: mariadb.connect(database), seed)
    workload.create()
    workload.round(30)
    rows = 0

    for number in range(5):
        capture(mariadb.url(database), raw.url, s3_client=raw.client, full_load=number == 0)
        for table in workload.tables:
            columns, expected = workload.rows(table.name)
            assert raw.replayed(table.name, table.primary_key, columns) == sorted_rows(expected)
            rows += len(expected)
        if number in (1, 2):
            workload.round(5)
            workload.add_column()
        workload.round(40)

    assert rows > 100, "the workload left next to nothing to compare"


def test_event_times_run_backwards_but_the_order_of_rows_is_the_databases(
    mariadb: MariaDb, database: str, connection: Any, raw: RawFiles
) -> None:
    """A statement that waited for a lock comes later with an earlier time; the last row in the file is the table's."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(5))")
        cursor.execute("INSERT INTO t VALUES (1, 'start')")
    capture(mariadb.url(database), raw.url, s3_client=raw.client, full_load=True)

    with mariadb.connect(database) as holder, mariadb.connect(database, autocommit=True) as waiter:
        with holder.cursor() as cursor:
            cursor.execute("UPDATE t SET v = 'hold' WHERE id = 1")
            waiting = threading.Thread(target=waiter.query, args=["UPDATE t SET v = 'B' WHERE id = 1"])
            waiting.start()
            until(lambda: one(connection, "SELECT count(*) FROM information_schema.innodb_lock_waits") > 0)
            began = one(connection, "SELECT unix_timestamp()")
            until(lambda: one(connection, "SELECT unix_timestamp()") > began)
            cursor.execute("UPDATE t SET v = 'A' WHERE id = 1")
        holder.commit()
        waiting.join()
    capture(mariadb.url(database), raw.url, s3_client=raw.client, options=CaptureOptions(timestamp_column="committed_at"))

    rows = raw.rows("t")[1:]
    assert [row["v"] for row in rows] == ["hold", "A", "B"]
    assert rows[2]["committed_at"] < rows[1]["committed_at"], "the case wasn't reached"
    assert raw.replayed("t", ("id",), ["id", "v"]) == [(1, "B")]
