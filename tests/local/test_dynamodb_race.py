"""Conditional writes to the embedded DynamoDB have one winner, which moto alone does not promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.local.dynamodb_race import ROUNDS

ROOT = Path(__file__).parents[2]


def race(target: str) -> list[int]:
    """The winners of each round, from a process of its own."""
    said = subprocess.run(
        [sys.executable, "-m", "tests.local.dynamodb_race", target],
        env={"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(said.stdout))


def test_embedded_dynamodb_has_one_winner_in_every_round() -> None:
    """Sixteen threads, one condition, one winner: every time."""
    assert race("embedded") == [1] * ROUNDS
