"""dmslake beside what a user would pick instead: one run, one machine, one S3 server.

    make bench                                                   # installs what it needs, then the full run
    python -m benchmarks.install                                 # only installs
    python -m benchmarks.peers --rows 200000 --repeat 1          # a quick look
    python -m benchmarks.peers --workloads W1,W2 --contenders ours,delta --layout large --keys uuid

Writes benchmarks/results/<rows>-<layout>-<keys>.json, .md and .svg, after every repetition, so that a run that is broken off leaves what it
measured. Where results stand already it asks for `--add`, which adds to them (a full run takes hours, and may be had in parts), or for
`--replace`.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.contenders.registry import NAMES
from benchmarks.data.base import FULL_ROWS, LARGE, MANY, SEQUENCE, UUID, Base
from benchmarks.data.workloads import WORKLOADS
from benchmarks.folders import RESULTS
from benchmarks.measuring.campaign import Campaign, Outcome, run
from benchmarks.reporting.chart import chart
from benchmarks.reporting.earlier import OtherMachine, numbered, read_outcomes, runs_of
from benchmarks.reporting.machine import describe, program_state
from benchmarks.reporting.markdown import markdown
from benchmarks.reporting.summary import summarize
from benchmarks.server.stand import open_stand

LEAST_ROWS = 10_000  # with fewer, some workload has no row to change


def main(argv: Sequence[str]) -> int:
    """Measure; 1 if a contender failed or had wrong rows, 2 if nothing was begun."""
    given = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # servers and contenders end with us
    if given.render:
        return render(given.results)
    base = Base(given.rows, given.layout, given.keys)
    place = given.results / base.name
    if place.with_suffix(".json").exists() and not (given.add or given.replace):
        _say(f"{place}.json is there already: --add adds to it, --replace begins anew, --results FOLDER writes elsewhere")
        return 2
    with open_stand() as stand:
        machine = {**describe(), "S3": stand.title, "data": _data(base)}
        try:
            outcomes = read_outcomes(place, machine, program_state) if given.add else []
        except OtherMachine as error:
            _say(str(error))
            return 2
        states = {name: program_state(name) for name in given.contenders}
        # Any may be first: of runs of one repetition it would be the same one each time.
        campaign = Campaign(given.workloads, given.contenders, base, given.repeat, first=secrets.randbelow(len(given.contenders)))
        for measured in run(campaign, stand, _say):
            state = program_state(measured.contender)
            if state != states[measured.contender]:
                _say(f"{measured.contender}'s code, or what measures it, changed meanwhile: left out")
                states[measured.contender] = state
                continue
            told = replace(measured, run=f"{machine['time']} at {machine['commit']}", program=state)
            outcomes.append(numbered(told, outcomes))
            write(place, {**machine, "runs": runs_of(outcomes)}, outcomes)
    _say(f"results: {place}.md")
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def render(results: Path) -> int:
    """The Markdown and the chart of each page anew from its JSON; 2 if there is none."""
    pages = sorted(results.glob("*.json"))
    for path in pages:
        kept = json.loads(path.read_text())
        write(path.with_suffix(""), kept["machine"], [Outcome(**each) for each in kept["outcomes"]])
    _say(f"{len(pages)} pages in {results}")
    return 0 if pages else 2


def write(place: Path, machine: dict[str, str], outcomes: Sequence[Outcome]) -> None:
    """The three files of a run that has come this far."""
    rows = summarize(outcomes)
    title = machine["data"]
    place.parent.mkdir(parents=True, exist_ok=True)
    whole = {"machine": machine, "summary": [asdict(row) for row in rows], "outcomes": [asdict(outcome) for outcome in outcomes]}
    place.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")
    place.with_suffix(".md").write_text(markdown(title, machine, outcomes))
    place.with_suffix(".svg").write_text(chart(title, rows))


def _data(base: Base) -> str:
    order = "sorted by id" if base.keys == SEQUENCE else "random keys"
    return f"{base.rows:,} rows, {base.size_bytes() / 1e6:,.0f} MB in {base.files} files, {order}"


def _say(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", type=_names(tuple(WORKLOADS)), default=list(WORKLOADS), help=", ".join(WORKLOADS))
    parser.add_argument("--contenders", type=_names(NAMES), default=list(NAMES), help=", ".join(NAMES))
    parser.add_argument("--rows", type=_at_least(LEAST_ROWS), default=FULL_ROWS)
    parser.add_argument("--layout", choices=(MANY, LARGE), default=MANY, help="700 files for ten million rows, or files of 128 MB")
    parser.add_argument("--keys", choices=(SEQUENCE, UUID), default=SEQUENCE)
    parser.add_argument("--repeat", type=_at_least(1), default=3)
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--add", action="store_true", help="add to the results that are there, of the same machine and versions")
    existing.add_argument("--render", action="store_true", help="measure nothing: write Markdown and charts anew from the JSON files")
    existing.add_argument("--replace", action="store_true", help="begin anew where results are there")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the results")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least:,}, found {text!r}")
        return int(text)

    return read


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, found {text!r}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
