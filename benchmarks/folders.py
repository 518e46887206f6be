"""Where the benchmark keeps what it fetched, built and made: `.cache/bench` in the checkout, removed by `make clean`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
JARS = CACHE / "jars"
PROGRAMS = CACHE / "bin"
DATA = CACHE / "data"
SERVERS = CACHE / "servers"
LOGS = CACHE / "logs"
RESULTS = ROOT / "benchmarks" / "results"
