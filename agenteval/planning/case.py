"""One planning test: a request in English, mock tools, and what a valid plan must satisfy.

Constraints are orders of actions and limits of time, by action numbers from 0; a span says where an
action lies in a sequence or in a day. A tool only claims to have done its work.
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
DAY = 24  # hours
Span = tuple[int, int]  # from, until; position p of a sequence is (p, p + 1)
RESTART = "restart_plan"  # tool of extended cases that undoes everything
GENERATOR = 1  # raised when the same seed would give another suite
START = "start_time"


@dataclass(frozen=True, slots=True, order=True)
class Before:
    """Action `first` is over before action `second` starts (numbers from 0)."""

    first: int
    second: int


@dataclass(frozen=True, slots=True, order=True)
class TimeLimit:
    """Action ends at `hour` at the latest ("before"), or starts at `hour` at the earliest."""

    action: int
    side: Side
    hour: int


Constraint = Before | TimeLimit


@dataclass(frozen=True, slots=True)
class StatedConstraint:
    """A constraint and the numbers of the sub-sentences that state it, rising."""

    constraint: Constraint
    sentences: tuple[int, ...]


def stated(pairs: Iterable[tuple[Constraint, int]]) -> tuple[StatedConstraint, ...]:
    """Constraints with their sub-sentences, each constraint once, in order of first mention."""
    sentences: dict[Constraint, list[int]] = {}
    for constraint, sentence in pairs:
        where = sentences.setdefault(constraint, [])
        if sentence not in where:
            where.append(sentence)
    return tuple(StatedConstraint(c, tuple(sorted(s))) for c, s in sentences.items())


def orders(constraints: Iterable[Constraint]) -> list[Before]:
    """The orders among them."""
    return [c for c in constraints if isinstance(c, Before)]


def limits(constraints: Iterable[Constraint]) -> list[TimeLimit]:
    """The time limits among them."""
    return [c for c in constraints if isinstance(c, TimeLimit)]


def actions(constraint: Constraint) -> tuple[int, ...]:
    """The actions a constraint is about."""
    if isinstance(constraint, Before):
        return (constraint.first, constraint.second)
    return (constraint.action,)


def holds(constraint: Constraint, spans: Sequence[Span]) -> bool:
    """Does the constraint hold where action i lasts from `spans[i][0]` until `spans[i][1]`?"""
    if isinstance(constraint, Before):
        return spans[constraint.first][1] <= spans[constraint.second][0]
    start, end = spans[constraint.action]
    return end <= constraint.hour if constraint.side == "before" else start >= constraint.hour


class Activity(Record):
    """An activity as a noun phrase, and the tool that stands for it."""

    phrase: str = Field(min_length=1)
    tool: str = Field(pattern=r"^[a-z0-9_]{1,60}$")


class OrderRule(Record):
    """`first` is over before `second` starts; both are tool names. `sentences` says where from."""

    first: str
    second: str
    sentences: tuple[int, ...] = ()


class TimeRule(Record):
    """The tool's action ends at `hour` at the latest, or starts at `hour` at the earliest."""

    tool: str
    side: Side
    hour: int = Field(ge=0, le=24)
    sentences: tuple[int, ...] = ()


class Size(Record):
    """What makes a case hard, each by itself; `words` counts the synthesized text alone."""

    actions: int
    sub_sentences: int
    constraints: int
    words: int


class Case(Record):
    """A planning test as a suite's line holds it.

    `text` is the synthesized paragraph, `request` the complete prompt of the agent. Numbers in
    `sentences` count the sub-sentences of `text` from 0. `durations` (hours by tool name) makes
    the case an extended one; they are hidden from the agent. `valid_plans` is None if it was not
    counted. `tree` is the syntax tree of `text` (see `grammar.to_json`): dissections and the
    report page need it, `sha256` does not cover it.
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
    words: str = "built-in"  # the word lists: built-in, or a lexicon's hash
    tree: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _names_known(self) -> Case:
        tools = [action.tool for action in self.actions]
        if len(set(tools)) < len(tools):
            raise ValueError("two actions have the same tool")
        for rule in self.constraints:
            for name in (rule.first, rule.second) if isinstance(rule, OrderRule) else (rule.tool,):
                if isinstance(rule, OrderRule) and rule.first == rule.second:
                    raise ValueError(f"{name!r} cannot come before itself")
                if name not in tools:
                    raise ValueError(f"a constraint names {name!r}, which is no action's tool")
        if self.durations is None and any(isinstance(r, TimeRule) for r in self.constraints):
            raise ValueError("a time limit needs the durations of all actions")
        if self.durations is not None and RESTART in tools:
            raise ValueError(f"{RESTART!r} is the tool for planning again; no action can have it")
        if self.durations is not None and set(self.durations) != set(tools):
            raise ValueError("durations must name every action's tool, and no other")
        if any(hours < 1 for hours in (self.durations or {}).values()):
            raise ValueError("a duration is at least 1 hour")
        return self

    @property
    def n(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each tool's action, from 0."""
        return {action.tool: i for i, action in enumerate(self.actions)}

    @cached_property
    def stated(self) -> tuple[StatedConstraint, ...]:
        """The constraints by action numbers, in their order."""
        return tuple(
            StatedConstraint(self._constraint(rule), rule.sentences) for rule in self.constraints
        )

    @property
    def hours(self) -> tuple[int, ...] | None:
        """Durations in the order of the actions; None for a base case."""
        return (
            None if self.durations is None else tuple(self.durations[a.tool] for a in self.actions)
        )

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of what the agent sees and what it is checked against."""
        return content_hash(
            self.model_dump(
                mode="json", include={"actions", "constraints", "request", "tools", "durations"}
            )
        )

    def _constraint(self, rule: OrderRule | TimeRule) -> Constraint:
        if isinstance(rule, OrderRule):
            return Before(self.index[rule.first], self.index[rule.second])
        return TimeLimit(self.index[rule.tool], rule.side, rule.hour)


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


def _tool(action: Activity, *, timed: bool) -> Tool:
    text = f"Carry out the activity: {action.phrase}."
    if not timed:
        return Tool(name=action.tool, description=text)
    text += " The answer says how many hours it took."
    return Tool(name=action.tool, description=text, parameters=_START_PARAMETERS)
