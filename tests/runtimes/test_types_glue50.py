"""Types and collations on the Arrow of Glue 5.0: the same values come out as on the newest, which the tests elsewhere have."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.core.collation import parse_collation
from tests.core.test_collation import HARD
from tests.runtimes.spark_runtime import GLUE_50, INSTALL_SECONDS
from tests.spark.test_types import EXTREMES, in_lake, plain, raw_table, written

SECONDS = 120
JSON: dict[str, dict[str, Any]] = {"json-of-arrow": {}, "json": {"store_schema": False}}
WORDS = ["ci", "ai", "pad", "ci,ai,pad", "general,pad", "ci,width"]
# Reads each raw file as a task does and writes its rows as a data file; then makes the forms of texts.
SCRIPT = """
import json, sys
from pathlib import Path

import pyarrow as pa

from glue_jobs.core.collation import parse_collation
from glue_jobs.spark.data_file_writer import DataFileWriter
from glue_jobs.spark.dms_files import dms_schema, open_dms, read_dms
from glue_jobs.spark.key_columns import collated_texts

folder, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
for file in sorted(folder.glob("raw-*.parquet")):
    columns = dms_schema(open_dms(str(file), file.name), file.name).columns
    with open(folder / file.name.replace("raw-", "lake-"), "wb") as out:
        writer = DataFileWriter(out, columns)
        for rows in read_dms(str(file), file.name, columns=columns):
            writer.write(rows.select([column.name for column in columns]))
        writer.close()
texts = pa.array(asked["texts"])
print(pa.__version__, json.dumps({words: collated_texts(texts, parse_collation(words)).to_pylist() for words in asked["words"]}))
"""


@pytest.mark.timeout(INSTALL_SECONDS + SECONDS)
def test_arrow_17_gives_the_same_values(built: Path, tmp_path: Path) -> None:
    """Each type's extremes, read and written there, and each hard text's form; JSON is a text there too."""
    names = list(EXTREMES)
    for at, name in enumerate(names):
        (tmp_path / f"raw-{at:03}.parquet").write_bytes(written(raw_table([name])))
    lines = pa.array(['{"é": 1}', "", None]).cast(pa.json_())
    for name, options in JSON.items():
        (tmp_path / f"raw-{name}.parquet").write_bytes(written(pa.table({"id": [1, 2, 3], "line": lines}), **options))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    texts = [*HARD, HARD, "plain ", ""]
    asked = json.dumps({"texts": texts, "words": WORDS})

    done = subprocess.run(
        [GLUE_50.folder() / "python", script, tmp_path, asked],
        env={"PYTHONPATH": str(built / "dmslake.zip")}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    version, _, forms = done.stdout.partition(" ")
    assert version == "17.0.0"
    assert json.loads(forms) == {words: [parse_collation(words).form(text) for text in texts] for words in WORDS}
    for at, name in enumerate(names):
        found = pq.read_table(tmp_path / f"lake-{at:03}.parquet")["c0"].to_pylist()
        assert plain(found) == plain(in_lake(name)), name
    for name in JSON:
        found = pq.read_table(tmp_path / f"lake-{name}.parquet")["line"]
        assert (found.type, found.to_pylist()) == (pa.string(), ['{"é": 1}', "", None]), name
