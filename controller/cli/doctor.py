"""`dmslake doctor`: what is wrong with this installation, and the line that mends it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import asdict

import click

from controller.cli.call import Call, with_call
from controller.cli.output import Answer, View
from controller.doctor.examine import Scene, examine
from controller.doctor.finding import BLOCKS, FINE, LEVELS, WARNS, Finding, worst_first
from controller.doctor.looks import DoctorClients
from glue_jobs.core.printable import printable

DOCTOR = 1
LEAST_ROLLBACK_DAYS = 7  # the least that the template lake.yaml takes
CONFIGURATION = 3
COLUMNS = ("", "check", "where", "found", "expected")


@click.command()
@click.option(
    "--rollback-days", type=click.IntRange(1), default=LEAST_ROLLBACK_DAYS, metavar="DAYS", show_default=True,
    help="How many days a rollback should be able to go back: the lake bucket's lifecycle is compared with it.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="Show only what blocks or warns.")
@with_call
def doctor(call: Call, rollback_days: int, quiet: bool) -> int:
    """Look at this machine and the installation that the settings name, and say what is wrong, with a line that mends it.

    Nothing is written. Exit code 3 if something blocks: runs fail, or could lose something.
    """
    find_java = importlib.import_module("glue_jobs.spark.java").find_java_home
    found = examine(Scene(call.settings, DoctorClients(os.environ), find_java, rollback_days))
    shown = [finding for finding in worst_first(found) if not (quiet and finding.level == FINE)]
    call.output.show(Answer(_data(shown, found), [View(COLUMNS, [_row(finding) for finding in shown])], _lines(shown)))
    return CONFIGURATION if any(finding.level == BLOCKS for finding in found) else 0


def _data(shown: Sequence[Finding], found: Sequence[Finding]) -> dict[str, object]:
    counts = {level: sum(finding.level == level for finding in found) for level in LEVELS}
    return {"doctor": DOCTOR, **counts, "findings": [asdict(finding) for finding in shown]}


def _row(finding: Finding) -> list[str]:
    return [printable(text) for text in (finding.level, finding.check, finding.where, finding.found, finding.expected)]


def _lines(shown: Sequence[Finding]) -> list[str]:
    """What each finding means, as comments of a shell, and below them the line that mends it; one that several share stands once."""
    wrong = [finding for finding in shown if finding.level in (BLOCKS, WARNS)]
    lines: list[str] = []
    for fix, todo in dict.fromkeys((finding.fix, finding.todo) for finding in wrong):
        named = [finding for finding in wrong if (finding.fix, finding.todo) == (fix, todo)]
        lines += ["", *(f"# {finding.level}: {finding.check}, {finding.where}: {finding.what}" for finding in named)]
        lines += [f"# what to do: {todo}"] if todo else []
        lines += [fix] if fix else []
    blocking = sum(finding.level == BLOCKS for finding in wrong)
    return [*map(printable, lines), "", f"{blocking} finding(s) block, {len(wrong) - blocking} warn"]
