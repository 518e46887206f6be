"""`dmslake show` of a staged change, and the row changes that were kept beside a record."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from controller.cli.change_text import change_lines, change_views
from controller.cli.looking import need
from controller.cli.output import Answer, labelled
from controller.cli.reading import csv_field
from controller.cli.staged_text import staged_dict, staged_pairs, staged_ways
from controller.staged import look_at_all
from glue_jobs.aws.records import read_attachment, read_record
from glue_jobs.core.errors import DmslakeError, TableBlocked, UsageError
from glue_jobs.core.ids import attachment_name
from glue_jobs.core.record import ChangeRecord, to_json
from glue_jobs.core.staged import ROWS
from glue_jobs.core.state import TableState
from glue_jobs.protocol.history import read_snapshot, snapshot_of

SHOW = 1
ENDINGS = (".parquet", ".csv")


def find_staged(s3: Any, state: TableState, change: str) -> ChangeRecord | None:
    """The record of `change` if it is a staged one."""
    try:
        record = read_record(s3, state.lake, change)
    except TableBlocked as error:
        if error.code != "record-gone":
            raise
        return None
    return record if record.staged else None


def show_staged(s3: Any, state: TableState, record: ChangeRecord) -> Answer:
    """Everything of a staged change."""
    (staged,) = look_at_all(s3, state, None, [record])
    before, after = read_snapshot(s3, state.lake, record.parent), snapshot_of(s3, state.lake, record)
    commands = staged_ways(state, staged)
    data = {
        "show": SHOW, "path": str(state.path), **staged_dict(staged), "record": json.loads(to_json(record)), "commands": dict(commands),
    }  # fmt: skip
    lines = change_lines(state, record, before, after, staged.standing, "")
    return Answer(data, (), [*lines, *labelled(staged_pairs(staged)), *change_views(record, before), "", *labelled(commands)])


def check_rows_file(name: str) -> None:
    """UsageError for a file that no row changes can be written to."""
    if name and not name.endswith(ENDINGS):
        raise UsageError(f"--rows {name}: the name says the format", "bad-argument", f"end it with {' or '.join(ENDINGS)}")


def write_rows(s3: Any, state: TableState, change: str, name: str) -> None:
    """Write the row changes that are kept of a change that is staged, or was."""
    record = read_record(s3, state.lake, change, with_checkpoint=False)
    if "rows_kept" not in record.details:
        is_load = record.kind == "full-load"
        what = "a full load's are all its rows, counts and files tell" if is_load else "only staged batches and corrections keep them"
        todo = "once it is committed, `dmslake diff PATH A B` compares two states"
        raise UsageError(f"no row changes are kept of change {change}: {what}", "no-rows-kept", todo)
    data = read_attachment(s3, state.lake, attachment_name(record.staged_as or record.id, ROWS))
    try:
        Path(name).write_bytes(_as_csv(data) if name.endswith(".csv") else data)
    except OSError as error:
        raise DmslakeError(f"can't write {name}: {error.strerror}", "rows-not-written", "give another file") from error


def _as_csv(data: bytes) -> bytes:
    need("pyarrow")
    lines = importlib.import_module("glue_jobs.spark.staged_rows").plain_lines(data)
    return "".join(",".join(map(csv_field, line)) + "\n" for line in lines).encode()
