"""A table's state: the DynamoDB item as a value. People edit items, so reading is kind about form and strict about nonsense."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from glue_jobs.core.collation import collated, parse_collation
from glue_jobs.core.csv_form import CsvForm, parse_delimiter, parse_null, parse_schema
from glue_jobs.core.dms_columns import BEFORE_IMAGES, parse_before_images
from glue_jobs.core.errors import UsageError, blocked
from glue_jobs.core.partitioning import Partitioning, parse_partition_key
from glue_jobs.core.paths import S3Uri, TablePath, changes_folder
from glue_jobs.core.raw_names import cdc_name, is_transactions

NO_LOAD_DATE = "1900-01-01 00:00:00"
NO_CURSOR_FILE = "0.parquet"
DATE_FORMAT = "%Y-%m-%d %H:%M:%S"
# Attributes that a person sets. Their values decide what a change does, so the commit's condition names them.
PERSON_ATTRIBUTES = (
    "PrimaryKey", "PartitionKey", "ActiveFlag", "LastFullLoadDate", "LastIncrementalFile", "Paused", "out_path", "CdcPath",
    "TimestampColumn", "LoadQuietMinutes", "LateWindowHours", "EmptyPartition", "Request", "SkipFiles", "Source", "OnRawFilesGone",
    "History", "KeyCollation", "BeforeImagePrefix", "Schema", "CsvDelimiter", "CsvNullValue", "CsvEmptyIsText",
)  # fmt: skip
TRUNCATE = "truncate"  # of OnRawFilesGone
_NO = ("false", "0", "no", "n", "off", "", "null", "none")
NO_SOURCE = "none"  # of Source: nothing is read from raw
REQUESTS = ("reload", "widen", "schema-accept", "schema-rename", "repartition")


@dataclass(frozen=True)
class BlockedBy:
    """Why a table waits for a person. signature: of the item and raw files it was decided on; when they change it is tried again."""

    code: str
    message: str
    todo: str
    signature: str

    @property
    def is_by_hand(self) -> bool:
        """Whether a person wrote it."""
        return self.code == "by-hand"


@dataclass(frozen=True)
class TableState:
    """One table's item. item: the attributes as read, for conditions ('attribute unchanged' means this very value)."""

    path: TablePath
    active: bool
    primary_key: tuple[str, ...]  # its names know the attribute KeyCollation (core.collation)
    partitioning: Partitioning
    out_path: str  # '' until it is known
    cursor: str  # '<bucket>/<key>' of the last CDC file applied, '' when there is none
    last_full_load: datetime
    cdc_path: str = ""  # s3:// folder of the transaction files that the table shares with others, '' where it has files of its own
    timestamp_column: str = ""
    load_quiet_minutes: float | None = None
    late_window_hours: float | None = None
    empty_partition: str = ""  # 'null': an empty string in a partition column is written as null
    request: str = ""
    request_value: str = ""
    skip_files: tuple[str, ...] = ()
    has_source: bool = True  # whether DMS writes for the table; an adopted or created one may have none
    on_raw_files_gone: str = ""  # 'truncate': raw files that are all gone mean that the source table was emptied
    before_images: tuple[str, ...] = BEFORE_IMAGES  # patterns of the names of before images in raw files
    csv: CsvForm = CsvForm()  # how CSV raw files are written
    keeps_history: bool = False  # whether every version of a row is kept in a table beside this one
    head: str = ""
    fence: int | None = None
    lease_owner: str = ""
    lease_beat: int = 0
    lease_seconds: float = 0.0
    publishing: str = ""
    catalog_pending: str = ""
    erasing: str = ""  # the erase whose versions are not all removed yet
    catalog_table: str = ""
    paused: str = ""
    blocked: BlockedBy | None = None
    last_run: Mapping[str, Any] = field(default_factory=dict)
    item: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever done for the table: neither by us nor, as far as the item says, by the AWS sample."""
        return not self.head and not self.cursor and self.last_full_load.year == 1900

    @property
    def has_key(self) -> bool:
        """Whether its key is known, as it is of a table that was loaded, with one or without, or whose item names it: a printed `activate`
        must not change it."""
        return bool(self.head or self.primary_key)

    @property
    def last_full_load_text(self) -> str:
        """The load date as change records have it."""
        return self.last_full_load.strftime(DATE_FORMAT)

    def window_hours(self, default: float) -> float:
        """How far behind the cursor a CDC file is still taken: what the item says, else the setting."""
        return default if self.late_window_hours is None else self.late_window_hours

    def skips(self, key: str) -> bool:
        """Whether a person wants the raw file with this key to be left out: SkipFiles has the key, the path below the table's folder, or
        the name alone."""
        if not self.skip_files:
            return False
        start = self.path.raw.key
        below = key[len(start) :] if key.startswith(start) else key
        return not {key, below, key.rsplit("/", 1)[-1]}.isdisjoint(self.skip_files)

    @property
    def lake(self) -> S3Uri:
        return S3Uri.folder(self.out_path)


def default_item(path: TablePath, out_path: str) -> dict[str, Any]:
    """The item of a table seen for the first time, as users of the AWS sample know it; inactive."""
    return {
        "path": str(path),
        "bucket": path.bucket,
        "prefix": path.prefix,
        "folder": path.folder,
        "PrimaryKey": "null",
        "PartitionKey": "null",
        "LastFullLoadDate": NO_LOAD_DATE,
        "LastIncrementalFile": str(path) + NO_CURSOR_FILE,
        "ActiveFlag": "false",
        "out_path": out_path,
    }


def read_state(item: Mapping[str, Any]) -> TableState:
    """The state in an item (attribute name → plain value). Raises TableBlocked that names attribute, expected and found."""
    path = TablePath.parse(_text(item, "path"))
    partition_text = _text(item, "PartitionKey")
    request, _, request_value = _text(item, "Request").partition(":")
    if request and request not in REQUESTS:
        raise _refuse(path, "Request", "one of " + ", ".join(REQUESTS), request)
    return TableState(
        path=path,
        active=_flag(item, "ActiveFlag", path),
        primary_key=_key(item, path),
        partitioning=parse_partition_key(partition_text) if partition_text else (),
        out_path=_out_path(item, path),
        cursor=_cursor(item, path),
        cdc_path=_cdc_path(item, path),
        last_full_load=_date(item, "LastFullLoadDate", path),
        timestamp_column=_text(item, "TimestampColumn"),
        load_quiet_minutes=_number(item, "LoadQuietMinutes", path),
        late_window_hours=_number(item, "LateWindowHours", path),
        empty_partition=_text(item, "EmptyPartition", keep_null=True),
        request=request,
        request_value=request_value,
        skip_files=_names(item, "SkipFiles"),
        has_source=_one_of(item, "Source", (NO_SOURCE,), path) != NO_SOURCE,
        on_raw_files_gone=_one_of(item, "OnRawFilesGone", (TRUNCATE,), path),
        before_images=_before_images(item, path),
        csv=_csv_form(item, path),
        keeps_history=_flag(item, "History", path),
        head=_exact(item, "Head", path),
        fence=_whole(item, "Fence", path),
        lease_owner=_text(item, "LeaseOwner"),
        lease_beat=_whole(item, "LeaseBeat", path) or 0,
        lease_seconds=_number(item, "LeaseSeconds", path) or 0.0,
        publishing=_exact(item, "Publishing", path),
        catalog_pending=_exact(item, "CatalogPending", path),
        erasing=_exact(item, "Erasing", path),
        catalog_table=_text(item, "CatalogTable"),
        paused=_pause(item),
        blocked=_blocked(item),
        last_run=_json(item, "LastRun"),
        item=dict(item),
    )


def _refuse(path: TablePath, attribute: str, expected: str, found: Any) -> Exception:
    return blocked(
        "bad-attribute",
        f"the attribute {attribute} can't be read",
        where=str(path),
        expected=expected,
        found=repr(found),
        todo=f"correct {attribute} in the table's item",
    )


def said(item: Mapping[str, Any], name: str) -> str:
    """What an attribute says, as text; '' where a person may mean nothing by it: missing, NULL, `null`, blanks; of a pause `false`, too."""
    return _pause(item) if name == "Paused" else _text(item, name)


def _text(item: Mapping[str, Any], name: str, keep_null: bool = False) -> str:
    """The attribute as stripped text; missing, NULL, 'null' and blanks are ''."""
    value = item.get(name)
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in ("null", "none") and not keep_null else text


def _exact(item: Mapping[str, Any], name: str, path: TablePath) -> str:
    """The same of an attribute that conditions compare as it stands: with blanks around it no commit would be taken."""
    text = _text(item, name)
    if text and item[name] != text:
        raise _refuse(path, name, repr(text), item[name])
    return text


def _pause(item: Mapping[str, Any]) -> str:
    """Why the table is paused; '' also for a word by which a person means that it is not."""
    text = _text(item, "Paused")
    return "" if text.lower() in _NO else text


def _one_of(item: Mapping[str, Any], name: str, words: tuple[str, ...], path: TablePath) -> str:
    """The attribute as one of `words`, '' if it is not set."""
    text = _text(item, name, keep_null=True).lower()
    if text in ("", "null", *words):
        return "" if text == "null" else text
    raise _refuse(path, name, " or ".join(repr(word) for word in words) + ", or nothing", item.get(name))


def _names(item: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = item.get(name)
    if isinstance(value, (list, tuple, set)):
        return tuple(str(part).strip() for part in value if str(part).strip())
    return tuple(part.strip() for part in _text(item, name).split(",") if part.strip())


def _key(item: Mapping[str, Any], path: TablePath) -> tuple[str, ...]:
    names = _names(item, "PrimaryKey")
    if len(set(names)) < len(names):
        raise _refuse(path, "PrimaryKey", "each column once", item.get("PrimaryKey"))
    try:
        return collated(names, parse_collation(",".join(_names(item, "KeyCollation"))))
    except UsageError as error:
        expected = "ci, ai, width, general, pad, or a collation's name as MySQL, MariaDB or SQL Server write it (docs/dms-source.md)"
        raise _refuse(path, "KeyCollation", expected, item.get("KeyCollation")) from error


def _csv_form(item: Mapping[str, Any], path: TablePath) -> CsvForm:
    """From the attributes as they are: a tab must not be stripped away, nor NULL be taken for nothing."""
    given = {name: item[name] for name in ("Schema", "CsvDelimiter", "CsvNullValue") if item.get(name) is not None}
    values: dict[str, Any] = {}
    for name, parse in (("Schema", parse_schema), ("CsvDelimiter", parse_delimiter), ("CsvNullValue", parse_null)):
        try:
            values[name] = parse(given[name]) if name in given else None
        except ValueError as error:
            raise _refuse(path, name, str(error), given[name]) from error
    default = CsvForm()
    delimiter, null = values["CsvDelimiter"], values["CsvNullValue"]
    empty_is_text = _flag(item, "CsvEmptyIsText", path)
    return CsvForm(values["Schema"] or (), delimiter or default.delimiter, default.null if null is None else null, empty_is_text)


def _before_images(item: Mapping[str, Any], path: TablePath) -> tuple[str, ...]:
    text = ",".join(_names(item, "BeforeImagePrefix"))
    try:
        return parse_before_images(text)
    except ValueError as error:
        raise _refuse(path, "BeforeImagePrefix", "how names begin, as BI_, or end, as *_old; comma separated", str(error)) from error


def _flag(item: Mapping[str, Any], name: str, path: TablePath) -> bool:
    text = str(item.get(name, "false")).strip().lower()
    if text in ("true", "1", "yes", "y", "on"):
        return True
    if text in _NO:
        return False
    raise _refuse(path, name, "true or false", item.get(name))


def _number(item: Mapping[str, Any], name: str, path: TablePath) -> float | None:
    text = _text(item, name)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise _refuse(path, name, "a number from 0", text)
    return number


def _whole(item: Mapping[str, Any], name: str, path: TablePath) -> int | None:
    text = _text(item, name)
    if text and not (text.isascii() and text.isdigit()):
        raise _refuse(path, name, "a whole number from 0", text)
    return int(text) if text else None


def _date(item: Mapping[str, Any], name: str, path: TablePath) -> datetime:
    text = _text(item, name) or NO_LOAD_DATE
    plain = re.sub(r"(\.\d+)?(Z|\+00:00)?$", "", text.replace("T", " "))
    for form in (DATE_FORMAT, "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return datetime.strptime(plain, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    raise _refuse(path, name, "yyyy-MM-dd HH:mm:ss (UTC)", text)


def _cursor(item: Mapping[str, Any], path: TablePath) -> str:
    """The cursor's key; a bare file name is taken as one in the table's folder, or of a transaction file in that of CdcPath."""
    text = re.sub(r"^s3[an]?://", "", _text(item, "LastIncrementalFile"))
    if not text or text.rsplit("/", 1)[-1] == NO_CURSOR_FILE:
        return ""
    if "/" not in text:
        shared = _cdc_path(item, path) if is_transactions(text) else ""
        text = (shared[len("s3://") :] or str(path)) + text
    folder = f"{path.bucket}/" if is_transactions(text) else str(path)
    if not text.startswith(folder) or cdc_name(text) is None:
        raise _refuse(path, "LastIncrementalFile", f"a CDC file below {path}, or {path}{NO_CURSOR_FILE} for none", text)
    return text


def _cdc_path(item: Mapping[str, Any], path: TablePath) -> str:
    """The folder of CdcPath, s3://bucket/folder/: as such an address, or as a folder of the raw bucket."""
    text = _text(item, "CdcPath")
    if not text:
        return ""
    expected = f"a folder of the bucket {path.bucket} beside the tables' folders: s3://{path.bucket}/folder/"
    try:
        folder = S3Uri.folder(text if "://" in text else f"s3://{path.bucket}/{text}")
    except UsageError as error:
        raise _refuse(path, "CdcPath", expected, text) from error
    if folder.bucket != path.bucket or not folder.key or folder.key.startswith(path.raw.key):
        raise _refuse(path, "CdcPath", expected, text)
    return str(folder)


def _out_path(item: Mapping[str, Any], path: TablePath) -> str:
    text = _text(item, "out_path")
    if not text:
        return ""
    try:
        folder = S3Uri.folder(text)
        changes_folder(folder)  # has a place only below a schema's and a table's folder
    except UsageError as error:
        raise _refuse(path, "out_path", "s3://bucket/prefix/schema/table/", text) from error
    return str(folder)


def _json(item: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = item.get(name)
    if isinstance(value, Mapping):
        return value
    try:
        loaded = json.loads(value) if value else {}
    except (TypeError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _blocked(item: Mapping[str, Any]) -> BlockedBy | None:
    value = item.get("Blocked")
    if not value or str(value).strip().lower() in _NO:
        return None
    data = _json(item, "Blocked")
    if not data:  # a person wrote a reason of their own
        return BlockedBy("by-hand", str(value), "remove the attribute Blocked, or `dmslake unblock`", "")
    return BlockedBy(*(str(data.get(name, "")) for name in ("code", "message", "todo", "signature")))
