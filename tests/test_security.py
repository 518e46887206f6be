"""Names, values and texts that come from others: they stay text, in keys, expressions, logs and terminals; and secrets stay unsaid."""

from __future__ import annotations

import ast
import io
import itertools
import json
import posixpath
import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from controller.cli.output import Answer, JsonOutput, TextOutput, View
from controller.cli.progress import LineProgress
from controller.host import json_log
from controller.main import print_line
from controller.plan import PlannedRun
from controller.raw_scope import RawScope, is_table_name
from controller.runners import GlueRunner, job_arguments
from glue_jobs.aws.clients import Clients, make_clients
from glue_jobs.aws.conditional import Write
from glue_jobs.core.errors import DmslakeError, UsageError
from glue_jobs.core.paths import S3Uri, TablePath, changes_folder, lake_folder
from glue_jobs.core.printable import error_lines, json_text, printable
from glue_jobs.core.settings import Settings
from glue_jobs.core.state import default_item, read_state
from glue_jobs.protocol.job_log import JobLog
from infra.local.capture.errors import CaptureError
from infra.local.capture.source import Source
from infra.local.dms_files import DmsRow
from infra.local.embedded import EmbeddedAws
from tests.controller.past_world import Command, PastWorld, command, make_world
from tests.work_tables import IN_PROCESS, MakeTable

ROOT = Path(__file__).parent.parent
# What changes the folder, for S3 or for a program that copies it.
TRICKS = ["..", ".", "../up", "a/../../b", "./a", "a/./b", "a//b", "", "x\ny", "x\x00", "x\x1b[2J", "x\x9b2J", "x\x7f"]
# What is only a name, however it looks.
NAMES = [
    "%2e%2e", "..%2f", "a?b", "#path", ":v0", "'; DROP TABLE x; --", "-rf", "--purge", "\u202etxt.exe", "$(id)", "`id`", "{0}", "...", "*",
]  # fmt: skip
# One line and one terminal each: a line break by five characters, and what moves, sets, turns.
FORGERIES = [
    "\n", "\r", "\x85", "\u2028", "\u2029", "\x1b[2J\x1b[H", "\x9b31m", "\x1b]0;title\x07", "\x08", "\u202e", "\u2066", "\x00", "\udc80",
]  # fmt: skip
FORGED = "orders" + "".join(f"{each}forged: all is well" for each in FORGERIES)


# --- folders


def folders_of(path: TablePath) -> list[S3Uri]:
    lake = lake_folder("s3://lake/tables/", path)
    return [path.raw, lake, changes_folder(lake)]


@pytest.mark.parametrize("name", TRICKS)
def test_a_name_that_means_another_folder_is_refused(name: str) -> None:
    """As table, schema, prefix, out_path, raw and lake, and where a folder of that name is found."""
    for text in (f"raw/dms/shop/{name}/", f"raw/dms/{name}/orders", f"raw/{name}/shop/orders"):
        if name:
            with pytest.raises(UsageError):
                TablePath.parse(text)
    assert not is_table_name(name)
    path = TablePath("raw", "dms/shop/", "orders/")
    for text in (f"s3://lake/{name}/shop/orders/", f"s3://lake/tables/shop/{name}/"):
        if "//" in text:
            continue  # S3's own console writes such keys, and DMS does
        with pytest.raises(UsageError):
            RawScope.parse(text)
        with pytest.raises(DmslakeError) as caught:
            read_state({**default_item(path, ""), "out_path": text})
        assert caught.value.code == "bad-attribute"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_its_own_folder_whatever_it_looks_like(name: str) -> None:
    """No program that tidies paths up comes to another one, and no two names come to one."""
    path = TablePath.parse(f"raw/dms/shop/{name}")

    assert (path.table, path.schema) == (name, "shop")
    for folder in folders_of(path):
        assert posixpath.normpath(f"/{folder.key}") == f"/{folder.key}".rstrip("/")
        assert folder.key.endswith(f"/{name}/")
    other = TablePath.parse("raw/dms/shop/orders")
    assert not any(a.key.startswith(b.key) or b.key.startswith(a.key) for a, b in zip(folders_of(path), folders_of(other), strict=True))


def test_columns_and_values_leave_no_folder(new_table: MakeTable) -> None:
    """Partition columns and values with path tricks, columns with the words of expressions: all as they are, below the table's folder."""
    columns = pa.schema([("id", pa.int64()), ("../../up", pa.string()), ("'; DROP TABLE x; --", pa.string()), ("#n0 = :v0", pa.string())])
    table = new_table(columns, partition_key="../../up")
    rows = [
        (number, value, value, value)
        for number, value in enumerate(["..", "../../../other/shop/", "/", "a=b/c", "%2e%2e%2f", "x\ny\x1b[2J"])
    ]
    table.load(rows[:3])
    table.sync()
    table.cdc([("I", row) for row in rows[3:]])
    table.sync()

    assert table.rows() == sorted(rows, key=repr)
    listed = table.clients.s3.list_objects_v2(Bucket=table.out_path.bucket)["Contents"]
    keys = [entry["Key"] for entry in listed if table.table in entry["Key"]]
    assert all(posixpath.normpath(f"/{key}") == f"/{key}" for key in keys)
    assert all(key.startswith((table.out_path.key, changes_folder(table.out_path).key)) for key in keys)
    assert {path.count("/") for path in table.visible()} == {1}


# --- expressions


def sources(word: str, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """(path, module) of the program's files that hold the word."""
    for source in sorted(itertools.chain.from_iterable((ROOT / folder).rglob("*.py") for folder in folders)):
        text = source.read_text("utf-8")
        if word in text:
            yield source.relative_to(ROOT).as_posix(), ast.parse(text)


def expressions(tree: ast.Module) -> Iterator[ast.expr]:
    """What is given as …Expression to AWS: as keyword, in a dictionary, or set in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and (node.arg or "").endswith("Expression"):
            yield node.value
        if isinstance(node, ast.Dict):
            yield from (value for key, value in zip(node.keys, node.values, strict=True) if is_expression_name(key))
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Subscript) and is_expression_name(to.slice) for to in node.targets):
            yield node.value


def is_expression_name(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith("Expression")


BUILDER = "glue_jobs/aws/conditional.py"


def test_only_one_place_puts_expressions_together() -> None:
    """Everywhere else they are literals, so that no name or value can become part of one."""
    found = {
        name: [node for node in expressions(tree) if not isinstance(node, ast.Constant)]
        for name, tree in sources("Expression", "glue_jobs", "controller", "infra")
    }

    assert [name for name, made in found.items() if made] == [BUILDER]
    assert list(expressions(ast.parse("f(FilterExpression=f'{x} = 1')\nd['KeyConditionExpression'] = x\n{'UpdateExpression': x}"))) != []


WORDS = r"SET|REMOVE|AND|OR|=|\(|\)|,|attribute_exists|attribute_not_exists|#n\d+|:v\d+"


def test_that_place_puts_no_name_and_no_value_into_them() -> None:
    """Names and values travel beside the expression; a name that looks like a placeholder is one more name."""
    write = Write("x").require_item()
    for name in (*NAMES, "#n0", ":v0", "path"):
        write.require(name, name, name).require(f"{name} is absent", name, None).set({name: name}).remove([name])
    request = write.request("t")

    text = f"{request['UpdateExpression']} {request['ConditionExpression']}"
    assert re.sub(WORDS, "", text).strip() == ""
    assert set(request["ExpressionAttributeNames"].values()) == {*NAMES, "#n0", ":v0", "path"}
    assert {"S": NAMES[0]} in request["ExpressionAttributeValues"].values()
    assert set(re.findall(r"#n\d+", text)) == set(request["ExpressionAttributeNames"])


# --- lines


def is_harmless(text: str) -> bool:
    """One line that obeys nobody."""
    kinds = {unicodedata.category(char) for char in text.rstrip("\n")}
    return len(text.splitlines()) == 1 and not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_nothing_in_a_log_line_or_report_begins_another(capsys: pytest.CaptureFixture[str]) -> None:
    """In keys and values of the jobs' and the controller's logs, and in the report's lines; all of it can be read back."""
    log, host, now = io.StringIO(), io.StringIO(), datetime(2024, 5, 1, tzinfo=timezone.utc)
    JobLog("run", lambda: now, log, FORGED).event(FORGED, **{FORGED: FORGED})
    json_log(host)(FORGED, {FORGED: [FORGED]})
    print_line({FORGED: {FORGED: FORGED}})

    lines = [log.getvalue(), host.getvalue(), capsys.readouterr().out]
    assert [is_harmless(line) for line in lines] == [True, True, True]
    assert [FORGED in str(json.loads(line)) or json.loads(line).get(FORGED) is not None for line in lines] == [True, True, True]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_that_is_shown_moves_a_cursor_or_begins_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables, lines and titles on a terminal and in a pipe, JSON, progress, errors."""
    view = View(("name", FORGED), [(FORGED, "1")])
    piped, terminal, progress = io.StringIO(), Terminal(), io.StringIO()
    TextOutput(piped).show(Answer({}, [view], [FORGED], [FORGED]))
    TextOutput(terminal).show(Answer({}, [View(("name",), [(FORGED.replace("\n", ""),)])]))
    JsonOutput().show(Answer({FORGED: FORGED}))
    say = LineProgress(progress)
    say("output", {"line": FORGED})
    say("run-ended", {"job": FORGED, "run": FORGED, "tables": [FORGED], "message": FORGED})
    error = error_lines(DmslakeError(FORGED, "code", FORGED))

    assert [is_harmless(line) for line in piped.getvalue().split("\n")[:-1]] == [True] * 4
    assert all(is_harmless(re.sub(r"\x1b\[\d*m", "", line)) for line in terminal.getvalue().split("\n")[:-1]), "but for its own bold heads"
    document = capsys.readouterr().out
    assert ([is_harmless(line) for line in document.split("\n")[:-1]], json.loads(document)) == ([True] * 3, {FORGED: FORGED})
    assert [is_harmless(line) for line in (*progress.getvalue().split("\n")[:-1], *error)] == [True] * 4


@pytest.mark.parametrize("text", ["Größe", "日本\u3000語", "a\xa0b", "👨\u200d👩\u200d👧", "naïve~", "می\u200cخواهم"])
def test_what_people_write_is_shown_as_it_is(text: str) -> None:
    """Only what obeys nobody is left alone, and that is nearly all."""
    assert (printable(text), json_text(text)) == (text, f'"{text}"')


def test_commands_print_by_the_one_place_that_makes_text_safe() -> None:
    """local hands on lines of others through it, __init__ says that a package is missing."""
    calls = [
        (name, ast.unparse(node.func))
        for name, tree in sources("(", "controller/cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]
    printing = {name for name, called in calls if called in ("click.echo", "click.secho", "print")}

    assert {posixpath.basename(name) for name in printing} == {"output.py", "local.py", "__init__.py", "progress.py"}


# --- on the whole way


@pytest.fixture(scope="module")
def world(embedded_aws: EmbeddedAws) -> PastWorld:
    clients: Clients = make_clients(embedded_aws.environment())
    return make_world(embedded_aws, clients)


@pytest.fixture
def run(world: PastWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(world, capsys, monkeypatch)


def test_a_raw_file_s_name_and_a_person_s_words_are_shown_as_text(world: PastWorld, run: Command) -> None:
    """Of the file that blocks a table, and of the reasons of a pause and a block: as many lines as with harmless ones."""
    shown = {}
    for word in ("harmless", FORGED.replace("\x00", "").replace("\udc80", "")):
        table, paused = world.table(), world.table()
        table.put_raw(f"{word}.parquet".replace("\n", ""), b"x")  # moto's addresses hold no line break
        paused.edit(Paused=word, Blocked=word)
        done = [run(*words, str(table.path), str(paused.path)) for words in (["plan"], ["status"], ["plan", "--output", "json"])]
        shown[word] = [line for each in done for line in (each.out + each.err).split("\n")[:-1]]

    harmless, forged = shown.values()
    assert [line for line in forged if line and not is_harmless(line)] == []
    assert (len(forged), any("all is well" in line for line in forged)) == (len(harmless), True)


def test_row_values_are_in_no_log_report_or_item(world: PastWorld, run: Command) -> None:
    """Of columns that are no key: a load, an update and a delete, with everything that runs and commands say of them."""
    table = world.table()
    table.load([(1, "marker-one"), (2, "marker-two")])
    table.cdc([("U", (1, "marker-three")), ("D", (2, "marker-two")), ("I", (4, "marker-four"))])

    done = [run(*words, str(table.path), "--output", "json") for words in (["run"], ["status"], ["history"], ["verify"])]

    assert ([each.code for each in done], table.rows()) == ([0] * 4, [(1, "marker-three"), (4, "marker-four")])
    folder = changes_folder(table.out_path)
    listed = table.clients.s3.list_objects_v2(Bucket=folder.bucket, Prefix=folder.key)["Contents"]
    beside = [table.clients.s3.get_object(Bucket=folder.bucket, Key=entry["Key"])["Body"].read() for entry in listed]
    said = [*itertools.chain.from_iterable((each.out, each.err) for each in done), json.dumps(table.item(), default=str), str(beside)]
    assert [text for text in said if "marker-" in text] == []
    assert '"phase": "committed"' in done[0].err, "the jobs' logs are among what was looked through"


def test_a_run_is_started_with_paths_and_an_id(in_process: Clients) -> None:
    """No credential of the environment and no setting travels as an argument, on Glue or to a process here, which may be listed."""
    settings = Settings(raw="s3://raw/dms/", lake="s3://lake/lake/", database="lake")
    run, started = PlannedRun("LoadInitial", ("raw/dms/shop/orders/",)), list[str]()
    in_process.glue.create_job(Name="LoadInitial", Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://x/y.py"})
    in_process.glue.meta.events.register("before-send.glue.StartJobRun", lambda request, **_: started.append(request.body.decode()))

    GlueRunner(in_process.glue, settings).start(run, "run-1")

    assert [json.loads(body)["Arguments"] for body in started] == [{"--path": run.paths[0], "--run_id": "run-1"}]
    local = job_arguments(settings, run, "run-1")
    assert {word.split("=")[0] for word in local} <= {"--path", "--run_id", "--lake", "--state_table", "--database", "--compression"}
    assert [word for word in local if any(value in word for name, value in IN_PROCESS.items() if "KEY" in name)] == []


def test_a_value_in_a_message_is_cut(new_table: MakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    """What blocks a table is shown, so that a person finds it; not all of it, so that no item or log line grows with it."""
    table = new_table()
    empty = [None] * (len(table.columns) - 1)
    table.put_raw("LOAD00000001.parquet", table.parquet([DmsRow("V" * 100_000, (1, *empty))]))

    assert table.run("LoadInitial") == 1

    assert table.item()["LastRun"]["error"]["code"] == "bad-operation"
    assert len(json.dumps(table.item(), default=str)) < 8_000
    assert max(map(len, capsys.readouterr().err.splitlines())) < 8_000


# --- secrets

SECRET = "tr0ub4dor"


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://user:{SECRET}@host:port/shop",
        f"mysql://user:{SECRET}@host",
        f"mysql://user:{SECRET}",
        f"mysql:/user:{SECRET}@host/shop",
        f"user:{SECRET}@host/shop",
        f"postgres://user:{SECRET}@host/shop",
        f"mysql://user:a@{SECRET}@host/",
        f"mysql://user:a/{SECRET}@host/shop",
        f"mysql://user@host/shop?password={SECRET}",
        f"mysql://user:{SECRET}@127.0.0.1:9/shop",
    ],
)
def test_a_password_is_in_no_error_of_capture(url: str) -> None:
    """However the address is spelled wrong, and where nobody listens there."""
    with pytest.raises(CaptureError) as caught:
        Source.from_url(url).connect()

    assert SECRET not in f"{caught.value!r}{caught.value}"
    assert SECRET not in repr(Source({"password": SECRET}, "shop"))
