"""`dmslake verify` on the command line: what it prints, its exit codes, and that --quick needs no pyarrow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controller.cli import main
from controller.cli.verifying import worst
from glue_jobs.aws.clients import Clients, make_clients
from infra.local.dms_files import cdc_file_name
from infra.local.embedded import EmbeddedAws
from tests.controller.world import as_json
from tests.lake import START, LakeTable

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
Dmslake = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def aws_clients(embedded_aws: EmbeddedAws) -> Clients:
    return make_clients(embedded_aws.environment())


def load(aws: EmbeddedAws, clients: Clients, **values: Any) -> LakeTable:
    table = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, shared=clients, **values)
    table.load([(1, "one"), (2, "two")])
    assert table.run("LoadInitial") == 0
    return table


@pytest.fixture(scope="module")
def one_for_all(embedded_aws: EmbeddedAws, aws_clients: Clients) -> LakeTable:
    return load(embedded_aws, aws_clients)


@pytest.fixture
def fine(one_for_all: LakeTable) -> Iterator[LakeTable]:
    """A loaded table; foreign objects that a test adds are taken away again."""
    table = one_for_all
    yield table
    for path in table.visible() - set(table.snapshot().files):
        table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path)


@pytest.fixture
def damaged(embedded_aws: EmbeddedAws, aws_clients: Clients) -> LakeTable:
    """A loaded table whose data file a person deleted."""
    table = load(embedded_aws, aws_clients)
    (path,) = table.visible()
    table.clients.s3.delete_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path)
    return table


@pytest.fixture
def dmslake(embedded_aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Dmslake:
    """Runs a command line in this process: (exit code, stdout, stderr)."""
    for name, value in embedded_aws.environment().items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def put_foreign(table: LakeTable) -> None:
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=f"{table.out_path.key}part-0.parquet", Body=b"PAR1")


def test_a_fine_table_exits_with_0_and_a_summary(fine: LakeTable, dmslake: Dmslake) -> None:
    """Files, rows, bytes and seconds stand below the table."""
    code, out, err = dmslake("verify", str(fine.path))

    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[1].split()[:2] == [str(fine.path), "fine"]
    assert lines[-1].startswith("1 table(s), 0 difference(s); all of 1 file(s), 2 rows, ")
    assert lines[-1].endswith(" s")


def test_a_difference_exits_with_5_and_says_what_to_do(fine: LakeTable, dmslake: Dmslake) -> None:
    """Table, code, object, expected and found in one row; the way out below."""
    put_foreign(fine)

    code, out, _ = dmslake("verify", str(fine.path))

    assert code == 5
    assert f"difference  foreign-file  {fine.out_path}part-0.parquet" in out
    assert f"{fine.path}: foreign-file: what to do: find out who writes there" in out


def test_json_has_all(fine: LakeTable, dmslake: Dmslake) -> None:
    """One document, nothing else on stdout."""
    put_foreign(fine)

    code, out, _ = dmslake("verify", str(fine.path), "--output", "json")

    (table,) = as_json(out)["tables"]
    assert (code, table["path"], table["result"], table["checked"], table["rows"]) == (5, str(fine.path), "differs", "full", 2)
    (finding,) = table["findings"]
    assert finding.keys() == {"code", "severity", "where", "expected", "found", "todo"}
    assert (finding["code"], table["differences"], table["repair"], table["error"]) == ("foreign-file", 1, None, None)


def test_without_paths_all_loaded_tables_are_checked(
    fine: LakeTable, embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the scope that have a change; one that was never loaded is left out, unless it is named."""
    aws = embedded_aws
    unloaded = LakeTable(aws.environment(), aws.raw, aws.lake, COLUMNS, shared=aws_clients, table="unloaded")
    monkeypatch.setenv("DMSLAKE_RAW", aws.raw)

    _, out, _ = dmslake("verify", "--quick", "--output", "json")
    _, named, _ = dmslake("verify", str(unloaded.path), "--output", "json")

    paths = [table["path"] for table in as_json(out)["tables"]]
    assert (str(fine.path) in paths, str(unloaded.path) in paths) == (True, False)
    assert [finding["code"] for finding in as_json(named)["tables"][0]["findings"]] == ["not-loaded"]


def test_a_table_whose_item_was_made_anew_is_checked_too(
    embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no Head, but records: what is found for its path is found for all tables. One that was never loaded has none."""
    raw = f"s3://{embedded_aws.raw_bucket}/made-anew/"
    monkeypatch.setenv("DMSLAKE_RAW", raw)
    fine, anew, never = (LakeTable(embedded_aws.environment(), raw, embedded_aws.lake, COLUMNS, shared=aws_clients) for _ in range(3))
    for table in (fine, anew):
        table.load([(1, "one")])
        assert table.run("LoadInitial") == 0
    anew.remove("Head", "Fence")

    code, out, _ = dmslake("verify", "--quick", "--output", "json")

    found = {table["path"]: table for table in as_json(out)["tables"]}  # other tests' tables too, some of which can't be read
    ours = {str(each.path) for each in (fine, anew, never)} & found.keys()
    assert all("findings" in found[path] for path in ours), found
    codes = {path: [finding["code"] for finding in found[path]["findings"]] for path in ours}
    assert codes == {str(fine.path): [], str(anew.path): ["state-went-back"]}
    assert code == (5 if all("findings" in table for table in found.values()) else 1)


def test_without_pyarrow_the_full_check_says_what_to_install(fine: LakeTable, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """And --quick works without."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    code, _, err = dmslake("verify", str(fine.path))
    assert code == 3
    assert "pip install --editable '.[jobs]'; or give --quick" in err

    assert dmslake("verify", str(fine.path), "--quick")[0] == 0


def test_without_a_database_the_catalog_is_a_note(fine: LakeTable, dmslake: Dmslake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0: it was not asked for."""
    monkeypatch.delenv("DMSLAKE_DATABASE")

    code, out, _ = dmslake("verify", str(fine.path), "--quick")

    assert code == 0
    assert "catalog-unchecked" in out


def test_repair_puts_right_and_looks_again(damaged: LakeTable, dmslake: Dmslake) -> None:
    """First the preview, which changes nothing and exits with 5; then the repair, which exits as a new look does."""
    (path,) = damaged.snapshot().files

    code, out, _ = dmslake("verify", str(damaged.path), "--repair", "--dry-run")
    assert (code, damaged.visible()) == (5, set())
    assert f"{damaged.path}: repair: restore {path} (2 rows, " in out

    code, out, _ = dmslake("verify", str(damaged.path), "--repair", "--output", "json")
    (table,) = as_json(out)["tables"]
    assert (code, table["result"], table["repair"]["change"]) == (0, "fine", damaged.item()["Head"])
    assert damaged.rows() == [(1, "one"), (2, "two")]
    assert damaged.item()["LastRun"]["job"] == "Repair"


def test_repair_takes_no_lease_of_a_table_that_is_fine(fine: LakeTable, dmslake: Dmslake) -> None:
    """There is nothing to do under one."""
    before = fine.item()

    assert dmslake("verify", str(fine.path), "--repair")[0] == 0

    assert fine.item() == before


def test_what_can_not_be_repaired_stays_a_difference(damaged: LakeTable, dmslake: Dmslake) -> None:
    """The bytes are gone: exit 5, with the reason and the ways out."""
    (path,) = damaged.snapshot().files
    found = damaged.clients.s3.list_object_versions(Bucket=damaged.out_path.bucket, Prefix=damaged.out_path.key + path)
    for version in found["Versions"]:
        damaged.clients.s3.delete_object(Bucket=damaged.out_path.bucket, Key=version["Key"], VersionId=version["VersionId"])

    code, out, _ = dmslake("verify", str(damaged.path), "--repair")

    assert code == 5
    assert f"repair stopped: {damaged.path}" in out
    assert f"dmslake reload {damaged.path}" in out


def test_a_run_that_works_makes_repair_exit_with_4(damaged: LakeTable, dmslake: Dmslake) -> None:
    """A lease whose owner lives: the repair leaves the table to it. (Here the owner is another lease of this process.)"""
    from glue_jobs.aws.clients import Deadline
    from glue_jobs.protocol.lease import take_lease

    lease = take_lease(damaged.state_table, Deadline(), damaged.item(), "other", 0.6, lambda: 1, lambda seconds: None)
    try:
        code, out, _ = dmslake("verify", str(damaged.path), "--repair")
    finally:
        lease.release()

    assert code == 4
    assert "another run works on" in out
    assert damaged.visible() == set()


def test_one_tables_failure_does_not_stop_the_others(fine: LakeTable, damaged: LakeTable, dmslake: Dmslake) -> None:
    """An item that can't be read is its table's error; the exit code is that of the worst."""
    damaged.edit(ActiveFlag="perhaps")

    code, out, _ = dmslake("verify", str(fine.path), str(damaged.path), "--quick")

    assert code == 1
    assert f"not checked: {damaged.path}" in out
    assert [line.split()[1] for line in out.splitlines()[1:3] if line.startswith(str(fine.path))] == ["fine"]


def test_wrong_words_are_refused(dmslake: Dmslake) -> None:
    """--dry-run without --repair, and a table that is not known."""
    assert dmslake("verify", "--dry-run")[0] == 2
    assert dmslake("verify", "b/p/shop/nowhere", "--quick")[0] == 2


def test_the_worst_table_decides() -> None:
    """Not checked, then differences, then busy, then fine."""
    assert [worst(codes) for codes in ([0, 4, 5, 1, 3], [0, 4, 5, 1], [0, 4, 5], [0, 4], [0], [])] == [3, 1, 5, 4, 0, 0]


# --- --replay


def test_replay_says_what_it_proved(fine: LakeTable, dmslake: Dmslake) -> None:
    """As a note; the exit code stays 0."""
    code, out, _ = dmslake("verify", str(fine.path), "--replay", "--output", "json")

    (table,) = as_json(out)["tables"]
    assert (code, table["result"], table["checked"]) == (0, "fine", "replay")
    assert any("2 rows in 1 partition(s)" in finding["found"] for finding in table["findings"] if finding["code"] == "replayed")


def test_replay_of_rows_that_differ_ends_with_5(embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake) -> None:
    """The keys are shown."""
    table = load(embedded_aws, aws_clients)
    (path,) = table.visible()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2], "name": ["one", "TWO"]}), sink)
    table.clients.s3.put_object(Bucket=table.out_path.bucket, Key=table.out_path.key + path, Body=sink.getvalue().to_pybytes())

    code, out, _ = dmslake("verify", str(table.path), "--replay")

    assert (code, "replay-differs" in out, "id=2: name is TWO, expected two" in " ".join(out.split())) == (5, True, True)


def test_replay_without_the_raw_files_ends_with_1(embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake) -> None:
    """It says what can be proved instead, and what the plain verify found."""
    table = load(embedded_aws, aws_clients)
    table.delete_raw("LOAD00000001.parquet")

    code, out, _ = dmslake("verify", str(table.path), "--replay", "--output", "json")

    (found,) = as_json(out)["tables"]
    assert (code, found["error"]["code"], found["differences"]) == (1, "replay-not-possible", 0)
    assert [finding["code"] for finding in found["findings"]] == ["raw-files-gone"]


def test_replay_finds_a_cdc_file_that_came_too_late_to_be_taken(embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake) -> None:
    """The rows are those of the changes, but a file of the source is in none. The way out that it names takes the file."""
    table = load(embedded_aws, aws_clients)
    days = [cdc_file_name(START + timedelta(days=day)) for day in range(4)]
    first, early = table.cdc([("U", (1, "uno"))], name=days[0]), days[1]
    table.sync()
    table.cdc([("I", (4, "four"))], name=days[3])
    table.sync()
    table.cdc([("I", (3, "three"))], name=early)
    table.sync()
    assert table.rows() == [(1, "uno"), (2, "two"), (4, "four")]

    code, out, _ = dmslake("verify", str(table.path), "--replay", "--output", "json")

    (found,) = as_json(out)["tables"]
    (finding,) = [each for each in found["findings"] if each["severity"] == "difference"]
    assert (code, finding["code"], finding["where"]) == (5, "cdc-file-never-taken", f"s3://{table.path.bucket}/{table.path.raw.key}{early}")
    cursor = f"{table.path.bucket}/{first}"
    assert f"set LastIncrementalFile of the table's item to {cursor} and run" in finding["todo"]
    table.edit(LastIncrementalFile=cursor)
    table.sync()
    assert table.rows() == [(1, "uno"), (2, "two"), (3, "three"), (4, "four")]
    assert dmslake("verify", str(table.path), "--replay")[0] == 0


def test_replay_is_content_with_a_file_that_is_to_be_skipped(embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake) -> None:
    """By the command that the finding names; and what is only as late as a run takes it is no difference."""
    table = load(embedded_aws, aws_clients)
    early, late, last = (cdc_file_name(START + timedelta(hours=hours)) for hours in (0, 72, 73))
    table.cdc([("I", (4, "four"))], name=last)
    table.sync()
    table.cdc([("I", (3, "three"))], name=early)
    table.cdc([("I", (5, "five"))], name=late)
    assert "1 that no change took" in " ".join(dmslake("verify", str(table.path), "--replay")[1].split())

    assert dmslake("unblock", str(table.path), "--skip-file", early)[0] == 0

    assert dmslake("verify", str(table.path), "--replay")[0] == 0


def test_quick_and_replay_exclude_each_other(fine: LakeTable, dmslake: Dmslake) -> None:
    """One reads no row, the other all."""
    assert dmslake("verify", str(fine.path), "--quick", "--replay")[0] == 2


def test_status_tells_of_raw_files_that_are_gone(embedded_aws: EmbeddedAws, aws_clients: Clients, dmslake: Dmslake) -> None:
    """As a line below the table, and that the next run empties it where that is wanted."""
    table = load(embedded_aws, aws_clients)
    table.delete_raw("LOAD00000001.parquet")

    assert "1 of 1 raw file(s) that were applied are gone" in dmslake("status", str(table.path))[1]
    table.edit(OnRawFilesGone="truncate")
    code, out, _ = dmslake("status", str(table.path))
    assert (code, "truncate-due" in out, "the raw bucket expires none" in out) == (0, True, True)
    assert "truncate" in dmslake("plan", str(table.path))[1]
    assert table.run() == 0
    assert "truncate" in dmslake("history", str(table.path))[1]
    assert dmslake("show", str(table.path), str(table.item()["Head"]))[0] == 0
    assert dmslake("explain", str(table.path), "--key", "1")[0] == 0
    assert dmslake("diff", str(table.path), "previous", str(table.item()["Head"]))[0] == 0
