"""How long a small batch takes from the start of its run to its commit, where the time goes, and from what size on Spark is quicker.

    python -m benchmarks.small_batches                          # 1,000 changes: the profile, in the driver and on Spark
    python -m benchmarks.small_batches --latency-ms 30          # every request takes 30 ms more, as on AWS
    python -m benchmarks.small_batches --crossing 4,16,64,256   # tables of so many MB with a change in every file: driver and Spark

S3 is MinIO where `make bench` built it, else moto; DynamoDB and Glue are the embedded ones. Every run is a fresh process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from benchmarks.data.small_tables import SmallTable, change_files, last_runs, make_tables
from benchmarks.server.stand import Stand, open_stand
from benchmarks.within.job_runs import JobRun, run_job
from benchmarks.within.requests import STAGES, Call, seconds_waited, waits

DRIVER, SPARK = 1 << 40, 0  # driver_bytes that let all work be done there
BYTES_PER_ROW = 34  # of this table's rows in a data file, about


def profile(run: JobRun) -> list[tuple[str, float]]:
    """(stage, seconds of the run), all of which together are its length. A moment at which several requests are under way counts for the
    stage of the one that began first; what is left is this process's own work."""
    parts = [
        ("start of the interpreter", run.began - run.started),
        ("imports", run.imported - run.began),
    ]
    by_stage: dict[str, float] = defaultdict(float)
    until = 0.0
    for call in sorted(run.calls, key=lambda call: call.started):
        by_stage[call.stage] += max(0.0, call.ended - max(call.started, until))
        until = max(until, call.ended)
    parts += [(f"waiting: {stage}", by_stage[stage]) for stage in STAGES if stage in by_stage]
    parts += list(run.spark_seconds.items())
    working = run.ended - run.main - sum(by_stage.values()) - sum(run.spark_seconds.values())
    return [*parts, ("work: clients, JSON, rows, and Spark's tasks where it runs", working)]


def to_commit(run: JobRun) -> float:
    """Seconds from the start of the process to the answer of the commit."""
    return next(call.ended for call in run.calls if call.stage == "commit") - run.started


def measure(table: SmallTable, files: Sequence[bytes], driver_bytes: int, at: int, latency: float) -> JobRun:
    """One batch of these files in a fresh process."""
    table.put_changes(files, timedelta(hours=at))
    run = run_job("load_incremental", table.stand.environment, str(table.path), latency_seconds=latency, driver_bytes=driver_bytes)
    (last,) = last_runs(table.stand, [table])
    if last["outcome"] != "committed":
        sys.exit(f"the batch was not committed: {last}")
    return run


def print_profile(stand: Stand, given: argparse.Namespace) -> None:
    """The medians of some batches, by stage."""
    (table,) = make_tables(stand, ["orders"], given.rows)
    table.put_load()
    run_job("load_initial", stand.environment, str(table.path), driver_bytes=DRIVER)
    files = change_files(given.rows, given.files, given.changes // given.files)
    runs: dict[str, list[JobRun]] = {"driver": [], "Spark": []}
    for at in range(given.repeat + 1):  # the first one warms the machine up
        for way, driver_bytes in (("driver", DRIVER), ("Spark", SPARK)):
            run = measure(table, files, driver_bytes, 2 * at + (way == "Spark"), given.latency_ms / 1000)
            runs[way] += [run] if at else []
    table_size = f"{given.rows:,} rows ({table.size_bytes() / 1e6:.1f} MB)"
    print(f"\n{given.changes:,} changes in {given.files} files, table of {table_size}; {stand.title}")
    print(f"every request takes {given.latency_ms:g} ms more than here; medians of {given.repeat} runs, each a fresh process\n")
    median = {way: sorted(some, key=lambda run: run.seconds)[len(some) // 2] for way, some in runs.items()}
    driver, spark = median["driver"], median["Spark"]
    shares = dict(profile(spark))
    print("| stage | driver, s | share | Spark, s |\n| --- | --- | --- | --- |")
    names = list(dict.fromkeys([*dict(profile(driver)), *shares]))
    for name in names:
        mine = dict(profile(driver)).get(name)
        print(f"| {name} | {_text(mine)} | {'' if mine is None else f'{mine / driver.seconds:.0%}'} | {_text(shares.get(name))} |")
    print(f"| **to the commit** | {to_commit(driver):.2f} | {to_commit(driver) / driver.seconds:.0%} | {to_commit(spark):.2f} |")
    print(f"| **whole run** | {driver.seconds:.2f} | 100% | {spark.seconds:.2f} |")
    print(f"| processor time | {driver.cpu_seconds:.2f} | | {spark.cpu_seconds:.2f} (without the JVM and its workers) |")
    print(f"| peak memory | {driver.peak_bytes / 1e6:.0f} MB | | {spark.peak_bytes / 1e6:.0f} MB (the same) |")
    print(f"\ndriver: {len(driver.calls)} requests, {len(waits(driver.calls))} of them one after the other; "
          f"{seconds_waited(driver.calls):.2f} s waited\n")  # fmt: skip
    if given.requests:
        _print_waits(driver.calls)


def _text(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _print_waits(calls: Sequence[Call]) -> None:
    chain = set(waits(calls))
    for call in sorted(calls, key=lambda call: call.started):
        print(f"{'*' if call in chain else ' '} {call.stage:28} {call.operation:24} {call.key.rsplit('/', 1)[-1][:60]}")


def print_crossing(stand: Stand, given: argparse.Namespace) -> None:
    """Tables of several sizes with a change in every data file."""
    print(f"\n{stand.title}; medians of {given.repeat}, each a fresh process; target_file_bytes {given.file_mib} MiB\n")
    sizes = {"target_file_bytes": given.file_mib << 20, "small_file_bytes": 1}
    print("| table | driver, s | Spark, s | driver / Spark | driver's peak memory |\n| --- | --- | --- | --- | --- |")
    for megabytes in given.crossing:
        rows = int(megabytes * 1e6 / BYTES_PER_ROW)
        (table,) = make_tables(stand, [f"of{megabytes}mb"], rows)
        table.put_load()
        run_job("load_initial", stand.environment, str(table.path), driver_bytes=DRIVER, **sizes)
        files = change_files(rows, 1, 2000)
        taken: dict[int, list[JobRun]] = {DRIVER: [], SPARK: []}
        for at in range(given.repeat):
            for way, some in taken.items():
                table.put_changes(files, timedelta(hours=2 * at + (way == SPARK)))
                settings = {"driver_bytes": way, **sizes}
                latency = given.latency_ms / 1000
                some.append(run_job("load_incremental", stand.environment, str(table.path), latency_seconds=latency, **settings))
        driver, spark = (statistics.median(run.seconds for run in taken[way]) for way in (DRIVER, SPARK))
        peak = max(run.peak_bytes for run in taken[DRIVER])
        print(
            f"| {table.size_bytes() / 1e6:.0f} MB | {driver:.1f} | {spark:.1f} | {driver / spark:.2f} | {peak / 1e6:.0f} MB |", flush=True
        )


def main(argv: Sequence[str]) -> int:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of the table")
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10, help="that the changes come in")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="that every request takes more")
    parser.add_argument("--requests", action="store_true", help="list those of the driver; * where one waits for another")
    parser.add_argument("--crossing", type=lambda text: [int(part) for part in text.split(",")], default=[], help="sizes in MB")
    parser.add_argument("--file-mib", type=int, default=8, help="of the data files of --crossing")
    given = parser.parse_args(argv)
    began = time.perf_counter()
    with open_stand() as stand:
        if given.crossing:
            print_crossing(stand, given)
        else:
            print_profile(stand, given)
    print(f"measured in {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
