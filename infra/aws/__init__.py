"""The CloudFormation templates, as package data, and where they are."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
LAKE = FOLDER / "lake.yaml"
