"""A workload on a base, ready for use: the change files, the files that they hit, and the rows that must come of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data.base import KEY, SEED, Base, write
from benchmarks.data.digest import Digest, digest_of
from benchmarks.data.kept import kept_folder
from benchmarks.data.workloads import CORRECT, CORRECTION_KEY, LOAD, WORKLOADS, Workload, applied, net
from infra.local.dms_files import dms_parquet


@dataclass(frozen=True)
class Prepared:
    """changes: one file of DMS for each batch. impacted: the base's files that hold a changed row. truth: the table's rows
    afterwards; impacted_rows: those of the impacted files, unchanged; base_rows: those of before. point: a key that is there
    afterwards."""

    base: Base
    workload: str
    changes: tuple[Path, ...]
    impacted: tuple[str, ...]
    truth: Digest
    impacted_rows: Digest
    base_rows: Digest
    point: str

    @property
    def is_load(self) -> bool:
        return WORKLOADS[self.workload].kind == LOAD

    @property
    def point_literal(self) -> str:
        """The key as SQL."""
        return f"'{self.point}'" if pa.types.is_string(self.base.schema.field(KEY).type) else self.point


def prepare(workload: Workload, base: Base) -> Prepared:
    """Made when it is first asked for, by pyarrow alone, and kept on disk."""
    folder = kept_folder(base.folder / workload.name, lambda part: _make(workload, base, part))
    made = json.loads((folder / "made.json").read_text())
    return Prepared(
        base,
        workload.name,
        tuple(folder / name for name in made["changes"]),
        tuple(made["impacted"]),
        Digest(**made["truth"]),
        Digest(**made["impacted_rows"]),
        Digest(**made["base_rows"]),
        made["point"],
    )


def _make(workload: Workload, base: Base, folder: Path) -> None:
    table = base.read()
    batches = list(workload.batches(table, base, np.random.default_rng([SEED, workload.seed])))
    for number, batch in enumerate(batches):
        path = folder / f"{number:02d}.parquet"
        if workload.kind == CORRECT:
            write(batch.select(CORRECTION_KEY).group_by(CORRECTION_KEY).aggregate([]) if number == 0 else batch.drop_columns(["Op"]), path)
        else:
            path.write_bytes(dms_parquet(batch))
    change = batches[0].slice(0, 0) if workload.kind == LOAD else net(batches)
    impacted = impacted_files(table, change, base)
    files = [pq.read_table(base.folder / "files" / name) for name in impacted]
    after = applied(table, change)
    made = {
        "changes": [f"{number:02d}.parquet" for number in range(len(batches))],
        "impacted": impacted,
        "truth": asdict(digest_of(after)),
        "impacted_rows": asdict(digest_of(pa.concat_tables(files) if files else table.slice(0, 0))),
        "base_rows": asdict(digest_of(table)),
        "point": str(after[KEY][after.num_rows - 1].as_py()),
    }
    (folder / "made.json").write_text(json.dumps(made))


def impacted_files(table: pa.Table, change: pa.Table, base: Base) -> list[str]:
    """The files that hold a row with a changed key."""
    hit = np.flatnonzero(pc.is_in(table[KEY], value_set=change[KEY].combine_chunks()).to_numpy(zero_copy_only=False))
    numbers: Sequence[int] = np.unique(np.searchsorted(base.bounds(), hit, side="right") - 1).tolist()
    return [base.file_name(number) for number in numbers]
