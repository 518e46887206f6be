"""Runs that die, and what they leave."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lake import LakeTable
from tests.protocol.wire import Killed, Rule, Wire

LONG_LEASE = "60"  # no renewal comes between the requests of a run that dies


def run_on(wire: Wire, table: LakeTable, job: str, rule: Rule | None = None, **settings: Any) -> int:
    """A run whose requests pass through the wire."""
    wire.rule = rule
    with wire.connected():
        return table.run(job, **settings)


def die(wire: Wire, table: LakeTable, job: str, rule: Rule, **settings: Any) -> None:
    """A run that ends as if killed at the request where the rule says so; its lease is short for whoever comes next."""
    with pytest.raises(Killed):
        run_on(wire, table, job, rule, lease_seconds=LONG_LEASE, **settings)
    forget_lease(table)


def forget_lease(table: LakeTable) -> None:
    """Make the dead owner's lease short, so that the next run does not have to wait it out for a minute."""
    if "LeaseOwner" in table.item():
        table.edit(LeaseSeconds=0.05)


def facts(table: LakeTable) -> dict[str, Any]:
    """What must be the same however a table came to its state: rows, cursor, load, what was applied and what waits."""
    item, snapshot = table.item(), table.snapshot()
    return {
        "rows": table.rows(),
        "folder": table.visible() == set(snapshot.files),
        "cursor": item["LastIncrementalFile"].rsplit("/", 1)[-1],
        "loaded": item["LastFullLoadDate"] != "1900-01-01 00:00:00",
        "applied": sorted(key.rsplit("/", 1)[-1] for key in snapshot.applied),
        "unfinished": sorted({"Publishing", "CatalogPending", "LeaseOwner", "Blocked"} & set(item)),
        "outcome": item["LastRun"]["outcome"] in ("committed", "nothing"),
    }
