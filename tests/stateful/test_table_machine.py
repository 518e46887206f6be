"""Whatever happens to a table, and in whatever order: it has the rows that the oracle says, and so has each of its changes.

`MACHINE_EXAMPLES=500 MACHINE_STEPS=30 pytest --timeout=0 tests/stateful` looks for longer, with other seeds each time.
"""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from glue_jobs.aws.clients import Clients, make_clients
from infra.local.embedded import EmbeddedAws
from tests.stateful.table_machine import TableMachine
from tests.stateful.traffic import Traffic

HUNTING = "MACHINE_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "30"))
SHRINKING = "MACHINE_SHRINK" in os.environ
STEPS = int(os.environ.get("MACHINE_STEPS", "12"))

# What the examples must have led to; otherwise they prove less than they look like.
EXPECTED = {
    *(f"change {kind}" for kind in ("full-load", "incremental", "late", "rollback", "reapply", "lost")),
    *("died", "woke unharmed", "woke after another run", "turned away", "blocked", "unfinished", "refused version-gone"),
}


def test_a_table_is_what_the_oracle_says(embedded_aws: EmbeddedAws) -> None:
    """Deliveries, runs, deaths, sleepers, rollbacks, edits and lifecycle rules: the invariants hold after every step."""
    clients: Clients = make_clients(embedded_aws.environment())
    with Traffic(embedded_aws.endpoint_url).watched() as traffic:

        class Machine(TableMachine):
            """The machine on this session's AWS."""

        Machine.aws, Machine.clients, Machine.traffic = embedded_aws, clients, traffic
        Machine.seen = Counter()
        run_state_machine_as_test(
            Machine,
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
    print(", ".join(f"{what}: {count}" for what, count in sorted(Machine.seen.items())))
    missing = EXPECTED - set(Machine.seen)
    assert HUNTING or not missing, f"never happened: {sorted(missing)}"
