"""What we want of the figures, and what they are: ratios within one run, so that the machine, and its hour, matter little."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measuring.campaign import Outcome
from benchmarks.reporting.summary import Row, by_run, summarize

Rows = Mapping[tuple[str, str], Row]


@dataclass(frozen=True)
class Target:
    """measure: None where the rows for it are not there. is_most: the bound is an upper one."""

    what: str
    bound: float
    is_most: bool
    measure: Callable[[Rows], float | None]

    @property
    def text(self) -> str:
        return f"{'≤' if self.is_most else '≥'} {self.bound:g}"

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.is_most else value >= self.bound


def _of(workload: str, contender: str, *names: str) -> Callable[[Rows], float | None]:
    """The sum of a contender's figures; None if one is not there."""

    def read(rows: Rows) -> float | None:
        row = rows.get((workload, contender))
        values = [getattr(row, name) for name in names] if row else [None]
        return None if any(value is None for value in values) else float(sum(values))

    return read


def _ratio(workload: str, over: str, under: str, *names: str) -> Callable[[Rows], float | None]:
    names = names or ("warm",)

    def read(rows: Rows) -> float | None:
        upper, lower = _of(workload, over, *names)(rows), _of(workload, under, *names)(rows)
        return None if upper is None or not lower else upper / lower

    return read


def _faster(workload: str, contender: str, name: str, bound: float) -> Target:
    return Target(f"{workload}: so many times faster than {name}", bound, False, _ratio(workload, contender, "ours"))


def _of_plain(workload: str, bound: float, what: str = "Spark's plain read and write") -> list[Target]:
    """The yardstick's two forms: as Spark comes, it moves each file that it writes twice."""
    return [
        Target(f"{workload}: seconds of those of {what}", bound, True, _ratio(workload, "ours", "plain")),
        Target(f"{workload}: of those of the same, each file uploaded once", bound, True, _ratio(workload, "ours", "plain-direct")),
    ]


ICEBERG, DELTA = "Iceberg copy-on-write", "Delta Lake"
TARGETS = (
    *_of_plain("W1", 0.35),
    _faster("W1", "iceberg", ICEBERG, 3),
    _faster("W1", "delta", DELTA, 5),
    _faster("W1", "sample", "the AWS sample", 5),
    _faster("W1", "hudi", "Hudi", 8),
    Target("W1: of Iceberg merge-on-read's, with the next full scan", 1, True, _ratio("W1", "ours", "iceberg-mor", "warm", "scan")),
    _faster("W2", "iceberg", ICEBERG, 4),
    _faster("W2", "iceberg-range", f"{ICEBERG} with the range of the keys", 4),
    _faster("W2", "delta", DELTA, 8),
    _faster("W2", "delta-range", f"{DELTA} with the range of the keys", 8),
    *_of_plain("W3", 0.45),
    _faster("W3", "iceberg", ICEBERG, 2),
    Target("W3: of Iceberg merge-on-read's, with the next full scan", 1, True, _ratio("W3", "ours", "iceberg-mor", "warm", "scan")),
    Target("W5: the last of 24 batches, of the first one's seconds", 1.2, True, _of("W5", "ours", "last_to_first")),
    Target("W5: the last six of them, of six in the middle", 1.2, True, _of("W5", "ours", "end_to_middle")),
    Target("W5: files under 32 MiB afterwards, all in one partition", 2, True, _of("W5", "ours", "small_files")),
    Target("W6: seconds of the rollback", 6, True, _of("W6", "ours", "warm")),
    Target("W6: seconds of the re-apply", 6, True, _of("W6", "ours", "redo")),
    *_of_plain("W7", 0.55, "Spark's own writer"),
)


def targets(outcomes: Sequence[Outcome]) -> list[str]:
    """A Markdown table of all targets: the median of the runs that have what is asked for, and how far they lie apart."""
    runs = [{(row.workload, row.contender): row for row in summarize(run)} for run in by_run(outcomes)]
    lines = ["| what (warm) | target | measured | met | runs |", "| --- | --- | --- | --- | --- |"]
    for target in TARGETS:
        found = [value for value in (target.measure(rows) for rows in runs) if value is not None]
        lines.append(f"| {target.what} | {target.text} | " + " | ".join(_said(target, found)) + " |")
    return lines


def _said(target: Target, values: Sequence[float]) -> tuple[str, str, str]:
    if not values:
        return "", "not measured", "0"
    value = statistics.median(values)
    apart = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{value:.2f}{apart}", "yes" if target.is_met(value) else "**no**", str(len(values))
