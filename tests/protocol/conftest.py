"""Tables on the embedded AWS whose runs take place in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from glue_jobs.aws.clients import Clients, make_clients
from infra.local.embedded import EmbeddedAws
from tests.lake import LakeTable
from tests.protocol.wire import Wire

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
TableMaker = Callable[..., LakeTable]


@pytest.fixture(scope="session")
def clients(embedded_aws: EmbeddedAws) -> Clients:
    """The test's own clients; a run makes its own."""
    return make_clients(embedded_aws.environment())


@pytest.fixture
def make_table(embedded_aws: EmbeddedAws, clients: Clients) -> TableMaker:
    """Makes an active table with the key `id` and without files."""

    def make(columns: pa.Schema = COLUMNS, **values: Any) -> LakeTable:
        return LakeTable(embedded_aws.environment(), embedded_aws.raw, embedded_aws.lake, columns, shared=clients, **values)

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
