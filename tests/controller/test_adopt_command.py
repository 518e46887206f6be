"""`dmslake adopt`: what is shown, what is refused, and the table that comes of it."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.controller.past_world import Command, PastWorld, untouched
from tests.lake import LakeTable

ROWS = [(1, "one"), (2, "two"), (3, "three")]
FUTURE = "2999-01-01 00:00:00"


def put(world: PastWorld, address: str, columns: dict[str, Any]) -> None:
    """A Parquet file written by somebody else."""
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data)
    bucket, key = address[5:].split("/", 1)
    world.clients.s3.put_object(Bucket=bucket, Key=key, Body=data.getvalue())


@pytest.fixture
def sample(past_world: PastWorld) -> LakeTable:
    """A table that another program loaded into the item's out_path; a CDC file is pending."""
    table = past_world.table()
    table.load(ROWS)
    table.cdc([("U", (1, "ONE"))])
    table.edit(LastFullLoadDate=FUTURE)
    put(past_world, f"{table.out_path}a.parquet", {"Op": ["I", "I"], "id": [1, 2], "name": ["one", "two"]})
    put(past_world, f"{table.out_path}b.parquet", {"Op": ["I"], "id": [3], "name": ["three"]})
    return table


def test_a_dry_run_shows_all_and_writes_nothing(sample: LakeTable, lake_command: Command) -> None:
    """Files, rows, columns, what is left out, the place in raw."""
    before = untouched(sample)

    done = lake_command("adopt", str(sample.path), "--dry-run", "--output", "json")

    found = done.json
    assert (done.code, untouched(sample), found["dry_run"], found["keys_checked"]) == (0, before, True, True)
    assert (found["files"], found["rows"], found["left_out"], found["primary_key"]) == (2, 3, ["Op"], ["id"])
    assert found["columns"] == [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]
    assert (found["load_files"], found["pending_load_files"], found["applied_files"], found["pending_files"]) == (1, 0, 0, 1)


def test_a_dry_run_for_people(sample: LakeTable, lake_command: Command) -> None:
    """The same in words."""
    done = lake_command("adopt", str(sample.path), "--dry-run")

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == f"{sample.path}: adopt {sample.out_path} as it is"
    assert {"rows 3", "left out Op", "columns id bigint, name string", "cursor no CDC file applied"} <= set(lines)
    assert "keys read: no null, none comes twice in 3 rows" in lines


def test_a_table_is_adopted_and_goes_on(sample: LakeTable, past_world: PastWorld, lake_command: Command) -> None:
    """The job does it; the next run applies what is pending; a second adoption is refused."""
    folder = f"{sample.out_path}"[:-1] + "-elsewhere/"
    put(past_world, f"{folder}c.parquet", {"Op": ["I"], "id": [9], "name": ["nine"]})

    done = lake_command("adopt", str(sample.path), "--out-path", folder)

    assert done.code == 0, done.err
    assert "the next run goes on with 1 pending CDC file(s)" in done.out
    assert sample.item()["out_path"] == folder
    sample.out_path = type(sample.out_path).folder(folder)
    assert sample.head().kind == "adopt"
    sample.sync()
    assert sample.rows() == [(1, "ONE"), (9, "nine")]
    told = lake_command("explain", str(sample.path), "--key", "9", "--output", "json")
    assert (told.code, [step["kind"] for step in told.json["steps"]]) == (0, ["adopt"])
    assert lake_command("diff", str(sample.path), "previous").code == 0
    again = lake_command("adopt", str(sample.path), "--dry-run")
    assert (again.code, "has changes already" in again.err) == (1, True)


def test_a_table_without_source_gets_an_item(past_world: PastWorld, lake_command: Command) -> None:
    """Its path is its folder; it is shown, read and verified like any other, and no run looks for raw files."""
    table = past_world.table()
    folder = f"{table.out_path}"[:-1] + "-own/"
    put(past_world, f"{folder}year=2024/a.parquet", {"id": [1, 2], "name": ["one", "two"]})
    words = (folder, "--no-source", "--primary-key", "id", "--partition-key", "year", "--column", "year=int")

    shown = lake_command("adopt", *words, "--dry-run", "--output", "json")
    assert shown.code == 0, shown.err
    assert shown.json["partitions"] == 1
    path = folder[5:]
    assert table.state_table.get(path) is None
    done = lake_command("adopt", *words)

    assert done.code == 0, done.err
    item = table.state_table.get(path) or {}
    assert (item["Source"], item["ActiveFlag"], item["PrimaryKey"], item["PartitionKey"]) == ("none", "false", "id", "year")
    read = lake_command("read", path, "--output", "json")
    assert read.json["rows"] == [{"id": 1, "name": "one", "year": 2024}, {"id": 2, "name": "two", "year": 2024}]
    assert lake_command("verify", path).code == 0
    assert "no DMS source" in lake_command("plan", path).out
    listed = lake_command("tables").out
    assert f"activate {path}" not in listed


def test_an_empty_folder_without_source_is_corrected_by_its_path(past_world: PastWorld, lake_command: Command) -> None:
    """--out-path goes with a source only: the way out names it for that case, and the path for this one."""
    done = lake_command("adopt", f"{past_world.aws.lake}reports/nothing/", "--no-source", "--primary-key", "id", "--dry-run")

    assert done.code == 1
    assert "the folder holds no data file" in done.err
    assert "with --no-source correct the table's path, which is its folder; else give the folder by --out-path" in done.err


def test_keys_that_come_twice_are_named(sample: LakeTable, past_world: PastWorld, lake_command: Command) -> None:
    """With the files that hold them; the dry run finds them, and the run refuses."""
    put(past_world, f"{sample.out_path}twice.parquet", {"Op": ["U", "I"], "id": [2, 7], "name": ["two", "seven"]})

    done = lake_command("adopt", str(sample.path), "--dry-run")

    assert done.code == 1
    assert "id=2 2 times, in twice.parquet too" in done.err
    assert "id=7" not in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--column", "year"), 2, "write it as NAME=TYPE"),
        (("--column", "year=number"), 2, "is no type of a lake table"),
        (("--column", "name=string"), 2, "no partition column"),
        (("--no-source",), 2, "is known as a table that DMS writes"),
        (("--no-source", "--out-path", "s3://lake/a/b/"), 2, "PATH is its folder"),
        (("--no-source", "--cursor", "0.parquet"), 2, "without a source"),
        (("--primary-key", "nowhere"), 1, "'nowhere' is not there"),
        (("--cursor", "yesterday"), 1, "LastIncrementalFile"),
        (("--load-date", "yesterday"), 1, "LastFullLoadDate"),
        (("--partition-key", "region"), 1, "does not lie where the partition key says"),
    ],
)
def test_calls_that_cant_be_meant(sample: LakeTable, lake_command: Command, words: tuple[str, ...], code: int, said: str) -> None:
    """Each says what is wrong; nothing is written."""
    before = untouched(sample)

    done = lake_command("adopt", str(sample.path), *words, "--dry-run")

    assert (done.code, said in done.err, untouched(sample)) == (code, True, before), done.err
