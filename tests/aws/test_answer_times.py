"""Times in AWS's answers."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import botocore.utils
import pytest

from benchmarks.scale import MadeUpAws, Shape
from glue_jobs.aws.answer_times import read_time

FORMS = [
    "2024-05-17T10:00:00.000Z", "2024-05-17T10:00:00.123Z", "2024-05-17T10:00:00Z", "2024-05-17T10:00:00+0200", "20240517T100000Z",
    "Fri, 17 May 2024 10:00:00 GMT", 1715940000, 1715940000.25, "1715940000", "2024-13-17T10:00:00.000Z", "2024-05-17 10:00:00.000Z",
    "                       Z", "2024-05-17T24:00:00.000Z",
]  # fmt: skip


@pytest.mark.parametrize("value", FORMS)
def test_a_time_is_what_botocore_reads(value: Any) -> None:
    """Whatever its form; what is no time is refused by both."""
    assert _read(read_time, value) == _read(botocore.utils.parse_timestamp, value)


def test_the_clients_read_times_so() -> None:
    """Not by botocore's own reader, which takes most of a listing's time."""
    s3 = MadeUpAws(Shape(1, 20)).clients().s3

    entry = s3.list_objects_v2(Bucket="raw", Prefix="dms/shop/t00000/")["Contents"][0]

    assert entry["LastModified"].tzinfo is timezone.utc  # botocore's is one of dateutil's


def _read(read: Any, value: Any) -> datetime | type[Exception]:
    try:
        found: datetime = read(value)
    except ValueError:
        return ValueError
    assert found.utcoffset() is not None
    return found.astimezone(timezone.utc)
