"""One call of a command: its settings, its output, its session; and the options that all commands have."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import click
from click.core import ParameterSource

from controller.cli.output import Answer, Output, make_output, say
from controller.cli.progress import make_progress
from controller.gather import Facts
from controller.host import this_machine
from controller.session import Session, open_session
from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.settings import DEFAULTS, MAY_BE_EMPTY, Settings, read_settings, setting_names
from glue_jobs.core.state import TableState

MEANINGS = {
    "raw": "where DMS writes: s3://bucket/prefix/, or s3://bucket/prefix/sales_* for some schemas",
    "lake": "where the lake tables are: s3://bucket/prefix/",
    "state_table": "the DynamoDB table with an item per table",
    "database": "the Glue database of the lake tables",
    "runner": "glue: runs of Glue jobs; local: processes on this machine",
    "job_prefix": "what stands before the Glue jobs' names; '' for nothing",
    "compression": "of new data files: zstd or snappy",
}
LIMIT_FIELDS = {item.name: item for item in fields(Limits)}
OUTPUTS = ("table", "json")
MOST = 2**31 - 1  # of what an option counts: more rows or changes than any table has, and a number that Arrow and Python's slices take
Command = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """settings: from options of the command, then of `dmslake` itself, then the environment, then defaults."""

    settings: Settings
    output: Output
    given: frozenset[str] = frozenset()  # names of the settings that stand on the command line
    format: str = "table"  # what --output names

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session on this machine, its log shown on stderr while it is open."""
        progress = make_progress()
        try:
            yield open_session(self.settings, this_machine(progress))
        finally:
            progress.close()

    def show(self, answer: Answer) -> int:
        """Print a good answer; exit code 0."""
        self.output.show(answer)
        return 0


def setting_options(command: Command, outputs: Sequence[str] = OUTPUTS) -> Command:
    """Add an option for every setting, `--output` unless there are no outputs, and `--debug`. Limits are options too, listed by
    `dmslake settings`."""
    for name in reversed(setting_names()):
        limit = LIMIT_FIELDS.get(name)
        text = limit.metadata["meaning"] if limit else MEANINGS.get(name, "")
        default = "" if limit or not DEFAULTS.get(name) else f" [default: {DEFAULTS[name]}]"
        flag = "--" + name.replace("_", "-")
        kind: dict[str, Any] = {"metavar": "NUMBER", "hidden": True} if limit else {"metavar": "TEXT"}
        kind["callback"] = None if name in MAY_BE_EMPTY else not_empty
        command = click.option(flag, name, help=text + default, **kind)(command)
    help_text = "Print for people, or one JSON document" + (", or CSV" if "csv" in outputs else "") + ". [default: table]"
    if outputs:
        command = click.option("--output", type=click.Choice(list(outputs)), help=help_text)(command)
    made: Command = click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")(command)
    return made


def with_call(command: Command, outputs: Sequence[str] = OUTPUTS) -> Command:
    """Give the command a Call as its first argument, made from the setting options of the group and its own."""

    @click.pass_context
    @functools.wraps(command)
    def wrapper(context: click.Context, **arguments: Any) -> Any:
        own = {name: arguments.pop(name, None) for name in (*setting_names(), "output", "debug")}
        outer: dict[str, Any] = context.find_root().params
        given = {name: outer.get(name) if value is None or value is False else value for name, value in own.items()}
        context.find_root().params["debug"] = given.pop("debug")
        wanted = str(given.pop("output") or "table")
        named = frozenset(name for name, value in given.items() if value is not None)
        return command(Call(read_settings(given, os.environ), make_output(wanted), named, wanted), **arguments)

    return setting_options(wrapper, outputs)


def not_empty(context: click.Context, option: click.Parameter, text: Any) -> Any:
    """The callback of an option or argument whose empty text, or one of its texts, says nothing; UsageError for one that is given: a
    shell's variable that is not set would ask for something else than what was meant."""
    texts = text if isinstance(text, tuple) else () if text is None else (text,)
    is_given = context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
    if is_given and not all(each.replace(",", " ").strip() for each in texts):
        name = "a PATH" if isinstance(text, tuple) else option.opts[0] if option.opts[0].startswith("-") else option.opts[0].upper()
        raise UsageError(f"{name} is empty", "bad-argument", "give it a value, or leave it out; is a variable not set?")
    return text


def warn(texts: Sequence[str]) -> None:
    """Warnings, on stderr."""
    say(*(f"warning: {text}" for text in texts))


def one_table(session: Session, path: str, **question: Any) -> tuple[Facts, TableState]:
    """The facts of the table that a person named; its error raised if its item can't be read."""
    (fact,) = session.gather((path,), alone=True, **question).tables
    if fact.state is None:
        assert fact.problem is not None
        raise fact.problem
    return fact, fact.state
