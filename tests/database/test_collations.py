"""What a real server takes for one, character by character, beside the forms that keys have here."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from glue_jobs.core.collation import parse_collation

AT_ONCE = 500
PLANE = [code for code in range(0x20, 0x10000) if not 0xD800 <= code < 0xE000]
# Letters of Latin, Greek, Cyrillic, Hebrew and Arabic, as old as the oldest of the tables; a long s is an s here, whatever a server thinks.
ACCENTED = [
    code
    for code in (*range(0x80, 0x700), *range(0x1E00, 0x2000))
    if unicodedata.ucd_3_2_0.category(chr(code)).startswith("L") and chr(code) not in "ſẛ"
]


def weights(connection: Any, collation: str, codes: Iterable[int]) -> dict[int, str]:
    """What the server compares characters by."""
    wanted, found = list(codes), {}
    with connection.cursor() as cursor:
        for at in range(0, len(wanted), AT_ONCE):
            some = wanted[at : at + AT_ONCE]
            characters = (f"CONVERT(_utf32 0x{code:08x} USING utf8mb4) COLLATE {collation}" for code in some)
            cursor.execute(f"SELECT {','.join(f'HEX(WEIGHT_STRING({each}))' for each in characters)}")
            found.update(zip(some, cursor.fetchone(), strict=True))
    return found


def classes(keys: dict[int, str]) -> set[frozenset[int]]:
    by: dict[str, set[int]] = defaultdict(set)
    for code, key in keys.items():
        by[key].add(code)
    return {frozenset(codes) for codes in by.values()}


def test_general_ci_is_the_servers(connection: Any) -> None:
    """Each character of the first plane, and some beyond, which are all one."""
    codes = [*PLANE, 0x10400, 0x1F600, 0x1F601, 0x10FFFD]
    form = parse_collation("utf8mb4_general_ci").form

    assert classes({code: form(chr(code)) for code in codes if code != 0x20}) == classes(
        weights(connection, "utf8mb4_general_ci", codes[1:])
    )


@pytest.mark.parametrize("collation", ["utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_ci"])
def test_no_letter_is_taken_for_another_one(connection: Any, collation: str) -> None:
    """What is one key here is one at the source, or a row would be lost."""
    form, known = parse_collation(collation).form, weights(connection, collation, ACCENTED)
    by: dict[str, set[int]] = defaultdict(set)
    for code in ACCENTED:
        by[form(chr(code))].add(code)

    assert {text: sorted(map(chr, codes)) for text, codes in by.items() if len({known[code] for code in codes}) > 1} == {}
