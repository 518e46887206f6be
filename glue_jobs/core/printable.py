"""Text for logs and terminals. Names, values and messages come from others: what of them could begin a line, move a cursor, set a title or
turn the writing round is spelled out, so that it can be read and obeys nobody."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from glue_jobs.core.errors import DmslakeError

# Control and format characters, what is no character (here), lone surrogates, line and paragraph separators.
_OBEYED = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # format characters that only shape what stands beside them, in emoji and in several scripts
_NOT_PLAIN = re.compile(r"[^\x20-\x7e\n]")


def printable(text: str) -> str:
    """The text as one line: every character that a terminal or a log would obey, line breaks and tabs too, by its escape."""
    if text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if _is_obeyed(char) else char for char in text)


def _is_obeyed(char: str) -> bool:
    return unicodedata.category(char) in _OBEYED and char not in _JOINERS


def json_text(data: Any, indent: int | None = None) -> str:
    """JSON that reads back as the same and is safe to print; a single line without `indent`. What json can't say is its text."""
    return _NOT_PLAIN.sub(_escaped, json.dumps(data, ensure_ascii=False, default=str, indent=indent))


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    return json.dumps(char)[1:-1] if _is_obeyed(char) else char


def error_lines(error: DmslakeError, before: str = "") -> list[str]:
    """The message, after the text `before`, and what to do: a line each."""
    return [printable(before + error.message), *([printable(f"  what to do: {error.todo}")] if error.todo else [])]
