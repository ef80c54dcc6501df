"""Any calls within the schemas are answered by the schema, or refused without a trace."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from agenteval.workflows.scenario import WorkflowTool
from tests.tasks.flows.flow import Flow, carry_out
from tests.thorough import often

_CALLS = 40  # of each tool, from which hypothesis picks: drawing values itself takes it long
_CHANGED = 5  # values of a parameter that are also tried with one character changed
_ODD = 0.15  # the share of values that the role's test does not name
_TEXTS = ("x", "  ", "0", "Ångström", "a\u202eb", "\x00\n", "1e999", "x" * 40)

Call = tuple[WorkflowTool, dict[str, JsonValue]]


def check_any_calls(flow: Flow) -> list[str]:
    """Arguments within the schema are answered by the schema or refused with a sentence; neither
    who refuses nor who reads changes the state; and what the role keeps is kept."""
    some = st.lists(st.sampled_from(any_calls(flow)), min_size=5, max_size=16)

    @settings(max_examples=often(30, 200), phases=[Phase.generate, Phase.shrink])
    @given(some)
    def answered(calls: list[Call]) -> None:
        faults = faults_of(flow, calls)
        assert faults == [], faults

    try:
        answered()
    except AssertionError as error:
        return [str(error), *getattr(error, "__notes__", ())]  # with the calls that were found
    return []


def faults_of(flow: Flow, calls: Iterable[Call]) -> list[str]:
    """What is wrong when these calls are made, one after the other."""
    faults, backend = [], flow.backend()
    after = json.dumps(backend.state)
    for tool, arguments in calls:
        before, result = after, None
        try:
            result = carry_out(backend, tool.name, arguments)
        except ValueError as error:
            if len(str(error).split()) < 4:
                faults.append(f"{tool.name} is refused with no sentence, {str(error)!r}")
        else:
            problems = Draft202012Validator(tool.returns).iter_errors(result)
            faults += [f"{tool.name}: {problem.message}" for problem in problems]
        after = json.dumps(backend.state)
        if (result is None or tool.effect == "read") and after != before:
            faults.append(f"{tool.name} leaves a trace")
    try:
        flow.hand.keeps(flow.backend().state, backend.state)
    except AssertionError as error:
        faults.append(str(error))
    return faults


def any_calls(flow: Flow) -> list[Call]:
    """Calls of every tool, the same each time, all of them within the schemas."""
    draw, made = random.Random(flow.role.id), []
    for tool in flow.tools.values():
        valid = Draft202012Validator(tool.parameters)
        properties: Any = tool.parameters["properties"]
        values = {name: _values(flow, name, about) for name, about in properties.items()}
        for _ in range(_CALLS):
            arguments = {
                name: draw.choice(odd if odd and draw.random() < _ODD else usual)
                for name, (usual, odd) in values.items()
                if name in tool.required or draw.random() < 0.5
            }
            valid.validate(arguments)
            made.append((tool, arguments))
    return made


def _values(
    flow: Flow, name: str, schema: dict[str, Any]
) -> tuple[Sequence[JsonValue], list[JsonValue]]:
    """Values of a parameter: those of the role's test, else those of its enum or of the goals;
    and odd ones, as far as the schema allows them."""
    goals = [
        a.arguments[name] for _, p in flow.profiles() for a in p.actions if name in a.arguments
    ]
    usual = flow.hand.values.get(name) or schema.get("enum") or goals
    odd: list[JsonValue] = [*goals, *_TEXTS]
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        odd = [low, low + 1, (low + high) // 2, high - 1, high]
        odd += [float(high)] * (flow.hand.numbers != "unchecked")
    elif "enum" not in schema:
        odd += [changed for value in usual[:_CHANGED] for changed in _neighbours(str(value))]
    valid = Draft202012Validator(schema)
    return usual, [value for value in odd if valid.is_valid(value)]


def _neighbours(text: str) -> list[str]:
    """The text with one of its characters changed, at each place in two ways."""
    return [text[:i] + new + text[i + 1 :] for i in range(len(text)) for new in "9X"]
