"""The summary as Markdown: what it was measured on, then a table for each workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.contenders.registry import NAMES, contender
from benchmarks.data.workloads import WORKLOADS
from benchmarks.measuring.campaign import Outcome
from benchmarks.reporting.summary import Row, summarize
from benchmarks.reporting.targets import targets

_HOW = (
    "Medians. The repetitions of a run are interleaved: every contender once, then every contender again; a page may be made of several",
    "runs, which are named. Ratios are taken within each run that has both contenders, and of those the median; in brackets, of how many",
    "repetitions. Seconds are of all runs, so that those of two contenders need not be of the same hour. Warm: on the second table",
    "in a process; cold: on the first, the start of Python and JVM included. Memory, requests and bytes are those of the warm run. Scan",
    "and query: by Spark, on the table afterwards, in a session that has just asked the same of another one. All rows were compared with",
    "what pyarrow computes; a contender with wrong rows has no time.",
)
_ELSEWHERE = (
    "The targets for memory are measured by `python -m benchmarks.memory` (docs/scale.md), those for random keys also by",
    "`python -m benchmarks.key_filters` (benchmarks/README.md).",
)
_HEAD = (
    "contender", "repetitions", "warm s", "cold s", "ours is … × faster", "peak MiB", "requests", "MB to S3", "MB from S3", "files after",
    "full scan s", "point query s",
)  # fmt: skip


def markdown(title: str, machine: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    """A page: how it was measured, on what, the targets, a table for each workload."""
    rows = summarize(outcomes)
    lines = [f"# {title}", "", *_HOW, ""]
    lines += ["| what | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in machine.items()), ""]
    lines += ["## Targets", "", *targets(outcomes), "", *_ELSEWHERE, ""]
    for workload in dict.fromkeys(row.workload for row in rows):
        of_it = [row for row in rows if row.workload == workload]
        lines += [f"## {workload}: {WORKLOADS[workload].title}", "", "| " + " | ".join(_HEAD) + " |", "| --- " * len(_HEAD) + "|"]
        lines += [_line(row) for row in of_it]
        lines += [*_remarks(of_it), ""]
    return "\n".join(lines)


def _line(row: Row) -> str:
    if not row.repetitions:
        return f"| {row.title} | not run: {row.note[:200]}" + " |" * (len(_HEAD) - 1)
    cells = [
        row.title,
        str(row.repetitions),
        _number(row.warm, 1),
        _number(row.cold, 1),
        "" if row.over_ours is None else f"{row.over_ours:.2f} ({row.compared})",
        _number(row.peak_bytes, 0, 2**20),
        _number(row.requests, 0),
        _number(row.received_bytes, 1, 1e6),
        _number(row.sent_bytes, 1, 1e6),
        "" if row.files is None else str(row.files),
        _number(row.scan, 1),
        _number(row.point, 1),
    ]
    return "| " + " | ".join(cells) + " |"


def _remarks(rows: Sequence[Row]) -> list[str]:
    """What a table has no column for."""
    said = [f"{row.title}: {row.note[:300]}" for row in rows if row.repetitions and row.note]
    said += [
        f"{row.title}: last batch {row.last_to_first:.2f} × the first, the last quarter of them {row.end_to_begin:.2f} × the first "
        f"quarter and {row.end_to_middle:.2f} × that in the middle, {row.small_files} files under 32 MiB"
        for row in rows
        if row.last_to_first is not None
    ]
    said += [f"{row.title}: re-applied in {row.redo:.1f} s" for row in rows if row.redo is not None]
    measured = {row.contender for row in rows}
    missing = [name for name in NAMES if name not in measured and not _refuses(name, rows[0].workload)]
    said += [f"Not measured here: {', '.join(missing)}"] if missing else []
    return ["", *(f"- {text}" for text in said)] if said else []


def _refuses(name: str, workload: str) -> bool:
    """Whether a contender has no answer to a workload; of one whose package is missing nobody knows."""
    try:
        return bool(contender(name).refusal(WORKLOADS[workload]))
    except ImportError:
        return False


def _number(value: float | None, digits: int, unit: float = 1) -> str:
    return "" if value is None else f"{value / unit:,.{digits}f}"
