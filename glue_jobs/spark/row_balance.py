"""A last look before a change is committed: as many rows are written as were read, less those dropped and with those that came."""

from __future__ import annotations

from collections.abc import Sequence

from glue_jobs.core.errors import blocked
from glue_jobs.core.record import DataFile
from glue_jobs.spark.place import Place
from glue_jobs.spark.write_files import give_up


def check_balance(place: Place, table: str, added: Sequence[DataFile], expected: int, what: str) -> None:
    """Raise TableBlocked, and give the uploads up, if rows were lost or doubled on their way into `added`. what: these files, in words."""
    written = sum(file.rows for file in added)
    if written != expected:
        give_up(place, added)
        raise blocked(
            "rows-do-not-add-up",
            f"the rows of {what} are not those that went in",
            where=table,
            expected=f"{expected} rows: those of the replaced files, less those dropped, with those inserted",
            found=f"{written} rows in the new files",
            todo="nothing was changed; `dmslake verify` tells whether the table's files are what its records say; if they are, this is an "
            "error of dmslake: please report it",
        )
