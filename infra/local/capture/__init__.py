"""A stand-in for DMS: a MySQL or MariaDB database's tables and row binlog, as DMS's files in S3.

Needs the extra `capture`. A full load, then the binlog, at least once: after a crash, rows since the saved position are
written again under later names.
"""

from infra.local.capture.command import run_capture
from infra.local.capture.errors import CaptureError, SetupError, UsageError
from infra.local.capture.session import Capture, CaptureOptions, CaptureSummary, TableSummary, capture

__all__ = [
    "Capture",
    "CaptureError",
    "CaptureOptions",
    "CaptureSummary",
    "SetupError",
    "TableSummary",
    "UsageError",
    "capture",
    "run_capture",
]
