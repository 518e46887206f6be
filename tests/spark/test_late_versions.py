"""A late file's rows among the versions that are there: as if it had come in its turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glue_jobs.core.history_table import COLUMNS, SOURCE_FILE
from glue_jobs.core.schema import Column
from glue_jobs.spark import late_versions
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.history_passes import Outcome
from glue_jobs.spark.late_versions import Late
from glue_jobs.spark.net_changes import ROW_BITS, STAYS, STEPS
from glue_jobs.spark.row_versions import chains, with_place
from infra.local.dms_files import cdc_file_name
from tests.lake import START

SCHEMA = (Column("id", "bigint"), Column("name", "string"), *COLUMNS)
# (key, image, whether it is a delete)
FILE = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.booleans()), max_size=4)
Event = tuple[int, str, bool]


def entries(files: list[list[Event]], first: int = 0, *, without: int = -1) -> pa.Table:
    """The rows of the files from `first` on but one, each committed an hour after the one before."""
    rows, places = [], []
    for ordinal, file in enumerate(files):
        for row, (key, name, gone) in enumerate(file):
            if ordinal >= first and ordinal != without:
                time = START + timedelta(hours=10 * ordinal + row)
                source = cdc_file_name(START + timedelta(hours=10 * ordinal))
                rows.append((key, name, "delete" if gone else "update", time, None, 1, f"c{ordinal}", source, row))
                places.append((ordinal << ROW_BITS) + STEPS * row + STAYS)
    kinds = arrow_schema(SCHEMA)
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(kinds)]
    return with_place(pa.Table.from_arrays(columns, schema=kinds), pa.array(places, pa.int64()), np.full(len(rows), -1))


def stored(events: pa.Table) -> pa.Table:
    """The versions that the events make, with their places."""
    made = chains(events, ["id"])
    rows = made.rows(np.arange(len(made.own)))
    return with_place(rows, pa.repeat(pa.scalar(-1, pa.int64()), rows.num_rows), np.arange(rows.num_rows))


def after(there: pa.Table, outcome: Outcome) -> list[dict[str, Any]]:
    """The versions after the outcome, in the order of their keys and times."""
    rows = there.select([column.name for column in SCHEMA]).to_pylist()
    for place, until in zip(outcome.edits.closed.tolist(), outcome.edits.closed_at.tolist(), strict=True):
        rows[place].update(valid_to=pa.scalar(until, pa.timestamp("us", "UTC")).as_py(), validity_flag=0)
    gone = set(outcome.edits.removed.tolist())
    assert not gone & set(outcome.edits.closed.tolist())
    left = [row for place, row in enumerate(rows) if place not in gone]
    return in_order([*left, *outcome.rows.to_pylist()])


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["id"], row["valid_from"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(FILE, min_size=1, max_size=5), st.data())
def test_it_is_as_if_the_file_had_come_in_its_turn(files: list[list[Event]], data: st.DataObject) -> None:
    """Deletes that came to nothing are among the versions then, and others may be no versions any more."""
    late = data.draw(st.integers(0, len(files) - 1))
    there = stored(entries(files, without=late))
    rule = Late((late,))
    read = rule.kept(entries(files, late), ("id",))
    known = there.filter(pa.array(np.isin(there["id"].to_numpy(), read["id"].to_numpy())))

    outcome = rule(None, ("id",), read, known)

    wanted = stored(entries(files)).select([column.name for column in SCHEMA])
    assert after(there, outcome) == in_order(wanted.to_pylist())


@settings(max_examples=60, deadline=None)
@given(st.lists(FILE, min_size=2, max_size=4), FILE, st.data())
def test_a_person_s_versions_stay_where_they_were(files: list[list[Event]], given_rows: list[Event], data: st.DataObject) -> None:
    """They came last: only a late row that wins comes behind them; else what was the last version is the last still."""
    late = data.draw(st.integers(0, len(files) - 1))
    person = entries([*([[]] * 9), given_rows])
    blank = pa.nulls(person.num_rows, pa.string())
    person = person.set_column(person.column_names.index("source_file"), "source_file", blank)
    there = stored(pa.concat_tables([entries(files, without=late), person]))
    rule = Late((late,))
    read = rule.kept(entries(files, late), ("id",))
    known = there.filter(pa.array(np.isin(there["id"].to_numpy(), read["id"].to_numpy())))

    found = after(there, rule(None, ("id",), read, known))

    for key in set(read["id"].to_pylist()):
        last_read = max(read.filter(pa.array(read["id"].to_numpy() == key)).to_pylist(), key=lambda row: row["__order"])
        before = [row for row in there.to_pylist() if row["id"] == key and row["validity_flag"] == 1]
        now = [row for row in found if row["id"] == key and row["validity_flag"] == 1]
        winner = last_read if last_read["__order"] >> ROW_BITS == late else before[0] if before else None
        alive = [row["name"] for row in now if row["operation"] != "delete"]
        assert alive == ([winner["name"]] if winner and winner["operation"] != "delete" else [])


@pytest.mark.timeout(30)
def test_many_files_are_ranked_at_once() -> None:
    """In the order in which DMS wrote them; a version of no CDC file comes before those. To look for each among all took a minute."""
    names = [cdc_file_name(START + timedelta(seconds=number)) for number in range(50_000)]
    order = np.random.default_rng(1).permutation(len(names))
    files = [None, "LOAD00000001.parquet", *(names[at] for at in order), None, names[0]]

    ranks = late_versions._file_ranks(pa.table({SOURCE_FILE: pa.array(files, pa.string())}))

    assert ranks.tolist() == [0, 0, *(order + 1).tolist(), 0, 1]
