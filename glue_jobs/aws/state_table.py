"""The state table: one item per lake table. Every write under a lease carries the lease's fence in its condition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from botocore.exceptions import ClientError, WaiterError

from glue_jobs.aws.attributes import plain_item, typed, typed_item
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.conditional import Write
from glue_jobs.aws.translate import error_code
from glue_jobs.core.errors import ConfigurationError, RetryLater, UsageError
from glue_jobs.core.paths import TablePath, by_path, find_path

KEY = "path"
GET_PAGE = 100
GET_ATTEMPTS = 8
_REFUSED = "ConditionalCheckFailedException"
_LEASE = ("LeaseOwner", "LeaseSeconds", "LeaseBeat")
OnItem = Callable[[Mapping[str, Any]], None]  # is told of the item as a write left it
FENCE_IS_MINE = "no other run has taken the lease since"


@dataclass(frozen=True)
class Commit:
    """The commit point's write. parent: '' where Head must say nothing; publishing_expected: '' where Publishing must.

    unchanged: attribute → value as it was read, None for absent. values, remove: what the same write sets and removes besides
    Head, Publishing and CatalogPending, which all become `change`; without a catalog step CatalogPending stays as it is.
    """

    fence: int
    parent: str
    change: str
    publishing_expected: str = ""
    unchanged: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    has_catalog_step: bool = True


class StateTable:
    """The DynamoDB table `name`, its key `path` a text. Values are plain Python (see glue_jobs.aws.attributes).

    A write that answers bool: False means that its condition did not hold. botocore sends a request again when an answer is
    lost, so False can also be the second answer to a write whose first one worked; where that can be told apart it is, for
    `commit`, `move_fence` and a write that moves the fence the caller reads back. on_item: is told of the item after a write that
    worked, so that nobody must read it.
    """

    def __init__(self, clients: Clients, name: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._clients = clients
        self.name = name
        self._pause = pause

    def impatient(self, answer_seconds: float) -> StateTable:
        """The same table, each request of which is sent once and given up after `answer_seconds`."""
        return StateTable(self._clients.impatient(answer_seconds), self.name, self._pause)

    def ensure(self) -> None:
        """Create the DynamoDB table if it is missing, and wait until it can be used."""
        try:
            table = self._db.describe_table(TableName=self.name)["Table"]
            if [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]] != [(KEY, "HASH")]:
                raise ConfigurationError(
                    f"the DynamoDB table {self.name} is no state table: expected the key {KEY!r}, found {table['KeySchema']}",
                    "state-table-key",
                    "give another name by --state-table",
                )
            if table["TableStatus"] in ("ACTIVE", "UPDATING"):
                return
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            self._create_table()
        try:
            self._db.get_waiter("table_exists").wait(TableName=self.name, WaiterConfig={"Delay": 2, "MaxAttempts": 90})
        except WaiterError as error:
            raise RetryLater(f"the DynamoDB table {self.name} is not ready: {error}", "state-table-not-ready", "run again") from error

    def _create_table(self) -> None:
        try:
            self._db.create_table(
                TableName=self.name,
                KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        except ClientError as error:
            if error_code(error) != "ResourceInUseException":  # another run creates it right now
                raise

    def get(self, path: str) -> dict[str, Any] | None:
        """The table's item as of now, None if there is none."""
        answer = self._db.get_item(TableName=self.name, Key={KEY: typed(path)}, ConsistentRead=True)
        return plain_item(answer["Item"]) if "Item" in answer else None

    def batch_get(self, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The items of `paths` that exist, by path. Throttling that doesn't end raises RetryLater."""
        found: dict[str, dict[str, Any]] = {}
        unique = list(dict.fromkeys(paths))
        for at in range(0, len(unique), GET_PAGE):
            for item in self._get_page(unique[at : at + GET_PAGE]):
                found[str(item[KEY])] = item
        return found

    def _get_page(self, paths: Sequence[str]) -> Iterator[dict[str, Any]]:
        wanted: Any = {self.name: {"Keys": [{KEY: typed(path)} for path in paths], "ConsistentRead": True}}
        for attempt in range(GET_ATTEMPTS):
            if attempt:
                self._pause(0.05 * 2**attempt)
            answer = self._db.batch_get_item(RequestItems=wanted)
            yield from map(plain_item, answer["Responses"].get(self.name, ()))
            wanted = answer.get("UnprocessedKeys")
            if not wanted:
                return
        raise RetryLater(f"DynamoDB did not answer for all items of {self.name}", "aws-busy", "run again")

    def scan(self) -> Iterator[dict[str, Any]]:
        """All items, in no order."""
        for page in self._db.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True):
            yield from map(plain_item, page["Items"])

    def find(self, text: str) -> TablePath:
        """The table that a person means by `text`: a full path, whether it has an item or not; or `schema.table`, looked for in all items.
        Raises UsageError where that is the name of none, or of several."""
        return find_path(text, () if "/" in text else by_path(self.scan()))

    def create(self, item: Mapping[str, Any]) -> bool:
        """Put a new item; False, and nothing changed, if the path has one."""
        return self._send(
            self._db.put_item,
            TableName=self.name,
            Item=typed_item(item),
            ConditionExpression="attribute_not_exists(#path)",
            ExpressionAttributeNames={"#path": KEY},
        )

    def set_attributes(self, path: str, values: Mapping[str, Any], remove: Sequence[str] = ()) -> None:
        """Set and remove attributes for a person, without a lease; UsageError if the table has no item."""
        if (values or remove) and not self._update(Write(path).require_item().set(values).remove(remove)):
            raise UsageError(f"no table {path} is in the state table {self.name}", "unknown-table", "`dmslake tables` lists them")

    def complete(self, path: str, seen: Mapping[str, Any], values: Mapping[str, Any], on_item: OnItem) -> bool:
        """Set attributes that the item, as it was `seen`, lacked, without a lease; False if it has one by now, or a head, or is gone."""
        write = Write(path).require_item().require_none("the table was never loaded", "Head")
        for attribute in values:
            write.require(f"{attribute} is what was read", attribute, seen.get(attribute))
        return self._update(write.set(values), on_item)

    def take_lease(self, path: str, seen: Mapping[str, Any], owner: str, fence: int, seconds: float, on_item: OnItem | None = None) -> bool:
        """Take the lease if fence, owner and beat are as `seen`, the item as read. owner: random for each process."""
        write = Write(path).require_item()
        write.require("nobody took a lease since we looked", "Fence", seen.get("Fence"))
        write.require("the lease is free, or still that of the owner we saw", "LeaseOwner", seen.get("LeaseOwner"))
        write.require("that owner gave no sign of life since", "LeaseBeat", seen.get("LeaseBeat"))
        lease = {"Fence": fence, "LeaseOwner": owner, "LeaseSeconds": seconds, "LeaseBeat": 1}
        return self._update(write.set(lease), on_item) or self._has(path, lease, on_item)

    def renew(self, path: str, owner: str, fence: int, beat: int) -> bool:
        """Show a sign of life: `beat`, another one each time."""
        return self._update(_under_lease(path, owner, fence).set({"LeaseBeat": beat}))

    def release(self, path: str, owner: str, fence: int, values: Mapping[str, Any] | None = None) -> bool:
        """Give the lease back, and set values (LastRun, Blocked) in the same write; the fence stays."""
        return self._update(_under_lease(path, owner, fence).set(values or {}).remove(_LEASE))

    def move_fence(self, path: str, fence: int, to: int) -> bool:
        """Raise the fence, after which nothing sent under the old one can land."""
        return self._update(_under_fence(path, fence).set({"Fence": to}))

    def commit(self, path: str, commit: Commit, on_item: OnItem | None = None) -> bool:
        """The commit point. False: refused, or landed before (see the class). Any error: it may have landed. Read back both."""
        write = _under_fence(path, commit.fence)
        for situation, attribute, expected in (
            ("the head is the change we built on", "Head", commit.parent),
            ("no other change waits to be published", "Publishing", commit.publishing_expected),
        ):
            if expected:
                write.require(situation, attribute, expected)
            else:
                write.require_none(situation, attribute)
        for attribute, value in commit.unchanged.items():
            write.require(f"{attribute} is what we planned with", attribute, value)
        steps = ("Publishing", "CatalogPending") if commit.has_catalog_step else ("Publishing",)
        change = dict.fromkeys(("Head", *steps), commit.change)
        return self._update(write.set({**commit.values, **change}).remove(commit.remove), on_item)

    def clear_publishing(self, path: str, fence: int, change: str, on_item: OnItem | None = None) -> bool:
        """Say that `change` is published; True also if that was said before, under the same fence."""
        return self._clear(path, fence, "Publishing", change, on_item)

    def clear_catalog_pending(self, path: str, fence: int, change: str, on_item: OnItem | None = None) -> bool:
        """Say that the catalog knows `change`; True also if that was said before, under the same fence."""
        return self._clear(path, fence, "CatalogPending", change, on_item)

    def _clear(self, path: str, fence: int, attribute: str, change: str, on_item: OnItem | None) -> bool:
        write = _under_fence(path, fence).require(f"{attribute} is still of this change", attribute, change)
        return self._update(write.remove((attribute,)), on_item) or self._has(path, {"Fence": fence, attribute: None}, on_item)

    def write_under_fence(
        self, path: str, fence: int, values: Mapping[str, Any], remove: Sequence[str] = (), unchanged: Mapping[str, Any] | None = None
    ) -> bool:
        """Set and remove attributes (LastRun, Blocked …) while the lease with this fence is the last one taken.

        unchanged: attribute → value as it was read, None for absent, where a person may have set it since.
        """
        if not values and not remove:
            return True
        write = _under_fence(path, fence)
        for attribute, value in (unchanged or {}).items():
            write.require(f"{attribute} is what was read", attribute, value)
        return self._update(write.set(values).remove(remove))

    def delete(self, path: str, fence: int) -> bool:
        """Delete the item while the lease with this fence is the last one taken; True also if it is gone, or made anew since."""
        if self._send(self._db.delete_item, **_under_fence(path, fence).deletion(self.name)):
            return True
        item = self.get(path)
        return item is None or item.get("Fence") is None

    @property
    def _db(self) -> Any:
        return self._clients.dynamodb

    def _has(self, path: str, expected: Mapping[str, Any], on_item: OnItem | None = None) -> bool:
        """Whether the item has these values (None: lacks the attribute): then a refused write had landed before."""
        item = self.get(path)
        if item is None or any(item.get(name) != value for name, value in expected.items()):
            return False
        if on_item:
            on_item(item)
        return True

    def _update(self, write: Write, on_item: OnItem | None = None) -> bool:
        request = write.request(self.name)
        if on_item is None:
            return self._send(self._db.update_item, **request)
        return self._send(self._db.update_item, lambda answer: on_item(plain_item(answer["Attributes"])), ReturnValues="ALL_NEW", **request)

    def _send(self, operation: Callable[..., Any], on_answer: Callable[[Any], None] | None = None, **request: Any) -> bool:
        """Send a conditional write; False if its condition did not hold."""
        try:
            answer = operation(**request)
        except ClientError as error:
            if error_code(error) != _REFUSED:
                raise
            return False
        if on_answer:
            on_answer(answer)
        return True


def _under_fence(path: str, fence: int) -> Write:
    return Write(path).require(FENCE_IS_MINE, "Fence", fence)


def _under_lease(path: str, owner: str, fence: int) -> Write:
    return _under_fence(path, fence).require("the lease is still ours", "LeaseOwner", owner)
