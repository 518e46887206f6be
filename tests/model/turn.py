"""One writer's turn: what its next request finds, and how a request's outcome becomes the next state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.model.rules import Harm, Rules
from tests.model.state import Change, Item, State, Writer


class Step(NamedTuple):
    """A possible next state, what happened, and harm that only the step itself can know of."""

    label: str
    state: State
    harm: Harm | None = None


@dataclass(frozen=True)
class Turn:
    """The writer at `index` is about to send a request. faults: what may go wrong in this scenario."""

    state: State
    index: int
    rules: Rules
    faults: frozenset[str]

    @property
    def writer(self) -> Writer:
        return self.state.writers[self.index]

    @property
    def item(self) -> Item:
        return self.state.item

    @property
    def mine(self) -> Change:
        """The change that the writer has in mind: the head it plans on, later its own."""
        assert self.writer.mine is not None
        return self.writer.mine

    @property
    def seen(self) -> Item:
        """The item as the writer last read it."""
        assert self.writer.seen is not None
        return self.writer.seen

    @property
    def fence_is_mine(self) -> bool:
        return self.item.fence == self.writer.fence

    def to(self, at: str, label: str, state: State | None = None, **memory: Any) -> Step:
        """Go on to request `at`; memory: what the writer keeps in mind."""
        base = self.state if state is None else state
        writer = self.writer._replace(at=at, **memory)
        return Step(f"{writer.name}: {label}", base.with_writer(self.index, writer))

    def end(self, label: str) -> Step:
        return self.to("end", label)
