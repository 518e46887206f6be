"""The made-up feed is what DMS could write, and its oracle is the source's true state."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from glue_jobs.core.errors import UsageError
from glue_jobs.core.raw_names import cdc_name, load_number
from infra.local.feed.command import feed, transactions_of
from infra.local.feed.formats import FORMATS
from infra.local.feed.layouts import FOLDERS, LOADS, NAMES, read_layout
from infra.local.feed.rounds import Feed, RawWrite, Round, make_rounds
from infra.local.feed.simulation import Row, Simulation
from infra.local.feed.wish import FeedWish
from tests.spark.tables import texts

SMALL = FeedWish(rows=20, changes=24, rounds=4)
WHEN = datetime(2024, 2, 9, 8, 7, 6, 543_210, timezone.utc)
EVERYTHING = [
    SMALL,
    replace(SMALL, duplicates=True, late=True, reload="kept", schema_changes=True, before_images=True, key="composite"),
    replace(SMALL, duplicates=True, late=True, reload="gone", schema_changes=True, key_only_deletes=True, layout="YYYYMMDDHH"),
    replace(SMALL, op="none", duplicates=True, late=True, key="composite"),
    replace(SMALL, layout="transactions", duplicates=True, reload="gone"),
]


def rounds_of(wish: FeedWish) -> list[tuple[Feed, Round]]:
    """Each round with the task as it was right after it."""
    found, task = [], Feed(wish)
    for number in range(wish.rounds + 1):
        found.append((task, task.load() if number == 0 else task.round(number)))
    return found


def parquet(file: RawWrite) -> Any:
    return pq.ParquetFile(io.BytesIO(file.encode()))


def rows_of(file: RawWrite) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet(file).read().to_pylist()
    return rows


@pytest.mark.parametrize("wish", EVERYTHING)
@pytest.mark.parametrize("seed", range(4))
def test_the_oracle_is_the_source(wish: FeedWish, seed: int) -> None:
    """Whatever was doubled, late or loaded again: once nothing is held back, all of the source's rows, and no other, with its values."""
    task, checked = Feed(replace(wish, seed=seed)), 0
    for number in range(wish.rounds + 1):
        part = task.load() if number == 0 else task.round(number)
        if not part.is_current:
            continue
        checked += 1
        source = task.source
        assert texts(part.oracle.tuples([column.name for column in source.columns])) == texts(_as_lake(source, source.rows.values()))
    assert checked >= 2, "the load and the last round at least"


def _as_lake(source: Simulation, rows: Any) -> list[list[Any]]:
    def value(row: Row, at: int) -> Any:
        column = source.columns[at]
        found = row[column.name]
        return None if found is None else column.of.to_lake(found)

    return [[value(row, at) for at in range(len(source.columns))] for row in rows]


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_wish_gives_the_same_bytes(form: str) -> None:
    """Names, contents and what is removed."""
    wish = replace(EVERYTHING[2], format=form, header=True)

    def written() -> list[object]:
        return [(part.removed, [(file.path, file.encode()) for file in part.files]) for part in make_rounds(wish)]

    assert written() == written()
    assert written() != [(part.removed, [(file.path, file.encode()) for file in part.files]) for part in make_rounds(replace(wish, seed=2))]


def test_every_name_is_one_that_dms_gives() -> None:
    """Of each layout, CDC files and load files; and the counter of load files is hexadecimal."""
    for name in (*FOLDERS, *NAMES):
        path = read_layout(name).cdc_path(WHEN, WHEN - timedelta(days=1), ".csv.gz")
        found = cdc_name(path)
        assert found is not None, path
        assert found.digits.startswith("20240209080706"), path
    for name in LOADS:
        numbers = [load_number(read_layout(name).load_path(number, ".parquet")) for number in range(60)]
        assert None not in numbers
    assert [read_layout("").load_path(number, ".parquet") for number in (8, 9, 15)] == [
        f"LOAD000000{number}.parquet" for number in ("09", "0A", "10")
    ]


def test_folders_by_date_are_those_of_commits() -> None:
    """In five sequences with four delimiters, and unpadded; the file's name is the time of its writing."""
    assert read_layout("DDMMYYYY").cdc_path(WHEN, WHEN - timedelta(days=1), ".csv") == "08/02/2024/20240209-080706543.csv"
    assert read_layout("YYYYMMDDHH-none,digits-0").cdc_path(WHEN, WHEN, ".csv") == "2024020908/20240209-080706.csv"
    assert read_layout("unpadded,underscore").cdc_path(WHEN, WHEN, ".parquet") == "2024/2/9/20240209_080706543.parquet"
    assert len({FOLDERS[name](WHEN) for name in FOLDERS}) == 22


def test_files_cross_midnight_and_a_months_end() -> None:
    """With the seed's default start: a folder of one day has a file that is named after the next one."""
    paths = [file.path for part in make_rounds(replace(SMALL, layout="YYYYMM")) for file in part.files][1:]

    assert paths[0].startswith("2024/09/20240930-")
    assert paths[-1].startswith("2024/10/")


@pytest.mark.parametrize(
    ("layout", "says"),
    [("YYYYMMDD,unpadded", "contradict"), ("weekly", "none of flat, YYYYMMDD"), ("transactions,YYYYMM", "contradict")],
)
def test_layouts_that_are_none_are_refused(layout: str, says: str) -> None:
    """Two of a kind, and unknown names."""
    with pytest.raises(UsageError, match=says):
        read_layout(layout)


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "double"},
        {"format": "xml"},
        {"rows": -1},
        {"files": 0},
        {"ties": 1.5},
        {"start": datetime(2024, 1, 1)},
        {"before_images": True, "op": "none"},
        {"before_images": True, "format": "csv"},
        {"layout": "transactions", "op": "none"},
        {"reload": "kept", "timestamp_column": ""},
        {"schema_changes": True, "format": "mixed"},
    ],
)
def test_feeds_that_cant_be_are_refused(wrong: dict[str, Any]) -> None:
    """Each with what is wrong."""
    with pytest.raises(UsageError):
        FeedWish(**wrong)


def test_the_physical_format_is_that_of_dms() -> None:
    """By the footer: format 1.0 by AWS, converted types only, row groups of 10,024, uncompressed, no statistics on decimals."""
    wish = FeedWish(rows=10_030, rounds=0)
    footer = parquet(next(make_rounds(wish)).files[0])
    groups = [footer.metadata.row_group(at) for at in range(footer.metadata.num_row_groups)]
    columns = [groups[0].column(at) for at in range(groups[0].num_columns)]

    assert (footer.metadata.format_version, footer.metadata.created_by, footer.metadata.metadata) == ("1.0", "AWS", None)
    assert [group.num_rows for group in groups] == [10_024, 6]
    assert {column.compression for column in columns} == {"UNCOMPRESSED"}
    assert {column.path_in_schema for column in columns if column.statistics is None} == {"price", "exact"}
    types = {footer.schema.column(at).name: footer.schema.column(at) for at in range(len(columns))}
    assert types["unsigned_big"].converted_type == "UINT_64"
    assert types["clock"].converted_type == "TIME_MILLIS"
    assert types["price"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert "is_from_converted_type=true" in str(types["seen"].logical_type)


def test_other_parquet_is_what_it_is_called() -> None:
    """Data pages v2 with delta encodings, GZIP, pandas's metadata."""

    def footer(form: str) -> Any:
        return parquet(next(make_rounds(replace(SMALL, format=form))).files[0])

    delta, zipped, pandas = footer("parquet-2.0"), footer("parquet-gzip"), footer("parquet-pandas")
    encodings = {encoding for at in range(20) for encoding in delta.metadata.row_group(0).column(at).encodings}
    assert {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"} <= encodings
    assert zipped.metadata.row_group(0).column(0).compression == "GZIP"
    assert zipped.metadata.created_by == "AWS"
    assert b"pandas" in pandas.metadata.metadata


def test_csv_is_read_back_by_another_reader() -> None:
    """RFC 4180: what Python's csv module reads is what Parquet has, null aside."""
    wish = replace(SMALL, rows=60, header=True)
    (plain,), (text,) = (list(next(make_rounds(replace(wish, format=form))).files) for form in ("parquet", "csv"))

    header, *rows = csv.reader(io.StringIO(text.encode().decode(), newline=""))

    table = parquet(plain).read()
    assert header == table.column_names
    for name in ("Op", "dms_timestamp", "id", "name", "body", "flag_text", "unsigned_big"):
        values = ["NULL" if value is None else str(value) for value in table.column(name).to_pylist()]
        assert [row[header.index(name)] for row in rows] == values
    assert b',"NULL",' in text.encode(), "the text, not null"
    assert b',"",' in text.encode()


def test_columns_are_what_was_asked_for() -> None:
    """Op, the timestamp column, the change sequence and before images, where they are wanted."""

    def names(part: int, **asked: Any) -> list[str]:
        found: list[str] = parquet([round_ for _, round_ in rounds_of(replace(SMALL, **asked))][part].files[0]).schema_arrow.names
        return found

    assert names(0)[:3] == names(1)[:3] == ["Op", "dms_timestamp", "id"]
    assert (names(0, op="cdc")[0], names(1, op="cdc")[0], names(1, op="none")[0]) == ("dms_timestamp", "Op", "dms_timestamp")
    assert names(1, timestamp_column="", key="composite")[:3] == ["Op", "tenant", "id"]
    both = names(1, change_sequence=True, before_images=True)
    assert both[both.index("AR_H_CHANGE_SEQ") :][:2] == ["AR_H_CHANGE_SEQ", "BI_id"]
    assert len([name for name in both if name.startswith("BI_")]) == len(both[2 : both.index("AR_H_CHANGE_SEQ")])


def test_what_happens_is_what_goes_wrong() -> None:
    """Ties, times that run backwards, keys that come again or change, a LOB after its row, deletes with nothing but the key."""
    wish = FeedWish(rows=60, changes=600, rounds=1, files=1, key_only_deletes=True, before_images=True, change_sequence=True)
    rows = rows_of(list(make_rounds(wish))[1].files[0])
    times = [row["dms_timestamp"] for row in rows]
    inserted = Counter(row["id"] for row in rows if row["Op"] == "I")

    assert len(set(times)) < len(times) / 5
    assert any(after < before for before, after in pairwise(times))
    assert max(inserted.values()) > 1
    assert any(row["Op"] == "U" and row["BI_id"] != row["id"] for row in rows)
    assert all(row["BI_id"] is None for row in rows if row["Op"] != "U")
    assert any(first["Op"] == "I" and first["body"] is None and then["body"] for first, then in pairwise(rows))
    deletes = [{name for name, value in row.items() if value is not None} for row in rows if row["Op"] == "D"]
    assert deletes
    assert all(names == {"Op", "dms_timestamp", "id", "AR_H_CHANGE_SEQ"} for names in deletes)
    assert all(len(row["AR_H_CHANGE_SEQ"]) == 35 for row in rows)


def test_rows_and_files_come_twice() -> None:
    """A task that starts again repeats from a point on; the load has rows that two of its files share, and changes that come again."""
    load, *parts = make_rounds(replace(SMALL, duplicates=True, change_sequence=True, load_files=3))
    loaded = [row["id"] for file in load.files for row in rows_of(file)]
    files = [rows_of(file) for part in parts for file in part.files]
    sequences = [row["AR_H_CHANGE_SEQ"] for rows in files for row in rows]

    assert len(loaded) == len(set(loaded)) + 2
    assert len(sequences) > len(set(sequences)) * 1.5
    assert repr(files[-1]) == repr(files[-2]), "the last file under two names"
    assert {row["id"] for row in files[0] if row["Op"] != "D"} & set(loaded)


def test_a_late_file_comes_behind_its_successors() -> None:
    """A round after them, and each but the last round lacks one."""
    parts = list(make_rounds(replace(SMALL, late=True)))
    arrived = [cdc_name(file.path) for part in parts[1:] for file in part.files]

    assert [part.is_current for part in parts] == [True, False, False, False, True]
    assert sum(after < before for before, after in pairwise(arrived) if before and after) == 3


@pytest.mark.parametrize("kept", [True, False])
def test_a_reload_has_the_same_names(kept: bool) -> None:
    """With the rows as they are by then; CDC files from before stay or go."""
    parts = list(make_rounds(replace(SMALL, reload="kept" if kept else "gone", load_files=2)))
    before = {file.path: file.encode() for file in parts[0].files}
    again = {file.path: file.encode() for file in parts[2].files if file.path in before}

    assert before.keys() == again.keys()
    assert all(before[path] != again[path] for path in before)
    assert set(parts[2].removed) == (set() if kept else {file.path for file in parts[1].files})
    assert parts[2].files[0].path.startswith("2024" if kept else "LOAD"), "a CDC file that nobody has taken yet, if they are kept"


def test_a_transaction_file_has_the_rows_of_other_tables() -> None:
    """Operation, table and schema stand before the values; ours are all there, in their order."""
    wish = replace(SMALL, layout="transactions", changes=90)
    plain = [row["id"] for part in list(make_rounds(replace(wish, layout="")))[1:] for file in part.files for row in rows_of(file)]
    parts = list(make_rounds(wish, ("sales", "orders")))
    files = [file for part in parts[1:] for file in part.files]
    rows = [row for file in files for row in csv.reader(io.StringIO(file.encode().decode(), newline=""))]

    assert all(file.transactions and file.path.startswith("CDC_TXN-2024") for file in files)
    assert [int(row[4]) for row in rows if row[1:3] == ["orders", "sales"]] == plain
    assert {("orders2", "sales"), ("orders", "sales_old")} <= {(row[1], row[2]) for row in rows}


def test_rounds_one_by_one_are_the_same_files(tmp_path: Path) -> None:
    """As all at once; the truth is the oracle's."""
    wish = replace(EVERYTHING[1], format="mixed", header=True, schema_changes=False)
    feed(wish, f"{tmp_path}/a/shop/things", {}, truth=tmp_path / "truth.parquet")

    for number in range(wish.rounds + 1):
        fed = feed(wish, f"{tmp_path}/b/shop/things/", {}, only=number)

    assert _files(tmp_path / "a") == _files(tmp_path / "b") != {}
    *_, last = make_rounds(wish)
    truth = pq.read_table(tmp_path / "truth.parquet")
    assert texts(zip(*truth.to_pydict().values(), strict=True)) == texts(last.oracle.tuples())
    assert truth.num_rows == fed.truth_rows > 0
    assert json.loads(fed.item["Schema"])["unsigned_big"] == "decimal(20,0)"
    assert fed.item["PrimaryKey"] == "tenant,id"


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_transaction_files_go_beside_the_schemas(tmp_path: Path) -> None:
    """And the load to the table's folder; the item's attribute says where."""
    to = f"{tmp_path}/dms/shop/things/"
    fed = feed(replace(SMALL, layout="transactions"), to, {})

    assert fed.item["CdcPath"] == transactions_of(to) == f"{tmp_path}/dms/transactions/"
    assert {path.split("/")[1] for path in _files(tmp_path)} == {"shop", "transactions"}
    assert len([path for path in _files(tmp_path) if "/shop/" in path]) == 1


def test_transactions_of_another_table_are_not_written_over(tmp_path: Path) -> None:
    """The same seed gives the same names: it is refused, before anything is written. The same feed again writes the same bytes."""
    wish = replace(SMALL, layout="transactions")
    feed(wish, f"{tmp_path}/dms/shop/things/", {})
    before = _files(tmp_path)

    with pytest.raises(UsageError, match=r"transactions/CDC_TXN-2024\d+\.csv is there with other rows") as caught:
        feed(wish, f"{tmp_path}/dms/shop/parts/", {})
    feed(wish, f"{tmp_path}/dms/shop/things/", {})
    assert ("--start" in caught.value.todo, _files(tmp_path)) == (True, before)

    feed(replace(wish, start=wish.start + timedelta(seconds=1)), f"{tmp_path}/dms/shop/parts/", {})
    both = _files(tmp_path)
    assert {path: both[path] for path in before} == before
    assert len(both) == 2 * len(before)


def test_transactions_are_kept_by_a_reload() -> None:
    """They are of all tables; what is said is what happens."""
    part = list(make_rounds(replace(SMALL, layout="transactions", reload="gone")))[2]

    assert part.removed == ()
    assert [sentence for sentence in part.said if sentence.endswith("the CDC files from before are kept")]


def test_a_start_in_another_zone_is_the_same_feed() -> None:
    """Names, folders and change sequences are of UTC."""

    def written(start: datetime) -> list[tuple[str, bytes]]:
        wish = replace(SMALL, layout="YYYYMMDDHH", change_sequence=True, start=start)
        return [(file.path, file.encode()) for part in make_rounds(wish) for file in part.files]

    west = timezone(timedelta(hours=-4))
    assert written(datetime(2024, 5, 1, 12, tzinfo=west)) == written(datetime(2024, 5, 1, 16, tzinfo=timezone.utc))


def test_a_folder_of_others_is_not_written_into(tmp_path: Path) -> None:
    """A file that this feed would not have written stops it, before anything is written."""
    feed(SMALL, f"{tmp_path}/t", {})
    before = _files(tmp_path)

    with pytest.raises(UsageError, match="did not write"):
        feed(replace(SMALL, layout="YYYYMM"), f"{tmp_path}/t", {})

    assert _files(tmp_path) == before
