"""What earlier erases took: read by whoever looks for the bytes of a data file of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glue_jobs.aws.records import read_records
from glue_jobs.aws.removal import left_of
from glue_jobs.core.erasure import NOTHING_ERASED, Erased, erased_by
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.record import ChangeRecord, ErasedVersion


def read_erased(s3: Any, lake: S3Uri, erases: Sequence[str]) -> Erased:
    """The versions on the lists of `erases` (Snapshot.erases of the head, not of the state that is looked for). No request for none."""
    return erased_by(erase_records(s3, lake, erases)) if erases else NOTHING_ERASED


def left_versions(s3: Any, lake: S3Uri, erases: Sequence[str]) -> tuple[tuple[ErasedVersion, bool], ...]:
    """What S3 still has of the lists of `erases`, each with whether it is the one that a plain GET of its key finds."""
    if not erases:
        return ()
    listed = [each for record in erase_records(s3, lake, erases) for each in record.erased]
    return left_of(s3, lake.bucket, listed)


def erase_records(s3: Any, lake: S3Uri, erases: Sequence[str]) -> list[ChangeRecord]:
    """The records of `erases`, in their order."""
    return read_records(s3, lake, erases, with_checkpoint=False)
