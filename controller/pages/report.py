"""Everything that a report holds, read once: all tables, the pages of the foremost, their last changes. Bounded, however much there is."""

from __future__ import annotations

from dataclasses import replace

from controller.gather import in_threads
from controller.pages.pages import Pages
from controller.pages.views import ChangePage, Overview, Report, TablePage, TableRow
from controller.status import read_status
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import DmslakeError

MOST_ROWS = 2000  # tables in the overview
MOST_TABLES = 100  # tables with a page of their own
MOST_CHANGES = 1000  # changes with a page of their own, of all tables
LEAST_CHANGES = 3  # of each table, however many tables there are


def read_report(pages: Pages, changes: int, rows: int = 0) -> Report:
    """changes: of each table, at most. rows: of each kind in a change's sample of rows, 0 for none of the tables' values."""
    with translated():
        gathered = pages.gather()
        statuses = {status.path: status for status in read_status(gathered)}
        facts = {fact.path: fact for fact in gathered.tables}
        overview = pages.overview_of(gathered, tuple(statuses.values()), None)
        chosen = foremost(overview, MOST_TABLES)
        count = share(changes, len(chosen))
        tables = [pages.table_of(gathered, facts[row.path], statuses[row.path], None, count) for row in chosen]
        wanted = [(page.row.path, step.change) for page in tables for step in page.steps]

        def read(pair: tuple[str, str]) -> ChangePage | None:
            state = facts[pair[0]].state
            assert state is not None  # it has changes
            try:
                return pages.change_of(state, pair[1], gathered.now, rows)
            except DmslakeError:
                return None  # its line in the table's page is what can be told

        found = [page for page in in_threads(read, wanted) if page is not None]
    return Report(cut(overview), tuple(tables), tuple(found), tuple(notes(overview, tables, count, changes, rows)))


def foremost(overview: Overview, most: int) -> tuple[TableRow, ...]:
    """The tables that have a page: those that need a person, then those that changed last; in the overview's order."""
    first = sorted(overview.tables, key=lambda row: (not row.needs_person, -(row.time.timestamp() if row.time else 0.0)))
    paths = {row.path for row in first[:most]}
    return tuple(row for row in overview.tables if row.path in paths)


def share(changes: int, tables: int) -> int:
    """How many changes of each table are in the report."""
    return min(changes, max(LEAST_CHANGES, MOST_CHANGES // max(1, tables)))


def cut(overview: Overview) -> Overview:
    """The overview with no more rows than a page bears."""
    left_out = max(0, len(overview.tables) - MOST_ROWS)
    return replace(overview, tables=overview.tables[:MOST_ROWS], left_out=left_out) if left_out else overview


def notes(overview: Overview, tables: list[TablePage], count: int, changes: int, rows: int) -> list[str]:
    """What the report leaves out, and where to see it."""
    texts = []
    without = len(overview.tables) - len(tables)
    if without:
        texts.append(
            f"{without:,} table(s) have no page here: those that need a person and those that changed last have. `dmslake serve` shows all."
        )
    longer = sum(bool(page.older) for page in tables)
    if longer:
        fewer = "" if count == changes else f", fewer than the {changes:,} asked for because the tables are many"
        texts.append(
            f"{longer:,} table(s) have older changes: here are the last {count:,} of each{fewer}. `dmslake history PATH --all` lists all."
        )
    if not rows:
        known = "but for those in names of partitions and in messages of errors"
        texts.append(
            f"Values of rows are not in this report, {known}: `dmslake report --rows N` puts some into it, `dmslake diff` shows them."
        )
    return texts
