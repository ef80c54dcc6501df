"""Defects of a chart: its shape, the tools it names, the conditions on its edges."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.evaluators.workflows.chart.conditions import constant, plain
from agenteval.evaluators.workflows.chart.follow import value_defects
from agenteval.evaluators.workflows.chart.nouns import (
    WORD,
    Chart,
    Comparison,
    Defect,
    Edge,
    Kind,
    Node,
    Severity,
    at_edge,
    at_node,
    calls_in,
    names_in,
)
from agenteval.evaluators.workflows.chart.schemas import is_date, listed, schema_of, types_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

__all__ = ["Defect", "Kind", "Severity", "check_chart"]


def check_chart(chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """All defects by line, those of no line last. Without `tools` only the shape is checked."""
    found = shape_defects(chart)
    if tools:
        found += tool_defects(chart, tools)
        found += condition_defects(chart, tools)
        if not any(d.severity == "error" for d in found):  # else values cannot be gone through
            found += value_defects(chart, tools)
    return tuple(sorted(found, key=lambda d: (d.line == 0, d.line)))


def shape_defects(chart: Chart) -> list[Defect]:
    """What is wrong whatever the tools are."""
    return [*_starts(chart), *_reach(chart), *_same_labels(chart)]


def _starts(chart: Chart) -> list[Defect]:
    starts = [n for n in chart.nodes if n.shape == "start"]
    found = [
        at_node("several_starts", n, f"{n.id} is a second start beside {starts[0].id}")
        for n in starts[1:]
    ]
    if not starts:
        found.append(Defect(kind="no_start", message="no node has the shape (Start)"))
    ids = {n.id for n in starts}
    return found + [
        at_edge("edge_into_start", e, f"an edge leads back into the start {e.target}")
        for e in chart.edges
        if e.target in ids
    ]


def _reach(chart: Chart) -> list[Defect]:
    forward, back = successors(chart), predecessors(chart)
    starts = [n.id for n in chart.nodes if n.shape == "start"]
    seen = reached(starts, forward) if starts else set(forward)
    ends = [id for id, targets in forward.items() if not targets]
    leads_out = reached(ends, back)
    found = [
        at_node("unreachable", n, f"{n.id} cannot be reached from the start")
        for n in chart.nodes
        if n.id not in seen
    ]
    found += [
        at_node("dead_end", n, f"nothing follows {n.id}, which calls a tool", "warning")
        for n in chart.nodes
        if n.id in ends and n.shape == "call"
    ]
    stuck = {id for id in seen if id not in leads_out}
    beside = {id: [n for n in (*forward[id], *back[id]) if n in stuck] for id in stuck}
    for node in chart.nodes:
        if node.id not in stuck:
            continue
        around = reached([node.id], beside)
        stuck -= around
        names = ", ".join(n.id for n in chart.nodes if n.id in around)
        found.append(at_node("no_exit", node, f"a cycle without exit: no end follows {names}"))
    return found


def _same_labels(chart: Chart) -> list[Defect]:
    first: dict[tuple[str, str], Edge] = {}
    found = []
    for edge in chart.edges:
        known = first.setdefault((edge.source, edge.label.casefold()), edge)
        if known is edge:
            continue
        twice = known.target == edge.target
        label = f"the label {edge.label!r}" if edge.label else "no label"
        what = "the same edge twice" if twice else f"to {known.target} and to {edge.target}"
        found.append(
            at_edge("same_label", edge, f"{edge.source} has two edges with {label}: {what}",
                    "warning" if twice else "error")
        )  # fmt: skip
    return found


_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")
_CLOSE = 0.8


def tool_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """What is wrong with the tools that nodes name."""
    names = [t.name for t in tools]
    known = known_words(tools, chart.parameters)
    found: list[Defect] = []
    called: set[str] = set()
    for node in chart.nodes:
        here = names_in(node.text, names)
        if node.shape == "call":
            called.update(here)
            found += _call_node(node, here, names, known)
        else:
            found += [
                at_node("tool_in_reply", node, f"{node.id} names {name} and is no >call]",
                        "warning")
                for name in dict.fromkeys(here)
            ]  # fmt: skip
    found += [
        Defect(kind="unused_tool", message=f"no node calls {name}", severity="warning")
        for name in names
        if name not in called
    ]
    return [*found, *_parameters(chart, tools)]


def _call_node(
    node: Node, here: Sequence[str], names: Sequence[str], known: set[str]
) -> Iterator[Defect]:
    strange = list(tool_like(node.text, names, known))
    if not here:
        words = dict.fromkeys([*strange, *(w for w in WORD.findall(node.text) if len(w) > 3)])
        near = next((h for w in words if (h := near_name(w, names))), None)
        hint = f"; is {near} meant?" if near else f"; known: {', '.join(names)}"
        told = f" ({', '.join(strange)} is none)" if strange else ""
        yield at_node("no_tool", node, f"{node.id} names no known tool{told}{hint}")
        return
    for word in strange:
        near = near_name(word, names)
        hint = f"; is {near} meant?" if near else ""
        yield at_node("unknown_tool", node, f"{node.id} names {word}, which is no tool{hint}")
    for name, count in Counter(here).items():
        if count > 1:
            told = f"{node.id} names {name} {count} times, which is read as one call"
            yield at_node("repeated_tool", node, told, "warning")


def near_name(word: str, names: Sequence[str]) -> str | None:
    """The tool's name that the word is nearly, None when there is none."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower()[:80], by_lower, 1, _CLOSE)
    return by_lower[near[0]] if near else None


def tool_like(text: str, names: Sequence[str], known: set[str]) -> Iterator[str]:
    """Words that look like names of tools and are none, each once.

    Those with an underscore; and those like checkStatus, where tools are named in that way.
    """
    camel = any(_CAMEL.fullmatch(name) for name in names)
    for word in dict.fromkeys(WORD.findall(text)):
        looks = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
        if looks and word not in known:
            yield word


def known_words(tools: Iterable[WorkflowTool], parameters: Iterable[str] = ()) -> set[str]:
    """Names that a procedure may write: tools, parameters, returned fields, enumerated values."""
    known = set(parameters)
    for tool in tools:
        known |= {tool.name, *tool.fields}
        for name, schema in tool.properties.items():
            known.add(name)
            known |= _enumerated(schema)
        for field in tool.fields:
            known |= _enumerated(schema_of(tool, field))
    return known


def _enumerated(schema: object) -> set[str]:
    values = listed(schema) if isinstance(schema, dict) else None
    return {word for value in values or () for word in WORD.findall(str(value))}


def _parameters(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Auxiliary parameters go to no tool: a tool's own are described in its schema."""
    for name, description in chart.parameters.items():
        owner = next((t.name for t in tools if name in t.properties), None)
        if owner:
            told = f"the auxiliary parameter {name} is one of {owner}; its schema describes it"
            yield Defect(kind="parameter", message=told, severity="warning")
        elif not description:
            told = f"the auxiliary parameter {name} has no description"
            yield Defect(kind="parameter", message=told, severity="warning")


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


def successors(chart: Chart) -> dict[str, list[str]]:
    """Targets of each node's edges."""
    found: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        found[edge.source].append(edge.target)
    return found


def predecessors(chart: Chart) -> dict[str, list[str]]:
    """Sources of the edges into each node."""
    found: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        found[edge.target].append(edge.source)
    return found


def reached(begin: Iterable[str], to: Mapping[str, Iterable[str]]) -> set[str]:
    """All nodes that can be reached, the first ones included."""
    todo = list(begin)
    seen = set(todo)
    while todo:
        for node in to[todo.pop()]:
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen
