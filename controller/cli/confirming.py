"""Asking a person before something is done that can't be taken back easily."""

from __future__ import annotations

import sys

import click

from glue_jobs.core.errors import UsageError


def confirmed(yes: bool, question: str, why: str) -> bool:
    """The answer; True without a question where --yes was given. Raises UsageError, with `why`, where nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        todo = f"look with --dry-run, then give --yes; {why}"
        raise UsageError("nobody can be asked here: this is no terminal", "not-confirmed", todo)
    return bool(click.confirm(question, err=True))
