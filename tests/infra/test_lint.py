"""cfn-lint finds nothing in the templates: no error, no warning, no hint that it gives by default."""

from __future__ import annotations

from pathlib import Path

import pytest
from cfnlint.api import lint_file
from cfnlint.config import ManualArgs

from infra.aws import FOLDER

CONFIG = ManualArgs(regions=["us-east-1"])


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.name)
def test_cfn_lint_finds_nothing(file: Path) -> None:
    assert [f"{file.name}:{found.linenumber}: {found.rule.id} {found.message}" for found in lint_file(file, config=CONFIG)] == []


def test_cfn_lint_would_say_what_is_wrong(tmp_path: Path) -> None:
    """That it runs with its rules: a property that does not exist."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("Resources:\n  Topic:\n    Type: AWS::SNS::Topic\n    Properties:\n      Name: topic\n")
    assert [found.rule.id for found in lint_file(wrong, config=CONFIG)] == ["E3002"]
