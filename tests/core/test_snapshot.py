"""Snapshots from records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core import snapshot as snapshots
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.record import ChangeRecord, Counts, Generation, Input, from_json, to_json
from glue_jobs.core.snapshot import (
    CHECKPOINT_ALWAYS_AWAITED,
    CHECKPOINT_ALWAYS_FILES,
    CHECKPOINT_EVERY,
    Snapshot,
    apply,
    checkpoint_due,
    checkpoint_of,
    recalled,
    replay,
)
from tests.core.records import data_file, history, minimal

STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=25)


def without_chain(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, chain=())


@given(STEPS)
def test_a_checkpoint_says_what_the_records_before_it_say(steps: list[tuple[int, int]]) -> None:
    """Replay of all records, with or without checkpoints, and the last checkpoint alone give one snapshot."""
    plain, with_checkpoints = history(steps, checkpoints=False), history(steps)

    whole = without_chain(replay(plain))

    assert without_chain(replay(with_checkpoints)) == whole
    assert without_chain(apply(Snapshot(), with_checkpoints[-1])) == whole


@given(STEPS)
def test_a_snapshot_survives_json(steps: list[tuple[int, int]]) -> None:
    """What the next run reads is what this run had."""
    records = history(steps)

    assert replay(from_json(to_json(record), "here") for record in records) == replay(records)


def test_files_are_added_and_superseded() -> None:
    """Uploads stay behind in the record."""
    first, second = history([(2, 0), (1, 1)])

    found = replay([first, second])

    assert set(found.files) == {"1-1.parquet", "2-0.parquet"}
    assert [file.upload for file in found.files.values()] == [None, None]
    assert (found.rows, found.size_bytes, found.change, found.cursor) == (1, 10, second.id, second.cursor_after)


def test_superseding_what_is_not_there_is_a_broken_history() -> None:
    """The records don't fit each other: never guess."""
    record = minimal(superseded=("nowhere.parquet",))

    with pytest.raises(TableBlocked, match=r"nowhere\.parquet") as caught:
        apply(Snapshot(), record)

    assert caught.value.code == "broken-history"


def test_a_load_also_replaces_files_that_no_snapshot_has() -> None:
    """Another program's. Where its record is read without its checkpoint, as for row changes, the files before it are told all the same."""
    first, second = history([(2, 0), (1, 1)], checkpoints=False)
    load = replace(second, kind="full-load", superseded=(*(file.path for file in first.added), "theirs.parquet"))

    after = apply(apply(Snapshot(), first), load)

    assert list(after.files) == [file.path for file in second.added]


def test_a_record_on_another_parent_is_a_broken_history() -> None:
    """One is missing in between."""
    first, _, third = history([(1, 0)] * 3, checkpoints=False)

    with pytest.raises(TableBlocked) as caught:
        replay([first, third])

    assert caught.value.code == "broken-history"


def test_a_record_with_a_checkpoint_needs_no_parent() -> None:
    """That is what it is for."""
    records = history([(1, 0)] * 3)

    assert set(apply(Snapshot(), records[-1]).files) == {"1-0.parquet", "2-0.parquet", "3-0.parquet"}


def test_a_large_table_has_a_checkpoint_every_so_many_records() -> None:
    """Reading its snapshot takes at most so many records, however long the history is."""
    records = history([(CHECKPOINT_ALWAYS_FILES + 1, 0)] + [(1, 1)] * 25)

    due = [number for number, record in enumerate(records) if record.checkpoint is not None]

    assert due == [0, CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY]
    assert max(len(record.chain) for record in records) == CHECKPOINT_EVERY


def test_the_chain_names_the_records_to_read() -> None:
    """From the last checkpoint on, without the record itself."""
    records = history([(CHECKPOINT_ALWAYS_FILES + 1, 0)] + [(1, 1)] * 12)
    by_id = {record.id: record for record in records}

    last = records[-1]

    assert [by_id[change] for change in last.chain] == records[CHECKPOINT_EVERY:-1]
    assert replay([*(by_id[change] for change in last.chain), last]) == replay(records)


def test_a_small_table_has_a_checkpoint_in_every_record() -> None:
    """One request reads its snapshot."""
    assert (checkpoint_due(Snapshot(), CHECKPOINT_ALWAYS_FILES), checkpoint_due(Snapshot(), CHECKPOINT_ALWAYS_FILES + 1)) == (True, False)


def cdc(day: int) -> Input:
    return Input(f"raw/202405{day:02}-120000000.parquet", "e")


def test_a_checkpoint_forgets_inputs_long_before_the_window() -> None:
    """Twice the late window is kept: no plan looks further back. The newest skipped ones are kept beside: a reload must not take them."""
    inputs = {item.key: item for item in (*(cdc(day) for day in (1, 8, 9, 10)), Input("raw/LOAD00000001.parquet", "e"))}
    snapshot = Snapshot(applied=inputs, skipped=inputs, cursor=f"b/{cdc(10).key}")

    found = checkpoint_of(snapshot, 24.0)

    assert found.applied == (cdc(8), cdc(9), cdc(10))
    assert found.skipped == tuple(inputs[key] for key in sorted(inputs))


def test_a_checkpoint_names_so_many_skipped_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest, and all within the window."""
    monkeypatch.setattr(snapshots, "SKIPPED_KEPT", 2)
    inputs = {item.key: item for item in (cdc(day) for day in (1, 2, 3, 5, 10))}

    kept = [checkpoint_of(Snapshot(skipped=inputs, cursor=f"b/{cdc(10).key}"), hours).skipped for hours in (1.0, 96.0)]

    assert kept == [(cdc(5), cdc(10)), (cdc(2), cdc(3), cdc(5), cdc(10))]


def test_while_much_is_awaited_a_small_table_has_a_checkpoint_every_so_many_records() -> None:
    """It would be written with each batch of a backlog."""
    many = {f"{number:014}.parquet": Input(f"{number:014}.parquet", "e") for number in range(CHECKPOINT_ALWAYS_AWAITED + 1)}

    due = [checkpoint_due(Snapshot(awaited=many, chain=("x",) * length), 1) for length in (1, CHECKPOINT_EVERY)]

    assert due == [False, True]


def test_without_a_cursor_nothing_is_forgotten() -> None:
    """A table that has only been loaded."""
    load = Input("raw/LOAD00000001.parquet", "e")

    assert checkpoint_of(Snapshot(applied={load.key: load}), 24.0).applied == (load,)


def test_a_reload_forgets_what_was_applied_on_the_old_generation() -> None:
    """Its files may be needed again, on top of the new load."""
    before = replay(history([(1, 0)]))
    load = Input("raw/LOAD00000001.parquet", "e")
    reload = minimal(id="0000000002-000001-0000000a", parent=before.change, generation=Generation(2, (load,)), inputs=(load,))

    after = apply(before, reload)

    assert (set(before.applied), set(after.applied)) == ({"raw/20240501-000001000.parquet"}, {load.key})


def batch(parent: Snapshot, number: int, day: int, cursor_before: str) -> ChangeRecord:
    return minimal(
        id=f"000000000{number}-000001-0000000a",
        parent=parent.change,
        inputs=(replace(cdc(day), rows=1),),
        cursor_before=cursor_before,
        cursor_after=f"b/{cdc(day).key}",
        counts=Counts(table_rows=1),
    )


def test_a_replay_makes_what_lies_ahead_of_it_pending_again() -> None:
    """A person moved the cursor back and the first batch took one file: the others are not forgotten."""
    snapshot = Snapshot()
    for number, day in enumerate((1, 2, 3, 4), 1):
        snapshot = apply(snapshot, batch(snapshot, number, day, snapshot.cursor))

    after = apply(snapshot, batch(snapshot, 5, 2, f"b/{cdc(1).key}"))

    assert (set(after.applied), after.cursor) == ({cdc(1).key, cdc(2).key}, f"b/{cdc(2).key}")


def test_what_a_cursor_only_went_over_twice_is_still_applied() -> None:
    """A person moved it back, one file was taken again, and forth: the rows of the others are in the table, and a reload brings them."""
    snapshot = Snapshot()
    for number, day in enumerate((1, 2, 3, 4), 1):
        snapshot = apply(snapshot, batch(snapshot, number, day, snapshot.cursor))
    snapshot = apply(snapshot, batch(snapshot, 5, 1, ""))
    forth = replace(batch(snapshot, 6, 6, f"b/{cdc(5).key}"), skipped=tuple(map(cdc, (2, 3, 4, 5))))

    after = apply(snapshot, forth)

    assert set(snapshot.awaited) == {cdc(day).key for day in (2, 3, 4)}
    assert (set(after.applied), set(after.skipped)) == ({cdc(day).key for day in (1, 2, 3, 4, 6)}, {cdc(5).key})
    assert after.awaited == {}


def test_a_cursor_moved_back_brings_back_what_lies_before_it_was() -> None:
    """Skipped files as well; those beyond, which a reload of the same load leaves out, stay left out."""
    snapshot = replace(Snapshot(), skipped={cdc(day).key: cdc(day) for day in (2, 5)})
    for number, day in enumerate((1, 3), 1):
        snapshot = apply(snapshot, batch(snapshot, number, day, snapshot.cursor))

    after = apply(snapshot, batch(snapshot, 3, 1, ""))

    assert (set(snapshot.skipped), set(after.skipped)) == ({cdc(day).key for day in (2, 5)}, {cdc(5).key})


def test_what_a_person_leaves_out_after_a_reload_is_skipped() -> None:
    """The load has taken its rows away; a late file's context must not have it."""
    loads = (Input("raw/LOAD00000001.parquet", "e"),)
    snapshot = replace(Snapshot(), generation=Generation(1, loads))
    for number, day in enumerate((1, 2, 3), 1):
        change = replace(batch(snapshot, number, day, snapshot.cursor), generation=Generation(1, loads))
        snapshot = apply(snapshot, change)
    reload = minimal(
        id="0000000004-000001-0000000a", kind="full-load", parent=snapshot.change, generation=Generation(2, loads), inputs=loads
    )
    reloaded = apply(snapshot, reload)
    named = replace(batch(reloaded, 5, 3, ""), generation=Generation(2, loads), skipped=(cdc(2),))
    moved = replace(named, cursor_before=f"b/{cdc(2).key}")

    assert set(reloaded.awaited) == {cdc(day).key for day in (1, 2, 3)}
    for change in (named, moved):
        assert (set(apply(reloaded, change).skipped), cdc(2).key in apply(reloaded, change).applied) == ({cdc(2).key}, False)


def test_a_record_keeps_what_is_known_of_files_that_are_left_out() -> None:
    """Also where nothing else is to be said of its load, as after an undo of everything."""
    record = minimal(generation=Generation(0, (), "", (Input("raw/LOAD00000002.parquet", "first"),)))

    assert from_json(to_json(record), "here").generation.left_out == record.generation.left_out


def test_a_late_file_leaves_what_was_applied_after_it() -> None:
    """The cursor stays, and so does everything below it."""
    snapshot = Snapshot()
    for number, day in enumerate((1, 3), 1):
        snapshot = apply(snapshot, batch(snapshot, number, day, snapshot.cursor))
    late = replace(batch(snapshot, 3, 2, snapshot.cursor), kind="late", cursor_after=snapshot.cursor)

    after = apply(snapshot, late)

    assert set(after.applied) == {cdc(1).key, cdc(2).key, cdc(3).key}


def test_the_table_counts_its_files() -> None:
    """Rows and bytes as the records say."""
    snapshot = Snapshot(files={file.path: file for file in (data_file("a", 2), data_file("b", 3))})

    assert (snapshot.rows, snapshot.size_bytes) == (5, 50)


def test_records_tell_what_checkpoints_have_forgotten() -> None:
    """What was applied in this generation, with its last ETag; what was skipped since stays skipped, what is remembered stays as it is."""
    records = [
        minimal(kind="full-load", inputs=(Input("raw/LOAD00000001.parquet", "e"),)),
        minimal(inputs=(cdc(1), cdc(2), cdc(3), cdc(5))),
        minimal(kind="late", inputs=(replace(cdc(3), etag="again"), cdc(4), replace(cdc(9), etag="old"))),
    ]
    snapshot = Snapshot(
        applied={cdc(9).key: cdc(9)},
        skipped={cdc(5).key: cdc(5)},
        cursor=f"b/{cdc(9).key}",
        generation=Generation(1, (), "20240502"),
        known_from="20240508120000",
    )

    found = recalled(snapshot, records)

    assert dict(found.applied) == {item.key: item for item in (cdc(2), replace(cdc(3), etag="again"), cdc(4), cdc(9))}
    assert replace(found, applied=snapshot.applied) == snapshot
