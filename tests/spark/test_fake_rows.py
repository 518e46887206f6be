"""Made-up rows for tables whose values Python can't say."""

from __future__ import annotations

import pyarrow as pa

from glue_jobs.core.limits import Limits
from glue_jobs.spark.fake_rows import fake_rows
from glue_jobs.spark.past import past_table
from glue_jobs.spark.reading import reading_place
from infra.local.dms_files import dms_parquet, load_file_name
from tests.work_tables import MakeTable

FAR = pa.array([-719_529, 2_932_897], pa.int32()).cast(pa.date32())  # before the year 0, and after 9999


def as_dms(rows: pa.Table) -> bytes:
    """A load file of the rows."""
    return dms_parquet(rows.add_column(0, "Op", [["I"] * rows.num_rows]))


def test_keys_and_partitions_of_any_year(new_table: MakeTable) -> None:
    """New keys are free, and a new row goes into a partition that is there, of the year 0."""
    columns = pa.schema([("day", pa.date32()), ("part", pa.date32()), ("name", pa.string())])
    table = new_table(columns, primary_key="day", partition_key="part")
    zero = pa.array([-719_528] * 2, pa.int32()).cast(pa.date32())
    table.put_raw(load_file_name(1), as_dms(pa.table([FAR, zero, ["a", "b"]], schema=columns)))
    table.sync()
    snapshot = table.snapshot()
    place = reading_place(table.environment, table.path.bucket, table.out_path, Limits())

    rows = fake_rows(past_table(place, "t", snapshot), snapshot, 5, 1)

    assert rows["part"].unique().equals(zero.unique())
    assert len({*rows["day"].cast(pa.int32()).to_pylist(), *FAR.cast(pa.int32()).to_pylist()}) == 7
