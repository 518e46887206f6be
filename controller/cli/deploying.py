"""`dmslake build | deploy`: the program as files, and an installation of it as a stack of CloudFormation."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from controller.artifacts import Artifact, Artifacts, build_artifacts
from controller.cli.call import Call, not_empty, with_call
from controller.cli.confirming import confirmed
from controller.cli.output import Answer, View, aligned, labelled, say, size_text
from controller.deploying.change_set import ChangeSet, read_given
from controller.deploying.clients import DeployClients
from controller.deploying.deployment import Deployment
from controller.deploying.stack import Found, Stack
from controller.host import this_machine
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.paths import S3Uri

DEPLOY = BUILD = 1
LONGEST_PAUSE = 3.0  # seconds between two looks at a stack: resources come in seconds, job runs in minutes
COLUMNS = ("action", "resource", "type", "replaced")
TEMPLATE_HELP = "A CloudFormation template of your own, with the same parameters ArtifactBucket, ArtifactPrefix and ControllerWheel."
PARAMETER_HELP = "A parameter of the template; may be repeated. One that is not given keeps the stack's value, a new one its default."
LABEL_HELP = "Tells code between two versions apart: its files go to <version>-LABEL/."
WHY = "a stack is what an installation runs on"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False), callback=not_empty)
@with_call
def build(call: Call, folder: str) -> int:
    """Write to FOLDER what `deploy` uploads: the controller's wheel, the Spark jobs' zip, their scripts and the template."""
    artifacts = build_artifacts(read_template(None))
    try:
        artifacts.write(Path(folder))
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}", "bad-argument", "give another folder") from error
    view = View(("file", "bytes"), [(file.name, f"{len(file.data):,}") for file in artifacts.files])
    data = {"build": BUILD, "folder": str(Path(folder)), "digest": artifacts.digest, "files": [_file(file) for file in artifacts.files]}
    return call.show(Answer(data, [view], [f"digest {artifacts.digest}: the same code gives the same files"]))


@click.command()
@click.option("--stack", required=True, metavar="NAME", help="The stack: a new one, or one to update.")
@click.option("--artifacts", required=True, metavar="S3", help="Where the program's files go: s3://bucket/prefix/, a folder per version.")
@click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help=PARAMETER_HELP)
@click.option("--template", type=click.Path(dir_okay=False, exists=True, path_type=Path), metavar="FILE", help=TEMPLATE_HELP)
@click.option("--label", default="", callback=not_empty, metavar="LABEL", help=LABEL_HELP)
@click.option("--allow-replacement", is_flag=True, help="Also if the stack would part with a bucket, folder, table or database.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be uploaded and changed, and leave nothing behind.")
@with_call
def deploy(call: Call, stack: str, artifacts: str, parameters: tuple[str, ...], template: Path | None, label: str, **flags: bool) -> int:
    """Install dmslake on AWS, or update an installation: upload the program, show the change set, ask, execute it.

    Nothing is ever changed below the prefix of a version: the same code uploads nothing, other code of the same version is refused.
    """
    host = this_machine(lambda event, details: None)
    seconds = min(call.settings.limits.wait_seconds, LONGEST_PAUSE)
    with translated():
        clients = DeployClients(host.variables)
        one = Stack(clients.cloudformation, stack, partial(host.wait, seconds), _say)
        built = build_artifacts(read_template(template), label)
        wanted = Deployment(clients, one, S3Uri.folder(artifacts), built, read_given(parameters), host.new_id())
        missing = wanted.missing()
        if flags["dry_run"]:
            return _dry_run(call, wanted, missing)
        return _Deploying(call, wanted, flags["yes"], flags["allow_replacement"]).run(missing)


def read_template(file: Path | None) -> bytes:
    """The template of an installation, or another one."""
    infra: Any = importlib.import_module("infra.aws")
    text: bytes = (file or infra.LAKE).read_bytes()
    return text


def _dry_run(call: Call, wanted: Deployment, missing: Sequence[Artifact]) -> int:
    head = _head(wanted, missing, "dry-run")
    lines = _file_lines(wanted, missing)
    try:
        with translated(), wanted.previewed() as change_set:
            data = {**head, **_change_data(change_set)}
            return call.show(Answer(data, [_view(change_set)], _change_lines(change_set), [*lines, "nothing was uploaded or changed"]))
    except ConfigurationError as error:
        if error.code != "access-denied":
            raise
        call.output.show(Answer({**head, "error": error.message}, (), ["the change set can't be shown:", f"  {error}"], lines))
        return error.exit_code


@dataclass(frozen=True)
class _Deploying:
    """A deployment that a person watches."""

    call: Call
    wanted: Deployment
    yes: bool
    allow_replacement: bool

    def run(self, missing: tuple[Artifact, ...]) -> int:
        """Upload, ask, execute, show."""
        for line in _file_lines(self.wanted, missing):
            _say(line)
        self.wanted.upload(missing)
        change_set = self.wanted.change_set()
        is_executed = False
        try:
            if self._wants(change_set):
                is_executed = True
                ended = self.wanted.stack.execute(change_set)
                return self._show(missing, change_set, "created" if change_set.kind == "CREATE" else "updated", ended)
        finally:
            if not is_executed:
                self.wanted.stack.discard(change_set)
        if not change_set.changes:
            return self._show(missing, change_set, "unchanged", self.wanted.stack.find())
        _say("nothing was changed; the uploaded files stay for the next time")
        return 1

    def _wants(self, change_set: ChangeSet) -> bool:
        """Show what would be done and ask; False also where there is nothing to do."""
        if not change_set.changes:
            return False
        for line in (*aligned(_view(change_set)), *_change_lines(change_set)):
            _say(line)
        if change_set.leaving and not self.allow_replacement:
            named = ", ".join(name for name, _ in change_set.leaving)
            todo = "leave the parameter that names bucket, folder, table or database as it was; or give --allow-replacement if it is wanted"
            raise UsageError(f"the stack would part with what holds its data: {named}", "would-part-with-data", todo)
        return confirmed(self.yes, f"{change_set.kind.lower()} the stack {self.wanted.stack.name}?", WHY)

    def _show(self, missing: Sequence[Artifact], change_set: ChangeSet, outcome: str, found: Found | None) -> int:
        outputs = dict(found.outputs) if found else {}
        data = {**_head(self.wanted, missing, outcome), **_change_data(change_set), "outputs": outputs}
        title = f"the stack {self.wanted.stack.name} is {outcome}; version {self.wanted.artifacts.folder.rstrip('/')}"
        return self.call.show(Answer(data, (), labelled(sorted(outputs.items())), [title]))


def _head(wanted: Deployment, missing: Sequence[Artifact], outcome: str) -> dict[str, Any]:
    names = {file.name for file in missing}
    files = [{**_file(file), "is_new": file.name in names} for file in wanted.artifacts.files]
    return {
        "deploy": DEPLOY, "stack": wanted.stack.name, "outcome": outcome, "artifacts": str(wanted.place),
        "account": wanted.clients.account, "region": wanted.clients.region, "digest": wanted.artifacts.digest, "files": files,
    }  # fmt: skip


def _file(file: Artifact) -> dict[str, Any]:
    return {"name": file.name, "bytes": len(file.data), "sha256": file.digest}


def _file_lines(wanted: Deployment, missing: Sequence[Artifact]) -> list[str]:
    artifacts: Artifacts = wanted.artifacts
    size = size_text(sum(len(file.data) for file in missing))
    count = f"{len(missing)} of {len(artifacts.files)} file(s) to upload, {size}" if missing else "all files are there already"
    place = f"{wanted.clients.account or 'not known'}, in {wanted.clients.region}"
    return labelled([("account", place), ("program", f"{wanted.place} (digest {artifacts.digest})"), ("files", count)])


def _view(change_set: ChangeSet) -> View:
    words = {"True": "yes", "Conditional": "perhaps"}
    rows = [(each.action, each.resource, each.type, words.get(each.replacement, "")) for each in change_set.changes]
    return View(COLUMNS, rows).without_empty("replaced")


def _change_lines(change_set: ChangeSet) -> list[str]:
    count = (
        f"{len(change_set.changes)} resource(s) to change" if change_set.changes else "the stack is as the template says: nothing to change"
    )
    return [*(f"ATTENTION: {warning}" for _, warning in change_set.leaving), count]


def _change_data(change_set: ChangeSet) -> dict[str, Any]:
    return {
        "change_set": change_set.kind,
        "changes": [asdict(change) for change in change_set.changes],
        "parting": [change.resource for change in change_set.parting],
        "moves": [move.parameter for move in change_set.moves],
    }


def _say(line: str) -> None:
    """For a person who watches: stdout is the answer's."""
    say(line)
