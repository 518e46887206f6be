"""The settings, the region and the credentials that everything else needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding
from controller.doctor.looks import DoctorClients, Seen, look, look_by
from glue_jobs.core.errors import DmslakeError
from glue_jobs.core.settings import Settings

NEEDED_BY = {
    "raw": "no run can find a table",
    "lake": "no run can be started",
    "database": "jobs that run here can't name their tables for readers",
}
EXAMPLES = {"raw": "s3://BUCKET/dms/", "lake": "s3://BUCKET/lake/", "database": "NAME"}


def setting_findings(settings: Settings, agreed: Mapping[str, str]) -> list[Finding]:
    """The settings that a run needs and nobody gave. agreed: what the jobs have. On Glue they know the database by themselves."""
    levels = {"raw": BLOCKS, "lake": BLOCKS, "database": BLOCKS if settings.runner == "local" else WARNS}
    return [_missing(level, name, agreed.get(name, "")) for name, level in levels.items() if not getattr(settings, name)]


def _missing(level: str, name: str, there: str) -> Finding:
    what = NEEDED_BY[name] if level == BLOCKS else "catalog and job arguments are not compared with it"
    variable = f"DMSLAKE_{name.upper()}"
    fix = f"export {variable}={there or EXAMPLES[name]}"
    return Finding(level, "settings", f"--{name}", what, f"--{name} or {variable}", "nothing", fix)


@dataclass(frozen=True)
class Account:
    """Who asks, and where. region: '' if none is known."""

    region: Seen
    caller: Seen
    endpoint: str = ""

    @property
    def can_ask(self) -> bool:
        """Whether any other request makes sense."""
        return not self.region.is_unknown and (self.caller.answer is not None or self._only_denied)

    @property
    def _only_denied(self) -> bool:
        return self.caller.error is not None and self.caller.error.code == "access-denied"

    @property
    def number(self) -> str:
        """The account's, '' if it isn't known."""
        return str((self.caller.answer or {}).get("Account", ""))

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn`, `aws-us-gov`: what ARNs here begin with."""
        return str((self.caller.answer or {}).get("Arn") or "arn:aws").split(":")[1]


def account_facts(clients: DoctorClients) -> Account:
    """Region and caller."""
    region = look_by("", lambda: clients.region)
    if region.is_unknown:
        return Account(region, Seen(), clients.endpoint)
    return Account(region, look("sts:GetCallerIdentity", clients.sts.get_caller_identity), clients.endpoint)


def account_findings(account: Account) -> list[Finding]:
    """Region, then credentials; and whether it is AWS at all that answers."""
    if account.region.error is not None:
        error = account.region.error
        fix, usable = ("export AWS_REGION=eu-central-1" if error.code == "region" else ""), f"usable {_check(error)}"
        return [Finding(BLOCKS, _check(error), "this shell", "no request can be sent", usable, error.message, fix, error.todo)]
    where = account.endpoint or "AWS"
    findings = [Finding(FINE, "region", where, found=str(account.region.answer))]
    if account.caller.error is None:
        return [*findings, Finding(FINE, "credentials", where, found=str(account.caller.answer.get("Arn", "")))]
    error = account.caller.error
    level, check = (WARNS if account.can_ask else BLOCKS), _check(error)
    return [*findings, Finding(level, check, where, "who asks is not known", f"usable {check}", error.message, todo=error.todo)]


def _check(error: DmslakeError) -> str:
    """What an error before the first answer is about."""
    if error.code == "region":
        return "region"
    return "credentials" if error.code in ("credentials", "profile", "access-denied") else "connection"
