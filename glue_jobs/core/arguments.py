"""A Glue job's arguments: argv as a dict, those that are true or false, and the refusal of ours in another spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from glue_jobs.core.errors import UsageError
from glue_jobs.core.settings import setting_names

_YES = frozenset({"true", "1", "yes", "on"})
_NO = frozenset({"false", "0", "no", "off"})
_FLAG_VALUES = frozenset({"", "true", "false"})  # of Glue's own flags
LIKE = 0.8  # of difflib: the share of letters that two names have in common


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """A job argument that is true or false; false where it is not given. Without a value it is neither: a dry run is not to be guessed."""
    text = given.get(name, "false").strip().lower()
    if text not in _YES | _NO:
        raise UsageError(f"the argument --{name} is {text!r}", "bad-argument", "give true or false")
    return text in _YES


def check_known(given: Iterable[str], own: Iterable[str]) -> None:
    """Refuse names that are one of ours in another spelling, or with a typing error: a `--dry-run` that is passed over is no dry run.

    own: the names that the job has besides the settings, `path` and `run_id`. What is like none of ours is passed over: Glue gives its
    own arguments to the script too, and nobody says which they are.
    """
    known = {*setting_names(), "path", "run_id", *own}
    by_letters = {_letters(name): name for name in known}
    for name in given:
        if name in known or name.isupper():
            continue
        meant = [by_letters[each] for each in get_close_matches(_letters(name), by_letters, 1, LIKE)]
        if meant:
            raise UsageError(f"the argument --{name} is not known", "bad-argument", f"write --{meant[0]}; or give it another name")


def _letters(name: str) -> str:
    return re.sub("[-_]", "", name).lower()


def parse_arguments(argv: Sequence[str]) -> dict[str, str]:
    """Glue's argv (`--name value` or `--name=value`) as a dict; Glue's own arguments, the upper-case and hyphenated ones, included.

    Not getResolvedOptions: that makes every option required, binds abbreviations and fails on values that begin with `-`.
    """
    out: dict[str, str] = {}
    words: list[str] = list(argv)
    # A flag of Glue's own, as `--enable-metrics`, is for Glue; where it takes it away, what the job's definition gives it as its value may
    # be left by itself. getResolvedOptions passes over such a word.
    of_glue = "--JOB_NAME" in words
    while words:
        word = words.pop(0)
        if of_glue and word in _FLAG_VALUES:
            continue
        if not word.startswith("--") or len(word) < 3:
            raise UsageError(f"unexpected argument {word!r}", "bad-argument", "arguments are `--name value`")
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = words.pop(0) if words and (not words[0].startswith("--") or len(words) == 1) else ""
        out[name] = value
    return out
