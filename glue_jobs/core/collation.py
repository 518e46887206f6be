"""Which keys a source table takes for one: its collation, and the form of a text in which equal keys are equal texts.

The rules are said once, here, in Python's Unicode data. Spark and Arrow only leave out the work where a text is ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.errors import UsageError
from glue_jobs.core.general_ci import general_form

WORDS = {
    "ci": "capital and small letters are one",
    "ai": "accents count for nothing",
    "general": "both in the way of MySQL's general_ci: each character by itself",
    "width": "full-width, raised and joined letters are letters of their own",
    "pad": "blanks at the end count for nothing",
}
# Combining classes of marks that a collation counts with the letter itself: signs of a syllable's vowel, and the one that ends it.
_VOWEL_SIGNS = frozenset({0, 9, 84, 91, 103, 118, 129, 130, 132})
# Letters that only look like others with an accent, by their decomposition: й is none of и, whatever collation. Those that some collations
# of MySQL or MariaDB tell apart and others don't are here as well: ё is in none of them.
_OTHER_LETTERS = frozenset(
    letter + mark
    for letters, marks in (
        ("уиае", "\u0306"),
        ("іуиаәжзоөэчы", "\u0308"),
        ("гк", "\u0301"),
        ("у", "\u030b"),
        ("ѵ", "\u030f"),
        ("\u0627", "\u0653\u0654\u0655"),
        ("\u0648\u064a", "\u0654"),
    )
    for letter in letters
    for mark in marks
)
_OTHER_SIGMA, _SIGMA = "ς", "σ"  # the only capital letter with two small ones

_MYSQL = re.compile(r"(utf8|utf8mb3|utf8mb4|ucs2|utf16|utf16le|utf32|ascii)_(.+)")
_MYSQL_TAILS = {
    "general_ci": "general,pad",
    "unicode_ci": "ci,ai,pad",
    "unicode_520_ci": "ci,ai,pad",
    "0900_ai_ci": "ci,ai",
    "0900_as_ci": "ci",
    "0900_as_cs": "",
    "0900_bin": "",
    "bin": "pad",
    "general_nopad_ci": "general",
    "unicode_nopad_ci": "ci,ai",
    "unicode_520_nopad_ci": "ci,ai",
    "nopad_bin": "",
    "uca1400_ai_ci": "ci,ai,pad",
    "uca1400_ai_cs": "ai,pad",
    "uca1400_as_ci": "ci,pad",
    "uca1400_as_cs": "pad",
    "uca1400_nopad_ai_ci": "ci,ai",
    "uca1400_nopad_ai_cs": "ai",
    "uca1400_nopad_as_ci": "ci",
    "uca1400_nopad_as_cs": "",
}
_OTHER_MYSQL = re.compile(r"[a-z0-9]+_bin")  # of a character set of its own: exact, but for blanks at the end
_SQL_SERVER = re.compile(r"(?P<family>\w+?)_(?P<case>ci|cs)_(?P<accent>ai|as)(_ks)?(?P<width>_ws)?(_vss|_vsu)?(_sc)?(_utf8)?")
_SQL_SERVER_BINARY = re.compile(r"\w+_bin2?(_utf8)?")
# What an accent is, and which letters are one, differs between languages: only these families have no rules of their own.
_PLAIN_FAMILY = re.compile(r"(sql_)?latin1_general(_\w+)?")
_OWN_CASE = re.compile(r"(sql_)?(turkish|azeri)\w*")
_TODO = "give the words that are nearest: " + ", ".join(f"{word} ({meaning})" for word, meaning in WORDS.items())


@dataclass(frozen=True)
class Collation:
    """Which texts are one key, as in WORDS. Without any word each text is itself; `width` alone says nothing."""

    ci: bool = False
    ai: bool = False
    pad: bool = False
    general: bool = False
    width: bool = False

    def __str__(self) -> str:
        """The words, as `parse_collation` reads them; '' for none."""
        return ",".join(word for word in WORDS if getattr(self, word))

    def __bool__(self) -> bool:
        return self.is_small or self.ai or self.pad

    @property
    def is_small(self) -> bool:
        """Whether capital and small letters are one; the form has small ones."""
        return self.ci or self.general

    def form(self, text: str) -> str:
        """The text that stands for all that are the same key. The form of a form is itself."""
        if self.general:
            text = general_form(text)
        elif self.ci or self.ai:
            text = self._decomposed(text)
            if self.ai:
                text = "".join(_without_accents(text))
            if self.ci:
                text = self._decomposed("".join(_small(char) for char in text))
        return text.rstrip(" ") if self.pad else text

    def _decomposed(self, text: str) -> str:
        return unicodedata.normalize("NFD" if self.width else "NFKD", text)


EXACT = Collation()


def _without_accents(text: str) -> Iterator[str]:
    """The characters of a decomposed text less its accents. A mark behind a blank is one that stands for itself: ´ is no blank."""
    letter = ""
    for char in text:
        kind = unicodedata.combining(char)
        if kind == 0:
            letter = char
        if kind in _VOWEL_SIGNS or letter == " " or letter.lower() + char in _OTHER_LETTERS:
            yield char


def _small(char: str) -> str:
    """The small letter, each by itself: what stands around it must not matter, as it does for a sigma at a word's end."""
    return _SIGMA if char == _OTHER_SIGMA else char.lower()


def parse_collation(text: str) -> Collation:
    """The collation that words or a name say; EXACT for ''. UsageError names what is not known.

    Names are those of MySQL, MariaDB and SQL Server. One whose rules the words can't say (those of a language) is not taken.
    """
    words = [part.strip().lower() for part in text.split(",") if part.strip()]
    if all(word in WORDS for word in words):
        if "general" in words and {"ci", "ai", "width"} & {*words}:
            raise UsageError("the word general says already what ci, ai and width say", "bad-collation", _TODO)
        return Collation(**dict.fromkeys(words, True))
    if len(words) == 1:
        return _named(words[0], text.strip())
    unknown = next(word for word in words if word not in WORDS)
    raise UsageError(f"{unknown!r} is none of the words {', '.join(WORDS)}", "bad-collation", _TODO)


def _named(name: str, told: str) -> Collation:
    said = _of_mysql(name)
    if said is None:
        said = _of_sql_server(name)
    if said is None:
        raise UsageError(f"the collation {told!r} is not one that the words can say", "bad-collation", _TODO)
    return parse_collation(said)


def _of_mysql(name: str) -> str | None:
    if name == "binary":
        return ""
    match = _MYSQL.fullmatch(name)
    if match is not None:
        return _MYSQL_TAILS.get(match.group(2))
    return "pad" if _OTHER_MYSQL.fullmatch(name) and "latin1_general" not in name else None


def _of_sql_server(name: str) -> str | None:
    """SQL Server never looks at blanks at the end, also not where it compares bytes."""
    if _SQL_SERVER_BINARY.fullmatch(name):
        return "pad"
    match = _SQL_SERVER.fullmatch(name)
    if match is None or _OWN_CASE.fullmatch(match["family"]):
        return None
    if match["accent"] == "ai" and not _PLAIN_FAMILY.fullmatch(match["family"]):
        return None
    folds = [word for word in (match["case"], match["accent"]) if word in WORDS]
    return ",".join([*folds, *(["width"] if folds and match["width"] else []), "pad"])


class KeyColumn(str):
    """A key column's name that knows how texts in it compare. Everywhere else it is its name: equal, hashed and written as that."""

    collation: Collation

    def __new__(cls, name: str, collation: Collation) -> KeyColumn:
        made = super().__new__(cls, name)
        made.collation = collation
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.collation


def column_collation(name: str) -> Collation:
    """How texts in the key column of this name compare."""
    return name.collation if isinstance(name, KeyColumn) else EXACT


def collated(key: Sequence[str], collation: Collation) -> tuple[str, ...]:
    """The key's columns, which compare by this collation from now on."""
    return tuple(KeyColumn(str(name), collation) if collation else str(name) for name in key)


def collated_as(columns: Sequence[str], key: Sequence[str]) -> tuple[str, ...]:
    """Columns by which a person names rows: those that are the key's compare as in the key."""
    same = {str(name): column_collation(name) for name in key}
    return tuple(KeyColumn(str(name), same[name]) if same.get(name) else str(name) for name in columns)


def collation_of(key: Sequence[str]) -> Collation:
    """The collation of a table's key."""
    return next((found for found in map(column_collation, key) if found), EXACT)


def identity(key: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The key as a value that is equal for keys by which rows are told apart in the same way."""
    return tuple(key), str(collation_of(key))


def is_same_key(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether both tell rows apart in the same way."""
    return identity(one) == identity(other)


def key_text(key: Sequence[str]) -> str:
    """The key in words: its columns, and how they compare where that is not by their bytes; '' for none."""
    words = str(collation_of(key))
    return ",".join(key) + (f" ({words})" if words else "")
