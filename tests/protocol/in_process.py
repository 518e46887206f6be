"""An AWS inside this process, for a process of its own: it patches the process's `sleep` and environment, and what it holds can be
kept and put back.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import time
from contextlib import ExitStack
from typing import Any

from moto.backends import get_backend
from moto.s3.utils import _VersionedKeyStore

from infra.local.session import ACCOUNT, REGION
from tests.quick_aws import QuickAws
from tests.quick_clients import remember_models

RAW, LAKE = "s3://raw/dms/", "s3://lake/lake/"
STATE_TABLE, DATABASE = QuickAws.state_table, QuickAws.database
SHORT_SECONDS = 0.002
# What a service of moto's holds, by the names of the attributes.
_HELD = (("s3", "aws", "buckets"), ("dynamodb", REGION, "tables"), ("glue", REGION, "databases"))


def hurry() -> None:
    """Let waiting take no time: pauses between retries are botocore's and ours alike. To be called before our code is imported."""
    real = time.sleep
    time.sleep = lambda seconds: real(min(seconds, SHORT_SECONDS))  # type: ignore[assignment]
    remember_models()


class InProcessAws(QuickAws):
    """The AWS of this process for as long as it lives; clients need not be told where it is."""

    def __init__(self) -> None:
        super().__init__(ACCOUNT, RAW, LAKE)
        copyreg.pickle(_VersionedKeyStore, _reduce_versions)  # by itself it is pickled with the last version of each key only
        self._connection = ExitStack()
        self._connection.enter_context(self.connected())
        os.environ.update({name: value for name, value in self.environment().items() if name.startswith("AWS_")})
        self.create()

    def keep(self) -> bytes:
        """Everything that is stored now."""
        return pickle.dumps([getattr(get_backend(service)[ACCOUNT][region], name) for service, region, name in _HELD])

    def put_back(self, kept: bytes) -> None:
        """Store what was kept, and nothing else."""
        for (service, region, name), value in zip(_HELD, pickle.loads(kept), strict=True):
            setattr(get_backend(service)[ACCOUNT][region], name, value)


def _reduce_versions(store: Any) -> Any:
    return _with_versions, (list(store.lists()),)


def _with_versions(lists: Any) -> Any:
    store = _VersionedKeyStore()
    for key, versions in lists:
        store.setlist(key, versions)
    return store
