"""What becomes of a run's outcomes: medians, a table and a chart; who failed is named and has no figures."""

from __future__ import annotations

import contextlib
import json
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import peers
from benchmarks.contenders.registry import NAMES, contender
from benchmarks.data.base import Base
from benchmarks.folders import RESULTS
from benchmarks.measuring.campaign import Outcome
from benchmarks.measuring.reading import ascends
from benchmarks.peers import main
from benchmarks.reporting.chart import LABELS, chart
from benchmarks.reporting.earlier import OtherMachine, numbered, read_outcomes, runs_of
from benchmarks.reporting.machine import _modules_of, program_state
from benchmarks.reporting.markdown import markdown
from benchmarks.reporting.overview import Page, faster_elsewhere, times_as_long
from benchmarks.reporting.summary import summarize
from benchmarks.reporting.targets import targets
from benchmarks.server.counts import Counts, read_metrics


def measured(workload: str, name: str, repetition: int, seconds: float, **more: Any) -> Outcome:
    """An outcome with these seconds warm, and a second more cold."""
    measure = {"each": [], "peak_bytes": 100 * 2**20, "requests": 7, "received_bytes": 1000, "sent_bytes": 2000}
    measures = {
        "cold": {**measure, "seconds": seconds + 1},
        "warm": {**measure, "seconds": seconds, **more},
        "scan": {**measure, "seconds": 0.5},
        "point": {**measure, "seconds": 0.25},
    }
    return Outcome(workload, name, f"the {name}", repetition, measures, files=[1, 2, 3])


def test_medians_of_what_succeeded() -> None:
    """A failed repetition has no time; the others count, and the failure is said."""
    outcomes = [measured("W1", "ours", number, seconds) for number, seconds in enumerate((9.0, 1.0, 2.0), 1)]
    outcomes.append(Outcome("W1", "ours", "the ours", 4, {"cold": {"seconds": 0.1}}, failed="apply: boom\nmore"))

    (row,) = summarize(outcomes)

    assert (row.repetitions, row.warm, row.cold, row.files, row.note) == (3, 2.0, 3.0, 3, "apply: boom")


def test_who_had_wrong_rows_has_no_time() -> None:
    """Not even those of the repetitions in which they were right."""
    outcomes = [measured("W1", "delta", 1, 1.0), replace(measured("W1", "delta", 2, 1.0), failed="WRONG ROWS (scan): 1, expected 2")]

    (row,) = summarize(outcomes)

    assert (row.repetitions, row.warm, row.note) == (0, None, "WRONG ROWS (scan): 1, expected 2")


def test_ratios_are_taken_within_a_run() -> None:
    """The machine was twice as fast in the second: of 4 and 4.5 the median, not of all seconds. A run without ours says nothing."""
    seconds = {"morning": {"ours": 4.0, "plain": 16.0}, "noon": {"ours": 2.0, "plain": 9.0}, "night": {"plain": 100.0}}
    outcomes = [replace(measured("W1", name, 1, warm), run=run) for run, each in seconds.items() for name, warm in each.items()]

    ours, plain = summarize(outcomes)

    assert (ours.over_ours, plain.over_ours, plain.warm) == (None, 4.25, 16.0)
    assert "| W1: seconds of those of Spark's plain read and write | ≤ 0.35 | 0.24 (0.22 to 0.25) | yes | 2 |" in targets(outcomes)


def test_the_table_names_what_was_not_run() -> None:
    """With its reason, in its place; ratios are to ours."""
    outcomes = [
        measured("W1", "ours", 1, 2.0),
        measured("W1", "delta", 1, 9.0),
        Outcome("W1", "hudi", "the hudi", 1, not_run="no jar"),
        Outcome("W1", "sample", "the sample", 1, failed="apply: boom"),
    ]

    page = markdown("title", {"cores": "2"}, outcomes)

    assert "| the delta | 1 | 9.0 | 10.0 | 4.50 (1) | 100 | 7 | 0.0 | 0.0 | 3 | 0.5 | 0.2 |" in page
    assert "| the hudi | not run: no jar |" in page
    assert "| the sample | not run: apply: boom |" in page
    has_none = ("delta-range", "iceberg-range")  # an answer to it: they have nothing to say beside the keys
    missing = [name for name in NAMES if name not in ("ours", "delta", "hudi", "sample", *has_none)]
    assert f"- Not measured here: {', '.join(missing)}\n" in page
    assert "| cores | 2 |" in page


def test_batches_one_after_the_other() -> None:
    """How the last compares with the first is said."""
    outcomes = [measured("W5", "ours", 1, 6.0, each=[2.0, 1.0, 1.0, 1.0, 0.25, 1.0, 0.5, 3.0])]

    (row,) = summarize(outcomes)

    assert (row.last_to_first, row.end_to_begin, row.end_to_middle) == (1.5, 1.75 / 1.5, 1.75 / 0.625)
    page = markdown("title", {}, outcomes)
    assert (
        "last batch 1.50 × the first, the last quarter of them 1.17 × the first quarter and 2.80 × that in the middle, 3 files under 32 MiB"
        in page
    )


def test_the_chart_has_a_bar_for_each_time() -> None:
    """Bars of a workload share a scale, and one alone is not drawn; texts are escaped."""
    one = [measured("W1", "ours", 1, 2.0), measured("W1", "a<b", 1, 8.0), Outcome("W1", "x", "x", 1, failed="no")]
    rows = summarize([*one, measured("W6", "ours", 1, 5.0)])

    drawing = ET.fromstring(chart("a < b", rows))

    bars = [element for element in drawing.iter("{http://www.w3.org/2000/svg}rect") if element.get("class") != "paper"]
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert widths == [widths[1] / 4, widths[1]]
    texts = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"the a<b", "8.0 s, 4.0 × (cold 9.0)"} <= texts


METRICS = """\
# HELP requests Total
# TYPE requests counter
requests{name="GetObject",pool_index="0",server="127.0.0.1:9000",type="s3"} 12
requests{name="PutObject",pool_index="0",server="127.0.0.1:9000",type="s3"} 1.5e+01
requests{name="Health",server="127.0.0.1:9000",type="internode"} 99
received{server="127.0.0.1:9000",type="s3"} 1000
sent{server="127.0.0.1:9000",type="s3"} 3000
"""


def test_counts_are_differences_of_the_servers_counters() -> None:
    """Only of S3's requests, and only of those that were sent meanwhile."""
    after = read_metrics(METRICS, "requests", "received", "sent")

    counts = after.since(Counts({"GetObject": 2, "PutObject": 15}, 400, 1000))

    assert counts == Counts({"GetObject": 10}, 600, 2000)
    assert counts.request_count == 10


def test_targets_are_compared_with_what_was_measured() -> None:
    """What was not measured is named."""
    seconds = {"ours": 3.0, "plain": 10.0, "iceberg": 8.0, "iceberg-mor": 2.0}

    lines = targets([measured("W1", name, 1, warm) for name, warm in seconds.items()])

    assert lines[2:6] == [
        "| W1: seconds of those of Spark's plain read and write | ≤ 0.35 | 0.30 | yes | 1 |",
        "| W1: of those of the same, each file uploaded once | ≤ 0.35 |  | not measured | 0 |",
        "| W1: so many times faster than Iceberg copy-on-write | ≥ 3 | 2.67 | **no** | 1 |",
        "| W1: so many times faster than Delta Lake | ≥ 5 |  | not measured | 0 |",
    ]
    assert "| W1: of Iceberg merge-on-read's, with the next full scan | ≤ 1 | 1.40 | **no** | 1 |" in lines


MACHINE = {"cores": "2", "pyspark": "3.5.6"}


def keep(place: Path, outcomes: list[Outcome], machine: dict[str, str]) -> None:
    kept = {"machine": {**machine, "time": "then", "commit": "old", "runs": "then at old"}, "outcomes": [asdict(each) for each in outcomes]}
    place.with_suffix(".json").write_text(json.dumps(kept))


def test_a_run_adds_to_the_repetitions_that_are_kept(tmp_path: Path) -> None:
    """Those of a contender as it was before are left out: a median over two programs is none."""
    place = tmp_path / "1000-many-sequence"
    assert read_outcomes(place, MACHINE, {}.__getitem__) == []
    kept = [replace(measured("W1", name, 1, 2.0), run="then at old", program=f"old {name}") for name in ("ours", "delta")]
    keep(place, [*kept, measured("W1", "gone since", 1, 2.0)], MACHINE)
    now = {**MACHINE, "time": "now", "commit": "new"}

    same = read_outcomes(place, now, lambda name: f"old {name}")
    changed = read_outcomes(place, now, {"ours": "new ours", "delta": "old delta"}.__getitem__)

    assert same == kept
    assert changed == kept[1:]
    more = numbered(replace(measured("W1", "delta", 1, 3.0), run="now at new"), changed)
    assert more.repetition == 2
    assert numbered(measured("W1", "ours", 1, 3.0), changed).repetition == 1
    assert runs_of([*changed, more]) == "then at old; now at new"


def test_the_state_of_a_program_is_that_of_its_code() -> None:
    """Each contender has its own; of those that build on one another a change shows in both."""
    states = {name: program_state(name) for name in NAMES}

    assert program_state("ours") == states["ours"]
    assert states["delta"] == states["delta-dv"] != states["iceberg"]
    assert len(set(states.values())) == 7  # ours, plain's two, sample, Delta's four, delta-rs, Iceberg's four, Hudi
    assert {path.stem for path in _modules_of("delta-rs")} >= {"delta_rs", "delta", "contender"}


def test_results_of_another_machine_are_not_added_to(tmp_path: Path) -> None:
    place = tmp_path / "1000-many-sequence"
    keep(place, [], MACHINE)

    with pytest.raises(OtherMachine, match=r"pyspark: kept 3\.5\.6, now 4\.0\.0.*another --results"):
        read_outcomes(place, {**MACHINE, "pyspark": "4.0.0"}, str)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--repeat", "0"], "argument --repeat: expected a whole number of at least 1, found '0'"),
        (["--rows", "-5"], "argument --rows: expected a whole number of at least 10,000, found '-5'"),
        (["--workloads", "W1,W99"], "argument --workloads: expected some of W1, W2"),
        (["--add", "--replace"], "not allowed with argument"),
    ],
)
def test_what_cannot_be_measured_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert said in capsys.readouterr().err


def test_results_are_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hours of figures are not lost to a forgotten word."""
    (tmp_path / "10000-many-sequence.json").write_text("{}")

    assert main(["--rows", "10000", "--results", str(tmp_path)]) == 2

    assert "10000-many-sequence.json is there already: --add adds to it, --replace begins anew" in capsys.readouterr().out
    assert (tmp_path / "10000-many-sequence.json").read_text() == "{}"


def test_no_label_of_the_chart_runs_under_its_bar() -> None:
    """A letter of the chart's font is seven pixels wide at most, on average."""
    assert max(len(contender(name).title) for name in NAMES) * 7 <= LABELS


@pytest.mark.parametrize("page", sorted(RESULTS.rglob("*.json")), ids=lambda path: str(path.relative_to(RESULTS).with_suffix("")))
def test_the_committed_pages_are_made_of_their_json(page: Path, tmp_path: Path) -> None:
    """`python -m benchmarks.peers --render` would change nothing: what the code makes of the outcomes is what readers see."""
    (tmp_path / page.name).write_text(page.read_text())

    assert main(["--render", "--results", str(tmp_path)]) == 0

    for suffix in (".json", ".md", ".svg"):
        assert (tmp_path / page.name).with_suffix(suffix).read_text() == page.with_suffix(suffix).read_text()


def test_a_folder_without_pages_is_told(tmp_path: Path) -> None:
    assert main(["--render", "--results", str(tmp_path)]) == 2


def test_the_overview_has_what_was_compared_within_a_run() -> None:
    """A contender that no run has beside dmslake has no ratio; who was faster is named with its seconds, the yardstick aside."""
    outcomes = [
        measured("W1", "ours", 1, 4.0),
        measured("W1", "delta", 1, 10.0),
        measured("W1", "delta-rs", 1, 3.0),
        measured("W1", "plain", 1, 1.0),
    ]
    apart = [replace(measured("W1", "hudi", 1, 9.0), run="another")]
    rows = {(row.workload, row.contender): row for row in summarize([*outcomes, *apart])}
    pages = [Page("x", "a page", rows)]

    compared, faster = times_as_long(pages, "results/"), faster_elsewhere(pages, "results/")

    assert "| 2,000 scattered changes | Delta Lake | 2.5 |" in compared
    assert "|  | delta-rs, without Spark | 0.8 |" in compared
    assert "Hudi" not in compared
    assert "| [a page](results/x.md) | W1, in a session that runs | 4.0 | the delta-rs 3.0 |" in faster
    assert "| [a page](results/x.md) | W1, with the start of its process | 5.0 | the delta-rs 4.0 |" in faster
    assert "scan" not in faster


@pytest.mark.parametrize(("keys", "is_ascending"), [([], True), ([1], True), ([1, 1, 2], True), ([1, 3, 2], False)])
def test_keys_that_do_not_ascend_are_found(keys: list[int], is_ascending: bool) -> None:
    assert ascends(pa.chunked_array([pa.array(keys[:2], pa.int64()), pa.array(keys[2:], pa.int64())])) is is_ascending


def test_outcomes_of_code_that_changed_meanwhile_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of neither program; later ones are of the new one."""
    states = iter(["old", "new", "new"])
    monkeypatch.setattr(peers, "program_state", lambda name: next(states))
    monkeypatch.setattr(peers, "open_stand", lambda: contextlib.nullcontext(SimpleNamespace(title="S3")))
    monkeypatch.setattr(peers, "run", lambda campaign, stand, say: [measured("W1", "ours", 1, 1.0), measured("W1", "ours", 2, 2.0)])
    monkeypatch.setattr(Base, "size_bytes", lambda self: 1)

    assert main(["--rows", "10000", "--contenders", "ours", "--results", str(tmp_path)]) == 0

    kept = json.loads((tmp_path / "10000-many-sequence.json").read_text())["outcomes"]
    assert [(each["repetition"], each["program"], each["measures"]["warm"]["seconds"]) for each in kept] == [(1, "new", 2.0)]
