"""What a check found."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

BLOCKS, WARNS, FINE = "blocks", "warns", "fine"
LEVELS = (BLOCKS, WARNS, FINE)


@dataclass(frozen=True)
class Finding:
    """One check's result.

    level: blocks (runs fail, or could lose something), warns, fine. check: its name, as docs/doctor.md lists it. where: the thing
    that was looked at. what: what it means for dmslake. fix: a line for the shell; todo: words, where no line can do it.
    """

    level: str
    check: str
    where: str
    what: str = ""
    expected: str = ""
    found: str = ""
    fix: str = ""
    todo: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By level, and within a level in the order in which they were found."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def aws_line(*words: str, **options: str) -> str:
    """A command of the AWS command line: options in the order given, underscores as hyphens, values quoted for the shell."""
    parts = ["aws", *words]
    for name, value in options.items():
        parts += ["--" + name.replace("_", "-"), *([value] if value else [])]
    return shlex.join(parts)
