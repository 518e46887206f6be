"""What a reader of raw files must know of their table: the files alone don't say it."""

from __future__ import annotations

from dataclasses import dataclass

from glue_jobs.core.csv_form import CsvForm, form_of_details
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.schema import Schema


@dataclass(frozen=True)
class Reading:
    """table: its path, for messages, and for files that hold the rows of several tables. timestamp_column: the attribute
    TimestampColumn, else what an earlier change found, '' if nothing says it. lake: the lake table's columns before the files are
    taken, () for a new one. form: of CSV files; beside: columns of the Parquet files that are taken with them. state_table: whose
    item a person edits.
    """

    table: str = ""
    timestamp_column: str = ""
    lake: Schema = ()
    form: CsvForm = CsvForm()
    beside: Schema = ()
    state_table: str = "DMSCDC_Controller"


def reading_again(record: ChangeRecord) -> Reading:
    """How the raw files of a change were read, whatever the item says today."""
    return Reading(record.table, record.timestamp_column, record.schema, form_of_details(record.details, record.schema))
