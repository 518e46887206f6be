"""The commands put together, and the one place where errors become text and exit codes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from controller.cli.adopting import adopt
from controller.cli.applying import apply
from controller.cli.asking import recover, reload, repartition, schema, unblock, widen
from controller.cli.call import setting_options
from controller.cli.comparing import diff
from controller.cli.erasing import erase
from controller.cli.explaining import explain
from controller.cli.generating import generate_feed
from controller.cli.listing import settings
from controller.cli.local import capture, demo, up
from controller.cli.past import history, show
from controller.cli.reading import read
from controller.cli.running import plan
from controller.cli.running import run as run_command
from controller.cli.snapshotting import snapshot
from controller.cli.staging import commit, discard
from controller.cli.standing import status
from controller.cli.tables import activate, deactivate, tables
from controller.cli.undoing import reapply, rollback
from controller.cli.verifying import verify_command
from glue_jobs import __version__
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import DmslakeError

INTERRUPTED = 130
COMMANDS = (
    demo, up, capture, tables, activate, deactivate, plan, run_command, status,
    history, show, read, diff, explain, rollback, reapply, commit, discard, verify_command,
    apply, erase, adopt, reload, unblock, recover, schema, widen, repartition, snapshot, generate_feed, settings,
)  # fmt: skip


class InOrder(click.Group):
    """A group that lists its commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="dmslake")
@setting_options
def cli(**_: Any) -> None:
    """AWS DMS files on S3 to lake tables: plain Parquet that always equals the source table.

    Settings are options of every command, environment variables (DMSLAKE_RAW …) and Glue job arguments alike: `dmslake settings`.
    A table, PATH, is bucket/prefix/schema/table, or schema.table where that is unique.

    Exit codes: 0 fine or nothing to do; 1 a table failed or is blocked; 2 wrong call; 3 configuration or credentials; 4 lease held;
    5 `verify` found a difference.
    """


for _command in COMMANDS:
    cli.add_command(_command)


def run(argv: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    debug = "--debug" in argv
    try:
        return int(cli.main(args=list(argv), prog_name="dmslake", standalone_mode=False) or 0)
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader (head, less) has gone: say nothing
        return 0
    except DmslakeError as error:
        return _fail(error, error, debug)
    except Exception as error:  # noqa: BLE001 - the outermost place: a person gets words, a traceback only on request
        return _fail(aws_error(error), error, debug)


def _fail(said: DmslakeError, error: BaseException, debug: bool) -> int:
    click.echo(f"dmslake: {said}", err=True)
    if debug:
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    elif said.code == "unexpected":
        click.echo("  (--debug shows where)", err=True)
    return said.exit_code
