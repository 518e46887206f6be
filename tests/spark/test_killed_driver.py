"""A job on Spark whose driver is killed while its tasks upload: nothing of it is seen, and the next run does the same work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol.runs import forget_lease, start_program, wait_for_death
from tests.work_tables import MakeTable

ROWS = [(number, f"n{number}", number % 5) for number in range(300)]
CHANGES = [("U", (number, "changed", number % 5)) for number in range(100, 110)]
AFTER = sorted([row for row in ROWS if not 100 <= row[0] < 110] + [row for _, row in CHANGES])


@pytest.mark.parametrize("job", ["LoadInitial", "LoadIncremental"])
def test_between_two_uploads_of_its_tasks(spark_table: MakeTable, tmp_path: Path, job: str) -> None:
    """Five partitions, two tasks at a time: some uploads have begun, others have not."""
    table = spark_table(partition_key="qty")
    table.load(ROWS)
    if job == "LoadIncremental":
        assert table.run("LoadInitial") == 0, table.last_run()
        table.cdc(CHANGES)
    before, head = table.visible(), table.item().get("Head")

    wait_for_death(start_program(table, "tests.spark.killed_driver", job, str(tmp_path), driver_bytes="0"))

    assert "LeaseOwner" in table.item()
    assert (table.visible(), table.item().get("Head")) == (before, head)
    assert table.open_uploads()
    forget_lease(table)
    assert table.run(job, driver_bytes="0") == 0, table.last_run()
    assert sorted(table.rows()) == (ROWS if job == "LoadInitial" else AFTER)
    table.check_files()
    table.check_folder()
    left = {key.removeprefix(table.out_path.key) for key in table.open_uploads()}
    assert left  # a lifecycle rule removes them
    assert not left & table.visible()
