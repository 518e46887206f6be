"""The rows that a page shows of a change."""

from __future__ import annotations

from typing import Any

import pytest

from controller.pages import rows
from controller.pages.rows import RowReader
from glue_jobs.core.snapshot import Snapshot


def test_a_change_whose_rows_can_not_be_shown_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is: a report of all tables has the other ones all the same."""

    def failing(*_: Any) -> Any:
        raise KeyError("some column")

    monkeypatch.setattr(rows, "rows_apart", failing)
    monkeypatch.setattr(RowReader, "_place", lambda *_: None)
    session: Any = None
    state: Any = None

    found = RowReader(session).sample(state, Snapshot(), Snapshot(), 3)

    assert found == (None, "They can't be read: KeyError: 'some column'.")
