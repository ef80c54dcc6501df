"""One planning test: a request in English, mock tools, and what a valid plan must satisfy."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field, model_validator

from agenteval.agents import Tool
from agenteval.evaluators.planning.constraints import (
    Before,
    Constraint,
    Side,
    Stated,
    TimeLimit,
)
from agenteval.records import Record, content_hash

RESTART = "restart_plan"  # tool of extended cases that undoes everything
GENERATOR = 1  # raised when the same seed would give another suite


class Action(Record):
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

    `text` is the synthesized paragraph, `request` the whole of what the agent is asked. Numbers in
    `sentences` count the sub-sentences of `text` from 0. `durations` (hours by tool name) makes
    the case an extended one; they are hidden from the agent. `valid_plans` is None where it was
    not counted.
    """

    id: str = Field(min_length=1)
    topic: str = ""
    actions: tuple[Action, ...] = Field(min_length=1)
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
    def stated(self) -> tuple[Stated, ...]:
        """The constraints by action numbers, in their order."""
        return tuple(Stated(self._constraint(rule), rule.sentences) for rule in self.constraints)

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
