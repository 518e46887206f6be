"""DMS's own columns are told from a table's."""

from __future__ import annotations

import pytest

from glue_jobs.core.dms_columns import before_images, excluded_columns, image_of

OWN = ["Op", "id", "name"]


@pytest.mark.parametrize(
    ("added", "images"),
    [
        ([], {}),
        (["BI_id", "BI_name"], {"id": "BI_id", "name": "BI_name"}),
        (["AR_H_CHANGE_SEQ", "BI_id"], {"id": "BI_id"}),
        (["BI_id", "AR_H_CHANGE_SEQ"], {"id": "BI_id"}),
        (["BI_id", "AR_H_CHANGE_SEQ", "BI_name"], {"id": "BI_id", "name": "BI_name"}),
        (["BI_id", "BI_AR_H_CHANGE_SEQ", "AR_H_CHANGE_SEQ"], {"id": "BI_id", "AR_H_CHANGE_SEQ": "BI_AR_H_CHANGE_SEQ"}),
        (["BI_id", "own"], {}),
    ],
)
def test_before_images_are_the_last_columns_wherever_the_sequence_is(added: list[str], images: dict[str, str]) -> None:
    """A task that adds the change sequence has it before them, among them or behind them."""
    assert before_images([*OWN, *added]) == images
    assert set(excluded_columns([*OWN, *added])) == {*images.values()} | {"AR_H_CHANGE_SEQ"}.intersection(added)


def test_an_image_s_name_follows_its_pattern() -> None:
    """Of several that which it was made by."""
    assert image_of("name_old", "name", "title", ("BI_*", "*_old")) == "title_old"
