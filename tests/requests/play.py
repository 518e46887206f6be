"""The scenario: each job of the template does all that it can do, dies half-way and is done again. To be imported after `hurry()`."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path

from glue_jobs import generate_feed
from glue_jobs.aws.clients import Unanswered
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.paths import changes_folder
from tests.protocol.in_process import DATABASE, RAW, STATE_TABLE
from tests.protocol.runs import LONG_LEASE, forget_lease
from tests.protocol.wire import Killed
from tests.requests.hands import WIDE, WORK, Hands
from tests.requests.recorder import PERSON, Call, refused
from tests.snapshots import SnapshotTable


def record(file: str) -> None:
    """Play all of it and write the calls."""
    Path(file).write_bytes(pickle.dumps(Play().play()))


class Play(Hands):
    """The tables, and who does what to them."""

    def play(self) -> list[Call]:
        """All parts, each on tables of its own; the calls."""
        with self.recorder.connected():
            self.the_controllers_runs()
            self.columns_partitions_and_a_reload()
            self.staged_changes()
            self.given_rows()
            self.an_adoption()
            self.a_truncate()
            self.a_history()
            self.mishaps()
            self.snapshots()
            self.a_feed()
            self.without_a_stack()
        return self.recorder.calls

    # --- parts

    def the_controllers_runs(self) -> None:
        """New tables, of which another run makes one; one is activated, loaded, changed and truncated; one loses its records."""
        table, second = self.table(), self.table()
        table.load([(1, "a"), (2, "b")])
        table.edit(ActiveFlag="false")
        table.remove("out_path")
        second.load([(1, "a")])
        for _ in range(2):
            self.put("raw", f"dms/shop/{next(self.names)}/LOAD00000001.parquet", b"")
        with self.recorder.mishap("PutItem", refused("ConditionalCheckFailedException")):
            assert self.control() == 0
        assert self.control() == 0
        table.edit(ActiveFlag="true", OnRawFilesGone="truncate")
        assert self.control() == 0
        table.cdc([("U", (1, "c"))])
        assert self.control() == 0
        table.check_folder()
        assert len(table.rows()) == 2
        for file in table.clients.s3.list_objects_v2(Bucket="raw", Prefix=table.path.raw.key)["Contents"]:
            table.clients.s3.delete_object(Bucket="raw", Key=file["Key"])
        assert self.control() == 0
        assert table.rows() == []
        records = changes_folder(second.out_path)
        self.clients.s3.delete_object(Bucket="lake", Key=f"{records.key}{second.item()['Head']}.json")
        assert self.control() == 1

    def columns_partitions_and_a_reload(self) -> None:
        """Columns and partitions come, rows move; all is undone and done again; loaded anew; another layout, which is undone."""
        table = self.table(partition_key="name")
        table.load([(1, "a"), (2, "b"), (3, "b")])
        self.run(table, "LoadInitial")
        first = str(table.item()["Head"])
        table.cdc([("U", (3, "a", 30)), ("D", (2, "b", None)), ("I", (6, "c", 60))], columns=WIDE)
        self.run(table, "LoadIncremental")
        self.run(table, "Rollback", to=first)
        self.run(table, "Rollback", reapply="all")
        table.load([(1, "a"), (7, "z")], number=2)
        table.edit(Request="reload", LoadQuietMinutes=0)
        self.run(table, "LoadInitial")
        assert len(table.rows()) == 4, table.rows()  # the reload did not wait
        table.edit(PartitionKey="null", Request="repartition")
        self.run(table, "LoadIncremental")
        self.run(table, "Rollback", to="previous", resume="true")

    def staged_changes(self) -> None:
        """A staged change is committed, another is discarded, by a person; a third is overtaken by a job's own run."""
        table = self.loaded()
        for number, end in enumerate((table.commit, table.discard)):
            table.cdc([("I", (10 + number, "s"))])
            self.run(table, "LoadIncremental", stage="true")
            with self.recorder.on_behalf_of(PERSON):
                assert end(str(table.item()["LastRun"]["staged"])).code == 0
        self.run(table, "LoadIncremental", stage="true")
        self.run(table, "LoadIncremental")
        with self.recorder.on_behalf_of(PERSON):
            assert table.verify() == []
            self.clients.s3.delete_object(Bucket="lake", Key=table.out_path.key + sorted(table.visible())[0])
            table.repair()

    def given_rows(self) -> None:
        """Rows are corrected, from a file and from a folder; a key is erased."""
        table = self.loaded()
        deletes, updates = self.given("deletes", "name\nb\n"), self.given("updates", "id,name\n4,c\n8,c\n")
        self.run(table, "Apply", key="name", deletes=deletes, updates=updates)
        self.run(table, "Apply", key="id", deletes=self.parquet_folder(), stage="true")
        with self.recorder.on_behalf_of(PERSON):
            assert table.discard(str(table.item()["LastRun"]["staged"])).code == 0
        self.run(table, "Erase", erase_keys=self.given("keys", "id\n1\n"))

    def an_adoption(self) -> None:
        table = self.table(partition_key="region")
        for region, rows in (("north", [(1, "a")]), ("south", [(2, "b")])):
            file = table.parquet([("I", row) for row in rows])
            self.put("lake", f"{table.out_path.key}region={region}/part-0.parquet", file)
        table.load([(1, "a"), (2, "b")])
        table.edit(LastFullLoadDate="2999-01-01 00:00:00")
        self.run(table, "Adopt", columns='{"region": "string"}', dry_run="true")
        self.run(table, "Adopt", columns='{"region": "string"}')

    def a_truncate(self) -> None:
        table = self.loaded()
        table.edit(OnRawFilesGone="truncate")
        table.delete_raw("LOAD00000001.parquet")
        self.run(table, "LoadIncremental")
        self.run(table, "Rollback", to="previous")

    def a_history(self) -> None:
        """A table with its history beside it, both undone; the history is built anew; a key is erased from both."""
        table = self.table()
        table.edit(History="true")
        table.load([(1, "a"), (2, "b")])
        self.run(table, "LoadInitial")
        table.cdc([("U", (1, "x")), ("D", (2, "b"))])
        self.run(table, "LoadIncremental")
        self.run(table, "Rollback", to="previous", resume="true")
        self.run(table, "BackfillHistory")
        self.run(table, "Erase", erase_keys=self.given("keys", "id\n1\n"))

    def mishaps(self) -> None:
        """A job dies before it publishes or hides, loses its uploads, gets no answer; the same job comes again."""
        table = self.loaded()
        table.cdc([("U", (1, "x")), ("D", (2, "b"))])
        self.run(table, "LoadIncremental")
        table.cdc([("U", (1, "y")), ("I", (9, "z"))])
        erase = {"erase_keys": self.given("keys", "id\n1\n")}
        mishaps: list[tuple[str, dict[str, str], str, bool]] = [
            ("LoadIncremental", {}, "CompleteMultipartUpload", False),
            ("LoadIncremental", {}, "CompleteMultipartUpload", True),
            ("LoadIncremental", {}, "DeleteObjects", False),
            ("Rollback", {"to": "previous"}, "CompleteMultipartUpload", True),
            ("Erase", erase, "CompleteMultipartUpload", True),
        ]
        kept = self.aws.keep()
        for job, wish, operation, lost in mishaps:
            self.aws.put_back(kept)
            with self.recorder.on_behalf_of(job), self.recorder.mishap(operation, Killed()):
                table.run(job, lease_seconds=LONG_LEASE, **wish)
            forget_lease(table)
            if lost:
                self.lose_uploads(table)
            self.run(table, job, **wish, codes=(0, 1, 2))
        for sent in (False, True):
            self.aws.put_back(kept)
            with self.recorder.mishap("CompleteMultipartUpload", Unanswered("lost"), sent=sent):
                self.run(table, "LoadIncremental")
        with self.recorder.mishap("DeleteObjects", Killed()), self.recorder.on_behalf_of("Erase"):
            table.run("Erase", lease_seconds=LONG_LEASE, **erase)
        forget_lease(table)
        self.run(table, "Erase", resume="true")

    def snapshots(self) -> None:
        """Flat and by date, from scratch and from the version before, old versions removed; one breaks off, two get no answer."""
        for layout in ("flat", "dated"):
            table = SnapshotTable(self.clients, self.environment, RAW, f"{WORK}{layout}/", database=DATABASE)
            table.put("LOAD00000001.parquet", [("I", (number, "old", date(2024, 1, number)), "2030-01-01 00:00:00") for number in (1, 2)])
            said = {"sources": self.sources(table), "layout": layout, "partition_date": "day" if layout == "dated" else "", "keep": "1"}
            self.snapshot(table, said)
            rows = [("U", (1, "x", date(2024, 1, 5)), "2024-05-01 00:00:00")]
            table.put("20240501-000000000.parquet", rows)
            if layout == "flat":
                with self.recorder.mishap("UploadPart", refused("AccessDenied")), self.recorder.on_behalf_of("Snapshot"):
                    assert table.run(**said) is not None
                for sent in (False, True):
                    with self.recorder.mishap("CompleteMultipartUpload", Unanswered("lost"), sent=sent):
                        self.snapshot(table, {**said, "full": "true"})
            self.snapshot(table, said)
            self.clients.glue.delete_table(DatabaseName=DATABASE, Name="orders_snapshot")
            for file in self.clients.s3.list_objects_v2(Bucket="raw", Prefix=table.path.key)["Contents"]:
                self.clients.s3.delete_object(Bucket="raw", Key=file["Key"])

    def a_feed(self) -> None:
        """Of a lake table: made up of its rows, and of its changes."""
        table = self.loaded()
        loaded = str(table.item()["Head"])
        table.cdc([("U", (1, "x"))])
        self.run(table, "LoadIncremental")
        made = {"inserts": "2", "updates": "1", "deletes": "1", "full_load": "true", "expected": f"{WORK}expected.parquet"}
        for wish in (made, {"from": loaded}, {"from": loaded}):
            said = {"path": str(table.path), "staging": f"{WORK}feed{len(wish)}/", "state_table": STATE_TABLE, **wish}
            with self.recorder.on_behalf_of("GenerateFeed"):
                assert generate_feed.main([word for name, text in said.items() for word in (f"--{name}", text)], self.environment) == 0

    def without_a_stack(self) -> None:
        """What a stack makes is made by the program where there is none: a person's run, since no role may."""
        with self.recorder.on_behalf_of(PERSON):
            StateTable(self.clients, "another").ensure()
            table = self.table()
            table.load([(1, "a")])
            assert table.run("LoadInitial", database="another") == 0
