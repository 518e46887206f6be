"""Where the marks of pictures go: bars and lines as numbers, which templates make SVG of. Pure. Lengths are pixels, y grows downwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from controller.history import LOST, STEP, UNDONE
from controller.pages.steps import bar
from controller.pages.views import Bar, Step

SPARK_HEIGHT, SPARK_SLOT, SPARK_BAR = 22, 6, 5
SLOT, WIDEST_SLOT, USUAL_WIDTH = 16, 36, 880  # of the timeline: a change's width; few changes have more, up to the usual width
UP, DOWN = 84, 30  # its bars above and below the line
GAP, WRITTEN = 14, 40  # below them the bars of written bytes
RAIL, LANE, ARC = 26, 16, 12  # below those the line that the table's rows took, and undone changes beside it
BAR = 0.68  # the part of a change's width that its bar takes
TIMELINE = "changes from left to right, the oldest first"
LEAST = 1.5  # of what is not nothing
SIZES_HEIGHT, SIZES_SLOT, SIZES_BAR = 18, 5, 4


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    kind: str  # its CSS class
    title: str = ""


@dataclass(frozen=True)
class Line:
    """A path of SVG. kind: its CSS class."""

    path: str
    kind: str


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    kind: str
    title: str = ""


@dataclass(frozen=True)
class Picture:
    """A drawing of that size."""

    width: float
    height: float
    rects: tuple[Rect, ...] = ()
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    label: str = ""


def spark(recent: Sequence[Bar]) -> Picture:
    """A table's last changes as small bars, oldest first; heights are logarithmic."""
    most = max((each.rows for each in recent), default=0)
    rects = []
    for place, each in enumerate(recent):
        height = _log(each.rows, most, SPARK_HEIGHT) if each.rows else 1.0
        kind = "undone" if each.undone else "none" if not each.rows else _main_kind(each)
        title = f"{each.kind}: {each.inserted:,} inserted, {each.updated:,} updated, {each.deleted:,} deleted"
        rects.append(Rect(place * SPARK_SLOT, SPARK_HEIGHT - height, SPARK_BAR, height, kind, title))
    label = f"rows changed by the last {len(recent)} changes, {most:,} at most"
    return Picture(max(1, len(recent)) * SPARK_SLOT, SPARK_HEIGHT, tuple(rects), label=label)


def _main_kind(each: Bar) -> str:
    """What a change mostly did."""
    return max((each.inserted, "inserted"), (each.updated, "updated"), (each.deleted, "deleted"))[1]


def _log(value: float, most: float, height: float) -> float:
    """A height for a number from 0 to `most`: logarithmic, and to be seen if it is not nothing."""
    if value <= 0 or most <= 0:
        return 0.0
    return round(max(LEAST, height * math.log1p(value) / math.log1p(most)), 2)


def sizes(bytes_of_files: Sequence[int], small_bytes: int, is_many: bool) -> Picture:
    """Files of a partition as bars of their size; small ones are marked where there are several that could be one."""
    most = max((*bytes_of_files, small_bytes), default=0)
    rects = (
        Rect(place * SIZES_SLOT, SIZES_HEIGHT - height, SIZES_BAR, height, "small" if size < small_bytes and is_many else "file")
        for place, size in enumerate(bytes_of_files)
        for height in (_log(size, most, SIZES_HEIGHT),)
    )
    return Picture(max(1, len(bytes_of_files)) * SIZES_SLOT, SIZES_HEIGHT, tuple(rects), label="sizes of the files, the largest first")


def timeline(steps: Sequence[Step]) -> Picture:
    """Changes (newest first) from left to right, oldest first: rows changed; below, bytes written with the part of changed rows; below,
    the line that the table's rows took, with undone changes beside it and the way that each rollback and re-apply went."""
    shown = list(reversed(steps))
    slot = min(WIDEST_SLOT, max(SLOT, USUAL_WIDTH // max(1, len(shown))))
    rects = [*_rows(shown, slot), *_written(shown, slot, UP + DOWN + GAP)]
    top = UP + DOWN + GAP + WRITTEN + RAIL
    lines, dots = _rail(shown, slot, top)
    height = top + LANE + ARC + 8
    width = max(1, len(shown)) * slot
    return Picture(width, height, tuple(rects), (Line(f"M0 {UP}H{width}", "axis"), *lines), dots, TIMELINE)


def _rows(shown: Sequence[Step], slot: int) -> list[Rect]:
    most = max((max(step.inserted + step.updated, step.deleted) for step in shown), default=0)
    rects: list[Rect] = []
    for place, step in enumerate(shown):
        x, suffix = place * slot + slot * (1 - BAR) / 2, " undone" if bar(step, step.standing).undone else ""
        title = f"{step.change}: {step.inserted:,} inserted, {step.updated:,} updated, {step.deleted:,} deleted"
        up = step.inserted + step.updated
        whole, bottom = max(_log(up, most, UP), 2 * LEAST), float(UP)
        for count, kind in ((step.inserted, "inserted"), (step.updated, "updated")):
            if count:
                height = round(min(max(whole * count / up, LEAST), whole if count == up else whole - LEAST), 2)
                rects.append(Rect(x, round(bottom - height, 2), slot * BAR, height, kind + suffix, title))
                bottom -= height
        if step.deleted:
            rects.append(Rect(x, UP, slot * BAR, _log(step.deleted, most, DOWN), "deleted" + suffix, title))
    return rects


def _written(shown: Sequence[Step], slot: int, top: float) -> list[Rect]:
    most = max((step.bytes_written for step in shown), default=0)
    rects: list[Rect] = []
    for place, step in enumerate(shown):
        if not step.bytes_written:
            continue
        x, height = place * slot + slot * (1 - BAR) / 2, _log(step.bytes_written, most, WRITTEN)
        title = f"{step.change}: {step.rows_written:,} rows written for {step.rows_changed:,} that changed"
        rects.append(Rect(x, round(top + WRITTEN - height, 2), slot * BAR, height, "written", title))
        part = round(height * (step.bytes_changed or 0) / step.bytes_written, 2)
        if part:
            rects.append(Rect(x, round(top + WRITTEN - part, 2), slot * BAR, part, "changed", title))
    return rects


def _rail(shown: Sequence[Step], slot: int, top: float) -> tuple[list[Line], tuple[Dot, ...]]:
    lines: list[Line] = []
    dots: list[Dot] = []
    place_of = {step.change: place for place, step in enumerate(shown)}
    last: tuple[float, float] | None = None
    last_main: tuple[float, float] | None = None
    for place, step in enumerate(shown):
        x, aside = (place + 0.5) * slot, step.standing in (UNDONE, LOST)
        y = top + LANE if aside else top
        if aside and last is not None:
            lines.append(Line(f"M{last[0]} {last[1]}L{x} {y}", "aside"))
        if not aside and last_main is not None:
            lines.append(Line(f"M{last_main[0]} {last_main[1]}L{x} {y}", "main"))
        if step.standing == STEP or step.target:
            target = place_of.get(step.target)
            lines.append(_way(x, top, 0.0 if target is None else (target + 0.5) * slot, step.kind))
        dots.append(Dot(x, y, _dot_kind(step, aside), f"{step.change}: {step.kind}"))
        last = (x, y)
        last_main = last_main if aside else last
    return lines, tuple(dots)


def _way(x: float, top: float, to: float, kind: str) -> Line:
    """The way to the change whose state was restored, which begins at `to`; at the left edge where that is not shown."""
    word = "forth" if kind == "reapply" else "back"
    above = -1 if word == "forth" else 1
    bend = top - ARC * 1.6 if above < 0 else top + LANE + ARC * 1.4
    return Line(f"M{x} {top}C{x} {bend} {to} {bend} {to} {top}", word)


def _dot_kind(step: Step, aside: bool) -> str:
    if aside:
        return "lost" if step.standing == LOST else "undone"
    return "step" if step.target or step.standing == STEP else "live"
