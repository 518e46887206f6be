"""`dmslake serve`: the pages of all tables in a browser on this machine, live."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from typing import Any

import click

from controller.cli.call import Call, with_call
from controller.cli.output import Answer, say
from controller.host import this_machine
from controller.reads import LookingClients, Reads
from controller.session import open_session
from glue_jobs.core.errors import ConfigurationError, to_install

SERVE = 1


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; 0: any free one.")
@click.option(
    "--every", "every_seconds", type=click.FloatRange(0, 3600), default=5.0, show_default=True, metavar="SECONDS",
    help="Pages load themselves again after so long; 0: never.",
)  # fmt: skip
@with_call
def serve(call: Call, port: int, every_seconds: float) -> int:
    """Show the tables, their changes and their rows in a browser on this machine, until Ctrl-C. Nothing can be changed there."""
    for package in ("jinja2", "werkzeug"):
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(f"the package {package} is not installed", "no-package", to_install("cli"))
    serving: Any = importlib.import_module("controller.pages.serve")
    session, reads = open_session(call.settings, this_machine(lambda event, details: None), LookingClients), Reads()
    debug = bool(click.get_current_context().find_root().params.get("debug"))
    app = serving.App(serving.Pages(session), reads, every_seconds, lambda address, error: _defect(address, error, debug))
    server = serving.listen(app, port)
    url = f"http://{serving.LOOPBACK}:{server.port}/"
    call.output.show(Answer({"serve": SERVE, "url": url}, (), [url]))
    say("Ctrl-C stops it")
    server.serve_forever()  # until Ctrl-C
    if reads.are_going_on():  # the threads of a read that hangs would keep the process for minutes
        sys.stdout.flush()
        os._exit(0)
    return 0


def _defect(address: str, error: BaseException, debug: bool) -> None:
    """Of a page that could not be made: words on stderr too, with --debug where."""
    say(f"dmslake: {address}: {type(error).__name__}: {error}")
    if debug:
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
