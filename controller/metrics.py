"""What a controller run says to CloudWatch: one line in the embedded metric format, from the report. Pure.

CloudWatch makes metrics of the line because of its member `_aws`; the line is part of the job's output, so no further permission is
needed. The alarms and the dashboard of the template name the same namespace, dimension and metrics.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from controller.report import GOOD, RunReport
from glue_jobs.core.settings import Settings

NAMESPACE = "dmslake"
INSTALLATION = "Installation"  # the dimension; its value is the state table's name, which no two installations of an account share
UNITS = {"Runs": "Count", "TablesBlocked": "Count", "TablesFailed": "Count", "LagSeconds": "Seconds"}


def metrics_line(settings: Settings, report: RunReport, at: datetime) -> dict[str, Any] | None:
    """The line of a run that looked at all tables; None for one of some tables (`--path`), which says nothing of the others.

    Runs is 1: its absence tells that the controller has stopped. LagSeconds is the greatest of the active tables that are not paused,
    after the run. TablesFailed counts what neither ended well nor is blocked, and tables whose catalog step could not be done: Athena
    would never see their new partitions. A lease that another run holds is no failure.
    """
    if settings.paths:
        return None
    blocked = sum(1 for table in report.tables if table.outcome == "blocked")
    failed = sum(1 for table in report.tables if table.outcome not in GOOD | {"blocked", "lease-held"} or table.catalog_pending)
    lag = max((table.lag_seconds for table in report.tables), default=0.0)
    values: dict[str, float] = {"Runs": 1, "TablesBlocked": blocked, "TablesFailed": failed, "LagSeconds": lag}
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [[INSTALLATION]],
        "Metrics": [{"Name": name, "Unit": unit} for name, unit in UNITS.items()],
    }
    about = {"Timestamp": int(at.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    return {"_aws": about, INSTALLATION: settings.state_table, "run_id": report.run_id, **values}
