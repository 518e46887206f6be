"""The chain of a key's versions, held against a loop over a dict."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from glue_jobs.core.history_table import COLUMNS
from glue_jobs.core.schema import Column
from glue_jobs.spark.arrow_types import arrow_schema
from glue_jobs.spark.row_events import commit_times
from glue_jobs.spark.row_versions import chains, running_max, with_place

SCHEMA = (Column("id", "double"), Column("name", "string"), *COLUMNS)
KEYS = [0.0, 1.5, float("nan")]
START = datetime(2024, 5, 1, tzinfo=timezone.utc)
# (key, its image, whether it is a delete, hours after START)
EVENTS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from("abc"), st.booleans(), st.integers(-5, 40)), max_size=14)


def entries(events: list[tuple[Any, ...]], first_row: int) -> pa.Table:
    """Events as new entries: each tells its place in the list as row of a file."""
    rows = [
        (key, name, "delete" if gone else "update", START + timedelta(hours=hours), None, 1, "c", "f", first_row + at)
        for at, (key, name, gone, hours) in enumerate(events)
    ]
    kinds = arrow_schema(SCHEMA)
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(kinds)]
    table = pa.Table.from_arrays(columns, schema=kinds)
    return with_place(table, pa.array(range(len(rows)), pa.int64()), np.full(len(rows), -1))


def expected(events: list[tuple[Any, ...]]) -> dict[str, list[dict[str, Any]]]:
    """Each key's versions, one event after the other."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row, (key, name, gone, hours) in enumerate(events):
        chain = found.setdefault(str(key), [])
        alive = bool(chain) and chain[-1]["operation"] != "delete"
        if gone and not alive:
            continue
        time = START + timedelta(hours=hours)
        if chain:
            time = max(time, chain[-1]["valid_from"])
            chain[-1].update(valid_to=time, validity_flag=0)
        kind = "delete" if gone else "update" if alive else "insert"
        image = chain[-1]["name"] if gone else name
        chain.append({"name": image, "operation": kind, "valid_from": time, "valid_to": None, "validity_flag": 1, "source_row": row})
    return {key: chain for key, chain in found.items() if chain}


def by_key(rows: pa.Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        key = str(row.pop("id"))
        assert (row.pop("change_id"), row.pop("source_file")) == ("c", "f")
        found.setdefault(key, []).append(row)
    return found


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.integers(0, 14))
def test_a_key_s_versions(events: list[tuple[Any, ...]], cut: int) -> None:
    """In one batch, and in two: the second goes on from the open versions of the first, which end where a new one begins."""
    whole = chains(entries(events, 0), ["id"])
    assert by_key(whole.rows(np.arange(len(whole.own)))) == expected(events)

    first = chains(entries(events[:cut], 0), ["id"])
    stored = first.rows(np.arange(len(first.own)))
    still_open = np.flatnonzero(first.latest)
    there = with_place(stored.take(pa.array(still_open)), pa.repeat(pa.scalar(-1, pa.int64()), len(still_open)), still_open)
    second = chains(pa.concat_tables([there, entries(events[cut:], cut)]), ["id"])

    rows = stored.to_pylist()
    for at, until, latest in zip(second.at, second.valid_to, second.latest, strict=True):
        if at >= 0 and not latest:
            rows[at].update(valid_to=datetime.fromtimestamp(until / 1e6, timezone.utc), validity_flag=0)
    both = [*rows, *second.rows(second.at < 0).to_pylist()]
    assert by_key(pa.Table.from_pylist(both, arrow_schema(SCHEMA))) == expected(events)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_the_greatest_so_far_of_each_run(values: list[tuple[bool, int]]) -> None:
    """Exact for every 64-bit number."""
    first = np.array([at == 0 or begins for at, (begins, _) in enumerate(values)], bool)
    wanted: list[int] = []
    for begins, (_, value) in zip(first, values, strict=True):
        wanted.append(value if begins else max(value, wanted[-1]))

    assert running_max(np.array([value for _, value in values], np.int64), first).tolist() == wanted


def test_the_commit_time_of_rows() -> None:
    """Texts with any number of digits are cut to microseconds; what is no time, a column of another type or none has the other time."""
    texts = ["2024-05-01 12:00:00", "2024-05-01 12:00:00.1234567", None, "", "2024-02-30 00:00:00", "2024-05-01 12:00:00.12"]
    rows = pa.table({"text": texts, "stamp": pa.array([START] * 6, pa.timestamp("us", "UTC")), "number": range(6)})

    times = commit_times(rows, "text", 0).to_pylist()

    noon, epoch = datetime(2024, 5, 1, 12, tzinfo=timezone.utc), datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert times == [noon, noon.replace(microsecond=123456), epoch, epoch, epoch, noon.replace(microsecond=120000)]
    assert commit_times(rows, "stamp", 0).to_pylist() == [START] * 6
    assert commit_times(rows, "number", 0).to_pylist() == commit_times(rows, "", 0).to_pylist() == [epoch] * 6
