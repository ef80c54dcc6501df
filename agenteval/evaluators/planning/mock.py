"""The mock tools of a case: one per action, each of which only claims to have done its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.agents import Tool
from agenteval.evaluators.planning.case import RESTART, Action, Case
from agenteval.evaluators.planning.solver.spans import DAY

START = "start_time"

_START_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        START: {
            "type": "integer",
            "minimum": 0,
            "maximum": DAY - 1,
            "description": "The full hour of the day at which the activity starts, 0 to 23.",
        }
    },
    "required": [START],
    "additionalProperties": False,
}


def mock_tools(case: Case) -> tuple[Tool, ...]:
    """One tool per action; an extended case's take a start hour, and `restart_plan` is added."""
    tools = tuple(_tool(action, timed=case.durations is not None) for action in case.actions)
    if case.durations is None:
        return tools
    text = "Undo everything done so far and start the day afresh, to follow another plan."
    return (*tools, Tool(name=RESTART, description=text))


class MockBackend:
    """What stands behind the tools; it keeps nothing, since the toolbox keeps the log.

    Every call succeeds: the agent is never told that an order or a time was wrong. In an extended
    case the answer says when the activity started, how long it took and when it was over.
    """

    def __init__(self, case: Case) -> None:
        self._phrases = {action.tool: action.phrase for action in case.actions}
        self._durations = case.durations

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool's answer. ValueError for a name that is no tool of the case."""
        if self._durations is not None and name == RESTART:
            return "Everything is undone. The day starts afresh; no activity has been done yet."
        if name not in self._phrases:
            raise ValueError(f"there is no tool {name!r}")
        done = f'Done: "{self._phrases[name]}"'
        if self._durations is None:
            return f"{done} has been completed."
        start, hours = int(arguments[START]), self._durations[name]
        took = "1 hour" if hours == 1 else f"{hours} hours"
        return f"{done} started at {clock(start)}, took {took} and ended at {clock(start + hours)}."


def clock(hour: int) -> str:
    """An hour as a person reads it; past 24 it is said to be the next day's."""
    return f"{hour}:00" if hour <= DAY else f"{hour - DAY}:00 on the next day"


def _tool(action: Action, *, timed: bool) -> Tool:
    text = f"Carry out the activity: {action.phrase}."
    if not timed:
        return Tool(name=action.tool, description=text)
    text += " The answer says how many hours it took."
    return Tool(name=action.tool, description=text, parameters=_START_PARAMETERS)
