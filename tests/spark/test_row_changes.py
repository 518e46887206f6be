"""Row changes between two states: applied to the rows of one they give the rows of the other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.spark.row_changes import KIND, common_schema, files_apart, row_changes

SCHEMA = (Column("id", "bigint"), Column("name", "string"), Column("score", "double"))
FLOATS = st.none() | st.sampled_from([0.0, -1.5, float("nan"), float("inf")])
STATES = st.dictionaries(st.integers(0, 6), st.tuples(st.none() | st.sampled_from(["", "a", "é"]), FLOATS))
Rows = dict[int, tuple[Any, ...]]


def table(rows: Rows) -> pa.Table:
    names, types = ("id", "name", "score"), (pa.int64(), pa.string(), pa.float64())
    columns = list(zip(*((key, *rest) for key, rest in rows.items()), strict=True)) or [()] * 3
    return pa.table([pa.array(list(values), kind) for values, kind in zip(columns, types, strict=True)], names=list(names))


def shown(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples in which NaN equals itself."""
    return [tuple("NaN" if value != value else value for value in row.values()) for row in rows.to_pylist()]


def applied(before: Rows, changes: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of `before` after the changes, taken one by one."""
    rows = Counter(shown(table(before)))
    for *values, kind in shown(changes):
        if kind in ("delete", "update_preimage"):
            assert rows[tuple(values)] > 0
            rows[tuple(values)] -= 1
        else:
            rows[tuple(values)] += 1
    return +rows


@given(STATES, STATES)
def test_changes_make_one_state_of_the_other(before: Rows, after: Rows) -> None:
    """With a key: values that become null, or stop being null, are updates; what did not change is not there."""
    changes = row_changes(table(before), table(after), SCHEMA, ["id"])

    kinds = Counter(changes[KIND].to_pylist())
    both = before.keys() & after.keys()
    changed = sum(shown(table({key: before[key]})) != shown(table({key: after[key]})) for key in both)
    assert applied(before, changes) == Counter(shown(table(after)))
    assert (kinds["delete"], kinds["insert"]) == (len(before.keys() - after.keys()), len(after.keys() - before.keys()))
    assert (kinds["update_preimage"], kinds["update_postimage"]) == (changed, changed)


@given(st.lists(st.tuples(st.integers(0, 2), FLOATS), max_size=6), st.lists(st.tuples(st.integers(0, 2), FLOATS), max_size=6))
def test_without_a_key_rows_are_counted(before: list[Any], after: list[Any]) -> None:
    """The same row may stand there several times."""

    def made(rows: list[Any]) -> pa.Table:
        return pa.table({"id": pa.array([row[0] for row in rows], pa.int64()), "score": pa.array([row[1] for row in rows], pa.float64())})

    changes = row_changes(made(before), made(after), (SCHEMA[0], SCHEMA[2]), [])

    old, new = Counter(shown(made(before))), Counter(shown(made(after)))
    gone = Counter(row[:-1] for row in shown(changes) if row[-1] == "delete")
    came = Counter(row[:-1] for row in shown(changes) if row[-1] == "insert")
    assert (gone, came) == (old - new, new - old)


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_commit_timestamp"])
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "no key"])
def test_a_column_may_be_called_as_those_of_a_change_feed(name: str, key: list[str]) -> None:
    """It is compared like any other."""
    schema = (SCHEMA[0], Column(name, "string"))
    before, after = (pa.table({"id": [1, 2], name: [value, "b"]}) for value in ("a", "A"))

    changes = row_changes(before, after, schema, key)

    kinds = ("update_preimage", "update_postimage") if key else ("delete", "insert")
    assert shown(changes) == [(1, "a", kinds[0]), (1, "A", kinds[1])]


def test_updates_stand_in_pairs_in_the_order_of_keys() -> None:
    """Before and after of a row follow each other."""
    changes = row_changes(table({1: ("a", 1.0), 2: ("b", 2.0)}), table({1: ("A", 1.0), 2: ("B", 2.0)}), SCHEMA, ["id"])

    assert [(row["id"], row["name"], row[KIND]) for row in changes.to_pylist()] == [
        (1, "a", "update_preimage"),
        (1, "A", "update_postimage"),
        (2, "b", "update_preimage"),
        (2, "B", "update_postimage"),
    ]


def test_a_wider_type_and_a_new_column_are_compared_in_the_wider_schema() -> None:
    """A row that only got a null in a new column did not change."""
    old, new = (Column("id", "int"),), (Column("id", "bigint"), Column("note", "string"))
    before = pa.table({"id": pa.array([1, 2], pa.int32())})
    after = pa.table({"id": pa.array([1, 2], pa.int64()), "note": pa.array([None, "x"], pa.string())})

    there, back = common_schema(old, new), common_schema(new, old)
    changes = row_changes(before, after, there, ["id"])

    assert (there, back) == (new, (Column("id", "bigint"),))
    assert changes["id"].to_pylist() == [2, 2]
    assert row_changes(after, before, back, ["id"]).num_rows == 0


def test_only_files_with_other_rows_are_read() -> None:
    """A copy has the rows of its original."""

    def state(**origins: str) -> Snapshot:
        return Snapshot(files={path: DataFile(path, 1, 1, origin=origin) for path, origin in origins.items()})

    assert files_apart(state(a="", b="", c=""), state(a2="a", b="", d="")) == (["c"], ["d"])
