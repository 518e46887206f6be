"""Every threshold of the program, in one table: name, default, unit, meaning. docs/settings.md shows this very table.

A limit `batch_files` is set by the flag `--batch-files`, the job argument `--batch_files` or the environment variable
`DMSLAKE_BATCH_FILES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from glue_jobs.core.errors import UsageError

MIB = 1024 * 1024
MIN_PART_BYTES = 5 * MIB  # S3 refuses smaller parts only when an upload is completed: after the commit, when it is too late


def _limit(default: float, unit: str, meaning: str, least: float = 0) -> Any:
    return field(default=default, metadata={"unit": unit, "meaning": meaning, "least": least})


@dataclass(frozen=True)
class Limits:
    """The thresholds, each with its default."""

    late_window_hours: float = _limit(24.0, "hours", "how far behind the cursor a CDC file may appear and still be taken as late")
    load_quiet_minutes: float = _limit(
        15.0, "minutes", "a reload waits while a load file is younger than this and no newer CDC file tells that the load is over"
    )
    load_start_margin_minutes: float = _limit(
        10.0,
        "minutes",
        "taken off the first load file's time where the load has no timestamp column, or none that can be right; of a first load, off its"
        " least commit time; of a reload, how long before that a CDC file may have been begun that was written after it",
    )
    batch_files: int = _limit(1000, "files", "CDC files in one change, at most")
    batch_bytes: int = _limit(
        256 * MIB,
        "bytes",
        "CDC bytes in one change, at most (a single larger file is taken alone); of a file that is packed to less than a quarter, a quarter"
        " of its unpacked bytes",
    )
    listing_seconds: float = _limit(
        60.0, "seconds", "for how long a job run takes batches from one listing of a table's raw files; 0: it lists before each"
    )
    batch_rows: int = _limit(5_000_000, "rows", "CDC rows in one change, at most (a single larger file is taken alone)")
    target_file_bytes: int = _limit(128 * MIB, "bytes", "size that new data files are written to")
    small_file_bytes: int = _limit(
        32 * MIB, "bytes", "a data file below this takes up the partition's inserts, and is joined with small neighbours"
    )
    tidy_bytes: int = _limit(
        80 * MIB,
        "bytes",
        "small data files that a batch joins although it does not change them, at most, where a partition that it writes to has many;"
        " 0: none",
    )
    stream_file_bytes: int = _limit(16 * MIB, "bytes", "a data file above this is rewritten in pieces instead of as a whole")
    part_bytes: int = _limit(8 * MIB, "bytes", "size of an upload's parts", least=MIN_PART_BYTES)
    driver_bytes: int = _limit(
        32 * MIB,
        "bytes",
        "files whose rows are all held at once are worked on up to this size by Arrow in the job's driver, without starting Spark;"
        " 0: always Spark",
    )
    driver_file_bytes: int = _limit(
        256 * MIB,
        "bytes",
        "the same for data files that these are looked for in or merged into, a few of which are held at a time; at least `driver_bytes`",
    )
    broadcast_bytes: int = _limit(256 * MIB, "bytes", "net changes up to this size go to every task; larger ones are joined by shuffle")
    key_filter_bytes: int = _limit(
        128 * MIB, "bytes", "key filters that one batch makes, and takes over from older objects, at most; 0: none are made or asked"
    )
    widen_bytes: int = _limit(1024 * MIB, "bytes", "a table up to this size is rewritten by itself when a column's type grows")
    apply_bytes: int = _limit(256 * MIB, "bytes", "rows given to apply, in memory, at most")
    sample_rows: int = _limit(100_000, "rows", "row changes of a staged change that are kept for a look at them, at most")
    replay_bytes: int = _limit(
        1024 * MIB,
        "bytes",
        "rows that `verify --replay` and the work on a history table hold in memory; of more they take a part of the keys at a time",
        least=1,
    )
    small_table_bytes: int = _limit(4096 * MIB, "bytes", "a table below this, with little pending, shares a run with others")
    packed_pending_bytes: int = _limit(64 * MIB, "bytes", "pending bytes up to which a table may share a run")
    packed_run_bytes: int = _limit(256 * MIB, "bytes", "pending bytes of all tables in a shared run, at most")
    packed_run_tables: int = _limit(100, "tables", "tables in a shared run, at most")
    tables_at_once: int = _limit(
        4, "tables", "tables of a shared run that are worked on at the same time: a small one's run is mostly a wait for AWS", least=1
    )
    max_concurrent_runs: int = _limit(5, "runs", "job runs that the controller keeps going at once")
    lease_seconds: float = _limit(60.0, "seconds", "length of a table's lease; a crashed run's table is free after it", least=0.1)
    replan_seconds: float = _limit(
        3600.0, "seconds", "while runs that it began with go on for so long, the controller plans the other tables again; 0: never"
    )
    wait_seconds: float = _limit(10.0, "seconds", "pause between two looks at running job runs")


def read_limits(texts: Mapping[str, str]) -> Limits:
    """Limits from texts by field name; names that are no limit are left alone. Raises UsageError on a value that is no number."""
    values: dict[str, Any] = {}
    for item in fields(Limits):
        text = texts.get(item.name)
        if text not in (None, ""):
            values[item.name] = _number(item, str(text))
    return Limits(**values)


def _number(item: Field[Any], text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    least = item.metadata["least"]
    if not least <= number < 1e15:
        raise UsageError(f"the setting {item.name} is {text!r}", "bad-setting", f"give a number of {item.metadata['unit']} from {least}")
    return int(number) if isinstance(item.default, int) else number
