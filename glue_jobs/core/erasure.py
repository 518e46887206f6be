"""What change records tell of erases: hashes of the keys, and the data versions that are removed for good. Values, texts; pure.

A record never says a key: it has a salted hash of each, which tells whether a key comes back, and nothing to somebody who has not
already the key to try. Where keys can be counted through (whole numbers), whoever reads the record can try them all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from glue_jobs.core.errors import TableBlocked, blocked
from glue_jobs.core.keys import NAN
from glue_jobs.core.record import ChangeRecord, ErasedKeys, ErasedVersion

HASH_BYTES = 16
NAMED = 3  # objects that a text names
KIND = "erase"
BACK = "erased_keys_back"  # the detail of a record: how many erased keys its raw files bring as rows


def canonical(value: Any) -> str:
    """The text of a comparable value (core.keys) that stays the same when the column's type grows: 5, 5.00 and '5' are one text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, tuple):
        if value == NAN:
            return "NaN"
        number = value[1]
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    if isinstance(value, Decimal):
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    return str(int(value))


def key_text(values: Sequence[Any]) -> str:
    """The canonical text of a key: of the comparable values of its columns."""
    return json.dumps([canonical(value) for value in values], ensure_ascii=True)


def hash_key(salt: str, text: str) -> str:
    """The hash (hex) of a key's canonical text. salt: hex."""
    return hashlib.blake2b(text.encode(), key=bytes.fromhex(salt), digest_size=HASH_BYTES).hexdigest()


def hashed(columns: tuple[str, ...], salt: str, texts: Iterable[str]) -> ErasedKeys:
    """What a record says of the keys with these texts."""
    return ErasedKeys(columns, salt, tuple(sorted(hash_key(salt, text) for text in texts)))


def texts_among(keys: ErasedKeys, texts: Iterable[str]) -> set[str]:
    """Those of the canonical texts that are of erased keys."""
    hashes = frozenset(keys.hashes)
    return {text for text in texts if hash_key(keys.salt, text) in hashes}


def unfinished_text(change: str) -> str:
    """What to say of an erase that has not removed everything."""
    return f"the erase {change} has not removed all versions yet"


def back_text(change: str, count: int) -> str:
    """The warning for a change that brings erased keys back."""
    return f"change {change} brings {count} erased key(s) back: the source still has them; delete them there, or erase again"


def digest_of(versions: Iterable[ErasedVersion], columns: Sequence[str], texts: Iterable[str]) -> str:
    """A text that is the same for the same versions and keys, in any order, and another for any others. columns: of the key; texts: the
    canonical ones of the keys. The versions alone would not do: other keys may stand in the same ones."""
    shown = [sorted([each.key, each.version] for each in versions), list(columns), sorted(texts)]
    return hashlib.blake2b(json.dumps(shown).encode(), digest_size=HASH_BYTES).hexdigest()


# --- what no reader may use any more


@dataclass(frozen=True)
class Erased:
    """The versions that erases have removed or are about to: (key, version) and key → the erase's change id."""

    versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)

    def has(self, key: str, version: str) -> bool:
        """Whether that version is for nobody any more."""
        return (key, version) in self.versions

    def change_of(self, key: str) -> str:
        """The erase that a version of the key is on the list of, '' for none."""
        return self.keys.get(key, "")


NOTHING_ERASED = Erased()


def erased_by(records: Iterable[ChangeRecord]) -> Erased:
    """What the erases with these records have on their lists."""
    versions: dict[tuple[str, str], str] = {}
    for record in records:
        for each in record.erased:
            versions.setdefault((each.key, each.version), record.id)
    return Erased(versions, {key: change for (key, _), change in versions.items()})


def version_erased(bucket: str, key: str, change: str, what: str, todo: str = "") -> TableBlocked:
    """The error for a data file whose bytes were erased. what: which file it is, for whom."""
    return blocked(
        "version-erased",
        f"the bytes of {what} were erased for good by change {change}",
        where=f"s3://{bucket}/{key}",
        expected="its data version",
        found=f"a version on the list of change {change}",
        todo=todo or f"choose change {change} or a later one, or an earlier one that needs no erased file: `dmslake history PATH`",
    )


# --- what is searched
