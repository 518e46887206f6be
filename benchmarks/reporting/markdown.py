"""The summary as Markdown: what it was measured on, then a table for each workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.data.workloads import WORKLOADS
from benchmarks.reporting.summary import Row
from benchmarks.reporting.targets import targets

_HOW = (
    "Medians of so many repetitions, which were interleaved. Warm: on the second table in a process; cold: on the first, the start of",
    "Python and JVM included. Memory, requests and bytes are those of the warm run. Scan and query: by Spark, in a warm session, on the",
    "table afterwards. All rows were compared with what pyarrow computes; a contender with wrong rows has no time.",
)
_HEAD = (
    "contender", "repetitions", "warm s", "cold s", "ours is … × faster", "peak MiB", "requests", "MB to S3", "MB from S3", "files after",
    "full scan s", "point query s",
)  # fmt: skip


def markdown(title: str, machine: Mapping[str, str], rows: Sequence[Row]) -> str:
    """A page. warm: the second batch of a process; cold: the first, the start of Python and JVM included."""
    lines = [f"# {title}", "", *_HOW, ""]
    lines += ["| what | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in machine.items()), ""]
    wanted = targets(rows)
    lines += ["## Targets", "", *wanted, ""] if wanted else []
    for workload in dict.fromkeys(row.workload for row in rows):
        of_it = [row for row in rows if row.workload == workload]
        ours = next((row.warm for row in of_it if row.contender == "ours"), None)
        lines += [f"## {workload}: {WORKLOADS[workload].title}", "", "| " + " | ".join(_HEAD) + " |", "| --- " * len(_HEAD) + "|"]
        lines += [_line(row, ours) for row in of_it]
        lines += [*_remarks(of_it), ""]
    return "\n".join(lines)


def _line(row: Row, ours: float | None) -> str:
    if not row.repetitions:
        return f"| {row.title} | not run: {row.note[:200]}" + " |" * (len(_HEAD) - 1)
    ratio = "" if not ours or row.contender == "ours" or row.warm is None else f"{row.warm / ours:.2f}"
    cells = [
        row.title,
        str(row.repetitions),
        _number(row.warm, 1),
        _number(row.cold, 1),
        ratio,
        _number(row.peak_bytes, 0, 2**20),
        _number(row.requests, 0),
        _number(row.received_bytes, 1, 1e6),
        _number(row.sent_bytes, 1, 1e6),
        str(row.files),
        _number(row.scan, 1),
        _number(row.point, 1),
    ]
    return "| " + " | ".join(cells) + " |"


def _remarks(rows: Sequence[Row]) -> list[str]:
    """What a table has no column for."""
    said = [f"{row.title}: {row.note[:300]}" for row in rows if row.repetitions and row.note]
    said += [
        f"{row.title}: last batch {row.last_to_first:.2f} × the first, {row.small_files} files under 32 MiB"
        for row in rows
        if row.last_to_first is not None
    ]
    said += [f"{row.title}: re-applied in {row.redo:.1f} s" for row in rows if row.redo is not None]
    return ["", *(f"- {text}" for text in said)] if said else []


def _number(value: float | None, digits: int, unit: float = 1) -> str:
    return "" if value is None else f"{value / unit:,.{digits}f}"
