"""The command line `dmslake`. Needs the extra `cli` (click, rich, boto3); only this folder may import click and rich."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from glue_jobs.core.errors import to_install

CLI_PACKAGES = ("click", "rich", "boto3", "botocore")


def main(argv: Sequence[str] | None = None) -> int:
    """The console entry: run `argv` (default: this process's arguments), return the exit code."""
    try:
        from controller.cli.entry import run
        from glue_jobs.aws.garbage import collect_less
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in CLI_PACKAGES:
            raise
        print(f"dmslake's command line needs the package {package}, which is not installed; {to_install('cli')}", file=sys.stderr)
        return 3
    if argv is None:
        collect_less()
    return run(sys.argv[1:] if argv is None else argv)
