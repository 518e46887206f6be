"""The sources file of the Snapshot job: JSON or YAML, on this machine or in S3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glue_jobs.aws.objects import read_bytes
from glue_jobs.core.errors import ConfigurationError, TableBlocked, UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.snapshot_sources import entry_of


def read_entry(s3: Any, address: str, table: str) -> Mapping[str, Any]:
    """The table's entry in the sources file at `address`; UsageError that says what is wrong with it. {} where no file is given."""
    if not address or not table:
        return {}
    return entry_of(_parsed(_text(s3, address), address), table, address)


def _text(s3: Any, address: str) -> str:
    try:
        if address.startswith("s3"):
            at = S3Uri.parse(address)
            return read_bytes(s3, at.bucket, at.key).decode()
        return Path(address).read_text("utf-8")
    except TableBlocked as error:
        raise UsageError(f"the sources file {address} is not there", "bad-sources", "correct its address") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the sources file {address} can't be read: {error}", "bad-sources", "correct its address, or the file") from error


def _parsed(text: str, address: str) -> Any:
    """JSON by its ending, else YAML, of which JSON is a part."""
    if address.endswith(".json"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise _damaged(address, error) from error
    try:
        import yaml
    except ImportError as error:
        raise ConfigurationError(
            f"the sources file {address} is YAML, and the package pyyaml is not installed",
            "no-package",
            "install it (extra `jobs`; on Glue --additional-python-modules pyyaml), or write the file as .json",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _damaged(address, error) from error


def _damaged(address: str, error: Exception) -> UsageError:
    return UsageError(f"the sources file {address} can't be read: {' '.join(str(error).split())[:300]}", "bad-sources", "correct the file")
