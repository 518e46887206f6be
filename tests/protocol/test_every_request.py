"""Whatever fails at whichever request: the next plain runs end where an undisturbed one would have."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.faults import FOR_GOOD, KILLS, PASSING

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 2
STAGES = ("load", "first batch", "second batch", "rollback", "re-apply")
BRIEF = ("apply", "stage", "commit", "discard", "erase", "adopt", "history", "joined")  # with one fault at each read


class Trier:
    """A process that tries faults, on an AWS of its own. scope: what it says first."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.protocol.every_request"],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self._errors.read_text()[-3000:]
        told: dict[str, Any] = json.loads(line)
        return told

    def try_while(self, left: deque[str]) -> list[dict[str, Any]]:
        """What came of the sorts that it took from those that are left."""
        told = []
        with contextlib.suppress(IndexError):
            while True:
                sort = left.popleft()
                print(json.dumps(sort), file=self.process.stdin, flush=True)
                told.append(self.read())
        return told


@pytest.mark.timeout(1800)  # three minutes on two quiet cores
def test_every_job_survives_a_fault_at_every_request(say_at_end: Callable[[str], None], tmp_path: Path) -> None:
    """Load, two batches, rollback, re-apply; apply, stage, commit, discard, erase; adopt; a batch with a history,
    one that joins files. At each request: killed before and after it, an error once, one for good, a lost answer.

    Rows, cursor, schema, partitions, changes and catalog are as if nothing had happened, the folder holds nothing else, and one more
    run writes nothing. An error that passes is none for the run that met it.
    """
    triers = [Trier(tmp_path / f"errors{number}") for number in range(PROCESSES)]
    try:
        scopes = [trier.read() for trier in triers]
        left = deque(scopes[0]["sorts"])
        with ThreadPoolExecutor(PROCESSES) as pool:
            results = [told for share in pool.map(lambda trier: trier.try_while(left), triers) for told in share]
    finally:
        for trier in triers:
            trier.process.kill()
            trier.process.communicate()

    counts = sum((Counter(told["counts"]) for told in results), Counter[str]())
    by_kind = {kind: sum(counts[f"{stage}: {kind}"] for stage in (*STAGES, *BRIEF)) for kind in (*KILLS, *PASSING, *FOR_GOOD)}
    requests = scopes[0]["requests"]
    wrong = [text for told in results for text in told["wrong"]]
    said = ", ".join(f"{number} {kind}" for kind, number in by_kind.items())
    say_at_end(f"faults: {counts.total()} points at {sum(requests.values())} requests ({said})")
    assert not wrong, f"{len(wrong)} of {counts.total()} points:\n" + "\n".join(wrong[:5])
    assert scopes[0]["requests"] == scopes[1]["requests"]
    assert set(scopes[0]["sorts"]) == set(scopes[1]["sorts"])
    assert list(requests) == [*STAGES, *BRIEF]
    assert all(requests[stage] >= 25 for stage in STAGES)
    assert all(requests[stage] >= 15 for stage in BRIEF)
    for stage in STAGES:
        found = {kind: counts[f"{stage}: {kind}"] for kind in by_kind}
        assert found["killed before"] == requests[stage]
        assert all(number >= 12 for number in found.values()), (stage, found)
    for stage in BRIEF:
        found = {kind: counts[f"{stage}: {kind}"] for kind in by_kind}
        assert sum(found.values()) >= requests[stage] + 25, (stage, found)
        assert all(found.values()), (stage, found)
    assert counts.total() > 1200
