"""A table's timeline: what became of each change, page by page, and how it is drawn. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.pages.drawing import WIDEST_SLOT, sizes, spark, timeline
from controller.pages.steps import Kept, Place, Walk, bars, keep, schema_steps, start, walk
from controller.pages.views import Step
from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId
from glue_jobs.core.record import ChangeRecord, Counts, DataFile, Part, Upload
from glue_jobs.core.schema import Column
from tests.core.records import minimal

TIME = "2024-05-01T12:00:00.000000Z"


def an_id(number: int) -> str:
    return str(ChangeId(number, 1, f"{number:08x}"))


def chain(*kinds: str | dict[str, Any]) -> list[ChangeRecord]:
    """Records one after the other; a dict gives fields of its own, with numbers of changes for target and lost."""
    records = []
    for number, kind in enumerate(kinds, 1):
        given = dict(kind) if isinstance(kind, dict) else {"kind": kind}
        for name in ("target", "lost"):
            if name in given:
                given[name] = an_id(given[name])
        parent = an_id(number - 1) if number > 1 else ""
        records.append(minimal(**{"id": an_id(number), "parent": parent, "time": TIME, "counts": Counts(inserted=number), **given}))
    return records


class Reader:
    """Reads changes of a chain, and counts."""

    def __init__(self, records: list[ChangeRecord]) -> None:
        self.kept = {record.id: keep(record) for record in records}
        self.asked: set[str] = set()

    def __call__(self, change: str) -> Kept:
        self.asked.add(change)
        return self.kept[change]


def walked(records: list[ChangeRecord], count: int = 50) -> Walk:
    return walk(Reader(records), records[-1].id, start(records[-1]), count)


def standings(records: list[ChangeRecord]) -> list[str]:
    """Of each change, the first one first."""
    return list(reversed(walked(records).standings))


def test_changes_in_a_row_are_live() -> None:
    """The last one is the head."""
    assert standings(chain("full-load", "incremental", "incremental")) == ["live", "live", "head"]


def test_a_rollback_leaves_its_tail_undone() -> None:
    """What came between its target and it; what comes after goes on from the target."""
    records = chain("full-load", "incremental", "incremental", {"kind": "rollback", "target": 1}, "incremental")

    assert standings(records) == ["live", "undone", "undone", "step", "head"]


def test_a_reapplied_tail_is_live_again() -> None:
    """The rollback and the re-apply are steps between."""
    records = chain(
        "full-load", "incremental", "incremental", {"kind": "rollback", "target": 1}, {"kind": "reapply", "target": 3}, "incremental"
    )

    assert standings(records) == ["live", "live", "live", "step", "step", "head"]


def test_a_lost_change_is_told() -> None:
    """It was taken back by its successor before it was published."""
    records = chain("full-load", "incremental", {"kind": "lost", "target": 1, "lost": 2}, "incremental")

    assert standings(records) == ["live", "lost", "step", "head"]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_pages_say_what_one_long_page_says(count: int) -> None:
    """Wherever a page ends, the next one goes on with the same knowledge, by the text of its place."""
    records = chain(
        "full-load", "incremental", "incremental", {"kind": "rollback", "target": 1}, "incremental",
        {"kind": "lost", "target": 1, "lost": 5}, "incremental", {"kind": "rollback", "target": 3}, {"kind": "reapply", "target": 7},
        "incremental",
    )  # fmt: skip
    whole = walked(records)
    place: Place | None = start(records[-1])
    found: list[tuple[str, str]] = []
    while place is not None:
        page = walk(Reader(records), records[-1].id, Place.parse(str(place)), count)
        found += zip((each.record.id for each in page.changes), page.standings, strict=True)
        place = page.older

    assert found == list(zip((each.record.id for each in whole.changes), whole.standings, strict=True))


def test_a_page_reads_no_more_than_it_shows() -> None:
    """One change more, to know what the last one stands on."""
    records = chain("full-load", *["incremental"] * 60)
    reader = Reader(records)

    walk(reader, records[-1].id, start(records[-1]), 10)

    assert len(reader.asked) <= 11


@pytest.mark.parametrize("text", ["x", "1.2.3.4", f"{an_id(1)}.x", "../../etc", an_id(1) * 50])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    """It comes from an address, which anybody can write."""
    with pytest.raises(UsageError):
        Place.parse(text)


def test_a_kept_change_is_small() -> None:
    """Its lists of files are sums, so that thousands can be kept."""
    files = tuple(DataFile(f"{number}.parquet", 10, 2, upload=Upload("u", (Part(1, "e"),))) for number in range(1000))
    copies = (DataFile("c.parquet", 7, 3, origin="old.parquet", upload=Upload("u", (Part(1, "e"),))), DataFile("adopted.parquet", 9, 4))
    kept = keep(minimal(id=an_id(1), time=TIME, added=files + copies, superseded=("a", "b"), counts=Counts(10, 5, 5)))

    assert (kept.record.added, kept.record.superseded) == ((), ())
    assert (kept.step.files_added, kept.step.files_copied, kept.step.files_superseded) == (1002, 1, 2)
    assert (kept.step.rows_written, kept.step.bytes_written) == (2000, 10000)
    assert kept.step.amplification == 100
    assert kept.step.bytes_changed == 100


def test_amplification_is_of_what_was_written_for_what_changed() -> None:
    """Nothing is said where nothing was written, or nothing changed."""
    step = walked(chain("full-load")).steps[0]

    assert step.amplification is None
    assert replace(step, rows_written=50).amplification == 50
    assert replace(step, rows_written=50, inserted=0).amplification is None


def test_schema_history_says_what_changed() -> None:
    """Columns that came, went, grew; key and partitions; not what an emptied table lacks."""
    one = (Column("id", "int"), Column("old", "string"))
    two = (Column("id", "bigint"), Column("new", "string"))
    records = chain(
        {"kind": "full-load", "schema": one, "primary_key": ("id",)},
        {"kind": "incremental", "schema": one, "primary_key": ("id",)},
        {"kind": "incremental", "schema": two, "primary_key": ("id", "new")},
        {"kind": "rollback"},
    )

    found = {step.change: step.texts for step in schema_steps(walked(records))}

    assert found == {
        an_id(1): ("begins with 2 columns",),
        an_id(3): ("column new (string) added", "column old dropped", "column id: int → bigint", "primary key: id → id,new"),
    }


def test_of_a_page_in_the_middle_the_oldest_is_not_guessed() -> None:
    """What was before it is not known there."""
    records = chain(*({"kind": "incremental", "schema": (Column("id", "int"),)} for _ in range(5)))

    assert schema_steps(walked(records, 2)) == ()


def test_bars_are_oldest_first_and_say_what_is_undone() -> None:
    """As a sparkline is read."""
    found = bars(walked(chain("full-load", "incremental", {"kind": "rollback", "target": 1})))

    assert [(each.kind, each.undone) for each in found] == [("full-load", False), ("incremental", True), ("rollback", False)]


def test_a_timeline_draws_rollbacks_as_what_they_are() -> None:
    """The undone tail lies beside the line, a dashed way leads back, a re-apply's way leads forth again."""
    records = chain(
        "full-load", "incremental", {"kind": "rollback", "target": 1}, {"kind": "reapply", "target": 2},
        {"kind": "rollback", "target": 1}, "incremental",
    )  # fmt: skip
    drawn = timeline(walked(records).steps)

    assert [dot.kind for dot in drawn.dots] == ["live", "undone", "step", "step", "step", "live"]
    assert len({dot.y for dot in drawn.dots}) == 2
    assert [line.kind for line in drawn.lines if line.kind in ("back", "forth")] == ["back", "forth", "back"]
    assert sum(line.kind == "main" for line in drawn.lines) == 4
    assert [rect.kind for rect in drawn.rects][1] == "inserted undone"


def test_a_drawing_stays_in_its_frame() -> None:
    """Whatever the numbers are: every bar is seen, none leaves the picture."""
    step = walked(chain("full-load")).steps[0]
    many = [(10**number, number % 2, 10 ** (12 - number)) for number in range(12)]
    steps = [replace(step, inserted=ins, updated=upd, deleted=gone, bytes_written=1, rows_written=1) for ins, upd, gone in many]
    drawn = timeline(steps)

    assert drawn.width == 12 * WIDEST_SLOT
    for rect in drawn.rects:
        assert rect.height > 0
        assert rect.x >= 0
        assert rect.x + rect.width <= drawn.width
        assert rect.y >= -0.1
        assert rect.y + rect.height <= drawn.height


def test_small_pictures_bear_nothing_at_all() -> None:
    """No change, no file."""
    assert spark(()).rects == ()
    assert sizes((), 100, True).rects == ()
    assert [rect.kind for rect in sizes((300, 50, 20), 100, True).rects] == ["file", "small", "small"]
    assert [rect.kind for rect in sizes((50,), 100, False).rects] == ["file"]
    assert isinstance(walked(chain("full-load")).steps[0], Step)
