"""The pages read from an AWS in this process, and the HTML that is made of them."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from controller.pages.pages import BARS_SHOWN, Pages
from controller.pages.render import Live, render, render_report
from controller.pages.report import read_report
from controller.pages.views import ErrorPage, Page
from controller.past import read_past
from glue_jobs.aws.clients import Clients
from glue_jobs.core.errors import ConfigurationError, TableBlocked, UsageError
from glue_jobs.core.snapshot import Snapshot
from tests.controller.pages_world import HOSTILE, HOSTILE_COLUMN, HOSTILE_NAME, NOW, RLO, Document, PagesWorld
from tests.quick_aws import QuickAws
from tests.spark.tables import SHOP, WorkTable


@pytest.fixture(scope="module")
def pages_world(quick_aws: QuickAws, quick_clients: Clients) -> PagesWorld:
    """Of this module's tests, which change nothing."""
    return PagesWorld(quick_aws.environment(), quick_clients)


@pytest.fixture(scope="module")
def orders(pages_world: PagesWorld) -> WorkTable:
    return pages_world.orders()


@pytest.fixture(scope="module")
def hostile(pages_world: PagesWorld) -> WorkTable:
    return pages_world.hostile()


@pytest.fixture
def pages(pages_world: PagesWorld) -> Pages:
    return pages_world.pages()


def ids(table: WorkTable) -> list[str]:
    """All changes, the first one first."""
    return [record.id for record in reversed(list(table.lineage().back()))]


def test_a_tables_page_tells_its_changes(pages: Pages, orders: WorkTable) -> None:
    """What became of each, what it did, and how to go on."""
    page = pages.table(str(orders.path))

    assert [step.change for step in page.steps] == ids(orders)[::-1]
    assert [step.standing for step in page.steps] == ["head", "undone", "live", "live", "live"]
    assert [(step.inserted, step.updated, step.deleted) for step in page.steps[1:]] == [(1, 1, 0), (1, 0, 0), (0, 1, 1), (3, 0, 0)]
    assert page.steps[0].target == page.steps[2].change
    assert page.steps[0].files_copied == 1
    assert page.steps[0].bytes_written == 0
    assert page.steps[1].rows_written == 4
    assert all(step.seconds is not None and step.seconds > 0 for step in page.steps)
    assert page.row.state == "paused"
    assert page.older == ""
    assert [(part.folder, part.files, part.rows) for part in page.partitions] == [("", 1, 3)]
    assert [file.name for file in page.pending] == [orders.snapshot(page.steps[1].change).cursor.rsplit("/", 1)[-1]]
    assert page.schema_steps[-1].texts == ("begins with 3 columns",)
    lines = [command.line for command in page.commands]
    assert f"dmslake activate {orders.path}" in lines
    assert f"dmslake reapply {orders.path}" in lines


def test_older_changes_are_on_further_pages(pages: Pages, orders: WorkTable) -> None:
    """Each leads to the next one, and all of them have what one page has."""
    found, at = [], ""
    while True:
        page = pages.table(str(orders.path), at, count=2)
        found += [(step.change, step.standing) for step in page.steps]
        at = page.older
        if not at:
            break

    assert found == [(step.change, step.standing) for step in pages.table(str(orders.path)).steps]


def test_a_change_page_has_rows_and_commands(pages: Pages, orders: WorkTable) -> None:
    """Old and new side by side; an undone change can be brought back."""
    change = ids(orders)[3]
    page = pages.change(str(orders.path), change)

    assert page.rows is not None
    assert (page.rows.inserts, page.rows.updates, page.rows.deletes) == (1, 1, 0)
    assert page.rows.inserted == ((5, "five", 5),)
    (update,) = page.rows.updated
    assert (update.before, update.after, update.changed) == ((3, "three", 3), (3, "THREE", 3), {1})
    assert page.step.standing == "undone"
    assert f"dmslake reapply {orders.path} {change}" in [command.line for command in page.commands]
    assert page.rows_command == f"dmslake diff {orders.path} {page.parent} {change}"
    assert page.restorable.startswith(("yes", "perhaps"))
    assert [(files.title, files.total) for files in page.lists] == [
        ("Raw files that it took", 1), ("Data files added", 1), ("Data files superseded", 1),
    ]  # fmt: skip


def test_a_live_change_can_be_undone(pages: Pages, orders: WorkTable) -> None:
    """By its own command."""
    change = ids(orders)[1]

    lines = [command.line for command in pages.change(str(orders.path), change).commands]

    assert lines == [f"dmslake rollback {orders.path} --undo {change}", f"dmslake rollback {orders.path} --to {change} --dry-run"]


def test_a_staged_change_waits_for_a_person(pages_world: PagesWorld, pages: Pages) -> None:
    """It is shown as what it is, with the command that commits it."""
    table = pages_world.table("staged")
    table.load([(1, "one", 1)])
    table.sync()
    table.cdc([("U", (1, "uno", 1))])
    assert table.run(stage="true") == 0
    staged = table.last_run()["staged"]

    page = pages.change(str(table.path), staged)

    assert page.step.standing == "staged"
    assert page.rows is None
    assert f"dmslake commit {table.path} {staged}" in [command.line for command in page.commands]
    assert Document(render(page)).problems == []


@pytest.mark.parametrize("change", ["0000000001-000009-00000000", "9999999999-000001-00000000"])
def test_a_change_that_is_none_is_refused(pages: Pages, orders: WorkTable, change: str) -> None:
    """By a code that a server can tell."""
    with pytest.raises(UsageError) as caught:
        pages.change(str(orders.path), change)

    assert caught.value.code == "unknown-change"


def test_what_is_no_table_or_no_id_is_refused(pages: Pages, orders: WorkTable) -> None:
    """As usage, not as a failure."""
    for wrong in (lambda: pages.table("shop.nothing"), lambda: pages.change(str(orders.path), "x"), lambda: pages.table("", "")):
        with pytest.raises(UsageError):
            wrong()


def test_two_states_are_compared(pages: Pages, orders: WorkTable) -> None:
    """From the load to now."""
    page = pages.diff(str(orders.path), ids(orders)[0])

    assert page.rows is not None
    assert (page.rows.inserts, page.rows.updates, page.rows.deletes) == (1, 1, 1)
    assert (page.rows_before, page.rows_after, page.to_change) == (3, 3, ids(orders)[-1])


def test_too_much_is_not_read_for_a_page(pages: Pages, orders: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused with the command that reads it; a change's page is shown without rows."""
    monkeypatch.setattr("controller.pages.rows.MOST_BYTES", 1)
    monkeypatch.setattr("controller.pages.rows.MOST_SAMPLE_BYTES", 1)

    with pytest.raises(UsageError) as caught:
        pages.diff(str(orders.path), ids(orders)[0])
    page = pages.change(str(orders.path), ids(orders)[1])

    assert caught.value.code == "too-much-for-a-page"
    assert caught.value.todo.startswith(f"dmslake diff {orders.path} ")
    assert (page.rows, page.rows_note.startswith("Its data files have")) == (None, True)


@pytest.mark.parametrize(("name", "said"), [("MOST_LIFE_BYTES", "the files that may tell"), ("MOST_LIFE_CHANGES", "more than 1 changes")])
def test_a_life_in_too_much_is_not_read_for_a_page(
    pages: Pages, orders: WorkTable, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    """Some such questions would keep all others waiting; the command reads it."""
    monkeypatch.setattr(f"controller.pages.rows.{name}", 1)

    with pytest.raises(UsageError) as caught:
        pages.explain(str(orders.path), "1")

    assert (caught.value.code, said in caught.value.message) == ("too-much-for-a-page", True)
    assert caught.value.todo == f"dmslake explain {orders.path} --key 1"


def test_a_rows_life_is_told(pages: Pages, orders: WorkTable) -> None:
    """From its insert on, with the raw file and row that it came from."""
    page = pages.explain(str(orders.path), "1")

    assert [step.what for step in page.steps] == ["insert", "update"]
    assert page.steps[1].cells == (("name", "one", "ONE"),)
    assert page.steps[0].source == "LOAD00000001.parquet, row 0"
    assert page.current == (("id", 1), ("name", "ONE"), ("qty", 1))


def test_a_row_that_went_to_another_key_is_told_by_its_image(pages_world: PagesWorld, pages: Pages) -> None:
    """Also where before images have names of the table's own: the old key's row went with the update of the new one."""
    table = pages_world.table("images")
    table.edit(BeforeImagePrefix="OLD_")
    table.load([(1, "one", 1)])
    table.sync()
    table.cdc([("U", (2, "one", 1, 1))], columns=SHOP.append(pa.field("OLD_id", pa.int64())))
    table.sync()

    page = pages.explain(str(table.path), "1")

    assert [(step.what, step.source) for step in page.steps] == [
        ("insert", "LOAD00000001.parquet, row 0"), ("delete", "20240501-120000000.parquet, row 0"),
    ]  # fmt: skip


def test_without_pyarrow_all_but_rows_is_shown(pages: Pages, orders: WorkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the command line only can look, too."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    page = pages.change(str(orders.path), ids(orders)[1])

    assert page.rows is None
    assert "pyarrow" in page.rows_note
    with pytest.raises(ConfigurationError):
        pages.explain(str(orders.path), "1")


def test_rows_that_were_erased_since_are_not_shown(pages_world: PagesWorld, pages: Pages, tmp_path: Path) -> None:
    """A change from before the erase tells only that they can't be read."""
    table = pages_world.table("persons")
    table.load([(1, "secret", 1), (2, "two", 2)])
    table.sync()
    table.cdc([("U", (1, "SECRET", 1))])
    table.sync()
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    assert table.run("Erase", key="id", erase_keys=keys) == 0, table.last_run()

    shown = [pages.change(str(table.path), change) for change in ids(table)]

    assert "secret" not in " ".join(render(page) for page in shown).lower()
    assert (shown[1].rows, "erase" in shown[1].rows_note) == (None, True)


@pytest.mark.parametrize("history", ["false", "true"])
def test_a_state_that_an_erase_took_can_not_be_gone_back_to(pages_world: PagesWorld, pages: Pages, tmp_path: Path, history: str) -> None:
    """Each change's page says what `dmslake history` says; a history table may have held a key that the table had no more."""
    table = pages_world.table(f"erased_{history}")
    table.edit(History=history)
    table.load([(1, "secret", 1), (2, "two", 2)])
    table.sync()
    for row in ((1, None, None), (2, None, None)):
        table.cdc([("D", row)])
        table.sync()
    keys = tmp_path / "keys.csv"
    keys.write_text("id\n1\n")
    assert table.run("Erase", key="id", erase_keys=keys) == 0, table.last_run()

    past = read_past(table.clients.s3, table.state(), None, NOW)

    shown = [pages.change(str(table.path), change.record.id).restorable for change in past.changes]
    kept = [change.restorable is not None and change.restorable.answer != "no" for change in past.changes]
    assert [not text.startswith("no: ") for text in shown] == kept == [True, history == "false", history == "false", False]
    assert table.item()["Head"] in shown[-1]


def test_keys_that_a_correction_did_not_find_are_told_with_rows_only(pages_world: PagesWorld, pages: Pages, tmp_path: Path) -> None:
    """They are values, and a report is made to be handed on; how many they are is none."""
    table = pages_world.table("corrected")
    table.load([(1, "one", 1), (2, "two", 2)])
    table.sync()
    deletes = tmp_path / "deletes.csv"
    deletes.write_text("id\n2\n77\n")
    assert table.run("Apply", key="id", deletes=deletes) == 0, table.last_run()

    with_rows, without = (dict(pages.change(str(table.path), table.item()["Head"], rows).facts) for rows in (10, 0))

    assert (with_rows["keys not found"], with_rows["keys not found first"]) == ("1", "77")
    assert without == {label: text for label, text in with_rows.items() if label != "keys not found first"}


# --- how much is asked for


def test_a_page_does_not_grow_with_the_history(pages_world: PagesWorld) -> None:
    """A table with ten times the changes asks for as much; so do its older pages."""
    asked = []
    for name, changes in (("short", 40), ("long", 400)):
        path = pages_world.synthetic(name, changes)
        with pages_world.counted() as counts:
            page = pages_world.pages().table(path, count=20)
        asked.append(dict(counts))
        assert len(page.steps) == 20

    with pages_world.counted() as counts:
        older = pages_world.pages().table(path, page.older, count=20)

    assert asked[0] == asked[1]
    assert sum(asked[1].values()) <= 40
    assert older.steps[0].change < page.steps[-1].change
    assert counts["GetObject"] <= asked[1]["GetObject"]


def test_a_walk_lists_records_from_nearby(pages_world: PagesWorld) -> None:
    """Not from the first one on: of a history of years that would be many pages of names."""
    path = pages_world.synthetic("nearby", 100)
    after: list[str] = []

    def note(params: dict[str, str], **_: object) -> None:
        if "/_changes/" in params["Prefix"]:
            after.append(params.get("StartAfter", ""))

    events = pages_world.clients.s3.meta.events
    events.register("provide-client-params.s3.ListObjectsV2", note, unique_id="nearby")
    try:
        pages_world.pages().table(path, count=10)
    finally:
        events.unregister("provide-client-params.s3.ListObjectsV2", unique_id="nearby")

    assert after
    assert all(each.rsplit("/", 1)[-1] >= "0000000085" for each in after)


def test_an_overview_asks_for_items_together_and_for_changes_once(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """Of each table a listing of raw files; the head's record and its last changes only the first time."""
    world = PagesWorld(quick_aws.environment(), quick_clients)
    tables, changes = 6, BARS_SHOWN
    for number in range(tables):
        world.synthetic(f"t{number}", changes)
    pages = world.pages()

    with world.counted() as first:
        seen = pages.overview()
    with world.counted() as second:
        pages.overview()

    assert [len(row.recent) for row in seen.tables] == [changes] * tables
    assert first["Scan"] == second["Scan"] == 1
    assert first["GetItem"] + first["BatchGetItem"] == 0
    assert second["GetObject"] == 0
    assert first["GetObject"] == tables * (1 + changes)
    assert second["ListObjectsV2"] <= 2 + 2 * tables


def test_of_many_tables_the_changes_are_read_little_by_little(quick_aws: QuickAws, quick_clients: Clients) -> None:
    """Those that one overview leaves unread come with the next, so that the first is not slow."""
    world = PagesWorld(quick_aws.environment(), quick_clients)
    for number in range(3):
        world.synthetic(f"t{number}", 2)
    pages = world.pages()

    seen = [pages.overview(most_read=2), pages.overview(most_read=2)]

    assert [each.unread for each in seen] == [1, 0]
    assert sorted(len(row.recent) for row in seen[0].tables) == [0, 2, 2]
    assert "of 1 more table are not read yet" in Document(render(seen[0])).text


def test_a_report_reads_the_files_of_a_large_table_for_its_page_only(
    quick_aws: QuickAws, quick_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at all tables has only their number; a page whose files can't be listed says so, and has all else."""
    world = PagesWorld(quick_aws.environment(), quick_clients)
    path = world.synthetic("large", 3, is_large=True)
    pages = world.pages()

    (fact,) = pages.gather().tables
    listed = [read_report(pages, 2).tables[0], pages.table(path)]

    def gone(*_: object) -> Snapshot:
        raise TableBlocked("the change record is not there", "record-gone")

    monkeypatch.setattr("controller.pages.pages.read_snapshot", gone)
    (unlisted,) = read_report(pages, 2).tables

    assert fact.snapshot.totals is not None
    for page in listed:
        assert [(part.files, part.bytes) for part in page.partitions] == [(page.row.files, page.row.bytes)]
        assert (page.row.files, page.warnings) == (fact.snapshot.totals.files, ())
    assert (unlisted.row, unlisted.steps, unlisted.partitions) == (listed[0].row, listed[0].steps, ())
    assert unlisted.warnings == ("its data files can't be listed: the change record is not there",)
    assert Document(render(unlisted)).problems == []


# --- what is made of them


def every_page(pages: Pages, table: WorkTable) -> Iterator[Page]:
    """One of each kind."""
    path = str(table.path)
    first = ids(table)[0]
    yield pages.overview()
    yield pages.table(path)
    yield from (pages.change(path, change) for change in ids(table))
    yield pages.diff(path, first)
    yield pages.explain(path, "0" if "<" in path else "1")
    yield ErrorPage("It <failed>", f"no {RLO}<b>", "`dmslake <x>`", path)


def test_every_page_is_well_formed_and_safe(pages: Pages, orders: WorkTable, hostile: WorkTable) -> None:
    """No handler, no style attribute, no address of elsewhere, no id twice, captions and scopes; whatever names and values say."""
    for table in (orders, hostile):
        for page in every_page(pages, table):
            document = Document(render(page, Live(5)))

            assert document.problems == [], type(page)
            assert document.tags["script"] == 1
            assert document.inline == {}
            assert document.tags["img"] == 0
            assert all(link.startswith(("/", "#")) for link in document.links)


def test_hostile_words_are_shown_as_words(pages: Pages, hostile: WorkTable) -> None:
    """Shortened where they are long, spelled out where they would be obeyed; a command that is copied has them as they are."""
    path = str(hostile.path)
    change = ids(hostile)[-1]
    overview, table, seen = (Document(render(page)) for page in (pages.overview(), pages.table(path), pages.change(path, change)))

    assert HOSTILE_NAME.replace(RLO, "\\u202e") in overview.text
    assert HOSTILE_COLUMN in table.text
    assert HOSTILE[0] in seen.text
    assert "(10,000 characters)" in seen.text
    assert "x" * 500 not in seen.text
    assert any(line.startswith("dmslake rollback ") and RLO in line for line in seen.copies)


def test_a_live_page_refreshes_itself_and_can_be_paused(pages: Pages, orders: WorkTable) -> None:
    """By a link, without a script; a change's page stays as it is."""
    path = str(orders.path)
    going, paused = (render(pages.table(path), Live(seconds, 5)) for seconds in (5, 0))
    change = render(pages.change(path, ids(orders)[0]), Live(0, 5))

    assert '<meta http-equiv="refresh" content="5">' in going
    assert any("refresh=0" in link for link in Document(going).links)
    assert 'http-equiv="refresh"' not in paused
    assert any("refresh=5" in link for link in Document(paused).links)
    assert "refresh" not in change


def test_a_report_is_one_file_whose_links_lead_into_it(pages: Pages, orders: WorkTable, hostile: WorkTable) -> None:
    """Its policy allows its own style and script, and nothing else."""
    html = render_report(read_report(pages, 20, 3))
    document = Document(html)

    assert document.problems == []
    assert {link for link in document.links if link[1:] not in document.ids} == set()
    assert {"overview", "table-1"} <= set(document.ids)
    assert f"change-{number_of(document, orders)}-{ids(orders)[0]}" in document.ids
    for word in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(document.inline[word].encode()).digest()).decode()
        assert f"{word}-src 'sha256-{digest}'" in document.policy
    assert document.policy.startswith("default-src 'none'")
    assert "unsafe" not in document.policy
    assert document.tags["form"] == 0


def number_of(document: Document, table: WorkTable) -> str:
    """The number of a table in a report: that of the section which has its first change."""
    return next(each.split("-")[1] for each in document.ids if each.endswith(ids(table)[0]))


def test_a_report_has_no_values_unless_they_are_asked_for(pages: Pages, orders: WorkTable, hostile: WorkTable) -> None:
    """It is made to be handed on."""
    without, with_rows = (render_report(read_report(pages, 20, rows)) for rows in (0, 3))

    assert "THREE" not in without
    assert "THREE" in with_rows
    assert "dmslake report --rows N" in without


def test_a_report_says_what_it_leaves_out(quick_aws: QuickAws, quick_clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables without a page, and older changes; with the command that shows them."""
    world = PagesWorld(quick_aws.environment(), quick_clients)
    for name in ("one", "two"):
        world.synthetic(name, 5)
    monkeypatch.setattr("controller.pages.report.MOST_TABLES", 1)
    monkeypatch.setattr("controller.pages.report.MOST_ROWS", 1)

    report = read_report(world.pages(), 2)
    text = Document(render_report(report)).text

    assert len(report.tables) == 1
    assert "table(s) have no page here" in text
    assert "1 more table is counted above and has no row here" in text
    assert "dmslake history" in text
