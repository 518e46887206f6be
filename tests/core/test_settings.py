"""Settings from flags, environment and job arguments, and the limits among them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.limits import Limits, read_limits
from glue_jobs.core.settings import Settings, read_settings, setting_names


def test_without_any_setting_there_are_defaults() -> None:
    """Raw and lake have none."""
    assert read_settings({}, {}) == Settings()


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("flag", "env", "flag"),
        (None, "env", "env"),
        ("", "env", "env"),
        (None, None, "DMSCDC_Controller"),
        (None, "", "DMSCDC_Controller"),
    ],
)
def test_a_flag_wins_over_the_environment_over_the_default(given: str | None, environment: str | None, expected: str) -> None:
    """An empty text counts as not given."""
    variables = {} if environment is None else {"DMSLAKE_STATE_TABLE": environment}

    assert read_settings({"state_table": given}, variables).state_table == expected


def test_an_empty_job_prefix_is_one() -> None:
    """Of an installation without a prefix, whatever the environment says."""
    variables = {"DMSLAKE_JOB_PREFIX": "dms-"}

    assert [read_settings({"job_prefix": given}, variables).job_prefix for given in (None, "", "own-")] == ["dms-", "", "own-"]


@pytest.mark.parametrize("name", setting_names())
def test_every_setting_is_read_from_flag_and_environment(name: str) -> None:
    """The same name with underscores, and DMSLAKE_ before it in capitals."""
    text = {"raw": "s3://raw/a", "lake": "s3://lake/a", "runner": "local", "compression": "snappy", "part_bytes": "7e6"}.get(name, "7")

    flag = read_settings({name: text}, {})
    variable = read_settings({}, {f"DMSLAKE_{name.upper()}": f" {text} "})

    assert flag == variable != Settings()


def test_no_setting_is_a_prefix_of_another() -> None:
    """getResolvedOptions of Glue binds abbreviations."""
    names = (*setting_names(), "path", "run_id")

    assert [(one, two) for one in names for two in names if one != two and two.startswith(one)] == []


def test_every_limit_says_its_unit_and_meaning() -> None:
    """The docs show them, and the error names the unit."""
    assert [item.name for item in fields(Limits) if not item.metadata["unit"] or not item.metadata["meaning"]] == []


@pytest.mark.parametrize("text", ["-1", "abc", "nan", "inf", "1e20", "1,5"])
def test_a_limit_that_is_no_number_is_refused_by_name(text: str) -> None:
    """With its unit."""
    with pytest.raises(UsageError) as caught:
        read_limits({"batch_bytes": text})

    assert ("batch_bytes" in caught.value.message, "bytes" in caught.value.todo) == (True, True)


@pytest.mark.parametrize(("name", "text"), [("part_bytes", "5242879"), ("part_bytes", "0"), ("lease_seconds", "0")])
def test_a_limit_below_what_can_work_is_refused(name: str, text: str) -> None:
    """S3 would refuse smaller parts only after the commit."""
    with pytest.raises(UsageError, match=name):
        read_limits({name: text})


def test_whole_limits_stay_whole() -> None:
    """Bytes are an int however they are written, hours may have a fraction."""
    limits = read_limits({"batch_bytes": "1e3", "late_window_hours": "0.5"})

    assert (limits.batch_bytes, type(limits.batch_bytes), limits.late_window_hours) == (1000, int, 0.5)


@pytest.mark.parametrize(("name", "text"), [("runner", "docker"), ("compression", "gzip"), ("raw", "raw/dms"), ("lake", "lake")])
def test_a_setting_out_of_its_range_is_refused(name: str, text: str) -> None:
    """The message repeats what was given."""
    with pytest.raises(UsageError, match=text):
        read_settings({name: text}, {})


def test_a_missing_setting_is_asked_for_in_all_three_ways() -> None:
    """Flag, variable and job argument."""
    with pytest.raises(ConfigurationError) as caught:
        Settings(raw="s3://raw/").require("raw", "state_table", "lake")

    assert [word in caught.value.todo for word in ("--lake", "DMSLAKE_LAKE")] == [True, True]
    assert "lake is missing" in caught.value.message


def test_paths_are_separated_by_commas() -> None:
    """Blanks around them don't count."""
    assert read_settings({"path": " a/b/c , d/e/f,"}, {}).paths == ("a/b/c", "d/e/f")
