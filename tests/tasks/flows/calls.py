"""What calls do to the state, whichever are made: refusals, orders, whole numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import permutations
from typing import Any

from pydantic import JsonValue

from agenteval.workflows.scenario import CROSS
from tests.tasks.flows.flow import Flow, carry_out, state_after
from tests.tasks.flows.hand import Step

_LEAST_STEPS, _MOST_STEPS = 4, 5


def check_refusals(flow: Flow) -> list[str]:
    """What makes no sense is refused with a sentence, and leaves no trace."""
    faults, untouched = [], flow.backend().state
    for why, tool, arguments in flow.hand.refused:
        backend, call = flow.backend(), f"{tool}{arguments}"
        try:
            getattr(backend, tool)(*arguments)
        except ValueError as error:
            if why not in str(error):
                faults.append(f"{call} is refused with {str(error)!r}, which does not say {why!r}")
        else:
            faults.append(f"{call} is not refused")
        if backend.state != untouched:
            faults.append(f"{call} leaves a trace")
    return faults if flow.hand.refused else ["nothing is refused"]


def check_orders(flow: Flow) -> list[str]:
    """Each order of a user's goals leads to the same state, and so does each of the role's steps,
    which concern users who have nothing to do with each other."""
    faults = []
    for group, profile in flow.profiles():
        wanted, where = state_after(flow, profile.actions), f"{group}/{profile.id}"
        if group == CROSS and len(profile.goals) < 2:
            faults.append(f"{where}: one goal has no order")
        for order in list(permutations(profile.goals))[1:]:
            goals = [goal.text for goal in order]
            try:
                if state_after(flow, sum((goal.actions for goal in order), ())) != wanted:
                    faults.append(f"{where}: another state after {goals}")
            except ValueError as error:
                if profile.id not in flow.hand.follow:
                    faults.append(f"{where}: {goals} is refused, {error}")
    steps = flow.hand.steps
    if not _LEAST_STEPS <= len(steps) <= _MOST_STEPS:
        return [*faults, f"{len(steps)} steps"]
    wanted = _after(flow, steps)
    others = [order for order in permutations(steps) if _after(flow, order) != wanted]
    return faults + [f"another state after {order}" for order in others]


def _after(flow: Flow, steps: Iterable[Step]) -> dict[str, Any]:
    backend = flow.backend()
    for tool, arguments in steps:
        getattr(backend, tool)(*arguments)
    return backend.state


def check_whole_numbers(flow: Flow) -> list[str]:
    """JSON Schema takes 2.0 for an integer: the gold calls do the same when it is written so."""
    if flow.hand.numbers == "unchecked":
        return []
    faults, told = [], json.dumps if flow.hand.numbers == "same" else _itself
    for group, profile in flow.profiles():
        usual, pointed = flow.backend(), flow.backend()
        for action in profile.actions:
            arguments = {name: _pointed(value) for name, value in action.arguments.items()}
            results = [
                carry_out(usual, action.tool, action.arguments),
                carry_out(pointed, action.tool, arguments),
            ]
            if told(results[0]) != told(results[1]) or told(usual.state) != told(pointed.state):
                faults.append(f"{group}/{profile.id}: {action.tool}, {results}")
    return faults


def _itself(value: JsonValue) -> JsonValue:
    return value


def _pointed(value: JsonValue) -> JsonValue:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
