"""What a scripted assistant is to do wrong, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from agenteval.evaluators.workflows.chart.nouns import Edge
from agenteval.evaluators.workflows.scenario import Action

Kind = Literal[
    "perfect",
    "skips_step",
    "swaps_steps",
    "wrong_parameter",
    "wrong_branch",
    "stops_early",
    "loops",
]


@dataclass(frozen=True)
class Plan:
    """`at` is the index of a gold call; the perfect assistant has none, and knows no gold.

    `edges` are those that the gold walk takes out of the node of a call, by the index of the call:
    who leaves a step out cannot know by its result. `spoiled` is what replaces a parameter
    (None: it is left out). `rehearsed`: only a rehearsal can say whether the mistake shows.
    `onward` are edges that are followed after the wrong one, whatever the user says.
    `cut_short`: the wrong branch leads to no call, so that a step is missing.
    """

    kind: Kind = "perfect"
    at: int | None = None
    gold: tuple[Action, ...] = ()
    edges: Mapping[int, Edge] = field(default_factory=dict)
    wrong_edge: Edge | None = None
    onward: tuple[Edge, ...] = ()
    spoiled: tuple[str, JsonValue] | None = None
    rehearsed: bool = False
    cut_short: bool = False

    @property
    def blind(self) -> bool:
        """It goes on without the result of some call."""
        return self.kind in ("skips_step", "swaps_steps")

    def leads(self, number: int, edge: Edge, node: str) -> bool:
        """Whether this edge is followed out of a node, whatever was returned."""
        if edge.source != node or self.at is None:
            return False
        if self.kind == "skips_step":
            return number == self.at
        if self.kind == "swaps_steps":
            return number in (self.at, self.at + 1)
        return self.kind == "wrong_branch" and number == self.at

    def passing(self, number: int, node: str) -> Edge | None:
        """The edge out of a node that is followed though the user was not asked; None: it is."""
        if self.at is None or number != self.at:
            return None
        return next((edge for edge in self.onward if edge.source == node), None)

    def spoil(self, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments with the wrong parameter."""
        assert self.spoiled is not None
        name, value = self.spoiled
        changed = {key: item for key, item in arguments.items() if key != name}
        return changed if value is None else {**changed, name: value}

    def guess(self, number: int, name: str) -> JsonValue:
        """A value that nobody told, for who has left out what returns it; None: no guess."""
        if not self.blind or number >= len(self.gold):
            return None
        return self.gold[number].arguments.get(name)
