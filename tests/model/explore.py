"""Every state that a scenario can reach, breadth first, and the harm found there, each with the shortest way to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.model import catalog_steps, commit_steps, converge_steps, lease_steps, work_steps
from tests.model.environment import events
from tests.model.invariants import after_step, at_rest
from tests.model.rules import ALL, Harm, Rules
from tests.model.state import State, Writer, canonical, first_state, visible
from tests.model.turn import Step, Turn

_MODULES = (lease_steps, work_steps, commit_steps, converge_steps, catalog_steps)
_NAMES = """
    look take read release reader_look reader_get work commit write_record write_cursor read_back move_fence drop
    complete hide clear abort_lost record_lost catalog_read catalog_update catalog_delete catalog_create partitions catalog_clear
""".split()
REQUESTS: dict[str, Callable[[Turn], Iterator[Step]]] = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name)) for name in _NAMES
}
PLAIN_RUN_STEPS = 80  # more than any plain run needs


@dataclass(frozen=True)
class Scenario:
    """Writers with their jobs, and what may go wrong beside pauses and takeovers, which always may.

    faults: deaths, lost_answer, delay and duplicate (of commits), hide_fails, lifecycle (aborts uploads), expiry (of hidden versions),
    raw_goes, edit, foreign, lenient (a completion can be repeated); catalog: there is one; one_at_a_time: no run starts beside another.
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
    queue, found, catalog = deque([start]), Found(), "catalog" in scenario.faults
    repaired: dict[State, bool] = {}

    def note(harm: Harm, state: State, *labels: str) -> bool:
        found.harm.setdefault(harm, [*_way(came, state), *labels])
        return harm is until

    while queue:
        state = queue.popleft()
        found.sent.update(writer.at for writer in state.writers)
        for step in successors(state, rules, scenario.faults):
            found.labels.add(step.label)
            harms = [*([step.harm] if step.harm else ()), *after_step(state, step.state, catalog)]
            if any(note(harm, state, step.label) for harm in harms):
                return _ended(found, came, complete=False)
            after = canonical(step.state)
            if after not in came:
                came[after] = (state, step.label)
                queue.append(after)
        if any(note(harm, state) for harm in _harm_at_rest(state, rules, scenario, repaired)):
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


def _harm_at_rest(state: State, rules: Rules, scenario: Scenario, repaired: dict[State, bool]) -> Iterator[Harm]:
    if state.network is not None or any(writer.at != "end" for writer in state.writers):
        return
    yield from at_rest(state, scenario.inputs)
    alone = state._replace(writers=(), reported=frozenset())
    if alone not in repaired:
        repaired[alone] = _is_repaired(alone, rules, scenario.faults)
    if not repaired[alone]:
        yield Harm.NOT_REPAIRED


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


def plain_run(state: State, rules: Rules, faults: frozenset[str] = frozenset()) -> State:
    """The state after one scheduled run that nobody disturbs and nothing fails."""
    for _, after in walk(state, (), rules, faults & {"catalog", "lenient"}):
        state = after
    return canonical(state)


def walk(state: State, jobs: tuple[str, ...], rules: Rules = ALL, faults: frozenset[str] = frozenset()) -> Iterator[tuple[str, State]]:
    """The requests of a run that is alone, each with the state after it; of several outcomes always the first, the good one."""
    state = state._replace(writers=(Writer("Z", jobs, "look"),))
    for _ in range(PLAIN_RUN_STEPS):
        request = state.writers[0].at
        if request == "end":
            return
        state = next(REQUESTS[request](Turn(state, 0, rules, faults))).state
        yield request, state
