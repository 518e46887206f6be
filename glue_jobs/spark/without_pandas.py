"""pyarrow without pandas, for processes that have no use for it."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa


class _NoPandas:
    """An importer that knows of no pandas."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ImportError("left out")


def leave_out_pandas() -> None:
    """Let pyarrow do without pandas in this process; whoever imports pandas by name gets it all the same.

    Where pandas is installed, pyarrow imports it when the first list becomes an array. That takes as long as all else that a small run
    imports, and nothing here makes a DataFrame.
    """
    refusing: Any = _NoPandas()
    sys.meta_path.insert(0, refusing)
    try:
        pa.array([0])  # it looks for pandas once, and remembers
    finally:
        sys.meta_path.remove(refusing)
