"""Combinations of factors: few, and every pair of two factors' values stands together in one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

Row = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]
TRIES = 12


def pairwise(factors: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool], seed: int = 1) -> list[Row]:
    """Rows with a value of each factor. allowed: whether a row, which may lack factors, can be completed as far as it tells.

    A pair that no allowed row has is left out. The same arguments give the same rows.
    """
    chance, rows = random.Random(seed), []
    open_pairs = [pair for pair in _all_pairs(factors) if allowed(dict(pair))]
    while open_pairs:
        left = set(open_pairs)
        found = [row for row in (_row(factors, allowed, dict(open_pairs[0]), left, chance) for _ in range(TRIES)) if row is not None]
        if not found:
            open_pairs.pop(0)
            continue
        best = max(found, key=lambda row: len(left & set(_pairs_of(row))))
        covered = set(_pairs_of(best))
        open_pairs = [pair for pair in open_pairs if pair not in covered]
        rows.append(best)
    return rows


def _all_pairs(factors: Mapping[str, Sequence[Any]]) -> list[Pair]:
    return [((one, a), (two, b)) for one, two in combinations(factors, 2) for a in factors[one] for b in factors[two]]


def _pairs_of(row: Row) -> list[Pair]:
    return [(one, two) for one, two in combinations(row.items(), 2)]


def _row(
    factors: Mapping[str, Sequence[Any]], allowed: Callable[[Row], bool], begun: Row, left: set[Pair], chance: random.Random
) -> Row | None:
    """The row completed, factor by factor, by the value that covers most; None where no value is allowed."""
    rest = [name for name in factors if name not in begun]
    chance.shuffle(rest)
    row = dict(begun)
    for name in rest:
        choices = [value for value in factors[name] if allowed({**row, name: value})]
        if not choices:
            return None
        chance.shuffle(choices)
        row[name] = max(choices, key=lambda value: sum(_ordered(factors, name, value, other) in left for other in row.items()))
    return {name: row[name] for name in factors}


def _ordered(factors: Mapping[str, Sequence[Any]], name: str, value: Any, other: tuple[str, Any]) -> Pair:
    order = list(factors)
    mine = (name, value)
    return (mine, other) if order.index(name) < order.index(other[0]) else (other, mine)
