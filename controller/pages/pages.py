"""The pages read from AWS: each method is one page, as a value. What was read of a change is kept, because a change never changes."""

from __future__ import annotations

from collections.abc import Sequence

from controller.pages.views import ChangePage, DiffPage, ExplainPage, Overview, TablePage
from controller.session import Session

STEPS_SHOWN = 50  # changes on a table's page
ROWS_SHOWN = 10  # rows of each kind in a sample


class Pages:
    """The pages of one session. May be used by several threads. Every method raises DmslakeError: UsageError with code unknown-table or
    unknown-change where there is no such thing, any other UsageError for a wrong wish, and errors of AWS in our words."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def overview(self, paths: Sequence[str] = ()) -> Overview:
        """All tables of the session's settings, or those that a person named, those that need a person first."""
        raise NotImplementedError

    def table(self, path: str, at: str = "") -> TablePage:
        """One table with STEPS_SHOWN of its changes: the newest, or those that `TablePage.older` of another page leads to."""
        raise NotImplementedError

    def change(self, path: str, change: str) -> ChangePage:
        """One change, with a sample of its row changes where they can be had cheaply."""
        raise NotImplementedError

    def diff(self, path: str, a: str, b: str = "") -> DiffPage:
        """What lies between two states: changes, times or `previous`; '' for now. Needs pyarrow."""
        raise NotImplementedError

    def explain(self, path: str, key: str) -> ExplainPage:
        """The life of one row. key: its values, separated by commas as in CSV. Needs pyarrow."""
        raise NotImplementedError
