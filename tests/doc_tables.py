"""The tables in README.md, benchmarks/README.md and docs/ that are made from the code, or from the results of the benchmarks.

python -m tests.doc_tables    writes them into the documents, between their `begin` and `end` marks
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml

from benchmarks.costs import LOADS as COST_LOADS
from benchmarks.costs import text_of
from benchmarks.reporting.overview import faster_elsewhere, read_pages, times_as_long, workloads_table
from controller.cli.call import MEANINGS
from glue_jobs.core.limits import MIB, Limits
from glue_jobs.core.schema import ARROW_TO_LAKE, DMS_TO_ARROW, lake_type
from glue_jobs.core.settings import DEFAULTS
from infra.aws import LAKE
from infra.local.feed.formats import FORMATS
from infra.local.feed.layouts import FOLDERS, LOADS, NAMES, TRANSACTIONS

ROOT = Path(__file__).parent.parent


def settings_table() -> str:
    """The settings that say where things are and how jobs run."""
    rows = [(f"`--{name.replace('_', '-')}`", f"`DMSLAKE_{name.upper()}`", f"`--{name}`", _code(DEFAULTS.get(name, "")), meaning)
            for name, meaning in MEANINGS.items()]  # fmt: skip
    return markdown(("option", "environment", "job argument", "default", "meaning"), rows)


def limits_table() -> str:
    """Every threshold."""
    rows = []
    for item in fields(Limits):
        default = item.default
        assert isinstance(default, (int, float))
        rows.append((f"`{item.name}`", _amount(default, item.metadata["unit"]), item.metadata["unit"], item.metadata["meaning"]))
    return markdown(("name", "default", "unit", "meaning"), rows)


def types_table() -> str:
    """What DMS writes → what the lake has."""
    return markdown(("Arrow type of the raw column", "lake type"), [(f"`{arrow}`", f"`{lake}`") for arrow, lake in ARROW_TO_LAKE.items()])


def dms_types_table() -> str:
    """The types of DMS's own → what the lake has."""
    rows = []
    for name, arrow in DMS_TO_ARROW.items():
        lake = lake_type(arrow)
        assert lake is not None
        kind, _, setting = name.partition(", ")
        told = f"`{kind}`" + (f" with `{setting}`" if setting else "")
        parametrised = name == "NUMERIC"
        rows.append((told, "`decimal128(p, s)`" if parametrised else f"`{arrow}`", "`decimal(p,s)`" if parametrised else f"`{lake}`"))
    return markdown(("type of DMS", "Arrow type of the raw column", "lake type"), rows)


class _Template(yaml.SafeLoader):
    """Reads a template; of CloudFormation's functions, which stand in no parameter, nothing is kept."""


_Template.add_multi_constructor("!", lambda loader, tag, node: None)


def parameters_table() -> str:
    """The parameters of the lake's template, in the order and groups in which the console shows them."""
    template: Any = yaml.load(LAKE.read_text("utf-8"), _Template)
    rows = []
    for group in template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]:
        for name in group["Parameters"]:
            facts = template["Parameters"][name]
            default = _code(str(facts["Default"])) if "Default" in facts else "must be given"
            rows.append((group["Label"]["default"], f"`{name}`", default, " ".join(facts["Description"].split())))
    return markdown(("group", "parameter", "default", "meaning"), rows)


def feed_layouts_table() -> str:
    """The layouts of `dmslake feed` with an example of each; those whose names differ by their ending share a row."""
    written = datetime(2024, 9, 3, 0, 0, 1, 123456, timezone.utc)
    commit = written - timedelta(seconds=2)
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for what, names, text in (
        ("folders of CDC files", (*FOLDERS, TRANSACTIONS), lambda name: FOLDERS[name](commit) if name in FOLDERS else ""),
        ("names of CDC files", NAMES, lambda name: NAMES[name](written)),
        ("load files", LOADS, lambda name: LOADS[name](10)),
    ):
        for name in names:
            groups.setdefault((what, re.sub(r"-[a-z0-9]+$", "", name) if what != "load files" else name), []).append((name, text(name)))
    rows = []
    for (what, _), found in groups.items():
        some = found if len(found) <= 4 else [found[0], ("…", "…"), found[-1]]
        rows.append((what, *(" ".join(text if text == "…" else _code(text) for text in texts) for texts in zip(*some, strict=True))))
    return markdown(("of", "`--layout`", "example"), rows)


def feed_formats_table() -> str:
    """The formats of `dmslake feed`."""
    return markdown(("`--format`", "files are"), [(f"`{name}`", forms.meaning) for name, forms in FORMATS.items()])


TABLES: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "limits": limits_table,
    "types": types_table,
    "dms_types": dms_types_table,
    "parameters": parameters_table,
    "feed_layouts": feed_layouts_table,
    "feed_formats": feed_formats_table,
    "costs": lambda: text_of(COST_LOADS),
    "compared": lambda: times_as_long(read_pages(), "benchmarks/results/"),
    "faster": lambda: faster_elsewhere(read_pages(), "results/"),
    "workloads": workloads_table,
}


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def with_tables(text: str) -> str:
    """A document's text with every marked table as the code has it now."""

    def fresh(match: re.Match[str]) -> str:
        return f"<!-- {match[1]}: begin (from the code: python -m tests.doc_tables) -->\n{TABLES[match[1]]()}\n<!-- {match[1]}: end -->"

    return re.sub(r"<!-- (\w+): begin[^>]*-->\n(?:.*?\n)?<!-- \1: end -->", fresh, text, flags=re.DOTALL)


def documents() -> list[Path]:
    """README.md, that of the benchmarks and the pages of docs/."""
    return [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _amount(value: float, unit: str) -> str:
    """A default as a person writes it: whole MiB where it is."""
    if unit == "bytes" and value and value % MIB == 0:
        return f"{int(value)} ({int(value // MIB)} MiB)"
    return f"{value:g}" if value < 1e6 else f"{int(value)}"


if __name__ == "__main__":
    for document in documents():
        document.write_text(with_tables(document.read_text("utf-8")), "utf-8")
