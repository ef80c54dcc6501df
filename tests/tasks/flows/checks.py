"""Checks that every role of ``tasks/flows`` must pass. Each returns what is wrong, in words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from jsonschema import Draft202012Validator, FormatChecker
from pydantic import JsonValue

from agenteval.workflows.scenario import CROSS
from tests.tasks.flows.flow import Flow, calls_of, carry_out, state_after
from tests.tasks.flows.formats import check_charts, check_conformance
from tests.tasks.flows.walks import check_coverage, check_walks

MIN_SCENARIO = (5, 5)  # profiles, sessions
MIN_CROSS = (4, 5)

Check = Callable[[Flow], list[str]]


def check_size(flow: Flow) -> list[str]:
    """Enough profiles and sessions, ids used once, every profile plays in a session."""
    faults = []
    for group, profiles, sessions in flow.groups():
        least = MIN_CROSS if group == CROSS else MIN_SCENARIO
        if len(profiles) < least[0] or len(sessions) < least[1]:
            faults.append(f"{group}: {len(profiles)} profiles, {len(sessions)} sessions")
        unused = {p.id for p in profiles} - {s.profile for s in sessions}
        faults += [f"{group}: {name} plays in no session" for name in sorted(unused)]
        if group == CROSS:
            faults += [f"{p.id}: needs one scenario" for p in profiles if len(p.scenarios) < 2]
        else:
            faults += [f"{p.id}: not of {group}" for p in profiles if p.scenarios != (group,)]
    ids = Counter(p.id for _, p in flow.profiles())
    ids += Counter(s.id for _, s, _ in flow.sessions())
    return faults + [f"the id {name} is used twice" for name, n in ids.items() if n > 1]


def check_tools(flow: Flow) -> list[str]:
    """Schemas are valid and closed, and the backend has exactly one method for each tool."""
    faults, names = [], set()
    for scenario in flow.role.scenarios:
        for tool in scenario.tools:
            names.add(tool.name)
            for part in (tool.parameters, tool.returns):
                Draft202012Validator.check_schema(part)
                if part.get("type") != "object" or part.get("additionalProperties") is not False:
                    faults.append(f"{tool.name}: not a closed object")
                properties = part.get("properties")
                assert isinstance(properties, dict)
                faults += [
                    f"{tool.name}: {name} has no description"
                    for name, about in properties.items()
                    if not (isinstance(about, dict) and about.get("description"))
                ]
    methods = {n for n in dir(flow.backend) if not n.startswith("_")} - {"state"}
    return faults + [f"tool or method only: {name}" for name in sorted(names ^ methods)]


def check_gold(flow: Flow) -> list[str]:
    """Gold calls execute within their schemas, and only tools that write change the state."""
    faults = []
    for group, profile in flow.profiles():
        backend = flow.backend()
        for action in profile.actions:
            tool = flow.tools[action.tool]
            where = f"{group}/{profile.id}: {action.tool}"
            faults += [f"{where}: {e}" for e in _invalid(tool.parameters, action.arguments)]
            before = json.dumps(backend.state, sort_keys=True)
            try:
                result = carry_out(backend, action.tool, action.arguments)
            except ValueError as error:
                faults.append(f"{where}: refused, {error}")
                continue
            faults += [f"{where}: {e}" for e in _invalid(tool.returns, result)]
            after = json.dumps(backend.state, sort_keys=True, allow_nan=False)
            if tool.effect == "read" and before != after:
                faults.append(f"{where}: reads and writes")
    return faults


def check_writing(flow: Flow) -> list[str]:
    """Each tool that writes changes the state in some profile."""
    writing = {t.name for s in flow.role.scenarios for t in s.tools if t.effect == "write"}
    for _, profile in flow.profiles():
        backend = flow.backend()
        for action in profile.actions:
            before = json.dumps(backend.state, sort_keys=True)
            carry_out(backend, action.tool, action.arguments)
            if json.dumps(backend.state, sort_keys=True) != before:
                writing.discard(action.tool)
    return [f"{name} never changes the state" for name in sorted(writing)]


def check_results(flow: Flow) -> list[str]:
    """Recorded results are those of the backend, and the final state is that of the gold calls."""
    faults = []
    for where, session, profile in flow.sessions():
        backend = flow.backend()
        for i, turn in enumerate(session.turns):
            if turn.kind == "call":
                result = carry_out(backend, turn.tool, turn.arguments)
                if result != turn.result:
                    faults.append(f"{where} turn {i}: {turn.result} recorded, {result} returned")
        if backend.state != state_after(flow, profile.actions):
            faults.append(f"{where}: the state at the end is not that of {profile.id}'s goals")
    return faults


def check_calls(flow: Flow) -> list[str]:
    """A session makes the gold calls of its profile, in their order, and no others."""
    return [
        f"{where}: calls {[c.tool for c in calls_of(session)]}, "
        f"gold {[a.tool for a in profile.actions]} (or their arguments differ)"
        for where, session, profile in flow.sessions()
        if calls_of(session) != profile.actions
    ]


def check_form(flow: Flow) -> list[str]:
    """The user opens as in its profile and the agent has the last word; only known profiles'
    asides are answered out of scope."""
    faults = []
    for where, session, profile in flow.sessions():
        kinds = [t.kind for t in session.turns]
        if kinds[0] != "user" or kinds[-1] != "reply":
            faults.append(f"{where}: from {kinds[0]} to {kinds[-1]}")
        if session.turns[0].text != profile.opening:
            faults.append(f"{where}: does not open as {profile.id} does")
        faults += [
            f"{where} turn {i}: two {kind} turns in a row"
            for i, (kind, after) in enumerate(pairwise(kinds))
            if kind == after != "call"
        ]
        faults += [
            f"{where} turn {i}: a call, and then the user speaks"
            for i, (kind, after) in enumerate(pairwise(kinds))
            if (kind, after) == ("call", "user")
        ]
        others = {t.scenario for t in session.turns if t.kind != "user"} ^ set(profile.scenarios)
        faults += [f"{where}: {name} is not of both" for name in sorted(others)]
        aside = any(t.intent == "out of scope" for t in session.turns)
        if aside != bool(profile.asides):
            faults.append(f"{where}: asides of profile and session differ")
    return faults


def _invalid(schema: dict[str, JsonValue], value: object) -> list[str]:
    checker = Draft202012Validator(schema, format_checker=FormatChecker())
    return [error.message for error in checker.iter_errors(value)]


ALL: tuple[Check, ...] = (
    check_size,
    check_tools,
    check_gold,
    check_writing,
    check_results,
    check_calls,
    check_form,
    check_walks,
    check_coverage,
    check_charts,
    check_conformance,
)
