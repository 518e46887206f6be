"""`dmslake settings`: every setting with its value, default and meaning."""

from __future__ import annotations

from typing import Any

import click

from controller.cli.call import LIMIT_FIELDS, MEANINGS, Call, with_call
from controller.cli.output import Answer, View
from glue_jobs.core.settings import DEFAULTS, setting_names

COLUMNS = ("setting", "value", "default", "unit", "meaning")


@click.command()
@with_call
def settings(call: Call) -> int:
    """List every setting: its value here, default and meaning. A setting x_y is the option --x-y, DMSLAKE_X_Y, the job argument --x_y."""
    rows = [_setting(call, name) for name in setting_names()]
    return call.show(
        Answer({"settings": rows}, [View(COLUMNS, [["" if row[name] is None else str(row[name]) for name in COLUMNS] for row in rows])])
    )


def _setting(call: Call, name: str) -> dict[str, Any]:
    limit = LIMIT_FIELDS.get(name)
    names = {"setting": name, "option": "--" + name.replace("_", "-"), "variable": "DMSLAKE_" + name.upper()}
    if limit is None:
        return {
            **names,
            "value": getattr(call.settings, name),
            "default": DEFAULTS.get(name, ""),
            "unit": "",
            "meaning": MEANINGS.get(name, ""),
        }
    value = getattr(call.settings.limits, name)
    return {**names, "value": value, "default": limit.default, "unit": limit.metadata["unit"], "meaning": limit.metadata["meaning"]}
