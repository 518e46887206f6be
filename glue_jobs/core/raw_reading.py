"""What a reader of raw files must know of their table: the files alone don't say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glue_jobs.core.csv_form import CsvForm, form_of_details
from glue_jobs.core.dms_columns import before_images, image_of
from glue_jobs.core.raw_names import cdc_name
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

    def renamed(self, file: str, names: Sequence[str], patterns: Sequence[str]) -> dict[str, str]:
        """Name → the lake's, of those columns of a file that were renamed in the lake after the files around it had been applied, and of
        their before images. file: its key or address; patterns: of the names of before images.

        A file that would then have a name twice has the new name already: it is read as it is.
        """
        cdc = cdc_name(file)
        if cdc is None:
            return {}
        # Of several columns that had a name after each other, the first one that lost it after the file: its column has the file's values.
        owners = sorted(
            (last, old.name, column.name)
            for column in self.lake
            for old in column.older
            if old.name in names and (last := cdc_name(old.until)) is not None and cdc <= last
        )
        now = {old: new for _, old, new in reversed(owners)}
        now = {old: new for old, new in now.items() if old != new}
        images = before_images(names, patterns)
        now.update({images[old]: image_of(images[old], old, new, patterns) for old, new in now.items() if old in images})
        after = [now.get(name, name) for name in names]
        return now if len(set(after)) == len(after) else {}


def reading_again(record: ChangeRecord) -> Reading:
    """How the raw files of a change were read, whatever the item says today."""
    return Reading(record.table, record.timestamp_column, record.schema, form_of_details(record.details, record.schema))
