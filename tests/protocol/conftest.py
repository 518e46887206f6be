"""Tables whose runs take place in this process, and so does their AWS; on the embedded AWS for those that need it behind a port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.protocol.wire import Wire
from tests.quick_aws import QuickAws

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
TableMaker = Callable[..., LakeTable]


@pytest.fixture(scope="session")
def clients(quick_clients: Clients) -> Clients:
    """The test's own clients; a run makes its own."""
    return quick_clients


@pytest.fixture
def make_table(quick_aws: QuickAws, clients: Clients) -> TableMaker:
    """Makes an active table with the key `id` and without files."""
    return _maker(quick_aws, clients)


@pytest.fixture
def make_served_table(embedded_aws: EmbeddedAws, embedded_clients: Clients) -> TableMaker:
    """The same where other processes, and libraries that are not botocore, reach it."""
    return _maker(embedded_aws, embedded_clients)


def _maker(aws: QuickAws | EmbeddedAws, clients: Clients) -> TableMaker:
    def make(columns: pa.Schema = COLUMNS, **values: Any) -> LakeTable:
        return LakeTable(aws.environment(), aws.raw, aws.lake, columns, shared=clients, **values)

    return make


@pytest.fixture
def table(make_table: TableMaker) -> LakeTable:
    """A table with a load of three rows that is not taken yet."""
    table = make_table()
    table.load([(1, "one"), (2, "two"), (3, "three")])
    return table


@pytest.fixture
def loaded(table: LakeTable) -> LakeTable:
    """The table after LoadInitial, with a CDC file that is not taken yet."""
    assert table.run("LoadInitial") == 0
    table.cdc([("U", (1, "ONE")), ("D", (2, None)), ("I", (4, "four"))])
    return table


# The rows of `loaded` before and after its CDC file.
BEFORE = [(1, "one"), (2, "two"), (3, "three")]
AFTER = [(1, "ONE"), (3, "three"), (4, "four")]


@pytest.fixture
def wire() -> Wire:
    return Wire()
