"""Results that are kept: a run may add its repetitions to those of earlier ones on the same machine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.contenders.registry import NAMES
from benchmarks.measuring.campaign import Outcome

OF_A_RUN = ("time", "commit", "runs")  # what may differ from run to run


class OtherMachine(ValueError):
    """The kept results are of another machine or of other versions; the message says what differs."""


def read_outcomes(place: Path, machine: Mapping[str, str], program_of: Callable[[str], str]) -> list[Outcome]:
    """The outcomes in `<place>.json`, none if there is no such file. program_of: the state that a contender's code has now; what was
    measured of another is left out, because a median over two programs is none.

    Raises OtherMachine.
    """
    path = place.with_suffix(".json")
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    names = sorted({*kept["machine"], *machine} - set(OF_A_RUN))
    other = [name for name in names if kept["machine"].get(name) != machine.get(name)]
    if other:
        said = "; ".join(f"{name}: kept {kept['machine'].get(name)}, now {machine.get(name)}" for name in other)
        raise OtherMachine(f"{path} is of another machine or of other versions, and can't be added to ({said}); give another --results")
    outcomes = [Outcome(**each) for each in kept["outcomes"]]
    return [outcome for outcome in outcomes if outcome.contender in NAMES and outcome.program == program_of(outcome.contender)]


def numbered(outcome: Outcome, before: Sequence[Outcome]) -> Outcome:
    """The outcome, its repetition counted on from the kept ones."""
    done = Counter((each.workload, each.contender) for each in before)
    return replace(outcome, repetition=done[outcome.workload, outcome.contender] + 1)


def runs_of(outcomes: Sequence[Outcome]) -> str:
    """All runs that the outcomes are of."""
    return "; ".join(dict.fromkeys(outcome.run for outcome in outcomes if outcome.run))
