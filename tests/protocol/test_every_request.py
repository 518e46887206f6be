"""Whatever fails at whichever request: the next plain runs end where an undisturbed one would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.faults import FOR_GOOD, KILLS, PASSING

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 2
STAGES = ("load", "first batch", "second batch", "rollback", "re-apply")
BRIEF = ("apply", "stage", "commit", "discard", "erase", "adopt")  # with one fault at each read


def started(part: int) -> subprocess.Popen[str]:
    """A process that checks a part of all points, on an AWS of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.protocol.every_request", str(part), str(PROCESSES)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


@pytest.mark.timeout(1800)  # two minutes and a half on two quiet cores
def test_every_job_survives_a_fault_at_every_request(say_at_end: Callable[[str], None]) -> None:
    """Load, two batches, rollback, re-apply; apply, stage, commit, discard, erase; adopt. At each request: killed before and after it, an
    error once, one for good, a lost answer.

    Rows, cursor, schema, partitions, changes and catalog are as if nothing had happened, the folder holds nothing else, and one more
    run writes nothing. An error that passes is none for the run that met it.
    """
    processes = [started(part) for part in range(PROCESSES)]
    try:
        results = [result(process) for process in processes]
    finally:
        for process in processes:
            process.kill()

    counts = sum((Counter(told["counts"]) for told in results), Counter[str]())
    by_kind = {kind: sum(counts[f"{stage}: {kind}"] for stage in (*STAGES, *BRIEF)) for kind in (*KILLS, *PASSING, *FOR_GOOD)}
    requests = results[0]["requests"]
    wrong = [text for told in results for text in told["wrong"]]
    said = ", ".join(f"{number} {kind}" for kind, number in by_kind.items())
    say_at_end(f"faults: {counts.total()} points at {sum(requests.values())} requests ({said})")
    assert not wrong, f"{len(wrong)} of {counts.total()} points:\n" + "\n".join(wrong[:5])
    assert list(requests) == [*STAGES, *BRIEF]
    assert all(requests[stage] >= 30 for stage in STAGES)
    assert all(requests[stage] >= 15 for stage in BRIEF)
    for stage in STAGES:
        found = {kind: counts[f"{stage}: {kind}"] for kind in by_kind}
        assert found["killed before"] == requests[stage]
        assert all(number >= 12 for number in found.values()), (stage, found)
    for stage in BRIEF:
        found = {kind: counts[f"{stage}: {kind}"] for kind in by_kind}
        assert sum(found.values()) >= requests[stage] + 30, (stage, found)
        assert all(found.values()), (stage, found)
    assert counts.total() > 1200
