"""Where keys stand among distinct keys: as a dict says, however they are looked up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from glue_jobs.core.schema import names
from glue_jobs.spark import key_index
from glue_jobs.spark.key_index import HASHED_RATIO, LEAST_HASHED, KeyIndex
from tests.spark.lake_values import plain_key, rows_of, table_of

PROPERTY = settings(deadline=None, max_examples=150)
WAYS = pytest.mark.parametrize("way", ["by arrow", "by hashes"])


@contextmanager
def looked_up(way: str) -> Iterator[None]:
    """Few keys as many are: hashed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "LEAST_HASHED", 1 if way == "by hashes" else 10**9)
        patch.setattr(key_index, "HASHED_RATIO", 0)
        yield


@WAYS
@PROPERTY
@given(indexed=rows_of(), probed=rows_of())
def test_an_index_finds_what_a_dict_finds(way, indexed, probed) -> None:
    """Each row's position is that of its key in the index, null where the index has no such key."""
    schema, rows = indexed
    distinct = list({plain_key(row): row for row in rows}.values())
    others = probed[1] if [column.type for column in probed[0]] == [column.type for column in schema] else []
    probes = rows + others + list(reversed(distinct[::2]))
    expected = {plain_key(row): place for place, row in enumerate(distinct)}

    with looked_up(way):
        found = KeyIndex(table_of(schema, distinct), names(schema)).positions(table_of(schema, probes))

    assert found.type == pa.int32()
    assert found.to_pylist() == [expected.get(plain_key(row)) for row in probes]


@WAYS
@PROPERTY
@given(drawn=rows_of(nullable=True))
def test_a_slice_of_an_index_counts_from_its_start(way, drawn) -> None:
    """Keys outside the slice are absent, those inside are counted from it; a null in a probed key is absent."""
    schema, rows = drawn
    whole = list({plain_key(row): row for row in rows if None not in row}.values())
    start, stop = len(whole) // 3, len(whole) - len(whole) // 4
    expected = {plain_key(row): place for place, row in enumerate(whole[start:stop])}

    index = KeyIndex(table_of(schema, whole), names(schema)).slice(start, stop)

    assert len(index) == stop - start
    with looked_up(way):
        found = index.positions(table_of(schema, rows))
    assert found.to_pylist() == [expected.get(plain_key(row)) for row in rows]


@WAYS
def test_an_index_survives_many_columns_of_many_values(way) -> None:
    """Ten columns of a thousand values would overflow a product of all; numbering after each column does not."""
    columns = {f"k{place}": [(row * (place + 7)) % 1000 for row in range(1000)] for place in range(10)}
    table = pa.table(columns)

    with looked_up(way):
        found = KeyIndex(table, list(columns)).positions(table.slice(500))

    assert found.to_pylist() == list(range(500, 1000))


@WAYS
def test_an_index_reads_probes_of_a_narrower_type(way) -> None:
    """A data file from before a column grew is probed with the grown type's keys."""
    index = KeyIndex(pa.table({"id": pa.array([7, 2**40], pa.int64())}), ["id"])

    with looked_up(way):
        assert index.positions(pa.table({"id": pa.array([1, 7], pa.int32())})).to_pylist() == [None, 0]


@WAYS
def test_nan_is_found_and_null_is_not(way) -> None:
    index = KeyIndex(pa.table({"k": [0.0, float("nan"), 2.0], "n": [1, 2, 3]}), ["k", "n"])

    with looked_up(way):
        found = index.positions(pa.table({"k": [float("nan"), None, -0.0, 2.0], "n": [2, 2, 1, None]}))

    assert found.to_pylist() == [1, None, 0, None]


def test_long_texts_with_one_hash_are_told_apart() -> None:
    """Only their first bytes are hashed."""
    texts = ["x" * 5000 + ending for ending in "abc"]

    with looked_up("by hashes"):
        assert KeyIndex(pa.table({"k": texts}), ["k"]).positions(pa.table({"k": [texts[2], texts[0], "x" * 5001]})).to_pylist() == [
            2,
            0,
            None,
        ]
        assert KeyIndex(pa.table({"k": texts[:1]}), ["k"]).positions(pa.table({"k": texts})).to_pylist() == [0, None, None]


def test_many_keys_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few rows are looked up among them, however often; Arrow would hash them each time."""
    hashed: list[int] = []
    hashes = key_index.column_hashes
    monkeypatch.setattr(key_index, "column_hashes", lambda keys: (hashed.append(keys.num_rows), hashes(keys))[1])
    keys = np.random.default_rng(1).permutation(10 * LEAST_HASHED)
    index = KeyIndex(pa.table({"k": keys}), ["k"])

    for start in range(0, 3000, 1000):
        assert index.positions(pa.table({"k": keys[start : start + 1000]})).to_pylist() == list(range(start, start + 1000))
    many = len(keys) // HASHED_RATIO + 1
    assert index.positions(pa.table({"k": keys[:many]})).to_pylist() == list(range(many))

    assert hashed == [len(keys), 1000, 1000, 1000]
