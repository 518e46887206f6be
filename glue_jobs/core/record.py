"""Change records: the JSON that says all about a change. docs/change-record.md has the format and its JSON Schema.

Written once and never changed. Whatever a later feature needs has its field here already, so that there is one format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar

from glue_jobs.core.collation import collated, collated_as, collation_of, parse_collation
from glue_jobs.core.errors import TableBlocked, UsageError
from glue_jobs.core.partitioning import PartitionField, Partitioning
from glue_jobs.core.raw_names import is_transactions
from glue_jobs.core.schema import Column, OldName, Schema

FORMAT = 1
MODIFIED = "%Y-%m-%dT%H:%M:%SZ"  # of Input.modified
KINDS = (
    "full-load", "incremental", "late", "cursor", "schema", "widen", "repartition", "rekey", "lost",
    "rollback", "reapply", "repair", "truncate", "apply", "adopt", "erase", "create", "edit", "history",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One uploaded part: S3 wants its ETag and checksum again at completion."""

    number: int
    etag: str
    crc32: str = ""


@dataclass(frozen=True)
class Upload:
    """A multipart upload whose parts are all there and which is completed by converge."""

    id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class DataFile:
    """One data file. path: below the table's folder. low, high: least and greatest key in the JSON form of core.keys.

    etag: of the completed object, '' where it can't be known before (KMS). origin: the path of the file whose bytes a restored
    file has. upload: how to make it visible; only in `added` of the change that made it.
    """

    path: str
    size_bytes: int
    rows: int
    etag: str = ""
    partition: tuple[str | None, ...] = ()
    low: tuple[Any, ...] | None = None
    high: tuple[Any, ...] | None = None
    origin: str = ""
    upload: Upload | None = None


@dataclass(frozen=True)
class Input:
    """A raw file that a change took. rows: −1 where they were not counted (skipped files). modified: as MODIFIED, '' if unknown.
    etag: '' where any file of that name will do."""

    key: str
    etag: str
    size_bytes: int = 0
    rows: int = -1
    modified: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether it is a transaction file that holds no row of the table: there is nothing to read again."""
        return self.rows == 0 and is_transactions(self.key)

    def matches(self, etag: str | None) -> bool:
        """Whether a file of its name is the one that is meant. None: there is no such file."""
        return etag is not None and self.etag in ("", etag)


@dataclass(frozen=True)
class Generation:
    """One full load and all that was applied on it. cdc_from: digits of the first CDC name that belongs to it, '' for all. left_out: load
    files that a person leaves out by name, as they were when the table first met them; what is known of them grows with time."""

    number: int = 0
    loads: tuple[Input, ...] = ()
    cdc_from: str = ""
    left_out: tuple[Input, ...] = ()

    def is_same(self, other: Generation) -> bool:
        """Whether it is the same load, whatever is known by now of the files that are left out."""
        return (self.number, self.loads, self.cdc_from) == (other.number, other.loads, other.cdc_from)


@dataclass(frozen=True)
class Counts:
    """Rows. inserted, updated, deleted: what the change did to the lake table. ignored: updates and deletes of a table without key.

    backward: rows whose commit time is before their predecessor's in the same file (reported only).
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0
    input_rows: int = 0
    backward: int = 0
    table_rows: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """The whole snapshot after the change: so that reading it does not grow with the history.

    known_from: digits of the first CDC name for which `applied` and `skipped` are complete; older inputs were left out.
    awaited: raw files that were applied once and are pending again, because a change that took them was undone.
    """

    files: tuple[DataFile, ...] = ()
    applied: tuple[Input, ...] = ()
    skipped: tuple[Input, ...] = ()
    known_from: str = ""
    awaited: tuple[Input, ...] = ()


@dataclass(frozen=True)
class Given:
    """Rows that a person gave (kinds apply and edit), as they took effect. key: the columns by which rows were found; deletes, updates,
    inserts: the names of the Parquet objects beside the record, '' for none: keys whose rows went, rows that took the place of others,
    rows that took none. Keys that no data file held are in the last only."""

    key: tuple[str, ...]
    deletes: str = ""
    updates: str = ""
    inserts: str = ""

    @property
    def attachments(self) -> tuple[str, ...]:
        """The names of the objects that there are."""
        return tuple(name for name in (self.deletes, self.updates, self.inserts) if name)


@dataclass(frozen=True)
class ErasedVersion:
    """A data version of the lake's bucket that held an erased key, and is removed for good."""

    key: str
    version: str
    size_bytes: int = 0


@dataclass(frozen=True)
class ErasedKeys:
    """What was erased, without saying it. columns: those that the keys are of; hashes: of each key with the salt (hex)."""

    columns: tuple[str, ...]
    salt: str
    hashes: tuple[str, ...]


@dataclass(frozen=True)
class HistoryAt:
    """Where the history table stands. change: whose record, in the history's folder, lists its files; is_stale: rows changed without it
    since, so that it must be brought up to date before it can go on."""

    change: str
    is_stale: bool = False


@dataclass(frozen=True)
class ChangeRecord:
    """One change of one lake table. Times are ISO 8601 in UTC; cursors are `<bucket>/<key>` or ''.

    target: of a change that goes back or forth (GOES_TO), the ordinary change whose rows the table has after it, '' for none.
    staged: it was prepared for a person to look at and never becomes the head; staged_as: of the change that commits such a one, its
    id, with which its files' names begin. erased: of an erase, all versions that it removes; erases: the erases up to this change.
    history: of a table with a history table, where that stands after the change. key_collation: how texts in the key compare, which the
    names in primary_key, and those of given and erased keys that are among them, know too.
    """

    id: str
    parent: str
    kind: str
    table: str
    lake: str
    time: str
    run_id: str = ""
    program: str = ""
    generation: Generation = Generation()
    inputs: tuple[Input, ...] = ()
    context: tuple[Input, ...] = ()
    skipped: tuple[Input, ...] = ()
    counts: Counts = Counts()
    added: tuple[DataFile, ...] = ()
    superseded: tuple[str, ...] = ()
    schema: Schema = ()
    primary_key: tuple[str, ...] = ()
    key_collation: str = ""
    partitioning: Partitioning = ()
    timestamp_column: str = ""
    cursor_before: str = ""
    cursor_after: str = ""
    last_full_load: str = ""
    chain: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    target: str = ""
    lost: str = ""
    staged: bool = False
    staged_as: str = ""
    given: Given | None = None
    erased: tuple[ErasedVersion, ...] = ()
    erased_keys: ErasedKeys | None = None
    erases: tuple[str, ...] = ()
    history: HistoryAt | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.key_collation:
            object.__setattr__(self, "key_collation", str(collation_of(self.primary_key)))
        if self.key_collation:
            self._collate()

    def _collate(self) -> None:
        key = collated(self.primary_key, parse_collation(self.key_collation))
        object.__setattr__(self, "primary_key", key)
        if self.given is not None:
            object.__setattr__(self, "given", replace(self.given, key=collated_as(self.given.key, key)))
        if self.erased_keys is not None:
            columns = collated_as(self.erased_keys.columns, key)
            object.__setattr__(self, "erased_keys", replace(self.erased_keys, columns=columns))


# Kinds whose snapshot has the rows of an earlier change, the record's `target`. All other kinds are ordinary ones.
GOES_TO = frozenset({"rollback", "reapply", "repair", "lost"})

_NESTED: dict[tuple[str, str], type[Any]] = {
    ("ChangeRecord", "generation"): Generation,
    ("ChangeRecord", "counts"): Counts,
    ("ChangeRecord", "checkpoint"): Checkpoint,
    ("ChangeRecord", "given"): Given,
    ("ChangeRecord", "erased"): ErasedVersion,
    ("ChangeRecord", "erased_keys"): ErasedKeys,
    ("ChangeRecord", "history"): HistoryAt,
    ("ChangeRecord", "inputs"): Input,
    ("ChangeRecord", "context"): Input,
    ("ChangeRecord", "skipped"): Input,
    ("ChangeRecord", "added"): DataFile,
    ("ChangeRecord", "schema"): Column,
    ("Column", "older"): OldName,
    ("ChangeRecord", "partitioning"): PartitionField,
    ("Generation", "loads"): Input,
    ("Generation", "left_out"): Input,
    ("Checkpoint", "files"): DataFile,
    ("Checkpoint", "applied"): Input,
    ("Checkpoint", "skipped"): Input,
    ("Checkpoint", "awaited"): Input,
    ("DataFile", "upload"): Upload,
    ("Upload", "parts"): Part,
}
_T = TypeVar("_T")


_CHECKPOINT, _FILES = '\n"checkpoint":', '\n"files":'  # JSON texts have no line break of their own in them


def to_json(record: ChangeRecord) -> str:
    """The record as JSON text, `format` first, fields that have their default left out.

    The checkpoint comes last, on a line of its own, and its files, which are most of it, on the next: who does not need them reads the
    beginning of the text only (`beginning`).
    """
    data = {"format": FORMAT, **_sparse(record)}
    checkpoint = data.pop("checkpoint", None)
    if checkpoint is None:
        return _dumps(data)
    files = checkpoint.pop("files", None)
    inside = _dumps(checkpoint)
    if files is not None:
        inside = f"{inside[:-1]}{',' if checkpoint else ''}{_FILES}{_dumps(files)}}}"
    return f"{_dumps(data)[:-1]},{_CHECKPOINT}{inside}}}"


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def beginning(text: str, *, with_checkpoint: bool) -> str | None:
    """The record's JSON up to its checkpoint, or up to the checkpoint's files, from a text that may break off behind it.

    None where that place is not in the text: it broke off before, or there is no such place, or an older version wrote it.
    """
    before, found, rest = text.partition("," + _CHECKPOINT)
    if not found:
        return None
    if not with_checkpoint:
        return before + "}"
    inside, found, _ = rest.partition(_FILES)
    return f"{before},{_CHECKPOINT}{inside.rstrip(',')}}}}}" if found else None


def from_json(text: str, where: str, *, with_checkpoint: bool = True) -> ChangeRecord:
    """The record in `text`; `where` is its key, for the error. Raises TableBlocked if it is damaged or of another format."""
    try:
        data = json.loads(text)
        number = data.pop("format")
        if number != FORMAT:
            raise ValueError(f"format {number}; this program reads format {FORMAT}")
        if not with_checkpoint:
            data.pop("checkpoint", None)
        record = _build(ChangeRecord, data)
        if record.kind not in KINDS:
            raise ValueError(f"unknown kind {record.kind!r}")
        return record
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise TableBlocked(
            f"the change record s3://{where} can't be read: {error}",
            "bad-record",
            "restore the object's earlier version; if a newer dmslake wrote it, use that one",
        ) from error


def stands_for(record: ChangeRecord) -> str:
    """The ordinary change whose rows the table has after `record`: itself, or the target of one that went back or forth."""
    return record.target if record.kind in GOES_TO else record.id


def without_upload(file: DataFile) -> DataFile:
    """The file as snapshots and checkpoints keep it."""
    return replace(file, upload=None)


def _sparse(value: Any) -> dict[str, Any]:
    """A dataclass as a dict, deeply, without the fields that equal their default."""
    out: dict[str, Any] = {}
    own: Any = type(value)
    for name, default in _defaults(own):
        current = getattr(value, name)
        if current == default or (name == "details" and not current):
            continue
        out[name] = _plain(current)
    return out


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return _sparse(value)
    return dict(value) if isinstance(value, Mapping) else value


@cache  # a checkpoint has a hundred thousand files
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """(name, default) of each field."""
    return tuple((item.name, item.default) for item in fields(kind))


@cache
def _nested(kind: Any) -> Mapping[str, type[Any] | None]:
    """Of each field what its JSON objects are, None for plain values."""
    return {item.name: _NESTED.get((kind.__name__, item.name)) for item in fields(kind)}


def _build(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """A dataclass from its JSON; an unknown field is an error, because skipping it could lose what a newer program meant."""
    own: Any = kind
    known = _nested(own)
    unknown = data.keys() - known.keys()
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r} in {kind.__name__}")
    values: dict[str, Any] = {}
    for name, value in data.items():
        nested = known[name]
        if nested is None:
            values[name] = tuple(value) if isinstance(value, list) else value
        elif isinstance(value, list):
            values[name] = tuple(_build(nested, item) for item in value)
        else:
            values[name] = None if value is None else _build(nested, value)
    return kind(**values)


def summary(record: ChangeRecord) -> dict[str, Any]:
    """What logs and reports say of a change, small enough for a log line."""
    counts: dict[str, Any] = asdict(record.counts)
    lists: list[tuple[str, int]] = [
        ("files_added", len(record.added)),
        ("files_superseded", len(record.superseded)),
        ("input_files", len(record.inputs)),
    ]
    return {
        "change": record.id,
        "kind": record.kind,
        **counts,
        **dict(lists),
        "bytes_added": sum(file.size_bytes for file in record.added),
    }
