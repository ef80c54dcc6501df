"""What is known of returned values while a procedure is followed, and what a call may return.

Values that no condition tells apart count as one, so that all of them can be gone through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.compare import compare
from agenteval.evaluators.workflows.chart.conditions import all_of, any_of
from agenteval.evaluators.workflows.chart.nouns import Comparison, Condition
from agenteval.evaluators.workflows.chart.schemas import OTHER, representatives, schema_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

# Field as conditions name it: with its tool, or (None, field) for the latest of any tool.
Variable = tuple[str | None, str]
_UNKNOWN = -1
_MOST = 4096  # results of a tool that conditions tell apart


class TooLarge(InputError):
    """There are too many ways through a procedure to go through them all."""


@dataclass(frozen=True)
class World:
    """The variables that conditions test, and the values of each that they tell apart.

    A state is a tuple of indices into `values`, -1 for what was not returned so far.
    """

    variables: tuple[Variable, ...]
    values: tuple[tuple[Any, ...], ...]
    returns: Mapping[str, tuple[tuple[tuple[int, int], ...], ...]]

    @property
    def start(self) -> tuple[int, ...]:
        """Nothing was returned."""
        return (_UNKNOWN,) * len(self.variables)

    def after(self, state: tuple[int, ...], tool: str) -> Iterator[tuple[int, ...]]:
        """Every state that a call of the tool may lead to."""
        for outcome in self.returns.get(tool, ((),)):
            new = list(state)
            for variable, value in outcome:
                new[variable] = value
            yield tuple(new)

    def holds(self, condition: Condition, state: tuple[int, ...]) -> bool | None:
        """Whether the condition holds in the state; None when a field was not returned."""
        return any_of(
            all_of(self.compares(c, state) for c in alternative)
            for alternative in condition.alternatives
        )

    def shown(self, c: Comparison, state: tuple[int, ...]) -> str:
        """The value that a comparison tests, for a person."""
        variable = self.variables.index((c.tool, c.field))
        return self.name(variable, state[variable])

    def name(self, variable: int, value: int) -> str:
        """A value of a variable, for a person."""
        if value == _UNKNOWN:
            return "not returned yet"
        found = self.values[variable][value]
        if found == OTHER:
            return "something else"
        return found if isinstance(found, str) else json.dumps(found)

    def compares(self, c: Comparison, state: tuple[int, ...]) -> bool | None:
        """The same for one comparison."""
        variable = self.variables.index((c.tool, c.field))
        value = state[variable]
        return None if value == _UNKNOWN else compare(self.values[variable][value], c.op, c.value)


def make_world(tools: Sequence[WorkflowTool], comparisons: Iterable[Comparison]) -> World:
    """The world of these tools, told apart by these comparisons."""
    tested = list(comparisons)
    variables = tuple(dict.fromkeys((c.tool, c.field) for c in tested))
    by_field: dict[str, list[Comparison]] = {}
    for c in tested:
        by_field.setdefault(c.field, []).append(c)
    values: list[list[Any]] = [[] for _ in variables]
    returns = {}
    for tool in tools:
        fields = [f for f in tool.fields if f in by_field]
        options = [representatives(schema_of(tool, f), by_field[f]) for f in fields]
        if prod(map(len, options)) > _MOST:
            raise TooLarge(f"conditions tell more than {_MOST:,} results of {tool.name} apart")
        outcomes = []
        for chosen in product(*options):
            outcome = []
            for field, value in zip(fields, chosen, strict=True):
                for i, (owner, name) in enumerate(variables):
                    if name == field and owner in (None, tool.name):
                        outcome.append((i, _index(values[i], value)))
            outcomes.append(tuple(outcome))
        returns[tool.name] = tuple(outcomes)
    return World(variables, tuple(map(tuple, values)), returns)


def _index(values: list[Any], value: Any) -> int:
    for i, known in enumerate(values):
        if type(known) is type(value) and known == value:
            return i
    values.append(value)
    return len(values) - 1
