"""Texts stay encoded from a data file to its replacement on the Arrow of Glue 5.0 too, with one dictionary for a row group."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.runtimes.spark_runtime import GLUE_50, INSTALL_SECONDS

SECONDS = 120
# Reads a file of two dictionaries, leaves out all rows of one text, and brings in others with texts of their own.
SCRIPT = """
import sys

import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.core.schema import Column
from glue_jobs.spark.data_file_reader import read_data_file, read_rows
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.encoded_texts import ENCODED_TEXT, encoded_like

SCHEMA = (Column("n", "bigint"), Column("text", "string"))


def write(name, pieces, **options):
    with open(f"{sys.argv[1]}/{name}", "wb") as out:
        writer = DataFileWriter(out, SCHEMA, compression="none", **options)
        for piece in pieces:
            writer.write(piece)
        writer.close()


def rows(first, texts):
    return pa.table({"n": range(first, first + 3000), "text": [texts[at % 3] for at in range(3000)]})


write("before.parquet", [rows(0, ["a", "SECRET", None]), rows(3000, ["b", "a", "SECRET"])], row_group_rows=3000)
pieces = list(read_rows(read_data_file(f"{sys.argv[1]}/before.parquet", streamed=True, decoded=()), batch_rows=700))
assert len(pieces) > 8 and all(piece.schema.field("text").type.equals(ENCODED_TEXT) for piece in pieces)
kept = [piece.filter(pc.fill_null(pc.not_equal(piece["text"].cast("string"), "SECRET"), True)) for piece in pieces]
write("after.parquet", [*kept, encoded_like(rows(9000, ["new", None, "b"]), kept[0].schema)])
print(pa.__version__)
"""


@pytest.mark.timeout(INSTALL_SECONDS + SECONDS)
def test_arrow_17_keeps_texts_encoded(built: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    done = subprocess.run(
        [GLUE_50.folder() / "python", script, tmp_path],
        env={"PYTHONPATH": str(built / "dmslake.zip")}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["17.0.0"]
    after = tmp_path / "after.parquet"
    texts = pq.read_table(after)["text"].to_pylist()
    assert {text: texts.count(text) for text in set(texts)} == {"a": 2000, "b": 2000, None: 2000, "new": 1000}
    assert b"SECRET" in (tmp_path / "before.parquet").read_bytes()
    assert b"SECRET" not in after.read_bytes()
