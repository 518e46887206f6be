"""The model and the code send the same writes in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.protocol.converge import abort_uploads
from tests.lake import LakeTable
from tests.model.explore import walk
from tests.model.requests import abort
from tests.model.state import State, first_state
from tests.protocol.runs import LONG_LEASE, die, run_on
from tests.protocol.wire import Request, Rule, Wire
from tests.quick_aws import QuickAws

# A request of the model → the operations that it stands for. What only reads is left out.
OPERATIONS = {
    "take": ("UpdateItem",),
    "commit": ("UpdateItem",),
    "complete": ("CompleteMultipartUpload",),
    "hide": ("DeleteObjects",),
    "clear": ("UpdateItem",),
    "abort_lost": ("AbortMultipartUpload",),
    "record_lost": ("PutObject",),
    "catalog_update": ("UpdateTable",),
    "partitions": ("BatchCreatePartition",),
    "catalog_clear": ("UpdateItem",),
    "stage_pause": ("UpdateItem",),
    "discard_mark": ("PutObject",),
    "discard_abort": ("AbortMultipartUpload",),
    "unpause": ("UpdateItem",),
    "drop_older": ("AbortMultipartUpload",),
    "removal_mark": ("PutObject",),
    "remove": ("DeleteObjects",),
    "clear_erasing": ("UpdateItem",),
    "release": ("UpdateItem",),
}
UPLOADS = ("CreateMultipartUpload", "UploadPart", "PutObject")
WORK = {
    "batch": UPLOADS,
    "rollback": ("CreateMultipartUpload", "UploadPartCopy", "PutObject"),
    "stage": UPLOADS,
    "commit": ("PutObject",),
    "erase": UPLOADS,
}
CATALOG = frozenset({"catalog"})


@pytest.fixture
def loaded(quick_aws: QuickAws) -> LakeTable:
    """A table of one file in one partition, as in the model, with a CDC file to apply."""
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])
    table = LakeTable(quick_aws.environment(), quick_aws.raw, quick_aws.lake, columns, partition_key="part")
    table.load([(1, "one", "x"), (2, "two", "x")])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE", "x"))])
    return table


def test_a_batch(loaded: LakeTable) -> None:
    """Lease, uploads, record, commit, completions, hides, Publishing, catalog, CatalogPending, lease."""
    wire = Wire()
    assert run_on(wire, loaded, "LoadIncremental", lease_seconds=LONG_LEASE) == 0

    assert _sent(wire.requests) == _modelled(first_state((), 1), "batch")


def test_a_rollback(loaded: LakeTable) -> None:
    """The same with copies in the place of uploads."""
    wire = Wire()
    assert loaded.run() == 0
    assert run_on(wire, loaded, "Rollback", lease_seconds=LONG_LEASE, to="previous") == 0

    assert _sent(wire.requests) == _modelled(_after(first_state((), 1), "batch"), "rollback")


def test_a_run_after_one_that_died_after_its_commit(loaded: LakeTable) -> None:
    """It finishes what it finds and has nothing else to do."""
    wire, dying = Wire(), Wire()
    die(dying, loaded, "LoadIncremental", _after_commit(dying))
    assert run_on(wire, loaded, "LoadIncremental", lease_seconds=LONG_LEASE) == 0

    assert _sent(wire.requests) == _modelled(_committed(first_state((), 1)), "batch")


def test_a_run_that_takes_a_lost_change_back(loaded: LakeTable) -> None:
    """It tries the completion, aborts, records, commits, has nothing to hide, and does the batch again."""
    wire, dying = Wire(), Wire()
    die(dying, loaded, "LoadIncremental", _after_commit(dying))
    abort_uploads(loaded.clients.s3, loaded.out_path, loaded.head().added)
    state = _committed(first_state((), 1))
    for name, key in state.keys:
        state = abort(state, name) if key.upload == "open" else state
    assert run_on(wire, loaded, "LoadIncremental", lease_seconds=LONG_LEASE) == 0

    assert _sent(wire.requests) == _modelled(state, "batch")


def test_a_staged_batch_that_is_committed(loaded: LakeTable) -> None:
    """Uploads, record and pause; then a record of its own, and what follows every commit."""
    staging, committing = Wire(), Wire()
    assert run_on(staging, loaded, "LoadIncremental", lease_seconds=LONG_LEASE, stage="true") == 0
    with committing.connected():
        ended = loaded.commit(loaded.item()["LastRun"]["staged"], lease_seconds=LONG_LEASE)

    state = first_state((), 1)
    assert (ended.code, ended.error) == (0, None)
    assert _sent(staging.requests) == _modelled(state, "stage")
    assert _sent(committing.requests) == _modelled(_after(state, "stage"), "commit")


def test_a_staged_batch_that_is_discarded(loaded: LakeTable) -> None:
    """The mark, the aborts, the pause."""
    wire = Wire()
    assert loaded.run(stage="true") == 0
    with wire.connected():
        ended = loaded.discard(loaded.item()["LastRun"]["staged"], lease_seconds=LONG_LEASE)

    assert (ended.code, ended.error) == (0, None)
    assert _sent(wire.requests) == _modelled(_after(first_state((), 1), "stage"), "discard")


def test_an_erase_over_a_staged_batch(loaded: LakeTable, tmp_path: Path) -> None:
    """As any change; then it aborts the uploads that wait, removes the versions, and clears Erasing."""
    wire, keys = Wire(), tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    assert loaded.run(stage="true") == 0
    assert run_on(wire, loaded, "Erase", lease_seconds=LONG_LEASE, erase_keys=str(keys)) == 0

    assert loaded.open_uploads() == []
    assert _sent(wire.requests) == _modelled(_after(first_state((), 1), "stage"), "erase")


def test_an_erase_that_died_before_it_removed_anything(loaded: LakeTable, tmp_path: Path) -> None:
    """The next run of Erase publishes, removes and clears."""
    wire, dying, keys = Wire(), Wire(), tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    die(dying, loaded, "Erase", _after_commit(dying), erase_keys=str(keys))
    assert run_on(wire, loaded, "Erase", lease_seconds=LONG_LEASE, resume="true") == 0

    assert _sent(wire.requests) == _modelled(_committed(first_state((), 1), "erase"), "resume")


def _after_commit(wire: Wire) -> Rule:
    """Die once the commit took effect."""

    def rule(request: Request, forward: Callable[[], Any]) -> Any:
        answer = forward()
        return wire.kill() if request.is_commit() else answer

    return rule


def _sent(requests: Iterable[Request]) -> list[str]:
    """The operations that change something, each once where several follow each other."""
    return [operation for operation, _ in groupby(request.operation for request in requests if request.is_write)]


def _modelled(state: State, job: str) -> list[str]:
    return [operation for operation, _ in groupby(_operations(state, job))]


def _operations(state: State, job: str) -> Iterator[str]:
    for request, after in walk(state, (job,), faults=CATALOG):
        worked = request == "work" and after.writers[0].at in ("commit", "stage_pause")
        yield from WORK[job] if worked else OPERATIONS.get(request, ())


def _after(state: State, *jobs: str) -> State:
    for _, after in walk(state, jobs, faults=CATALOG, name="A"):
        state = after
    return state


def _committed(state: State, job: str = "batch") -> State:
    """The state in which a run that dies right after its commit leaves the table."""
    return next(after for request, after in walk(state, (job,), faults=CATALOG, name="A") if request == "commit")
