"""What a small run imports."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from glue_jobs.spark.without_pandas import leave_out_pandas
leave_out_pandas()
import glue_jobs.load_incremental
import glue_jobs.spark.worker
import pyarrow
assert pyarrow.array([1, 2]).to_pylist() == [1, 2]
print(sorted({"pandas", "pyspark"} & set(sys.modules)))
import pandas
print(pandas.Series([1]).sum())
"""


def test_a_small_run_imports_neither_pandas_nor_pyspark() -> None:
    """Each takes as long as all else together; pyarrow would import pandas with the first array. By its name it can be had."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)

    assert (ended.stdout.split("\n"), ended.returncode) == (["[]", "1", ""], 0), ended.stderr
