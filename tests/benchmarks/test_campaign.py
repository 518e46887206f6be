"""A repetition's course: what is asked, and that wrong rows are found wherever they are read."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.contenders.contender import merge_sql
from benchmarks.contenders.registry import contender
from benchmarks.data.base import MANY, SEQUENCE, Base
from benchmarks.data.digest import Digest
from benchmarks.data.prepared import Prepared
from benchmarks.data.workloads import WORKLOADS
from benchmarks.measuring import campaign
from benchmarks.measuring.campaign import Campaign, Outcome, run
from benchmarks.measuring.process import Step, StepFailed

DIGEST = Digest(10_000, 123)


class FakeStand:
    """A server whose tables are dropped."""

    environment: ClassVar = {"DMSLAKE_RAW": "s3://raw/", "DMSLAKE_LAKE": "s3://lake/"}

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def drop(self, mark: str) -> None:
        self.dropped.append(mark)


class FakeWorker:
    """Answers at once; `wrong` says what it answers wrongly, or not at all."""

    wrong = ""
    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ask(self, do: str, table: str, batch: int = 0) -> Step:
        self.asked.append((do, "cold" if "_cold_" in table else "warm"))
        if self.wrong == f"{do} fails":
            raise StepFailed(f"{do}: boom")
        is_wrong = do == self.wrong
        values = {
            "scan": DIGEST.rows - is_wrong,
            "point": 1 - is_wrong,
            "files": [1, 2],
            "digest": asdict(replace(DIGEST, total=DIGEST.total + is_wrong)),
            "digest_by_duckdb": asdict(replace(DIGEST, total=DIGEST.total + is_wrong)),
        }
        return Step(values.get(do), 0.5, 1, None)


@pytest.fixture
def stand() -> Any:
    return FakeStand()


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """W1, whose right rows are DIGEST."""
    monkeypatch.setattr(campaign, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "asked", [])
    return Prepared(Base(10_000, MANY, SEQUENCE), "W1", (Path("00.parquet"),), (), DIGEST, DIGEST, DIGEST, "5")


def test_both_tables_are_compared_and_read(prepared: Prepared, stand: Any) -> None:
    """The cold one is also read once without being measured."""
    outcome = campaign.one_outcome(stand, "ours", prepared, 1)

    assert (outcome.failed, outcome.files, set(outcome.measures)) == ("", [1, 2], {"cold", "warm", "scan", "point"})
    assert FakeWorker.asked == [
        *((do, state) for state in ("cold", "warm") for do in ("make", "before")),
        ("apply", "cold"), ("apply", "warm"),
        ("scan", "cold"), ("point", "cold"), ("scan", "warm"), ("point", "warm"), ("files", "warm"),
        ("digest", "cold"), ("digest", "warm"), ("digest_by_duckdb", "warm"),
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["scan", "point", "digest", "digest_by_duckdb"])
def test_wrong_rows_are_found(prepared: Prepared, stand: Any, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whichever reader: the repetition has failed, and its tables are gone."""
    monkeypatch.setattr(FakeWorker, "wrong", wrong)

    outcome = campaign.one_outcome(stand, "ours", prepared, 1)

    assert outcome.failed.startswith("WRONG ROWS")
    assert "WRONG ROWS" in campaign.line(outcome)
    assert len(stand.dropped) == 1


def test_a_failure_is_told_in_its_own_words(prepared: Prepared, stand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeWorker, "wrong", "apply fails")

    assert campaign.one_outcome(stand, "iceberg", prepared, 1).failed == "apply: boom"


def test_who_has_no_answer_to_a_workload_says_why(prepared: Prepared, stand: Any) -> None:
    """Nothing of it is asked."""
    refused = replace(prepared, workload="W5")

    outcome = campaign.one_outcome(stand, "plain", refused, 1)

    assert outcome.not_run == contender("plain").without["W5"]
    assert FakeWorker.asked == []


def test_each_contender_goes_first_once(stand: Any, prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may be quicker at the start of a round than at its end."""
    for name in ("put_base", "put_changes"):
        monkeypatch.setattr(FakeStand, name, lambda *_: None, raising=False)
    monkeypatch.setattr(FakeStand, "title", "fake", raising=False)
    monkeypatch.setattr(campaign, "prepare", lambda *_: prepared)
    monkeypatch.setattr(campaign, "one_outcome", lambda stand, name, prepared, number: Outcome(prepared.workload, name, name, number))
    wanted = Campaign(["W1"], ["ours", "plain", "delta"], prepared.base, 4)

    order = "".join(outcome.contender[0] for outcome in run(wanted, stand, lambda _: None))

    assert order == "opd" + "pdo" + "dop" + "opd"


def test_a_range_is_given_to_a_merge_where_it_spares_files() -> None:
    """Changes all over the table have none; what is said beside the keys stands in the condition of the MERGE."""
    for name in ("delta-range", "iceberg-range"):
        assert [bool(contender(name).refusal(WORKLOADS[workload])) for workload in ("W1", "W2")] == [True, False]
    assert "ON t.id = c.id AND t.id BETWEEN 1 AND 2\n" in merge_sql("x", ["id", "a"], "t.id BETWEEN 1 AND 2")
    assert "ON t.id = c.id\n" in merge_sql("x", ["id", "a"])
