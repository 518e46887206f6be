"""Delta tables as sources of change feeds: versions, what lies between them, and what can't be read."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from glue_jobs.core.errors import UsageError
from glue_jobs.spark.delta_source import DeltaSource
from glue_jobs.spark.feed_changes import changed_files
from tests.spark.feed_tables import SAMPLE, SENT, applied, sample_rows, wish_of


@pytest.fixture
def delta(tmp_path: Path) -> str:
    """The sample as version 0, partitioned by color."""
    write_deltalake(str(tmp_path / "bronze"), sample_rows(30), partition_by=["color"])
    return str(tmp_path / "bronze")


def source(uri: str, **arguments: str) -> DeltaSource:
    return DeltaSource(wish_of(delta=uri, **arguments), {})


def files(uri: str, start: str, end: str = "", **arguments: str) -> list[pa.Table]:
    """The files of the feed between two versions."""
    of = source(uri, **arguments)
    return [file.rows for file in changed_files(of.between(start, of.exact(end)), of.wish)]


def changes(files: list[pa.Table]) -> list[list[tuple[Any, ...]]]:
    """Operation and key of each row, file by file."""
    return [[(row["Op"], row["id"]) for row in file.to_pylist()] for file in files]


def test_version_0_is_read_whatever_came_after(delta: str) -> None:
    """Its rows by key, without bronze's own columns; its time is that of its commit, not of a later one."""
    before = datetime.now(timezone.utc)
    DeltaTable(delta).delete("id < 20")

    bronze = source(delta).bronze("")

    assert bronze.rows.column_names == SENT
    assert bronze.rows.to_pylist() == sample_rows(30).select(SENT).to_pylist()
    assert bronze.time < before
    assert source(delta).bronze("1").rows.num_rows == 10
    assert [source(delta).exact(version) for version in ("", "0")] == ["1", "0"]


def test_what_delta_did_is_sent_version_by_version(delta: str) -> None:
    """Update, delete and merge, a file each; rewritten rows that are what they were are not sent, nor is a version without changes."""
    table = DeltaTable(delta)
    table.update(updates={"name": "'new'"}, predicate="id IN (3, 4)")
    table.update(updates={"src_batch_id": "8"})
    table.delete("id = 5")
    news = pa.concat_tables([sample_rows(1), sample_rows(41).slice(40)]).set_column(2, "name", pa.array(["merged", "came"]))
    table.optimize.compact()
    merge = table.merge(news, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    found = files(delta, "0")

    assert changes(found) == [[("U", 3), ("U", 4)], [("D", 5)], [("I", 40), ("U", 0)]]
    latest = DeltaTable(delta).to_pyarrow_table().select(SENT).sort_by("id").to_pylist()
    assert applied(source(delta).bronze("0").rows, found) == latest
    assert changes(files(delta, "1", "3")) == [[("D", 5)]]
    assert files(delta, "2", "2") == []


def test_only_files_that_differ_are_read(delta: str) -> None:
    """A file that both versions have may be gone."""
    red = [path for path in Path(delta).rglob("*.parquet") if "color=red" in str(path)]
    DeltaTable(delta).delete("id = 5")
    red[0].unlink()

    assert changes(files(delta, "0")) == [[("D", 5)]]
    with pytest.raises(UsageError) as caught:
        source(delta).bronze("")
    assert caught.value.code == "version-gone"


def test_a_column_that_came_and_one_that_grew(tmp_path: Path) -> None:
    """Later files have the columns of later versions; a wider type changes no row by itself."""
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    write_deltalake(uri, pa.table({"id": pa.array([3], pa.int32()), "v": ["c"], "w": [1.5]}), mode="append", schema_mode="merge")
    rows = {"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "C"], "w": [None, None, 1.5]}
    write_deltalake(uri, pa.table(rows), mode="overwrite", schema_mode="overwrite")

    found = files(uri, "0")

    assert [file.column_names[2:] for file in found] == [["id", "v", "w"]] * 2
    assert changes(found) == [[("I", 3)], [("U", 3)]]
    assert found[1].schema.field("id").type == pa.int64()


def test_a_type_that_is_another_one(tmp_path: Path) -> None:
    """A number that became a text is no difference of rows."""
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": [1], "v": [1]}))
    write_deltalake(uri, pa.table({"id": [1], "v": ["1"]}), mode="overwrite", schema_mode="overwrite")

    with pytest.raises(UsageError) as caught:
        files(uri, "0")
    assert caught.value.code == "types-apart"


def test_commit_times_that_go_back_do_not_show(tmp_path: Path) -> None:
    """A file of the feed is never before the one before it, nor are its rows."""
    uri = str(tmp_path / "t")
    for number in range(3):
        write_deltalake(uri, pa.table({"id": [number]}), mode="append", commit_properties=CommitProperties())
    log = Path(uri) / "_delta_log" / "00000000000000000002.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = 1
    log.write_text("\n".join(map(json.dumps, lines)))
    of = source(uri)

    found = list(changed_files(of.between("0", "2"), of.wish))

    assert [file.path for file in found] == sorted(file.path for file in found)
    assert found[0].path != found[1].path
    assert found[0].rows["dms_timestamp"][0] == found[1].rows["dms_timestamp"][0]


@pytest.mark.parametrize(
    ("code", "version"),
    [("no-version", "7"), ("no-version", "999999999999")],
)
def test_a_version_that_is_not_there(delta: str, code: str, version: str) -> None:
    """To make changes of, and as one end of a difference."""
    for ask in (lambda: source(delta).bronze(version), lambda: files(delta, "0", version), lambda: files(delta, version)):
        with pytest.raises(UsageError) as caught:
            ask()
        assert caught.value.code in (code, "bad-order")


def test_a_folder_that_is_no_delta_table(tmp_path: Path) -> None:
    """Nor one that isn't there."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError) as caught:
            source(str(folder)).bronze("")
        assert caught.value.code == "no-delta-table"


def test_the_older_version_first(delta: str) -> None:
    """What the other way round would mean is not guessed."""
    DeltaTable(delta).delete("id = 5")

    with pytest.raises(UsageError) as caught:
        files(delta, "1", "0")
    assert caught.value.code == "bad-order"


@pytest.mark.parametrize(
    ("protocol", "configuration"),
    [
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}, {}),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}, {}),
        ({"minReaderVersion": 2, "minWriterVersion": 5}, {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["notYetMade"], "writerFeatures": ["notYetMade"]}, {}),
    ],
)
def test_features_that_would_be_read_wrongly(delta: str, protocol: dict[str, Any], configuration: dict[str, str]) -> None:
    """Deletion vectors, column mapping by either protocol, and what nobody knows yet: refused, with the way out."""
    delta += "-whole"
    write_deltalake(delta, sample_rows(3))
    log = Path(delta) / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = protocol
        if "metaData" in line:
            line["metaData"]["configuration"] |= configuration
            if configuration:
                line["metaData"]["schemaString"] = mapped(line["metaData"]["schemaString"])
    log.write_text("\n".join(map(json.dumps, lines)))

    with pytest.raises(UsageError) as caught:
        source(delta).bronze("")

    assert caught.value.code == "delta-feature", caught.value.message
    assert "--reader spark" in caught.value.todo


def mapped(schema: str) -> str:
    """The schema with a physical name for each column."""
    found = json.loads(schema)
    for number, column in enumerate(found["fields"], 1):
        column["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return json.dumps(found)


def test_a_damaged_log(delta: str) -> None:
    """An error that says so."""
    (Path(delta) / "_delta_log" / "00000000000000000000.json").write_text("{not json")

    with pytest.raises(UsageError) as caught:
        source(delta).bronze("")
    assert caught.value.code in ("delta-unreadable", "no-delta-table")


def test_an_empty_version(tmp_path: Path) -> None:
    """A table that was made without rows has a version 0 all the same."""
    write_deltalake(str(tmp_path / "t"), SAMPLE.empty_table())

    assert source(str(tmp_path / "t")).bronze("").rows.num_rows == 0
