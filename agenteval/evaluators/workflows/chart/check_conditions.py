"""Defects of the conditions on a chart's edges: fields and values against the tools' schemas."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from agenteval.evaluators.workflows.chart.compare import plain
from agenteval.evaluators.workflows.chart.conditions import constant
from agenteval.evaluators.workflows.chart.defects import Defect, at_edge
from agenteval.evaluators.workflows.chart.graph import successors
from agenteval.evaluators.workflows.chart.names import calls_in
from agenteval.evaluators.workflows.chart.nouns import Chart, Comparison, Edge
from agenteval.evaluators.workflows.chart.schemas import is_date, listed, schema_of, types_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

_ORDERED = ("<", "<=", ">", ">=")


def condition_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """Fields that nobody returns, or not yet; values that cannot be returned."""
    called = called_until(chart, [t.name for t in tools])
    found = []
    for edge in chart.edges:
        if edge.condition is None:
            continue
        for alternative in edge.condition.alternatives:
            for comparison in alternative:
                found += list(_comparison(edge, comparison, tools, called[edge.source]))
    return found


def called_until(chart: Chart, tools: Sequence[str]) -> dict[str, set[str]]:
    """The tools that some way to each node calls, the node's own included."""
    forward = successors(chart)
    found = {
        n.id: set(calls_in(n, tools)) if n.shape == "call" else set[str]() for n in chart.nodes
    }
    todo = list(found)
    while todo:
        node = todo.pop()
        for target in forward[node]:
            if not found[node] <= found[target]:
                found[target] |= found[node]
                todo.append(target)
    return found


def _comparison(
    edge: Edge, c: Comparison, tools: Sequence[WorkflowTool], before: set[str]
) -> Iterator[Defect]:
    name = f"{c.tool}.{c.field}" if c.tool else c.field
    if c.tool and c.tool not in {t.name for t in tools}:
        yield at_edge("unknown_field", edge, f"the condition names {c.tool}, which is no tool")
        return
    owners = [t for t in tools if c.field in t.fields and c.tool in (None, t.name)]
    if not owners:
        fields = {f for t in tools if c.tool in (None, t.name) for f in t.fields}
        near = difflib.get_close_matches(c.field, fields, 1)
        hint = f"; is {near[0]} meant?" if near else ""
        who = c.tool or "no tool"
        what = "does not return" if c.tool else "returns"
        yield at_edge("unknown_field", edge, f"{who} {what} {c.field}{hint}")
        return
    callers = [t for t in owners if t.name in before]
    if not callers:
        names = " or ".join(t.name for t in owners)
        told = f"{name} is tested at {edge.source}, which no call of {names} comes before"
        yield at_edge("field_not_yet", edge, told)
        return
    problems = [value_problem(c, schema_of(t, c.field)) for t in callers]
    if all(problems):
        yield at_edge("bad_value", edge, f"{name} {problems[0]}")


def value_problem(c: Comparison, schema: dict[str, Any]) -> str | None:
    """Why the schema's values cannot be compared so; None when they can."""
    written = constant(c.value)
    values = listed(schema)
    if values is not None and c.op in ("=", "!="):
        if plain(c.value) in [plain(v) for v in values]:
            return None
        return f"is never {written}: it is one of {', '.join(map(str, values))}"
    types = types_of(schema)
    if not types:
        return None
    problems = [_type_problem(c, name, written) for name in sorted(types - {"null"})]
    return problems[0] if problems and all(problems) else None


def _type_problem(c: Comparison, type_: str, written: str) -> str | None:
    value, ordered = plain(c.value), c.op in _ORDERED
    if type_ == "boolean":
        if ordered:
            return f"is true or false: {c.op} has no meaning for it"
        return None if value in ("true", "false") else f"is true or false, never {written}"
    if type_ in ("integer", "number"):
        if not isinstance(value, float):
            return f"is a number, never {written}"
        whole = type_ == "number" or ordered or value.is_integer()
        return None if whole else f"is a whole number, never {written}"
    if type_ == "string":
        dated = isinstance(c.value, str) and is_date(c.value)
        return (
            f"is text: only ISO dates can be ordered, not {written}"
            if ordered and not dated
            else None
        )
    return f"is of type {type_}, which has no comparisons"
