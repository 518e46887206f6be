"""DMS's physical files, their names and their Parquet bytes, for the programs on this machine that stand in for DMS."""

from __future__ import annotations

from glue_jobs.core.dms_names import CdcFileNames, cdc_file_name, cdc_file_time, load_file_name, timestamp_text
from glue_jobs.spark.dms_files import OP_COLUMN
from glue_jobs.spark.dms_writer import ROW_GROUP_ROWS, DmsRow, dms_parquet, dms_table

__all__ = [
    "OP_COLUMN",
    "ROW_GROUP_ROWS",
    "CdcFileNames",
    "DmsRow",
    "cdc_file_name",
    "cdc_file_time",
    "dms_parquet",
    "dms_table",
    "load_file_name",
    "timestamp_text",
]
