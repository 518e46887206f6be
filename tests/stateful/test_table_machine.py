"""Whatever happens to a table, and in whatever order: it has the rows that the oracle says, and so has each of its changes.

`MACHINE_EXAMPLES=500 MACHINE_STEPS=30 pytest --timeout=0 tests/stateful` looks for longer, with other seeds each time. What it
finds is reported as it was found; `MACHINE_SHRINK=1` makes it smaller first, which takes minutes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from glue_jobs.aws.clients import make_clients
from tests.quick_aws import QuickAws
from tests.stateful.table_machine import TableMachine
from tests.stateful.traffic import Point, Traffic

HUNTING = "MACHINE_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "8"))
SHRINKING = "MACHINE_SHRINK" in os.environ
STEPS = int(os.environ.get("MACHINE_STEPS", "10"))


@pytest.fixture(scope="module")
def machine(quick_aws: QuickAws) -> Iterator[type[TableMachine]]:
    """The machine on this session's AWS."""
    with Traffic(quick_aws.endpoint_url).watched() as traffic:

        class Machine(TableMachine):
            pass

        Machine.aws, Machine.clients, Machine.traffic = quick_aws, make_clients(quick_aws.environment()), traffic
        Machine.seen = Counter()
        yield Machine


def test_every_rule_does_what_it_says(machine: type[TableMachine]) -> None:
    """One walk through all rules: each leads where it is meant to, or the random walks prove less than they look like."""
    rows, job = [("U", 0, "a"), ("I", 1, "b")], "LoadIncremental"
    table = machine()
    steps: list[Callable[[], None]] = [
        lambda: table.begin(load={0: "a", 1: "b", 2: "a"}, first=rows, second=rows, adopted=False),
        lambda: table.deliver_and_run(rows, late=15, lift=False),
        lambda: table.crash(rows, job, Point("is_hide", 0, False), visited=True),
        lambda: table.lose(rows),
        lambda: table.run(),
        lambda: table.roll_back("previous", 0, resume=True, skip=False),
        lambda: table.awaited_file_vanishes(0),
        lambda: table.roll_back("previous", 0, resume=False, skip=False),
        lambda: table.roll_back("reapply-all", 0, resume=False, skip=False),
        lambda: table.fall_asleep(rows, job, Point("is_commit", 0, False)),
        lambda: table.run(),
        lambda: table.wake_up(0),
        lambda: table.fall_asleep(rows, job, Point("is_record", 0, False)),
        lambda: table.wake_up(0),
        lambda: table.versions_expire(0, wanted=True),
        lambda: table.reload({3: "b"}),
        lambda: table.run(),
        lambda: table.teardown(),
    ]

    for step in steps:
        step()
        table.check_everything()

    changes = {f"change {kind}" for kind in ("full-load", "incremental", "late", "rollback", "reapply", "lost")}
    others = {"died", "woke unharmed", "woke after another run", "turned away", "blocked", "unfinished", "refused version-gone"}
    assert changes | others <= set(machine.seen)


def test_every_correction_does_what_it_says(machine: type[TableMachine]) -> None:
    """The same for corrections, staged changes and erases."""
    machine.seen.clear()
    rows = [("U", 0, "a"), ("I", 1, "b")]
    table = machine()
    steps: list[Callable[[], None]] = [
        lambda: table.begin(load={0: "a", 1: "b", 2: "a", 3: "b"}, first=rows, second=rows, adopted=True),
        lambda: table.apply("b", {0, 2}, None),
        lambda: table.stage(rows, lift=False),
        lambda: table.commit(0, None),
        lambda: table.stage(rows, lift=False),
        lambda: table.discard(0, None),
        lambda: table.commit(0, None),
        lambda: table.stage(rows, lift=True),
        lambda: table.erase({2}, Point("is_commit", 0, True)),
        lambda: table.run(),
        lambda: table.erase({2}, None),
        lambda: table.commit(0, None),
        lambda: table.versions_expire(0, wanted=True),
        lambda: table.teardown(),
    ]

    for step in steps:
        step()
        table.check_everything()

    changes = {f"change {kind}" for kind in ("adopt", "apply", "erase", "incremental")}
    refused = {f"refused {code}" for code in ("already-discarded", "no-key-found", "staged-overtaken", "version-erased")}
    assert changes | refused | {"died", "staged", "committed", "discarded"} <= set(machine.seen)


def test_a_table_is_what_the_oracle_says(machine: type[TableMachine]) -> None:
    """Deliveries, runs, deaths, sleepers, rollbacks, edits and lifecycle rules: the invariants hold after every step."""
    machine.seen.clear()

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not HUNTING,
            database=None,
            deadline=None,
            print_blob=False,
            phases=(Phase.generate, Phase.shrink) if SHRINKING else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )

    print(", ".join(f"{what}: {count}" for what, count in sorted(machine.seen.items())))
    assert machine.seen["steps"] >= EXAMPLES * STEPS // 2
