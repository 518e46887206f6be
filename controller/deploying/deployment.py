"""A deployment from end to end: artifacts to their prefix, a change set, its execution. What is shown and asked between is the caller's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from controller.artifacts import TEMPLATE, Artifact, Artifacts
from controller.deploying.change_set import ChangeSet
from controller.deploying.clients import DeployClients
from controller.deploying.stack import Stack
from controller.deploying.store import check_bucket, lent, missing_files, upload
from glue_jobs.core.paths import S3Uri


@dataclass(frozen=True)
class Deployment:
    """What is wanted. given: the parameters that a person names; run_id: makes the change set's name."""

    clients: DeployClients
    stack: Stack
    root: S3Uri  # below which each version has its prefix
    artifacts: Artifacts
    given: Mapping[str, str]
    run_id: str

    @property
    def place(self) -> S3Uri:
        """The prefix of this version."""
        return self.root.join(self.artifacts.folder)

    def missing(self) -> tuple[Artifact, ...]:
        """What would be uploaded; refuses a prefix that holds anything else."""
        check_bucket(self.clients.s3, self.root.bucket, self.clients.region)
        return missing_files(self.clients.s3, self.place, self.artifacts)

    def upload(self, missing: tuple[Artifact, ...]) -> None:
        """Bring the missing files to their prefix."""
        upload(self.clients.s3, self.place, self.artifacts, missing)

    def change_set(self) -> ChangeSet:
        """A change set by the uploaded template."""
        return self._change_set(self.place.join(TEMPLATE))

    @contextmanager
    def previewed(self) -> Iterator[ChangeSet]:
        """A change set for a look. It, its template (too large to be sent along) and a stack that is only it are gone afterwards."""
        key = self.root.join(f"dry-run/{self.run_id}.yaml")
        with lent(self.clients.s3, key, self.artifacts.file(TEMPLATE).data):
            change_set = self._change_set(key)
            try:
                yield change_set
            finally:
                self.stack.discard(change_set)

    def _change_set(self, template: S3Uri) -> ChangeSet:
        url = self.clients.public_url(template.bucket, template.key)
        return self.stack.make_change_set(f"dmslake-{self.run_id}", url, self.given, self._filled())

    def _filled(self) -> dict[str, str]:
        return {
            "ArtifactBucket": self.place.bucket,
            "ArtifactPrefix": self.place.key,
            "ControllerWheel": self.artifacts.wheel,
        }
