"""Can users succeed, and can they tell what gold calls send? Are calls as their tools take them?
Do the annotations of sessions and the wishes of profiles stand in the charts?

Nothing is run, so what an earlier call returns is known by the schema of its tool alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.chart import Chart
from agenteval.evaluators.workflows.chart_check import Defect, Severity
from agenteval.evaluators.workflows.scenario import (
    Action,
    Profile,
    RecordedSession,
    Turn,
    WorkflowTool,
    complaint,
)
from agenteval.evaluators.workflows.values import stands, tokens
from agenteval.records import canonical_json

_Schema = Mapping[str, Any]
_LIMITS = ("enum", "const", "pattern", "format")  # without them a schema takes any text
_INSIDE = 8  # levels of a schema that are looked into


def profile_defects(
    profiles: Sequence[Profile], tools: Sequence[WorkflowTool], now: str
) -> tuple[Defect, ...]:
    """What is wrong with users: gold calls that their tools do not take (errors), no goal that
    needs a call or says what is to be told, and arguments of gold calls that the user cannot tell
    (warnings).

    A user can tell its facts (of a parameter it has a fact of: that one) and what stands in its
    opening, goals, choices and behaviours; `now` is the time, which the agent knows. A value may
    come from an earlier gold call when its tool returns a field with the parameter's name or one
    with a word in common, or one that is limited to certain values (enum, const, pattern, format)
    and may be this one. A required parameter needs a fact of its name or such a field, since a
    user that is asked for it by name answers from its facts.
    """
    by_name = {tool.name: tool for tool in tools}
    defects: list[Defect] = []
    for profile in profiles:
        where = f"profile {profile.id}"
        if not (profile.actions or any(goal.told for goal in profile.goals)):
            told = f"{where}: no goal needs a call and nothing is to be told"
            defects.append(_defect(f"{told}: success is that nothing is changed", "warning"))
        knowledge = _Knowledge.of(profile, now)
        for action in profile.actions:
            tool = by_name.get(action.tool)
            if tool is None:
                defects.append(_defect(f"{where}: there is no tool {action.tool}"))
                continue
            problem = complaint(tool.parameters, action.arguments)
            if problem:
                defects.append(_defect(f"{where}: gold call {_shown(action)}: {problem}"))
            defects += knowledge.unknown(where, tool, action)
            knowledge.returned += _fields(tool.returns)
    return _once(defects)


def session_defects(
    sessions: Sequence[RecordedSession], tools: Sequence[WorkflowTool]
) -> tuple[Defect, ...]:
    """Recorded calls of no tool, and those whose arguments or results their tools do not have.

    A result that is no object, and so is never replayed, is a warning.
    """
    by_name = {tool.name: tool for tool in tools}
    defects: list[Defect] = []
    for session in sessions:
        for i, turn in enumerate(session.turns):
            if turn.kind != "call":
                continue
            where = f"session {session.id}, turn {i}"
            tool = by_name.get(turn.tool)
            if tool is None:
                defects.append(_defect(f"{where}: there is no tool {turn.tool}"))
                continue
            problem = complaint(tool.parameters, turn.arguments)
            if problem:
                defects.append(_defect(f"{where}: arguments of {turn.tool}: {problem}"))
            problem = complaint(tool.returns, turn.result)
            if problem:  # words instead of an object may be those of a refusal
                severity: Severity = "error" if isinstance(turn.result, dict) else "warning"
                defects.append(_defect(f"{where}: result of {turn.tool}: {problem}", severity))
    return tuple(defects)


@dataclass(slots=True)
class _Knowledge:
    """What a user can tell, and which fields earlier calls returned."""

    facts: Mapping[str, JsonValue]
    texts: tuple[str, ...]
    returned: list[tuple[str, _Schema]] = field(default_factory=list)

    @classmethod
    def of(cls, profile: Profile, now: str) -> _Knowledge:
        texts = (
            profile.opening,
            *(goal.text for goal in profile.goals),
            *profile.choices,
            *profile.behaviours,
            now,
        )
        return cls(profile.facts, tuple(text.replace("_", " ") for text in texts))

    def unknown(self, where: str, tool: WorkflowTool, action: Action) -> Iterator[Defect]:
        """Arguments that come from nowhere."""
        for name, value in action.arguments.items():
            schema = _property(tool, name)
            lost = [v for v in _leaves(value) if not self._known(name, v, schema)]
            call = f"{where}: gold call {_shown(action)}"
            if lost:
                problem = f"{call}: the user cannot tell {name} {_json(lost[0])}"
                yield _defect(f"{problem}, and no call before returns it", "warning")
            elif name in tool.required and not self._named(name, value, schema):
                problem = f"{call}: the user has no fact {name}"
                yield _defect(f"{problem} to tell when it is asked for it", "warning")

    def _known(self, name: str, value: JsonValue, schema: _Schema) -> bool:
        if value in (None, "") or _is_fixed(schema) or self._returned(name, value):
            return True
        facts = [self.facts[name]] if name in self.facts else list(self.facts.values())
        if any(_same(value, fact) for one in facts for fact in _leaves(one)):
            return True
        # A flag is told by its name; any other value as it is.
        words = name if isinstance(value, bool) else str(value)
        return any(stands(words.replace("_", " "), text) for text in self.texts)

    def _named(self, name: str, value: JsonValue, schema: _Schema) -> bool:
        """Whether someone answers who asks by the parameter's name."""
        known = name in self.facts or _is_fixed(schema)
        return known or all(self._returned(name, v) for v in _leaves(value))

    def _returned(self, name: str, value: JsonValue) -> bool:
        words = set(_words(name))
        for known, schema in self.returned:
            limited = any(key in schema for key in _LIMITS)
            if words & set(_words(known)) or (limited and complaint(schema, value) is None):
                return True
        return False


def _property(tool: WorkflowTool, name: str) -> _Schema:
    schema = tool.properties.get(name)
    return schema if isinstance(schema, dict) else {}


def _fields(schema: JsonValue, depth: int = 0) -> list[tuple[str, _Schema]]:
    """The fields that a schema names, with those inside them, lists among them."""
    if not isinstance(schema, dict) or depth > _INSIDE:
        return []
    fields: list[tuple[str, _Schema]] = []
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            fields += [(name, inner), *_fields(inner, depth + 1)]
            items = inner.get("items")
            fields += [(name, items)] if isinstance(items, dict) else []
    return fields + _fields(schema.get("items"), depth + 1)


def _is_fixed(schema: _Schema) -> bool:
    """Whether only one value is possible, so that nobody has to tell it."""
    values = schema.get("enum")
    return "const" in schema or (isinstance(values, list) and len(values) == 1)


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    """The values inside lists and objects."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


def _same(value: JsonValue, fact: JsonValue) -> bool:
    return isinstance(value, bool) == isinstance(fact, bool) and (
        value == fact or _words(str(value)) == _words(str(fact))
    )


def _words(text: str) -> tuple[str, ...]:
    return tokens(text.replace("_", " "))


def _shown(action: Action) -> str:
    arguments = ", ".join(f"{name}={_json(value)}" for name, value in action.arguments.items())
    return f"{action.tool}({arguments})"


def _json(value: JsonValue) -> str:
    return canonical_json(value)


def _once(defects: Sequence[Defect]) -> tuple[Defect, ...]:
    return tuple({d.message: d for d in defects}.values())


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="profile", message=message, severity=severity)


OUT_OF_SCOPE = "out of scope"


def annotation_defects(
    profiles: Sequence[Profile], sessions: Sequence[RecordedSession], charts: Mapping[str, Chart]
) -> tuple[Defect, ...]:
    """Nodes and intents of turns, and choices of profiles, that no chart has.

    `charts` are those of the role, by the scenario's id. A choice is a label or an intent of an
    edge in one of the profile's scenarios.
    """
    defects: list[Defect] = []
    for profile in profiles:
        known = {
            word for id in profile.scenarios if id in charts for word in _edge_words(charts[id])
        }
        defects += [
            _unknown(f"profile {profile.id}: the choice", choice, known)
            for choice in profile.choices
            if choice not in known
        ]
    for session in sessions:
        for i, turn in enumerate(session.turns):
            if turn.kind != "user":
                defects += _turn(f"session {session.id}, turn {i}: ", turn, charts)
    return tuple(defects)


def _turn(where: str, turn: Turn, charts: Mapping[str, Chart]) -> Iterator[Defect]:
    chart = charts.get(turn.scenario)
    if chart is None:
        yield _unknown(f"{where}the scenario", turn.scenario, charts)
        return
    nodes = {n.id for n in chart.nodes}
    if turn.node not in nodes:
        yield _unknown(f"{where}the node", turn.node, nodes)
        return
    into = _edge_words(chart, turn.node)
    if turn.intent not in ("", OUT_OF_SCOPE, *into):
        yield _unknown(f"{where}an edge into {turn.node} labelled", turn.intent, into)


def _edge_words(chart: Chart, target: str | None = None) -> set[str]:
    """Labels and intents of the edges, of those into `target` where it is given."""
    edges = [e for e in chart.edges if target in (None, e.target)]
    return {word for e in edges for word in (e.label, e.intent) if word}


def _unknown(what: str, name: str, known: Iterable[str]) -> Defect:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"; is {near[0]!r} meant?" if near else ""
    return Defect(kind="annotation", message=f"{what} {name!r} is in no chart{hint}")
