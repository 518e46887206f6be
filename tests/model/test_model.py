"""Every state of every scenario: with all rules nothing goes wrong, without any one of them something does."""

from __future__ import annotations

import functools
import pkgutil
import re
from dataclasses import replace

import pytest

import tests.model
from tests.model.explore import REQUESTS, Found, explore
from tests.model.rules import ALL, NAMES, Rules
from tests.model.scenarios import PROBES, SCENARIOS, Probe

MEANT = re.compile(r"^    (\w+)\n((?: {8}.*\n)+)", re.MULTILINE)
DOTTED = re.compile(r"\b(?:glue_jobs|controller|tests)(?:\.\w+)+")
PAIRS = [probe for probe in PROBES if probe.beside]


@pytest.mark.parametrize("name", SCENARIOS)
def test_with_all_rules_nothing_goes_wrong(name: str) -> None:
    """No reachable state of the scenario violates an invariant, and the scenario reaches what it is there for."""
    found = _found(name)

    assert found.complete
    assert not found.harm, _told(found)
    assert [part for part in SCENARIOS[name].meets if not any(part in label for label in found.labels)] == []


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: f"{probe.rule}-{probe.harm.name}")
def test_without_a_rule_there_is_harm(probe: Probe) -> None:
    """Leaving out one rule, and what covers for it, violates the invariant that the rule is there for."""
    found = explore(SCENARIOS[probe.scenario], _without(probe.rule, probe.beside), until=probe.harm)

    assert probe.harm in found.harm, f"{found.states} states, {_told(found) or 'no harm'}"


@pytest.mark.parametrize("probe", PAIRS, ids=lambda probe: f"{probe.rule}-{probe.beside}")
def test_of_two_rules_that_cover_for_each_other_one_is_enough(probe: Probe) -> None:
    """With either rule of such a pair its harm doesn't come about."""
    for rule in (probe.rule, probe.beside):
        found = explore(SCENARIOS[probe.scenario], _without(rule))

        assert found.complete
        assert probe.harm not in found.harm, _told(found)


def test_every_rule_has_a_probe() -> None:
    """No rule is only there in words."""
    assert {probe.rule for probe in PROBES} == set(NAMES)


def test_the_scenarios_send_every_request() -> None:
    """A request that none sends would be as good as absent; two are only there where a rule is missing."""
    sent: set[str] = set()
    plain = ("batch and append, answers lost and late", "uploads gone", "a reader", "another layout", "catalog race")
    for name in (*plain, "a staged change is discarded", "stage, erase, commit"):
        sent |= _found(name).sent

    assert set(REQUESTS) - sent == {"write_record", "write_cursor"}


def test_the_docstring_names_every_rule_and_code_that_exists() -> None:
    """Each rule's meaning names the code that keeps it, under a name that can be imported."""
    meant = dict(MEANT.findall(tests.model.__doc__ or ""))

    assert list(meant) == list(NAMES)
    for rule, text in meant.items():
        assert DOTTED.findall(text), rule
    for dotted in DOTTED.findall(tests.model.__doc__ or ""):
        pkgutil.resolve_name(dotted)


@functools.cache
def _found(name: str) -> Found:
    """With all rules."""
    return explore(SCENARIOS[name])


def _without(*rules: str) -> Rules:
    return replace(ALL, **{rule: False for rule in rules if rule})


def _told(found: Found) -> str:
    return "\n".join(f"{harm.value}:\n  " + "\n  ".join(way) for harm, way in found.harm.items())
