"""`awsglue.utils.getResolvedOptions`: the arguments of a job run, with the traps that the real one has.

Documented: `--name value` pairs, names without the hyphens in the result, some names reserved for Glue. Observed, and
held by a contract test against the official package: every asked-for name is required, unknown words are passed over,
an unambiguous beginning of a name binds, a value that looks like an option is refused, hyphens in names become
underscores in the result, and Glue's own names are in the result whether they were given or not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn


class GlueArgumentError(Exception):
    """The arguments do not fit what was asked for."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise GlueArgumentError(message)


_BOOKMARK = "job-bookmark-option"
_BOOKMARKS = ("job-bookmark-enable", "job-bookmark-pause", "job-bookmark-disable")
# The old spelling of the same switch.
_CONTINUATION = "continuation-option"
_CONTINUATIONS = {
    "continuation-enabled": "job-bookmark-enable",
    "continuation-readonly": "job-bookmark-pause",
    "continuation-ignore": "job-bookmark-disable",
}
_BOOKMARK_RANGE = ("job-bookmark-from", "job-bookmark-to")
_PLAIN = ("JOB_ID", "JOB_RUN_ID", "SECURITY_CONFIGURATION")
_FOLDERS = ("RedshiftTempDir", "TempDir")


def getResolvedOptions(args: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """The values of `options` in `args` (which is `sys.argv`: the first word is the script), and of Glue's own names."""
    _refuse_reserved(options)
    parser = _Parser()
    parser.add_argument(f"--{_BOOKMARK}", choices=_BOOKMARKS)
    parser.add_argument(f"--{_CONTINUATION}", choices=tuple(_CONTINUATIONS))
    for name in (*_BOOKMARK_RANGE, *_PLAIN):
        parser.add_argument(f"--{name}")
    parser.add_argument("--encryption-type", choices=("sse-s3",))
    parser.add_argument("--enable-data-lineage")
    for name in _FOLDERS:
        parser.add_argument(f"--{name}")
    for name in options:
        if name not in _FOLDERS:
            parser.add_argument(f"--{name}", required=True)
    found = vars(parser.parse_known_args(args[1:])[0])
    return _with_one_folder(_with_one_bookmark(found))


def _refuse_reserved(options: Sequence[str]) -> None:
    for name in (_BOOKMARK, _CONTINUATION):
        if name in options:
            raise RuntimeError(f"Using reserved arguments {name}")
    for name in _BOOKMARK_RANGE:
        if name in options:
            raise RuntimeError(f"Using reserved arguments --{name}")


def _with_one_bookmark(found: dict[str, Any]) -> dict[str, Any]:
    """The two switches become one; a range of bookmarks is for a paused one, and has two ends."""
    continuation = found.pop("continuation_option", None)
    if found.get("job_bookmark_option") is None:
        found["job_bookmark_option"] = _CONTINUATIONS.get(continuation, "job-bookmark-disable")
    given = [name for name in _BOOKMARK_RANGE if found[name.replace("-", "_")] is not None]
    if found["job_bookmark_option"] == "job-bookmark-pause":
        missing = [name for name in _BOOKMARK_RANGE if name not in given]
        if given and missing:
            raise RuntimeError(f"Missing option or value for --{missing[0]}")
    elif len(given) == len(_BOOKMARK_RANGE):
        raise RuntimeError("Invalid option(s)" + " ".join(f"--{name}" for name in _BOOKMARK_RANGE))
    return found


def _with_one_folder(found: dict[str, Any]) -> dict[str, Any]:
    """`TempDir` and its old name have one value."""
    folder = found["TempDir"] if found["TempDir"] is not None else found["RedshiftTempDir"]
    return {**found, "TempDir": folder, "RedshiftTempDir": folder}
