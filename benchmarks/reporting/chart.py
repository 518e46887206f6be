"""The summary as an SVG: for each workload a bar per contender, seconds of the warm run; those of the cold one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.data.workloads import WORKLOADS
from benchmarks.reporting.summary import Row

WIDTH, LABELS, BARS = 1090, 500, 390
LINE, HEAD, GAP = 22, 34, 14
_STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f } .head { font-weight: 600 } .other { fill: #8c959f } .ours { fill: #0969da }
    .yard { fill: #bf8700 } .paper { fill: #ffffff }
    @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #0d1117 } .ours { fill: #4493f8 } .other { fill: #6e7681 } }
"""


def chart(title: str, rows: Sequence[Row]) -> str:
    """An SVG document that reads on light and on dark pages. The bars of a workload share a scale."""
    drawn, y = [], HEAD
    for workload in dict.fromkeys(row.workload for row in rows):
        of_it = [row for row in rows if row.workload == workload and row.warm is not None]
        if len(of_it) < 2:  # nothing to compare
            continue
        drawn.append(_text(0, y, f"{workload}: {WORKLOADS[workload].title}", "head"))
        longest = max(row.warm or 0 for row in of_it)
        for row in of_it:
            y += LINE
            drawn += _bar(y, row, longest)
        y += LINE + GAP
    body = "\n  ".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 0 {WIDTH + 16} {y}" width="{WIDTH + 16}" height="{y}" role="img">\n'
        f"  <title>{escape(title)}</title>\n  <style>{_STYLE}</style>\n"
        f'  <rect class="paper" x="-8" y="0" width="100%" height="100%"/>\n  {body}\n</svg>\n'
    )


def _bar(y: int, row: Row, longest: float) -> list[str]:
    seconds = row.warm or 0
    width = max(2.0, BARS * seconds / longest)
    kind = "ours" if row.contender == "ours" else "yard" if row.contender.startswith("plain") else "other"
    bar = f'<rect class="{kind}" x="{LABELS}" y="{y - 13}" width="{width:.1f}" height="16" rx="2"/>'
    cold = f" (cold {row.cold:.1f})" if row.cold is not None else ""
    ratio = f", {row.over_ours:.1f} ×" if row.over_ours is not None else ""
    return [_text(0, y, row.title), bar, _text(LABELS + width + 6, y, f"{seconds:.1f} s{ratio}{cold}")]


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(text)}</text>'
