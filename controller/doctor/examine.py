"""All checks in the order in which one needs the other. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from controller.doctor.account import Account, account_facts, account_findings, setting_findings
from controller.doctor.bucket_policy import Wanted, ownership_findings, policy_findings
from controller.doctor.buckets import bucket_facts, bucket_findings
from controller.doctor.dms import dms_facts, dms_findings, item_names
from controller.doctor.finding import FINE, Finding
from controller.doctor.jobs import Job, JobFacts, agreed, all_job_findings, differing, job_facts, longest_timeout, roles_of
from controller.doctor.lake_bucket import Wish, lake_findings
from controller.doctor.looks import DoctorClients
from controller.doctor.machine import machine_facts, machine_findings
from controller.doctor.raw_bucket import raw_findings
from controller.doctor.roles import role_facts, role_findings, version_delete, wanted_rights
from controller.doctor.schedule import trigger_facts, trigger_findings
from controller.doctor.state_table import state_facts, state_findings
from controller.doctor.tables import catalog_facts, catalog_findings, table_facts, table_findings
from controller.plan import ERASE
from controller.raw_scope import RawScope
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.settings import Settings


@dataclass(frozen=True)
class Scene:
    """What is examined. rollback_days: how far back one wants to be able to go. find_java: see machine_facts."""

    settings: Settings
    clients: DoctorClients
    find_java: Callable[[], str]
    rollback_days: int


def examine(scene: Scene) -> list[Finding]:
    """Every finding, in the order of the checks. Without credentials or region nothing on AWS is looked at."""
    settings, clients = scene.settings, scene.clients
    findings = machine_findings(machine_facts(settings.runner, scene.find_java), settings.runner)
    account = account_facts(clients)
    jobs = job_facts(clients, settings.job_prefix) if account.can_ask and settings.runner == "glue" else None
    findings += setting_findings(settings, agreed(jobs.of(settings.job_prefix)) if jobs else {})
    findings += account_findings(account)
    return [*findings, *_on_aws(scene, account, jobs)] if account.can_ask else findings


def _on_aws(scene: Scene, account: Account, jobs: JobFacts | None) -> Iterator[Finding]:
    settings, clients = _as_jobs_have(scene.settings, jobs), scene.clients
    there = replace(scene, settings=settings)
    yield from _buckets(there, account, jobs)
    yield from state_findings(state_facts(clients.dynamodb, settings.state_table))
    tables = table_facts(StateTable(clients, settings.state_table))
    yield from table_findings(tables)
    if settings.database:
        yield from catalog_findings(catalog_facts(clients.glue, settings.database), tables)
    if jobs is None:
        yield Finding(FINE, "jobs", "Glue", found="not looked at: the jobs run here (--runner local)")
    else:
        yield from all_job_findings(jobs, scene.settings)
        yield from _around_jobs(there, account, jobs)
    if settings.raw:
        scope = RawScope.parse(settings.raw)
        yield from dms_findings(dms_facts(clients.dms, scope), scope, item_names(tables, scope), is_local=jobs is None)


def _as_jobs_have(settings: Settings, jobs: JobFacts | None) -> Settings:
    """The settings with the places that all jobs have, where this shell names others.

    That it does is a finding of the jobs. Nobody works on what it names: no line should make that, or give a role rights to it.
    """
    others = differing(jobs.of(settings.job_prefix), settings) if jobs else {}
    return replace(settings, **{name: value for name, value in others.items() if _can_be_read(name, value)})


def _can_be_read(name: str, value: str) -> bool:
    """Whether a setting of the jobs can be looked at as one of ours."""
    try:
        if name == "raw":
            RawScope.parse(value)
        elif name == "lake":
            S3Uri.folder(value)
    except UsageError:
        return False
    return True


def _buckets(scene: Scene, account: Account, jobs: JobFacts | None) -> Iterator[Finding]:
    settings, s3, region = scene.settings, scene.clients.s3, str(account.region.answer)
    lake_uri = S3Uri.folder(settings.lake) if settings.lake else None
    ours = jobs.of(settings.job_prefix) if jobs else {}
    has_jobs = None if jobs is not None and jobs.jobs.is_unknown else bool(ours)
    if settings.raw:
        scope = RawScope.parse(settings.raw)
        raw = bucket_facts(s3, "raw", S3Uri(scope.bucket, scope.prefix))
        yield from bucket_findings(raw, region, has_jobs)
        if raw.is_there:
            yield from ownership_findings(raw)
            yield from policy_findings(raw, Wanted(account.partition))
            yield from raw_findings(raw, lake_uri is not None and lake_uri.bucket == raw.name)
    if lake_uri is not None:
        lake = bucket_facts(s3, "lake", lake_uri)
        yield from bucket_findings(lake, region, has_jobs)
        if lake.is_there:
            yield from ownership_findings(lake)
            yield from policy_findings(lake, Wanted(account.partition, _role_arn(ours.get(ERASE))))
            yield from lake_findings(lake, Wish(scene.rollback_days, longest_timeout(ours.values())))


def _role_arn(job: Job | None) -> str:
    """The ARN of the job's role; '' where it has only a name, which a policy can't be compared with."""
    role = str(job.get("Role", "")) if job else ""
    return role if role.startswith("arn:") else ""


def _around_jobs(scene: Scene, account: Account, jobs: JobFacts) -> Iterator[Finding]:
    """The jobs' roles, and what starts the controller."""
    settings, clients = scene.settings, scene.clients
    ours = jobs.of(settings.job_prefix)
    if not ours:
        return
    for role, names in roles_of(ours).items():
        rights = [] if clients.endpoint else wanted_rights(names, settings, account)  # no other endpoint has policies
        forbidden = [] if clients.endpoint or ERASE in names else version_delete(settings, account)
        yield from role_findings(role_facts(clients.iam, role, names, [*rights, *forbidden]))
    yield from trigger_findings(trigger_facts(clients.glue, settings.job_prefix), settings.job_prefix)
