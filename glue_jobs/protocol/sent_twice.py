"""A StartJobRun whose answer was lost is sent again, and then Glue runs the job twice: the second run must not do it once more.

Both have the id that the controller gave (`--run_id`). Started by hand without one, they have Glue's, and can't be told from two wishes.
"""

from __future__ import annotations

from datetime import timedelta

from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.table_run import TableRun

TWICE_WITHIN = timedelta(hours=2)  # both begin within minutes


def change_of_twin(run: TableRun, lineage: Lineage, *kinds: str) -> str:
    """The newest change of these kinds in the lineage that a run of this run's id has made; '' if there is none. One that was taken back,
    because its uploads were gone, does not count."""
    mine = run.context.settings.run_id
    oldest, lost = f"{run.context.clock() - TWICE_WITHIN:%Y-%m-%dT%H:%M:%S}", set()
    for record in lineage.back():
        if record.time < oldest:
            break
        lost.add(record.lost)
        if mine and record.run_id == mine and record.kind in kinds and record.id not in lost:
            return record.id
    return ""


def said_done(change: str) -> str:
    """The note of a run whose work is done."""
    return f"change {change} of this very run did it already: nothing was changed"
