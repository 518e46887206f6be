"""Outcomes as one row for each workload and contender: medians of the repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.contenders.registry import NAMES
from benchmarks.data.workloads import WORKLOADS
from benchmarks.measuring.campaign import Outcome

SMALL_FILE_BYTES = 32 << 20


@dataclass(frozen=True)
class Row:
    """Medians in seconds and bytes; None where nothing was measured. repetitions: how many succeeded; note: why there are none."""

    workload: str
    contender: str
    title: str
    repetitions: int
    cold: float | None = None
    warm: float | None = None
    scan: float | None = None
    point: float | None = None
    peak_bytes: float | None = None
    requests: float | None = None
    received_bytes: float | None = None
    sent_bytes: float | None = None
    files: int | None = None
    small_files: int | None = None
    last_to_first: float | None = None
    redo: float | None = None
    note: str = ""


def summarize(outcomes: Sequence[Outcome]) -> list[Row]:
    """Rows in the order of the workloads and contenders."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.workload, outcome.contender), []).append(outcome)
    rows = [_row(group) for group in groups.values()]
    place_of = {name: at for at, name in enumerate((*WORKLOADS, *NAMES))}
    return sorted(rows, key=lambda row: (place_of[row.workload], place_of.get(row.contender, len(place_of))))


def _row(group: Sequence[Outcome]) -> Row:
    first = group[0]
    good = [outcome for outcome in group if outcome.measures and not outcome.failed]
    notes = [outcome.not_run or outcome.failed for outcome in group if outcome.not_run or outcome.failed]
    return Row(
        first.workload,
        first.contender,
        first.title,
        len(good),
        **{name: _median(good, name, "seconds") for name in ("cold", "warm", "scan", "point")},
        **{name: _median(good, "warm", name) for name in ("peak_bytes", "requests", "received_bytes", "sent_bytes")},
        redo=_median(good, "warm redo", "seconds"),
        files=_count([len(outcome.files) for outcome in good]),
        small_files=_count([sum(size < SMALL_FILE_BYTES for size in outcome.files) for outcome in good]),
        last_to_first=_median_of([each[-1] / each[0] for each in (outcome.measures["warm"]["each"] for outcome in good) if each]),
        note=notes[0].splitlines()[0] if notes else "",
    )


def _count(counts: Sequence[int]) -> int | None:
    return round(statistics.median(counts)) if counts else None


def _median(outcomes: Sequence[Outcome], measure: str, name: str) -> float | None:
    return _median_of([outcome.measures[measure][name] for outcome in outcomes if measure in outcome.measures])


def _median_of(values: Sequence[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None
