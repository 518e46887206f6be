"""The Glue Python-shell job `Controller`: argv → settings → run → report. The report goes to stdout, logs to stderr, both as JSON lines.

Needs Python 3.9, boto3 and the standard library. Exits with the report's code, so that the Glue run is FAILED when a table failed; a
table whose lease another run holds is no failure.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from controller.host import Host, json_log, this_machine
from controller.metrics import metrics_line
from controller.report import LEASE_HELD_EXIT, REPORT, RunReport, table_dict
from controller.session import open_session
from glue_jobs.aws.garbage import collect_less
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.arguments import check_known, parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.printable import json_text, printable
from glue_jobs.core.settings import Settings, read_settings


def main(argv: Sequence[str], host: Host) -> int:
    """Run once; the exit code."""
    try:
        settings = job_settings(argv, host.variables)
        _, report = open_session(settings, host).run()
    except Exception as error:  # noqa: BLE001 - the job's log must say in words why it failed, whatever it was
        return print_failure(error, host)
    print_report(report)
    metrics = metrics_line(settings, report, host.now())
    if metrics is not None:
        print_line(metrics)
    if report.failures:
        print(printable(report.failures[0]), file=sys.stderr, flush=True)
    return 0 if report.exit_code == LEASE_HELD_EXIT else report.exit_code


def job_settings(argv: Sequence[str], variables: Mapping[str, str]) -> Settings:
    """The settings in a Glue job's arguments. The AWS sample's `--bucket` and `--prefix` are taken as the raw folder."""
    given: dict[str, str | None] = dict(parse_arguments(argv))
    check_known(given, ("bucket", "prefix"))
    if given.get("bucket") and not given.get("raw"):
        given["raw"] = f"s3://{given['bucket']}/{(given.get('prefix') or '').strip('/')}"
    if "path" in given and not (given["path"] or "").replace(",", " ").strip():
        raise UsageError("--path is empty", "bad-argument", "name tables, separated by commas, or leave it out for all of them")
    return read_settings(given, variables)


def print_report(report: RunReport) -> None:
    """A line per table, then one with the totals: no line outgrows what a log takes."""
    for table in report.tables:
        print_line({"report": REPORT, "run_id": report.run_id, "table": table_dict(table)})
    print_line(report.head())


def print_failure(error: Exception, host: Host) -> int:
    """The error as a line on stdout and as text on stderr, whose last line Glue shows as the run's error message."""
    said = aws_error(error)
    if said.code == "unexpected":
        host.log("failed", {"trace": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-8000:]})
    print_line({"report": REPORT, "exit_code": said.exit_code, "error": {"code": said.code, "message": said.message, "todo": said.todo}})
    print(printable(f"{said.message} ({said.todo})" if said.todo else said.message), file=sys.stderr, flush=True)
    return said.exit_code


def print_line(data: Mapping[str, Any]) -> None:
    print(json_text(data), flush=True)


if __name__ == "__main__":
    collect_less()  # a listing's entries are made by the hundred thousand, and nothing of them waits for the collector
    CODE = main(sys.argv[1:], this_machine(json_log()))
    if CODE:  # without a failure the script just runs out: a Python shell logs any SystemExit, even 0, with a traceback
        sys.exit(CODE)
