"""Keys that no row could be found by again."""

from __future__ import annotations

import pytest

from tests.work_tables import MakeTable


@pytest.mark.parametrize("later", [False, True])
def test_an_empty_text_in_a_partition_column_of_the_key_is_no_null(new_table: MakeTable, later: bool) -> None:
    """The next update of the key would find no row, and the table would hold it twice."""
    table = new_table(primary_key="id,name", partition_key="name")
    table.edit(EmptyPartition="null")
    table.load([(1, "x" if later else "", 1), (2, "b", 1)])
    if later:
        table.sync()
        table.cdc([("I", (3, "", 2))])

    error = table.blocked()

    assert (error["code"], "EmptyPartition" in error["todo"]) == ("empty-partition", False)
    table.edit(PartitionKey="qty", Request="repartition" if later else "reload")
    table.cdc([("U", (1, "", 5))])
    table.sync()
    assert (1, "", 5) in table.rows()
    assert len(table.rows()) == (4 if later else 2)
