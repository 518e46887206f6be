"""The rows of a Delta table's data files, as the data set that `deltalake` makes of them says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

FILES_AT_ONCE = 8


def rows_of(dataset: Any) -> pa.Table:
    """All rows of a data set (`DeltaTable.to_pyarrow_dataset`), which lie in memory beside the bytes of its files.

    The files are read in threads of ours, and what is scanned are copies of their bytes. A scan of the files themselves asks the package's
    file system, a Python object, in threads of pyarrow's, which let go of it a moment after the scan has returned: a process that ends just
    then is aborted, every third one on a busy machine (as apache/arrow#34314). Raises FileNotFoundError where a file is no more.
    """

    def in_memory(fragment: Any) -> Any:
        with dataset.filesystem.open_input_file(fragment.path) as file:
            copy = pa.BufferOutputStream()
            copy.write(file.read())
        return dataset.format.make_fragment(copy.getvalue(), partition_expression=fragment.partition_expression)

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        fragments = list(pool.map(in_memory, dataset.get_fragments()))
    return type(dataset)(fragments, dataset.schema, dataset.format, dataset.filesystem).to_table()
