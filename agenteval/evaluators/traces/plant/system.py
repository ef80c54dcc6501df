"""What a system under test is made of, and the demands on form that its users make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Policy
from agenteval.evaluators.traces.plant.tools import WorldTool
from agenteval.evaluators.traces.plant.world import Service, World

CLEAN = "clean"
SIMPLE = "simple"  # as clean, with the most usual kind of request


@dataclass(frozen=True, slots=True)
class Case:
    """One input of a system: what the user says, and what the world holds.

    `keys` are the keys of an answer as JSON. `files` are written into the folder of the world.
    `excused` are categories that happen inside a tool and are dealt with there. `prepare` changes
    the world before the run.
    """

    request: str
    data: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    excused: frozenset[str] = frozenset()
    prepare: Callable[[World], None] | None = None


@dataclass(frozen=True, slots=True)
class TracedSystem:
    """A system under test: tools over a world, and a small model that uses them.

    `has` says what its world holds, of "service", "files", "database", "programs": that decides
    what can go wrong in it. `slips` are the categories of mistakes that its model can make.
    `scenes` are worlds without any error that look like one. `tools(world, api)` makes the tools.
    """

    name: str
    about: str
    instructions: str
    has: frozenset[str]
    slips: tuple[str, ...]
    scenes: tuple[str, ...]
    case: Callable[[Dice, str], Case]
    tools: Callable[[World, Api], Sequence[WorldTool]]
    policy: Policy
    service: Service
    victim: str = ""  # the tool whose definition can be broken
    swapped: str = ""  # the tool whose code then stands behind it


def no_service(
    world: World, method: str, path: str, query: Mapping[str, str], body: Any
) -> tuple[int, Any]:
    """The service of a system that uses none."""
    return 404, None


MARKS = ("<DONE>", "<END_OF_ANSWER>", "[FINISHED]", "###END###", "<END_REPORT>")
_MARK_DEMANDS = (
    "End your answer with the line {0}.",
    "The last line of the reply has to read {0}",
    "Please close with {0} so that our parser knows that you are done.",
    "Your final message must end with {0} and nothing behind it.",
)
_SHORT_DEMANDS = (
    "Answer in one sentence.",
    "Use exactly one sentence for the answer, it is shown on a small display.",
    "Keep the final answer to one sentence.",
)


def demand(kind: str, dice: Dice, keys: Sequence[str]) -> str:
    """A sentence on the form of the answer; `kind` is "none", "mark", "json" or "short"."""
    if kind == "mark":
        return dice.pick(_MARK_DEMANDS).format(dice.pick(MARKS))
    if kind == "short":
        return dice.pick(_SHORT_DEMANDS)
    if kind == "json":
        named = ", ".join(f'"{key}"' for key in keys)
        return dice.pick(
            (
                f"Answer with a JSON object with the keys {named} and nothing else.",
                f"I need the answer as one JSON object with the keys {named}, no other text.",
            )
        )
    return ""
