"""Defects of a role that would make its sessions meaningless: in charts, users and recorded calls.

Nothing is run. Whether the conditions of a branch overlap or leave a value out is not checked.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.evaluators.workflows.chart import (
    WORD,
    Chart,
    Edge,
    Node,
    RemarkKind,
    calls_by_node,
    names_in,
    reached,
)
from agenteval.evaluators.workflows.conditions import Comparison, constant, is_date, plain
from agenteval.evaluators.workflows.scenario import (
    Profile,
    RecordedSession,
    Turn,
    WorkflowTool,
    complaint,
)
from agenteval.records import Record, canonical_json

Severity = Literal["error", "warning", "note"]
_Shape = Literal["no_start", "several_starts", "unreachable", "no_exit"]
_Condition = Literal["unknown_field", "field_not_yet", "bad_value"]
_Other = Literal["unreadable", "no_tool", "unknown_tool", "profile", "annotation", "backend"]
Kind = Literal[RemarkKind, _Shape, _Condition, _Other]
OUT_OF_SCOPE = "out of scope"
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")


class Defect(Record):
    """One defect. `node` or `edge` (source, target) says where; `line` is 0 when no line is meant.

    An error makes sessions meaningless; a warning may be intended; a note says how a file was read.
    """

    kind: Kind
    message: str
    severity: Severity = "error"
    node: str | None = None
    edge: tuple[str, str] | None = None
    line: int = 0


def chart_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """Return the defects of a chart by line, those without a line last.

    Without `tools` only the shape of the chart is checked.
    """
    defects = [
        Defect(
            kind=remark.kind,
            message=remark.message,
            severity="note" if remark.kind == "skipped" else "warning",
            line=remark.line,
        )
        for remark in chart.remarks
    ]
    defects += _shape(chart)
    if tools:
        defects += [*_tools(chart, tools), *_conditions(chart, tools)]
    return tuple(sorted(defects, key=lambda d: (d.line == 0, d.line)))


def _at(place: Node | Edge, kind: Kind, message: str) -> Defect:
    if isinstance(place, Node):
        return Defect(kind=kind, message=message, line=place.line, node=place.id)
    edge = (place.source, place.target)
    return Defect(kind=kind, message=message, line=place.line, edge=edge)


def _shape(chart: Chart) -> Iterator[Defect]:
    """Yield starts that are missing or too many, unreachable nodes and cycles without exit."""
    forward: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    back: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        forward[edge.source].append(edge.target)
        back[edge.target].append(edge.source)
    starts = chart.starts
    if not starts:
        yield Defect(kind="no_start", message="no node has the shape (Start)")
    for node in starts[1:]:
        message = f"{node.id} is a second start; sessions begin at {starts[0].id}"
        yield _at(node, "several_starts", message)
    reachable = reached([n.id for n in starts] or forward, forward)
    ending = reached([id for id in forward if not forward[id]], back)
    for node in chart.nodes:
        if node.id not in reachable:
            yield _at(node, "unreachable", f"{node.id} cannot be reached from the start")
    stuck = [n for n in chart.nodes if n.id in reachable - ending]
    if stuck:
        names = ", ".join(n.id for n in stuck)
        yield _at(stuck[0], "no_exit", f"a cycle without exit: no end follows {names}")


def _tools(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Yield the `>call]` nodes that name no tool, or name a tool that does not exist.

    Words with an underscore are read as names of tools, and words like checkStatus where tools
    have such names; parameters, returned fields and enumerated values are left out.
    """
    names = [t.name for t in tools]
    camel = any(_CAMEL.fullmatch(name) for name in names)
    ordinary = {*names, *chart.parameters}
    for tool in tools:
        ordinary |= {*tool.fields, *tool.properties}
        for schema in (*tool.properties.values(), *map(tool.returned, tool.fields)):
            values = _enumerated(schema) if isinstance(schema, dict) else None
            ordinary |= {word for value in values or () for word in WORD.findall(str(value))}
    for node in chart.nodes:
        if node.shape != "call":
            continue
        words = dict.fromkeys(WORD.findall(node.text))
        if not names_in(node.text, names):
            hints = (_hint(word, names, 0.8) for word in words)
            hint = next(filter(None, hints), f"; the tools are {', '.join(names)}")
            yield _at(node, "no_tool", f"{node.id} calls none of the tools{hint}")
            continue
        for word in words:
            like_a_tool = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
            if like_a_tool and word not in ordinary:
                message = f"{node.id} names {word}, which is not a tool{_hint(word, names)}"
                yield _at(node, "unknown_tool", message)


def _conditions(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Yield the comparisons with a field that is never returned, or not yet, or never so."""
    called = calls_by_node([chart], [t.name for t in tools])
    before = {id: set(calls) for id, calls in called.items()}  # on some way to the node's exit
    size = -1
    while size != (size := sum(map(len, before.values()))):
        for edge in chart.edges:
            before[edge.target] |= before[edge.source]
    for edge in chart.edges:
        for c in edge.condition.comparisons if edge.condition else ():
            owners = [t for t in tools if c.field in t.fields and c.tool in (None, t.name)]
            callers = [t for t in owners if t.name in before[edge.source]]
            problems = [_value_problem(c, t.returned(c.field)) for t in callers]
            if not owners:
                yield _at(edge, "unknown_field", _unknown_field(c, tools))
            elif not callers:
                message = f"{c.name} is tested at {edge.source}, but no call before it returns it"
                yield _at(edge, "field_not_yet", message)
            elif all(problems):
                yield _at(edge, "bad_value", f"{c.name} {problems[0]}")


def _unknown_field(c: Comparison, tools: Sequence[WorkflowTool]) -> str:
    if c.tool and c.tool not in [t.name for t in tools]:
        return f"the condition names {c.tool}, which is not a tool"
    fields = [f for t in tools if c.tool in (None, t.name) for f in t.fields]
    who = f"{c.tool} does not return" if c.tool else "no tool returns"
    return f"{who} {c.field}{_hint(c.field, fields)}"


def _value_problem(c: Comparison, schema: Mapping[str, Any]) -> str | None:
    """Why no value of the schema can be compared like this; None when one can."""
    value, ordered = plain(c.value), c.op not in ("=", "!=")
    listed = _enumerated(schema)
    if listed is not None and not ordered:
        if value in map(plain, listed):
            return None
        return f"is never {constant(c.value)}: it is one of {', '.join(map(str, listed))}"
    types = schema.get("type", [])
    types = sorted({types} if isinstance(types, str) else set(types) - {"null"})
    number = isinstance(value, float)
    fits = {
        "boolean": not ordered and value in ("true", "false"),
        "number": number,
        "integer": number and (ordered or value.is_integer()),
        "string": not ordered or is_date(str(c.value)),
    }
    if not types or any(fits.get(name) for name in types):
        return None
    order = "; only numbers and ISO dates are ordered" if ordered else ""
    return f"is of type {' or '.join(types)}, never {c.op} {constant(c.value)}{order}"


def _enumerated(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema lists; None when it lists none."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else None


def _hint(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    near = difflib.get_close_matches(word[:80], list(names), 1, cutoff)
    return f"; did you mean {near[0]}?" if near else ""


def profile_defects(
    profiles: Sequence[Profile],
    tools: Sequence[WorkflowTool],
    charts: Mapping[str, Chart | None],
) -> tuple[Defect, ...]:
    """Return the defects of users: gold calls of no tool or with arguments that break its schema,
    and choices that no edge of the profile's scenarios has as label or intent.

    `charts` has the scenarios by id, None for one without a chart.
    """
    by_name = {tool.name: tool for tool in tools}
    defects: dict[Defect, None] = {}
    for profile in profiles:
        where = f"profile {profile.id}"
        for action in profile.actions:
            if problem := _call_problem(action.tool, action.arguments, by_name):
                message = f"{where}: gold call {action.tool}: {problem}"
                defects[Defect(kind="profile", message=message)] = None
        drawn = [charts.get(id) for id in profile.scenarios]
        labels = {word for chart in drawn if chart for word in _edge_words(chart)}
        for choice in profile.choices:
            if all(drawn) and choice not in labels:
                message = f"{where}: no edge is labelled {choice!r}{_hint(choice, labels)}"
                defects[Defect(kind="annotation", message=message)] = None
    return tuple(defects)


def session_defects(
    sessions: Sequence[RecordedSession],
    tools: Sequence[WorkflowTool],
    charts: Mapping[str, Chart | None],
) -> tuple[Defect, ...]:
    """Return the defects of recorded sessions: calls of no tool, arguments or results that break
    its schema, and nodes and intents that the chart does not have.

    A result that is not an object, such as the words of a refusal, is never replayed: a warning.
    """
    by_name = {tool.name: tool for tool in tools}
    defects: list[Defect] = []
    for session in sessions:
        for i, turn in enumerate(session.turns):
            where = f"session {session.id}, turn {i}"
            if turn.kind != "user" and (problem := _annotation(turn, charts)):
                defects.append(Defect(kind="annotation", message=f"{where}: {problem}"))
            if turn.kind != "call":
                continue
            if problem := _call_problem(turn.tool, turn.arguments, by_name):
                message = f"{where}: call {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message))
            tool = by_name.get(turn.tool)
            if tool and (problem := complaint(tool.returns, turn.result)):
                severity: Severity = "error" if isinstance(turn.result, dict) else "warning"
                message = f"{where}: result of {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message, severity=severity))
    return tuple(defects)


def _call_problem(
    name: str, arguments: Mapping[str, JsonValue], tools: Mapping[str, WorkflowTool]
) -> str | None:
    """Why the call cannot be made; None when it can."""
    if name not in tools:
        return f"there is no such tool{_hint(name, tools)}"
    problem = complaint(tools[name].parameters, dict(arguments))
    return f"{problem} in {canonical_json(arguments)}" if problem else None


def _annotation(turn: Turn, charts: Mapping[str, Chart | None]) -> str | None:
    """Why a turn does not stand in its chart; None when it does, or there is no chart."""
    if turn.scenario not in charts:
        return f"there is no scenario {turn.scenario!r}{_hint(turn.scenario, charts)}"
    chart = charts[turn.scenario]
    if chart is None:
        return None
    nodes = [n.id for n in chart.nodes]
    if turn.node not in nodes:
        return f"there is no node {turn.node!r} in the chart{_hint(turn.node, nodes)}"
    labels = _edge_words(chart, turn.node)
    if turn.intent in ("", OUT_OF_SCOPE, *labels):
        return None
    return f"no edge into {turn.node} is labelled {turn.intent!r}{_hint(turn.intent, labels)}"


def _edge_words(chart: Chart, target: str | None = None) -> set[str]:
    """Labels and intents of all edges, or of those into `target`."""
    edges = [e for e in chart.edges if target in (None, e.target)]
    return {word for e in edges for word in (e.label, e.intent) if word}
