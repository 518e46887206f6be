"""The Glue jobs: whether they are there, are what the code expects, and work on the same installation as the settings here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, aws_line
from controller.doctor.looks import Seen, look_by, not_checked
from controller.plan import ADOPT, APPLY, BACKFILL, ERASE, GENERATE_FEED, LOAD_INCREMENTAL, LOAD_INITIAL, ROLLBACK, SNAPSHOT
from glue_jobs.aws.translate import translated
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.settings import DEFAULTS, Settings

CONTROLLER = "Controller"
LOADS = (LOAD_INITIAL, LOAD_INCREMENTAL)  # no run without these
SCRIPT = "glue_jobs/load_incremental.py"  # of our LoadIncremental, wherever the artifacts are: the AWS sample has a job of that name too
OTHERS = (CONTROLLER, ROLLBACK, APPLY, ERASE, ADOPT, SNAPSHOT, GENERATE_FEED, BACKFILL)
GLUE_VERSIONS = ("5.1", "5.0", "6.0")
SHELL, SPARK = ("pythonshell", "3.9"), ("glueetl", "3")
PLACES = ("raw", "lake", "state_table", "database")
SAME_HERE = (*PLACES, "job_prefix")
ONLY_CONTROLLER = ("raw", "job_prefix")
FILES = ("--extra-py-files", "--extra-jars", "--extra-files")
DEFAULT_TIMEOUT_MINUTES = 2880
DEPLOY = "dmslake deploy --stack NAME --artifacts s3://BUCKET/PREFIX/"
# What UpdateJob takes of what GetJobs shows. It replaces the whole job: what is left out goes back to a default.
UPDATABLE = (
    "JobMode JobRunQueuingEnabled Description LogUri Role ExecutionProperty Command DefaultArguments NonOverridableArguments"
    " Connections MaxRetries Timeout MaxCapacity WorkerType NumberOfWorkers SecurityConfiguration NotificationProperty GlueVersion"
    " CodeGenConfigurationNodes ExecutionClass SourceControlDetails MaintenanceWindow"
).split()

Job = Mapping[str, Any]


@dataclass(frozen=True)
class JobFacts:
    """jobs: all of the account's in this region, by name. files: what the jobs of ours take from S3, by URI."""

    jobs: Seen
    files: Mapping[str, Seen] = field(default_factory=dict)

    def of(self, prefix: str) -> dict[str, Job]:
        """The jobs of ours, by name without the prefix."""
        found: Mapping[str, Job] = self.jobs.answer or {}
        return {name: found[prefix + name] for name in (*LOADS, *OTHERS) if prefix + name in found}


def job_facts(clients: Any, prefix: str) -> JobFacts:
    """One listing of the jobs, and a look at each file that ours take. The embedded AWS runs scripts without their packages."""
    facts = JobFacts(look_by("glue:GetJobs", lambda: _all_jobs(clients.glue)))
    wanted = sorted({file for job in facts.of(prefix).values() for file in job_files(job, with_packages=not clients.endpoint)})
    return JobFacts(facts.jobs, {file: _file(clients.s3, file) for file in wanted})


def _all_jobs(glue: Any) -> dict[str, Job]:
    return {str(job["Name"]): job for page in glue.get_paginator("get_jobs").paginate() for job in page["Jobs"]}


def _file(s3: Any, uri: str) -> Seen:
    def head() -> Any:
        with translated():
            parsed = S3Uri.parse(uri)
        return s3.head_object(Bucket=parsed.bucket, Key=parsed.key)

    return look_by("s3:GetObject", head, ("404", "NoSuchKey", "NoSuchBucket"))


def job_files(job: Job, with_packages: bool = True) -> list[str]:
    """The addresses on S3 that a run of the job reads before it starts: its script, and its packages."""
    arguments = job.get("DefaultArguments") or {}
    listed = [part.strip() for name in FILES for part in str(arguments.get(name, "")).split(",")] if with_packages else []
    return [file for file in (str(job["Command"].get("ScriptLocation", "")), *listed) if file.startswith("s3")]


def longest_timeout(jobs: Iterable[Job]) -> int:
    """Minutes that a run of any of the jobs may take; 0 without jobs."""
    return max((int(job.get("Timeout") or DEFAULT_TIMEOUT_MINUTES) for job in jobs), default=0)


def all_job_findings(facts: JobFacts, settings: Settings) -> list[Finding]:
    """Those that are missing, then each that is there."""
    if facts.jobs.is_unknown:
        return [not_checked(facts.jobs, "jobs", "Glue")]
    ours = facts.of(settings.job_prefix)
    if not ours:
        return [_no_jobs(facts.jobs.answer, settings.job_prefix)]
    missing = [_missing(name, settings.job_prefix) for name in (*LOADS, *OTHERS) if name not in ours]
    others = differing(ours, settings)
    elsewhere = [_elsewhere(name, str(getattr(settings, name)), value) for name, value in others.items()]
    settings = replace(settings, **others)  # said once: the jobs are right among themselves
    each = [finding for name, job in ours.items() for finding in job_findings(name, job, facts.files, settings)]
    return [*missing, *elsewhere, *each]


def agreed(jobs: Mapping[str, Job]) -> dict[str, str]:
    """The settings that all the jobs have which need them, and the same in each: by name."""
    found = {}
    for setting in PLACES:
        values = [_argument(job, setting) for name, job in jobs.items() if name == CONTROLLER or setting not in ONLY_CONTROLLER]
        if values and values[0] and len({_plain(setting, value) for value in values}) == 1:
            found[setting] = values[0]
    return found


def differing(jobs: Mapping[str, Job], settings: Settings) -> dict[str, Any]:
    """The settings that are other ones here than all the jobs have, as these have them: by name."""
    return {name: value for name, value in agreed(jobs).items() if _differs(name, str(getattr(settings, name)), value)}


def _argument(job: Job, setting: str) -> str:
    """What the job is started with, '' for nothing."""
    arguments = {**(job.get("DefaultArguments") or {}), **(job.get("NonOverridableArguments") or {})}
    return str(arguments.get(f"--{setting}") or DEFAULTS.get(setting, ""))


def _differs(setting: str, here: str, there: str) -> bool:
    return bool(here) and _plain(setting, here) != _plain(setting, there)


def _elsewhere(setting: str, here: str, there: str) -> Finding:
    """All jobs agree, so that it is rather this shell that is wrong."""
    option, what = f"--{setting.replace('_', '-')}", "the jobs work on another installation than this command line"
    fix = f"export DMSLAKE_{setting.upper()}={shlex.quote(there)}"
    return Finding(BLOCKS, "job-arguments", option, what, f"{there}, as the jobs have it", here, fix)


def _no_jobs(jobs: Mapping[str, Job], prefix: str) -> Finding:
    """None under this prefix: perhaps another one is right. Which one of several can't be told from here."""
    others = sorted(name[: -len(LOAD_INCREMENTAL)] for name, job in jobs.items() if name.endswith(LOAD_INCREMENTAL) and _runs_ours(job))
    what, expected = "no run can be started", f"jobs {prefix}{LOAD_INITIAL}, {prefix}{LOAD_INCREMENTAL} …"
    if not others:
        return Finding(BLOCKS, "jobs", "Glue", what, expected, "none", DEPLOY)
    found = f"jobs with the prefix {', '.join(map(repr, others))}"
    if len(others) > 1:
        todo = "paste the value of the output Settings of the right stack into this shell"
        return Finding(BLOCKS, "jobs", "Glue", what, expected, found, todo=todo)
    return Finding(BLOCKS, "jobs", "Glue", what, expected, found, f"export DMSLAKE_JOB_PREFIX={shlex.quote(others[0])}")


def _runs_ours(job: Job) -> bool:
    return str(job["Command"].get("ScriptLocation", "")).endswith(SCRIPT)


def _missing(name: str, prefix: str) -> Finding:
    level = BLOCKS if name in LOADS else WARNS
    what = (
        "no table can be kept up"
        if name in LOADS
        else "nothing runs by a schedule"
        if name == CONTROLLER
        else "what it does can't be asked for"
    )
    return Finding(level, "jobs", f"job {prefix}{name}", what, "the job", "none", DEPLOY)


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a job. change: what UpdateJob must be given besides the rest; {} where it can't help."""

    level: str
    check: str
    what: str
    expected: str
    found: str
    change: Mapping[str, Any] = field(default_factory=dict)


def job_findings(name: str, job: Job, files: Mapping[str, Seen], settings: Settings) -> list[Finding]:
    """What is wrong with one job; a single fine finding if nothing is. All that UpdateJob can mend has one line, which mends it all."""
    where = f"job {job['Name']}"
    wrong = [*_kind(name, job), *_run_bounds(name, job, settings), *_arguments(name, job, settings)]
    line = update_line(job, [one.change for one in wrong])
    found = [Finding(one.level, one.check, where, one.what, one.expected, one.found, line) for one in wrong] + _files(name, job, files)
    version = job.get("GlueVersion") if name != CONTROLLER else f"Python {SHELL[1]}"
    return found or [Finding(FINE, "job", where, found=str(version))]


def update_line(job: Job, changes: Sequence[Mapping[str, Any]]) -> str:
    """The command that changes a job: all of it is given, since Glue puts back to a default what is left out."""
    update = {name: job[name] for name in UPDATABLE if job.get(name) not in (None, "")}
    if "WorkerType" in update:
        update.pop("MaxCapacity", None)  # Glue shows both, and takes one
    for change in changes:
        for name, value in change.items():
            update[name] = {**update.get(name, {}), **value} if isinstance(value, Mapping) else value
    return aws_line("glue", "update-job", job_name=str(job["Name"]), job_update=json.dumps(update))


def _kind(name: str, job: Job) -> list[Wrong]:
    """Python shell or Spark, and of which version."""
    command, wanted = job["Command"], SHELL if name == CONTROLLER else SPARK
    wrong: list[Wrong] = []
    found = (str(command.get("Name")), str(command.get("PythonVersion")))
    if found != wanted:
        change = {"Command": {"Name": wanted[0], "PythonVersion": wanted[1]}}
        wrong.append(Wrong(BLOCKS, "job-kind", "the code is for the other kind of job", " ".join(wanted), " ".join(found), change))
    version = str(job.get("GlueVersion") or "none")
    if name != CONTROLLER and version not in GLUE_VERSIONS:
        expected, newest = f"GlueVersion {', '.join(GLUE_VERSIONS)}", {"GlueVersion": GLUE_VERSIONS[0]}
        wrong.append(Wrong(BLOCKS, "job-version", "the code was never run on this version", expected, version, newest))
    return wrong


def _run_bounds(name: str, job: Job, settings: Settings) -> list[Wrong]:
    """Retries, runs at once, time."""
    wrong = []
    retries, runs = int(job.get("MaxRetries") or 0), int((job.get("ExecutionProperty") or {}).get("MaxConcurrentRuns") or 1)
    if retries:
        what = "a failed run is repeated at once, and waits for the lease of the one that failed; the next scheduled run goes on anyway"
        wrong.append(Wrong(WARNS, "job-retries", what, "MaxRetries 0", str(retries), {"MaxRetries": 0}))
    wanted = int(settings.limits.max_concurrent_runs)
    if name in LOADS and runs < wanted:
        # A stack may have fewer on purpose (MaxConcurrentRuns), and a shell that was not told has the default.
        here = f"if the job is right, set DMSLAKE_MAX_CONCURRENT_RUNS={runs} in this shell instead"
        what, change = f"the controller starts more runs at once than the job takes, and waits; {here}", {"MaxConcurrentRuns": wanted}
        wrong.append(Wrong(WARNS, "job-concurrency", what, f"{wanted} (max_concurrent_runs)", str(runs), {"ExecutionProperty": change}))
    if not job.get("Timeout"):
        what, found = "a run that hangs is billed until Glue's own limit", f"none: {DEFAULT_TIMEOUT_MINUTES} minutes"
        wrong.append(Wrong(WARNS, "job-timeout", what, "a Timeout", found, {"Timeout": 480}))
    return wrong


def _arguments(name: str, job: Job, settings: Settings) -> list[Wrong]:
    """The settings that must be the same here and in the job, where both have them."""
    wrong = []
    for setting in SAME_HERE:
        if name != CONTROLLER and setting in ONLY_CONTROLLER:
            continue
        here, there = str(getattr(settings, setting)), _argument(job, setting)
        if _differs(setting, here, there) or (setting == "job_prefix" and here != there):
            what, change = "the job works on another installation than the settings here say", {"DefaultArguments": {f"--{setting}": here}}
            wrong.append(Wrong(BLOCKS, "job-arguments", what, f"--{setting} {here}".strip(), there or "nothing", change))
    return wrong


def _plain(setting: str, text: str) -> str:
    """The text without a difference in form."""
    return text.strip().rstrip("/").replace("s3a://", "s3://") if setting in ("raw", "lake") else text.strip()


def _files(name: str, job: Job, files: Mapping[str, Seen]) -> list[Finding]:
    """Scripts and packages that are not there; a script that is not on S3 is the embedded AWS's."""
    where, check, findings = f"job {job['Name']}", "job-files", []
    for file in job_files(job):
        seen = files.get(file, Seen())
        if seen.missing:
            level = BLOCKS if name in LOADS else WARNS
            findings.append(Finding(level, check, where, "each run fails before it starts", "the file", f"no {file}", DEPLOY))
        elif seen.is_unknown:
            findings.append(not_checked(seen, check, file))
    return findings


def roles_of(jobs: Mapping[str, Job]) -> dict[str, Sequence[str]]:
    """The roles of the jobs, each with the names of the jobs that have it."""
    roles: dict[str, list[str]] = {}
    for name, job in jobs.items():
        roles.setdefault(str(job.get("Role", "")), []).append(name)
    return dict(roles)
