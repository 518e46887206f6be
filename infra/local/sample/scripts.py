"""The sample's SQL scripts, as statements for a client that takes one at a time."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

SCRIPTS = ("initial", "incremental")

# What the split must see as one piece: a quoted text (with doubled or escaped quotes) or a comment to the line's end.
_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|--[^\n]*", re.DOTALL)
_DELIMITER = re.compile(r"delimiter[ \t]+(\S+)[ \t]*(?:\n|$)", re.IGNORECASE)


def statements(name: str) -> list[str]:
    """The statements of the script `initial` or `incremental`, in order."""
    if name not in SCRIPTS:
        raise ValueError(f"sample script: expected one of {', '.join(SCRIPTS)}, found {name!r}")
    return split_statements(resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def run_script(connection: Any, name: str) -> None:
    """Run the script on a PyMySQL connection, in its current database; each statement is one transaction."""
    with connection.cursor() as cursor:
        for statement in statements(name):
            cursor.execute(statement)
            connection.commit()


def split_statements(script: str) -> list[str]:
    """As the `mysql` client splits: at the delimiter, which `delimiter` lines change (for procedure bodies).

    Comments to the end of a line (`-- `) are left out; block comments aren't expected.
    """
    found, current, delimiter, position = [], "", ";", 0
    while position < len(script):
        token = _TOKEN.match(script, position)
        change = _DELIMITER.match(script, position) if not current.strip() else None
        if change:
            delimiter, position = change[1], change.end()
        elif token:
            current += "" if token[0].startswith("--") else token[0]
            position = token.end()
        elif script.startswith(delimiter, position):
            found.append(current.strip())
            current, position = "", position + len(delimiter)
        else:
            current += script[position]
            position += 1
    return [statement for statement in [*found, current.strip()] if statement]
