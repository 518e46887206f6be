"""A StartJobRun whose answer was lost is sent again, and then Glue runs the job twice: the second run must not do it once more.

Both have the id that the controller gave (`--run_id`). Started by hand without one, they have Glue's, and can't be told from two wishes.
The job Snapshot does not look: it has no table's record, and makes a second version of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import islice

from glue_jobs.core.record import ChangeRecord
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.table_run import TableRun

TWICE_WITHIN = timedelta(hours=2)  # both begin within half an hour
LOOKED_AT = 1000  # changes of two hours, at most


def done_by_twin(run: TableRun, lineage: Lineage, *kinds: str) -> str:
    """The newest change of these kinds that another run of this run's id has made of the table, and staged in place of made where this
    one stages; '' if there is none. What it left unfinished is finished; where that takes it back, because its uploads are gone, it does
    not count.

    lineage: of the head. Batches may have been made since: a start that Glue does not answer is sent again for half an hour.
    """
    mine, last = run.context.settings.run_id, run.state.last_run
    if run.staging:
        return str(last.get("staged", "")) if mine and last.get("run_id") == mine else ""
    change = _change_of(run, islice(lineage.back(), LOOKED_AT), mine, kinds)
    if change and run.unfinished:
        run.finish()
    return "" if change in [made.lost for made in run.changes] else change


def said_done(change: str) -> str:
    """The note of a run whose work is done."""
    return f"change {change} of this very run did it already: nothing was changed"


def _change_of(run: TableRun, records: Iterable[ChangeRecord], mine: str, kinds: tuple[str, ...]) -> str:
    if not mine:
        return ""
    oldest, lost = f"{run.context.clock() - TWICE_WITHIN:%Y-%m-%dT%H:%M:%S}", set()
    for record in records:
        if record.time < oldest:
            break
        lost.add(record.lost)
        if record.run_id == mine and record.kind in kinds and record.id not in lost:
            return record.id
    return ""
