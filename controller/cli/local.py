"""`dmslake demo | up | capture`: what runs on this machine, without an AWS account. Loaded when it is called: it needs more packages."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Callable

import click

from controller.cli.call import Call, with_call
from glue_jobs.core.errors import ConfigurationError


def _load(load: Callable[[], ModuleType], extra: str) -> ModuleType:
    """The module, or an error that says how to install what it lacks."""
    try:
        return load()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("glue_jobs", "controller", "infra"):
            raise
        raise ConfigurationError(f"the package {error.name} is not installed", "no-package", f"pip install 'dmslake[{extra}]'") from error


def _say(text: str) -> None:
    click.echo(text)


@click.command()
def demo() -> int:
    """Run the main job end to end on this machine: a shop's tables, two rounds of changes, and what they did."""
    module = _load(lambda: importlib.import_module("infra.local.demo"), "local")
    return int(module.run_demo(_say) or 0)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; 0: any free one.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where the logs of job runs go.")
def up(port: int, folder: Path | None) -> int:
    """Start an embedded AWS with buckets, state table and jobs, and keep it until Ctrl-C."""
    module = _load(lambda: importlib.import_module("infra.local.up"), "local")
    return int(module.run_up(_say, port=port, folder=folder) or 0)


@click.command()
@click.option("--mysql", required=True, metavar="URL", help="mysql://user[:password]@host:port/database")
@click.option("--full-load", is_flag=True, help="Begin with all rows of the tables.")
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--interval", "interval_seconds", type=click.FloatRange(0.1), default=60.0, help="Seconds of changes in one CDC file.")
@click.option("--timestamp-column", metavar="NAME", help="Write the commit time in a column of this name.")
@with_call
def capture(call: Call, mysql: str, full_load: bool, follow: bool, interval_seconds: float, timestamp_column: str | None) -> int:
    """Write a MySQL or MariaDB database's rows and changes to --raw, as DMS would."""
    raw = call.settings.require("raw").raw
    module = _load(lambda: importlib.import_module("infra.local.capture"), "local,capture")
    client = open_s3()
    return int(module.run_capture(mysql, raw, full_load, follow, interval_seconds, timestamp_column, _say, s3_client=client) or 0)


def open_s3() -> object:
    """The S3 client of this environment."""
    from glue_jobs.aws.clients import make_clients

    return make_clients(os.environ).s3
