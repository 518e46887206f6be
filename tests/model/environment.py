"""What happens beside the writers: deaths, late requests, lifecycle rules, people."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import requests
from tests.model.commit_steps import accepts, land
from tests.model.rules import Rules
from tests.model.state import State
from tests.model.turn import Step


def events(state: State, rules: Rules, faults: frozenset[str]) -> Iterator[Step]:
    """Every event that can happen now, of those that the scenario allows."""
    if "deaths" in faults:
        for index, writer in enumerate(state.writers):
            if writer.at not in ("end", "look", "reader_look", "reader_get"):
                yield Step(f"{writer.name} dies", state.with_writer(index, writer._replace(at="end")))
    if state.network is not None:
        landed = accepts(state.item, state.network, rules)
        after = land(state, state.network, rules, faults) if landed else state
        label = f"the late commit of {state.network.change.id} " + ("lands" if landed else "is refused")
        yield Step(label, after._replace(network=None))
    if "lifecycle" in faults:
        for name, key in state.keys:
            if key.upload == "open":
                yield Step(f"lifecycle aborts {name}", requests.abort(state, name))
    if "expiry" in faults:
        for name, key in state.keys:
            if key.data == ("ours",) and not key.visible:
                yield Step(f"the hidden version of {name} expires", state.with_key(name, key._replace(data=("expired",))))
    yield from _people(state, faults)


def _people(state: State, faults: frozenset[str]) -> Iterator[Step]:
    if "raw_goes" in faults:
        for number in sorted(state.raw):
            yield Step(f"raw file {number} is removed", state._replace(raw=state.raw - {number}))
    if "edit" in faults and not state.edited:
        yield Step("a person pauses the table", state._replace(edited=True, item=state.item._replace(paused="person")))
        last = max(state.raw, default=0)
        yield Step("a person moves the cursor", state._replace(edited=True, item=state.item._replace(cursor=last)))
    idle = all(writer.at in ("end", "look") for writer in state.writers)
    if "foreign" in faults and idle:
        for name, key in state.keys:
            if not key.data:
                yield Step(f"somebody puts an object at {name}", requests.put_foreign(state, name))
