"""Whatever is done to a source table, its lake table holds the same rows: full loads and batches by Arrow in one process."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from tests.spark.scenarios import Scenario, Source, scenarios
from tests.spark.tables import WorkTable, texts
from tests.work_tables import MakeTable


@settings(
    max_examples=40,
    phases=[Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(scenarios())
def test_the_lake_table_is_the_source_table(new_table: MakeTable, scenario: Scenario) -> None:
    """After every run the lake table has the dict's rows, the change says how many keys it touched, and its records are true."""
    table = new_table(scenario.columns, primary_key=scenario.primary_key, partition_key=scenario.partition_key)
    source = Source(scenario.width)
    if scenario.load is not None:
        for number, rows in enumerate(scenario.load, 1):
            table.load(rows, number)
            source.take(("I", row) for row in rows)
        assert table.run("LoadInitial", **scenario.settings) == 0, table.last_run()
        _check(table, source, scenario)
    for files in scenario.rounds:
        for changes in files:
            table.cdc(changes)
        assert table.run(**scenario.settings) == 0, table.last_run()
        _check(table, source_after(source, table, files, scenario.settings["batch_files"] == "1"), scenario)


def source_after(source: Source, table: WorkTable, files: list, one_by_one: bool) -> Source:
    batches = files if one_by_one else [[change for changes in files for change in changes]]
    counts = [source.take(changes) for changes in batches]
    assert table.counts() == tuple(sum(each) for each in zip(*counts, strict=True))
    return source


def _check(table: WorkTable, source: Source, scenario: Scenario) -> None:
    assert texts(table.rows()) == texts(scenario.as_read(row) for row in source.rows.values())
    table.check_folder()
    table.check_files()
