"""Publishing that fails for some keys: the change counts, the run says what failed, the next one finishes. And what others do there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import unescape

import pytest
from botocore.exceptions import ConnectionClosedError

from glue_jobs.aws.objects import hide
from glue_jobs.aws.uploads import complete_upload
from tests.aws.faults import answer, s3_error
from tests.lake import LakeTable
from tests.protocol.conftest import TableMaker
from tests.protocol.runs import facts, run_on
from tests.protocol.wire import Request, Rule, Wire, once

Forward = Callable[[], Any]
PARTITIONS = 4
ROWS = [(number, f"p{number % PARTITIONS}") for number in range(3 * PARTITIONS)]
# A row of each partition moves to the next one, one is deleted: every file is superseded.
BATCH = [("U", (number, f"p{(number + 1) % PARTITIONS}")) for number in range(PARTITIONS)] + [("D", (PARTITIONS, None))]
DONE = sorted([*((n, f"p{(n + 1) % PARTITIONS}") for n in range(PARTITIONS)), *ROWS[PARTITIONS + 1 :]], key=repr)


@pytest.fixture(autouse=True)
def _no_pauses() -> Iterator[None]:
    """Back-off takes no time: what is tested is how often and what is sent."""
    with pytest.MonkeyPatch.context() as patch:
        for function in (hide, complete_upload):
            patch.setitem(function.__kwdefaults__, "pause", lambda seconds: None)
        yield


@pytest.fixture
def parts(make_table: TableMaker) -> LakeTable:
    """A loaded table of four partitions, and a CDC file that changes each of them."""
    table = make_table(partition_key="name")
    table.load(ROWS)
    assert table.run("LoadInitial") == 0
    table.cdc(BATCH)
    return table


def versions(table: LakeTable) -> Counter[tuple[str, str]]:
    """How many data versions and delete markers each path of the lake's folder has."""
    found = table.clients.s3.list_object_versions(Bucket=table.out_path.bucket, Prefix=table.out_path.key)
    entries = [(entry["Key"], kind) for kind in ("Versions", "DeleteMarkers") for entry in found.get(kind, ())]
    return Counter((key[len(table.out_path.key) :], kind) for key, kind in entries)


def refuse_to_hide(table: LakeTable, paths: list[str], code: str) -> Rule:
    """DeleteObjects hides all keys but these, each time it is asked."""
    refused = {table.out_path.key + path for path in paths}

    def rule(request: Request, forward: Forward) -> Any:
        if not request.is_hide():
            return forward()
        errors = ""
        for key in (unescape(found) for found in re.findall(r"<Key>(.*?)</Key>", request.body.decode())):
            if key in refused:
                errors += f"<Error><Key>{key}</Key><Code>{code}</Code><Message>injected</Message></Error>"
            else:
                table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=key)
        return answer(200, f'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>{errors}</DeleteResult>')

    return rule


REFUSALS = [
    (1, "AccessDenied", 3, "access-denied"), (PARTITIONS, "AccessDenied", 3, "access-denied"), (1, "InternalError", 1, "aws-busy"),
    (PARTITIONS, "SlowDown", 1, "aws-busy"), (2, "Odd", 1, "not-hidden"),
]  # fmt: skip


@pytest.mark.parametrize(("count", "code", "exit_code", "named"), REFUSALS)
def test_files_that_are_not_hidden_are_hidden_by_the_next_run(
    parts: LakeTable, wire: Wire, count: int, code: str, exit_code: int, named: str
) -> None:
    """The change counts and `Publishing` stays; the failed files alone are left, named with S3's code; then all is as it should be."""
    old = sorted(parts.visible())
    stuck = old[:count]

    assert run_on(wire, parts, "LoadIncremental", refuse_to_hide(parts, stuck, code)) == exit_code

    item = parts.item()
    assert (item["Publishing"], item["LastRun"]["outcome"], item["LastRun"]["error"]["code"]) == (item["Head"], "failed", named)
    assert f"{count} superseded files" in item["LastRun"]["error"]["message"]
    assert any(f"{path} ({code})" in item["LastRun"]["error"]["message"] for path in stuck)
    assert ("LeaseOwner" in item, "Blocked" in item) == (False, False)
    assert parts.visible() == {*parts.snapshot().files, *stuck}

    assert parts.run("LoadIncremental") == 0
    assert parts.rows() == DONE
    parts.check_folder()
    assert versions(parts) == Counter([(path, "Versions") for path in {*old, *parts.visible()}] + [(path, "DeleteMarkers") for path in old])


def test_while_files_can_t_be_hidden_no_further_batch_is_taken(parts: LakeTable, wire: Wire) -> None:
    """Two changes half published would leave readers more than one change's files; each run fails alike, until it may."""
    stuck = sorted(parts.visible())[2:3]
    rule = refuse_to_hide(parts, stuck, "AccessDenied")
    assert run_on(wire, parts, "LoadIncremental", rule) == 3
    head = parts.item()["Head"]
    parts.cdc([("D", (11, None))])

    assert [run_on(wire, parts, "LoadIncremental", rule) for _ in range(2)] == [3, 3]

    assert (parts.item()["Head"], parts.item()["Publishing"]) == (head, head)
    assert parts.visible() == {*parts.snapshot().files, *stuck}
    assert parts.run("LoadIncremental") == 0
    assert parts.rows() == [row for row in DONE if row[0] != 11]
    parts.check_folder()


# --- completions


def of_first(table: LakeTable, then: Callable[[Forward, int], Any]) -> Rule:
    """`then`, with the number of times it was sent before, for each completion of the upload that was the first to be completed."""
    sent: Counter[str] = Counter()

    def rule(request: Request, forward: Forward) -> Any:
        if not request.is_completion() or (sent and request.key not in sent):
            return forward()
        sent[request.key] += 1
        return then(forward, sent[request.key] - 1)

    return rule


def fail_with(status: int, code: str, times: int) -> Callable[[Forward, int], Any]:
    return lambda forward, before: s3_error(status, code) if before < times else forward()


def lose(forward: Forward, before: int) -> Any:
    """Done, and the answer is lost."""
    forward()
    if not before:
        raise ConnectionClosedError(endpoint_url="http://lost/")
    return s3_error(404, "NoSuchUpload")


def repeat(forward: Forward, before: int) -> Any:
    """Sent twice on the way; the second answer arrives."""
    forward()
    return forward()


@pytest.mark.parametrize(
    "then",
    [fail_with(500, "InternalError", 1), fail_with(503, "SlowDown", 1), fail_with(503, "SlowDown", 3), lose, repeat],
    ids=["500 once", "503 once", "503 thrice", "answer lost", "sent twice"],
)
def test_a_completion_that_fails_at_times_or_is_repeated_is_made_good(
    parts: LakeTable, wire: Wire, then: Callable[[Forward, int], Any]
) -> None:
    """In the same run: the file is there once for readers, and goes for good when it is superseded."""
    assert run_on(wire, parts, "LoadIncremental", of_first(parts, then)) == 0

    assert parts.rows() == DONE
    parts.check_folder()
    parts.cdc([("U", (number, "one")) for number in range(len(ROWS))])
    assert parts.run("LoadIncremental") == 0
    assert parts.rows() == [(number, "one") for number in sorted(range(len(ROWS)), key=lambda number: repr((number, "one")))]
    parts.check_folder()


@pytest.mark.parametrize(
    ("status", "code", "exit_code", "named"), [(500, "InternalError", 1, "aws-busy"), (403, "AccessDenied", 3, "access-denied")]
)
def test_a_completion_that_fails_for_good_hides_nothing(
    parts: LakeTable, wire: Wire, status: int, code: str, exit_code: int, named: str
) -> None:
    """The change counts, all other files are visible beside all old ones, none is lost; the next run finishes."""
    old = parts.visible()

    assert run_on(wire, parts, "LoadIncremental", of_first(parts, fail_with(status, code, 99))) == exit_code

    item = parts.item()
    assert (item["Publishing"], item["LastRun"]["error"]["code"]) == (item["Head"], named)
    added = {file.path for file in parts.head().added}
    assert old < parts.visible()
    assert len(added - parts.visible()) == 1
    assert wire.of("DeleteObjects") == []

    assert parts.run("LoadIncremental") == 0
    assert parts.rows() == DONE
    parts.check_folder()
    assert {path for (path, kind), count in versions(parts).items() if kind == "Versions" and count > 1} == set()


# --- what others do to the folder


def test_objects_of_others_are_never_touched(parts: LakeTable) -> None:
    """Through batches, a reload and another layout: neither hidden nor written, be their names like ours; nor do they spoil a run."""
    ours = sorted(parts.visible())[0]
    names = [
        "notes.txt",
        "name=p1/stranger.parquet",
        ours.replace(".parquet", "-copy.parquet"),
        f"{ours}.tmp",
        "_temporary/0/x",
        "name=p1/",
    ]
    for name in names:
        parts.clients.s3.put_object(Bucket=parts.out_path.bucket, Key=parts.out_path.key + name, Body=b"not ours")
    gone = "name=p2/deleted.parquet"
    parts.clients.s3.put_object(Bucket=parts.out_path.bucket, Key=parts.out_path.key + gone, Body=b"not ours, and hidden")
    parts.clients.s3.delete_object(Bucket=parts.out_path.bucket, Key=parts.out_path.key + gone)

    def of_others() -> dict[tuple[str, str], int]:
        return {entry: count for entry, count in versions(parts).items() if entry[0] in (*names, gone)}

    before = of_others()
    assert len(before) == len(names) + 2
    assert parts.run("LoadIncremental") == 0
    parts.edit(Request="reload")
    assert (parts.run("LoadInitial"), parts.run("LoadIncremental")) == (0, 0)
    parts.edit(PartitionKey="null", Request="repartition")
    assert parts.run("LoadIncremental") == 0, parts.item()["LastRun"]

    assert of_others() == before
    assert parts.visible() - set(names) == set(parts.snapshot().files)
    assert not any("/" in path for path in parts.snapshot().files)


def test_a_delete_marker_doubled_by_a_person_breaks_nothing(parts: LakeTable, wire: Wire) -> None:
    """On a superseded file before it is hidden, and after: it stays hidden, its data stays, and the runs go on."""
    old = sorted(parts.visible())

    def delete(path: str) -> None:
        parts.clients.s3.delete_object(Bucket=parts.out_path.bucket, Key=parts.out_path.key + path)

    def meanwhile(forward: Forward) -> Any:
        delete(old[0])
        return forward()

    assert run_on(wire, parts, "LoadIncremental", once(Request.is_hide, meanwhile)) == 0
    delete(old[1])
    assert (parts.rows(), versions(parts)[old[0], "Versions"], versions(parts)[old[1], "Versions"]) == (DONE, 1, 1)
    parts.edit(Publishing=parts.item()["Head"])  # as if the run had died before it said that all is published
    assert parts.run("LoadIncremental") == 0

    assert [versions(parts)[path, "DeleteMarkers"] for path in old] == [2, 2, 1, 1]
    assert facts(parts)["unfinished"] == []
    parts.check_folder()


def test_a_data_file_that_a_person_deleted_is_named_when_it_is_needed(parts: LakeTable) -> None:
    """Batches of other files go on; the one that needs it is refused; with the marker taken away it is as if nothing had been."""
    assert parts.run("LoadIncremental") == 0
    (lost,) = [path for path in parts.visible() if path.startswith("name=p3/")]
    bucket, key = parts.out_path.bucket, parts.out_path.key + lost
    marker = parts.clients.s3.delete_object(Bucket=bucket, Key=key)["VersionId"]
    parts.cdc([("I", (100, "other"))])
    assert parts.run("LoadIncremental") == 0
    parts.cdc([("D", (7, None))])

    assert parts.run("LoadIncremental") == 1

    last = parts.item()["LastRun"]
    assert (last["outcome"], lost in last["error"]["message"], "Publishing" in parts.item()) == ("blocked", True, False)
    parts.clients.s3.delete_object(Bucket=bucket, Key=key, VersionId=marker)
    parts.remove("Blocked")
    assert parts.run("LoadIncremental") == 0
    assert parts.rows() == sorted([row for row in DONE if row[0] != 7] + [(100, "other")], key=repr)
    parts.check_folder()
