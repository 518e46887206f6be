"""What README.md and benchmarks/README.md show of all pages of results: how many times as long others took, and where they were faster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data.workloads import WORKLOADS
from benchmarks.folders import RESULTS
from benchmarks.measuring.campaign import Outcome
from benchmarks.reporting.summary import Row, summarize

PAGES = {
    "10000000-many-sequence": "700 files",
    "10000000-large-sequence": "128 MB files",
    "10000000-many-uuid": "700, random keys",
    "10000000-large-uuid": "128 MB, random keys",
}
DELTA, COPY, READ = "Delta Lake", "Iceberg, copy-on-write", "Iceberg, merge-on-read"
# (workload, what it is, (contender, how it is called)).
COMPARED = (
    (
        "W1",
        "2,000 scattered changes",
        (
            ("delta", DELTA),
            ("delta-matched", f"{DELTA}, told that nothing is new"),
            ("iceberg", COPY),
            ("iceberg-matched", f"{COPY}, told that nothing is new"),
            ("iceberg-mor", f"{READ}: readers pay later"),
            ("delta-rs", "delta-rs, without Spark"),
            ("sample", "the AWS sample"),
            ("hudi", "Hudi"),
        ),
    ),
    (
        "W2",
        "2,000 changes of the newest rows",
        (
            ("delta", DELTA),
            ("delta-range", f"{DELTA}, told the range of their keys"),
            ("iceberg", COPY),
            ("iceberg-range", f"{COPY}, told the range of their keys"),
            ("delta-rs", "delta-rs, without Spark"),
        ),
    ),
    ("W3", "500,000 scattered changes", (("iceberg", COPY), ("iceberg-mor", f"{READ}: readers pay later"))),
    ("W5", "24 hourly batches of the newest rows and new ones", (("delta", DELTA), ("iceberg", COPY))),
    (
        "W7",
        "a full load, partitioned and sorted",
        (("plain-direct", "Spark's writer, each file uploaded once"), ("plain", "Spark's writer as it comes: files are moved")),
    ),
)
# What is less than this much faster may be the hour's doing.
FASTER = 0.9
MEASURES = (
    ("warm", "in a session that runs"),
    ("cold", "with the start of its process"),
    ("redo", "the way back"),
    ("scan", "a full scan afterwards"),
    ("point", "a query for one key afterwards"),
)


@dataclass(frozen=True)
class Page:
    """A page of results: its name, how the tables call it, and its rows by workload and contender."""

    name: str
    called: str
    rows: Mapping[tuple[str, str], Row]


def read_pages(results: Path = RESULTS) -> list[Page]:
    """The pages, in the tables' order. Raises FileNotFoundError."""
    return [Page(name, called, _rows(results / f"{name}.json")) for name, called in PAGES.items()]


def _rows(path: Path) -> dict[tuple[str, str], Row]:
    outcomes = [Outcome(**each) for each in json.loads(path.read_text())["outcomes"]]
    return {(row.workload, row.contender): row for row in summarize(outcomes)}


def times_as_long(pages: Sequence[Page], link: str) -> str:
    """A Markdown table: of each workload and contender the warm seconds by dmslake's, within the same runs. link: to the pages' folder."""
    lines = [
        "| times as long as dmslake | | " + " | ".join(f"[{page.called}]({link}{page.name}.md)" for page in pages) + " |",
        "| --- " * (2 + len(pages)) + "|",
    ]
    for workload, what, contenders in COMPARED:
        said = what
        for name, called in contenders:
            cells = [_ratio(page.rows.get((workload, name))) for page in pages]
            if any(cells):
                lines.append(f"| {said} | {called} | " + " | ".join(cell or "–" for cell in cells) + " |")
                said = ""
    return "\n".join(lines)


def _ratio(row: Row | None) -> str:
    if row is None or row.over_ours is None:
        return ""
    return f"{row.over_ours:.1f}" if row.over_ours < 10 else f"{row.over_ours:.0f}"


def workloads_table() -> str:
    """A Markdown table of the workloads' names."""
    return "\n".join(["| workload | |", "| --- | --- |", *(f"| {each.name} | {each.title} |" for each in WORKLOADS.values())])


def faster_elsewhere(pages: Sequence[Page], link: str) -> str:
    """A Markdown table of what took others less than FASTER of dmslake's seconds; the yardstick, which merges nothing, is no other."""
    lines = [f"| page | what | {' | '.join(('dmslake, s', 'faster, s'))} |", "| --- | --- | --- | --- |"]
    for page in pages:
        for workload in WORKLOADS:
            for measure, how in MEASURES:
                ours = getattr(page.rows.get((workload, "ours")), measure, None)
                if ours is None:
                    continue
                found = sorted((value, title) for value, title in _others(page, workload, measure) if value < FASTER * ours)
                if found:
                    others = ", ".join(f"{title} {value:.1f}" for value, title in found)
                    lines.append(f"| [{page.called}]({link}{page.name}.md) | {workload}, {how} | {ours:.1f} | {others} |")
    return "\n".join(lines)


def _others(page: Page, workload: str, measure: str) -> Iterator[tuple[float, str]]:
    for (of, name), row in page.rows.items():
        value = getattr(row, measure)
        if of == workload and name != "ours" and not name.startswith("plain") and value is not None:
            yield value, row.title
