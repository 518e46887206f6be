"""The AWS walkthrough on a real database, by the commands that a person calls."""

from __future__ import annotations

from typing import Any

from infra.local.sample import run_script
from tests.database.lake import SPARK_JOBS, Activation, LakeDatabase
from tests.database.steps import one, run

PARTITIONS = {"create_dt_year": "year(create_dt)", "create_dt_month": "month(create_dt)"}
SHOP = {
    "store": Activation(("id",)),
    "product": Activation(("id",), "dept"),
    "productorder": Activation(("id",), "year(create_dt),month(create_dt)", PARTITIONS),
}


def test_the_walkthrough_ends_with_lake_tables_that_equal_the_database(lake: LakeDatabase, connection: Any) -> None:
    """Initial script, capture, run; incremental script, capture, the Controller job; a column added, capture, run."""
    mysql = lake.server.url(lake.name)
    run_script(connection, "initial")
    assert "productorder: 8425 rows in 1 load files" in lake.command("capture", "--mysql", mysql, "--full-load")
    assert f"dmslake activate {lake.path('store')}" in lake.command("tables")
    for name, said in SHOP.items():
        key = ["--primary-key", ",".join(said.key), "--partition-key", said.partition_key]
        lake.command("activate", f"{lake.name}.{name}", *key)
    lake.tables.update(SHOP)

    lake.command("run")

    assert lake.check() == 8 + 25 + 8425

    run_script(connection, "incremental")
    lake.command("capture", "--mysql", mysql)
    lake.controller_job(SPARK_JOBS)

    assert lake.check() == 9 + 24 + 8425 + 1345
    assert one(connection, "SELECT dept FROM product WHERE id = 1001") == "Sample Dept", "it moved to another partition"

    run(connection, "ALTER TABLE product ADD COLUMN note varchar(20) NULL", "UPDATE product SET note = 'new' WHERE id = 1003")
    lake.command("capture", "--mysql", mysql)
    lake.controller()

    assert lake.check() == 9 + 24 + 8425 + 1345
    assert {name: lake.changes(name) for name in SHOP} == {
        "store": [("full-load", "driver"), ("incremental", "spark")],
        "product": [("full-load", "driver"), ("incremental", "spark"), ("incremental", "driver")],
        "productorder": [("full-load", "driver"), ("incremental", "spark")],
    }
