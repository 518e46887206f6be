"""The columns that DMS puts beside a table's own: the operation, the change sequence, before images."""

from __future__ import annotations

from collections.abc import Sequence

OP_COLUMN = "Op"
SEQUENCE_COLUMN = "AR_H_CHANGE_SEQ"
BEFORE_PREFIX = "BI_"


BEFORE_IMAGES = (BEFORE_PREFIX + "*",)  # how before images are named: the column's name in place of the *


def parse_before_images(text: str) -> tuple[str, ...]:
    """The patterns of before images' names that a person gives, comma separated: `OLD_` for names that begin so, `*_old` for names that
    end so. BEFORE_IMAGES for ''. ValueError for one that is none."""
    patterns = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern = part if "*" in part else part + "*"
        if pattern.count("*") != 1 or pattern == "*":
            raise ValueError(part)
        patterns.append(pattern)
    return tuple(dict.fromkeys(patterns)) or BEFORE_IMAGES


def before_images(names: Sequence[str], patterns: Sequence[str] = BEFORE_IMAGES) -> dict[str, str]:
    """Column → the column with its values before an update.

    Before images are the last columns, and each stands for one before them: a source's own BI_… column is told apart by that. The change
    sequence may stand anywhere, as where a task adds it after them.
    """
    data = [name for name in names if name != SEQUENCE_COLUMN]
    sequence = {SEQUENCE_COLUMN}.intersection(names)
    images: dict[str, str] = {}
    while data:
        before = sequence.union(data[:-1])
        column = next((found for pattern in patterns if (found := _column_of(data[-1], pattern)) in before), None)
        if column is None:
            break
        images[column] = data.pop()
    return dict(reversed(images.items()))


def image_of(image: str, column: str, other: str, patterns: Sequence[str] = BEFORE_IMAGES) -> str:
    """The name that the before image of `other` has where that of `column` has this one."""
    return next(pattern.replace("*", other) for pattern in patterns if _column_of(image, pattern) == column)


def _column_of(name: str, pattern: str) -> str | None:
    """The column whose image would have this name; None if none would."""
    start, _, end = pattern.partition("*")
    fits = len(name) > len(start) + len(end) and name.startswith(start) and name.endswith(end)
    return name[len(start) : len(name) - len(end)] if fits else None


def excluded_columns(names: Sequence[str], patterns: Sequence[str] = BEFORE_IMAGES) -> tuple[str, ...]:
    """Those of a file's columns that the lake does not take up, `Op` aside: the change sequence and before images."""
    sequence = [SEQUENCE_COLUMN] if SEQUENCE_COLUMN in names else []
    return (*sequence, *before_images(names, patterns).values())
