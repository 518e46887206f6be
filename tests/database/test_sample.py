"""The sample database is the walkthrough's: its four statements run unchanged and do what it says."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from infra.local.sample import run_script, split_statements, statements

WALKTHROUGH = [
    "update product set name = 'Sample Product', dept = 'Sample Dept', category = 'Sample Category' where id = 1001",
    "delete from product where id = 1002",
    "call loadorders(1345, current_date)",
    "insert into store values(1009, '125 Technology Dr.', 'Irvine', 'CA', 'US', '92618')",
]


def _all(connection: Any, query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def test_the_initial_script_makes_stores_products_and_orders(connection: Any) -> None:
    """8 stores, 25 products, and orders by day as the walkthrough loads them."""
    run_script(connection, "initial")

    assert _all(connection, "SELECT count(*), min(id), max(id) FROM store") == [(8, 1001, 1008)]
    assert _all(connection, "SELECT count(*), min(id), max(id) FROM product") == [(25, 1001, 1025)]
    assert _all(connection, "SELECT create_dt, count(*) FROM productorder GROUP BY 1 ORDER BY min(id)") == [
        (date(2018, 11, 27), 1010),
        (date(2018, 12, 3), 1196),
        (date(2018, 12, 10), 4250),
        (date(2018, 12, 13), 1246),
        (date(2018, 11, 28), 723),
    ]


def test_every_order_is_of_a_product_and_a_store_that_exist(connection: Any) -> None:
    """And none has a value that says nothing."""
    run_script(connection, "initial")

    good = (
        "SELECT count(*), count(DISTINCT productid), count(DISTINCT storeid), min(qty) > 0, min(soldprice) > 0"
        " FROM productorder o JOIN product p ON p.id = o.productid JOIN store s ON s.id = o.storeid"
    )
    assert _all(connection, good) == [(8425, 25, 8, 1, 1)]


def test_the_incremental_script_is_the_walkthroughs_four_statements(connection: Any) -> None:
    """They run unchanged, and change one product, delete one, add 1345 orders and a store."""
    run_script(connection, "initial")

    run_script(connection, "incremental")

    assert statements("incremental") == WALKTHROUGH
    sample = [("Sample Product", "Sample Dept", "Sample Category")]
    assert _all(connection, "SELECT name, dept, category FROM product WHERE id = 1001") == sample
    assert _all(connection, "SELECT id FROM product WHERE id = 1002") == []
    assert _all(connection, "SELECT count(*) FROM productorder") == [(8425 + 1345,)]
    assert _all(connection, "SELECT * FROM store WHERE id = 1009") == [(1009, "125 Technology Dr.", "Irvine", "CA", "US", "92618")]


def test_scripts_are_split_as_the_client_does() -> None:
    """Not at a semicolon in quotes, in a comment, or in a procedure's body."""
    script = """-- first; comment
select 'a;''b', "c;\\"d", `e;f`; -- it's the end
delimiter //
create procedure p() begin select 1; select 2; end//
delimiter ;
select 3"""

    assert split_statements(script) == [
        "select 'a;''b', \"c;\\\"d\", `e;f`",
        "create procedure p() begin select 1; select 2; end",
        "select 3",
    ]


def test_an_unknown_script_is_refused() -> None:
    """The message names those that exist."""
    with pytest.raises(ValueError, match="initial, incremental"):
        statements("final")
