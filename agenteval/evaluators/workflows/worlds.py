"""Which tool may follow which in a chart, after which returned values.

A chart is walked through with all returned values that its conditions tell apart; values that none
tells apart count as one. What can be seen from outside: the calls, and what they returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.workflows.conditions import (
    Comparison,
    Condition,
    all_of,
    any_of,
    compare,
    is_date,
    plain,
)
from agenteval.evaluators.workflows.procedure import Procedure
from agenteval.evaluators.workflows.scenario import WorkflowTool

State = tuple[int, ...]  # for each variable of a World the index of its value
START, END = "the start", "the end"
_UNKNOWN = -1
_OTHER = "\u2026"  # stands for all words that no condition names
_MOST_RESULTS = 4096  # results of a tool that conditions tell apart
_MOST_STEPS = 200_000  # steps of a walk; more is no procedure that a person follows


class TooLarge(InputError):
    """There are too many ways through a procedure to go through them all."""


def types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names of the JSON types allowed; empty when any is."""
    types = schema.get("type")
    return frozenset([types] if isinstance(types, str) else types or ())


def listed(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that the schema enumerates, None when it does not."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return list(values) if isinstance(values, list) else None


def representatives(schema: Mapping[str, Any], tested: Sequence[Comparison]) -> tuple[Any, ...]:
    """One value for each way in which the comparisons can come out.

    Drawn from booleans, enumerated values, numbers around the constants within the schema's limits
    and the words and dates that the comparisons name, with one that they do not.
    """
    ways: dict[tuple[bool | None, ...], Any] = {}
    for value in _candidates(schema, list(dict.fromkeys(c.value for c in tested))):
        ways.setdefault(tuple(compare(value, c.op, c.value) for c in tested), value)
    return tuple(ways.values())


def _candidates(schema: Mapping[str, Any], constants: Sequence[str | float | bool]) -> list[Any]:
    values = listed(schema)
    if values is not None:
        return values
    types = types_of(schema)
    candidates: list[Any] = []
    if not types or "boolean" in types:
        candidates += [True, False]
    if types & {"integer", "number"}:
        candidates += _numbers(schema, constants, whole="number" not in types)
    if not types or "string" in types:
        candidates += _words(constants)
    if "null" in types:
        candidates.append(None)
    return candidates or [_OTHER]


def _numbers(
    schema: Mapping[str, Any], constants: Sequence[str | float | bool], *, whole: bool
) -> list[int | float]:
    known = sorted({n for n in map(plain, constants) if isinstance(n, float)})
    near = [n + d for n in known for d in (-1, 0, 1)] or [0.0]
    near += [(a + b) / 2 for a, b in pairwise(known)]
    limits = [
        (op, float(limit))
        for name, op in (("minimum", ">="), ("maximum", "<="), ("exclusiveMinimum", ">"),
                         ("exclusiveMaximum", "<"))
        if isinstance(limit := schema.get(name), int | float) and not isinstance(limit, bool)
    ]  # fmt: skip
    near += [limit for op, limit in limits if "=" in op]
    if whole:
        near = [float(n // 1) for n in near]
    inside = [n for n in sorted(set(near)) if all(compare(n, op, limit) for op, limit in limits)]
    return [int(n) if n.is_integer() else n for n in inside]


def _words(constants: Sequence[str | float | bool]) -> list[Any]:
    words = [
        c if isinstance(c, str) else str(c).lower() if isinstance(c, bool) else f"{c:g}"
        for c in constants
    ]
    if not words or not all(map(is_date, words)):
        return [*words, _OTHER]
    clock = all(":" in word[:3] for word in words)  # only dates, or only times, can be meant
    return [*words, "00:00", "23:59:59"] if clock else [*words, "0000-01-01", "9999-12-31"]


@dataclass(frozen=True)
class World:
    """The variables that conditions test, and the values of each that they tell apart.

    A variable is a field as conditions name it: with its tool, or (None, field) for the latest of
    any tool. A state has an index into `values` for each, -1 for what was not returned so far.
    """

    variables: tuple[tuple[str | None, str], ...]
    values: tuple[tuple[Any, ...], ...]
    returns: Mapping[str, tuple[tuple[tuple[int, int], ...], ...]]

    @classmethod
    def of(cls, tools: Sequence[WorkflowTool], tested: Sequence[Comparison]) -> World:
        """The world of these tools, told apart by these comparisons. Raises TooLarge."""
        variables = tuple(dict.fromkeys((c.tool, c.field) for c in tested))
        values: list[list[Any]] = [[] for _ in variables]
        returns = {}
        for tool in tools:
            fields = [f for f in tool.fields if any(c.field == f for c in tested)]
            options = [
                representatives(tool.returned(f), [c for c in tested if c.field == f])
                for f in fields
            ]
            if prod(map(len, options)) > _MOST_RESULTS:
                raise TooLarge(
                    f"conditions tell more than {_MOST_RESULTS:,} results of {tool.name} apart"
                )
            returns[tool.name] = tuple(
                tuple(
                    (i, _index(values[i], value))
                    for returned, value in zip(fields, chosen, strict=True)
                    for i, (owner, name) in enumerate(variables)
                    if name == returned and owner in (None, tool.name)
                )
                for chosen in product(*options)
            )
        return cls(variables, tuple(map(tuple, values)), returns)

    def after(self, state: State, tool: str) -> Iterator[State]:
        """Every state that a call of the tool may lead to."""
        for outcome in self.returns.get(tool, ((),)):
            new = list(state)
            for variable, value in outcome:
                new[variable] = value
            yield tuple(new)

    def holds(self, condition: Condition, state: State) -> bool | None:
        """Whether the condition holds in the state; None when a field was not returned."""

        def comparison(c: Comparison) -> bool | None:
            variable = self.variables.index((c.tool, c.field))
            value = state[variable]
            known = value != _UNKNOWN
            return compare(self.values[variable][value], c.op, c.value) if known else None

        return any_of(all_of(map(comparison, a)) for a in condition.alternatives)

    def told(self, comparisons: Iterable[Comparison], state: State) -> str:
        """The values that the comparisons test in a state, for a person."""
        variables = {c.name: self.variables.index((c.tool, c.field)) for c in comparisons}
        return " and ".join(f"{name} is {self.name(i, state[i])}" for name, i in variables.items())

    def name(self, variable: int, value: int) -> str:
        """A value of a variable, for a person."""
        if value == _UNKNOWN:
            return "not returned yet"
        named = self.values[variable][value]
        if named == _OTHER:
            return "something else"
        return named if isinstance(named, str) else json.dumps(named)


def _index(values: list[Any], value: Any) -> int:
    for i, known in enumerate(values):
        if type(known) is type(value) and known == value:
            return i
    values.append(value)
    return len(values) - 1


@dataclass
class Relation:
    """`follows`: (last call, state) → next calls or END; `visited`: → nodes passed on the way."""

    follows: dict[tuple[str, State], set[str]] = field(default_factory=dict)
    visited: dict[tuple[str, State], set[str]] = field(default_factory=dict)


def relation(procedure: Procedure, world: World) -> Relation:
    """Walk through everything. Raises TooLarge."""
    found, steps = Relation(), 0
    begin = (_UNKNOWN,) * len(world.variables)
    todo: list[tuple[int, str, State]] = [(at, START, begin) for at in procedure.entries]
    seen = set(todo)
    while todo:
        entry, last, state = todo.pop()
        nexts = found.follows.setdefault((last, state), set())
        places, passed = [entry], {entry}
        while places:  # on to every call that may come next
            at = places.pop()
            position = procedure.positions[at]
            steps += 1
            if steps > _MOST_STEPS:
                raise TooLarge("there are too many ways through this procedure to compare them")
            if position.tool is not None:
                nexts.add(position.tool)
                new = {(at + 1, position.tool, s) for s in world.after(state, position.tool)} - seen
                steps += len(new)
                seen |= new
                todo += new
                continue
            found.visited.setdefault((last, state), set()).add(position.node)
            if not position.ways:
                nexts.add(END)
            for way in position.ways:
                condition = way.edge.condition
                if condition and world.holds(condition, state) is False:
                    continue
                if way.target not in passed:
                    passed.add(way.target)
                    places.append(way.target)
    return found
