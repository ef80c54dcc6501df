"""Defects of a role that would make its sessions meaningless: in charts, users and recorded calls.

Nothing is run. It is not checked whether the conditions of a branch overlap, leave a value out, or
test a field before a call returns it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.records import Record, canonical_json
from agenteval.text import did_you_mean
from agenteval.workflows.chart import WORD, Chart, Edge, Node, RemarkKind, names_in, reached
from agenteval.workflows.conditions import FieldComparison, constant, is_date, plain
from agenteval.workflows.scenario import Profile, RecordedSession, Turn, WorkflowTool, complaint

Severity = Literal["error", "warning", "note"]
_ChartKind = Literal["no_start", "several_starts", "unreachable", "no_exit", "unknown_field"]
_Other = Literal["bad_value", "unreadable", "no_tool", "unknown_tool", "profile", "annotation"]
DefectKind = Literal[RemarkKind, _ChartKind, _Other, "backend", "tools"]
Charts = Mapping[str, Chart | None]  # by scenario; None for one without a chart
OUT_OF_SCOPE = "out of scope"
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")


class Defect(Record):
    """One defect. `node` or `edge` (source, target) is its place, and `line` is 0 without a line.

    An error makes sessions meaningless, a warning may be intended, and a note explains how a file
    was read.
    """

    kind: DefectKind
    message: str
    severity: Severity = "error"
    node: str | None = None
    edge: tuple[str, str] | None = None
    line: int = 0


def chart_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """Return the defects of a chart by line, those without a line last.

    Without `tools` only the shape of the chart is checked.
    """
    defects = [*_shape(chart), *(_call_nodes(chart, tools) if tools else ())]
    for remark in chart.remarks:
        severity: Severity = "note" if remark.kind in ("skipped", "subgraph") else "warning"
        defects.append(Defect(severity=severity, **dict(remark)))
    for edge in chart.edges if tools else ():
        for comparison in edge.condition.comparisons if edge.condition else ():
            defects += _comparison(edge, comparison, tools)
    return tuple(sorted(defects, key=lambda d: (d.line == 0, d.line)))


def _at(place: Node | Edge, kind: DefectKind, message: str) -> Defect:
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
        yield _at(stuck[0], "no_exit", f"a cycle without exit: no end can be reached from {names}")


def _call_nodes(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Yield the `>call]` nodes that name no tool, or name a tool that does not exist.

    Words with an underscore are read as names of tools, and words like checkStatus where tools
    have such names, unless they occur in the definition of a tool.
    """
    names = [t.name for t in tools]
    camel = any(_CAMEL.fullmatch(name) for name in names)
    definitions = json.dumps([t.model_dump() for t in tools], ensure_ascii=False)
    ordinary = {*WORD.findall(definitions), *chart.parameters}
    for node in chart.nodes:
        if node.shape != "call":
            continue
        words = dict.fromkeys(WORD.findall(node.text))
        if not names_in(node.text, names):
            hints = filter(None, (_hint(word, names, 0.8) for word in words))
            hint = next(hints, f"; the tools are {', '.join(names)}")
            yield _at(node, "no_tool", f"{node.id} calls none of the tools{hint}")
            continue
        for word in words:
            like_a_tool = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
            if like_a_tool and word not in ordinary:
                message = f"{node.id} names {word}, which is not a tool{_hint(word, names)}"
                yield _at(node, "unknown_tool", message)


def _comparison(edge: Edge, c: FieldComparison, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Yield the defect of a comparison whose field is never returned, or never has such a value."""
    owners = [t for t in tools if c.tool in (None, t.name)]
    schemas = [t.returned(c.field) for t in owners if c.field in t.fields]
    problems = [_value_problem(c, schema) for schema in schemas]
    if not owners:
        message = f"the condition names {c.tool}, which is not a tool"
        yield _at(edge, "unknown_field", message)
    elif not schemas:
        who = f"{c.tool} does not return" if c.tool else "no tool returns"
        hint = _hint(c.field, [field for t in owners for field in t.fields])
        yield _at(edge, "unknown_field", f"{who} {c.field}{hint}")
    elif all(problems):
        yield _at(edge, "bad_value", f"{c.name} {problems[0]}")


def _value_problem(c: FieldComparison, schema: Mapping[str, Any]) -> str | None:
    """Return why no value of the schema can be compared like this, None when one can."""
    value, ordered = plain(c.value), c.op not in ("=", "!=")
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(listed, list) and not ordered:
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


def _hint(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    hint = did_you_mean(word, names, cutoff=cutoff)
    return hint and f"; {hint}"


def profile_defects(
    profiles: Sequence[Profile], tools: Sequence[WorkflowTool], charts: Charts
) -> tuple[Defect, ...]:
    """Return the defects of users: gold calls of no tool or with arguments that break its schema,
    and choices that no edge of the profile's scenarios has as label or intent."""
    defects: list[Defect] = []
    for profile in profiles:
        for action in profile.actions:
            if problem := _call_problem(action.tool, action.arguments, tools):
                message = f"profile {profile.id}: gold call {action.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message))
        drawn = [charts.get(id) for id in profile.scenarios]
        labels = {word for chart in drawn if chart for word in _edge_words(chart)}
        for choice in profile.choices if all(drawn) else ():
            if choice not in labels:
                hint = _hint(choice, labels)
                message = f"profile {profile.id}: no edge is labelled {choice!r}{hint}"
                defects.append(Defect(kind="annotation", message=message))
    return tuple(dict.fromkeys(defects))


def session_defects(
    sessions: Sequence[RecordedSession], tools: Sequence[WorkflowTool], charts: Charts
) -> tuple[Defect, ...]:
    """Return the defects of recorded sessions: calls of no tool, arguments or results that break
    its schema, and nodes and intents that the chart does not have.

    A result that is not an object, such as the words of a refusal, is never replayed: a warning.
    """
    returns = {tool.name: tool.returns for tool in tools}
    defects: list[Defect] = []
    for session in sessions:
        for index, turn in enumerate(session.turns):
            where = f"session {session.id}, turn {index}"
            if turn.kind != "user" and (problem := _annotation(turn, charts)):
                defects.append(Defect(kind="annotation", message=f"{where}: {problem}"))
            if turn.kind != "call":
                continue
            if problem := _call_problem(turn.tool, turn.arguments, tools):
                message = f"{where}: call {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message))
            if problem := complaint(returns.get(turn.tool, {}), turn.result):
                severity: Severity = "error" if isinstance(turn.result, dict) else "warning"
                message = f"{where}: result of {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message, severity=severity))
    return tuple(defects)


def _call_problem(
    name: str, arguments: Mapping[str, JsonValue], tools: Sequence[WorkflowTool]
) -> str | None:
    """Return why the call cannot be made, None when it can."""
    schemas = {tool.name: tool.parameters for tool in tools}
    if name not in schemas:
        return f"there is no such tool{_hint(name, schemas)}"
    problem = complaint(schemas[name], dict(arguments))
    return f"{problem} in {canonical_json(arguments)}" if problem else None


def _annotation(turn: Turn, charts: Charts) -> str | None:
    """Return why a turn is not in its chart, or None if it is or there is no chart."""
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
    """Return the labels and intents of all edges, or of those into `target`."""
    edges = [e for e in chart.edges if target in (None, e.target)]
    return {word for e in edges for word in (e.label, e.intent) if word}
