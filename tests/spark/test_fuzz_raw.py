"""Damaged raw files: each ends in an error that names it, the lake unchanged, or in the right rows; never in a hang or a crash.

What right rows are. A file can be damaged and yet be a file: a bit of a value in a page without checksum, a name in the footer. Nobody
can know then that it once was another. So the rows must be those that another reader reads in the same bytes (tests/spark/independent.py).
Where the other reader refuses and ours doesn't, ours has not read what is damaged (an unused length in a footer, say): then the rows
must be those of the file before it was damaged.

`FUZZ_SEED=7 FUZZ_CASES=5000 pytest tests/spark/test_fuzz_raw.py` looks further. A failure names seed and case:
`python -m tests.spark.damaged_files SEED CASE CASE+1` repeats it.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import pytest

ROOT = Path(__file__).parent.parent.parent
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CASES = int(os.environ.get("FUZZ_CASES", "510"))
CASE_SECONDS = 60  # a case takes a tenth of one; longer is a hang
PARTS = 3  # so that each stays below the time limit of a test on a busy machine
REFUSALS = 3  # kinds of outcomes that a part meets at least


@dataclass
class Found:
    """What became of the cases. wrong: what must not be, with what repeats it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def run_cases(seed: int, first: int, stop: int) -> Found:
    """The cases `first` to before `stop`, in one process more than crash."""
    found = Found()
    while first < stop:
        command = [sys.executable, "-m", "tests.spark.damaged_files", str(seed), str(first), str(stop)]
        with TemporaryFile("w+") as log, subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            begun, case = first - 1, "nothing yet"
            for facts in _facts(process):
                if "begun" in facts:
                    begun, case = int(str(facts["begun"])), str(facts["case"])
                    continue
                found.outcomes[str(facts["outcome"])] += 1
                if facts["wrong"]:
                    found.wrong.append(f"seed {seed}, case {begun} ({case}): {facts['wrong']}")
            process.wait()
            log.seek(0)
            said = log.read()
        if process.returncode:
            assert begun >= first, f"nothing was tried: {said[-2000:]}"
            found.wrong.append(f"seed {seed}, case {begun} ({case}): the process ended with {process.returncode}: {said[-1500:]}")
        first = stop if process.returncode == 0 else begun + 1
    return found


def _facts(process: subprocess.Popen[str]) -> Iterator[dict[str, object]]:
    """The lines that the process says; it is killed if it says nothing for too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(CASE_SECONDS):
            line = process.stdout.readline()
            if not line:
                return
            yield json.loads(line)
    process.kill()


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_refused_by_name_or_read_right(part: int, say_at_end: Callable[[str], None]) -> None:
    """Hundreds of damaged load files and CDC files, of each physical form."""
    first, stop = CASES * part // PARTS, CASES * (part + 1) // PARTS
    found = run_cases(SEED, first, stop)

    say_at_end(f"damaged raw files {first} to {stop}: {dict(found.outcomes.most_common())}")
    assert not found.wrong, "\n".join([f"{len(found.wrong)} of {stop - first}", *found.wrong[:20]])
    assert sum(found.outcomes.values()) == stop - first
    assert found.outcomes["applied"] > (stop - first) // 50, "some damage is another valid file"
    assert len(found.outcomes) >= REFUSALS, found.outcomes
