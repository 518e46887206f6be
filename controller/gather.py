"""Everything a plan is made from, read once: the tables below `--raw`, their items, snapshots and raw files. IO, no decisions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from controller.new_items import register
from controller.raw_scope import RawScope, is_control_table, is_table, is_table_name
from glue_jobs.aws.clients import Clients
from glue_jobs.aws.pages import folders_passing
from glue_jobs.aws.state_table import StateTable
from glue_jobs.aws.translate import aws_error, error_code
from glue_jobs.core.errors import ConfigurationError, DmslakeError, UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import MAX_CATALOG_NAME, MAX_NAME_BYTES, TablePath, by_path, find_path
from glue_jobs.core.printable import printable
from glue_jobs.core.raw_names import TRANSACTIONS, RawListing
from glue_jobs.core.settings import Settings
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import NO_SOURCE, TableState, read_state
from glue_jobs.protocol.history import read_outline, read_snapshot
from glue_jobs.protocol.raw import list_raw

THREADS = 16
CHANGES_FOLDER = "_changes"  # where raw and lake share a folder, the change records stand beside the schemas
Files = Callable[[Any, TableState, Limits], "tuple[Snapshot, RawListing]"]  # (S3 client, a table, limits) → what its files say
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Facts:
    """What is known of one table. path: the item's key. problem: why the rest could not be read; state is None if not even the item.

    is_new: it has no item yet, or its item was created just now. is_unread: its files were left for another look (LeftForLater).
    has_source: whether DMS writes for it, as far as an item says it that can't be read.
    """

    path: str
    state: TableState | None = None
    snapshot: Snapshot = Snapshot()
    listing: RawListing = RawListing()
    problem: DmslakeError | None = None
    is_new: bool = False
    is_unread: bool = False
    has_source: bool = True

    def without_files(self) -> Facts:
        """The same without what was read of its files. Of the raw ones the first CDC file stays: it tells that there are some."""
        return replace(self, snapshot=Snapshot(), listing=RawListing(cdc=self.listing.cdc[:1]))


class LeftForLater(Exception):
    """Raised by what reads a table's files: not now. The look takes no longer, and the next one reads on."""


@dataclass(frozen=True)
class Gathered:
    """All of a plan's input. now: when it was read. refused: raw folders whose name can't be a table's. notes: more
    of what a person should know. Of the tables whose items were read besides: siblings, those of the scope that were not asked for, and
    others, as those of another scope."""

    tables: tuple[Facts, ...]
    now: datetime
    limits: Limits
    scope: RawScope | None = None
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    siblings: tuple[Facts, ...] = ()
    others: tuple[TableState, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know although nothing failed."""
        texts = [
            f"the folder s3://{printable(name)} is left out: the name of a schema or table can't hold control characters, backslash or "
            f"comma, nor begin with . or _ or a space, nor end with a space, nor be longer than {MAX_NAME_BYTES} bytes (in the catalog, "
            f"schema and table together: {MAX_CATALOG_NAME})"
            for name in self.refused
        ]
        if self.scope is not None and not self.tables:
            texts.append(no_tables(self.scope))
        return (*texts, *self.notes)

    @property
    def has_items(self) -> bool:
        """Whether the state table has an item, in scope or not. Tables that are only found below the raw folder have none."""
        return bool(self.others) or any(not fact.is_new for fact in (*self.tables, *self.siblings))


@dataclass(frozen=True)
class Discovered:
    """The tables below the scope, the folders whose name can't be a table's (`bucket/prefix/name`), and those with transaction files."""

    paths: tuple[TablePath, ...] = ()
    refused: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """What to gather. paths: as a person wrote them, empty for all in scope. keys: instead, of the items; one that is gone is left out.

    create: the table and items that are missing. wants: the tables whose snapshot and raw files are read. files: who reads them. alone: no
    matter which other tables there are: of full paths the items are read by key. must_exist: a missing state table is an error, and not one
    without items, as before the first run.
    """

    settings: Settings
    paths: tuple[str, ...] = ()
    create: bool = False
    must_exist: bool = False
    discover: bool = True
    everything: bool = False  # items outside of the scope too
    keys: tuple[str, ...] = ()
    alone: bool = False
    wants: Callable[[TableState], bool] = field(default=lambda state: is_due(state))
    files: Files = field(default=lambda s3, state, limits: read_files(s3, state, limits))


def no_tables(scope: RawScope) -> str:
    """The warning for a scope without any table."""
    return (
        f"no table in bucket {scope.bucket} below prefix '{scope.prefix}' (schemas: {scope.schemas}). Check in DMS: the task runs and has "
        f"loaded rows (a folder appears with a table's first row); the S3 target endpoint's BucketName is {scope.bucket} and its "
        f"BucketFolder is '{scope.prefix.rstrip('/')}'; DMS writes <BucketFolder>/<schema>/<table>/"
    )


def no_items(state_table: str) -> ConfigurationError:
    """The error of who would check all tables where there is none: a wrong name or region must not pass for tables that are well."""
    return ConfigurationError(
        f"the state table {state_table} has no item: there is no table to check",
        "no-items",
        "correct --state-table or AWS_REGION if another one is meant; in a new installation `dmslake tables` makes the items",
    )


def none_in_scope(settings: Settings) -> ConfigurationError:
    """The error where the state table has items, and none of a table below --raw: a wrong --raw must not pass for tables that are well."""
    return ConfigurationError(
        f"no item of the state table {settings.state_table} is of a table below --raw {settings.raw}: there is no table to check",
        "no-items",
        "correct --raw, or name the tables; `dmslake tables` shows them",
    )


def unread_transactions(folder: str, tables: Iterable[Facts], state_table: str) -> list[str]:
    """The warning that the changes of tables are unread in the transaction files of `folder`: of active tables that have no CDC file of
    their own and name no such folder."""
    states = [fact.state for fact in tables if fact.state and not fact.listing.cdc]
    lacking = [state.path for state in states if state.active and state.has_source and not (state.cdc_path or state.cursor)]
    if not lacking:
        return []
    names = ", ".join(printable(str(path)) for path in lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    key, value = (shlex.quote(json.dumps(part)) for part in ({"path": {"S": str(lacking[0])}}, {":folder": {"S": f"s3://{folder}"}}))
    return [
        f"s3://{printable(folder)} holds transaction files ({TRANSACTIONS}…, by PreserveTransactions and CdcPath), and {names} would get "
        f"no changes, because the item does not say CdcPath: aws dynamodb update-item --table-name {shlex.quote(state_table)} --key {key} "
        f"--update-expression 'SET CdcPath = :folder' --expression-attribute-values {value}"
    ]


def is_due(state: TableState) -> bool:
    """Whether a run may have something to do for the table, so that its files must be looked at."""
    rests = bool(state.paused) or (state.has_source and not state.active)
    return bool(state.publishing or state.catalog_pending or not rests)


def gather(clients: Clients, table: StateTable, question: Question, now: datetime) -> Gathered:
    """Read everything. One table's failure is that table's `problem`; a missing raw bucket or state table access fails the whole call."""
    gathered, tables = survey(clients, table, question, now, lambda fact: fact)
    return replace(gathered, tables=tables)


def survey(
    clients: Clients, table: StateTable, question: Question, now: datetime, digest: Callable[[Facts], _R]
) -> tuple[Gathered, tuple[_R, ...]]:
    """(what `gather` reads, its tables without their files; a digest of each table, made while its files were there). So memory holds
    the files of THREADS tables, however many tables there are."""
    settings = question.settings
    scope = RawScope.parse(settings.raw) if settings.raw else None
    s3 = clients.s3  # made before the threads start: making a client is not thread-safe
    if question.create:
        table.ensure()
    looks = question.discover and not (question.paths or question.keys)
    found = discover(s3, scope) if scope is not None and looks else Discovered()
    items = {str(item["path"]): item for item in read_items(table, question)}
    new = register(table, found.paths, items, settings.lake, may_write=question.create)
    facts = [_read_item(item, path in new) for path, item in sorted(items.items())]
    chosen = _asked_for(facts, question, scope)
    asked = {fact.path for fact in chosen}
    siblings = tuple(fact for fact in facts if fact.path not in asked and fact.state is not None and _has(scope, fact.state))
    known = asked.union(fact.path for fact in siblings)
    others = tuple(fact.state for fact in facts if fact.state is not None and fact.path not in known)

    def read(fact: Facts) -> tuple[Facts, _R]:
        whole = _read_files(s3, fact, question)
        return whole.without_files(), digest(whole)

    pairs = in_threads(read, chosen)
    tables = tuple(fact for fact, _ in pairs)
    notes = tuple(text for folder in found.shared for text in unread_transactions(folder, tables, settings.state_table))
    return Gathered(tables, now, settings.limits, scope, found.refused, notes, siblings, others), tuple(made for _, made in pairs)


def read_items(table: StateTable, question: Question) -> list[dict[str, Any]]:
    """All items, because a table that is not asked for may have the folder of one that is; those of full paths alone by key, if nothing
    else matters. A missing state table holds none, or is an error, as the question says."""
    keys = tuple(str(TablePath.parse(path)) for path in question.paths if "/" in path)
    try:
        if question.alone and keys and len(keys) == len(question.paths) and not question.keys:
            return list(table.batch_get(keys).values())
        return list(table.scan())
    except ClientError as error:
        if error_code(error) != "ResourceNotFoundException":
            raise
        if question.must_exist:
            raise _no_state_table(table.name) from error
        return []


def _no_state_table(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"there is no DynamoDB table {name} in this account and region: expected the state table, with an item for each table",
        "no-resource",
        "correct --state-table or AWS_REGION; in a new installation `dmslake tables` creates it",
    )


def discover(s3: Any, scope: RawScope) -> Discovered:
    """The folders `<prefix>/<schema>/<table>/`, control tables left out. A folder of transaction files looks like a schema's."""
    names, has_transactions = folders_passing(s3, scope.bucket, scope.prefix, TRANSACTIONS)
    schemas = [name for name in names if name != CHANGES_FOLDER and scope.has_schema(name)]
    refused = [f"{scope.bucket}/{scope.prefix}{name}/" for name in schemas if not is_table_name(name)]
    safe = [name for name in schemas if is_table_name(name)]
    listed = in_threads(lambda schema: folders_passing(s3, scope.bucket, f"{scope.prefix}{schema}/", TRANSACTIONS), safe)
    shared = [f"{scope.bucket}/{scope.prefix}"] if has_transactions else []
    shared += [f"{scope.bucket}/{scope.prefix}{schema}/" for schema, (_, has_some) in zip(safe, listed) if has_some]
    paths: list[TablePath] = []
    for schema, (tables, _) in zip(safe, listed):
        for name in tables:
            path = scope.table(schema, name)
            if is_control_table(name):
                continue
            if is_table(path):
                paths.append(path)
            else:
                refused.append(str(path))
    return Discovered(tuple(paths), tuple(refused), tuple(shared))


def _read_item(item: dict[str, Any], is_new: bool) -> Facts:
    key = str(item["path"])
    try:
        state = read_state(item)
        _check_key(key, state.path)
    except DmslakeError as error:
        return Facts(key, problem=error, has_source=str(item.get("Source", "")).strip() != NO_SOURCE)
    return Facts(key, state, is_new=is_new)


def _check_key(key: str, path: TablePath) -> None:
    """Refuse an item whose key is another spelling of its table's path, since jobs look for the path and would never find the item, or that
    would be taken for the paths of two tables there."""
    if "," in key:
        raise UsageError(
            f"a table's path can't hold a comma, which separates the paths in a job's arguments; found: {key!r}",
            "bad-path",
            "delete this item; have DMS write the table to a folder without a comma, by a mapping rule that renames it",
        )
    if key != str(path):
        raise UsageError(
            f"the key of an item is another spelling of its table's path; expected: {str(path)!r}; found: {key!r}",
            "bad-path",
            f"delete this item, and set its attributes in the item {path}, which `dmslake tables` creates",
        )


def _asked_for(facts: list[Facts], question: Question, scope: RawScope | None) -> list[Facts]:
    """The tables of the items that were read which the question is about."""
    if question.keys:
        keys = set(question.keys)
        return [fact for fact in facts if fact.path in keys]
    if question.paths:
        return _choose(facts, question.paths)
    return [fact for fact in facts if question.everything or _in_scope(fact, scope)]


def _choose(facts: Sequence[Facts], wanted: Sequence[str]) -> list[Facts]:
    """The tables that a person named, in the order of their paths; an unknown one is a UsageError."""
    facts_of = {fact.path: fact for fact in facts}
    known = by_path([{"path": fact.path} for fact in facts])  # of an item that can't be read too: its error is to be said
    chosen = []
    for text in wanted:
        key = str(find_path(text, known))
        if key not in facts_of:
            raise UsageError(
                f"no table {key} is known: the state table has no such item",
                "unknown-table",
                "`dmslake tables` lists the tables and creates the items of new ones",
            )
        chosen.append(facts_of[key])
    return sorted(set_of(chosen), key=lambda fact: fact.path)


def set_of(facts: Iterable[Facts]) -> list[Facts]:
    """Each table once."""
    return list({fact.path: fact for fact in facts}.values())


def _in_scope(fact: Facts, scope: RawScope | None) -> bool:
    """Tables of the scope and those without a source, which no scope is of. Of another one's not even what is unfinished: a run of ours
    would enter the table in our database, and go on with its files."""
    if fact.state is not None:
        return _has(scope, fact.state)
    try:  # an item that can't be read is an error of the controller whose table it is of, one without a source of each
        return scope is None or not fact.has_source or scope.has(TablePath.parse(fact.path))
    except DmslakeError:
        return True


def _has(scope: RawScope | None, state: TableState) -> bool:
    return scope is None or not state.has_source or scope.has(state.path)


def read_files(s3: Any, state: TableState, limits: Limits) -> tuple[Snapshot, RawListing]:
    """The head's snapshot, and the raw files that a plan may look at."""
    snapshot = read_snapshot(s3, state.lake, state.head) if state.head else Snapshot()
    return snapshot, list_raw(s3, state, snapshot, limits)


def read_outlines(s3: Any, state: TableState, limits: Limits) -> tuple[Snapshot, RawListing]:
    """The same, the snapshot without its files where there are many: enough for a plan and a status."""
    snapshot = read_outline(s3, state.lake, state.head) if state.head else Snapshot()
    return snapshot, list_raw(s3, state, snapshot, limits)


def _read_files(s3: Any, fact: Facts, question: Question) -> Facts:
    """The table's snapshot and raw listing added."""
    state = fact.state
    if state is None or not question.wants(state):
        return fact
    try:
        return Facts(fact.path, state, *question.files(s3, state, question.settings.limits), is_new=fact.is_new)
    except LeftForLater:
        return replace(fact, is_unread=True)
    except Exception as error:  # noqa: BLE001 - one table's failure becomes its own report, the others go on
        return Facts(fact.path, state, problem=aws_error(error), is_new=fact.is_new)


def in_threads(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """`work` on every item, at most THREADS at a time, results in order."""
    with ThreadPoolExecutor(max(1, min(THREADS, len(items)))) as pool:
        return list(pool.map(work, items))
