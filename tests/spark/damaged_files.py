"""Raw files that are damaged, one after another, each brought to a table: a program of its own, because a reader of such files may crash.

    python -m tests.spark.damaged_files SEED FIRST STOP    the cases FIRST to before STOP; two lines for each: begun, ended

tests/spark/test_fuzz_raw.py starts it, and says what right rows are.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from glue_jobs.aws.clients import make_clients
from glue_jobs.aws.state_table import StateTable
from infra.local.dms_files import cdc_file_name
from infra.local.feed.rounds import Round, make_rounds
from infra.local.feed.wish import FeedWish
from infra.local.session import aws_environment
from tests.fed_tables import AT_ONCE, SOME_COLUMNS, deliver
from tests.quick_aws import QuickAws
from tests.quick_clients import remember_models
from tests.spark.independent import RawRow, Values, after, as_sets, parquet_rows, values_of
from tests.spark.independent_csv import csv_rows
from tests.spark.tables import WorkTable

Row = frozenset[tuple[str, Any]]
MEMORY_BYTES = 6 << 30  # less than what a damaged length asks for
FORMATS = ("parquet", "csv", "parquet-gzip", "parquet-2.0", "csv.gz", "parquet-pandas")
FIRST_CDC = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=2)  # after all loads
WISH = FeedWish(rows=25, rounds=1, changes=16, files=1)


@dataclass(frozen=True)
class Case:
    """A damaged file. is_load: the load file of a table that is loaded already, else the CDC file that comes next. whole: as it was."""

    number: int
    format: str
    is_load: bool
    what: str
    data: bytes
    whole: bytes


def damaged(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """(what was done, the bytes): bits changed, a byte, the end cut off, something appended, a run of zeros, a run twice."""
    size, out = len(data), bytearray(data)
    at, length = _place(size, chance), chance.randint(1, 40)
    what = chance.choice(("flip", "flip", "flips", "byte", "cut", "append", "zeros", "double"))
    if what in ("flip", "flips"):
        for place in (at, *(_place(size, chance) for _ in range(2 * (what == "flips")))):
            out[place] ^= 1 << chance.randrange(8)
    elif what == "byte":
        out[at] = chance.randrange(256)
    elif what == "cut":
        del out[at:]
    elif what == "append":
        out += chance.choice((b"\0" * 7, b"\n", b"PAR1", data[-9:], chance.randbytes(20)))
    elif what == "zeros":
        out[at : at + length] = bytes(len(out[at : at + length]))
    else:
        out[at:at] = out[at : at + length]
    return f"{what} at {at} of {size}", bytes(out)


def _place(size: int, chance: random.Random) -> int:
    """Anywhere; at the ends, where a format keeps what it says of itself, more often."""
    where = chance.random()
    if where < 0.4:
        return chance.randrange(size)
    near = 40 if where > 0.9 else 4000
    return chance.randrange(min(40, size)) if where < 0.45 else size - 1 - chance.randrange(min(size, near))


@dataclass
class Loaded:
    """A table that is as it should be. load: the bytes of its load file; rows: what the lake holds."""

    table: WorkTable
    load: bytes
    rows: list[Values]


class Bench:
    """Tables to bring cases to: one per format, made anew onces columns."""

    def __init__(self, aws: QuickAws, seed: int) -> None:
        self._aws, self._seed = aws, seed
        self._clients = make_clients(aws.environment())
        StateTable(self._clients, aws.state_table).ensure()
        self._parts: dict[str, list[Round]] = {}
        self._tables: dict[str, Loaded] = {}

    def _wish(self, form: str) -> FeedWish:
        return replace(WISH, seed=self._seed, format=form, header="csv" in form)

    def parts(self, form: str) -> list[Round]:
        """The load and the changes that are damaged."""
        if form not in self._parts:
            self._parts[form] = list(make_rounds(self._wish(form)))
        return self._parts[form]

    def case(self, number: int) -> Case:
        """The same for the same seed and number."""
        chance = random.Random(self._seed * 1_000_003 + number)
        form, is_load = FORMATS[number % len(FORMATS)], chance.random() < 0.3
        whole = self.parts(form)[0 if is_load else 1].files[0].encode()
        what, data = damaged(whole, chance)
        return Case(number, form, is_load, what, data, whole)

    def run(self, case: Case) -> str:
        """What became of it, in a word; AssertionError if that is none of what may."""
        loaded = self._tables.pop(case.format, None) or self._loaded(case.format)
        table, before = loaded.table, _lake(loaded.table)
        load, changes = (part.files[0].path for part in self.parts(case.format))
        ending = changes.partition(".")[2]
        path = load if case.is_load else f"{cdc_file_name(FIRST_CDC + timedelta(seconds=case.number)).partition('.')[0]}.{ending}"
        key = table.put_raw(path, case.data)
        code = table.run("LoadInitial" if case.is_load else "LoadIncremental", **AT_ONCE)
        result = table.last_run()
        if not case.is_load:
            table.delete_raw(path)  # applied or not, a reload must not find it
        elif code:
            table.put_raw(path, loaded.load)
        if code == 0:
            return self._check_rows(case, loaded)
        assert result["outcome"] == "blocked", result
        assert key in result["error"]["message"], f"the error doesn't name the file: {result['error']}"
        assert _lake(table) == before, "blocked, and yet the lake changed"
        self._tables[case.format] = loaded
        return str(result["error"]["code"])

    def _loaded(self, form: str) -> Loaded:
        aws, load = self._aws, self.parts(form)[0]
        table = WorkTable(aws.environment(), aws.raw, aws.lake, SOME_COLUMNS, shared=self._clients)
        deliver(table, self._wish(form), load)
        assert table.run("LoadInitial") == 0, table.last_run()
        return Loaded(table, load.files[0].encode(), values_of(load.oracle.table()))

    def _check_rows(self, case: Case, loaded: Loaded) -> str:
        """The lake has what another reader reads. Where that refuses the file, ours read nothing of what is damaged: then all as it was."""
        types = self.parts(case.format)[0].oracle.schema()
        word, rows = "applied", _rows(case.format, case.data, types)
        if rows is None:
            word, rows = "as-it-was", _rows(case.format, case.whole, types)
        assert rows is not None
        found = loaded.table.read()
        lake, truth = Counter(as_sets(values_of(found))), Counter(after([] if case.is_load else loaded.rows, rows))
        ours, theirs = _values_only_in(lake, truth), _values_only_in(truth, lake)
        assert lake == truth, f"{word}: only in the lake {ours}, only in the other reader's {theirs}"
        if {column.name: column.type for column in loaded.table.snapshot().schema} == types:
            self._tables[case.format] = Loaded(loaded.table, case.data if case.is_load else loaded.load, values_of(found))
        return word


def _rows(form: str, data: bytes, types: Mapping[str, str]) -> list[RawRow] | None:
    return csv_rows(data, types) if form.startswith("csv") else parquet_rows(data)


def _lake(table: WorkTable) -> tuple[object, ...]:
    item = table.item()
    return item["Head"], item["LastIncrementalFile"], item["LastFullLoadDate"], table.visible()


def _values_only_in(some: Counter[Row], others: Counter[Row]) -> list[str]:
    """The values of rows that only `some` has, those left out that are in the others' rows too."""
    rest = {value for row in others - some for value in row}
    return [repr(value)[:200] for row in some - others for value in sorted(row - rest, key=repr)][:6]


def main(seed: int, first: int, stop: int) -> int:
    """Run the cases; what went wrong in a case is part of its line. What jobs log goes to stderr."""
    faulthandler.enable()
    answers, sys.stdout = sys.stdout, sys.stderr

    def say(**facts: object) -> None:
        print(json.dumps(facts), file=answers, flush=True)

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.environ.update(aws_environment())  # where the jobs' own clients look
    remember_models()
    with QuickAws().connected() as aws:
        aws.create()
        bench = Bench(aws, seed)
        for number in range(first, stop):
            case = bench.case(number)
            say(begun=number, case=f"{case.format} {'load' if case.is_load else 'cdc'}, {case.what}")
            try:
                say(ended=number, outcome=bench.run(case), wrong="")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test wants to know
                say(ended=number, outcome="wrong", wrong=f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
