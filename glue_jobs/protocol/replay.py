"""What a replay is made from: the change records that a table's rows come from, and whether their raw files are all there. Reads only."""

from __future__ import annotations

from typing import Any

from glue_jobs.aws.erased import read_erased
from glue_jobs.core.limits import Limits
from glue_jobs.core.never_taken import never_taken, of_never_taken
from glue_jobs.core.paths import S3Uri, TablePath, changes_folder
from glue_jobs.core.replay import ADOPT, Fold, check_inputs, check_kinds, fold_of, gone_attachments, inputs_of
from glue_jobs.core.state import TableState
from glue_jobs.core.verify import Finding
from glue_jobs.protocol.history import read_snapshot
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.raw import etags_of, list_cdc


def read_fold(s3: Any, lake: S3Uri, path: TablePath, change: str) -> Fold:
    """The fold of the table's state after `change`. Raises TableBlocked, code replay-not-possible, that says what it lacks."""
    head = read_snapshot(s3, lake, change)
    records = fold_of(Lineage(s3, lake, change), head.stands_for)
    check_kinds(str(path), records)
    if inputs_of(records):
        listed = etags_of(s3, path.raw, inputs_of(records))
        check_inputs(str(path), path.raw.bucket, records, listed)
    erased = read_erased(s3, lake, head.erases)
    folder = changes_folder(lake)
    keys = {name: folder.join(name).key for record in records if record.given for name in record.given.attachments}
    is_adopted = bool(records) and records[0].kind == ADOPT
    adopted = tuple(read_snapshot(s3, lake, records[0].id).files.values()) if is_adopted else ()
    return Fold(head, records, erased, dict(gone_attachments(records, erased, keys)), adopted)


def look_for_never_taken(s3: Any, state: TableState, fold: Fold, limits: Limits) -> list[Finding]:
    """The CDC files of the table's folder that a replay of its changes passes over, because none of them took them. Of transaction files
    only their rows would tell whether one is the table's."""
    head, hours = fold.head, state.window_hours(limits.late_window_hours)
    found = never_taken(state, head, fold.records, list_cdc(s3, state, head), hours)
    if found:  # what a rollback skipped stands in its own record, and in the head's as far as that keeps it
        others = Lineage(s3, state.lake, head.change).back(after=fold.records[0].id)
        skipped = {item.key for record in others for item in record.skipped}
        found = [file for file in found if file.key not in skipped]
    return of_never_taken(state, head, fold.records, found)
