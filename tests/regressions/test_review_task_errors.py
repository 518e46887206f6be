"""What a Spark task finds wrong blocks the table as what the driver finds does: a person reads the same words."""

from __future__ import annotations

from typing import Any

import pytest

from glue_jobs.core.errors import RetryLater, TableBlocked
from glue_jobs.spark.task_errors import TaskError, brought_back, carried
from tests.work_tables import MakeTable

SPARK = {"driver_bytes": "0"}


@pytest.mark.usefixtures("spark")
def test_a_load_with_a_null_key_blocks_the_table(served_table: MakeTable) -> None:
    table = served_table()
    table.load([(1, "a", 1), (None, "b", 2)])

    assert table.run("LoadInitial", **SPARK) == 1

    assert table.last_run()["error"]["code"] == "null-key"
    assert "LOAD00000001.parquet, row 1;" in table.item()["Blocked"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("strategy", [{}, {"broadcast_bytes": "0"}], ids=["broadcast", "shuffle"])
def test_a_batch_with_a_null_key_blocks_the_table(served_table: MakeTable, strategy: dict[str, str]) -> None:
    table = served_table()
    table.load([(1, "a", 1)])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (None, "b", 1))])

    assert table.blocked(**SPARK, **strategy)["code"] == "null-key"


@pytest.mark.usefixtures("spark")
def test_a_data_file_that_a_person_deleted_blocks_the_table(served_table: MakeTable) -> None:
    """The other way into a task: not rows through Spark, but a function over files."""
    table = served_table()
    table.load([(1, "a", 1)])
    assert table.run("LoadInitial") == 0
    (path,) = table.visible()
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path)
    table.cdc([("U", (1, "b", 1))])

    error = table.blocked(**SPARK)

    assert error["code"] == "data-file-gone"
    assert path in error["message"]
    assert f"dmslake verify {table.path} --repair" in error["todo"]


def test_an_error_comes_back_as_it_was() -> None:
    """Class, message, code and way out, although Spark hands on nothing but text."""

    @carried
    def task() -> Any:
        raise RetryLater("busy; “quoted”\nand more", "aws-busy", "run again")

    with pytest.raises(TaskError) as raised:
        task()
    with pytest.raises(RetryLater) as found, brought_back():
        raise RuntimeError(f"Job aborted … {raised.value} at java.base/…")

    assert (found.value.message, found.value.code, found.value.todo) == ("busy; “quoted”\nand more", "aws-busy", "run again")


def test_other_errors_stay_what_they_are() -> None:
    """A defect must not look like a block."""
    with pytest.raises(RuntimeError, match="a defect"), brought_back():
        raise RuntimeError("a defect")
    with pytest.raises(TableBlocked), brought_back():
        raise TableBlocked("of the driver", "code")
