"""Values that fit a column, by its name and its type: what Faker has for names that people use, else whatever the type can hold.

All of it comes from one seeded generator and one seeded Faker: the same calls give the same values. Times lie before the moment that a
row changes, never after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

from glue_jobs.core.cells import INTEGER_BITS
from glue_jobs.core.errors import ConfigurationError, to_install
from glue_jobs.core.schema import Column, decimal_parts

LOCALE = "en_US"

# The first pattern that a column's words hold says which of Faker's methods makes its texts.
TEXTS: tuple[tuple[str, str], ...] = (
    (r"e_?mail", "email"),
    (r"phone|mobile|fax", "phone_number"),
    (r"first_?name|given_?name", "first_name"),
    (r"last_?name|sur_?name|family_?name", "last_name"),
    (r"user_?name|login|nick", "user_name"),
    (r"company|vendor|supplier|manufacturer", "company"),
    (r"customer|person|author|contact|full_?name|owner", "name"),
    (r"street", "street_address"),
    (r"address", "address"),
    (r"city|town", "city"),
    (r"country_?code", "country_code"),
    (r"country", "country"),
    (r"state|province|region", "state"),
    (r"zip|post_?(al_?)?code", "postcode"),
    (r"colou?r", "color_name"),
    (r"currency", "currency_code"),
    (r"locale|language", "locale"),
    (r"url|website|link", "url"),
    (r"ip_?address|\bip\b", "ipv4"),
    (r"desc|comment|note|remark|summary|text", "sentence"),
    (r"title|subject|name|label|product", "catch_phrase"),
    (r"job|profession", "job"),
)
# The first pattern that fits says between which numbers a column's lie.
NUMBERS: tuple[tuple[str, tuple[int, int]], ...] = (
    (r"year", (1970, 2024)),
    (r"month", (1, 12)),
    (r"\bday\b", (1, 28)),
    (r"\bage\b", (18, 90)),
    (r"quantity|qty|count|number_of", (1, 100)),
    (r"percent|rate|discount", (0, 100)),
    (r"latitude|\blat\b", (-90, 90)),
    (r"longitude|\blon\b|\blng\b", (-180, 180)),
    (r"price|amount|total|cost|fee", (1, 1000)),
)
ANY_NUMBER = (0, 1_000_000)


def seeded_faker(seed: int) -> Any:
    """A Faker of its own with its own generator; ConfigurationError where the package is not installed."""
    try:
        from faker import Faker
    except ImportError:
        todo = f"{to_install('feed')}; a Glue job takes it by --additional-python-modules Faker"
        raise ConfigurationError("the package Faker is not installed", "no-package", todo) from None
    faker = Faker(LOCALE)
    faker.seed_instance(seed)
    return faker


@dataclass(frozen=True)
class Values:
    """Makes values, in the Python types that Arrow takes for the lake's types."""

    faker: Any
    random: Random

    def value(self, column: Column, before: datetime) -> Any:
        """A value for the column, of a row that changes at `before`."""
        kind = column.type
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.name).lower().replace("_", " ").strip()
        if kind in INTEGER_BITS:
            return self.random.randint(*_within(_range(words), (1 << INTEGER_BITS[kind]) - 1))
        parts = decimal_parts(kind)
        if parts is not None:
            return self._decimal(words, *parts)
        return self._others()[kind](words, before)

    def _others(self) -> dict[str, Callable[[str, datetime], Any]]:
        return {
            "boolean": lambda _, __: self.random.random() < 0.5,
            "float": lambda words, _: self.random.randrange(*_quarters(words)) / 4,  # what a float holds exactly
            "double": lambda words, _: round(self.random.uniform(*_range(words)), 2),
            "string": lambda words, _: self._text(words),
            "binary": lambda _, __: self.random.randbytes(16),
            "date": lambda words, before: self._time(words, before).date(),
            "timestamp": self._time,
        }

    def _decimal(self, words: str, precision: int, scale: int) -> Decimal:
        low, high = _range(words)
        digits = self.random.randint(*_within((low * 10**scale, high * 10**scale), 10**precision - 1))
        return Decimal(digits).scaleb(-scale)

    def _text(self, words: str) -> str:
        for pattern, method in TEXTS:
            if re.search(pattern.replace("_?", "[ _]?"), words):
                return str(getattr(self.faker, method)()).replace("\n", ", ")
        return str(self.faker.word())

    def _time(self, words: str, before: datetime) -> datetime:
        years = (18, 80) if "birth" in words else (0, 10)
        back = timedelta(seconds=self.random.randint(years[0] * 31_557_600, years[1] * 31_557_600))
        earliest = datetime(1970, 1, 1, tzinfo=timezone.utc)
        return max(earliest, before - back).replace(microsecond=0)


def _range(words: str) -> tuple[int, int]:
    return next((bounds for pattern, bounds in NUMBERS if re.search(pattern, words)), ANY_NUMBER)


def _within(bounds: tuple[int, int], most: int) -> tuple[int, int]:
    """The part of the bounds that the type can hold; all from zero where that is none or one value."""
    low, high = max(bounds[0], -most), min(bounds[1], most)
    return (low, high) if low < high else (0, most)


def _quarters(words: str) -> tuple[int, int]:
    low, high = _range(words)
    return low * 4, high * 4


def moment_value(kind: str, at: datetime) -> Any:
    """The time of a change in a column of type `kind`; None where such a column can't say it."""
    if kind == "timestamp":
        return at
    if kind == "date":
        return at.date()
    return at.isoformat(sep=" ", timespec="microseconds")[:26] if kind == "string" else None
