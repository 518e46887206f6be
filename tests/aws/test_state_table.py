"""The state table's reads and conditional writes."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from glue_jobs.aws.clients import Clients
from glue_jobs.aws.state_table import Commit, StateTable
from glue_jobs.core.errors import ConfigurationError, RetryLater, UsageError
from tests.aws.faults import Injected, answer, json_error, lost_answer

PATH = "raw/dms/sales/orders/"
LEASE = {"Fence": 7, "LeaseOwner": "me", "LeaseSeconds": 60.5, "LeaseBeat": 1}
COMMIT = Commit(fence=7, parent="c1", change="c2", unchanged={"ActiveFlag": "true", "Paused": None}, values={"LastIncrementalFile": "f2"})


def given(table: StateTable, **attributes: Any) -> dict[str, Any]:
    """An item with these attributes."""
    item = {"path": PATH, **attributes}
    assert table.create(item)
    return item


def leased(table: StateTable, **attributes: Any) -> dict[str, Any]:
    """An item whose lease is held with fence 7, its head c1."""
    return given(table, **LEASE, Head="c1", ActiveFlag="true", LastIncrementalFile="f1", **attributes)


def test_ensuring_creates_the_table(clients: Clients) -> None:
    """By demand, with the path as key."""
    table = StateTable(clients, f"new-{uuid.uuid4().hex}")

    table.ensure()

    found = clients.dynamodb.describe_table(TableName=table.name)["Table"]
    assert (found["KeySchema"], found["BillingModeSummary"]["BillingMode"]) == (
        [{"AttributeName": "path", "KeyType": "HASH"}],
        "PAY_PER_REQUEST",
    )


def test_ensuring_again_changes_nothing(table: StateTable, clients: Clients) -> None:
    """Items stay, no second creation is asked for."""
    given(table)
    asked = Injected(clients.dynamodb, "CreateTable")

    table.ensure()

    assert (asked.sent, table.get(PATH)) == (0, {"path": PATH})


def test_ensuring_bears_another_run_that_creates_the_table(table: StateTable, clients: Clients) -> None:
    """It was missing when we looked, and in use when we created it."""
    Injected(clients.dynamodb, "DescribeTable", json_error(400, "ResourceNotFoundException"))

    table.ensure()

    assert table.get(PATH) is None


def test_ensuring_waits_for_a_table_that_is_being_created(table: StateTable, clients: Clients) -> None:
    """Until it is active."""
    key = '[{"AttributeName": "path", "KeyType": "HASH"}]'
    creating = answer(200, '{"Table": {"TableStatus": "CREATING", "KeySchema": ' + key + "}}")
    asked = Injected(clients.dynamodb, "DescribeTable", creating)

    table.ensure()

    assert asked.sent == 2


def test_a_table_that_is_never_ready_is_for_a_later_run(table: StateTable, clients: Clients) -> None:
    """The waiter's own error is translated."""
    missing = json_error(400, "ResourceNotFoundException")
    Injected(clients.dynamodb, "DescribeTable", missing, json_error(400, "ValidationException"))

    with pytest.raises(RetryLater, match=table.name):
        table.ensure()


@pytest.mark.parametrize("operation", ["DescribeTable", "CreateTable"])
def test_being_denied_is_raised(clients: Clients, operation: str) -> None:
    """Neither taken for a missing table nor for one that exists."""
    table = StateTable(clients, f"new-{uuid.uuid4().hex}")
    Injected(clients.dynamodb, operation, json_error(400, "AccessDeniedException"))

    with pytest.raises(ClientError, match="AccessDenied"):
        table.ensure()


def test_a_table_with_another_key_is_refused(clients: Clients) -> None:
    """It is somebody else's."""
    table = StateTable(clients, f"other-{uuid.uuid4().hex}")
    clients.dynamodb.create_table(
        TableName=table.name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    with pytest.raises(ConfigurationError, match=table.name) as caught:
        table.ensure()

    assert caught.value.code == "state-table-key"


def test_an_item_is_read_as_plain_values(table: StateTable) -> None:
    """Whatever a person or a program wrote."""
    item = given(table, ActiveFlag=True, LoadQuietMinutes=1.5, SkipFiles=("a",), LastRun={"counts": {"rows": 3}}, Note=None, Fence=2)

    assert table.get(PATH) == item


def test_no_item_is_none(table: StateTable) -> None:
    """Not an empty one."""
    assert table.get(PATH) is None


def test_a_read_is_consistent(table: StateTable, clients: Clients) -> None:
    """An old value would be taken for the state."""
    one, many, all_of_them = (Injected(clients.dynamodb, name) for name in ("GetItem", "BatchGetItem", "Scan"))

    table.get(PATH)
    table.batch_get([PATH])
    list(table.scan())

    assert all(b'"ConsistentRead": true' in sent.requests[0].body for sent in (one, many, all_of_them))


def test_many_items_are_read_in_pages(table: StateTable, clients: Clients) -> None:
    """A hundred each; a path asked for twice is read once, one without item is left out."""
    paths = [f"raw/s/t{number}/" for number in range(130)]
    for path in paths:
        table.create({"path": path})
    sent = Injected(clients.dynamodb, "BatchGetItem")

    found = table.batch_get([*paths, paths[0], "raw/s/none/"])

    assert (sorted(found) == sorted(paths), sent.sent) == (True, 2)


def unprocessed(table: StateTable, path: str) -> Any:
    """A throttled answer of BatchGetItem."""
    keys = '{"' + table.name + '": {"Keys": [{"path": {"S": "' + path + '"}}], "ConsistentRead": true}}'
    return answer(200, '{"Responses": {}, "UnprocessedKeys": ' + keys + "}")


def test_keys_that_were_not_processed_are_asked_for_again(table: StateTable, clients: Clients, pauses: list[float]) -> None:
    """DynamoDB answers 200 for what it could do."""
    given(table)
    Injected(clients.dynamodb, "BatchGetItem", unprocessed(table, PATH))

    assert (table.batch_get([PATH]), len(pauses)) == ({PATH: {"path": PATH}}, 1)


def test_keys_that_are_never_processed_are_an_error(table: StateTable, clients: Clients, pauses: list[float]) -> None:
    """Rather than a table that seems to be missing."""
    Injected(clients.dynamodb, "BatchGetItem", *[unprocessed(table, PATH) for _ in range(8)])

    with pytest.raises(RetryLater, match=table.name):
        table.batch_get([PATH])

    assert len(pauses) == 7


def test_a_scan_goes_over_all_pages(table: StateTable, clients: Clients) -> None:
    """The table may be larger than one answer."""
    for number in range(5):
        table.create({"path": f"raw/s/t{number}/"})
    clients.dynamodb.meta.events.register("before-parameter-build.dynamodb.Scan", lambda params, **_: params.update(Limit=2))

    assert sorted(item["path"] for item in table.scan()) == [f"raw/s/t{number}/" for number in range(5)]


def test_creating_never_overwrites(table: StateTable) -> None:
    """A person's edits would be lost."""
    given(table, ActiveFlag="true")

    assert (table.create({"path": PATH, "ActiveFlag": "false"}), table.get(PATH)) == (False, {"path": PATH, "ActiveFlag": "true"})


def test_a_person_sets_and_removes_attributes(table: StateTable) -> None:
    """Reserved words of DynamoDB too."""
    given(table, Paused="yes", bucket="a")

    table.set_attributes(PATH, {"bucket": "b", "name": "n", "status": "s"}, remove=("Paused",))

    assert table.get(PATH) == {"path": PATH, "bucket": "b", "name": "n", "status": "s"}


def test_setting_attributes_of_no_table_is_refused(table: StateTable) -> None:
    """No stump of an item is left."""
    with pytest.raises(UsageError, match=PATH):
        table.set_attributes(PATH, {"ActiveFlag": "true"})

    assert table.get(PATH) is None


def test_setting_nothing_asks_nothing(table: StateTable, clients: Clients) -> None:
    """DynamoDB refuses an empty update."""
    sent = Injected(clients.dynamodb, "UpdateItem")

    table.set_attributes(PATH, {})
    written = table.write_under_fence(PATH, 7, {})

    assert (sent.sent, written) == (0, True)


def test_what_an_item_lacked_is_set(table: StateTable) -> None:
    """Attributes that were absent, NULL or empty; the item is told as it is then."""
    given(table, Note=None, Text="", ActiveFlag="true")
    seen, stored = table.get(PATH) or {}, dict[str, Any]()
    table.set_attributes(PATH, {"Other": "set meanwhile"})

    assert table.complete(PATH, seen, {"Note": "a", "Text": "b", "More": "c"}, stored.update)

    assert stored == table.get(PATH)
    assert stored == {"path": PATH, "Note": "a", "Text": "b", "More": "c", "ActiveFlag": "true", "Other": "set meanwhile"}


@pytest.mark.parametrize("meanwhile", [{"Note": "mine"}, {"Text": "mine"}, {"More": "mine"}, {"Head": "c1"}])
def test_what_was_set_meanwhile_stays(table: StateTable, meanwhile: dict[str, Any]) -> None:
    """And nothing of the rest is set, so that the caller looks again."""
    seen, stored = given(table, Note=None, Text=""), dict[str, Any]()
    table.set_attributes(PATH, meanwhile)

    assert not table.complete(PATH, seen, {"Note": "a", "Text": "b", "More": "c"}, stored.update)

    assert (stored, table.get(PATH)) == ({}, {**seen, **meanwhile})


def test_an_item_that_is_gone_is_not_completed(table: StateTable) -> None:
    """No stump of an item is left."""
    assert not table.complete(PATH, {"path": PATH}, {"PrimaryKey": "null"}, dict[str, Any]().update)
    assert table.get(PATH) is None


def test_a_free_lease_is_taken(table: StateTable) -> None:
    """An item that never had one gets the fence it is given."""
    item = given(table)

    assert (table.take_lease(PATH, item, "me", 7, 60.5), table.get(PATH)) == (True, {**item, **LEASE})


def test_a_dead_lease_is_taken_over(table: StateTable) -> None:
    """Its owner gave no sign of life since it was read."""
    item = given(table, **{**LEASE, "LeaseOwner": "dead", "Fence": 6, "LeaseBeat": 9})

    assert (table.take_lease(PATH, item, "me", 7, 60.5), table.get(PATH)) == (True, {"path": PATH, **LEASE})


@pytest.mark.parametrize(
    "since",
    [{"Fence": 7}, {"LeaseOwner": "other"}, {"LeaseBeat": 10}],
    ids=["another run took it", "another owner", "a sign of life"],
)
def test_a_lease_that_moved_since_it_was_read_is_not_taken(table: StateTable, since: dict[str, Any]) -> None:
    """Each clause of the condition by itself."""
    seen = given(table, Fence=6, LeaseOwner="dead", LeaseBeat=9, LeaseSeconds=60.5)
    table.set_attributes(PATH, since)

    assert (table.take_lease(PATH, seen, "me", 7, 60.5), table.get(PATH)) == (False, {**seen, **since})


@pytest.mark.parametrize("appeared", [{"Fence": 1}, {"LeaseOwner": "other"}, {"LeaseBeat": 1}])
def test_a_lease_that_appeared_since_is_not_taken(table: StateTable, appeared: dict[str, Any]) -> None:
    """What was absent has to be absent."""
    seen = given(table)
    table.set_attributes(PATH, appeared)

    assert table.take_lease(PATH, seen, "me", 7, 60) is False


def test_a_released_lease_is_not_taken_by_what_was_seen_before(table: StateTable) -> None:
    """What was there has to be there."""
    seen = leased(table)
    table.release(PATH, "me", 7)

    assert table.take_lease(PATH, seen, "other", 8, 60) is False


def test_a_deleted_item_is_not_made_again_by_a_lease(table: StateTable) -> None:
    """A stump without the person's attributes would be worse than nothing."""
    assert (table.take_lease(PATH, {"path": PATH}, "me", 7, 60), table.get(PATH)) == (False, None)


def test_a_taken_lease_whose_answer_was_lost_is_ours(table: StateTable, clients: Clients) -> None:
    """The second request is refused by what the first one did."""
    item = given(table)
    sent = Injected(clients.dynamodb, "UpdateItem", lost_answer)

    assert (table.take_lease(PATH, item, "me", 7, 60.5), sent.sent) == (True, 2)


def test_renewing_shows_a_sign_of_life(table: StateTable) -> None:
    """Nothing else changes."""
    item = leased(table)

    assert (table.renew(PATH, "me", 7, 2), table.get(PATH)) == (True, {**item, "LeaseBeat": 2})


@pytest.mark.parametrize(("owner", "fence"), [("other", 7), ("me", 6)])
def test_a_lease_of_others_is_neither_renewed_nor_released(table: StateTable, owner: str, fence: int) -> None:
    """Owner and fence have to be ours, both."""
    item = leased(table)

    assert (table.renew(PATH, owner, fence, 2), table.release(PATH, owner, fence), table.get(PATH)) == (False, False, item)


def test_renewing_again_after_a_lost_answer_holds(table: StateTable, clients: Clients) -> None:
    """The same beat may be written twice."""
    leased(table)
    Injected(clients.dynamodb, "UpdateItem", lost_answer)

    assert table.renew(PATH, "me", 7, 2) is True


def test_releasing_leaves_the_fence(table: StateTable) -> None:
    """It only ever grows."""
    given(table, **LEASE)

    assert (table.release(PATH, "me", 7), table.get(PATH)) == (True, {"path": PATH, "Fence": 7})


def test_releasing_writes_what_is_left_to_say(table: StateTable, clients: Clients) -> None:
    """In one request; the lease of another is left alone, and nothing is said."""
    given(table, **LEASE)
    sent = Injected(clients.dynamodb, "UpdateItem")

    assert (table.release(PATH, "me", 7, {"Note": "done"}), sent.sent) == (True, 1)
    assert table.get(PATH) == {"path": PATH, "Fence": 7, "Note": "done"}
    assert (table.release(PATH, "me", 7, {"Note": "again"}), table.get(PATH)) == (False, {"path": PATH, "Fence": 7, "Note": "done"})


def written_by(table: StateTable, write: str, on_item: Any) -> bool:
    """Do one of the writes that tell of the item, on a leased one."""
    if write == "take_lease":
        return table.take_lease(PATH, table.get(PATH) or {}, "next", 8, 60.5, on_item)
    if write == "commit":
        return table.commit(PATH, COMMIT, on_item)
    clear = table.clear_publishing if write == "clear_publishing" else table.clear_catalog_pending
    return clear(PATH, 7, "c1", on_item)


@pytest.mark.parametrize("write", ["take_lease", "commit", "clear_publishing", "clear_catalog_pending"])
def test_a_write_tells_of_the_item_after_it(table: StateTable, clients: Clients, write: str) -> None:
    """As a read right after it would, and nothing is read."""
    leased(table, **({} if write == "commit" else {"Publishing": "c1", "CatalogPending": "c1"}))
    found: dict[str, Any] = {}
    before = table.get(PATH)
    read = Injected(clients.dynamodb, "GetItem")

    assert written_by(table, write, found.update)

    assert read.sent == (1 if write == "take_lease" else 0), "the one read is the test's own"
    assert (found == table.get(PATH), found == before) == (True, False)


@pytest.mark.parametrize("write", ["take_lease", "clear_publishing", "clear_catalog_pending"])
def test_a_write_whose_answer_was_lost_tells_of_the_item_too(table: StateTable, clients: Clients, write: str) -> None:
    """It is read then."""
    leased(table, Publishing="c1", CatalogPending="c1")
    found: dict[str, Any] = {}
    Injected(clients.dynamodb, "UpdateItem", lost_answer)

    assert written_by(table, write, found.update)

    assert found == table.get(PATH)


def test_a_refused_write_tells_nothing(table: StateTable) -> None:
    """The item is somebody else's then."""
    leased(table, Paused="by hand")
    found: dict[str, Any] = {}

    assert (written_by(table, "commit", found.update), found) == (False, {})


def test_the_fence_moves_once(table: StateTable) -> None:
    """The second time it is not ours any more."""
    given(table, Fence=7)

    assert (table.move_fence(PATH, 7, 9), table.move_fence(PATH, 7, 8), table.get(PATH)) == (True, False, {"path": PATH, "Fence": 9})


def test_a_commit_moves_head_and_says_what_is_left_to_do(table: StateTable) -> None:
    """All in one write, the person's attributes untouched."""
    item = leased(table)

    done = table.commit(PATH, COMMIT)

    after = {"Head": "c2", "Publishing": "c2", "CatalogPending": "c2", "LastIncrementalFile": "f2"}
    assert (done, table.get(PATH)) == (True, {**item, **after})


def test_a_first_commit_needs_an_absent_head(table: StateTable) -> None:
    """The parent is nobody."""
    given(table, Fence=7)
    first = Commit(fence=7, parent="", change="c1")

    assert [table.commit(PATH, first), table.commit(PATH, first)] == [True, False]


def test_a_commit_removes_attributes(table: StateTable) -> None:
    """A fulfilled request, for example, goes in the same write."""
    leased(table, Request="reload")

    table.commit(PATH, Commit(fence=7, parent="c1", change="c2", unchanged={"Request": "reload"}, remove=("Request",)))

    assert "Request" not in (table.get(PATH) or {})


@pytest.mark.parametrize(
    "since",
    [{"Fence": 8}, {"Head": "cx"}, {"Publishing": "cx"}, {"ActiveFlag": "false"}, {"Paused": "yes"}],
    ids=["a new lease", "another head", "an unfinished publish", "deactivated", "paused"],
)
def test_a_commit_is_refused_where_something_moved(table: StateTable, since: dict[str, Any]) -> None:
    """Each clause of the condition by itself, and nothing is written."""
    item = leased(table)
    table.set_attributes(PATH, since)

    assert (table.commit(PATH, COMMIT), table.get(PATH)) == (False, {**item, **since})


@pytest.mark.parametrize("gone", ["Fence", "Head", "ActiveFlag"])
def test_a_commit_is_refused_where_something_is_gone(table: StateTable, gone: str) -> None:
    """An absent attribute is not the one that was read."""
    leased(table)
    table.set_attributes(PATH, {}, remove=(gone,))

    assert table.commit(PATH, COMMIT) is False


def test_a_commit_on_top_of_an_unfinished_publish_may_be_asked_for(table: StateTable) -> None:
    """To undo a change whose uploads are gone."""
    leased(table, Publishing="c1")

    assert table.commit(PATH, Commit(fence=7, parent="c1", change="c2", publishing_expected="c1")) is True


def test_null_counts_as_absent_in_a_commit(table: StateTable) -> None:
    """A person's console writes NULL where nothing stands; it was read as None."""
    item = leased(table, Paused=None)

    assert table.commit(PATH, Commit(fence=7, parent="c1", change="c2", unchanged={"Paused": item["Paused"]})) is True


@pytest.mark.parametrize("value", [True, 15, 1.5, "x ", ("a", "b"), ["a", 1], {"a": {"b": 1}}, b"x"])
def test_any_value_can_be_required_as_it_was_read(table: StateTable, value: Any) -> None:
    """Whatever type a person chose."""
    leased(table, LoadQuietMinutes=value)
    read = (table.get(PATH) or {})["LoadQuietMinutes"]

    assert table.commit(PATH, Commit(fence=7, parent="c1", change="c2", unchanged={"LoadQuietMinutes": read})) is True


def test_a_commit_whose_answer_was_lost_is_refused_the_second_time(table: StateTable, clients: Clients) -> None:
    """That is why the caller reads back: the change is the head."""
    leased(table)
    Injected(clients.dynamodb, "UpdateItem", lost_answer)

    assert (table.commit(PATH, COMMIT), (table.get(PATH) or {})["Head"]) == (False, "c2")


def test_another_error_of_a_commit_is_raised(table: StateTable, clients: Clients) -> None:
    """It is no refusal."""
    leased(table)
    Injected(clients.dynamodb, "UpdateItem", json_error(400, "ValidationException"))

    with pytest.raises(ClientError, match="ValidationException"):
        table.commit(PATH, COMMIT)


@pytest.mark.parametrize("nothing", ["", "null", "NULL", "None", None])
@pytest.mark.parametrize("attribute", ["Head", "Publishing"])
def test_what_people_write_for_nothing_is_nothing(table: StateTable, attribute: str, nothing: str | None) -> None:
    """The state reads it as none: a commit that found a value there would be refused for ever."""
    given(table, Fence=7, **{"Head": "c1", attribute: nothing})

    landed = table.commit(PATH, Commit(7, "" if attribute == "Head" else "c1", "c2"))

    assert landed
    assert (table.get(PATH) or {})["Head"] == "c2"


CLEARS = [("Publishing", StateTable.clear_publishing), ("CatalogPending", StateTable.clear_catalog_pending)]


@pytest.mark.parametrize(("attribute", "clear"), CLEARS)
def test_a_finished_step_is_cleared(table: StateTable, attribute: str, clear: Any) -> None:
    """The other step stays."""
    given(table, Fence=7, Publishing="c2", CatalogPending="c2")

    done = clear(table, PATH, 7, "c2")

    left = {"path": PATH, "Fence": 7, "Publishing": "c2", "CatalogPending": "c2"}
    del left[attribute]
    assert (done, table.get(PATH)) == (True, left)


@pytest.mark.parametrize(("attribute", "clear"), CLEARS)
@pytest.mark.parametrize(("fence", "change"), [(6, "c2"), (7, "c1")])
def test_a_step_of_others_is_not_cleared(table: StateTable, attribute: str, clear: Any, fence: int, change: str) -> None:
    """Neither by a late owner nor for another change."""
    item = given(table, Fence=7, **{attribute: "c2"})

    assert (clear(table, PATH, fence, change), table.get(PATH)) == (False, item)


@pytest.mark.parametrize(("attribute", "clear"), CLEARS)
def test_clearing_twice_is_true(table: StateTable, clients: Clients, attribute: str, clear: Any) -> None:
    """Also when only the first answer was lost; but not under another fence."""
    given(table, Fence=7, **{attribute: "c2"})
    Injected(clients.dynamodb, "UpdateItem", lost_answer)

    assert (clear(table, PATH, 7, "c2"), clear(table, PATH, 6, "c2")) == (True, False)


def test_a_report_is_written_under_the_fence(table: StateTable) -> None:
    """And what is over is removed."""
    given(table, Fence=7, Blocked="{}")

    done = table.write_under_fence(PATH, 7, {"LastRun": {"outcome": "ok", "rows": 3}}, remove=("Blocked",))

    assert (done, table.get(PATH)) == (True, {"path": PATH, "Fence": 7, "LastRun": {"outcome": "ok", "rows": 3}})


def test_a_late_report_is_not_written(table: StateTable) -> None:
    """Another run has the table, its report counts."""
    item = given(table, Fence=8)

    assert (table.write_under_fence(PATH, 7, {"LastRun": {}}), table.get(PATH)) == (False, item)


def test_an_item_is_deleted_under_the_fence(table: StateTable, clients: Clients) -> None:
    """Of another fence it stays. Where the answer was lost, or the item was made anew since, it is gone all the same."""
    item = given(table, Fence=8)
    assert (table.delete(PATH, 7), table.get(PATH)) == (False, item)

    sent = Injected(clients.dynamodb, "DeleteItem", lost_answer)
    assert (table.delete(PATH, 8), sent.sent, table.get(PATH)) == (True, 2, None)

    fresh = given(table, ActiveFlag="false")
    assert (table.delete(PATH, 8), table.get(PATH)) == (True, fresh)
