"""The job GenerateFeed, from a table with versions through DMS's files to a lake table that must equal what it was made of."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from glue_jobs import generate_feed
from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.core.dms_names import load_file_name
from glue_jobs.core.feed_wish import read_feed_wish
from glue_jobs.spark.delta_source import storage_options
from infra.local.embedded import EmbeddedAws
from tests.aws.plain_gets import plain_gets
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.spark.feed_tables import SENT, sample_rows

ARGUMENTS = {"primary_key": "id", "inserts": "12", "updates": "20", "updated_twice": "8", "deletes": "9", "deleted_inserts": "3"}


def generate(aws: EmbeddedAws, **arguments: str) -> int:
    """Run the job in this process; its exit code."""
    words = [word for name, text in arguments.items() for word in (f"--{name}", text)]
    return generate_feed.main([*words, "--state_table", aws.state_table], aws.environment())


def rows_of(table: LakeTable) -> list[dict[str, Any]]:
    """The lake's rows by key, without the timestamp column that the feed brought."""
    found = table.read().sort_by("id")
    return found.drop_columns([name for name in ("dms_timestamp",) if name in found.column_names]).select(SENT).to_pylist()


def names(table: LakeTable) -> list[str]:
    """The files in the table's raw folder."""
    return [file.key[len(table.path.raw.key) :] for file in list_files(table.clients.s3, table.path.bucket, table.path.raw.key)]


@pytest.mark.parametrize("file_name", ["dms", "sample"])
def test_a_made_up_feed_brings_the_lake_where_it_says(
    embedded_aws: EmbeddedAws, make_served_table: TableMaker, tmp_path: Path, file_name: str
) -> None:
    """Version 0 of a Delta table as full load, then the feed, through both load jobs: the lake has the expected rows."""
    table, delta, expected = make_served_table(), str(tmp_path / "bronze"), str(tmp_path / "expected.parquet")
    write_deltalake(delta, sample_rows(80))
    DeltaTable(delta).delete("id < 70")

    code = generate(
        embedded_aws, delta=delta, staging=str(table.path.raw), full_load="true", expected=expected, file_name=file_name, **ARGUMENTS
    )

    assert code == 0
    table.sync()
    wanted = pq.read_table(expected).to_pylist()
    assert len(wanted) == 80 + 12 - 9
    assert rows_of(table) == wanted


def test_what_delta_itself_did_arrives_in_the_lake(embedded_aws: EmbeddedAws, make_served_table: TableMaker) -> None:
    """A Delta table on S3 that is merged, updated and deleted from; its versions as a feed; the lake equals its latest one."""
    table = make_served_table()
    options = storage_options(embedded_aws.environment())
    delta = f"s3://{embedded_aws.raw_bucket}/delta/{table.table}"
    write_deltalake(delta, sample_rows(40), storage_options=options)
    bronze = DeltaTable(delta, storage_options=options)
    bronze.update(updates={"name": "'renamed'"}, predicate="id % 4 = 0")
    bronze.delete("id IN (5, 6)")
    news = sample_rows(45).slice(38).set_column(3, "color", pa.array(["green"] * 7))
    bronze.merge(news, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()

    code = generate(embedded_aws, delta=delta, primary_key="id", staging=str(table.path.raw), full_load="true", **{"from": "0"})

    assert code == 0
    assert len(names(table)) == 4
    table.sync()
    latest = bronze.to_pyarrow_table().select(SENT).sort_by("id").to_pylist()
    assert len(latest) == 43
    assert rows_of(table) == latest


def test_a_lake_table_is_a_source_too(embedded_aws: EmbeddedAws, make_served_table: TableMaker, tmp_path: Path) -> None:
    """Changes made up of an older state; and what its changes did, a rollback included, as the feed of a second table."""
    first, second = make_served_table(), make_served_table()
    first.load([(1, "one"), (2, "two"), (3, "three")])
    first.sync()
    loaded = first.item()["Head"]
    first.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    first.sync()
    assert first.run("Rollback", to=loaded) == 0
    staging = {"path": str(first.path), "staging": str(second.path.raw)}
    making = {"inserts": "2", "updates": "1", "deletes": "2", "as_of": loaded, "expected": f"{embedded_aws.raw}x/{first.table}.parquet"}

    assert generate(embedded_aws, **{"path": first.path.name, "staging": str(tmp_path / "made"), **making}) == 0
    assert generate(embedded_aws, **staging, full_load="true", **{"from": loaded}) == 0

    second.sync()
    assert sorted(second.read()["id"].to_pylist()) == [1, 2, 3]
    assert len(names(second)) == 3
    wanted = read_bytes(first.clients.s3, embedded_aws.raw_bucket, f"{embedded_aws.raw.split('/', 3)[3]}x/{first.table}.parquet")
    assert pq.read_table(io.BytesIO(wanted)).num_rows == 3 + 2 - 2
    assert sum(pq.read_metadata(file).num_rows for file in (tmp_path / "made").rglob("*.parquet")) == 2 + (1 + 1) + 2


def test_what_is_asked_for_is_settled_before_the_first_file_is_written(
    make_served_table: TableMaker, embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that is committed meanwhile makes `previous` another one: the feed is from the one to the one that it was."""
    first, second = make_served_table(), make_served_table()
    first.load([(1, "one"), (2, "two")])
    first.sync()
    first.cdc([("U", (1, "ONE"))])
    first.sync()

    write_load = generate_feed.write_load

    def meanwhile(*given: Any) -> None:
        first.cdc([("D", (2, None))])
        first.sync()
        write_load(*given)

    monkeypatch.setattr(generate_feed, "write_load", meanwhile)
    staging = {"path": str(first.path), "staging": str(second.path.raw)}

    assert generate(embedded_aws, **staging, full_load="true", **{"from": "previous"}) == 0

    second.sync()
    assert second.read().sort_by("id").select(["id", "name"]).to_pydict() == {"id": [1, 2], "name": ["ONE", "two"]}


def test_a_table_that_was_taken_back_to_nothing_is_a_source_too(
    embedded_aws: EmbeddedAws, make_served_table: TableMaker, tmp_path: Path
) -> None:
    """The state between has no rows and no key; what was deleted by it is in the feed."""
    source = make_served_table()
    source.load([(1, "a"), (2, "b")])
    assert source.run("LoadInitial") == 0
    first = source.item()["Head"]
    assert source.run("Rollback", undo=first) == 0

    code = generate(embedded_aws, path=str(source.path), **{"from": first}, staging=str(tmp_path / "staging"))

    assert code == 0
    (feed,) = (tmp_path / "staging").rglob("*.parquet")
    assert pq.read_table(feed).column("Op").to_pylist() == ["D", "D"]


def test_a_record_is_read_no_more_often_for_more_changes(make_served_table: TableMaker, embedded_aws: EmbeddedAws, tmp_path: Path) -> None:
    """Each change's own key is told by the walk that reads them all: no change begins one of its own at the head."""
    table = make_served_table()
    table.load([(1, "one"), (2, "two")])
    table.sync()
    for name in ("a", "b", "c", "d", "e", "f"):
        table.cdc([("U", (1, name))])
        table.sync()
    ids = [record.id for record in table.lineage().back()]
    wish = read_feed_wish({"path": str(table.path), "staging": str(tmp_path), "from": ids[-1]})
    source = generate_feed.open_source(wish, embedded_aws.environment(), {"state_table": embedded_aws.state_table})
    assert isinstance(source, generate_feed.LakeSource)
    asked: list[str] = []
    source.past.clients.s3.meta.events.register("before-call.s3.GetObject", lambda params, **_: asked.append(params["url_path"]))

    steps, most = [], []
    for start in (ids[2], ids[-1]):
        asked.clear()
        with plain_gets():
            steps.append(list(source.between(start, ids[0])))
        most.append(max(Counter(key for key in asked if "/_changes/" in key).values()))

    assert [len(each) for each in steps] == [2, 6]
    assert most[1] <= most[0]
    assert steps[1][-2:] == steps[0]


def test_a_run_again_writes_nothing_and_another_feed_is_not_mixed_in(
    embedded_aws: EmbeddedAws, make_served_table: TableMaker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same seed: the same bytes, which stay as they are. Another seed: refused at the first file that differs."""
    table, delta = make_served_table(), str(tmp_path / "bronze")
    write_deltalake(delta, sample_rows(50))
    wish = {"delta": delta, "staging": str(table.path.raw), "full_load": "true", **ARGUMENTS}
    assert generate(embedded_aws, **wish) == 0
    before = [(file.key, file.etag, file.modified) for file in list_files(table.clients.s3, table.path.bucket, table.path.raw.key)]
    table.delete_raw(names(table)[0])

    again, other = generate(embedded_aws, **wish), generate(embedded_aws, **wish, seed="2")

    after = [(file.key, file.etag, file.modified) for file in list_files(table.clients.s3, table.path.bucket, table.path.raw.key)]
    assert (again, other) == (0, 2)
    assert [entry[:2] for entry in after] == [entry[:2] for entry in before]
    assert after[1:] == before[1:]
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["phase"] for line in said] == ["generated", "generated", "failed"]
    assert said[1]["found_unchanged"] == said[1]["files"]  # with the load file, without the one that was deleted
    assert said[2]["error"]["code"] == "feed-file-taken"
    assert load_file_name(1) in [entry[0].rsplit("/", 1)[-1] for entry in after]


@pytest.mark.parametrize(
    ("code", "said", "arguments"),
    [
        (2, "no Delta table", {"delta": "{tmp}/none", "primary_key": "id"}),
        (2, "no Delta table", {"delta": "s3://{bucket}/none", "primary_key": "id"}),
        (2, "no key column 'number'", {"delta": "{tmp}/bronze", "primary_key": "number"}),
        (2, "no primary key", {"delta": "{tmp}/bronze"}),
        (2, "no version 3", {"delta": "{tmp}/bronze", "primary_key": "id", "version": "3"}),
        (2, "no rows that could change", {"delta": "{tmp}/empty", "primary_key": "id"}),
        (2, "no item for", {"path": "{bucket}/dms/shop/none"}),
        (2, "no table 'shop.none' is known", {"path": "shop.none"}),
        (2, "--insert is not known", {"delta": "{tmp}/bronze", "primary_key": "id", "insert": "1"}),
        (3, "not-a-folder", {"delta": "{tmp}/bronze", "primary_key": "id", "staging": "{tmp}/not-a-folder/x"}),
        (3, "bucket does not exist", {"delta": "{tmp}/bronze", "primary_key": "id", "staging": "s3://no-such-bucket/x/"}),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(
    embedded_aws: EmbeddedAws, tmp_path: Path, capfd: pytest.CaptureFixture[str], code: int, said: str, arguments: dict[str, str]
) -> None:
    """Wrong arguments, missing tables, wrong columns, no rows, no place to write to."""
    write_deltalake(str(tmp_path / "bronze"), sample_rows(20))
    write_deltalake(str(tmp_path / "empty"), sample_rows(0))
    (tmp_path / "not-a-folder").write_text("")
    given = {"staging": "{tmp}/staging", **arguments}

    found = generate(embedded_aws, **{name: text.format(tmp=tmp_path, bucket=embedded_aws.raw_bucket) for name, text in given.items()})

    err = capfd.readouterr().err
    assert said in err
    assert found == code, err
    assert not (tmp_path / "staging").exists()


def test_the_glue_job_runs_from_start_job_run(embedded_aws: EmbeddedAws, make_served_table: TableMaker) -> None:
    """Started as on AWS, with the job's default arguments; what it refuses is its run's error."""
    table = make_served_table()
    delta = f"s3://{embedded_aws.raw_bucket}/delta/{table.table}"
    write_deltalake(delta, sample_rows(20), storage_options=storage_options(embedded_aws.environment()))
    wish = {"--delta": delta, "--primary_key": "id", "--staging": str(table.path.raw), "--full_load": "true", "--files": "2"}

    done = embedded_aws.run_job("GenerateFeed", wish)
    refused = embedded_aws.run_job("GenerateFeed", {**wish, "--primary_key": "number"})

    assert done["JobRunState"] == "SUCCEEDED", embedded_aws.log_file(done["Id"]).read_text()
    assert len(names(table)) == 3
    assert refused["JobRunState"] == "FAILED"
    assert "no key column 'number'" in embedded_aws.log_file(refused["Id"]).read_text()
