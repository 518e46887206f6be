"""What a change feed is to be made of: the arguments of the job GenerateFeed and of `dmslake generate-feed`, read into one value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import ROUND_CEILING, Decimal
from typing import Any, Callable

from glue_jobs.core.arguments import check_known, read_flag
from glue_jobs.core.errors import UsageError
from glue_jobs.core.given import split_key
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.settings import setting_names

DMS, SAMPLE = "dms", "sample"
FILE_NAMES = (DMS, SAMPLE)
DELTALAKE, SPARK = "deltalake", "spark"
READERS = (DELTALAKE, SPARK)
BRONZE_ONLY = ("src_batch_id", "src_file")
MAKING = ("inserts", "updates", "updated_twice", "deletes", "deleted_inserts", "seed", "start", "interval_seconds", "files")
DEFAULTS = {
    "inserts": "10%", "updates": "10%", "updated_twice": "20%", "deletes": "5%", "deleted_inserts": "", "seed": "1", "start": "",
    "interval_seconds": "60", "files": "10", "file_name": DMS, "reader": DELTALAKE, "drop": ",".join(BRONZE_ONLY),
    "timestamp_column": "dms_timestamp", "created_column": "created", "modified_column": "modified",
    "delta": "", "version": "", "as_of": "", "from": "", "to": "", "primary_key": "", "staging": "", "full_load": "false", "expected": "",
}  # fmt: skip
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)%|(\d+)")


@dataclass(frozen=True)
class Amount:
    """So many, or a share of what there is."""

    text: str

    def of(self, total: int) -> int:
        """The number; of a share what is begun counts whole (10% of 3 is 1)."""
        match = _AMOUNT.fullmatch(self.text)
        assert match is not None
        if match[2]:
            return int(match[2])
        return int((Decimal(match[1]) * total / 100).to_integral_value(ROUND_CEILING))


@dataclass(frozen=True)
class Making:
    """How changes are made up. updates: keys that are updated; updated_twice: how many of those are updated again.

    deleted_inserts: how many of the deletes are of keys inserted in the same feed, None for one where that can be. start: None for the
    time of the version; the files are interval_seconds apart.
    """

    inserts: Amount
    updates: Amount
    updated_twice: Amount
    deletes: Amount
    deleted_inserts: Amount | None
    seed: int
    start: datetime | None
    interval_seconds: float
    files: int


@dataclass(frozen=True)
class FeedWish:
    """One of delta (a folder) and path (a lake table) is given. version, as_of: '' for 0 and for now.

    between: the two versions or states whose difference is the feed; None to make changes up. expected: where the rows are written that
    the table must have after the feed, '' for nowhere.
    """

    delta: str
    path: str
    version: str
    as_of: str
    between: tuple[str, str] | None
    reader: str
    primary_key: tuple[str, ...]
    staging: str
    full_load: bool
    expected: str
    file_name: str
    timestamp_column: str
    drop: tuple[str, ...]
    created_column: str
    modified_column: str
    making: Making


def read_feed_wish(given: Mapping[str, Any]) -> FeedWish:
    """The wish in arguments (names with underscores); UsageError for one that is unknown, missing, or of no use with the others."""
    check_known(given, DEFAULTS)
    unknown = [name for name in given if re.fullmatch(r"[a-z0-9_]+", name) and name not in {*DEFAULTS, *setting_names(), "path", "run_id"}]
    if unknown:
        raise UsageError(f"the argument --{unknown[0]} is not known", "bad-argument", f"known are {', '.join(sorted(DEFAULTS))} and path")
    texts = {name: str(given.get(name) or default).strip() for name, default in DEFAULTS.items()}
    for name, allowed in (("file_name", FILE_NAMES), ("reader", READERS)):
        if texts[name] not in allowed:
            raise _bad(name, texts[name], f"give one of {', '.join(allowed)}")
    path = str(given.get("path") or "").strip()
    between = (texts["from"], texts["to"]) if texts["from"] or texts["to"] else None
    wish = FeedWish(
        delta=texts["delta"],
        path=path,
        version=texts["version"],
        as_of=texts["as_of"],
        between=between,
        reader=texts["reader"],
        primary_key=split_key(texts["primary_key"]) if texts["primary_key"] else (),
        staging=texts["staging"],
        full_load=read_flag({"full_load": "false", **given}, "full_load"),
        expected=texts["expected"],
        file_name=texts["file_name"],
        timestamp_column=texts["timestamp_column"],
        drop=tuple(name.strip() for name in texts["drop"].split(",") if name.strip()),
        created_column=texts["created_column"],
        modified_column=texts["modified_column"],
        making=_read_making(texts),
    )
    _check(wish, [name for name in MAKING if given.get(name)])
    return wish


def _read_making(texts: Mapping[str, str]) -> Making:
    making = Making(
        inserts=_amount(texts, "inserts"),
        updates=_amount(texts, "updates"),
        updated_twice=_amount(texts, "updated_twice"),
        deletes=_amount(texts, "deletes"),
        deleted_inserts=_amount(texts, "deleted_inserts") if texts["deleted_inserts"] else None,
        seed=_number(texts, "seed", int),
        start=_moment(texts["start"]) if texts["start"] else None,
        interval_seconds=_number(texts, "interval_seconds", float),
        files=_number(texts, "files", int),
    )
    least = 1.0 if texts["file_name"] == SAMPLE else 0.001
    if not least <= making.interval_seconds <= 86_400 * 366:
        raise _bad("interval_seconds", texts["interval_seconds"], f"give {least:g} to a year; names of files are no finer")
    if not 1 <= making.files <= 1_000_000:
        raise _bad("files", texts["files"], "give 1 to 1000000")
    return making


def _amount(texts: Mapping[str, str], name: str) -> Amount:
    if not _AMOUNT.fullmatch(texts[name]):
        raise _bad(name, texts[name], "give a number, or a share as 10%")
    amount = Amount(texts[name])
    if name != "inserts" and texts[name].endswith("%") and amount.of(100) > 100:
        raise _bad(name, texts[name], "give at most 100%")
    return amount


def _number(texts: Mapping[str, str], name: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(texts[name])
    except ValueError:
        raise _bad(name, texts[name], "give a number") from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise _bad("start", text, "give an ISO time, as 2024-05-01T12:00:00Z") from None


def _check(wish: FeedWish, making: Iterable[str]) -> None:
    """The combinations that can't be meant."""
    if bool(wish.delta) == bool(wish.path):
        raise UsageError("no source is given, or two", "bad-argument", "give either --delta FOLDER or a lake table's path")
    if "," in wish.path:
        raise _bad("path", wish.path, "give one table")
    if not wish.staging:
        raise UsageError("the argument --staging is missing", "bad-argument", "say where the feed goes: a folder, or s3://bucket/prefix/")
    for address in (wish.staging, wish.expected):
        if address.startswith("s3"):
            S3Uri.parse(address)
    if wish.delta and not wish.primary_key:
        raise UsageError("a Delta table has no primary key of its own", "no-primary-key", "give --primary-key, several columns by commas")
    if wish.path and wish.primary_key:
        raise _bad("primary_key", ",".join(wish.primary_key), "a lake table has its own: leave it out")
    wrong = [name for name, value in (("as_of", wish.as_of),) if value and wish.delta]
    wrong += [name for name, value in (("version", wish.version),) if value and wish.path]
    if wrong:
        raise _bad(wrong[0], "given", "--version is of Delta tables, --as-of of lake tables")
    if wish.between is not None:
        of_one = [name for name, value in (("version", wish.version), ("as_of", wish.as_of)) if value]
        if of_one or list(making):
            raise _bad([*of_one, *making][0], "given", "with --from and --to nothing is made up: leave it out")
        if not wish.between[0]:
            raise UsageError("--to is given without --from", "bad-argument", "give --from too")
    for name in wish_versions(wish) if wish.delta else ():
        if not re.fullmatch(r"\d{1,18}", name):
            raise UsageError(f"{name!r} is no version of a Delta table", "bad-argument", "versions are numbers from 0 on")


def wish_versions(wish: FeedWish) -> tuple[str, ...]:
    """The versions that the wish names."""
    return tuple(name for name in ((wish.version,) if wish.between is None else wish.between) if name)


def _bad(name: str, text: str, todo: str) -> UsageError:
    return UsageError(f"the argument --{name} is {text!r}", "bad-argument", todo)
