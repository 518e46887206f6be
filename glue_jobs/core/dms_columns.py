"""The columns that DMS puts beside a table's own: the operation, the change sequence, before images."""

from __future__ import annotations

from collections.abc import Sequence

OP_COLUMN = "Op"
SEQUENCE_COLUMN = "AR_H_CHANGE_SEQ"
BEFORE_PREFIX = "BI_"


def excluded_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Those of a file's columns that the lake does not take up, `Op` aside: the change sequence and before images.

    Before images are the last columns, and each stands for one before them: a source's own BI_… column is told apart by that.
    """
    data = list(names)
    images: list[str] = []
    while data and data[-1].startswith(BEFORE_PREFIX) and data[-1][len(BEFORE_PREFIX) :] in data[:-1]:
        images.insert(0, data.pop())
    sequence = [SEQUENCE_COLUMN] if SEQUENCE_COLUMN in data else []
    return (*sequence, *images)
