"""`dmslake watch`: how all tables stand, in a terminal, again and again."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Callable

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from controller.cli.call import Call, not_empty, warn, with_call
from controller.cli.output import Answer, View, duration_text, say
from controller.cli.watch_screen import Size, needs_lines, plain_rows, screen
from controller.host import Host, this_machine
from controller.pages.pages import Pages
from controller.pages.views import Overview
from controller.reads import LookingClients, NoAnswerYet, Reads
from controller.session import open_session
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.printable import printable

WATCH = 1
OPTIONAL = (("kind",), ("waiting",), ("files",), ("bytes",), ("rows",))
FRAMES_PER_SECOND = 2  # of the screen: ages and the size of the terminal; AWS is read every so many seconds
PATIENCE_SECONDS = 5.0  # after which the screen says that it still waits for AWS


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@click.option(
    "--every", "every_seconds", type=click.FloatRange(1, 3600), default=5.0, show_default=True, metavar="SECONDS",
    help="Read the tables anew after so long.",
)  # fmt: skip
@with_call
def watch(call: Call, paths: tuple[str, ...], every_seconds: float) -> int:
    """Show in the terminal how all tables, or those named, stand, those that need a person first, until Ctrl-C.

    Where the output is not a terminal, or with --output json, they are shown once.
    """
    host = this_machine(lambda event, details: None)
    pages = Pages(open_session(call.settings, host, LookingClients))

    if call.format == "json" or not sys.stdout.isatty():
        return _once(call, pages.overview(paths))
    return Watch(host, lambda: pages.glance(paths), every_seconds).run(Console(markup=False, highlight=False))


def _once(call: Call, overview: Overview) -> int:
    warn(overview.warnings)
    columns, rows = plain_rows(overview.tables, overview.now)
    data = {"watch": WATCH, **asdict(overview)}
    call.output.show(Answer(data, [View(columns, rows, OPTIONAL)], needs_lines(overview.tables)))
    if call.format != "json":
        say("shown once: the output is not a terminal")
    return 0


@dataclass(frozen=True)
class Seen:
    """What is on the screen. failed: why it could not be read since."""

    overview: Overview
    at: datetime
    failed: str = ""


class Watch:
    """The loop of a watched terminal. read: an overview from AWS."""

    def __init__(self, host: Host, read: Callable[[], Overview], every_seconds: float) -> None:
        self._host, self._read, self._every_seconds = host, read, every_seconds
        self._reads = Reads(kept_seconds=0.0, wait_seconds=PATIENCE_SECONDS)

    def run(self, console: Console) -> int:
        """Until Ctrl-C. What is wrong before the first overview is there is raised, as by any command."""
        say("reading …")
        try:
            frame = _Frame(self._first(), self._host.now, self._every_seconds)
            with Live(frame, console=console, screen=True, refresh_per_second=FRAMES_PER_SECOND):
                while True:
                    threading.Event().wait(self._every_seconds)
                    frame.seen = self._next(frame.seen)
        except KeyboardInterrupt:
            return self._leave()

    def _first(self) -> Seen:
        while True:
            try:
                return Seen(self._reads.ask("overview", self._read), self._host.now())
            except NoAnswerYet as error:
                say(error.message)

    def _next(self, seen: Seen) -> Seen:
        try:
            return Seen(self._reads.ask("overview", self._read), self._host.now())
        except Exception as error:  # noqa: BLE001 - the screen stays, and says what is wrong
            return replace(seen, failed=aws_error(error).message)

    def _leave(self) -> int:
        if self._reads.are_going_on():  # the threads of a read that hangs would keep the process for minutes
            sys.stdout.flush()
            os._exit(0)
        return 0


class _Frame:
    """The screen as of the moment and the size at which it is drawn."""

    def __init__(self, seen: Seen, now: Callable[[], datetime], every_seconds: float) -> None:
        self.seen, self._now, self._every_seconds = seen, now, every_seconds

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = self._now()
        age = duration_text(max((now - self.seen.at).total_seconds(), 0.0))
        foot = Text(f"read {age} ago, every {self._every_seconds:g} s; Ctrl-C ends", "dim")
        if self.seen.failed:
            foot = Text(printable(f"as of {age} ago; since then: {self.seen.failed}"), "bold red")
        yield screen(self.seen.overview, now, Size(*console.size), foot)
