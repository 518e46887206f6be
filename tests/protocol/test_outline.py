"""What is read of a large table's records: without its files, where nobody asks for one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given

from benchmarks.synthetic.objects import KeptObjects
from benchmarks.synthetic.table import BigTable, made
from controller.gather import Facts, read_files, read_outlines
from controller.plan import plan_one
from controller.status import status_of
from glue_jobs.aws.records import BEGINNING_BYTES, read_record, write_record
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, changes_folder
from glue_jobs.core.record import ChangeRecord, beginning, from_json, to_json
from glue_jobs.core.snapshot import CHECKPOINT_ALWAYS_FILES, TOTALS
from glue_jobs.protocol.history import read_outline, read_snapshot
from glue_jobs.protocol.lineage import Lineage
from tests.core.records import RECORDS, minimal
from tests.core.tables import NOW

FILES = (20, CHECKPOINT_ALWAYS_FILES + 1, 1500)


@given(RECORDS)
def test_the_beginning_of_a_records_text_is_the_record_without_what_comes_behind(record: ChangeRecord) -> None:
    """Wherever the text breaks off behind it; a text that breaks off before has none."""
    text = to_json(record)
    assert from_json(text, "x") == record
    if record.checkpoint is None:
        assert beginning(text, with_checkpoint=False) is None
        return
    head = beginning(text, with_checkpoint=False)
    assert head is not None
    assert from_json(head, "x") == replace(record, checkpoint=None)
    assert beginning(text[: len(head) - 1], with_checkpoint=False) is None
    part = beginning(text, with_checkpoint=True)
    assert (part is None) == (not record.checkpoint.files)
    if part is not None:
        assert from_json(part, "x") == replace(record, checkpoint=replace(record.checkpoint, files=()))


@pytest.fixture(scope="module", params=FILES)
def table(request: Any) -> BigTable:
    """A table whose head has no checkpoint where it has many files."""
    return made(request.param, 17)


def heads(table: BigTable) -> Sequence[str]:
    return ["", table.ids[0], *table.ids[-12:]]


def test_an_outline_is_the_snapshot_without_its_files(table: BigTable) -> None:
    """Of every change, with and without a checkpoint; rows, number and bytes of the files are known."""
    for head in heads(table):
        whole, outline = (read(table.s3, table.state.lake, head) for read in (read_snapshot, read_outline))

        assert replace(outline, files={}, totals=None) == replace(whole, files={})
        assert (outline.rows, outline.file_count, outline.size_bytes) == (whole.rows, whole.file_count, whole.size_bytes)
        assert outline.is_empty == whole.is_empty


def test_nobody_takes_an_outline_for_an_empty_table(table: BigTable) -> None:
    """Its files can't be asked for; those of a small table are there."""
    outline = read_outline(table.s3, table.state.lake, table.head)
    if outline.totals is None:
        assert len(outline.files) <= CHECKPOINT_ALWAYS_FILES
        return
    for ask in (len, list, lambda files: files["x"]):
        with pytest.raises(AssertionError, match="without its files"):
            ask(outline.files)


def test_plan_and_status_are_the_same_by_an_outline(table: BigTable) -> None:
    """A controller reads no more."""
    s3: Any = table.s3
    facts = [Facts("p", table.state, *read(s3, table.state, Limits())) for read in (read_files, read_outlines)]

    for made_of in (plan_one, status_of):
        assert made_of(facts[0], NOW, Limits()) == made_of(facts[1], NOW, Limits())


def without_totals(text: str) -> str:
    """The record as an earlier version wrote it."""
    data = json.loads(text)
    data["details"].pop(TOTALS, None)
    checkpoint = data.pop("checkpoint", None)
    return json.dumps({"format": data.pop("format"), **({"checkpoint": checkpoint} if checkpoint else {}), **data}, separators=(",", ":"))


def test_records_of_an_earlier_version_are_read_whole() -> None:
    """They don't say how many files there are, and their checkpoint stands in the middle."""
    table = made(1500, 14)
    for key, data in table.s3.objects.items():
        packed = key.endswith(".gz")
        text = without_totals((gzip.decompress(data) if packed else data).decode()).encode()
        table.s3.objects[key] = gzip.compress(text) if packed else text
    lake = table.state.lake

    for head in heads(table):
        assert read_outline(table.s3, lake, head) == read_snapshot(table.s3, lake, head)
    assert [record.id for record in Lineage(table.s3, lake, table.head).back()] == table.ids[::-1]


def test_what_a_plan_and_a_walk_read_does_not_grow_with_the_table() -> None:
    """Five and ten thousand files: the same requests; of each record a beginning at most."""
    found = []
    for files in (5000, 10_000):
        table = made(files, 14)
        s3: Any = table.s3
        s3.requests.clear()
        s3.bytes_read = 0
        read_outline(s3, table.state.lake, table.head)
        for record in list(Lineage(s3, table.state.lake, table.head).back())[:-1]:
            assert record.checkpoint is None
        assert s3.bytes_read <= s3.requests["GET"] * BEGINNING_BYTES
        found.append(dict(s3.requests))

    assert found[0] == found[1]


@pytest.mark.parametrize(("walked", "listings"), [(5, 0), (60, 1), (1500, 3)])
def test_a_short_walk_lists_records_from_nearby(walked: int, listings: int) -> None:
    """Of 1,500 changes, a lease each: one that ends early does not list the names of all."""
    s3: Any = KeptObjects()
    lake, before = S3Uri("lake", "lake/sales/orders/"), ""
    for fence in range(1, 1501):
        record = minimal(id=str(ChangeId(fence, 1, f"{fence:08x}")), parent=before)
        write_record(s3, lake, record)
        before = record.id

    found = list(islice(Lineage(s3, lake, before).back(), walked))

    assert [ChangeId.parse(record.id).fence for record in found] == list(range(1500, 1500 - walked, -1))
    assert s3.requests["LIST"] == listings


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format":1}', b"\x1f\x8b"])
def test_a_damaged_record_is_said_to_be_so_also_without_its_checkpoint(damage: bytes) -> None:
    """A short one and a long one."""
    table = made(20, 1)
    s3: Any = table.s3
    (key,) = s3.objects
    for body in (damage, damage + b" " * BEGINNING_BYTES):
        s3.objects[key] = body
        with pytest.raises(Exception, match="can't be read") as caught:
            read_record(s3, table.state.lake, table.head, with_checkpoint=False)
        assert getattr(caught.value, "code", "") == "bad-record"


def test_a_large_record_without_a_checkpoint_is_read(table: BigTable) -> None:
    """One that names very many raw files."""
    s3: Any = table.s3
    record = read_record(s3, table.state.lake, table.head)
    large = replace(record, id=record.id[:-1] + "e", checkpoint=None, inputs=record.inputs * 9000)
    write_record(s3, table.state.lake, large)

    assert read_record(s3, table.state.lake, large.id, with_checkpoint=False) == large
    del s3.objects[next(key for key in s3.objects if key.startswith(changes_folder(table.state.lake).join(large.id).key))]
