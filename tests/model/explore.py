"""Every state that a scenario can reach, breadth first, and the harm found there, each with the shortest way to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.model import catalog_steps, commit_steps, converge_steps, erase_steps, lease_steps, stage_steps, work_steps
from tests.model.environment import events
from tests.model.invariants import after_step, at_rest, erase_harm
from tests.model.rules import ALL, Harm, Rules
from tests.model.state import State, canonical, first_state, new_writer, visible
from tests.model.turn import Step, Turn

_MODULES = (lease_steps, work_steps, commit_steps, converge_steps, catalog_steps, stage_steps, erase_steps)
_NAMES = """
    look take read release reader_look reader_get work commit write_record write_cursor read_back move_fence drop
    complete hide clear abort_lost record_lost catalog_read catalog_update catalog_delete catalog_create partitions catalog_clear
    stage_pause discard_mark discard_abort unpause drop_older removal_mark remove clear_erasing
""".split()
REQUESTS: dict[str, Callable[[Turn], Iterator[Step]]] = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name)) for name in _NAMES
}
PLAIN_RUN_STEPS = 80  # more than any plain run needs


@dataclass(frozen=True)
class Scenario:
    """Writers with their jobs, and what may go wrong beside pauses and takeovers, which always may.

    faults: deaths, lost_answer, delay and duplicate (of commits), hide_fails, lifecycle (aborts uploads), expiry (of hidden versions),
    raw_goes, edit, foreign, remove_fails, lenient (a completion can be repeated); catalog: there is one; unanswered (a creation of the Glue
    table); one_at_a_time: no run starts beside another.
    meets: parts of labels that tell that the scenario reaches what it is for.
    """

    jobs: tuple[tuple[str, ...], ...]
    faults: frozenset[str] = frozenset()
    inputs: int = 2
    meets: tuple[str, ...] = ()


@dataclass
class Found:
    """What was found: harm → the way to it; labels: all that happened; sent: requests. complete: every reachable state was seen."""

    states: int = 0
    harm: dict[Harm, list[str]] = field(default_factory=dict)
    complete: bool = True
    labels: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)


def explore(scenario: Scenario, rules: Rules = ALL, until: Harm | None = None, limit: int = 400_000) -> Found:
    """Look at every reachable state; with `until` only up to the first one with that harm."""
    start = canonical(first_state(scenario.jobs, scenario.inputs))
    came: dict[State, tuple[State, str] | None] = {start: None}
    queue, found = deque([start]), Found()
    after_all: dict[State, tuple[Harm, ...]] = {}

    def note(harm: Harm, state: State, *labels: str) -> bool:
        found.harm.setdefault(harm, [*_way(came, state), *labels])
        return harm is until

    while queue:
        state = queue.popleft()
        found.sent.update(writer.at for writer in state.writers)
        for step in successors(state, rules, scenario.faults):
            found.labels.add(step.label)
            harms = [*([step.harm] if step.harm else ()), *after_step(state, step.state, scenario.faults)]
            if any(note(harm, state, step.label) for harm in harms):
                return _ended(found, came, complete=False)
            after = canonical(step.state)
            if after not in came:
                came[after] = (state, step.label)
                queue.append(after)
        if any(note(harm, state) for harm in _harm_at_rest(state, rules, scenario, after_all)):
            return _ended(found, came, complete=False)
        if len(came) > limit:
            return _ended(found, came, complete=False)
    return _ended(found, came, complete=True)


def successors(state: State, rules: Rules, faults: frozenset[str]) -> Iterator[Step]:
    for index, writer in enumerate(state.writers):
        if writer.at != "end":
            yield from REQUESTS[writer.at](Turn(state, index, rules, faults))
    yield from events(state, rules, faults)


def _ended(found: Found, came: dict[State, tuple[State, str] | None], complete: bool) -> Found:
    found.states, found.complete = len(came), complete
    return found


def _way(came: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    labels = []
    while (step := came[state]) is not None:
        state = step[0]
        labels.append(step[1])
    return labels[::-1]


def _harm_at_rest(state: State, rules: Rules, scenario: Scenario, after_all: dict[State, tuple[Harm, ...]]) -> Iterator[Harm]:
    if state.network is not None or any(writer.at != "end" for writer in state.writers):
        return
    yield from at_rest(state, scenario.inputs)
    alone = state._replace(writers=(), reported=frozenset())
    if alone not in after_all:
        repaired, erased = _is_repaired(alone, rules, scenario.faults), _is_erased(alone, rules, scenario.faults)
        after_all[alone] = (*(() if repaired else (Harm.NOT_REPAIRED,)), *(() if erased else (Harm.ERASE_UNFINISHED,)))
    yield from after_all[alone]


def _is_repaired(state: State, rules: Rules, faults: frozenset[str]) -> bool:
    """Whether one undisturbed run, if the controller starts one, leaves nothing undone; or a person was told what to do."""
    pending = any(number > state.item.cursor for number in state.raw) and not state.item.paused
    if pending or (rules.controller_finishes_idle_tables and (state.item.publishing or state.item.catalog_pending)):
        state = plain_run(state, rules, faults)
    head = state.record(state.item.head)
    if head is None:
        return False
    if not state.item.publishing and not state.item.catalog_pending:
        return visible(state) == head.files
    foreign = any("foreign" in key.data for _, key in state.keys)
    inputs_gone = head.parent is not None and not head.applied - head.parent.applied <= state.raw
    return foreign or inputs_gone


def _is_erased(state: State, rules: Rules, faults: frozenset[str]) -> bool:
    """Whether one undisturbed erase run that has nothing of its own to erase leaves nothing of an earlier one."""
    head = state.record(state.item.head)
    if head is None or not (state.item.erasing or head.listed):
        return True
    state = plain_run(state, rules, faults, ("resume",))
    return bool(state.item.publishing) or (not state.item.erasing and not any(erase_harm(state)))


def plain_run(state: State, rules: Rules, faults: frozenset[str] = frozenset(), jobs: tuple[str, ...] = ()) -> State:
    """The state after one scheduled run that nobody disturbs and nothing fails."""
    for _, after in walk(state, jobs, rules, faults & {"catalog", "lenient"}):
        state = after
    return canonical(state)


def walk(
    state: State, jobs: tuple[str, ...], rules: Rules = ALL, faults: frozenset[str] = frozenset(), name: str = "Z"
) -> Iterator[tuple[str, State]]:
    """The requests of a run that is alone, each with the state after it; of several outcomes always the first, the good one."""
    state = state._replace(writers=(new_writer(name, jobs),))
    for _ in range(PLAIN_RUN_STEPS):
        request = state.writers[0].at
        if request == "end":
            return
        state = next(REQUESTS[request](Turn(state, 0, rules, faults))).state
        yield request, state
