"""A person's edits: which attributes, which refusals, what happens next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from controller import edits
from controller.cli.running import activate_lines
from controller.edits import Edit
from glue_jobs.core.errors import UsageError
from glue_jobs.core.schema import Column
from glue_jobs.core.state import TableState, read_state
from tests.controller.world import HEAD, LAKE, item_of, table_path

ORDERS = table_path()


def state(**attributes: Any) -> TableState:
    return read_state(item_of(ORDERS, **attributes))


def blocked(code: str, **attributes: Any) -> TableState:
    """A loaded table that waits for a person."""
    return state(Head=HEAD, Blocked=json.dumps({"code": code, "message": "m", "todo": "t", "signature": ""}), **attributes)


def new(**attributes: Any) -> TableState:
    return state(**{"ActiveFlag": "false", "PrimaryKey": "null", **attributes})


def test_activate_sets_keys() -> None:
    """Spaces after commas don't matter; the next command is named."""
    edit = edits.activate(new(), "a, b", "year(day), region", LAKE)

    assert edit.values == {"ActiveFlag": "true", "PrimaryKey": "a,b", "PartitionKey": "year(day), region"}
    assert edit.remove == ()
    assert f"dmslake run {ORDERS}" in edit.lines[-1]


def test_commands_can_be_pasted_whatever_the_table_is_called() -> None:
    """A shell takes the path as one word and runs nothing in it."""
    path = table_path("a `b` $(c) 'd'", "o'x")
    odd = read_state(item_of(path, ActiveFlag="false", Head=HEAD))

    made = [edits.deactivate(odd), edits.repartition(odd, None), edits.unblock(odd, ())]
    lines = [*(edit.lines[-1] for edit in made), activate_lines([(str(path), False)])[-1], activate_lines([(str(path), True)])[-1]]
    with pytest.raises(UsageError) as raised:
        edits.activate(odd, None, "year(order date)", LAKE)

    pasted = [shlex.split(line[line.index("dmslake ") :]) for line in (*lines, raised.value.todo)]
    assert [words[2] for words in pasted] == [str(path)] * 6
    assert pasted[-1] == ["dmslake", "repartition", str(path), "--partition-key", "year(order date)"]


def test_activate_leaves_what_is_not_given() -> None:
    """Keys that stand in the item stay."""
    edit = edits.activate(state(ActiveFlag="false", PartitionKey="region"), None, None, LAKE)

    assert edit.values == {"ActiveFlag": "true"}
    assert "primary key id, partition key region" in edit.lines[0]


def test_activate_without_a_key_says_what_that_means() -> None:
    """Updates and deletes can't be applied."""
    assert any("only counted" in line for line in edits.activate(new(), "null", None, LAKE).lines)


def test_activate_lifts_a_pause() -> None:
    """A rolled-back table goes on, and is told so."""
    edit = edits.activate(state(Paused="rolled back to x"), None, None, LAKE)

    assert edit.remove == ("Paused",)
    assert any("rolled back to x" in line for line in edit.lines)


def test_activate_fills_a_missing_out_path() -> None:
    """From --lake; without it the call is refused."""
    assert edits.activate(new(out_path=None), "id", None, LAKE).values["out_path"] == "s3://lake-bucket/lake/shop/orders/"
    with pytest.raises(UsageError, match="out_path"):
        edits.activate(new(out_path=None), "id", None, "")


def test_the_line_that_activates_a_table_with_a_key_leaves_the_key() -> None:
    """The example of a key is for tables that have none yet; pasted for another one it would change that key."""
    lines = activate_lines([("a/b/c/", True), ("a/b/d/", False), ("a/b/e/", True)])

    assert [line.strip() for line in lines if "dmslake" in line] == [
        "dmslake activate a/b/c/", "dmslake activate a/b/e/", "dmslake activate a/b/d/ --primary-key id"
    ]  # fmt: skip
    assert activate_lines([]) == []


@pytest.mark.parametrize("key", ["a,,b", "a,a", ",", "a,", "", " "])
def test_activate_refuses_a_key(key: str) -> None:
    """Empty and repeated columns are no key, and an empty text does not take the key away: it may be a variable that is not set."""
    with pytest.raises(UsageError, match="--primary-key"):
        edits.activate(new(), key, None, LAKE)


@pytest.mark.parametrize("key", ["hour(x)", "a,a", "a(", "", " "])
def test_activate_refuses_a_partition_key(key: str) -> None:
    """What the job couldn't read is refused at once, as a wrong call; an empty text is no word for no layout."""
    with pytest.raises(UsageError, match="PartitionKey"):
        edits.activate(new(), "id", key, LAKE)
    with pytest.raises(UsageError, match="PartitionKey"):
        edits.repartition(state(Head=HEAD), key)


def test_activate_does_not_change_a_loaded_layout() -> None:
    """That is another command, which is named; the same layout passes."""
    loaded = state(Head=HEAD, PartitionKey="region")

    with pytest.raises(UsageError, match="loaded") as raised:
        edits.activate(loaded, None, "year(day)", LAKE)

    assert "dmslake repartition" in raised.value.todo
    assert edits.activate(loaded, None, "region", LAKE).values["PartitionKey"] == "region"


def test_activate_warns_of_a_new_key_of_a_loaded_table() -> None:
    """The next run rewrites the table."""
    assert any("rewrites" in line for line in edits.activate(state(Head=HEAD), "other", None, LAKE).lines)
    assert not any("rewrites" in line for line in edits.activate(state(Head=HEAD), "id", None, LAKE).lines)


def test_deactivate() -> None:
    """Only the flag changes."""
    assert edits.deactivate(state()).values == {"ActiveFlag": "false"}


@pytest.mark.parametrize(
    ("make", "request_text"),
    [
        (edits.reload, "reload"),
        (lambda table: edits.rename_column(table, "old=new", ["id", "old"]), "schema-rename:old=new"),
        (lambda table: edits.repartition(table, None), "repartition"),
    ],
)
def test_requests_can_be_read_back(make: Callable[[TableState], Edit], request_text: str) -> None:
    """What a command writes is what the jobs understand."""
    edit = make(state(Head=HEAD))

    assert edit.values == {"Request": request_text}
    now = state(Head=HEAD, **edit.values)
    assert (now.request, now.request_value) == (request_text.partition(":")[0], request_text.partition(":")[2])


def test_repartition_sets_the_new_layout() -> None:
    """PartitionKey and request in one write."""
    assert edits.repartition(state(Head=HEAD), "month(day)").values == {"Request": "repartition", "PartitionKey": "month(day)"}
    assert edits.repartition(state(Head=HEAD), "null").values["PartitionKey"] == "null"


def test_repartition_refuses_what_the_columns_do_not_allow() -> None:
    """A column that is not there, or that has no date, would stop the table after the call said that all is well."""
    schema = (Column("id", "int"), Column("day", "date"))

    for text, found in (("nosuch", "'nosuch'"), ("year(id)", "no date")):
        with pytest.raises(UsageError, match=found):
            edits.repartition(state(Head=HEAD), text, schema)
    assert edits.repartition(state(Head=HEAD), "year(day)", schema).values["PartitionKey"] == "year(day)"
    assert edits.repartition(state(Head=HEAD), "null", schema).values["PartitionKey"] == "null"


ANSWERS = [(edits.widen, "widening-needs-a-word", "widen"), (edits.accept_schema, "rename-or-drop-and-add", "schema-accept")]


@pytest.mark.parametrize(("make", "code", "request_text"), ANSWERS)
def test_an_answer_is_written_where_a_table_waits_for_it(make: Callable[[TableState], Edit], code: str, request_text: str) -> None:
    """As a request that reads back; a second time too, and for a table that rests."""
    for waiting in (blocked(code), blocked(code, Request=request_text), blocked(code, ActiveFlag="false")):
        edit = make(waiting)
        assert edit.values == {"Request": request_text}
        assert state(**edit.values).request == request_text


@pytest.mark.parametrize(("make", "code"), [answer[:2] for answer in ANSWERS])
def test_an_answer_that_nobody_waits_for_is_refused(make: Callable[[TableState], Edit], code: str) -> None:
    """Kept in the item it would let a later file through; the error says so, and what is expected and found."""
    for idle, found in ((state(Head=HEAD), "no block"), (blocked("null-key"), "null-key"), (state(Head=HEAD, Blocked="wait"), "by-hand")):
        with pytest.raises(UsageError, match=f"expected: a table blocked with {code}; found: .*{found}.*later file") as raised:
            make(idle)
        assert raised.value.code == "nothing-asked"


@pytest.mark.parametrize("make", [edits.widen, edits.accept_schema, lambda table: edits.repartition(table, None)])
def test_requests_need_a_loaded_table(make: Callable[[TableState], Edit]) -> None:
    """There is nothing to rewrite before the first load."""
    with pytest.raises(UsageError, match="never loaded"):
        make(state())


@pytest.mark.parametrize("text", ["", "a", "a=", "=b", "a=a", "missing=new", "old=id"])
def test_rename_refuses(text: str) -> None:
    """No pair, a column that isn't there, a name that is taken."""
    with pytest.raises(UsageError):
        edits.rename_column(state(Head=HEAD), text, ["id", "old"])


def test_requests_of_a_resting_table_say_so() -> None:
    """Nothing happens until it is activated."""
    assert "dmslake activate" in edits.reload(state(ActiveFlag="false")).lines[-1]
    assert "dmslake activate" in edits.reload(state(Paused="rolled back")).lines[-1]
    assert "'widen'" in edits.reload(state(Request="widen")).lines[1]


def test_unblock() -> None:
    """The block is taken away and what it was is shown; files are added to those skipped before."""
    edit = edits.unblock(
        state(Blocked='{"code": "c", "message": "a bad file", "todo": ""}', SkipFiles="a.txt"), ["b.txt", "a.txt", "b.txt"]
    )

    assert edit.remove == ("Blocked",)
    assert "a bad file" in edit.lines[0]
    assert state(**edit.values).skip_files == ("a.txt", "b.txt")


def test_a_load_file_that_is_named_again_is_left_out_by_its_key() -> None:
    """Its name alone means the file of the load before."""
    block = '{"code": "c", "message": "where: s3://raw/dms/LOAD00000002.parquet", "todo": ""}'
    item = state(Blocked=block, SkipFiles="LOAD00000002.parquet,LOAD00000003.parquet,a.txt")

    edit = edits.unblock(item, ["LOAD00000002.parquet", "LOAD00000003.parquet", "a.txt"])

    assert state(**edit.values).skip_files == (*item.skip_files, item.path.raw.key + "LOAD00000002.parquet")
    assert "SkipFiles" not in edits.unblock(state(Blocked=block, **edit.values), ["LOAD00000002.parquet"]).values


@pytest.mark.parametrize("code", ["reload-unclear", "reload-without-file"])
def test_new_load_files_are_left_out_a_second_time(code: str) -> None:
    """These blocks name another file, and advise it: the folder was written anew again."""
    item = state(Blocked=json.dumps({"code": code, "message": "a CDC file", "todo": ""}), SkipFiles="LOAD00000002.parquet")

    edit = edits.unblock(item, ["LOAD00000002.parquet"])

    assert state(**edit.values).skip_files[1:] == (item.path.raw.key + "LOAD00000002.parquet",)


def test_a_load_file_is_not_left_out_by_its_key_because_the_command_came_twice() -> None:
    """The block is gone after the first time, and may be of another file."""
    first = edits.unblock(state(Blocked='{"code": "c", "message": "LOAD00000002.parquet", "todo": ""}'), ["LOAD00000002.parquet"])

    again = edits.unblock(state(**first.values), ["LOAD00000002.parquet"])
    assert "SkipFiles" not in again.values
    assert any("is left out by its name already" in line for line in again.lines)


def test_unblock_of_a_table_without_a_block() -> None:
    """A block that the plan finds anew each time isn't in the item: only the skipped file is written."""
    edit = edits.unblock(state(), ["b.txt"])

    assert (edit.values, edit.remove) == ({"SkipFiles": "b.txt"}, ())


@pytest.mark.parametrize("name", ["a,b", " "])
def test_unblock_refuses_a_file_name(name: str) -> None:
    """The attribute separates names by comma."""
    with pytest.raises(UsageError, match="--skip-file"):
        edits.unblock(state(), [name])
