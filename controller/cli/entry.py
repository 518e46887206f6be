"""The commands put together, and the one place where errors become text and exit codes."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Callable

import click

from controller.cli.call import setting_options
from controller.cli.output import accept_any_text, end_output, say, say_error, unheard
from glue_jobs import __version__
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import DmslakeError

INTERRUPTED = 130
# Loaded when it is called: all of them together take longer to import than most commands work.
COMMANDS: dict[str, Callable[[], click.Command]] = {
    "demo": lambda: importlib.import_module("controller.cli.local").demo,
    "up": lambda: importlib.import_module("controller.cli.local").up,
    "capture": lambda: importlib.import_module("controller.cli.local").capture,
    "build": lambda: importlib.import_module("controller.cli.deploying").build,
    "deploy": lambda: importlib.import_module("controller.cli.deploying").deploy,
    "tables": lambda: importlib.import_module("controller.cli.tables").tables,
    "activate": lambda: importlib.import_module("controller.cli.tables").activate,
    "deactivate": lambda: importlib.import_module("controller.cli.tables").deactivate,
    "plan": lambda: importlib.import_module("controller.cli.running").plan,
    "run": lambda: importlib.import_module("controller.cli.running").run,
    "status": lambda: importlib.import_module("controller.cli.standing").status,
    "watch": lambda: importlib.import_module("controller.cli.watching").watch,
    "serve": lambda: importlib.import_module("controller.cli.serving").serve,
    "report": lambda: importlib.import_module("controller.cli.reporting").report,
    "doctor": lambda: importlib.import_module("controller.cli.doctor").doctor,
    "history": lambda: importlib.import_module("controller.cli.past").history,
    "show": lambda: importlib.import_module("controller.cli.past").show,
    "read": lambda: importlib.import_module("controller.cli.reading").read,
    "diff": lambda: importlib.import_module("controller.cli.comparing").diff,
    "explain": lambda: importlib.import_module("controller.cli.explaining").explain,
    "rollback": lambda: importlib.import_module("controller.cli.undoing").rollback,
    "reapply": lambda: importlib.import_module("controller.cli.undoing").reapply,
    "commit": lambda: importlib.import_module("controller.cli.staging").commit,
    "discard": lambda: importlib.import_module("controller.cli.staging").discard,
    "verify": lambda: importlib.import_module("controller.cli.verifying").verify_command,
    "create": lambda: importlib.import_module("controller.cli.creating").create,
    "insert": lambda: importlib.import_module("controller.cli.editing").insert,
    "update": lambda: importlib.import_module("controller.cli.editing").update,
    "delete": lambda: importlib.import_module("controller.cli.editing").delete,
    "fake": lambda: importlib.import_module("controller.cli.faking").fake,
    "apply": lambda: importlib.import_module("controller.cli.applying").apply,
    "erase": lambda: importlib.import_module("controller.cli.erasing").erase,
    "adopt": lambda: importlib.import_module("controller.cli.adopting").adopt,
    "forget": lambda: importlib.import_module("controller.cli.forgetting").forget,
    "reload": lambda: importlib.import_module("controller.cli.asking").reload,
    "unblock": lambda: importlib.import_module("controller.cli.asking").unblock,
    "recover": lambda: importlib.import_module("controller.cli.asking").recover,
    "schema": lambda: importlib.import_module("controller.cli.asking").schema,
    "widen": lambda: importlib.import_module("controller.cli.asking").widen,
    "repartition": lambda: importlib.import_module("controller.cli.asking").repartition,
    "backfill-history": lambda: importlib.import_module("controller.cli.backfilling").backfill_history,
    "snapshot": lambda: importlib.import_module("controller.cli.snapshotting").snapshot,
    "feed": lambda: importlib.import_module("controller.cli.feeding").feed,
    "generate-feed": lambda: importlib.import_module("controller.cli.generating").generate_feed,
    "settings": lambda: importlib.import_module("controller.cli.listing").settings,
}


class Commands(MutableMapping[str, click.Command]):
    """The commands by name, each loaded when it is asked for."""

    def __init__(self, loaders: Mapping[str, Callable[[], click.Command]]) -> None:
        self._loaders = dict(loaders)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            self._loaded[name] = self._loaders[name]()
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaders[name] = lambda: command

    def __delitem__(self, name: str) -> None:
        del self._loaders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


class ReaderGone(Exception):
    """Nobody reads any more what is being printed, a piece after the other: head has its lines, a person has left less."""


@contextmanager
def _watching_the_pipe() -> Iterator[None]:
    """Within it, a pipe without a reader is a ReaderGone. A BrokenPipeError would not get past click, which ends with 1 at it."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class InOrder(click.Group):
    """A group that lists its commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """The context of a call. `--help` is printed here."""
        with _watching_the_pipe():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Do what is called for."""
        with _watching_the_pipe():
            return super().invoke(ctx)


@click.group(cls=InOrder, commands=Commands(COMMANDS), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="dmslake")
@setting_options
def cli(**_: Any) -> None:
    """AWS DMS files on S3 to lake tables: plain Parquet that always equals the source table.

    Settings are options of every command, environment variables (DMSLAKE_RAW …) and Glue job arguments alike: `dmslake settings`.
    A table, PATH, is bucket/prefix/schema/table, or schema.table where that is unique.

    Exit codes: 0 fine or nothing to do; 1 a table failed or is blocked; 2 wrong call; 3 configuration or credentials; 4 lease held;
    5 `verify` found a difference; 130 Ctrl-C (0 where that is how a command ends: serve, watch, up, capture --follow).
    """


def run(argv: Sequence[str]) -> int:
    """Run one command line; the exit code. It stands whether what is printed can be written or not, but for an answer that a full disk
    does not take."""
    accept_any_text()
    try:
        return _run(argv)
    finally:
        end_output()


def _run(argv: Sequence[str]) -> int:
    debug = "--debug" in argv
    try:
        return int(cli.main(args=list(argv), prog_name="dmslake", standalone_mode=False) or 0)
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.ClickException as error:
        with unheard(sys.stderr, OSError):
            error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except ReaderGone:
        return 0
    except DmslakeError as error:
        return _fail(error, error, debug)
    except Exception as error:  # noqa: BLE001 - the outermost place: a person gets words, a traceback only on request
        return _fail(aws_error(error), error, debug)


def _fail(said: DmslakeError, error: BaseException, debug: bool) -> int:
    say_error(said)
    if debug:
        with unheard(sys.stderr, OSError):
            traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    elif said.code == "unexpected":
        say("  (--debug shows where)")
    return said.exit_code
