"""Which raw files count, when a version before can be gone on from, what a manifest keeps, and which versions go."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Any

import pytest

from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.raw_names import RawFile, classify
from glue_jobs.core.record import Counts, DataFile, Input
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot_inputs import count_files
from glue_jobs.core.snapshot_plan import (
    Manifest,
    Version,
    as_made,
    folders_of,
    manifest_json,
    plan_snapshot,
    read_manifest,
    removable,
    version_of,
    why_full,
)
from glue_jobs.core.snapshot_sources import SnapshotWish, read_wish
from glue_jobs.core.work import input_of

FOLDER = "dms/shop/orders/"
ENTRY = {"path": f"s3://raw/{FOLDER}", "primary_keys": ["id"], "cdc_start_date": "2024-05-02"}
LOAD = "LOAD00000001.parquet"
SECOND, THIRD, FOURTH = (f"2024050{day}-000000000.parquet" for day in (2, 3, 4))


def file(name: str, modified: str = "2024-05-01", etag: str = "e") -> RawFile:
    return RawFile(FOLDER + name, 10, etag, datetime.fromisoformat(modified).replace(tzinfo=timezone.utc))


def listing(*files: RawFile) -> Any:
    return classify(files, FOLDER)


def wish(**values: str) -> SnapshotWish:
    return read_wish({"table": "orders", "to": "s3://out/", "run_date": "2024-05-03", **values}, ENTRY, date(2024, 1, 1))


def manifest(*files: RawFile, **values: Any) -> Manifest:
    """Of a version that was made of `files`."""
    said: dict[str, Any] = {
        "version": Version("2024-05-03T000000000000-r", 5), "table": "orders", "database": "default", "run_id": "r",
        "run_date": "2024-05-03", "time": "2024-05-03T00:00:00Z", "layout": "flat", "path": f"s3://raw/{FOLDER}", "primary_keys": ("id",),
        "schema": (Column("id", "bigint"),), "last_change_column": "last_change", "cdc_start_date": "2024-05-02",
    }  # fmt: skip
    return Manifest(**{**said, "inputs": tuple(input_of(each, 3) for each in files), **values})


def planned(
    wish: SnapshotWish, found: Any, current: Manifest | None, missing: tuple[str, ...] = (), quiet_since: str = "2999-01-01"
) -> Any:
    """The plan; no load file is too young, where it is not said."""
    since = datetime.fromisoformat(quiet_since).replace(tzinfo=timezone.utc)
    return plan_snapshot(wish, found, current, missing, quiet_since=since)


def test_files_of_the_days_from_start_to_run_date_count() -> None:
    """Both days included, by the name's UTC date; load files by the day of their last change."""
    names = ["20240501-235959999.parquet", "20240502-000000000.parquet", "20240503-235959999.parquet", "20240504-000000000.parquet"]
    loads = [file(LOAD, "2024-05-03T23:59:59"), file("LOAD00000002.parquet", "2024-05-04T01:00:00")]

    counted = count_files(wish(), listing(*loads, *map(file, names)))

    assert [each.base for each in counted.files] == [LOAD, names[1], names[2]]
    assert counted.later == 3


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([], "no-raw-files"),
        ([file(SECOND)], "no-load-files"),
        ([file(LOAD, "2024-05-04")], "no-load-files"),
        ([file(LOAD), file("notes.txt")], "foreign-raw-file"),
        ([file(LOAD, "2024-05-03T23:59:59"), file("LOAD00000002.parquet", "2024-05-04T00:10:00")], "load-not-ended"),
    ],
)
def test_without_rows_to_begin_with_there_is_no_snapshot(files: list[RawFile], code: str) -> None:
    """Nothing at all, no load file of the days, a file that DMS did not write, or the half of a load."""
    with pytest.raises(TableBlocked) as caught:
        planned(wish(), listing(*files), None)

    assert caught.value.code == code


def test_a_version_before_is_gone_on_from() -> None:
    """Only later CDC files are read."""
    files = [file(LOAD), file(SECOND), file(THIRD)]
    before = manifest(*files[:2])

    plan = planned(wish(), listing(*files), before)

    assert (plan.mode, plan.base, [each.base for each in plan.fresh]) == ("incremental", before, [THIRD])


@pytest.mark.parametrize(
    ("now", "change", "reason"),
    [
        ([file(LOAD), file(THIRD)], {}, "does not count any more: dms/shop/orders/20240502"),
        ([file(LOAD, etag="f"), file(SECOND)], {}, "has changed: dms/shop/orders/LOAD"),
        ([file(LOAD), file("LOAD00000002.parquet"), file(SECOND)], {}, "a new load file"),
        ([file(LOAD), file(SECOND), file("20240501-000000000.parquet")], {}, ""),
        ([file(LOAD), file(SECOND), file("x/20240502-000000000.parquet")], {}, "came late"),
        ([file(LOAD), file(SECOND)], {"path": "s3://raw/other/"}, "path was"),
        ([file(LOAD), file(SECOND)], {"primary_keys": ("nr",)}, "primary_keys was"),
        ([file(LOAD), file(SECOND)], {"cdc_start_date": ""}, "cdc_start_date was"),
        ([file(LOAD), file(SECOND)], {"layout": "dated by column"}, "layout was"),
        ([file(LOAD), file(SECOND)], {"timestamp_column": "ts"}, "timestamp_column was"),
        ([file(LOAD), file(SECOND)], {"last_change_column": "x"}, "last_change_column was"),
        ([file(LOAD), file(SECOND)], {"before_images": ("OLD_*",)}, "before_image_prefix was"),
    ],
)
def test_what_went_before_may_not_fit(now: list[RawFile], change: dict[str, Any], reason: str) -> None:
    """Then all is read from the raw files, and the reason is said."""
    before = replace(manifest(file(LOAD), file(SECOND)), **change)

    found = why_full(wish(), count_files(wish(), listing(*now)), before)

    assert (reason in found) if reason else (found == ""), found


CSV_LOAD = "LOAD00000001.csv"


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (CSV_LOAD, {"csv_null": "\\N"}, "csv_null was '\\\\N'"),
        (CSV_LOAD, {"csv_delimiter": ";"}, "csv_delimiter was ';'"),
        (CSV_LOAD, {"csv_columns": ("name", "id")}, "the fields of CSV files were name, id"),
        (CSV_LOAD, {"csv_columns": ()}, ""),
        (LOAD, {"csv_null": "\\N", "csv_delimiter": ";", "csv_columns": ("name", "id")}, ""),
    ],
)
def test_csv_files_that_would_be_read_otherwise_are_read_again(name: str, change: dict[str, Any], reason: str) -> None:
    """Their rows would be others: a person has corrected the sources file. What older versions wrote does not say the order of fields."""
    schema = (Column("id", "bigint"), Column("name", "string"))
    before = replace(manifest(file(name)), schema=schema, **{"csv_columns": ("id", "name"), **change})

    found = why_full(wish(schema="id bigint, name string"), count_files(wish(), listing(file(name))), before)

    assert (reason in found) if reason else (found == ""), found


def test_an_earlier_run_date_is_computed_in_full() -> None:
    """A file that counted before does not count any more."""
    before = manifest(file(LOAD), file(SECOND), file(THIRD))

    plan = planned(wish(run_date="2024-05-02"), listing(file(LOAD), file(SECOND), file(THIRD)), before)

    assert (plan.mode, "does not count" in plan.reason) == ("full", True)


def test_missing_data_files_and_a_wish_for_all_are_reasons_too() -> None:
    """As is a first run."""
    files = listing(file(LOAD))
    before = manifest(file(LOAD))

    assert "not there any more: v/part" in planned(wish(), files, before, ("v/part",)).reason
    assert planned(wish(full="true"), files, before).reason == "asked for (full)"
    assert planned(wish(), files, None).reason == "there is no version before"
    assert planned(wish(schema="id int"), files, before).reason.startswith("the schema")
    assert planned(wish(schema="id bigint"), files, before).mode == "incremental"


def test_a_manifest_is_read_as_it_was_written() -> None:
    """Without the uploads, which are over then."""
    version = Version("2024-05-03T000000000000-r", 5)
    files = (DataFile(version.prefix + "part-1.parquet", 10, 2, "e", (None,), (1,), (2,)), DataFile("version=old/part", 1, 1))
    before = manifest(
        file(LOAD), files=files, partitions=((None, "s3://out/x/"), ("2024-05-01", "s3://out/y/")), rows=3, counts=Counts(input_rows=3)
    )

    assert read_manifest(manifest_json(before), "m") == before
    assert [each.path for each in before.written] == [files[0].path]
    for text in ("{", "{}", manifest_json(before).replace('"format": 1', '"format": 2')):
        with pytest.raises(TableBlocked) as caught:
            read_manifest(text, "s3://out/m.json")
        assert caught.value.code == "snapshot-manifest"


def test_a_version_is_told_by_its_location() -> None:
    """Of the folder itself, of a partition in it, of anything else."""
    folder = S3Uri.parse("s3://out/default.orders_snapshot/")
    version = Version.of(date(2024, 5, 3), datetime(2024, 5, 4, 1, 2, 3, 4, tzinfo=timezone.utc), "r-1")

    assert version.name == "2024-05-03T010203000004-r-1"
    assert version.time == "2024-05-04T01:02:03.000004Z"
    assert version_of(f"{folder}{version.prefix}", folder) == version_of(f"{folder}{version.prefix}day=1/", folder) == version.name
    assert version_of("s3://out/other/", folder) == ""


def test_a_run_comes_after_the_current_version_whatever_its_clock_says() -> None:
    """The fence decides, and a clock may go back between two runs."""
    plan = planned(wish(), listing(file(LOAD)), manifest(file(LOAD)))

    assert [plan.after(Version("v", fence)).fence for fence in (3, 5, 9)] == [6, 6, 9]
    assert planned(wish(), listing(file(LOAD)), None).after(Version("v", 3)).fence == 3


def test_the_newest_are_kept() -> None:
    """By the time of their manifests, then by their names, which begin with the day and the time."""
    at = {name: datetime(2024, 5, day, tzinfo=timezone.utc) for name, day in (("b", 2), ("a", 3), ("d", 1), ("c", 2))}

    assert removable(at.items(), 2) == (["a", "c"], ["d", "b"])
    assert removable(at.items(), 0) == (["a"], ["d", "b", "c"])
    assert removable(at.items(), 9) == (["a", "c", "b", "d"], [])


def test_a_version_may_have_files_of_versions_before() -> None:
    """Dated by a column of the data."""
    files = tuple(DataFile(path, 1, 1) for path in ("version=new/day=1/part", "version=old/day=2/part", "version=old/day=3/part"))

    assert folders_of(manifest(files=files)) == {"new", "old"}


def test_a_version_keeps_the_names_it_was_made_with() -> None:
    """Another run may ask for others, and stop."""
    made = as_made(wish(last_change_column="changed", partition_date="day", layout="dated"), manifest(partition_date="date"))

    assert (made.source.last_change_column, made.source.partition_date, made.by_column) == ("last_change", "date", True)


SECOND_LOAD = "LOAD00000002.parquet"


@pytest.mark.parametrize(
    "now",
    [
        [file(SECOND_LOAD), file(SECOND)],
        [file(LOAD), file(SECOND_LOAD), file(THIRD)],
        [file(THIRD)],
        [file(SECOND)],
    ],
)
def test_a_version_has_the_rows_of_files_that_have_gone(now: list[RawFile]) -> None:
    """Objects expire, the load's first of all. It is gone on from, and still names them."""
    before = manifest(file(LOAD), file(SECOND_LOAD), file(SECOND))

    plan = planned(wish(), listing(*now), before)

    assert (plan.mode, [each.base for each in plan.fresh]) == ("incremental", [each.base for each in now if each.base == THIRD])


@pytest.mark.parametrize(
    ("now", "run", "why"),
    [
        ([file(SECOND_LOAD), file(SECOND)], {"primary_keys": "nr"}, "primary_keys was"),
        ([file(LOAD), file(SECOND_LOAD), file("x/20240502-000000000.parquet")], {}, "came late"),
        ([file(THIRD)], {"layout": "dated"}, "layout was"),
        ([file(LOAD, "2024-05-02", "f"), file(SECOND_LOAD, "2024-05-02", "f"), file(THIRD, etag="f")], {}, "has changed"),
        ([file(LOAD, "2024-05-02"), file(SECOND_LOAD, "2024-05-02"), file(THIRD)], {}, "written again"),
    ],
)
def test_what_is_left_of_vanished_files_is_no_snapshot(now: list[RawFile], run: dict[str, str], why: str) -> None:
    """Where the version before can't be gone on from: rows of a load file would be gone, those of a CDC file as they were before. Also
    where all that is left was copied in place."""
    before = manifest(file(LOAD), file(SECOND_LOAD), file(SECOND), file(THIRD))

    with pytest.raises(TableBlocked, match=f"are gone, and it can't be gone on from: .*{why}") as caught:
        planned(wish(**run), listing(*now), before)

    assert caught.value.code == "snapshot-input-gone"
    if any(each.base.startswith("LOAD") for each in now):
        assert planned(wish(**run, full="true"), listing(*now), before).mode == "full"


@pytest.mark.parametrize(
    ("now", "run"),
    [
        ([file(LOAD, "2024-05-03", "f")], {}),
        ([file(LOAD), file(SECOND_LOAD), file(THIRD)], {"cdc_start_date": "2024-05-03"}),
        ([file(LOAD), file(SECOND_LOAD)], {"run_date": "2024-05-01", "cdc_start_date": "2024-05-01"}),
    ],
)
def test_a_file_that_does_not_count_any_more_may_be_gone(now: list[RawFile], run: dict[str, str]) -> None:
    """The table was loaded anew, or days are asked for to which it does not belong."""
    before = manifest(file(LOAD), file(SECOND_LOAD), file(SECOND))

    assert planned(wish(**run), listing(*now), before).mode == "full"


def test_half_a_load_replaces_nothing() -> None:
    """As in the lake: it may go on while its newest file is young, and no CDC file came after it."""
    before = manifest(file(LOAD), file(SECOND))
    half = [file(LOAD, "2024-05-03T10:00:00", "f"), file(SECOND)]
    after = file("20240503-100500000.parquet", "2024-05-03T10:06:00")

    with pytest.raises(TableBlocked, match="the load may go on") as caught:
        planned(wish(), listing(*half), before, (), "2024-05-03T09:59:00")

    assert caught.value.code == "load-not-ended"
    assert planned(wish(), listing(*half), before, (), "2024-05-03T10:00:00").mode == "full"
    assert planned(wish(), listing(*half, after), before, (), "2024-05-03T09:59:00").mode == "full"
    assert planned(wish(), listing(file(LOAD), file(SECOND)), before, (), "2024-04-01").mode == "incremental"
    assert planned(wish(), listing(*half), None, (), "2024-05-03T09:59:00").mode == "full"


def test_inputs_of_a_manifest_say_what_was_counted() -> None:
    """A rerun compares keys and ETags."""
    assert manifest(file(LOAD)).inputs == (Input(FOLDER + LOAD, "e", 10, 3, "2024-05-01T00:00:00Z"),)
