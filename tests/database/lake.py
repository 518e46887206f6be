"""A database's lake tables on the embedded AWS: capture, bring up to date by controller and jobs, compare with the database."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.edits import activate
from controller.host import Host
from controller.report import RunReport
from controller.session import open_session
from glue_jobs import load_incremental, load_initial
from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.objects import list_files
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import catalog_name
from glue_jobs.core.settings import read_settings
from glue_jobs.core.state import TableState, read_state
from glue_jobs.protocol.history import ancestors, read_snapshot
from infra.local.capture import CaptureSummary, capture
from infra.local.embedded import EmbeddedAws
from infra.local.job_process import SPARK as SPARK_COMMAND
from infra.local.job_table import with_arguments
from tests.database.files import RawFiles
from tests.database.lake_readers import Read, read_arrow, read_duckdb, read_spark
from tests.database.lake_rows import Expected, check_rows, source_table
from tests.database.server import MariaDb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
DRIVER = {"driver_bytes": "1000000000"}
"""All work in the jobs' own process."""
SPARK = {"driver_bytes": "0"}
"""All work on Spark."""
SHUFFLE = {**SPARK, "broadcast_bytes": "0"}
"""Net changes matched by shuffle."""
SPARK_JOBS = "Spark"
"""`job_prefix` of the Glue jobs that do all work on Spark."""
QUICK = {"wait_seconds": "0.1", "load_quiet_minutes": "0"}


@dataclass(frozen=True)
class Activation:
    """What a person says of a table when activating it. `untold`: columns that the lake has and the database doesn't."""

    key: tuple[str, ...]
    partition_key: str = "null"
    partitions: Mapping[str, str] = field(default_factory=dict)
    untold: tuple[str, ...] = ()


@dataclass
class LakeDatabase:
    """The database `name`, its raw folder `s3://…/dms-<name>/` and its lake tables."""

    aws: EmbeddedAws
    server: MariaDb
    name: str
    spark: SparkSession
    folder: Path
    tables: dict[str, Activation] = field(default_factory=dict)
    _checks: Any = field(default_factory=itertools.count, repr=False)

    def __post_init__(self) -> None:
        self.environment = {**self.aws.environment(), "DMSLAKE_RAW": f"s3://{self.aws.raw_bucket}/dms-{self.name}/"}
        self.clients = make_clients(self.environment)
        self.state_table = StateTable(self.clients, self.aws.state_table)
        self.raw = RawFiles(self.clients.s3, self.aws.raw_bucket, f"dms-{self.name}/", self.name)

    def capture(self, **arguments: Any) -> CaptureSummary:
        """What DMS would write."""
        return capture(self.server.url(self.name), self.raw.url, s3_client=self.clients.s3, **arguments)

    def saved_position(self) -> bytes:
        """The capture's state."""
        return self.raw.body(self._position_key)

    def restore_position(self, saved: bytes) -> None:
        """As after a crash before the position was saved: the next capture begins there again."""
        self.clients.s3.put_object(Bucket=self.raw.bucket, Key=self._position_key, Body=saved)

    @property
    def _position_key(self) -> str:
        return f"{self.raw.prefix}_capture/{self.name}.json"

    # --- items

    def path(self, table: str) -> str:
        return f"{self.aws.raw_bucket}/dms-{self.name}/{self.name}/{table}/"

    def state(self, table: str) -> TableState:
        item = self.state_table.get(self.path(table))
        assert item is not None, f"{table} has no item"
        return read_state(item)

    def activate(self, **tables: Activation) -> None:
        """Have the controller find the tables, and activate them as the command does."""
        self.tables.update(tables)
        if any(self.state_table.get(self.path(name)) is None for name in tables):
            report = self.controller()
            assert {table.outcome for table in report.tables if table.is_new} == {"inactive"}
        for name, said in tables.items():
            edit = activate(self.state(name), ",".join(said.key), said.partition_key, self.aws.lake)
            self.state_table.set_attributes(self.path(name), edit.values, edit.remove)

    # --- runs

    def controller(self, **settings: Any) -> RunReport:
        """A run of the controller in this process, which must succeed. Jobs are processes of this machine, unless told."""
        given = {"runner": "local", **QUICK, **settings}
        log: list[str] = []
        host = Host(
            now=lambda: datetime.now(timezone.utc),
            wait=time.sleep,
            new_id=lambda: f"run-{next(self._checks)}-{self.name}",
            variables={**os.environ, **self.environment},
            log=lambda event, details: log.append(f"{event} {dict(details)}"),
        )
        _, report = open_session(read_settings(given, self.environment), host).run()
        assert report.exit_code == 0, "\n".join([*(str(table) for table in report.tables), *log[-40:]])
        return report

    def jobs(self, **settings: Any) -> None:
        """Both jobs in this process, which must succeed."""
        given = {"state_table": self.aws.state_table, "path": ",".join(self.path(name) for name in self.tables), **QUICK, **settings}
        argv = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        for main in (load_initial.main, load_incremental.main):
            assert main(argv, self.environment) == 0, [self.state(name).item.get("LastRun") for name in self.tables]

    def command(self, *words: str) -> str:
        """`dmslake …` as a person calls it, which must succeed; what it printed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DMSLAKE_"))}
        environment |= {**self.environment, "DMSLAKE_WAIT_SECONDS": "0.1", "COLUMNS": "300"}
        done = subprocess.run(
            [sys.executable, "-m", "controller.cli", *words],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}\n{self._job_logs()}"
        return done.stdout

    def controller_job(self, job_prefix: str) -> None:
        """A run of the Glue job Controller, which starts the other jobs; it must succeed."""
        run = self.aws.run_job("Controller", {"--raw": self.raw.url, "--job_prefix": job_prefix, "--wait_seconds": "0.1"})
        assert run["JobRunState"] == "SUCCEEDED", f"{run.get('ErrorMessage')}\n{self._job_logs()}"

    def _job_logs(self) -> str:
        files = sorted(self.aws.log_folder.glob("*.log"), key=lambda file: file.stat().st_mtime)[-3:]
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    # --- comparing

    def check(self, *tables: str) -> int:
        """Fail unless each lake table equals SELECT *, whoever reads it; the number of rows compared."""
        rows = 0
        for name in tables or self.tables:
            said = self.tables[name]
            with self.server.connect(self.name) as connection:
                expected = source_table(connection, name, said.key, partitions=said.partitions, untold=said.untold)
            self._check_state(name, expected)
            self._check_readers(name, expected)
            rows += len(expected.rows)
        return rows

    def _check_state(self, name: str, expected: Expected) -> None:
        """Folder, change record, item and catalog say the same, and nothing waits."""
        state = self.state(name)
        snapshot = read_snapshot(self.clients.s3, state.lake, state.head)
        visible = {file.key[len(state.lake.key) :] for file in list_files(self.clients.s3, state.lake.bucket, state.lake.key)}
        _equal(visible, set(snapshot.files), f"{name}: objects in its folder")
        _equal({"Publishing", "CatalogPending", "LeaseOwner", "Blocked"} & state.item.keys(), set(), f"{name}: its item says")
        untold = [(column, "string") for column in expected.untold]
        _equal({(column.name, column.type) for column in snapshot.schema}, {*untold, *expected.columns}, f"{name}: columns in the record")
        table = self.clients.glue.get_table(DatabaseName=self.aws.database, Name=catalog_name(state.path))["Table"]
        columns = [(item["Name"], item["Type"]) for item in (*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"])]
        folders = [(folder, "int") for folder in expected.partitions]
        _equal(set(columns), {*untold, *expected.columns, *folders}, f"{name}: columns in the catalog")

    def _check_readers(self, name: str, expected: Expected) -> None:
        folder = self._downloaded(name)
        if not any(folder.rglob("*.parquet")):
            assert not expected.rows, f"{name}: the lake table has no file, the database has {len(expected.rows)} rows"
            return
        for reader, (types, rows) in self._reads(name, folder, expected).items():
            where = f"{name}, read by {reader}"
            untold = [(column, "string") for column in expected.untold]
            _equal(types.keys(), dict(expected.columns).keys() | dict(untold).keys() | expected.partitions.keys(), f"{where}: columns")
            _equal({item for item in types.items() if item[0] not in expected.partitions}, {*untold, *expected.columns}, f"{where}: types")
            check_rows(expected, rows, where)

    def _reads(self, name: str, folder: Path, expected: Expected) -> dict[str, Read]:
        columns = dict(expected.columns)
        plain = [part for part in self.tables[name].partition_key.split(",") if part in columns]
        told = {**dict.fromkeys(expected.partitions, "int"), **{column: columns[column] for column in plain}}
        return {"Spark": read_spark(self.spark, folder), "DuckDB": read_duckdb(folder), "pyarrow": read_arrow(folder, told)}

    def _downloaded(self, name: str) -> Path:
        """What a reader lists, in a new local folder: neither Spark nor DuckDB has an S3 connector here."""
        out_path = self.state(name).lake
        folder = self.folder / f"{name}-{next(self._checks)}"
        folder.mkdir()
        for file in list_files(self.clients.s3, out_path.bucket, out_path.key):
            target = folder / file.key[len(out_path.key) :]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.clients.s3.get_object(Bucket=out_path.bucket, Key=file.key)["Body"].read())
        return folder

    def changes(self, table: str) -> list[tuple[str, str]]:
        """(kind, engine) of the table's changes, first to last."""
        state = self.state(table)
        records = ancestors(self.clients.s3, state.lake, state.head)
        return [(record.kind, str(record.details.get("engine"))) for record in records][::-1]


def _equal(found: Collection[Any], expected: Collection[Any], what: str) -> None:
    """Sets, told apart by what only one of them has."""
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    assert not missing and not extra, f"{what}: missing {missing[:8]}, too many {extra[:8]}"  # noqa: PT018  one message for both


def create_spark_jobs(aws: EmbeddedAws) -> None:
    """The jobs a second time, under SPARK_JOBS: work as little as a test's would never start Spark otherwise."""
    glue = aws.client("glue")
    arguments = {f"--{name}": value for name, value in SPARK.items()}
    for job in glue.get_jobs()["Jobs"]:
        if job["Command"]["Name"] == SPARK_COMMAND:
            glue.create_job(**with_arguments(job, arguments, SPARK_JOBS + job["Name"]))
