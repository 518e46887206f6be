"""Change ids and the names of their records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.errors import UsageError
from glue_jobs.core.ids import ChangeId, change_of_record, record_name

IDS = st.builds(ChangeId, st.integers(0, 10**10 - 1), st.integers(0, 10**6 - 1), st.from_regex(r"\A[0-9a-f]{8}\Z"))


@given(IDS)
def test_an_id_is_read_as_it_was_written(change: ChangeId) -> None:
    """Alone, and from the key of its record, compressed or not."""
    text = str(change)

    found = [ChangeId.parse(text), *(change_of_record(f"lake/_changes/a/b/{record_name(text, packed)}") for packed in (False, True))]

    assert found == [change, text, text]


@given(IDS, IDS)
def test_the_text_of_ids_sorts_like_the_ids(one: ChangeId, two: ChangeId) -> None:
    """So a listing is in the order of commits."""
    assert (str(one) < str(two)) == (one < two)


@pytest.mark.parametrize("text", ["", "1-1-00000000", "0000000001-000001-0000000G", "0000000001-000001-00000000 ", "previous"])
def test_what_is_no_id_is_refused(text: str) -> None:
    """The way out is the history."""
    with pytest.raises(UsageError, match="not a change id"):
        ChangeId.parse(text)


@pytest.mark.parametrize("key", ["", "x/", "x/notes.json", "x/0000000001-000001-0000000a.json.tmp", "x/0000000001-000001-0000000a"])
def test_other_objects_are_no_records(key: str) -> None:
    """A person may leave a note in the folder."""
    assert change_of_record(key) == ""
