"""`dmslake verify`: is a table what its change records say, and the repair of what is not."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable

import click
from botocore.exceptions import BotoCoreError, ClientError

from controller.cli.call import Call, not_empty, with_call
from controller.cli.output import Answer, View, count_text, duration_text, problem_lines, size_text
from controller.cli.running import split_paths
from controller.gather import Facts, in_threads, no_items, none_in_scope
from controller.session import Session
from glue_jobs.aws.clients import aws_error, translated
from glue_jobs.aws.records import list_records
from glue_jobs.core.errors import ConfigurationError, DmslakeError, TableBlocked, UsageError, to_install
from glue_jobs.core.paths import TablePath
from glue_jobs.core.replay import Fold
from glue_jobs.core.state import TableState
from glue_jobs.core.verify import FileReport, Finding, Verified
from glue_jobs.protocol.repair import Repaired, preview_repair, repair_table
from glue_jobs.protocol.replay import look_for_never_taken, read_fold
from glue_jobs.protocol.verify import FileChecks, Place, verify

VERIFY = 1
DIFFERENCE_FOUND = 5
BUSY = 4
COLUMNS = ("table", "severity", "finding", "where", "expected", "found")
TABLE_COLUMNS = ("table", "result", "differences", "notes", "files", "rows", "bytes", "read", "seconds", "change")
NOT_NEEDED = (("read",), ("seconds",), ("bytes",), ("change",))  # in a narrow terminal, the first goes first
SHOWN = 50  # findings of a table that a person is shown; JSON has all


Replay = Callable[[Any, TablePath, Fold], FileReport]


@dataclass(frozen=True)
class Checks:
    """What is looked at beside names and catalog; None: it is not."""

    files: FileChecks | None
    replay: Replay | None


@dataclass(frozen=True)
class Result:
    """One table's outcome. found: of the last look, after a repair where there was one."""

    path: str
    found: Verified | None = None
    repaired: Repaired | None = None
    problem: DmslakeError | None = None

    @property
    def exit_code(self) -> int:
        if self.problem is not None:
            return self.problem.exit_code
        if self.found is None or self.found.is_busy:
            return BUSY
        if not self.found.differences:
            return 0
        return BUSY if self.repaired is not None and self.repaired.code == BUSY else DIFFERENCE_FOUND


@click.command("verify")
@click.argument("paths", nargs=-1, metavar="[PATH]...", callback=not_empty)
@click.option("--quick", is_flag=True, help="Read no data file: compare names, sizes, ETags, item and catalog only.")
@click.option(
    "--replay", "is_replay", is_flag=True, help="Also make all rows anew from the raw files, and compare them with those of the lake."
)
@click.option("--repair", "is_repair", is_flag=True, help="Put right what can be put right, then look again.")
@click.option("--dry-run", is_flag=True, help="With --repair: only say what would be done.")
@with_call
def verify_command(call: Call, paths: tuple[str, ...], quick: bool, is_replay: bool, is_repair: bool, dry_run: bool) -> int:
    """Compare all loaded tables, or those named, with their change records: the objects in S3, the rows' keys, item and catalog.

    Exit code 5 if there is a difference, 4 if runs kept working on a table, 1 if a replay can't be made.
    """
    if quick and is_replay:
        raise UsageError("--quick reads no row and --replay reads them all", "bad-argument", "give one of the two")
    if dry_run and not is_repair:
        raise UsageError("--dry-run says what --repair would do", "bad-argument", "give --repair --dry-run; verify alone changes nothing")
    check_files = None if quick else load_check()
    replay = load_replay() if is_replay else None
    started = time.monotonic()
    chosen = split_paths(paths)
    with call.session() as session:
        gathered = session.gather(chosen, alone=True, discover=False, wants=lambda state: False, must_exist=True)
        if not gathered.has_items:
            raise no_items(call.settings.state_table)
        if not gathered.tables:  # a repair writes: of another installation's tables it would, if --raw were passed over
            raise none_in_scope(call.settings)
        facts = gathered.tables if chosen else with_changes(session.clients.s3, gathered.tables)
        work = _Work(call, session, Checks(check_files, replay), is_repair, dry_run)
        results = in_threads(work, facts) if quick and not is_repair else [work(fact) for fact in facts]
    call.output.show(_answer(results, time.monotonic() - started))
    return worst([result.exit_code for result in results])


def with_changes(s3: Any, facts: Sequence[Facts]) -> tuple[Facts, ...]:
    """The tables that are checked where none is named: those that were ever loaded, also where the item has lost its Head, and those
    whose item can't be read."""
    wanted = in_threads(lambda fact: fact.problem is not None or (fact.state is not None and _was_loaded(s3, fact.state)), facts)
    return tuple(fact for fact, is_wanted in zip(facts, wanted) if is_wanted)


def _was_loaded(s3: Any, state: TableState) -> bool:
    if state.head or not state.out_path:
        return bool(state.head)
    try:
        return next(iter(list_records(s3, state.lake)), None) is not None
    except (BotoCoreError, ClientError):
        return True  # the check meets the same error, and says so of this table


def worst(codes: Sequence[int]) -> int:
    """The exit code of several tables: what could not be checked, then differences, then tables that runs worked on."""
    return next((code for code in (3, 2, 1, DIFFERENCE_FOUND, BUSY) if code in codes), 0)


def load_check() -> FileChecks:
    """The functions that read data files. They need pyarrow, which the command line does without."""
    for package in ("pyarrow", "numpy"):
        if importlib.util.find_spec(package) is None:
            todo = f"{to_install('jobs')}; or give --quick, which reads no data file and works without"
            raise ConfigurationError(f"the package {package}, which reads data files, is not installed", "no-package", todo)
    files: Any = importlib.import_module("glue_jobs.spark.verify_files")
    history: Any = importlib.import_module("glue_jobs.spark.verify_history")
    return FileChecks(files.check_files, history.check_history)


def load_replay() -> Replay:
    """The function that makes rows anew: (glue_jobs.spark.place.Place, the table's path, its changes) → what differs."""
    replay: Replay = importlib.import_module("glue_jobs.spark.replay").replay_table
    return replay


class _Work:
    """What is done for one table."""

    def __init__(self, call: Call, session: Session, checks: Checks, is_repair: bool, dry_run: bool) -> None:
        self._call, self._session, self._check_files, self._replay = call, session, checks.files, checks.replay
        self._is_repair, self._dry_run = is_repair, dry_run
        clients, database = session.clients, call.settings.database
        # Clients are made here, before threads start.
        self._place = Place(clients.s3, clients.glue if database else None, session.table, database)

    def __call__(self, fact: Facts) -> Result:
        if fact.state is None:
            return Result(fact.path, problem=fact.problem)
        try:
            with translated():
                return self._replayed(fact.state, self._do(fact.state))
        except Exception as error:  # noqa: BLE001 - one table's failure becomes its own report, the others go on
            return Result(fact.path, problem=aws_error(error))

    def _do(self, state: TableState) -> Result:
        found = verify(self._place, state.path, self._check_files)
        if not self._is_repair or not found.differences:
            return Result(str(state.path), found)
        if self._dry_run:
            return Result(str(state.path), found, self._preview(state))
        repaired = repair_table(self._session.job_context("Repair"), state.path)
        return Result(str(state.path), verify(self._place, state.path, self._check_files), repaired)

    def _replayed(self, state: TableState, result: Result) -> Result:
        """The result with what a replay finds beside it, if one is wanted and the table stood still."""
        found = result.found
        if self._replay is None or found is None or found.is_busy or not found.change:
            return result
        if any(finding.code == "unfinished-publish" for finding in found.differences):
            problem = TableBlocked("the head is not published wholly", "replay-not-possible", f"`dmslake run {state.path.in_shell}` first")
            return replace(result, problem=problem)
        reading = importlib.import_module("glue_jobs.spark.reading")
        limits = self._call.settings.limits
        place = reading.reading_place(self._session.host.variables, state.path.bucket, state.lake, limits, state.before_images)
        started = time.monotonic()
        try:
            fold = read_fold(place.s3, state.lake, state.path, found.change)
            report, untaken = self._replay(place, state.path, fold), look_for_never_taken(place.s3, state, fold, limits)
        except TableBlocked as error:
            return replace(result, problem=error)
        seconds, read = found.seconds + time.monotonic() - started, found.bytes_read + report.bytes_read
        findings = (*found.findings, *untaken, *report.findings)
        return replace(result, found=replace(found, checked="replay", findings=findings, seconds=seconds, bytes_read=read))

    def _preview(self, state: TableState) -> Repaired:
        try:
            return preview_repair(self._place, state.path)
        except DmslakeError as error:
            return Repaired(error.exit_code, error=error)


# --- the answer


def _answer(results: Sequence[Result], seconds: float) -> Answer:
    rows = [_row(result, finding) for result in results for finding in (result.found.findings[:SHOWN] if result.found else ())]
    tables = [_table_row(result) for result in results]
    lines = [line for result in results for line in _lines(result)]
    data = {"verify": VERIFY, "tables": [_data(result) for result in results], "seconds": round(seconds, 3)}
    details = View(COLUMNS, rows)
    views = [View(TABLE_COLUMNS, tables, NOT_NEEDED), details if len(results) > 1 else details.without("table")]
    return Answer(data, views, [*lines, "", _summary(results, seconds)])


def _row(result: Result, finding: Finding) -> list[str]:
    return [result.path, finding.severity, finding.code, finding.where, finding.expected, finding.found]


def _word(result: Result) -> str:
    if result.problem is not None or result.found is None:
        return "error"
    if result.found.is_busy:
        return "busy"
    return "differs" if result.found.differences else "fine"


def _table_row(result: Result) -> list[str]:
    found = result.found or Verified(result.path)
    differences = len(found.differences)
    counts = [count_text(number) for number in (differences, len(found.findings) - differences, found.files, found.rows)]
    sizes = [size_text(found.size_bytes), size_text(found.bytes_read)]
    return [result.path, _word(result), *counts, *sizes, f"{found.seconds:.1f}", found.change]


def _lines(result: Result) -> list[str]:
    """What stands below the tables: ways out, each once, and what a repair did."""
    lines: list[str] = []
    if result.problem is not None:
        lines += problem_lines(result.path, "not checked", result.problem.message, result.problem.todo)
    findings = result.found.findings if result.found else ()
    if len(findings) > SHOWN:
        lines.append(f"{result.path}: {len(findings) - SHOWN} more findings (--output json shows all)")
    for finding in {finding.todo: finding for finding in findings if finding.todo and finding.is_difference}.values():
        lines.append(f"{result.path}: {finding.code}: what to do: {_pasted(finding.todo, result.path)}")
    if result.repaired is not None:
        lines += [f"{result.path}: repair: {step}" for step in result.repaired.steps]
        lines += [f"{result.path}: repair: warning: {text}" for text in result.repaired.warnings]
        error = result.repaired.error
        if error is not None:
            lines += problem_lines(result.path, "repair stopped", error.message, _pasted(error.todo, result.path))
    return lines


def _pasted(todo: str, path: str) -> str:
    """The way out with the table's name in its commands, so that they can be pasted."""
    return re.sub(r"\bPATH\b", lambda _: shlex.quote(path), todo)


def _summary(results: Sequence[Result], seconds: float) -> str:
    found = [result.found for result in results if result.found]
    files, rows, size = (sum(number) for number in zip(*((one.files, one.rows, one.size_bytes) for one in found), (0, 0, 0)))
    differences = sum(len(one.differences) for one in found)
    checked = "names, sizes and catalog of" if all(one.checked == "quick" for one in found) else "all of"
    tables = f"{len(results)} table(s), {differences} difference(s)"
    read = size_text(sum(one.bytes_read for one in found))
    what = f"{checked} {files:,} file(s), {rows:,} rows, {size_text(size) or '0 B'}" + (f" ({read} read)" if read else "")
    return f"{tables}; {what}; {duration_text(seconds)}"


def _data(result: Result) -> dict[str, Any]:
    found = asdict(result.found) if result.found else {}
    repaired, problem = result.repaired, result.problem
    return {
        **found,
        "path": result.path,
        "result": _word(result),
        "differences": len(result.found.differences) if result.found else 0,
        "repair": None
        if repaired is None
        else {
            "steps": list(repaired.steps),
            "change": repaired.change,
            "warnings": list(repaired.warnings),
            "error": _error_data(repaired.error),
        },
        "error": _error_data(problem),
    }


def _error_data(error: DmslakeError | None) -> dict[str, str] | None:
    return None if error is None else {"code": error.code, "message": error.message, "todo": error.todo}
