"""`dmslake demo | up | capture`: what runs on this machine, without an AWS account. Loaded when it is called: it needs more packages."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from controller.cli.call import Call, not_empty, with_call
from controller.ports import listening
from controller.raw_scope import RawScope
from glue_jobs.aws.clients import make_clients
from glue_jobs.core.errors import ConfigurationError, to_install
from glue_jobs.core.given import split_key
from glue_jobs.core.printable import printable


def _require(packages: Sequence[str], extra: str) -> None:
    """Refuse, before anything is started, if a package isn't installed; some are only needed by processes that are started later."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(f"the package {package} is not installed", "no-package", to_install(extra))


@contextmanager
def _that_starts() -> Iterator[None]:
    """Within it, an embedded AWS that does not start is a ConfigurationError."""
    embedded: Any = importlib.import_module("infra.local.embedded")
    try:
        yield
    except embedded.NotStarted as error:
        todo = "put right what the message names; `dmslake up --folder FOLDER` keeps the server's log, server.log"
        raise ConfigurationError(str(error), "no-embedded-aws", todo) from error


def _say(text: str) -> None:
    """A text of one line or several; what stands in a line can't make another."""
    for line in text.split("\n"):
        click.echo(printable(line))


@click.command()
@click.option("--spark", is_flag=True, help="Have Spark do all the work, also what is so little that the jobs do it without.")
def demo(spark: bool) -> int:
    """Run the main job end to end on this machine: a shop's tables, two rounds of changes, and what they did."""
    _require(("moto", "pyarrow", "pyspark"), "local")
    module = importlib.import_module("infra.local.demo")
    with _that_starts():
        return int(module.run_demo(_say, spark) or 0)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; 0: any free one.")
@click.option("--folder", type=click.Path(file_okay=False), callback=not_empty, help="Where the logs of job runs go.")
@click.option("--schedule", is_flag=True, help="Start the controller when the stack's schedule says so: every hour.")
def up(port: int, folder: str | None, schedule: bool) -> int:
    """Start an embedded AWS with buckets, state table and jobs, and keep it until Ctrl-C."""
    _require(("moto", "aws_croniter"), "local")
    listening(port).close()  # the server, a process of its own, could say it in words of its own only
    module = importlib.import_module("infra.local.up")
    with _that_starts():
        return int(module.run_up(_say, port=port, folder=Path(folder) if folder else None, schedule=schedule) or 0)


@click.command()
@click.option("--mysql", required=True, metavar="URL", help="mysql://user[:password]@host:port/database")
@click.option("--full-load", is_flag=True, help="Begin with all rows of the tables.")
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--interval", "interval_seconds", type=click.FloatRange(0.1), default=60.0, metavar="SECONDS", show_default=True,
    help="With --follow: seconds of changes in one CDC file.",
)  # fmt: skip
@click.option("--tables", metavar="A,B", callback=not_empty, help="Only these, comma separated as in CSV. [default: all, later ones too]")
@click.option("--before-images", is_flag=True, help="Write the row before an update in BI_ columns, by which a changed key is told.")
@click.option("--timestamp-column", metavar="NAME", callback=not_empty, help="Write the commit time in a column of this name.")
@functools.partial(with_call, outputs=())  # it goes on for long, and answers nothing
def capture(call: Call, mysql: str, tables: str | None, **given: Any) -> int:
    """Write a MySQL or MariaDB database's rows and changes to --raw, as DMS would."""
    raw = RawScope.parse(call.settings.require("raw").raw).folder_to_write()
    _require(("pyarrow", "pymysql", "pymysqlreplication"), "local,capture")
    module = importlib.import_module("infra.local.capture")
    only = [name for name in split_key(tables) if name] if tables else None
    return int(module.run_capture(mysql, raw, echo=_say, tables=only, s3_client=make_clients(os.environ).s3, **given) or 0)
