"""Few combinations in which every pair stands: what the matrix of raw files is made of."""

from __future__ import annotations

from itertools import combinations

from tests.pairwise import Row, pairwise

FACTORS = {"a": (1, 2, 3, 4), "b": ("x", "y", "z"), "c": (True, False), "d": (0, 1, 2)}


def test_every_pair_stands_in_a_row() -> None:
    """In far fewer rows than there are combinations."""
    rows = pairwise(FACTORS, lambda row: True)

    for one, two in combinations(FACTORS, 2):
        assert {(row[one], row[two]) for row in rows} == {(first, second) for first in FACTORS[one] for second in FACTORS[two]}
    assert len(rows) < 20
    assert rows == pairwise(FACTORS, lambda row: True)


def test_a_pair_that_cant_be_is_left_out() -> None:
    """Also one that nothing forbids by itself, and that no whole row has."""

    def allowed(row: Row) -> bool:
        if row.get("a") == 1 and row.get("b", "x") != "x":
            return False
        return not (row.get("b") == "x" and row.get("c") is True)

    rows = pairwise(FACTORS, allowed)

    assert all(allowed(row) for row in rows)
    assert (1, False) in {(row["a"], row["c"]) for row in rows}
    assert (1, True) not in {(row["a"], row["c"]) for row in rows}
    assert {row["b"] for row in rows if row["a"] == 2} == {"x", "y", "z"}
