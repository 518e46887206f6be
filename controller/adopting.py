"""An adoption, found out before its run is started: the table's item as it will be, and the plan of the run. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.plan import ADOPT, RunPlan, TablePlan, pack_runs
from glue_jobs.aws.state_table import StateTable
from glue_jobs.core.adoption import Adoption, AdoptWish
from glue_jobs.core.errors import UsageError
from glue_jobs.core.limits import Limits
from glue_jobs.core.paths import S3Uri, TablePath, changes_folder, lake_folder
from glue_jobs.core.state import NO_SOURCE, TableState, default_item, read_state


@dataclass(frozen=True)
class Draft:
    """A table's item as an adoption needs it. new: the whole item, where there is none yet; values: what to set in the one there is."""

    state: TableState
    new: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def write(self, table: StateTable) -> None:
        """Write what is not there yet. Alone it does nothing: a new item is inactive, and the folder belongs to a table without a head."""
        path = str(self.state.path)
        if self.new:
            table.create(self.new)
        elif self.values:
            table.set_attributes(path, self.values)


def draft_without_source(table: StateTable, text: str, out_path: str) -> Draft:
    """Of a table that DMS does not write for: its path is its lake folder."""
    if out_path:
        raise UsageError("--out-path with --no-source", "bad-argument", "without a source the table's PATH is its folder")
    if "/" not in text:
        raise UsageError(f"with --no-source PATH is the table's folder, not {text!r}", "bad-path", "give s3://bucket/prefix/schema/table/")
    path = TablePath.parse(text)
    item = table.get(str(path))
    if item is None:
        new = {**default_item(path, f"s3://{path}"), "Source": NO_SOURCE}
        return Draft(read_state(new), new=new)
    state = read_state(item)
    if state.has_source:
        raise UsageError(f"{path} is known as a table that DMS writes", "bad-argument", "leave out --no-source, or give the lake's folder")
    return Draft(state)


def draft_with_source(state: TableState, out_path: str, lake: str) -> Draft:
    """Of a table that has an item. out_path: where the other program wrote it; else as the item says, else below the setting lake."""
    values = {}
    if out_path:
        folder = S3Uri.folder(out_path)
        changes_folder(folder)
        values["out_path"] = str(folder)
    elif not state.out_path:
        if not lake:
            raise UsageError(f"the item of {state.path} has no out_path", "no-out-path", "give --out-path s3://bucket/prefix/table/")
        values["out_path"] = str(lake_folder(lake, state.path))
    if state.head or values.get("out_path") == state.out_path:
        values = {}
    return Draft(read_state({**state.item, **values}), values=values)


def adopt_runs(adoption: Adoption, wish: AdoptWish, limits: Limits) -> RunPlan:
    """The run of the job Adopt."""
    table = TablePlan(
        str(adoption.state.path),
        "adopt",
        f"{len(adoption.files)} file(s) of another program",
        ADOPT,
        files=len(adoption.files),
        bytes=adoption.size_bytes,
        pending_bytes=adoption.size_bytes,
        table_bytes=adoption.size_bytes,
    )
    return RunPlan((table,), pack_runs((table,), limits, wish.arguments()), ())
