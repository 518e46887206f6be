"""Mapping rules of a DMS task that make columns of before images: how these are named, and which tables have none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glue_jobs.core.dms_columns import BEFORE_IMAGES, BEFORE_PREFIX

IMAGES = "add-before-image-columns"
CHOOSES, LEAVES_OUT = ("include", "explicit"), ("exclude",)
ANY = "%"
Rule = Mapping[str, Any]
Place = tuple[str, str]  # schema and table


@dataclass(frozen=True)
class ItemNames:
    """The names of before images that a table looks for, as its item has them (BeforeImagePrefix): `BI_*`."""

    schema: str
    table: str
    patterns: tuple[str, ...]

    @property
    def place(self) -> Place:
        return self.schema, self.table


def image_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Those of the task's rules that make before images."""
    return [rule for rule in rules if rule.get("rule-action") == IMAGES]


def pattern_of(rule: Rule) -> str:
    """The names that an image rule makes, as a table's state has them: `OLD_*`."""
    named = rule.get("before-image-def") or {}
    return f"{named.get('column-prefix') or ''}*{named.get('column-suffix') or ''}"


def in_item(pattern: str) -> str:
    """The same as a person writes it into an item: `OLD_` for `OLD_*`; `*_old` stays."""
    return pattern[:-1] if pattern.endswith("*") else pattern


def looked_for(rules: Sequence[Rule], items: Sequence[ItemNames]) -> dict[Place, tuple[str, ...]]:
    """What the task copies → the names that are looked for: of the tables with an item, each; where a selection meets none, as it stands,
    with the usual names."""
    left = _selected(rules, LEAVES_OUT)
    copied = [item for item in items if not any(_means(place, item.place) for place in left)]
    usual: tuple[str, ...] = BEFORE_IMAGES
    if items and any(_renames(rule) for rule in rules):  # a selection has the old name, an item the new one: it may be any of them
        usual = tuple(sorted({pattern for item in items for pattern in item.patterns}))
    found: dict[Place, tuple[str, ...]] = {}
    for place in _selected(rules, CHOOSES):
        found.update({item.place: item.patterns for item in copied if _means(place, item.place)} or {place: usual})
    return found


def without_images(rules: Sequence[Rule], names: Mapping[Place, Sequence[str]]) -> tuple[list[Place], dict[Place, set[str]]]:
    """(tables that no rule gives before images; those that have them under names that they don't look for → these names). names: as of
    looked_for."""
    given = [(_place(rule), pattern_of(rule)) for rule in image_rules(rules)]
    made = {place: {pattern for images, pattern in given if _means(images, place)} for place in names}
    otherwise = {place: some for place, some in made.items() if some and some.isdisjoint(names[place])}
    return [place for place, some in made.items() if not some], otherwise


def _selected(rules: Sequence[Rule], actions: Sequence[str]) -> list[Place]:
    return [_place(rule) for rule in rules if rule.get("rule-type") == "selection" and rule.get("rule-action") in actions]


def _renames(rule: Rule) -> bool:
    """Whether a rule gives schemas or tables other names, as `convert-lowercase` does."""
    return rule.get("rule-type") == "transformation" and rule.get("rule-target") in ("schema", "table")


def _place(rule: Rule) -> Place:
    """Schema and table that a rule is about; all where it says nothing."""
    locator = rule.get("object-locator") or {}
    return str(locator.get("schema-name") or ANY), str(locator.get("table-name") or ANY)


def _means(outer: Place, inner: Place) -> bool:
    return all(map(_holds, outer, inner))


def _holds(outer: str, inner: str) -> bool:
    """Whether all that `inner` means is meant by `outer`, too: a % in it is met by a % alone."""
    return re.fullmatch("".join(".*" if char == ANY else re.escape(char) for char in outer), inner, re.DOTALL) is not None


def with_images(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a task that has none for before images, and one for the primary keys of all tables."""
    numbers = [int(rule["rule-id"]) for rule in rules if str(rule.get("rule-id", "")).isdigit()]
    number = str(max(numbers, default=0) + 1)
    rule = {
        "rule-type": "transformation", "rule-id": number, "rule-name": number, "rule-target": "column", "rule-action": IMAGES,
        "object-locator": {"schema-name": ANY, "table-name": ANY},
        "before-image-def": {"column-prefix": BEFORE_PREFIX, "column-suffix": "", "column-filter": "pk-only"},
    }  # fmt: skip
    return [*rules, rule]
