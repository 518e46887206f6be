"""`dmslake demo`: the main job end to end on an embedded AWS, with a shop's tables, and a check at the end.

Beside the shop's own tables stands one that is made up (`dmslake feed`), for what else DMS may write.

The jobs are started as on AWS, by StartJobRun. The lake is read as anybody would: list the folder, open the Parquet files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.objects import list_files, read_bytes
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import S3Uri
from glue_jobs.spark.attached_rows import from_parquet
from infra.local.demo_screen import Screen
from infra.local.embedded import EmbeddedAws
from infra.local.feed.command import feed
from infra.local.feed.rounds import make_rounds
from infra.local.feed.wish import FeedWish
from infra.local.job_process import CODE_FOLDER
from infra.local.row_changes import Rows, differences, row_changes
from infra.local.shop import SCHEMA, TABLES, Feed, Shop, Written, open_shop, round_of

TRY_NEXT = (
    ("dmslake up", "an embedded AWS that stays, empty, until Ctrl-C; paste the lines it prints into a second shell, and there:"),
    ("python -m infra.local.shop", "write the shop's full load; called again, a round of changes"),
    ("dmslake tables", "list what DMS has written, and which tables are kept up"),
    ("dmslake activate shop.orders --primary-key id --partition-key 'year(order_date),month(order_date)'", "have one kept up"),
    ("dmslake run", "load it, apply what is pending, report"),
)


THINGS = "things"  # no table of the shop's: it has every type, and files of every kind
FEED = FeedWish(
    rows=60, rounds=2, changes=40, load_files=3, layout="YYYYMMDD,load-segments", format="mixed", header=True, before_images=True,
    duplicates=True, late=True,
)  # fmt: skip
MADE_OF = "in folders by date, as Parquet and as CSV; rows come twice, keys change, and a file comes late"


class DemoFailed(Exception):
    """A job run did not succeed; the message has the end of its log."""


def run_demo(echo: Callable[[str], None], spark: bool = False) -> int:
    """Run the demo; 0 if the lake ended equal to the shop, 1 if it did not. spark: have Spark do also what is little."""
    started, screen = time.monotonic(), Screen(echo)
    screen.title(
        "A shop's database, copied by AWS DMS to S3, becomes a lake", "AWS is a server on this machine here; no account is needed."
    )
    try:
        with contextlib.ExitStack() as stack:
            with screen.busy("starting the embedded AWS"):
                aws = stack.enter_context(EmbeddedAws(spark_arguments={"--driver_bytes": "0"} if spark else {}))
            is_equal = Demo(aws, screen, spark).run()
    except DemoFailed as error:
        screen.say(str(error), "red")
        return 1
    screen.say(f"It took {time.monotonic() - started:.0f} s.", "dim")
    show_next(screen)
    return 0 if is_equal else 1


def show_next(screen: Screen) -> None:
    """The commands to try next, each a line of its own, so that it can be pasted."""
    screen.step("Five commands to try next")
    if shutil.which("dmslake") is None:
        screen.comment("once per shell, so that it finds the commands")
        screen.line(f"source {_shown(Path(sys.executable).parent / 'activate')}")
    for command, meaning in TRY_NEXT:
        screen.comment(meaning)
        screen.line(command)


def _shown(path: Path) -> str:
    """The path as seen from here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


class Demo:
    """The steps of the demo on a started AWS. lake: each lake table's rows as last looked at.

    told: the last round of the made-up table that was written; of_things: what its item must say.
    """

    def __init__(self, aws: EmbeddedAws, screen: Screen, spark: bool = False) -> None:
        self.aws, self.screen, self.spark = aws, screen, spark
        self.shop: Shop = open_shop()
        self.feed = Feed(aws.client("s3"), aws.raw)
        self.lake: dict[str, Rows] = {table: {} for table in (*TABLES, THINGS)}
        self.told = 0
        self.of_things: Mapping[str, str] = {}

    def run(self) -> bool:
        """All steps; whether the lake ended equal to the shop."""
        self.screen.step("An embedded AWS: S3, DynamoDB and Glue")
        self.screen.say(f"{self.aws.endpoint_url}, raw bucket {self.aws.raw_bucket}, lake bucket {self.aws.lake_bucket}", "dim")
        self.full_load()
        self.activate()
        self.load()
        for number in (1, 2):
            self.round(number)
        is_equal = self.check()
        self.report()
        return is_equal

    # --- the source

    def full_load(self) -> None:
        """What DMS writes when its task starts."""
        self.screen.step(f"DMS copies the shop's tables: the full load, below {self.aws.raw}")
        self._show_files(self.feed.full_load(self.shop))
        self._feed(0)
        self.screen.say(f"{SCHEMA}/{THINGS}/ is made up by `dmslake feed`, with every type that DMS has: {MADE_OF}", "dim")

    def _feed(self, number: int) -> None:
        """Write the made-up table's files of a round, 0 for the load."""
        done = feed(FEED, f"s3://{self._path(THINGS)}", self.aws.environment(), only=number)
        self.told, self.of_things = number, done.item
        for sentence in done.said[number]:
            self.screen.point(f"{THINGS}: {sentence}")

    def _show_files(self, written: list[Written]) -> None:
        rows = [(file.table, f"{SCHEMA}/{file.table}/{file.name}", f"{file.rows:,}") for file in written]
        self.screen.table(("table", "file", "rows"), rows, ("rows",))

    # --- the jobs

    def controller(self, why: str) -> dict[str, dict[str, Any]]:
        """One run of the job Controller; its report, table → what was done."""
        self.screen.command("aws glue start-job-run --job-name Controller")
        started = time.monotonic()
        with self.screen.busy(why):
            run = self.aws.run_job("Controller")
        lines = self.aws.log_file(run["Id"]).read_text("utf-8").splitlines()
        if run["JobRunState"] != "SUCCEEDED":
            raise DemoFailed(self._failure(run, lines))
        reports = [json.loads(line) for line in lines if line.startswith('{"report"')]
        self.screen.say(f"{run['JobRunState']} in {time.monotonic() - started:.0f} s", "dim")
        tables = [report["table"] for report in reports if "table" in report]
        return {table["path"].rstrip("/").rpartition("/")[2]: table for table in tables}

    def _failure(self, run: dict[str, Any], lines: list[str]) -> str:
        text = [f"The run of the job Controller ended {run['JobRunState']}: {run.get('ErrorMessage', '')}", *lines[-15:]]
        for log in sorted(self.aws.log_folder.glob("*.log"), key=lambda path: path.stat().st_mtime)[-2:]:
            text += ["", f"end of {log.name}:", *log.read_text("utf-8", "replace").splitlines()[-15:]]
        return "\n".join(text)

    def activate(self) -> None:
        """The controller finds the tables; a person says which are kept up."""
        self.screen.step("The controller finds the tables and gives each an inactive row in DynamoDB")
        self.controller("the controller looks for tables")
        self.screen.step(f"A person activates them: edit the rows of {self.aws.state_table}")
        wanted = {name: {"PrimaryKey": table.primary_key, "PartitionKey": table.partition_key} for name, table in TABLES.items()}
        wanted[THINGS] = dict(self.of_things)
        states = StateTable(make_clients(self.aws.environment()), self.aws.state_table)
        for name, attributes in wanted.items():
            states.set_attributes(self._path(name), {**attributes, "ActiveFlag": "true"})
        rows = [(name, item["PrimaryKey"], item.get("PartitionKey", "null"), "true") for name, item in wanted.items()]
        self.screen.table(("row", "PrimaryKey", "PartitionKey", "ActiveFlag"), rows)
        self.screen.say(f"{THINGS}: the attribute Schema gives the columns' types, which CSV does not tell", "dim")

    def _path(self, table: str) -> str:
        return f"{self.aws.raw_bucket}/{self.aws.raw_prefix}{SCHEMA}/{table}/"

    def load(self) -> None:
        """The first run for the active tables."""
        self.screen.step("The controller again: it starts the job LoadInitial")
        self.controller("LoadInitial reads the full load and writes the lake tables")
        rows, parts = [], [""]
        for name in self.lake:
            files = self._files(name)
            self.lake[name] = self.read(name)
            folders = sorted({file.rpartition("/")[0] for file in files} - {""})
            parts = folders or parts
            rows.append((str(self._folder(name)), f"{len(self.lake[name]):,}", f"{len(files)}", f"{len(folders) or ''}"))
        self.screen.table(("lake table", "rows", "data files", "partitions"), rows, ("rows", "data files", "partitions"))
        self.screen.say(f"partitions are folders: {parts[0]}/ to …/{parts[-1].rpartition('/')[2]}/", "dim")
        if not self.spark:
            said = "so little is done in the job's own process; for more it starts Spark (driver_bytes), as `dmslake demo --spark` does"
            self.screen.say(said, "dim")

    def round(self, number: int) -> None:
        """Things happen in the shop, DMS writes them, the controller runs, and the lake has them."""
        self.screen.step(f"Round {number}: things happen in the shop, and DMS writes CDC files")
        known = {name: self.shop.columns[name].names for name in TABLES}
        for sentence in round_of(number)(self.shop):
            self.screen.point(sentence)
        written = self.feed.changes(self.shop, datetime.now(timezone.utc))
        self._show_files(written)
        self._feed(number)
        self.screen.step("The controller again: it starts the job LoadIncremental")
        report = self.controller("LoadIncremental applies the changes")
        touched = {file.table for file in written}
        for name in (name for name in TABLES if name in touched):
            before, self.lake[name] = self.lake[name], self.read(name)
            self.screen.changes(name, row_changes(before, self.lake[name]), self._note(name, report[name], known[name]))
        before, self.lake[THINGS] = self.lake[THINGS], self.read(THINGS)
        count = len(row_changes(before, self.lake[THINGS]))
        self.screen.say(f"{THINGS}: {count} rows differ from before, {len(self.lake[THINGS]):,} rows now", "dim")

    def _note(self, table: str, done: dict[str, Any], known: list[str]) -> str:
        added, superseded = done.get("files_added", 0), done.get("files_superseded", 0)
        note = f"{len(self.lake[table]):,} rows now; data files: {added} added, {superseded} superseded"
        fresh = [name for name in self.shop.columns[table].names if name not in known]
        return note + (f"; new column {', '.join(fresh)}, null in the rows from before" if fresh else "")

    # --- the lake

    def _folder(self, table: str) -> S3Uri:
        item = self.aws.client("dynamodb").get_item(TableName=self.aws.state_table, Key={"path": {"S": self._path(table)}})["Item"]
        return S3Uri.folder(item["out_path"]["S"])

    def _files(self, table: str) -> list[str]:
        """The paths of the data files below the lake table's folder."""
        folder = self._folder(table)
        return sorted(file.key[len(folder.key) :] for file in list_files(self.aws.client("s3"), folder.bucket, folder.key))

    def read_table(self, table: str) -> pa.Table:
        """The lake table as it stands in its folder. Files from before a column was added have it as null."""
        folder = self._folder(table)
        files = [read_bytes(self.aws.client("s3"), folder.bucket, folder.key + path) for path in self._files(table)]
        return pa.concat_tables([from_parquet(data) for data in files], promote_options="default")

    def read(self, table: str) -> Rows:
        """The lake table's rows by key."""
        return {row["id"]: row for row in self.read_table(table).to_pylist()}

    def check(self) -> bool:
        """Compare every lake table with the shop's own rows, values and types; say how it went."""
        self.screen.step("The check: is every lake table equal to the shop's own?")
        is_equal = True
        for name in self.lake:
            table, (expected, types) = self.read_table(name), self.truth(name)
            found = {row["id"]: row for row in table.to_pylist()}
            wrong = differences(expected, found)
            if len(found) != len(table):
                wrong.append(f"{len(table) - len(found)} rows more than keys")
            if _types(table.schema) != types:
                wrong.append(f"columns: expected {types}, found {table.schema}")
            for line in wrong:
                self.screen.say(f"{name}: {line}", "red")
            if not wrong:
                self.screen.say(f"✓ {name}: {len(expected):,} rows, {len(table.schema)} columns, all equal", "green")
            is_equal = is_equal and not wrong
        self.screen.say(
            "The lake equals the shop." if is_equal else "The lake differs from the shop.", "bold green" if is_equal else "bold red"
        )
        return is_equal

    def truth(self, table: str) -> tuple[Rows, dict[str, pa.DataType]]:
        """What the lake table must hold: rows by key, and the columns' types."""
        if table != THINGS:
            return self.shop.rows[table], _types(self.shop.columns[table])
        made = list(make_rounds(FEED, (SCHEMA, THINGS)))[self.told].oracle.table()
        return {row["id"]: row for row in made.to_pylist()}, _types(made.schema)

    # --- a look at it

    def report(self) -> Path:
        """Write the report of all tables to a file that stays, and name it; its path."""
        self.screen.step("A report to look at: every table, and what each change did to its rows")
        path = Path(tempfile.mkdtemp(prefix="dmslake-demo-"), "report.html")
        command = ["report", "--out", str(path), "--rows", "5"]
        self.screen.command("dmslake report --out report.html --rows 5")
        with self.screen.busy("reading the tables and their changes"):
            done = subprocess.run(
                [sys.executable, "-m", "controller.cli", *command],
                env={**_without_aws(os.environ), **self.aws.environment(), "PYTHONPATH": str(CODE_FOLDER)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            raise DemoFailed(f"The report could not be written: {done.stderr}")
        self.screen.say("Open it in a browser; it needs no network, and stays when the embedded AWS has gone:")
        self.screen.line(str(path))
        return path


def _without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables but those that lead to a person's own AWS and lake."""
    return {name: value for name, value in environment.items() if not name.startswith(("AWS_", "DMSLAKE_"))}


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))
