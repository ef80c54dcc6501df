"""One planning test: a request in English, mock tools, and the constraints on a valid plan.

Constraints are orders and time limits of actions, which are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from agenteval.agents import Tool
from agenteval.records import Record, content_hash

Side = Literal["before", "after"]
Span = tuple[int, int]  # from, until; position p of a sequence is (p, p + 1)
DAY = 24  # hours
RESTART = "restart_plan"  # tool of extended cases that undoes all steps
START = "start_time"
GENERATOR = 1  # raise it when a seed gives a different suite


@dataclass(frozen=True, slots=True, order=True)
class Before:
    """Action `first` ends before action `second` starts."""

    first: int
    second: int


@dataclass(frozen=True, slots=True, order=True)
class TimeLimit:
    """The action ends by `hour` ("before"), or starts no earlier than `hour`."""

    action: int
    side: Side
    hour: int


Constraint = Before | TimeLimit


@dataclass(frozen=True, slots=True)
class StatedConstraint:
    """A constraint and the numbers of the sub-sentences that state it, ascending."""

    constraint: Constraint
    sentences: tuple[int, ...]


def orders(constraints: Iterable[Constraint]) -> list[Before]:
    """Return the orders among the constraints."""
    return [c for c in constraints if isinstance(c, Before)]


def limits(constraints: Iterable[Constraint]) -> list[TimeLimit]:
    """Return the time limits among the constraints."""
    return [c for c in constraints if isinstance(c, TimeLimit)]


def actions(constraint: Constraint) -> tuple[int, ...]:
    """Return the actions that a constraint is about."""
    if isinstance(constraint, Before):
        return (constraint.first, constraint.second)
    return (constraint.action,)


def holds(constraint: Constraint, spans: Sequence[Span]) -> bool:
    """Return whether the constraint holds if action i lasts from `spans[i][0]` to `spans[i][1]`."""
    if isinstance(constraint, Before):
        return spans[constraint.first][1] <= spans[constraint.second][0]
    start, end = spans[constraint.action]
    return end <= constraint.hour if constraint.side == "before" else start >= constraint.hour


class Activity(Record):
    """An activity as a noun phrase, and the name of its tool."""

    phrase: str = Field(min_length=1)
    tool: str = Field(pattern=r"^[a-z0-9_]{1,60}$")


class OrderRule(Record):
    """`first` ends before `second` starts; both are tool names.

    `sentences` are the numbers of the sub-sentences that state it, from 0.
    """

    first: str
    second: str
    sentences: tuple[int, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of its actions."""
        return (self.first, self.second)


class TimeRule(Record):
    """The tool's action ends by `hour`, or starts no earlier than `hour`."""

    tool: str
    side: Side
    hour: int = Field(ge=0, le=24)
    sentences: tuple[int, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The tool of its action."""
        return (self.tool,)


class Size(Record):
    """Dimensions of difficulty; `words` counts the synthesized text without its template."""

    actions: int
    sub_sentences: int
    constraints: int
    words: int


class Case(Record):
    """A planning test, one line of a suite.

    `text` is the synthesized paragraph, `request` the complete prompt for the agent. With
    `durations` (hours by tool name, hidden from the agent), the case is an extended one.
    `valid_plans` is None if it was not counted. `tree` is the syntax tree of `text` (see
    `grammar.to_json`), for dissections and the page; `sha256` does not cover it.
    """

    id: str = Field(min_length=1)
    topic: str = ""
    actions: tuple[Activity, ...] = Field(min_length=1)
    constraints: tuple[OrderRule | TimeRule, ...] = ()
    text: str = ""
    request: str = ""
    tools: tuple[Tool, ...] = ()
    durations: dict[str, int] | None = None
    valid_plans: int | None = Field(default=None, ge=0)
    size: Size | None = None
    seed: int | None = None
    generator: int = GENERATOR
    template: str = ""
    words: str = "built-in"  # the word lists; older suites may use others
    tree: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _names_known(self) -> Case:
        tools = [action.tool for action in self.actions]
        if len(set(tools)) < len(tools):
            raise ValueError("two actions have the same tool")
        for rule in self.constraints:
            for name in rule.tools:
                if rule.tools == (name, name):
                    raise ValueError(f"{name!r} cannot come before itself")
                if name not in tools:
                    raise ValueError(f"a constraint names {name!r}, which is no action's tool")
        return self

    @model_validator(mode="after")
    def _durations_fit(self) -> Case:
        tools = {action.tool for action in self.actions}
        if self.durations is None:
            if any(isinstance(rule, TimeRule) for rule in self.constraints):
                raise ValueError("a time limit needs the durations of all actions")
            return self
        if RESTART in tools:
            raise ValueError(f"{RESTART!r} is the tool to restart a plan; no action can use it")
        if set(self.durations) != tools:
            raise ValueError("durations must have exactly the tools of the actions")
        if any(hours < 1 for hours in self.durations.values()):
            raise ValueError("durations must be at least 1 hour")
        return self

    @property
    def n(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @cached_property
    def index(self) -> dict[str, int]:
        """The action number of each tool, from 0."""
        return {action.tool: i for i, action in enumerate(self.actions)}

    @cached_property
    def stated(self) -> tuple[StatedConstraint, ...]:
        """The constraints with action numbers, in order."""
        return tuple(
            StatedConstraint(
                Before(self.index[rule.first], self.index[rule.second])
                if isinstance(rule, OrderRule)
                else TimeLimit(self.index[rule.tool], rule.side, rule.hour),
                rule.sentences,
            )
            for rule in self.constraints
        )

    @property
    def hours(self) -> tuple[int, ...] | None:
        """Durations in the order of the actions; None for a base case."""
        durations = self.durations
        return None if durations is None else tuple(durations[a.tool] for a in self.actions)

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of the agent's input and the constraints."""
        covered = {"actions", "constraints", "request", "tools", "durations"}
        return content_hash(self.model_dump(mode="json", include=covered))


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
_RESTART_TOOL = Tool(
    name=RESTART,
    description="Undo everything done so far and start the day afresh, to follow another plan.",
)


def mock_tools(case: Case) -> tuple[Tool, ...]:
    """Return one tool per action; in an extended case they take a start hour, and `restart_plan` is
    added."""
    about = {a.tool: f"Carry out the activity: {a.phrase}." for a in case.actions}
    if case.durations is None:
        return tuple(Tool(name=name, description=text) for name, text in about.items())
    timed = (
        Tool(
            name=name,
            description=f"{text} The answer says how many hours it took.",
            parameters=_START_PARAMETERS,
        )
        for name, text in about.items()
    )
    return (*timed, _RESTART_TOOL)


class MockBackend:
    """Answers calls of a case's tools. Every call succeeds; nothing is checked or stored.

    The answer of an extended case gives the start, duration and end of the activity.
    """

    def __init__(self, case: Case) -> None:
        self._phrases = {action.tool: action.phrase for action in case.actions}
        self._durations = case.durations

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the answer. Raises ValueError for a name that is not a tool of the case."""
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
    """Format an hour; hours past 24 are on the next day."""
    return f"{hour}:00" if hour <= DAY else f"{hour - DAY}:00 on the next day"
