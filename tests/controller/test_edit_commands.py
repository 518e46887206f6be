"""`dmslake create | insert | update | delete | fake`: what is shown, what is refused, what is done."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError

from controller.editing import RowsGiven, edit_run
from controller.plan import APPLY
from controller.runners import job_arguments
from glue_jobs.aws.clients import Deadline
from glue_jobs.core.arguments import parse_arguments
from glue_jobs.core.errors import UsageError
from glue_jobs.core.row_edit import RowEdit, read_row_edit
from glue_jobs.core.settings import Settings
from glue_jobs.core.state import read_state
from glue_jobs.protocol.lease import take_lease
from tests.controller.past_world import Command, PastWorld
from tests.controller.world import item_of, table_path
from tests.lake import LakeTable

SCHEMA = "id int, name string, at timestamp"


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_table_from_its_creation_on(
    past_world: PastWorld, lake_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made, filled, looked at, changed, asked for another layout, undone; rows from options, standard input, files, S3 and made up."""
    name = f"t{past_world.raw[-9:-1]}"
    path = f"{past_world.aws.lake[5:]}made/{name}/"
    definition = ["--schema", SCHEMA, "--primary-key", "id", "--timestamp-column", "at"]
    made = lake_command(
        "create", f"made.{name}", "--lake", past_world.aws.lake, "--schema", SCHEMA, "--primary-key", "id", "--timestamp-column", "at"
    )
    again = lake_command("create", path, *definition, "--output", "json").json

    assert (made.code, lines(made.out)[0]) == (0, f"{path}: an empty table was made"), made.err
    assert {"partition key year(at), month(at)", "primary key id"} <= set(lines(made.out))
    assert again["note"] == "the table was there before, just so"

    rows = ["--row", '{"id": 1, "name": "Pen", "at": "2024-05-01"}', "--row", '{"id": 2}']
    looked = lake_command("insert", path, *rows, "--dry-run")
    done = lake_command("insert", path, *rows)
    assert (looked.code, lines(looked.out)[:3]) == (
        0,
        [f"{path}: the insert would do this; nothing was changed", "given 2 row(s)", "rows 2 inserted"],
    )
    change = lines(done.out)[0].split()[1]
    assert {"given 2 row(s)", "rows 2 inserted", f"to undo it dmslake rollback {path} --undo {change}"} <= set(lines(done.out)), done.err

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 2, "name": "Ink"}\n{"id": 3}')))
    assert lake_command("update", path, "--rows", "-", "--upsert").code == 0
    faked = tmp_path / "fake.csv"
    assert lake_command("fake", path, "--rows", "2", "--out", str(faked)).out == f"2 row(s) in {faked}\n"
    printed = [json.loads(line) for line in lake_command("fake", path, "--rows", "2", "--seed", "1").out.splitlines()]
    assert [row["id"] for row in printed] == [4, 5]
    document = lake_command("fake", path, "--rows", "2", "--seed", "1", "--output", "json").json
    assert (document["fake"], document["path"], document["rows"]) == (1, path, printed)
    assert [column["name"] for column in document["columns"]] == ["id", "name", "at"]
    inserted = lake_command("fake", path, "--rows", "2", "--insert", "--output", "json").json
    assert (inserted["edit"], inserted["inserted"]) == ("insert", 2)
    staged = lake_command("delete", path, "--rows", str(faked), "--stage")
    assert f"to commit it dmslake commit {path} {lines(staged.out)[0].split()[1]}" in lines(staged.out)
    assert lake_command("delete", path, "--rows", str(faked)).code == 0
    nothing = lake_command("delete", path, "--rows", str(faked), "--upsert")
    assert (nothing.code, nothing.out) == (0, f"{path}: no row has one of the keys\n")

    past_world.clients.s3.put_object(Bucket=past_world.aws.raw_bucket, Key=f"given/{name}.csv", Body=b"id,name\n3,Cap\n")
    by_job = lake_command("update", path, "--rows", f"s3://{past_world.aws.raw_bucket}/given/{name}.csv", "--output", "json")
    assert (by_job.code, by_job.json["tables"][0]["outcome"], by_job.json["updated"]) == (0, "committed", 1), by_job.err
    found = json.loads(lake_command("read", path, "--columns", "id,name", "--output", "json").out)["rows"]
    assert sorted(map(str, found)) == sorted(map(str, [{"id": 1, "name": "Pen"}, {"id": 2, "name": "Ink"}, {"id": 3, "name": "Cap"}]))

    assert lake_command("repartition", path, "--partition-key", "null").code == 0
    assert lake_command("run", path).code == 0
    assert lake_command("rollback", path, "--undo", by_job.json["change"], "--resume").code == 0
    assert lake_command("verify", path, "--replay").code == 0


def test_what_can_not_be_done_is_said(past_world: PastWorld, lake_command: Command, tmp_path: Path) -> None:
    """With exit code 1 where the table refuses it, 2 where the call is wrong; nothing is changed."""
    table = past_world.loaded()
    path, new = str(table.path), f"{past_world.aws.lake[5:]}made/x{past_world.raw[-9:-1]}/"
    empty = past_world.table()
    before = table.item()["Head"]
    one = ["--row", '{"id": 1, "name": "x"}']
    refused = {
        (1, "row 0 (1)"): ["insert", path, *one],
        (1, "row 0 (77)"): ["delete", path, "--row", '{"id": 77}', "--dry-run"],
        (2, "column 'name': expected string, found 5"): ["update", path, "--row", '{"id": 1, "name": 5}'],
        (2, "no rows are given"): ["insert", path],
        (2, "--rows with --row"): ["insert", path, *one, "--rows", "x.csv"],
        (2, "is no object"): ["insert", path, "--row", "5"],
        (2, "a Glue job can't read rows of this machine"): ["insert", path, *one, "--runner", "glue"],
        (2, "not an S3 address"): ["insert", path, "--rows", "s3://no bucket/x.csv"],
        (2, "was never loaded"): ["insert", str(empty.path), *one, "--dry-run"],
        (2, "has no rows yet"): ["insert", str(empty.path), *one],
        (2, "has no columns yet"): ["fake", str(empty.path), "--rows", "1"],
        (2, "--insert with --out"): ["fake", path, "--rows", "1", "--insert", "--out", "x.csv"],
        (2, "--out is 'x.txt'"): ["fake", path, "--rows", "1", "--out", "x.txt"],
        (2, "/no/such/x.csv can't be written"): ["fake", path, "--rows", "1", "--out", "/no/such/x.csv"],
        (1, "there is a table already"): ["create", path, "--schema", SCHEMA],
        (2, "none.json can't be read"): ["create", new, "--schema", str(tmp_path / "none.json")],
        (2, "the key column 'nope'"): ["create", new, "--schema", SCHEMA, "--primary-key", "nope"],
        (2, "--primary-key is empty"): ["create", new, "--schema", SCHEMA, "--primary-key", ""],
    }
    for (code, said), words in refused.items():
        done = lake_command(*words)
        assert (done.code, said in done.err) == (code, True), (words, done)

    file = tmp_path / "schema.json"
    file.write_text('{"id": "int"}')
    for name in ("json", "jsonl", "parquet"):
        assert lake_command("fake", path, "--rows", "1", "--out", str(tmp_path / f"f.{name}")).code == 0
        assert lake_command("insert", path, "--rows", str(tmp_path / f"f.{name}"), "--dry-run").code == 0
    made = lake_command("create", new, "--schema", str(file), "--primary-key", "null")
    assert (made.code, "null: rows can only be added" in made.out) == (0, True)
    assert table.item()["Head"] == before


def test_without_a_database_no_row_is_written(past_world: PastWorld, lake_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partition would be in no catalog, and no later run would look for it. A look needs none."""
    table = past_world.loaded()
    before = table.item()["Head"]
    monkeypatch.delenv("DMSLAKE_DATABASE")
    words = ["insert", str(table.path), "--row", '{"id": 9, "name": "x"}']

    done, looked = lake_command(*words), lake_command(*words, "--dry-run")

    assert (done.code, "the setting database is missing" in done.err, looked.code) == (3, True, 0)
    assert table.item()["Head"] == before


def test_a_held_lease_and_denied_access_have_their_exit_codes(
    past_world: PastWorld, lake_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 and 3, as those of every command: a program may try the first again, and not the second."""
    table = past_world.loaded()
    path, before = str(table.path), table.item()["Head"]
    lease = take_lease(table.state_table, Deadline(), table.item(), "other", 2.0, lambda: 1, time.sleep)
    try:
        held = lake_command("update", path, "--row", '{"id": 1, "name": "x"}')
    finally:
        lease.release()
    answer = {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}

    def denied(*_: object) -> None:
        raise ClientError(answer, "PutObject")  # type: ignore[arg-type]

    monkeypatch.setattr("glue_jobs.protocol.commit.write_record", denied)
    refused = lake_command("update", path, "--row", '{"id": 1, "name": "x"}')

    assert (held.code, refused.code, table.item()["Head"]) == (4, 3, before)
    assert f"another run works on {path}" in held.err
    assert ("PutObject" in refused.err, '"phase"' in refused.err) == (True, False)


def test_a_defect_of_ours_leaves_its_trace(past_world: PastWorld, lake_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a command's run no log is kept; what ended it is printed, or nobody could mend it."""
    table = past_world.loaded()
    before = table.item()["Head"]
    monkeypatch.setattr("glue_jobs.protocol.commit.write_record", lambda *_: 1 / 0)

    done = lake_command("update", str(table.path), "--row", '{"id": 1, "name": "x"}')

    assert (done.code, table.item()["Head"]) == (1, before)
    assert ("ZeroDivisionError" in done.err, '"trace"' in done.err) == (True, True)


@pytest.mark.parametrize("words", [(), ("--output", "json")])
def test_made_up_rows_obey_nobody(
    kept_history: LakeTable, kept_command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """What a terminal would obey is spelled out, in lines as in a document, and reads back as it was."""
    forged = "a\x9b31m\u202egnp.exe\u2028b"
    monkeypatch.setattr("glue_jobs.spark.fake_rows.fake_rows", lambda *_: pa.table({"id": [1], "name": [forged]}))

    out = kept_command("fake", str(kept_history.path), "--rows", "1", *words).out

    assert all(line.isprintable() for line in out.split("\n"))
    assert (json.loads(out)["rows"][0] if words else json.loads(out)) == {"id": 1, "name": forged}


def test_the_run_is_told_the_edit() -> None:
    """As arguments of one run of the job Apply; rows of this machine go to no job."""
    edit = RowsGiven("s3://bucket/r.csv").check().on(RowEdit("update", "", True, True), "glue")

    (run,) = edit_run(read_state(item_of(table_path())), edit).runs

    assert (run.job, run.paths) == (APPLY, (str(table_path()),))
    assert read_row_edit(parse_arguments(job_arguments(Settings(), run, "run-1"))) == edit
    assert RowsGiven("r.csv").on(edit, "").rows == str(Path.cwd() / "r.csv")
    with pytest.raises(UsageError):
        RowsGiven("r.csv").on(edit, "glue")
