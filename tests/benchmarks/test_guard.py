"""A guard against becoming slow, with a generous bound: a batch that became twice as slow goes over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from tests.runtimes.spark_runtime import QUICK_JVM

BOUND = 4.0


def test_a_batch_beside_sparks_plain_read_and_write(say_at_end: Callable[[str], None]) -> None:
    """In a process of its own, with a JVM as jobs have it: that of the tests starts sooner and never becomes fast."""
    environment = {name: value for name, value in os.environ.items() if name not in QUICK_JVM}

    done = subprocess.run([sys.executable, "-m", "benchmarks.guard"], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    taken = json.loads(done.stdout.splitlines()[-1])
    say_at_end(f"guard: a batch takes {taken['ratio']:.2f} × Spark's plain read and write of the files (bound {BOUND})")
    assert taken["ratio"] < BOUND, taken
