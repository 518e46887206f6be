"""Outcomes as one row for each workload and contender: medians of the repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.contenders.registry import NAMES
from benchmarks.data.workloads import WORKLOADS
from benchmarks.measuring.campaign import WRONG_ROWS, Outcome

SMALL_FILE_BYTES = 32 << 20


@dataclass(frozen=True)
class Row:
    """Medians in seconds and bytes; None where nothing was measured. repetitions: how many succeeded; note: why there are none.
    last_to_first, end_to_begin, end_to_middle: of several batches, the last one's seconds by the first one's, and the last quarter's by the
    first quarter's and by that in the middle. over_ours: its seconds by dmslake's, in each run that has both, and of those the median;
    compared: how many repetitions of it are in those runs."""

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
    end_to_begin: float | None = None
    end_to_middle: float | None = None
    over_ours: float | None = None
    compared: int = 0
    redo: float | None = None
    note: str = ""


def summarize(outcomes: Sequence[Outcome]) -> list[Row]:
    """Rows in the order of the workloads and contenders."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for run in by_run(outcomes):
        for place, ratio, count in _over_ours(_rows(run)):
            found.setdefault(place, []).append((ratio, count))
    return [_compared(row, found.get((row.workload, row.contender), [])) for row in _rows(outcomes)]


def _compared(row: Row, ratios: Sequence[tuple[float, int]]) -> Row:
    return replace(row, over_ours=_median_of([ratio for ratio, _ in ratios]), compared=sum(count for _, count in ratios))


def by_run(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each run: what ran on other days, or hours, is not to be compared on a machine that is not the same all day."""
    runs: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        runs.setdefault(outcome.run, []).append(outcome)
    return list(runs.values())


def _rows(outcomes: Sequence[Outcome]) -> list[Row]:
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.workload, outcome.contender), []).append(outcome)
    rows = [_row(group) for group in groups.values()]
    place_of = {name: at for at, name in enumerate((*WORKLOADS, *NAMES))}
    return sorted(rows, key=lambda row: (place_of[row.workload], place_of.get(row.contender, len(place_of))))


def _over_ours(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], float, int]]:
    """Of one run: whose, its seconds by dmslake's, and of how many repetitions each has."""
    ours = {row.workload: row for row in rows if row.contender == "ours" and row.warm}
    for row in rows:
        base = ours.get(row.workload)
        if row.contender != "ours" and row.warm is not None and base is not None and base.warm:
            yield (row.workload, row.contender), row.warm / base.warm, min(row.repetitions, base.repetitions)


def _row(group: Sequence[Outcome]) -> Row:
    first = group[0]
    notes = [outcome.not_run or outcome.failed for outcome in group if outcome.not_run or outcome.failed]
    # A contender that had wrong rows once has no time at all; one that failed otherwise has those of its other repetitions.
    is_wrong = any(WRONG_ROWS in outcome.failed for outcome in group)
    good = [] if is_wrong else [outcome for outcome in group if outcome.measures and not outcome.failed]
    series = [each for each in (outcome.measures["warm"]["each"] for outcome in good) if each]
    return Row(
        first.workload,
        first.contender,
        first.title,
        len(good),
        **{name: _median(good, name, "seconds") for name in ("cold", "warm", "scan", "point")},
        **{name: _median(good, "warm", name) for name in ("peak_bytes", "requests", "received_bytes", "sent_bytes")},
        redo=_median(good, "warm redo", "seconds"),
        files=_count([len(outcome.files) for outcome in good if outcome.files]),
        small_files=_count([sum(size < SMALL_FILE_BYTES for size in outcome.files) for outcome in good if outcome.files]),
        last_to_first=_median_of([each[-1] / each[0] for each in series]),
        end_to_begin=_median_of([_end_to(each, 0) for each in series]),
        end_to_middle=_median_of([_end_to(each, len(each) * 3 // 8) for each in series]),
        note=next((note for note in notes if WRONG_ROWS in note), notes[0]).splitlines()[0] if notes else "",
    )


def _end_to(seconds: Sequence[float], start: int) -> float:
    """The last quarter by that from `start` on. Medians: of two single batches of half a second one may have met anything."""
    quarter = max(1, len(seconds) // 4)
    return statistics.median(seconds[-quarter:]) / statistics.median(seconds[start : start + quarter])


def _count(counts: Sequence[int]) -> int | None:
    return round(statistics.median(counts)) if counts else None


def _median(outcomes: Sequence[Outcome], measure: str, name: str) -> float | None:
    return _median_of([outcome.measures[measure][name] for outcome in outcomes if measure in outcome.measures])


def _median_of(values: Sequence[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None
