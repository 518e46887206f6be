"""A change costs what it touches: requests are counted, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients, worker_s3
from glue_jobs.spark.place import CLIENT_VARIABLES
from tests.aws.plain_gets import plain_gets
from tests.spark.tables import WorkTable
from tests.work_tables import IN_PROCESS, MakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("name", pa.string())])
FILES, ROWS_PER_FILE = 700, 3
CHANGED = range(50, 750, 100)  # the partitions whose rows change: 7 of 700
Requests = list[tuple[str, str]]  # operation, key


@contextmanager
def counted(clients: Clients) -> Iterator[Requests]:
    """All S3 requests of this process while it lasts: those of the protocol, and those of the work on data."""
    found: Requests = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        found.append((model.name, str(params.get("Key", ""))))

    worker = worker_s3((name, IN_PROCESS[name]) for name in CLIENT_VARIABLES if name in IN_PROCESS)
    for client in (clients.s3, worker):
        client.meta.events.register("before-parameter-build.s3", note, unique_id="counted")
    try:
        with plain_gets():
            yield found
    finally:
        for client in (clients.s3, worker):
            client.meta.events.unregister("before-parameter-build.s3", unique_id="counted")


@pytest.fixture(scope="module")
def many_files(in_process: Clients) -> WorkTable:
    """A table of 700 data files, three rows each, whose key ranges do not meet."""
    table = WorkTable(IN_PROCESS, "s3://raw/dms/", "s3://lake/lake/", COLUMNS, partition_key="part", shared=in_process)
    table.load([(number, number // ROWS_PER_FILE, f"n{number}") for number in range(FILES * ROWS_PER_FILE)])
    assert table.run("LoadInitial") == 0, table.last_run()
    assert len(table.snapshot().files) == FILES
    return table


@pytest.mark.parametrize(("small_file_bytes", "reads"), [("0", 1), ("32000000", 2)])
def test_only_the_files_that_hold_a_key_are_read_and_written(
    many_files: WorkTable, in_process: Clients, small_file_bytes: str, reads: int
) -> None:
    """Seven keys in seven of 700 files: those are read (small ones twice, to find and to merge) and replaced, no other is asked for."""
    before = many_files.snapshot()
    many_files.cdc([("U", (part * ROWS_PER_FILE, part, f"new {small_file_bytes}")) for part in CHANGED])

    with counted(in_process) as requests:
        assert many_files.run(small_file_bytes=small_file_bytes) == 0, many_files.last_run()

    after = many_files.snapshot()
    replaced = {path for path in before.files if path not in after.files}
    new = {path for path in after.files if path not in before.files}
    assert {before.files[path].partition for path in replaced} == {(str(part),) for part in CHANGED}
    of_data = Counter((operation, key) for operation, key in requests if key.endswith(".parquet") and key.startswith("lake/"))
    folder = many_files.out_path.key
    expected = {("GetObject", folder + path): reads for path in replaced}
    for operation in ("CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"):
        expected |= {(operation, folder + path): 1 for path in new}
    assert of_data == expected
    others = Counter(operation for operation, key in requests if (operation, key) not in expected)
    assert others["DeleteObjects"] == 1
    assert sum(others.values()) < 40, others  # the protocol's own: listings, records, raw files


def test_a_change_without_a_key_in_the_table_reads_no_file(many_files: WorkTable, in_process: Clients) -> None:
    """Keys beyond every file's range are inserted without a look into any file but the small one of their partition."""
    many_files.cdc([("I", (10**9, 5, "new")), ("D", (10**9 + 1, None, None))])

    with counted(in_process) as requests:
        assert many_files.run() == 0, many_files.last_run()

    read = {key for operation, key in requests if operation == "GetObject" and "/part=" in key}
    assert many_files.counts() == (1, 0, 0)
    assert len(read) == 1
    assert all("/part=5/" in key for key in read)


def test_a_change_of_nothing_writes_nothing(new_table: MakeTable, in_process: Clients) -> None:
    """Deletes of unknown keys are a change without files: the cursor moves on, no data file is written."""
    table = new_table()
    table.load([(1, "a", 1), (3, "c", 3)])
    assert table.run("LoadInitial") == 0
    before = table.visible()
    name = table.cdc([("D", (2, None, None)), ("I", (2, "b", 2)), ("D", (2, "b", 2))])

    with counted(in_process) as requests:
        assert table.run() == 0, table.last_run()

    assert table.visible() == before
    assert table.item()["LastIncrementalFile"] == f"raw/{name}"
    assert "CreateMultipartUpload" not in {operation for operation, _ in requests}
