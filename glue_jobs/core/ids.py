"""Change ids: `<fence, 10 digits>-<counter, 6 digits>-<8 hex>`, so that their text sorts in the order of commits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from glue_jobs.core.errors import UsageError

CHANGE_CHARS = 26
ATTACHMENT_ENDING = ".parquet"  # of those that hold rows
_ID = re.compile(r"(\d{10})-(\d{6})-([0-9a-f]{8})")


@dataclass(frozen=True, order=True)
class ChangeId:
    """fence: of the lease it was made under; counter: changes under that lease; nonce: random, so that a key is written once."""

    fence: int
    counter: int
    nonce: str

    def __str__(self) -> str:
        return f"{self.fence:010d}-{self.counter:06d}-{self.nonce}"

    @classmethod
    def parse(cls, text: str) -> ChangeId:
        match = _ID.fullmatch(text)
        if not match:
            raise UsageError(f"not a change id: {text!r}", "bad-change-id", "`dmslake history PATH` lists the ids")
        return cls(int(match.group(1)), int(match.group(2)), match.group(3))


def record_name(change: str, compressed: bool) -> str:
    """The object name of a change's record below the table's `_changes` folder."""
    return f"{change}.json.gz" if compressed else f"{change}.json"


def attachment_name(change: str, ending: str) -> str:
    """The name of an object that stands beside a change's record, such as rows that a person gave."""
    return f"{change}.{ending}"


def change_of_name(name: str) -> str:
    """The change id that an object's name begins with, '' if it begins with none."""
    match = _ID.match(name)
    return match.group(0) if match else ""


def change_of_record(key: str) -> str:
    """The change id in a record's key, or '' if the key is no record's."""
    base = key.rsplit("/", 1)[-1]
    for ending in (".json.gz", ".json"):
        if base.endswith(ending) and _ID.fullmatch(base[: -len(ending)]):
            return base[: -len(ending)]
    return ""
