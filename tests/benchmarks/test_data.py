"""The comparison's data: the same every time, and the truth of a workload is what a dict says."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.data import base as base_module
from benchmarks.data.base import LARGE, MANY, SEQUENCE, UUID, Base
from benchmarks.data.digest import digest_of
from benchmarks.data.kept import kept_folder
from benchmarks.data.prepared import prepare
from benchmarks.data.workloads import APPLY, CORRECTION_KEY, UNDO, WORKLOADS, net
from glue_jobs.spark.dms_files import OP_COLUMN

ROWS = 2000


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left in the cache."""
    monkeypatch.setattr(base_module, "DATA", tmp_path)


def by_key(rows: pa.Table) -> dict[Any, dict[str, Any]]:
    """Rows by their key, which comes once."""
    found = {row["id"]: row for row in rows.to_pylist()}
    assert len(found) == rows.num_rows
    return found


@pytest.mark.parametrize("keys", [SEQUENCE, UUID])
@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if workload.kind in (APPLY, UNDO)])
def test_the_truth_is_what_a_dict_says(name: str, keys: str) -> None:
    """Batch by batch, row by row; every updated row differs from the one before."""
    prepared = prepare(WORKLOADS[name], Base(ROWS, MANY, keys))
    before = by_key(prepared.base.read())
    now = dict(before)

    for path in prepared.changes:
        for row in pq.read_table(path).to_pylist():
            op, key = row.pop(OP_COLUMN), row["id"]
            assert (op == "I") == (key not in now)
            if op == "D":
                del now[key]
            else:
                assert now.get(key) != row
                now[key] = row

    after = pa.Table.from_pylist(list(now.values()), schema=prepared.base.schema)
    assert asdict(digest_of(after)) == asdict(prepared.truth)
    assert digest_of(prepared.base.read()) != prepared.truth
    assert prepared.point in {str(key) for key in now}


def test_the_truth_of_a_load_is_the_table() -> None:
    """The load files have all rows, each as an insert."""
    prepared = prepare(WORKLOADS["W7"], Base(ROWS))

    rows = pa.concat_tables([pq.read_table(path) for path in prepared.changes])

    assert set(rows[OP_COLUMN].to_pylist()) == {"I"}
    assert digest_of(rows) == prepared.truth == prepared.base_rows
    assert prepared.impacted == ()


@pytest.mark.parametrize("keys", [SEQUENCE, UUID])
def test_the_truth_of_a_correction(keys: str) -> None:
    """All rows of the deleted keys are gone, those of the updated keys are the given ones; some key has several rows."""
    prepared = prepare(WORKLOADS["W8"], Base(40_000, MANY, keys))
    gone, given = (pq.read_table(path).to_pylist() for path in prepared.changes)

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in CORRECTION_KEY)

    updated = {key(row) for row in given}
    named = updated | {key(row) for row in gone}
    before = prepared.base.read().to_pylist()
    after = [row for row in before if key(row) not in named] + given

    assert all(set(row) == set(CORRECTION_KEY) for row in gone)
    assert {row["id"] for row in given} == {row["id"] for row in before if key(row) in updated}
    assert len(given) > len(updated)
    assert digest_of(pa.Table.from_pylist(after, schema=prepared.base.schema)) == prepared.truth


@pytest.mark.parametrize("name", ["W1", "W2", "W3"])
def test_the_impacted_files_are_those_with_a_changed_key(name: str) -> None:
    """The yardstick reads these files, no more and no less; their digest is of their rows unchanged."""
    prepared = prepare(WORKLOADS[name], Base(ROWS))
    changed = set(net([pq.read_table(path) for path in prepared.changes])["id"].to_pylist())

    files = {path.name: pq.read_table(path) for path in prepared.base.paths()}
    hit = [name for name, rows in files.items() if changed & set(rows["id"].to_pylist())]

    assert list(prepared.impacted) == hit
    assert prepared.impacted_rows == digest_of(pa.concat_tables([files[name] for name in hit]))
    assert (len(hit) <= len(files) // 10) == (name == "W2")


def test_rows_are_the_same_every_time() -> None:
    """Figures of two machines are of the same rows."""
    first = list(Base(ROWS).pieces())

    again = list(Base(ROWS).pieces())

    assert first == again


def test_a_digest_looks_at_every_value_and_not_at_the_order() -> None:
    """A change of one value of one row changes it; another order of the rows does not."""
    rows = next(Base(ROWS).pieces())
    whole = digest_of(rows)
    assert digest_of(rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))) == whole

    for at, field in enumerate(rows.schema):
        values = rows.column(at).to_pylist()
        values[0], values[1] = values[1], values[0]
        if values[0] != values[1]:
            assert digest_of(rows.set_column(at, field, pa.array(values, field.type))) != whole, field.name


def test_layouts() -> None:
    """700 files of ten million rows, or files of 128 MB; never fewer than twenty of the first."""
    assert (Base().files, Base(layout=LARGE).files, Base(rows=200_000).files) == (700, 5, 20)
    assert [table.num_rows for table in Base(ROWS).pieces()] == [ROWS // 20] * 20


def test_random_keys_are_uuids_in_no_order() -> None:
    """Every file spans nearly all keys, so that no range of keys leaves a file out."""
    keys = next(Base(ROWS, keys=UUID).pieces())["id"].to_pylist()

    assert [str(uuid.UUID(key)) for key in keys] == keys
    assert sorted(keys) != keys
    assert (min(keys)[0], max(keys)[0]) < ("4", "c") or (min(keys) < "4" and max(keys) > "c")


def test_a_kept_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    """What fails leaves nothing; who comes second takes what is there."""
    folder = tmp_path / "kept"

    def fail(part: Path) -> None:
        (part / "half").touch()
        raise RuntimeError("broke off")

    with pytest.raises(RuntimeError):
        kept_folder(folder, fail)
    assert list(tmp_path.iterdir()) == []

    def other_run_is_first(part: Path) -> None:
        (part / "mine").touch()
        kept_folder(folder, lambda other: (other / "theirs").touch())

    assert [path.name for path in kept_folder(folder, other_run_is_first).iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [folder]
