"""Statements in the binlog that change rows without row events, read as far as they name tables.

Row events have no word for rows that go with their table or partition, and a session can have its changes logged as statements. A name
without a database is of the session's default one, and a statement can name another: neither alone says whose rows it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | /\*M?!\d* | \*/ | /\*.*?\*/ | \#[^\n]* | --(?=\s|\Z)[^\n]* )  # what stands in /*! … */ is executed
    | (?P<name> `(?:[^`]|``)*+` | "(?:[^"\\]|""|\\.)*+" )  # with ANSI_QUOTES the latter is a name, else no place for names has it
    | (?P<text> '(?:[^'\\]|''|\\.)*+' )
    | (?P<word> [\w$]+ )
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_END = ("", "")
_WHOLE = ""  # in place of a table's name: all tables of the database, or one whose name can't be read

Named = tuple[str, str]
"""(database, table)."""


@dataclass(frozen=True)
class Statement:
    """A statement and the tables whose rows it changes. is_logged: a change of rows that was logged as a statement; else rows went, or
    came, with their table or partition."""

    is_logged: bool
    tables: tuple[Named, ...]

    def concerns(self, database: str, wanted: Callable[[str], bool]) -> bool:
        """Whether it changes a wanted table of the database. Its text may have names in another case where the server doesn't mind."""
        ours = [table for where, table in self.tables if where.lower() == database.lower()]
        return any(table == _WHOLE or wanted(table) or wanted(table.lower()) for table in ours)


def read_statement(query: str, default: str) -> Statement | None:
    """What a statement of a session with that default database changes; None for one that changes no rows, or by row events only."""
    reader = _Reader(query, default)
    if reader.take("SET") and reader.take("STATEMENT"):  # MariaDB's SET STATEMENT variable = value FOR …
        reader.skip_to("FOR")
    for is_logged, verbs in ((False, _GONE), (True, _LOGGED)):
        verb = reader.take(*verbs)
        if verb:
            tables = tuple(verbs[verb](reader))
            return Statement(is_logged, tables) if tables else None
    return None


class _Reader:
    """The tokens of a statement, one after the other, without comments."""

    def __init__(self, query: str, default: str) -> None:
        self._default = default
        self._tokens = _tokens(query)
        self._ahead = next(self._tokens, _END)

    def has_more(self) -> bool:
        return self._ahead != _END

    def next(self) -> str:
        """The next token, which is passed."""
        (_, text), self._ahead = self._ahead, next(self._tokens, _END)
        return text

    def is_at(self, *words: str) -> bool:
        """Whether the next token is one of these key words or marks, which a quoted name or a text never is."""
        kind, text = self._ahead
        return kind in ("word", "mark") and text.upper() in words

    def take(self, *words: str) -> str:
        """The next token in upper case, passed, if it is one of these; else ''."""
        return self.next().upper() if self.is_at(*words) else ""

    def take_all(self, *words: str) -> None:
        while self.take(*words):
            pass

    def skip_to(self, word: str) -> None:
        """Behind the next such word, or to the end."""
        while self.has_more() and not self.take(word):
            self.next()

    def identifier(self) -> str:
        return self.next() if self._ahead[0] in ("word", "name") else ""

    def table(self) -> Named:
        """A table's name, with the database before it or without; of `t.*` the table t."""
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        *databases, table = [part for part in parts if part] or [_WHOLE]
        return (databases[-1] if databases else self._default), table


def _tokens(query: str) -> Iterator[tuple[str, str]]:
    """(kind, text); a name without its quotes."""
    for match in _TOKEN.finditer(query):
        kind, text = str(match.lastgroup), match[0]
        if kind == "name":
            text = text[1:-1].replace(text[0] * 2, text[0])
        if kind != "skipped":
            yield kind, text


# --- rows go, or come, with their table


def _truncate(reader: _Reader) -> list[Named]:
    reader.take("TABLE")
    return [reader.table()]


def _drop(reader: _Reader) -> list[Named]:
    """A temporary table's rows were never in the binlog."""
    if reader.take("DATABASE", "SCHEMA"):
        reader.take_all("IF", "EXISTS")
        return [(reader.identifier(), _WHOLE)]
    return _listed(reader, ",") if reader.take("TABLE", "TABLES") else []


def _rename(reader: _Reader) -> list[Named]:
    return _listed(reader, ",", "TO") if reader.take("TABLE", "TABLES") else []


def _listed(reader: _Reader, *between: str) -> list[Named]:
    reader.take_all("IF", "EXISTS")
    found = [reader.table()]
    while reader.has_more():
        if reader.take(*between):
            found.append(reader.table())
        else:
            reader.next()  # WAIT and its seconds, RESTRICT
    return found


def _alter(reader: _Reader) -> list[Named]:
    """Only of forms by which the table gets another name, or rows go or come. TABLE stands before another one's name in some of them."""
    reader.take("ONLINE")
    is_ignore = bool(reader.take("IGNORE"))  # then a new unique key removes the rows that it finds twice
    if not reader.take("TABLE"):
        return []
    reader.take_all("IF", "EXISTS")
    found, has_gone = [reader.table()], False
    while reader.has_more():
        if reader.take("UNIQUE", "PRIMARY"):
            has_gone = has_gone or is_ignore
        elif reader.take("RENAME"):
            if not reader.take("COLUMN", "INDEX", "KEY"):
                reader.take("TO", "AS", "=")
                found.append(reader.table())
                has_gone = True
        elif reader.take("TRUNCATE", "DROP", "EXCHANGE", "CONVERT", "DISCARD", "IMPORT"):
            has_gone = has_gone or reader.is_at("PARTITION", "TABLE", "TABLESPACE")
        elif reader.take("TABLE"):
            found.append(reader.table())
        else:
            reader.next()
    return found if has_gone else []


def _create(reader: _Reader) -> list[Named]:
    """MariaDB's CREATE OR REPLACE drops the table that is there."""
    is_replaced = reader.take("OR") and reader.take("REPLACE") and reader.take("TABLE")
    return [reader.table()] if is_replaced else []


# --- changes of rows


def _insert(reader: _Reader) -> list[Named]:
    reader.take_all("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "INTO")
    return [reader.table()]


def _load(reader: _Reader) -> list[Named]:
    while reader.has_more():
        reader.skip_to("INTO")
        if reader.take("TABLE"):
            break
    return [reader.table()]


def _change(reader: _Reader) -> list[Named]:
    """UPDATE and DELETE can name several tables, and some that they only read: all of them, and what in brackets may be one."""
    reader.take_all("LOW_PRIORITY", "QUICK", "IGNORE", "FROM")
    found = [reader.table()]
    while reader.has_more() and not reader.is_at("SET", "WHERE"):
        if reader.take(",", "(", "FROM", "USING", "JOIN", "STRAIGHT_JOIN"):
            found.append(reader.table())
        else:
            reader.next()
    return [found[0], *(named for named in found[1:] if named[1] != _WHOLE)]


def _with(reader: _Reader) -> list[Named]:
    """Common table expressions before an UPDATE or DELETE."""
    depth = 0
    while reader.has_more() and (depth or not reader.is_at("UPDATE", "DELETE", "SELECT")):
        if reader.take("("):
            depth += 1
        elif reader.take(")"):
            depth -= 1
        else:
            reader.next()
    return _change(reader) if reader.take("UPDATE", "DELETE") else []


def _call(reader: _Reader) -> list[Named]:
    """A SELECT is logged only for a stored function in it that changes rows, and names this one with its database."""
    database, _ = reader.table()
    return [(database, _WHOLE)]


_GONE: dict[str, Callable[[_Reader], list[Named]]] = {
    "TRUNCATE": _truncate, "DROP": _drop, "RENAME": _rename, "ALTER": _alter, "CREATE": _create,
}  # fmt: skip
_LOGGED: dict[str, Callable[[_Reader], list[Named]]] = {
    "INSERT": _insert, "REPLACE": _insert, "LOAD": _load, "UPDATE": _change, "DELETE": _change, "WITH": _with, "SELECT": _call,
}  # fmt: skip
