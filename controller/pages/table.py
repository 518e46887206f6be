"""A table's page from what was read of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from controller.gather import Facts, Gathered
from controller.pages.overview import row_of
from controller.pages.steps import Walk, schema_steps
from controller.pages.views import Command, Partition, PendingFile, Step, TablePage
from controller.plan import unhindered
from controller.status import TableStatus
from glue_jobs.core.actions import TakeBatch, TakeLoad
from glue_jobs.core.partitioning import folder_of, partition_key_text
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState

PARTITIONS_SHOWN = 50
SIZES_SHOWN = 40  # files of one partition that are drawn
PENDING_SHOWN = 20
LAST = {"to undo it": "to undo the last change"}  # of what can be done with the head


def table_page_of(
    fact: Facts,
    status: TableStatus,
    gathered: Gathered,
    walked: Walk | None,
    at: str,
    ways: Sequence[tuple[str, str]],
    warnings: Sequence[str],
) -> TablePage:
    """walked: the changes that the page shows, None where there are none or they can't be read. at: where they begin, '' for the head.
    ways: commands for the head, on the page that begins with it. warnings: what could not be read."""
    snapshot, limits = fact.snapshot, gathered.limits
    small_bytes = int(limits.small_file_bytes)
    partitions = partitions_of(snapshot, small_bytes)
    newest = walked if not at else None
    return TablePage(
        row=row_of(fact, status, newest),
        now=gathered.now,
        steps=_with_seconds(walked.steps, status) if walked else (),
        at=at,
        older=str(walked.older) if walked and walked.older else "",
        schema_steps=schema_steps(walked) if walked else (),
        columns=tuple((column.name, column.type) for column in snapshot.schema),
        primary_key=snapshot.primary_key or status.primary_key,
        partition_key=_partition_key(fact, snapshot),
        partitions=partitions[:PARTITIONS_SHOWN],
        partitions_left=max(0, len(partitions) - PARTITIONS_SHOWN),
        small_files=sum(each.small for each in partitions),
        small_file_bytes=small_bytes,
        cursor=status.cursor.rsplit("/", 1)[-1],
        pending=pending_files(fact, gathered),
        out_path=status.out_path,
        catalog_table=fact.state.catalog_table if fact.state else "",
        last_run=status.last_run,
        commands=tuple(commands_of(fact.state, ways)),
        warnings=(*gathered.warnings, *warnings, *_of_last_run(status)),
    )


def _of_last_run(status: TableStatus) -> list[str]:
    """Its warnings, unless the page has them as the reason why it failed."""
    return [] if status.is_out_of_catalog else [f"the last run: {text}" for text in status.warnings]


def _with_seconds(steps: tuple[Step, ...], status: TableStatus) -> tuple[Step, ...]:
    """The steps; the newest, where its record has no seconds, with those of its run if that made no other change."""
    last = status.last_run or {}
    if not steps or steps[0].seconds is not None or list(last.get("changes") or ()) != [steps[0].change]:
        return steps
    return (replace(steps[0], seconds=float(last.get("seconds") or 0.0)), *steps[1:])


def _partition_key(fact: Facts, snapshot: Snapshot) -> str:
    partitioning = snapshot.partitioning if not snapshot.is_empty else fact.state.partitioning if fact.state else ()
    return partition_key_text(partitioning) if partitioning else ""


def partitions_of(snapshot: Snapshot, small_bytes: int) -> tuple[Partition, ...]:
    """The partitions, those first in which most small files could be one."""
    sizes: dict[str, list[int]] = defaultdict(list)
    rows: dict[str, int] = defaultdict(int)
    for file in snapshot.files.values():
        folder = folder_of(snapshot.partitioning, file.partition).rstrip("/")
        sizes[folder].append(file.size_bytes)
        rows[folder] += file.rows
    found = [_partition(folder, sorted(some, reverse=True), rows[folder], small_bytes) for folder, some in sizes.items()]
    return tuple(sorted(found, key=lambda each: (-max(each.small, 1), each.folder)))


def _partition(folder: str, sizes: Sequence[int], rows: int, small_bytes: int) -> Partition:
    small = sum(size < small_bytes for size in sizes)
    return Partition(folder, len(sizes), rows, sum(sizes), small, tuple(sizes[:SIZES_SHOWN]))


def pending_files(fact: Facts, gathered: Gathered) -> tuple[PendingFile, ...]:
    """The raw files that come next, the first of them."""
    action = unhindered(fact, gathered)
    files = action.files[:PENDING_SHOWN] if isinstance(action, (TakeLoad, TakeBatch)) else ()
    folder = fact.state.path.raw.key if fact.state else ""
    return tuple(PendingFile(file.key.removeprefix(folder), file.size, file.modified) for file in files)


def commands_of(state: TableState | None, ways: Sequence[tuple[str, str]]) -> list[Command]:
    """What a person may want to do with the table, most likely first."""
    if state is None:
        return []
    path = state.path.in_shell
    commands = []
    if state.blocked:
        commands.append(Command("to try it again once the reason is gone", f"dmslake unblock {path}"))
    if state.paused:
        commands.append(Command("to let it go on", f"dmslake activate {path}"))
    elif not state.active and state.has_source:
        key = "" if state.has_key else " --primary-key COLUMNS"
        commands.append(Command("to have it kept up", f"dmslake activate {path}{key}"))
    else:
        commands.append(Command("to bring it up to date", f"dmslake run {path}"))
    if state.head:
        commands += [Command(LAST.get(does, does), line) for does, line in ways]
        commands.append(Command("to check that the lake is what it should be", f"dmslake verify {path}"))
    return commands
