"""Net changes are what a dict holds after all rows of a batch: the last change of each key, sorted by key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glue_jobs.core.keys import encode_bound
from glue_jobs.core.partitioning import parse_partition_key
from glue_jobs.core.record import DataFile
from glue_jobs.core.schema import Column, names
from glue_jobs.spark.net_changes import DELETE, INSERT, OP, POSITION, STAYS, STEPS, UPDATE, Unpacker, net_changes, position
from glue_jobs.spark.place import Shape
from glue_jobs.spark.ranking import rank
from tests.spark.gathered import Narrow, gather_little
from tests.spark.lake_values import plain_key, rows_of, table_of

PROPERTY = settings(max_examples=150, deadline=None)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Shape, list[pa.Table]]:
    """A shape and the rows of one to three files; the column `n` tells all rows apart."""
    schema, rows = draw(rows_of(max_rows=20))
    shape = Shape("t", (*schema, Column("n", "int")), names(schema))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    files = []
    for ordinal, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        numbered = [(*row, number) for number, row in enumerate(rows[start:stop], start)]
        ops = draw(st.lists(st.integers(0, 2), min_size=len(numbered), max_size=len(numbered)))
        table = table_of(shape.schema, numbered).append_column(OP, pa.array(ops, pa.int8()))
        rows = pa.array([number * STEPS + STAYS for number in range(len(numbered))], pa.int64())
        files.append(table.append_column(POSITION, position(ordinal, rows)))
    return shape, files


@PROPERTY
@given(batches(), st.randoms(use_true_random=False))
def test_the_last_change_of_each_key_wins(drawn, random) -> None:
    """In whatever order the files' rows come, the last one by file and row stays, its operation with it."""
    shape, files = drawn
    expected = {}
    for table in files:
        for row in table.to_pylist():
            expected[plain_key(tuple(row[name] for name in shape.key))] = (row["n"], row[OP])
    random.shuffle(files)

    net = net_changes(rank(pa.concat_tables(files), shape.key), shape)

    assert list(zip(net.table["n"].to_pylist(), net.ops.tolist(), strict=True)) == [expected[key] for key in sorted(expected)]


def test_rows_without_a_key_are_put_in_order_however_much_text_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow can't gather 2 GiB of a column of texts at once."""
    gather_little(monkeypatch)
    places = [number * 7 % 50 for number in range(50)]
    table = pa.table({"text": [f"text {place}" for place in places], OP: pa.array([INSERT] * 50, pa.int8()), POSITION: places})

    net = net_changes(Narrow(table), Shape("t", (Column("text", "string"),), ()))  # type: ignore[arg-type]

    assert net.table["text"].to_pylist() == [f"text {place}" for place in range(50)]


@PROPERTY
@given(batches(), st.data())
def test_a_file_meets_the_changes_in_its_key_range(drawn, data) -> None:
    """The slice for a data file holds exactly the keys between its bounds; after packing and unpacking as well."""
    shape, files = drawn
    net = net_changes(rank(pa.concat_tables(files), shape.key), shape)
    keys = [plain_key(tuple(row[name] for name in shape.key)) for row in net.table.to_pylist()]
    chosen = sorted(data.draw(st.lists(st.sampled_from(keys), max_size=2))) if keys else []
    low, high = (chosen[0], chosen[-1]) if chosen else (None, None)
    file = DataFile(
        "f",
        1,
        1,
        low=low and encode_bound(shape.key_types, low, upper=False),
        high=high and encode_bound(shape.key_types, high, upper=True),
    )

    start, stop = Unpacker(shape, net.partitions)(net.pack()).slice_for(file)

    inside = [at for at, key in enumerate(keys) if low is None or low <= key <= high]
    assert [*range(start, stop)] == inside


def test_rows_without_a_key_all_stay_in_their_order() -> None:
    """A table without PrimaryKey keeps every row, by file and row."""
    shape = Shape("t", (Column("n", "int"),), ())
    parts = [pa.table({"n": pa.array([n], pa.int32()), OP: pa.array([0], pa.int8()), POSITION: [n << 40]}) for n in (2, 0, 1)]

    net = net_changes(rank(pa.concat_tables(parts), shape.key), shape)

    assert net.table["n"].to_pylist() == [0, 1, 2]


def test_a_delete_belongs_to_no_partition() -> None:
    """D may come with nothing but the key, so its partition is not looked at; not even for a value that can't be a folder."""
    schema = (Column("id", "int"), Column("part", "string"))
    shape = Shape("t", schema, ("id",), parse_partition_key("part"))
    rows = table_of(schema, [(1, "a"), (2, None), (3, ""), (4, None)])
    marked = rows.append_column(OP, pa.array([UPDATE, UPDATE, DELETE, DELETE], pa.int8()))

    net = net_changes(marked, shape)

    assert [net.partitions[code] if code >= 0 else None for code in net.codes] == [("a",), (None,), None, None]
    assert net.code_of(("a",)) == net.codes[0]
    assert net.code_of(("b",)) == -2


@pytest.mark.parametrize("files", [2, 5_000_000])
def test_the_position_orders_files_before_rows(files: int) -> None:
    """The first row of a file comes after any row of the file before, up to the largest batch."""
    last_row = pa.array([10**12 - 1], pa.int64())

    before, after = position(files - 1, last_row), position(files, pa.array([0], pa.int64()))

    assert pc.less(before, after).to_pylist() == [True]
