"""Any exception as a problem that a report can show."""

from __future__ import annotations

from controller.plan import Problem
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import to_install

NO_PYARROW = f"{to_install('jobs')}, or '.[local]' with all that this machine can do"


def problem_of(error: Exception) -> Problem:
    """AWS's errors in our words, anything unforeseen named as a defect."""
    return Problem.of(aws_error(error))
