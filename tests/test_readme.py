"""The documents: every command in them is run, every table that the code knows better is compared with it.

Not run as they stand, but checked otherwise:
- `make …`: `make -n` must know the target (CI runs `make test` itself), and the demo has its own test;
- `python3.11 -m venv`, `pip install`: the extras they name must exist; `.venv/bin/…` must be a command of ours or pytest;
- SQL for Athena and Redshift: compared with the catalog table, its SELECTs run on DuckDB;
- docs/capture.md needs a MariaDB: tests/database runs it;
- docs/spark-submit.md needs a Spark without dmslake: tests/runtimes runs it.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from controller.cli.entry import cli
from controller.report import RESTS, SEVERITY
from glue_jobs.core.schema import ARROW_TO_LAKE, lake_type
from glue_jobs.core.state import PERSON_ATTRIBUTES, REQUESTS
from infra.local.demo import TRY_NEXT
from infra.local.session import embedded_client
from tests import doc_tables
from tests.document_shell import ROOT, Block, DocumentShell, blocks
from tests.runtimes.spark_runtime import QUICK_JVM

README = ROOT / "README.md"
OPERATIONS = ROOT / "docs" / "operations.md"
UNDO = ROOT / "docs" / "undo.md"
PAST = ROOT / "docs" / "past.md"
ADOPT = ROOT / "docs" / "adopt.md"
STAGE = ROOT / "docs" / "stage.md"
ERASE = ROOT / "docs" / "erase.md"
CORRECT = ROOT / "docs" / "correct.md"
FORGET = ROOT / "docs" / "forget.md"
SNAPSHOT = ROOT / "docs" / "snapshot.md"
FEED = ROOT / "docs" / "feed.md"
DMS_FEED = ROOT / "docs" / "dms-feed.md"
ROWS = ROOT / "docs" / "rows.md"
HISTORY = ROOT / "docs" / "history.md"
REPORT = ROOT / "docs" / "report.md"
SET_UP = ("make ", "python3.11 -m venv", ".venv/bin/")
RUN_HERE = {README, OPERATIONS, UNDO, PAST, ADOPT, STAGE, CORRECT, ERASE, FORGET, SNAPSHOT, FEED, DMS_FEED, ROWS, HISTORY, REPORT}
RUN_ELSEWHERE = {ROOT / "docs" / "capture.md", ROOT / "docs" / "spark-submit.md", ROOT / "benchmarks" / "README.md"}


def document_name(document: Path) -> str:
    """As a test's name has it."""
    return str(document.relative_to(ROOT))


def is_set_up(block: Block) -> bool:
    """Whether the block installs dmslake: checked otherwise."""
    return block.language == "sh" and all(line.startswith(SET_UP) for line in block.lines)


def sh_lines(document: Path) -> list[str]:
    """All lines of its sh blocks, continued ones joined."""
    return [
        line for block in blocks(document) if block.language == "sh" for line in "\n".join(block.lines).replace("\\\n", " ").split("\n")
    ]


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """A shell with the virtual environment and nothing of AWS, Java or dmslake."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", **QUICK_JVM}


@pytest.fixture
def shell(tmp_path: Path, variables: dict[str, str]) -> Iterator[DocumentShell]:
    """A reader's shell in an empty folder."""
    shell = DocumentShell(tmp_path, variables)
    yield shell
    shell.close()


def test_readme_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every sh and python block succeeds; the two queries agree; the SQL for AWS fits the catalog and the files."""
    printed = {}
    for block in blocks(README):
        if block.language in ("sh", "python") and not is_set_up(block):
            printed[block.text] = shell.run(block)

    text = "\n".join(printed.values())
    url = re.search(r"AWS_ENDPOINT_URL=(\S+)", text)
    spark, duck = (printed[block.text] for block in blocks(README) if block.language == "python")
    assert "exit code 1" in text
    assert figures(spark) == figures(duck) != {}
    assert url is not None
    assert_sql_fits(url[1], shell.folder)
    assert codecs(url[1]) == {"ZSTD", "SNAPPY"}


def figures(table: str) -> dict[str, set[str]]:
    """Status → the numbers beside it, from a printed table."""
    rows = (re.findall(r"[\w.]+", line) for line in table.splitlines())
    return {row[0]: set(row[1:]) for row in rows if row[:1] in (["new"], ["shipped"])}


def assert_sql_fits(endpoint_url: str, folder: Path) -> None:
    """The tables that the SQL names are in the catalog with the columns of the files, and DuckDB runs the SELECTs."""
    catalog = embedded_client("glue", endpoint_url).get_table(DatabaseName="dmslake", Name="shop_orders")["Table"]
    columns = [column["Name"] for column in [*catalog["StorageDescriptor"]["Columns"], *catalog["PartitionKeys"]]]
    database = duckdb.connect()
    files = f"read_parquet('{folder}/orders/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    for schema in ("dmslake", "lake"):
        database.execute(f"CREATE SCHEMA {schema}; CREATE VIEW {schema}.shop_orders AS SELECT {', '.join(columns)} FROM {files}")
    found = {block.mark: selects(block) for block in blocks(README) if block.language == "sql"}
    answers = [sorted(database.sql(query).fetchall()) for queries in found.values() for query in queries]

    assert set(found) == {"athena", "redshift"}
    assert len(answers) == 2
    assert answers[0] == answers[1] != []


def codecs(endpoint_url: str) -> set[str]:
    """The compression of the data files of orders that a reader sees."""
    s3 = embedded_client("s3", endpoint_url)
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket="dmslake-lake", Prefix="lake/shop/orders/")["Contents"]]
    files = [io.BytesIO(s3.get_object(Bucket="dmslake-lake", Key=key)["Body"].read()) for key in keys]
    return {pq.ParquetFile(file).metadata.row_group(0).column(0).compression for file in files}


def selects(block: Block) -> list[str]:
    """The SELECT statements; any other must be the external schema of Redshift."""
    statements = [part.strip() for part in block.text.split(";") if part.strip()]
    others = [part for part in statements if not part.startswith("SELECT")]
    assert others in ([], ["CREATE EXTERNAL SCHEMA lake FROM DATA CATALOG DATABASE 'dmslake' IAM_ROLE default"])
    return [part for part in statements if part not in others]


def test_operations_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/operations.md succeeds, and the lake has what they say."""
    printed = "\n".join(shell.run(block) for block in blocks(OPERATIONS) if block.language == "sh")
    state = shell.run(Block("sh", "", "dmslake schema shop.orders; dmslake status --check"))

    assert "exit code 1" in printed
    assert re.search(r"reload\s+committed", printed)
    assert re.search(r"repartition\s+committed", printed)
    assert re.search(r"^state +string", state, re.MULTILINE)


def test_undo_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/undo.md and, on its tables, of past.md, report.md and stage.md succeeds; nothing is undone after the first,
    and verify finds nothing."""
    undone = "\n".join(shell.run(block) for block in blocks(UNDO) if block.language == "sh")
    end = shell.run(Block("sh", "", "dmslake verify shop.orders shop.stores; dmslake history shop.orders --output json"))
    assert "exit code 5" in undone
    assert [change["kind"] for change in json.loads(end[end.index("{") :])["changes"]][:2] == ["reapply", "rollback"]

    looked = {block.text: shell.run(block) for block in blocks(PAST) if block.language in ("sh", "python")}
    printed = "\n".join(looked.values())
    assert "(--limit); change " in printed
    assert re.search(r"^count +sum\(amount\)$", printed, re.MULTILINE)
    assert re.search(r"^rows +[\d,]+ → [\d,]+: ", printed, re.MULTILINE)
    assert re.search(r"LOAD\d+\.parquet, row 1179", printed)
    assert "'_change_type': 'insert'" in printed

    reported = "\n".join(shell.run(block) for block in blocks(REPORT) if block.language == "sh")
    assert re.search(r"^report\.html: \d+ table\(s\), [1-9]\d* change\(s\), ", reported, re.MULTILINE)
    assert "s3://dmslake-lake/reports/today.html: " in reported
    assert "<ins>" in (shell.folder / "report.html").read_text("utf-8")

    staged = "\n".join(shell.run(block) for block in blocks(STAGE) if block.language == "sh")
    assert "staged: it waits for a person" in staged
    assert re.search(r"^[^\n]*,_change_type$", staged, re.MULTILINE)
    assert "is committed as change" in staged
    assert re.search(r"is discarded; [1-9]\d* upload", staged)


def test_erase_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/erase.md succeeds on the shop as docs/undo.md begins it, and the past says what was erased."""
    for block in [block for block in blocks(UNDO) if block.language == "sh"][:2]:
        shell.run(block)

    erased = {block.text: shell.run(block) for block in blocks(ERASE) if block.language == "sh"}
    text = "\n".join(erased.values())
    assert re.search(r"^versions +[1-9]\d* removed for good", text, re.MULTILINE)
    assert "exit code 1" in text
    assert "not known (version-erased)" in text
    assert "0 erased version(s) left to remove" in text


def test_correct_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/correct.md and, on its tables, of history.md and forget.md succeeds, and verify finds nothing."""
    for block in [block for block in blocks(UNDO) if block.language == "sh"][:2]:
        shell.run(block)

    corrected = "\n".join(shell.run(block) for block in blocks(CORRECT) if block.language in ("sh", "python"))
    assert re.search(r"^not found +1 key\(s\): 999$", corrected, re.MULTILINE)
    assert re.search(r"^rows matched +[1-9]\d* before, [1-9]\d* after$", corrected, re.MULTILINE)
    assert re.search(r"^rows +[\d,]+ → [\d,]+: 0 inserted, [1-9]\d* updated, 0 deleted$", corrected, re.MULTILINE)
    assert "corrected by change 0" in corrected
    assert "0 difference(s)" in corrected

    kept = "\n".join(shell.run(block) for block in blocks(HISTORY) if block.language in ("sh", "python"))
    assert re.search(r"\bhistory +committed", kept)
    assert re.search(r"^changes +[1-9]", kept, re.MULTILINE)
    assert re.search(r"^[1-9]\d* of [1-9]\d* versions are valid now$", kept, re.MULTILINE)
    assert "0 difference(s)" in kept

    forgotten = {block.text: shell.run(block) for block in blocks(FORGET) if block.language == "sh"}
    first, back, _, whole = forgotten.values()
    said = [line for line in first.partition("to have it back:\n")[2].splitlines() if line.startswith("  ")][:3]
    written = "\n".join(list(forgotten)[1].splitlines()[:-2]).replace("$DMSLAKE_STATE_TABLE", "DMSCDC_Controller")
    assert shell_words("\n".join(said)) == shell_words(written) != []
    assert "0 difference(s)" in back
    assert "0 difference(s)" in whole


def shell_words(text: str) -> list[object]:
    """The words of commands, JSON among them as what it says."""
    return [json.loads(word) if word.startswith("{") else word for word in shlex.split(text)]


def test_adopt_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/adopt.md succeeds; the adopted table goes on, and verify finds nothing."""
    printed = {block.text: shell.run(block) for block in blocks(ADOPT) if block.language in ("sh", "python")}
    end = shell.run(Block("sh", "", "dmslake verify; dmslake history shop.stores --output json"))

    text = "\n".join(printed.values())
    assert re.search(r"^left out +Op$", text, re.MULTILINE)
    assert re.search(r"^20231 +1\.5 +2023$", text, re.MULTILINE)
    assert [change["kind"] for change in json.loads(end[end.index("{") :])["changes"]] == ["incremental", "adopt"]


def test_feed_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/feed.md succeeds; the lake has what the feed says, and the difference has both versions' changes."""
    text = "\n".join(shell.run(block) for block in blocks(FEED) if block.language in ("sh", "python"))

    assert re.search(r"^\d+ rows, all as expected$", text, re.MULTILINE)
    assert re.search(r"^rows +50 updates, 1 deletes$", text, re.MULTILINE)
    assert len(re.findall(r"^difference/\d{4}/\d{1,2}/\d{1,2}/\d{8}_\d{6}\.parquet$", text, re.MULTILINE)) == 2


def test_dms_feed_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/dms-feed.md succeeds; the lakes have what the feeds say."""
    text = "\n".join(shell.run(block) for block in blocks(DMS_FEED) if block.language in ("sh", "python"))

    assert re.search(r"^\d+ rows, all as they must be$", text, re.MULTILINE)
    assert "0 difference(s)" in text


def test_rows_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/rows.md succeeds, and the rows in its picture are those that are read."""
    text = "\n".join(shell.run(block) for block in blocks(ROWS) if block.language in ("sh", "python"))

    assert re.search(r"^id +name +price\n *2 +Ink +4\.20\n *3 +Cap +NULL$", text, re.MULTILINE)
    assert "exit code 2" in text
    assert "exit code 1" in text
    assert re.search(r"^rows +200 inserted$", text, re.MULTILINE)
    assert "deleted by change 0" in text
    assert "2 table(s), 0 difference(s)" in text


def test_snapshot_from_top_to_bottom(shell: DocumentShell) -> None:
    """Every command of docs/snapshot.md succeeds, and its picture is what a reader of the Glue table gets."""
    printed = "\n".join(shell.run(block) for block in blocks(SNAPSHOT) if block.language in ("sh", "python"))
    picture = next(block.text for block in blocks(SNAPSHOT) if block.language == "text" and block.text.startswith("id "))

    drawn = [line.partition("   not changed")[0].split() for line in picture.splitlines()[1:]]
    assert [line.split() for line in printed.splitlines() if re.match(r"[13] 2024-05-01 ", line)] == drawn
    assert "1 CDC file(s), 1 of other days do not count" in printed
    assert "exit code 1" in printed
    assert "'cost' (double) is missing, 'price' (decimal(10,2)) is not expected, 'id' is bigint, expected int" in printed
    assert re.search(r"^mode +incremental, on the version", printed, re.MULTILINE)
    assert re.findall(r"^(2024-01-0\d)\t", printed, re.MULTILINE) == ["2024-01-02", "2024-01-03"]


def test_set_up_lines_are_what_there_is(variables: dict[str, str]) -> None:
    """make knows the targets, setup.py the extras, and .venv/bin the commands."""
    lines = [line for block in blocks(README) if is_set_up(block) for line in block.lines]
    makes = [line for line in lines if line.startswith("make ")]
    dry = [
        subprocess.run([*shlex.split(line), "-n"], cwd=ROOT, env=variables, capture_output=True, text=True, check=True) for line in makes
    ]
    extras = set(re.findall(r"'\.\[(\w+)\]'", "\n".join(lines)))
    commands = {Path(shlex.split(line)[0]).name for line in lines if line.startswith(".venv/bin/")}

    assert [run.stdout.strip().splitlines()[-1] for run in dry] == [
        ".venv/bin/dmslake demo",
        ".venv/bin/python -m pytest -n 2 --dist loadgroup",
    ]
    assert extras == {"local", "dev"}
    assert all(f'"{extra}": {extra.upper()}' in (ROOT / "setup.py").read_text() for extra in extras)
    assert commands == {"pip", "dmslake", "python"}


@pytest.mark.parametrize("document", doc_tables.documents(), ids=document_name)
def test_document_has_no_command_that_is_not_run(document: Path) -> None:
    """A document with sh blocks is among those that are run, and dmslake commands in its text exist."""
    text = document.read_text("utf-8")
    named = set(re.findall(r"`dmslake ([a-z][a-z-]*)", text)) | {
        match for line in sh_lines(document) for match in re.findall(r"^dmslake (\w[\w-]*)", line)
    }

    assert not sh_lines(document) or document in RUN_HERE | RUN_ELSEWHERE
    assert named <= set(cli.commands)


@pytest.mark.parametrize("document", doc_tables.documents(), ids=document_name)
def test_tables_made_from_the_code_are_fresh(document: Path) -> None:
    """`python -m tests.doc_tables` would change nothing."""
    text = document.read_text("utf-8")

    assert doc_tables.with_tables(text) == text


def test_every_table_of_the_code_is_in_a_document() -> None:
    """Settings, limits and types are documented somewhere."""
    marked = {match for document in doc_tables.documents() for match in re.findall(r"<!-- (\w+): begin", document.read_text("utf-8"))}

    assert marked == set(doc_tables.TABLES)


@pytest.mark.parametrize("document", doc_tables.documents(), ids=document_name)
def test_links_lead_somewhere(document: Path) -> None:
    """Files that a document links to are there, and so are headings."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text("utf-8")):
        file = (document.parent / target).resolve() if target else document
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), anchor


def anchors(document: Path) -> set[str]:
    """What GitHub calls a document's headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_has_every_attribute_of_an_item() -> None:
    """The attributes that a person may set, that the program writes, and the requests that exist."""
    table = README.read_text("utf-8").split("## A table's item")[1].split("## Limits")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))))

    assert named == {*PERSON_ATTRIBUTES, *written_attributes()}
    assert all(f"`{request}" in table for request in REQUESTS)


def written_attributes() -> set[str]:
    """The attribute names in core.state, through which every item is read: its strings that are spelled like one."""
    words = set(strings(ROOT / "glue_jobs" / "core" / "state.py"))
    return {word for word in words if re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)*|out_path|path|bucket|prefix|folder", word)}


def strings(source: Path) -> Iterator[str]:
    """The string constants of a Python file, docstrings aside."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_error_code_is_documented() -> None:
    """The codes in the source and those in docs/operations.md are the same."""
    documented = set(re.findall(r"`([a-z0-9-]+)`", "\n".join(line.split("|")[1] for line in error_rows())))

    assert documented == error_codes()


def error_rows() -> list[str]:
    """The lines of the tables below the heading Errors."""
    return [line for line in OPERATIONS.read_text("utf-8").split("## Errors")[1].splitlines() if line.startswith("| `")]


CODE_FIRST = frozenset("blocked Problem BlockedBy _clash _refused".split())
CODE_SECOND = frozenset(
    "damage_named RetryLater LeaseHeld LeaseLost CommitRefused NoAnswerYet TableBlocked UsageError ConfigurationError DmslakeError"
    " UploadsGone".split()
)


def error_codes() -> set[str]:
    """The constants in the source that stand where an error's code stands."""
    codes: set[str] = set()
    for folder in ("glue_jobs", "controller"):
        for source in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(source.read_text("utf-8"))
            named = constants(tree)
            for node in ast.walk(tree):
                codes |= codes_of(node, named)
    return codes


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The names that a file gives to values of its own."""
    return {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}


def codes_of(node: ast.AST, named: Mapping[str, ast.expr]) -> set[str]:
    """The codes in a call that makes an error, and in the table of (code, what to do). named: the file's constants."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        place = 0 if name in CODE_FIRST else 1 if name in CODE_SECOND else len(node.args)
        found += [part for argument in node.args[place : place + 1] for part in alternatives(argument)]
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_MISSING" and isinstance(node.value, ast.Dict):
        found += [value.elts[0] for value in node.value.values if isinstance(value, ast.Tuple)]
    values = [named.get(part.id, part) if isinstance(part, ast.Name) else part for part in found]
    return {part.value for part in values if isinstance(part, ast.Constant) and is_code(part.value)}


def alternatives(node: ast.expr) -> list[ast.expr]:
    """The expression, or both branches of a conditional one."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def is_code(value: object) -> bool:
    """Codes are short words with hyphens."""
    return isinstance(value, str) and re.fullmatch(r"[a-z]+[a-z0-9]*(-[a-z0-9]+)*", value) is not None


def test_every_word_of_status_plan_and_run_is_explained() -> None:
    """The words that the code has for a table, and those in the table of docs/operations.md, are the same, command by command."""
    table = OPERATIONS.read_text("utf-8").split("### The words")[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    explained = {
        command: {word for row in rows if command in row[2] for word in re.findall(r"`([a-z-]+)`", row[1])}
        for command in ("status", "plan", "run")
    }
    rests = first_words("Rest") | {"blocked", "error"}
    plans = said_in("controller/plan.py", "_in_words") | first_words("Rewrite") | rests

    assert explained["status"] == said_in("controller/status.py", "_word") | rests
    assert explained["plan"] == plans
    assert explained["run"] == {*SEVERITY, *RESTS.values()}


def first_words(action: str) -> set[str]:
    """The first argument of each call in the jobs' code that makes that action."""
    calls = [
        node for source in (ROOT / "glue_jobs").rglob("*.py") for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == action
    ]  # fmt: skip
    return {str(ast.literal_eval(node.args[0])) for node in calls}


def said_in(source: str, function: str) -> set[str]:
    """The constants that a function returns, or has as the value of `action`; names of functions and attributes are none."""
    tree = ast.parse((ROOT / source).read_text("utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    answers = [node.value for node in ast.walk(found) if isinstance(node, ast.Return) and node.value]
    spoken = [
        value for answer in answers if isinstance(answer, ast.Dict)
        for key, value in zip(answer.keys, answer.values, strict=True) if isinstance(key, ast.Constant) and key.value == "action"
    ]  # fmt: skip
    words = [part for answer in [*answers, *spoken] for part in alternatives(answer)]
    return {part.value for part in words if isinstance(part, ast.Constant) and is_code(part.value)}


def test_types_page_agrees_with_the_code() -> None:
    """The kinds with parameters, which no table of the code lists, are as the page says."""
    assert {lake_type(f"timestamp[{unit}]") for unit in ("s", "ms", "us", "us, tz=UTC", "ns")} == {"timestamp"}
    assert (lake_type("decimal128(38, 4)"), lake_type("decimal256(39, 4)"), lake_type("decimal128(10, -2)")) == (
        "decimal(38,4)",
        None,
        None,
    )
    assert lake_type("dictionary<values=string, indices=int32, ordered=0>") == ARROW_TO_LAKE["string"]


def test_demo_and_readme_name_the_same_commands() -> None:
    """The five commands at the demo's end are in the README, so that they are run."""
    lines = {line.strip() for line in sh_lines(README)}

    assert {command for command, _ in TRY_NEXT} <= lines
