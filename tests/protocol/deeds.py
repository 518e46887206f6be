"""What is done to a table, and what the controller and a person do after it went wrong. To be imported after `hurry()`."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from glue_jobs.aws.records import list_records, read_records
from glue_jobs.core.paths import changes_folder
from glue_jobs.core.record import ChangeRecord
from glue_jobs.protocol.lineage import Lineage
from glue_jobs.protocol.stage import WAITING, list_uploads, look_at
from tests.lake import LakeTable
from tests.spark.histories import check_history

Settings = dict[str, str]
ERASED = 1  # the id that an erase is about


@dataclass
class Deed:
    """A run of one job."""

    table: LakeTable
    job: str
    wish: Settings = field(default_factory=dict)

    def do(self, **settings: Any) -> int:
        """The exit code."""
        return self.table.run(self.job, **{**self.wish, **settings})

    def again(self, number: int) -> None:
        """What happens after a failure at the request with this number, until all is done. Who comes first differs from point to point."""
        raise NotImplementedError

    def settle(self) -> None:
        """What comes after it in any case."""

    def run(self, job: str = "LoadIncremental", **wish: str) -> None:
        code = self.table.run(job, **wish)
        assert code == 0, f"the next {job} has exit code {code}: {self.table.item().get('LastRun')}"

    def said(self) -> str:
        """The code of the last run's error."""
        return str(self.table.item()["LastRun"].get("error", {}).get("code", ""))

    def _in_turn(self, number: int) -> None:
        """The controller's run and the person, in either order."""
        if number % 2:
            self.run()
            self.ask_again()
        else:
            self.ask_again()
            self.run()

    def ask_again(self) -> None:
        """What the person does who wanted it."""


class Load(Deed):
    """Raw files are taken: nobody has to ask for it."""

    def again(self, number: int) -> None:
        landed = str(self.table.item().get("Head", "")) != "" or self.job == "LoadIncremental"
        self.run("LoadIncremental" if landed else "LoadInitial")


class Batch(Deed):
    """A batch of changes, whose next run takes them."""

    def again(self, number: int) -> None:
        del number
        self.run()


class Kept(Batch):
    """A batch of a table with a history."""

    def settle(self) -> None:
        """The history's folder and records say what the table's do."""
        check_history(self.table)


class Rollback(Deed):
    """A rollback or a re-apply."""

    def again(self, number: int) -> None:
        self._in_turn(number)

    def ask_again(self) -> None:
        """The same again. A re-apply that landed is refused then: nothing is undone any more."""
        code = self.do()
        is_done = "reapply" in self.wish and self.said() == "nothing-to-reapply"
        assert code == (2 if is_done else 0), f"asked again, {self.wish} has exit code {code}: {self.table.item()['LastRun']}"


class Apply(Deed):
    """A correction. Whether it landed can be seen: a person doesn't ask for it twice."""

    def again(self, number: int) -> None:
        self._in_turn(number)

    def ask_again(self) -> None:
        if self.table.head().kind != "apply":
            self.run(self.job, **self.wish)


class Adopt(Deed):
    """The same again is refused where it landed."""

    def again(self, number: int) -> None:
        del number
        code = self.do()
        assert code == 0 or self.said() == "adopt-loaded", f"the next Adopt has exit code {code}: {self.table.item()['LastRun']}"
        self.run()


class Erase(Deed):
    """An erase that landed is ended by `--resume`; loads go on in between."""

    def again(self, number: int) -> None:
        self._in_turn(number)

    def ask_again(self) -> None:
        landed = self.table.head().kind == "erase"
        self.run(self.job, **({"resume": "true"} if landed else self.wish))

    def settle(self) -> None:
        """No version that S3 keeps holds the key."""
        s3, lake = self.table.clients.s3, self.table.out_path
        for prefix in (lake.key, changes_folder(lake).key):
            for version in s3.list_object_versions(Bucket=lake.bucket, Prefix=prefix).get("Versions", []):
                if version["Key"].endswith(".parquet"):
                    data = s3.get_object(Bucket=lake.bucket, Key=version["Key"], VersionId=version["VersionId"])["Body"].read()
                    rows = pq.ParquetFile(io.BytesIO(data)).read().to_pylist()
                    assert all(row.get("id") != ERASED for row in rows), version["Key"]


class Staging(Deed):
    """Staged by a run, committed by a person who sees what waits. Where nothing does, a scheduled run came first, or it is staged again."""

    def again(self, number: int) -> None:
        self._in_turn(number)

    def ask_again(self) -> None:
        if not self._waiting():
            self.run(self.job, **self.wish)

    def settle(self) -> None:
        for staged in self._waiting():
            code = self.table.commit(staged.id).code
            assert code == 0, self.table.item()["LastRun"]

    def _waiting(self) -> list[ChangeRecord]:
        """The staged change that can be committed, as `dmslake history` tells it. More than one can't come after the head."""
        s3, lake = self.table.clients.s3, self.table.out_path
        head = str(self.table.item()["Head"])
        lineage, uploads = Lineage(s3, lake, head), list_uploads(s3, lake)
        staged = [record for record in read_records(s3, lake, list(list_records(s3, lake, head))) if record.staged]
        return [record for record in staged if look_at(s3, lake, lineage, record, uploads).standing == WAITING][:1]


class Commit(Deed):
    """A staged change is committed. Where it was, the same again says so."""

    def do(self, **settings: Any) -> int:
        return self.table.commit(self.wish["change"], **settings).code

    def again(self, number: int) -> None:
        self._in_turn(number)

    def ask_again(self) -> None:
        code = self.do()
        assert code == 0 or self.said() == "already-committed", self.table.item()["LastRun"]


class Discard(Deed):
    """What is staged is discarded; the next scheduled run takes its files."""

    def do(self, **settings: Any) -> int:
        return self.table.discard(self.wish["change"], **settings).code

    def again(self, number: int) -> None:
        if number % 2:
            self.run()
        code = self.do()
        assert code == 0, self.table.item()["LastRun"]

    def settle(self) -> None:
        self.run()
