"""The order of changes in the lake is the database's, also where times and keys speak against it."""

from __future__ import annotations

import threading
from typing import Any

from infra.local.capture import CaptureOptions
from tests.database.lake import DRIVER, Activation, LakeDatabase
from tests.database.steps import one, run, until

STAMPED = CaptureOptions(timestamp_column="committed_at")
BEFORE_IMAGES = CaptureOptions(before_images=True)


def _wait_for_a_lock(lake: LakeDatabase, connection: Any) -> None:
    """`B` waits for the transaction that writes `A` a second later, and is committed after it."""
    with lake.server.connect(lake.name) as holder, lake.server.connect(lake.name, autocommit=True) as waiter:
        run(holder, "UPDATE t SET v = 'hold' WHERE id = 1")
        waiting = threading.Thread(target=waiter.query, args=["UPDATE t SET v = 'B' WHERE id = 1"])
        waiting.start()
        until(lambda: one(connection, "SELECT count(*) FROM information_schema.innodb_lock_waits") > 0)
        began = one(connection, "SELECT unix_timestamp()")
        until(lambda: one(connection, "SELECT unix_timestamp()") > began)
        run(holder, "UPDATE t SET v = 'A' WHERE id = 1")
        holder.commit()
        waiting.join()


def test_a_statement_that_waited_for_a_lock_wins_although_its_time_is_earlier(lake: LakeDatabase, connection: Any) -> None:
    """The lake holds what the database ended with."""
    run(connection, "CREATE TABLE t (id int PRIMARY KEY, v varchar(5))", "INSERT INTO t VALUES (1, 'start'), (2, 'else')")
    lake.capture(full_load=True, options=STAMPED)
    lake.activate(t=Activation(("id",), untold=("committed_at",)))
    lake.jobs(**DRIVER)
    lake.check()

    _wait_for_a_lock(lake, connection)
    lake.capture(options=STAMPED)
    lake.jobs(**DRIVER)

    times = {row["v"]: row["committed_at"] for row in lake.raw.rows("t")[-3:]}
    assert times["B"] < times["A"], "the case wasn't reached"
    assert one(connection, "SELECT v FROM t WHERE id = 1") == "B"
    lake.check()


def test_rows_whose_key_changed_leave_their_old_key(lake: LakeDatabase, connection: Any) -> None:
    """With before images: keys that move up, swap places, and come back, some to another partition, in one batch."""
    run(connection, "CREATE TABLE t (id int PRIMARY KEY, v varchar(5))", "INSERT INTO t SELECT seq, concat('v', seq % 3) FROM seq_1_to_9")
    lake.capture(full_load=True, options=BEFORE_IMAGES)
    lake.activate(t=Activation(("id",), "v"))
    lake.jobs(**DRIVER)

    run(connection, "UPDATE t SET id = id + 1 ORDER BY id DESC", "UPDATE t SET id = 100, v = 'v9' WHERE id = 5")
    run(connection, "UPDATE t SET id = -1 WHERE id = 2", "UPDATE t SET id = 2 WHERE id = 3", "UPDATE t SET id = 3 WHERE id = -1")
    run(connection, "UPDATE t SET id = 50 WHERE id = 7", "UPDATE t SET id = 7 WHERE id = 50", "DELETE FROM t WHERE id = 8")
    lake.capture(options=BEFORE_IMAGES)
    lake.jobs(**DRIVER)

    assert lake.check() == 8
