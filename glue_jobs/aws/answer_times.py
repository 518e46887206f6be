"""Times in AWS's answers, read quickly: a listing has one for each object, and botocore took most of a listing's time for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import botocore.session
import botocore.utils

_FORM = "2024-05-17T10:00:00.000Z"  # as S3 writes them


def quick_times(session: botocore.session.Session) -> None:
    """Let the session's clients read times with `read_time`."""
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=read_time)


def read_time(value: Any) -> datetime:
    """The time in an answer, aware; any form that botocore reads."""
    if isinstance(value, str) and len(value) == len(_FORM) and value[-1] == "Z" and value[10] == "T":
        try:
            return datetime.fromisoformat(value[:-1] + "+00:00")
        except ValueError:
            pass
    found: datetime = botocore.utils.parse_timestamp(value)
    return found
