"""How the tables stand, by their items; and whether the catalog shows each where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import FINE, WARNS, Finding, aws_line
from controller.doctor.looks import Seen, look, look_by, not_checked
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.paths import catalog_name
from glue_jobs.core.state import TableState, read_state


@dataclass(frozen=True)
class Tables:
    """The items, read; and those that can't be, with the reason."""

    states: tuple[TableState, ...]
    unreadable: tuple[tuple[str, DmslakeError], ...] = ()


@dataclass(frozen=True)
class Catalog:
    """database: whether it is there. places: Glue table → its Location."""

    name: str
    database: Seen
    places: Seen = Seen()


def table_facts(table: StateTable) -> Seen:
    """All items; missing where there is no state table (that is another check's finding)."""
    return look_by("dynamodb:Scan", lambda: _read(list(table.scan())), ("ResourceNotFoundException", "ValidationException"))


def _read(items: Sequence[Mapping[str, Any]]) -> Tables:
    states, unreadable = [], []
    for item in sorted(items, key=lambda item: str(item.get("path", ""))):
        try:
            states.append(read_state(item))
        except DmslakeError as error:
            unreadable.append((str(item.get("path", "")), error))
    return Tables(tuple(states), tuple(unreadable))


def catalog_facts(glue: Any, database: str) -> Catalog:
    """The database and where its tables lie."""
    found = look("glue:GetDatabase", glue.get_database, ("EntityNotFoundException",), Name=database)
    if found.answer is None:
        return Catalog(database, found)
    return Catalog(database, found, look_by("glue:GetTables", lambda: _places(glue, database)))


def _places(glue: Any, database: str) -> dict[str, str]:
    pages = glue.get_paginator("get_tables").paginate(DatabaseName=database)
    tables = [table for page in pages for table in page["TableList"]]
    return {str(table["Name"]): str(table.get("StorageDescriptor", {}).get("Location") or "") for table in tables}


def table_findings(seen: Seen) -> list[Finding]:
    """What waits for a person, and a count of the rest."""
    if seen.is_unknown:
        return [not_checked(seen, "tables", "state table")]
    if seen.missing:
        return []
    tables: Tables = seen.answer
    broken = [
        Finding(WARNS, "item", path, error.message, "an item that can be read", "it can't", todo=error.todo)
        for path, error in tables.unreadable
    ]
    blocked = [_blocked(state) for state in tables.states if state.blocked]
    active = sum(state.active for state in tables.states)
    paused = [state.path.name for state in tables.states if state.active and state.paused]
    found = f"{len(tables.states)} table(s), {active} active" + (f"; paused: {', '.join(paused)}" if paused else "")
    return [*broken, *blocked, Finding(FINE, "tables", "state table", found=found)]


def _blocked(state: TableState) -> Finding:
    assert state.blocked is not None
    what = "the table waits for a person; the others go on"
    return Finding(
        WARNS, "table-blocked", str(state.path), what, "not blocked", state.blocked.message, f"dmslake status {state.path.in_shell}"
    )


def catalog_findings(catalog: Catalog, seen: Seen) -> list[Finding]:
    """The database, then each loaded table's place in it."""
    if catalog.database.is_unknown:
        return [not_checked(catalog.database, "database", catalog.name)]
    if catalog.database.missing:
        fix = aws_line("glue", "create-database", database_input=f"Name={catalog.name}")
        what = "the first job to need it makes it, if its role may"
        return [Finding(WARNS, "database", catalog.name, what, "a Glue database", "none", fix)]
    if catalog.places.is_unknown:
        return [not_checked(catalog.places, "catalog", catalog.name)]
    states = seen.answer.states if seen.answer else ()
    loaded = [state for state in states if state.head and not state.publishing and not state.catalog_pending]
    wrong = [finding for state in loaded for finding in _place(state, catalog)]
    return [Finding(FINE, "database", catalog.name, found=f"{len(catalog.places.answer)} table(s)"), *wrong]


def _place(state: TableState, catalog: Catalog) -> list[Finding]:
    name = state.catalog_table or catalog_name(state.path)
    place = catalog.places.answer.get(name)
    if place is not None and place.rstrip("/") == state.out_path.rstrip("/"):
        return []
    what = "readers by the catalog don't get this table" if place is None else "readers by the catalog look elsewhere"
    fix = f"dmslake verify {state.path.in_shell} --quick --repair"
    return [Finding(WARNS, "catalog", f"{catalog.name}.{name}", what, state.out_path, place or "no such Glue table", fix)]
