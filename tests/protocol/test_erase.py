"""Erase: after it no version that S3 keeps holds the key, all else is as it was, and whatever it was stopped by, it can be ended."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs.aws.removal import held_versions
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ChangeRecord
from glue_jobs.core.settings import read_settings
from glue_jobs.protocol.converge import abort_uploads
from glue_jobs.protocol.erase_search import plan_erase
from glue_jobs.protocol.history import last_published
from glue_jobs.spark.erase_rows import RowEraser
from tests.lake import DRIVER, LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.faults import DENIED, error_answer
from tests.protocol.runs import die, run_on
from tests.protocol.test_adopt import FUTURE, ROWS, ids, put, put_sample
from tests.protocol.test_converge import die_after
from tests.protocol.wire import Request, Wire, once

LOADED = [(1, "one"), (2, "two"), (3, "three")]
FIRST = [(1, "ONE"), (2, "two"), (3, "three"), (4, "four")]
SECOND = [(1, "ONE"), (2, "two"), (3, "THREE"), (4, "four")]


@pytest.fixture
def history(make_table: TableMaker) -> LakeTable:
    """A table with a load and two batches, all applied."""
    return with_history(make_table())


def with_history(table: LakeTable) -> LakeTable:
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("I", (4, "four"))])
    assert table.run() == 0
    table.cdc([("U", (3, "THREE"))])
    assert table.run() == 0
    assert table.rows() == SECOND
    return table


@pytest.fixture
def keys(tmp_path: Path) -> KeysFile:
    return KeysFile(tmp_path)


class KeysFile:
    """Writes the file with keys that a person gives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *values: Any, column: str = "id") -> str:
        path = self._folder / f"keys-{len(list(self._folder.iterdir()))}.csv"
        path.write_text("\n".join([column, *map(str, values)]) + "\n")
        return str(path)


def held_rows(table: LakeTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, row) of every row in every version that S3 keeps: data files and what stands beside the records."""
    s3, lake = table.clients.s3, table.out_path
    for prefix in (lake.key, changes_folder(lake).key):
        for held in held_versions(s3, lake.bucket, prefix):
            if prefix == lake.key or held.key.endswith(".parquet"):  # what was adopted has any name
                data = s3.get_object(Bucket=lake.bucket, Key=held.key, VersionId=held.version)["Body"].read()
                if not data.startswith(b"PAR1"):
                    continue
                for row in pq.read_table(io.BytesIO(data), partitioning=None).to_pylist():
                    yield held.key, row


def holds(table: LakeTable, value: Any, column: str = "id") -> list[str]:
    """The keys of versions that hold a row with that value."""
    return sorted({key for key, row in held_rows(table) if row.get(column) == value})


def erased(table: LakeTable, keys: str, **settings: Any) -> ChangeRecord:
    """The record of an erase that must work; the folder and the item are checked."""
    assert table.run("Erase", erase_keys=keys, **settings) == 0, table.item()["LastRun"]
    table.check_folder()
    assert "Erasing" not in table.item()
    assert table.verify() == []
    return table.head()


def refusal(table: LakeTable, **settings: Any) -> dict[str, str]:
    """The error of a run of Erase that fails."""
    assert table.run("Erase", **settings) != 0
    error: dict[str, str] = table.item()["LastRun"]["error"]
    return error


@pytest.mark.parametrize("text", ["0x1", "1_0", "1.0"])
def test_a_text_that_is_no_key_erases_nothing(history: LakeTable, keys: KeysFile, text: str) -> None:
    """Least of all the key that a program might read in it: an erase is for good."""
    held = holds(history, 1)

    error = refusal(history, erase_keys=keys(2, text))

    assert (error["code"], f"row 1; expected: bigint; found: '{text}'" in error["message"]) == ("given-value", True)
    assert (history.rows(), holds(history, 1), "Erasing" in history.item()) == (SECOND, held, False)


def test_after_an_erase_no_version_holds_the_key(history: LakeTable, keys: KeysFile) -> None:
    """Neither the rows nor any version that S3 keeps; the record tells how many of what, and never a key."""
    assert holds(history, 1)

    record = erased(history, keys(1))

    assert (history.rows(), holds(history, 1)) == ([row for row in SECOND if row[0] != 1], [])
    assert (record.kind, record.counts.deleted, record.details["keys_found"]) == ("erase", 1, 1)
    assert (len(record.erased), record.details["versions"]) == (3, 3)
    assert record.erased_keys is not None
    assert record.erased_keys.columns == ("id",)
    assert record.given is None
    assert history.snapshot().erases == (record.id,)
    assert "3 version(s) were removed" in history.item()["LastRun"]["note"]


def test_a_key_that_a_person_deleted_under_another_collation_is_found(make_table: TableMaker, keys: KeysFile) -> None:
    """What was named by hand is kept beside the record in the form that the collation gave it."""
    table = make_table()
    table.edit(PrimaryKey="name", KeyCollation="ci")
    table.load([(1, "Anna"), (2, "Ben")])
    assert table.run("LoadInitial") == 0
    assert table.run("Apply", key="name", deletes=keys("ANNA", "BEN", column="name")) == 0, table.item()["LastRun"]
    table.edit(KeyCollation="null")
    table.sync()
    assert holds(table, "anna", "name")

    erased(table, keys("Anna", column="name"))

    assert [holds(table, name, "name") for name in ("Anna", "anna", "ANNA")] == [[], [], []]


def test_cdc_goes_on_after_an_erase(history: LakeTable, keys: KeysFile) -> None:
    """The cursor stays, and the next batch is applied on the erase."""
    cursor = history.item()["LastIncrementalFile"]
    erased(history, keys(1))
    history.cdc([("U", (2, "TWO"))])

    assert history.run() == 0

    assert history.item()["LastIncrementalFile"] > cursor
    assert history.rows() == [(2, "TWO"), (3, "THREE"), (4, "four")]


def test_keys_only_in_old_versions_make_a_change_without_files(make_table: TableMaker, keys: KeysFile) -> None:
    """A row that DMS deleted long ago still stands in hidden versions."""
    table = make_table()
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    table.cdc([("D", (2, None))])
    assert table.run() == 0

    record = erased(table, keys(2))

    assert (record.added, record.superseded, len(record.erased), holds(table, 2)) == ((), (), 1, [])
    assert table.rows() == [(1, "one"), (3, "three")]


def test_a_key_that_nothing_holds_changes_nothing(history: LakeTable, keys: KeysFile) -> None:
    """It is an error, because a person meant somebody."""
    before = (history.item()["Head"], history.rows())

    error = refusal(history, erase_keys=keys(99))

    assert (error["code"], history.item()["Head"], history.rows()) == ("no-key-found", *before)


def test_a_dry_run_changes_nothing(history: LakeTable, keys: KeysFile) -> None:
    """It only looks."""
    before = (history.item()["Head"], holds(history, 1))

    assert history.run("Erase", erase_keys=keys(1), dry_run="true") == 0

    assert (history.item()["Head"], holds(history, 1)) == before
    assert history.item()["LastRun"]["note"] == "dry run: nothing was changed"


def test_by_columns_that_are_not_the_key(make_table: TableMaker, keys: KeysFile) -> None:
    """All rows of a customer, wherever they stand; null never matches."""
    columns = pa.schema([("id", pa.int64()), ("customer", pa.int64()), ("item", pa.string())])
    table = make_table(columns, partition_key="item")
    table.load([(1, 7, "a"), (2, 8, "a"), (3, 7, "b"), (4, None, "b")])
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (2, 7, "c"))])
    assert table.run() == 0

    record = erased(table, keys(7, column="customer"), key="customer")

    assert (table.rows(), holds(table, 7, "customer"), record.counts.deleted) == ([(4, None, "b")], [], 3)


def test_by_a_column_that_is_a_folder(make_table: TableMaker, keys: KeysFile) -> None:
    """It stands in no file: the folder's name is the value."""
    columns = pa.schema([("id", pa.int64()), ("customer", pa.int64())])
    table = make_table(columns, partition_key="customer")
    table.load([(1, 7), (2, 8), (3, 7)])
    assert table.run("LoadInitial") == 0

    record = erased(table, keys(7, column="customer"), key="customer")

    left = [held.key for held in held_versions(table.clients.s3, table.out_path.bucket, table.out_path.key)]
    assert (table.rows(), record.counts.deleted, len(left)) == ([(2, 8)], 2, 1)


def test_under_the_name_that_a_column_had(make_table: TableMaker, keys: KeysFile) -> None:
    """Files of before a rename have the older name, and are searched under it."""
    columns = pa.schema([("id", pa.int64()), ("mail", pa.string())])
    table = make_table(columns)
    table.load([(1, "a@b"), (2, "c@d")])
    assert table.run("LoadInitial") == 0
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    assert [column.name for column in table.snapshot().schema] == ["id", "email"]

    erased(table, keys("a@b", column="email"), key="email")

    assert (holds(table, "a@b", "mail"), holds(table, "a@b", "email")) == ([], [])
    assert table.rows() == [(2, "c@d")]


def test_under_the_name_of_a_rename_that_was_undone(make_table: TableMaker, keys: KeysFile) -> None:
    """Its files have the newer name; one of them could bring the row back."""
    table = make_table(pa.schema([("id", pa.int64()), ("mail", pa.string())]))
    table.load([(1, "a@b"), (2, "c@d")])
    assert table.run("LoadInitial") == 0
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    renamed = table.head().id
    assert table.run("Rollback", to="previous", resume="true") == 0
    assert holds(table, "a@b", "email")

    erased(table, keys("a@b", column="mail"), key="mail")

    assert (holds(table, "a@b", "mail"), holds(table, "a@b", "email"), table.rows()) == ([], [], [(2, "c@d")])
    assert table.run("Rollback", to=renamed) != 0
    assert table.item()["LastRun"]["error"]["code"] == "version-erased"


def test_a_column_that_only_an_undone_rename_had_the_name_of(make_table: TableMaker, keys: KeysFile) -> None:
    """Whatever stood in the older column is not its value."""
    table = make_table(pa.schema([("id", pa.int64()), ("mail", pa.string())]))
    table.load([(1, "x"), (2, "y")])
    assert table.run("LoadInitial") == 0
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    assert table.run("Rollback", to="previous", resume="true") == 0
    both = pa.schema([("id", pa.int64()), ("mail", pa.string()), ("email", pa.string())])
    table.cdc([("I", (3, "z", "x"))], columns=both)
    table.edit(Request="schema-accept")
    assert table.run() == 0, table.item()["LastRun"]

    erased(table, keys("x", column="email"), key="email")

    assert holds(table, "x", "mail")
    assert sorted(row[0] for row in table.rows()) == [1, 2]


def test_under_the_name_of_a_load_that_was_undone(make_table: TableMaker, keys: KeysFile) -> None:
    """The rename came after it, in the generation before: its files have the older name as well."""
    table = make_table(pa.schema([("id", pa.int64()), ("mail", pa.string())]))
    table.edit(LoadQuietMinutes="0")
    for rows in ([(2, "c@d")], [(1, "a@b"), (2, "c@d")]):
        table.load(rows)
        assert table.run("LoadInitial") == 0
    assert table.run("Rollback", to="previous", resume="true") == 0, table.item()["LastRun"]
    table.edit(Request="schema-rename:mail=email")
    assert table.run() == 0
    assert holds(table, "a@b", "mail")

    erased(table, keys("a@b", column="email"), key="email")

    assert (holds(table, "a@b", "mail"), table.rows()) == ([], [(2, "c@d")])


def test_in_a_generation_whose_key_had_another_type(make_table: TableMaker, keys: KeysFile) -> None:
    """The number 1 of today was the text '1' before the reload."""
    table = make_table(pa.schema([("id", pa.string()), ("name", pa.string())]))
    table.load([("1", "one"), ("2", "two")])
    assert table.run("LoadInitial") == 0
    table.load([(1, "one"), (2, "two")], columns=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.edit(LoadQuietMinutes="0")
    assert table.run("LoadInitial") == 0, table.item()["LastRun"]

    record = erased(table, keys(1))

    assert (len(record.erased), holds(table, 1), holds(table, "1")) == (2, [], [])


def test_files_of_undone_and_unlanded_changes_are_searched(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Copies of a rollback, the branch that it undid, and an upload that waits for a commit that never comes."""
    assert history.run("Rollback", to=[record.id for record in history.lineage().back()][1], resume="true", skip="true") == 0
    history.cdc([("U", (1, "again"))])
    die(wire, history, "LoadIncremental", die_after(wire, Request.is_commit, 0))
    assert history.open_uploads()

    erased(history, keys(1))

    assert (holds(history, 1), history.open_uploads()) == ([], [])


def test_files_that_never_became_visible_come_first(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Where somebody removed Publishing by hand a file of the table is an open upload: it can't be searched, and would be aborted."""
    history.cdc([("U", (2, "TWO"))])
    die(wire, history, "LoadIncremental", once(Request.is_completion, lambda forward: wire.kill()))
    history.remove("Publishing", "CatalogPending", "LeaseOwner")
    before = history.item()["Head"]

    error = refusal(history, erase_keys=keys(1))

    assert (error["code"], history.item()["Head"], len(history.open_uploads())) == ("unfinished-upload", before, 1)
    assert history.repair().code == 0
    erased(history, keys(1))
    assert (2, "TWO") in history.rows()


def test_all_erases_of_a_table_have_one_salt(history: LakeTable, keys: KeysFile) -> None:
    """A batch makes one hash of each of its keys, however many erases there were."""
    found = [erased(history, keys(key)).erased_keys for key in (1, 2)]

    assert len({each.salt for each in found if each is not None}) == 1
    assert len({each.hashes for each in found if each is not None}) == 2


# --- what may no longer be used


def test_a_rollback_that_needs_an_erased_version_is_refused(history: LakeTable, keys: KeysFile) -> None:
    """It names the erase, and nothing changes; a change that needs none can be gone back to."""
    changes = [record.id for record in history.lineage().back()]
    erase = erased(history, keys(1))

    assert history.run("Rollback", to=changes[0]) == 1

    error = history.item()["LastRun"]["error"]
    assert (error["code"], history.item()["Head"]) == ("version-erased", erase.id)
    assert erase.id in error["message"]
    assert history.rows() == [row for row in SECOND if row[0] != 1]


def test_rollback_and_reapply_after_an_erase_work_where_no_erased_version_is_needed(history: LakeTable, keys: KeysFile) -> None:
    """A batch that came after it is undone and done again; the list of erases stays."""
    erase = erased(history, keys(1))
    history.cdc([("U", (2, "TWO"))])
    assert history.run() == 0
    later = history.rows()

    assert history.run("Rollback", to=erase.id, resume="true") == 0, history.item()["LastRun"]
    assert (history.rows(), history.snapshot().erases) == ([row for row in SECOND if row[0] != 1], (erase.id,))
    assert history.run("Rollback", reapply="all", resume="true") == 0, history.item()["LastRun"]

    assert (history.rows(), history.snapshot().erases, holds(history, 1)) == (later, (erase.id,), [])


def test_what_was_undone_before_an_erase_can_not_be_reapplied(history: LakeTable, keys: KeysFile) -> None:
    """An erase is a change like any other: what was undone before it is no longer the end of the history."""
    assert history.run("Rollback", to=[record.id for record in history.lineage().back()][1], resume="true", skip="true") == 0
    erased(history, keys(1))

    assert history.run("Rollback", reapply="all") != 0

    assert history.item()["LastRun"]["error"]["code"] == "nothing-to-reapply"
    assert holds(history, 1) == []


def test_from_the_commit_on_no_listed_version_is_used(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Also where none is removed yet: a rollback would bring the rows back for good."""
    changes = [record.id for record in history.lineage().back()]
    die(wire, history, "Erase", die_after(wire, is_removal, 0), erase_keys=keys(1))
    assert holds(history, 1)

    assert history.run("Rollback", to=changes[0]) == 1

    assert history.item()["LastRun"]["error"]["code"] == "version-erased"
    assert "Erasing" in history.item()


def test_a_rollback_begun_before_an_erase_can_not_end_after_it(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Its copies were made from versions that the erase lists; the fence keeps them from being committed, and the erase drops them."""
    goal = [record.id for record in history.lineage().back()][1]
    ends: list[int] = []

    def erase_first(forward: Any) -> Any:
        history.edit(LeaseSeconds=0.05)
        ends.append(history.run("Erase", erase_keys=keys(1)))
        return forward()

    rule = once(Request.is_commit, erase_first)
    assert run_on(wire, history, "Rollback", rule, to=goal, lease_seconds=60) != 0

    assert (ends, holds(history, 1), history.head().kind) == ([0], [], "erase")


# --- what stops an erase


def is_removal(request: Request) -> bool:
    """Whether the request removes versions for good."""
    return request.operation == "DeleteObjects" and b"<VersionId>" in request.body


def is_clearing(request: Request) -> bool:
    return request.operation == "UpdateItem" and b'"Erasing"' in request.body and not request.is_commit()


def test_dying_before_the_commit_leaves_nothing_erased(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """The next try does it, and drops the uploads of the first."""
    die(wire, history, "Erase", die_after(wire, Request.is_commit, 0), erase_keys=keys(1))
    assert "Erasing" not in history.item()
    assert (history.rows(), bool(holds(history, 1))) == (SECOND, True)

    erased(history, keys(1))

    assert (holds(history, 1), history.open_uploads()) == ([], [])


@pytest.mark.parametrize(
    ("matches", "count"),
    [(Request.is_commit, 1), (Request.is_completion, 1), (is_removal, 0), (is_removal, 1), (is_clearing, 0)],
    ids=["after the commit", "in converge", "before the removal", "after the removal", "before the clearing"],
)
def test_a_dead_erase_is_ended_by_resume(history: LakeTable, keys: KeysFile, wire: Wire, matches: Any, count: int) -> None:
    """Loads converge and go on meanwhile, verify tells, and a run of Erase without keys ends it."""
    die(wire, history, "Erase", die_after(wire, matches, count), erase_keys=keys(1))
    history.cdc([("U", (2, "TWO"))])
    assert history.run() == 0
    assert history.item()["Erasing"] == history.snapshot().erases[0]
    assert history.verify() == ["unfinished-erase"]

    assert history.run("Erase", resume="true") == 0, history.item()["LastRun"]

    history.check_folder()
    assert (holds(history, 1), history.verify(), "Erasing" in history.item()) == ([], [], False)
    assert history.rows() == [(2, "TWO"), (3, "THREE"), (4, "four")]


def test_without_permission_it_fails_and_is_ended_later(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """The change stands, the versions too; what to do is said."""
    deny = once(is_removal, lambda _: error_answer(Request("DeleteObjects", "", b""), DENIED))
    assert run_on(wire, history, "Erase", deny, erase_keys=keys(1)) == 3
    error = history.item()["LastRun"]["error"]
    assert (error["code"], "resume" in error["todo"] or "s3:DeleteObject" in error["todo"]) == ("access-denied", True)
    assert (history.rows(), bool(holds(history, 1))) == ([row for row in SECOND if row[0] != 1], True)

    assert history.run("Erase", resume="true") == 0

    assert (holds(history, 1), "Erasing" in history.item()) == ([], False)


def test_an_erase_ends_an_earlier_one_first(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Both lists are worked off."""
    die(wire, history, "Erase", die_after(wire, is_removal, 0), erase_keys=keys(1))

    record = erased(history, keys(2))

    assert (holds(history, 1), holds(history, 2), len(record.erases)) == ([], [], 2)


def test_an_item_that_forgot_the_erase_does_not_hide_it(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """A person saved an older form: the list is in the record."""
    die(wire, history, "Erase", die_after(wire, is_removal, 0), erase_keys=keys(1))
    history.remove("Erasing")
    assert "unfinished-erase" in history.verify()

    assert history.run("Erase", resume="true") == 0

    assert (holds(history, 1), history.verify()) == ([], [])


def test_a_lost_erase_was_none(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Its uploads were gone before they were published: the rows are there again, and no list holds."""
    die(wire, history, "Erase", die_after(wire, Request.is_commit, 1), erase_keys=keys(1))
    lost = history.head()
    abort_uploads(history.clients.s3, history.out_path, lost.added)

    assert history.run() == 0

    history.check_folder()
    assert (history.rows(), history.snapshot().erases, "Erasing" in history.item()) == (SECOND, (), False)
    assert history.verify() == []
    assert erased(history, keys(1)).erases != (lost.id,)


def test_it_is_refused_when_something_came_between(history: LakeTable, keys: KeysFile) -> None:
    """What was shown is what is done: another head, or another list, is not."""
    head = history.item()["Head"]
    first = refusal(history, erase_keys=keys(1), from_change="0000000001-000001-00000000")
    second = refusal(history, erase_keys=keys(1), from_change=head, shown="0" * 32)

    assert (first["code"], second["code"], history.item()["Head"]) == ("moved-on", "moved-on", head)
    assert holds(history, 1)


def shown_digest(table: LakeTable, keys: str) -> str:
    """What a look at an erase of these keys gives its run."""
    eraser = RowEraser(read_settings({"driver_bytes": DRIVER}, {}), table.environment, keys)
    return plan_erase(table.clients.s3, table.state(), table.snapshot(), eraser).plan.digest


def test_it_is_refused_when_the_key_file_was_written_over(history: LakeTable, keys: KeysFile) -> None:
    """Also where the new key stands in the very versions that were shown for the old one: nobody agreed to it."""
    file, head, held = keys(1), history.item()["Head"], holds(history, 1)
    shown = shown_digest(history, file)
    Path(file).write_text("id\n2\n")

    error = refusal(history, erase_keys=file, from_change=head, shown=shown)

    assert (error["code"], "other keys or versions" in error["message"], history.item()["Head"]) == ("moved-on", True, head)
    assert (holds(history, 1), holds(history, 2)) == (held, held)


def test_it_is_refused_when_the_key_folder_got_another_file(history: LakeTable, tmp_path: Path) -> None:
    """A run reads all files that are in it by then."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "first.parquet")
    head, held = history.item()["Head"], holds(history, 1)
    shown = shown_digest(history, str(tmp_path))
    pq.write_table(pa.table({"id": [2]}), tmp_path / "second.parquet")

    error = refusal(history, erase_keys=str(tmp_path), from_change=head, shown=shown)

    assert (error["code"], "2 key(s) are given now" in error["message"], history.item()["Head"]) == ("moved-on", True, head)
    assert (holds(history, 1), holds(history, 2)) == (held, held)


def test_what_was_shown_is_done_whatever_the_order_of_its_keys(history: LakeTable, keys: KeysFile) -> None:
    """The same keys in another file are the same erase."""
    shown = shown_digest(history, keys(1, 2))

    erased(history, keys(2, 1, 2), from_change=history.item()["Head"], shown=shown)

    assert (holds(history, 1), holds(history, 2)) == ([], [])


def test_a_visible_stray_with_the_key_is_hidden_before_it_is_removed(history: LakeTable, keys: KeysFile) -> None:
    """Somebody copied a hidden version over its key: removing only that one would let the older version be read."""
    s3, lake = history.clients.s3, history.out_path
    path = next(path for record in history.lineage().back() for path in record.superseded)
    (held,) = held_versions(s3, lake.bucket, lake.key + path)
    source = {"Bucket": lake.bucket, "Key": held.key, "VersionId": held.version}
    s3.copy_object(Bucket=lake.bucket, Key=held.key, CopySource=source)
    assert path in history.visible()

    assert history.run("Erase", erase_keys=keys(1)) == 0

    history.check_folder()
    assert holds(history, 1) == []


def test_an_item_that_went_back_behind_an_erase_is_found_out(make_table: TableMaker, keys: KeysFile) -> None:
    """Also where the erase wrote no file and all that it superseded is gone: the delete marker stays, and recover finds the erase."""
    table = make_table(partition_key="name")
    table.load(LOADED)
    assert table.run("LoadInitial") == 0
    load = table.item()["Head"]
    erase = erased(table, keys(2))
    assert (erase.added, len(erase.superseded)) == ((), 1)

    assert last_published(table.clients.s3, table.out_path) == erase.id
    table.edit(Head=load)
    table.run()

    assert table.item()["LastRun"]["error"]["code"] == "state-went-back"


def test_what_a_repair_brings_back_is_never_an_erased_version(history: LakeTable, keys: KeysFile, wire: Wire) -> None:
    """Before the removal as after it: the head's own files are not on any list, and come back."""
    die(wire, history, "Erase", die_after(wire, is_removal, 0), erase_keys=keys(1))
    (path,) = history.visible()
    history.clients.s3.delete_object(Bucket=history.out_path.bucket, Key=history.out_path.key + path)

    assert history.repair().code == 0
    assert history.run("Erase", resume="true") == 0

    history.check_folder()
    assert (history.rows(), holds(history, 1), history.verify()) == ([row for row in SECOND if row[0] != 1], [], [])


# --- keys that come back


def test_a_batch_that_brings_an_erased_key_back_is_reported(history: LakeTable, keys: KeysFile) -> None:
    """The source still has the row; deletes and other keys are no return."""
    erased(history, keys(1))
    history.cdc([("D", (1, None)), ("U", (2, "TWO"))])
    assert history.run() == 0
    assert (history.item()["LastRun"]["warnings"], "erased_keys_back" in history.head().details) == ([], False)
    history.cdc([("I", (1, "back")), ("I", (9, "nine"))])

    assert history.run() == 0

    (warning,) = history.item()["LastRun"]["warnings"]
    assert (history.head().details["erased_keys_back"], "1 erased key(s) back" in warning) == (1, True)


@pytest.mark.usefixtures("names_of_any_age")
def test_a_reload_that_brings_an_erased_key_back_is_reported(history: LakeTable, keys: KeysFile) -> None:
    """Also where its column has another type by then."""
    erased(history, keys(1))
    history.load([("1", "one"), ("2", "two")], columns=pa.schema([("id", pa.string()), ("name", pa.string())]))
    history.edit(LoadQuietMinutes="0")

    assert history.run("LoadInitial") == 0

    assert history.head().details["erased_keys_back"] == 1


def test_nothing_is_read_for_that_in_a_table_without_an_erase(history: LakeTable, wire: Wire) -> None:
    """Each raw file is fetched once."""
    key = history.cdc([("U", (2, "TWO"))])

    assert run_on(wire, history, "LoadIncremental") == 0

    assert len([request for request in wire.of("GetObject") if request.key == key]) <= 2


# --- files of another program


def test_adopted_files_are_searched_and_their_successors_are_ours(make_table: TableMaker, keys: KeysFile) -> None:
    """The adoption's record knows them; a file that it passed over is not ours, and is named."""
    table = make_table()
    put_sample(table)
    assert table.run("Adopt", load_date=FUTURE, cursor="0.parquet") == 0, table.item()["LastRun"]
    adoption = table.item()["Head"]

    assert table.run("Erase", erase_keys=keys(2)) == 0, table.item()["LastRun"]

    record = table.head()
    assert (table.rows(table.snapshot(), set(table.snapshot().files)), record.counts.deleted) == ([row for row in ROWS if row[0] != 2], 1)
    assert [each.key.rsplit("/", 1)[-1] for each in record.erased] == ["part-00002-cc.c000.snappy.parquet"]
    assert record.details["unsearched"] >= 1
    assert table.run("Rollback", to=adoption) == 1
    assert table.item()["LastRun"]["error"]["code"] == "version-erased"


CTAS = ["20240501_120000_00001_abcde_0a1b2c3d", "20240501_120000_00001_abcde_4e5f6a7b"]  # as Athena and Trino name files


@pytest.fixture
def ctas(make_table: TableMaker) -> LakeTable:
    """An adopted folder whose files have no ending; a batch wrote one of them anew, and the other is as it was."""
    table = make_table()
    put(table, CTAS[0], {"id": ids(1, 2), "name": ["one", "two"]})
    put(table, CTAS[1], {"id": ids(3, 4), "name": ["three", "four"]})
    put(table, "_notes", {"id": ids(9), "name": ["theirs"]})
    assert table.run("Adopt", load_date=FUTURE, cursor="0.parquet") == 0, table.item()["LastRun"]
    table.cdc([("D", (1, None))])
    assert table.run(small_file_bytes="0") == 0, table.item()["LastRun"]
    assert set(table.snapshot().files) & set(CTAS) == {CTAS[1]}
    return table


@pytest.mark.parametrize(
    ("key", "left", "path"),
    [(3, [(2, "two"), (4, "four")], CTAS[1]), (1, [(2, "two"), (3, "three"), (4, "four")], CTAS[0])],
    ids=["in the table", "in a hidden version"],
)
def test_adopted_files_without_an_ending_are_searched(ctas: LakeTable, keys: KeysFile, key: int, left: list[Any], path: str) -> None:
    """A file is known by the records, whatever its name; only what no record knows is told by that."""
    assert holds(ctas, key) == [ctas.out_path.key + path]

    assert ctas.run("Erase", erase_keys=keys(key)) == 0, ctas.item()["LastRun"]

    files = set(ctas.snapshot().files)
    assert (ctas.rows(visible=files), holds(ctas, key), files <= ctas.visible()) == (left, [], True)
    assert [each.key for each in ctas.head().erased] == [ctas.out_path.key + path]
    assert ctas.head().details["unsearched_first"] == [ctas.out_path.key + "_notes"]
    assert ctas.verify() == []
    assert ctas.run("Erase", erase_keys=keys(key)) != 0
    assert ctas.item()["LastRun"]["error"]["code"] == "no-key-found"


def test_what_another_program_wrote_over_an_adopted_file_is_searched(ctas: LakeTable, keys: KeysFile) -> None:
    """Every version of its key, also one that no record knows."""
    put(ctas, CTAS[0], {"id": ids(9), "name": ["theirs"]})
    assert ctas.out_path.key + CTAS[0] in holds(ctas, 9)

    assert ctas.run("Erase", erase_keys=keys(9)) == 0, ctas.item()["LastRun"]

    assert holds(ctas, 9) == [ctas.out_path.key + "_notes"]
