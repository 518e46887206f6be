"""CDC files behind the cursor that no change has taken: they came so long after their successors that no run looked for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glue_jobs.core.batch_plan import late_from
from glue_jobs.core.raw_names import CdcName, RawFile, cdc_name, is_ahead
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.replay import began_at
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.core.verify import DIFFERENCE, Finding


def never_taken(
    state: TableState, head: Snapshot, records: Sequence[ChangeRecord], cdc: Iterable[RawFile], window_hours: float
) -> list[RawFile]:
    """The files of `cdc`, those of the table's own folder in the order of writing, that the rows of `head` lack and no run will take.

    records: the changes that these rows come from, oldest first. Left out are files from before the first of them; those that a person
    skipped, by name or by the cursor, as far as these records and the head tell; those that wait for the next run, because an undo made
    them pending again or because they are no further behind the cursor than `window_hours`.
    """
    if not records:
        return []
    known = _known(head, records)
    start, cursors = cdc_name(began_at(records[0])), [cdc_name(cursor) for cursor in (head.cursor, state.cursor)]
    window = late_from(state, head, window_hours)

    def is_lacking(file: RawFile) -> bool:
        name = cdc_name(file.key)
        if name is None or file.key in known or state.skips(file.key) or not is_ahead(name, start):
            return False
        is_pending = any(is_ahead(name, cursor) for cursor in cursors)  # a person may have moved the cursor back
        return not is_pending and head.generation.cdc_from <= name.digits < window

    return [file for file in cdc if is_lacking(file)]


def of_never_taken(state: TableState, head: Snapshot, records: Sequence[ChangeRecord], files: Sequence[RawFile]) -> list[Finding]:
    """What verify says of such files, if there are any. records: as of `never_taken`."""
    if not files:
        return []
    first, path = files[0], state.path
    what = f"{len(files)} that no change took, the first {first.base}, written {first.modified:%Y-%m-%d %H:%M} UTC"
    cursor = _cursor_before(state, {*_known(head, records), began_at(records[0])}, first)
    # Without a key the rows of the files after it would be inserted once more.
    take = f"and all after it once more: set LastIncrementalFile of the table's item to {cursor} and run"
    take = take if state.primary_key else f"reload the table in DMS, then `dmslake reload {path.in_shell}`"
    todo = f"to have the file, {take}; to do without it: `dmslake unblock {path.in_shell} --skip-file {first.base}`"
    expected = f"every CDC file up to the cursor {head.cursor} in a change"
    return [Finding("cdc-file-never-taken", DIFFERENCE, f"s3://{path.bucket}/{first.key}", expected, what, todo)]


def _known(head: Snapshot, records: Iterable[ChangeRecord]) -> set[str]:
    """The keys that the changes took, or say to be skipped or awaited."""
    known = {*head.applied, *head.skipped, *head.awaited}
    for record in records:
        known.update(item.key for item in (*record.inputs, *record.context, *record.skipped))
    return known


def _cursor_before(state: TableState, known: Iterable[str], file: RawFile) -> str:
    """The cursor from which a run would begin with the file: at the last one before it that the table knows."""
    end = cdc_name(file.key) or CdcName("", "")
    before = [(name, key) for key in known if (name := cdc_name(key)) and name < end]
    if not before:
        return f"{state.path}0.parquet"
    key = max(before)[1]
    return key if key.startswith(f"{state.path.bucket}/") else f"{state.path.bucket}/{key}"
