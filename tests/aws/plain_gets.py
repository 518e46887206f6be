"""GETs by botocore's longer way, whose events and calls a test listens to; by the shorter one it sends the same (test_quick_gets.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from glue_jobs.aws.quick_gets import QuickGets


@contextmanager
def plain_gets() -> Iterator[None]:
    """All GETs of this process while it lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuickGets, "body", lambda _, s3, request: s3.get_object(**request)["Body"])
        yield
