"""The lake's template keeps rules, each with its reason, under every set-up; and each rule notices when it is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cfnlint.decode.cfn_yaml import load

from infra.aws import LAKE
from tests.infra import access_rules, job_rules, stack_rules
from tests.infra.lake_stack import SETUPS, LakeStack
from tests.infra.rules import Rule

RULES = [*access_rules.rules, *stack_rules.rules, *job_rules.rules]
PLAIN = json.dumps(load(str(LAKE)))


def found(rule: Rule, template: dict[str, Any]) -> list[str]:
    """What the rule finds in any of the set-ups."""
    return [f"{setup}: {problem}" for setup in SETUPS for problem in rule.problems(LakeStack.of(template, setup))]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_template_keeps_the_rule(rule: Rule) -> None:
    assert found(rule, json.loads(PLAIN)) == [], rule.reason


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_notices_when_it_is_broken(rule: Rule) -> None:
    template = json.loads(PLAIN)
    rule.spoil(template)
    assert found(rule, template), f"nothing was found in the spoilt template; the rule is there because: {rule.reason}"
