"""Row groups are copied, and their columns encoded side by side, on the Arrow of Glue 5.0 too, which writes another footer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.runtimes.spark_runtime import GLUE_50, INSTALL_SECONDS
from tests.spark.test_stored_groups import GROUP, file_of, rows

SECONDS = 120
GROUPS = 4
# Copies the row groups 0 and 2 of each file as they stand, and writes the rows of the others anew; writes a file column by column.
SCRIPT = """
import io, sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa

from glue_jobs.aws.copies import ObjectRange, Source
from glue_jobs.core.schema import Column
from glue_jobs.spark import column_encoding
from glue_jobs.spark.data_file_reader import read_data_file
from glue_jobs.spark.data_file_writer import DataFileWriter, stored_footer
from glue_jobs.spark.stored_groups import StoredGroup, described_groups

folder, size = Path(sys.argv[1]), int(sys.argv[2])
SCHEMA = (Column("n", "bigint"), Column("text", "string"))


def write(name, pieces, **options):
    with open(folder / name, "wb") as out:
        writer = DataFileWriter(out, SCHEMA, row_group_rows=size, dictionary=["text"], **options)
        for piece in pieces:
            writer.put(piece) if isinstance(piece, StoredGroup) else writer.write(piece)
        writer.close()
        assert bool(writer._encoded_bytes) == bool(options)


newest = read_data_file(str(folder / "newest.parquet"))
write("own.parquet", [newest.read()])
column_encoding.LEAST_BYTES, column_encoding.MOST_PART, column_encoding.TOGETHER_BYTES = 0, 1, 1
write("side-by-side.parquet", [newest.read()], alone=True)
for name in ("newest", "own"):
    parquet, data = read_data_file(str(folder / f"{name}.parquet")), (folder / f"{name}.parquet").read_bytes()
    pieces = [parquet.read_row_group(number) for number in range(parquet.num_row_groups)]
    for number, group in described_groups(stored_footer(parquet, SCHEMA)).items():
        if number in (0, 2):
            read = lambda start, stop, data=data: nullcontext([data[start:stop]])
            object_range = ObjectRange(Source("lake", name, None, None), group.start, group.stop, read)
            pieces[number] = StoredGroup(pieces[number].num_rows, (), (), group, list, lambda: None, object_range)
    assert [isinstance(piece, StoredGroup) for piece in pieces] == [True, False, True, False], name
    write(f"{name}-copied.parquet", pieces)
print(pa.__version__)
"""


@pytest.mark.timeout(INSTALL_SECONDS + SECONDS)
def test_arrow_17_copies_row_groups_and_encodes_columns_side_by_side(built: Path, tmp_path: Path) -> None:
    (tmp_path / "newest.parquet").write_bytes(file_of(0, GROUPS * GROUP))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    done = subprocess.run(
        [GLUE_50.folder() / "python", script, tmp_path, str(GROUP)],
        env={"PYTHONPATH": str(built / "dmslake.zip")}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["17.0.0"]
    for name in ("newest-copied", "own-copied", "side-by-side"):
        path = tmp_path / f"{name}.parquet"
        assert pq.read_table(path).equals(rows(0, GROUPS * GROUP))
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT count(*), sum(n), max(text) FROM read_parquet('{path}') WHERE n >= {GROUP}").fetchone()
        assert found == (3 * GROUP, sum(range(GROUP, 4 * GROUP)), "text 6")
