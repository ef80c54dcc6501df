"""What a system under test is made of: its cases, its tools, and what users ask of the answer."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agenteval.agents.protocol import Tool
from agenteval.evaluators.traces.plant.policy import Policy
from agenteval.evaluators.traces.plant.service import Api, Service
from agenteval.evaluators.traces.plant.world import Dice, World

CLEAN = "clean"
SIMPLE = "simple"  # as clean, with the most usual kind of request


Function = Callable[..., Any]  # returns text, or what becomes JSON


@dataclass(frozen=True, slots=True)
class WorldTool:
    """A tool: what is told of it, and what it does."""

    spec: Tool
    function: Function


@dataclass(frozen=True, slots=True)
class Case:
    """One input of a system: what the user says, and what the world holds.

    `keys` are the keys of an answer as JSON. `excused` are categories that happen inside a tool
    and are dealt with there. `prepare` changes the world before the run.
    """

    request: str
    data: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    excused: frozenset[str] = frozenset()
    prepare: Callable[[World], None] | None = None


@dataclass(frozen=True, slots=True)
class TracedSystem:
    """A system under test: tools over a world, and a small model that uses them.

    `slips` are the categories of mistakes that its model can make.
    `scenes` are worlds without any error that look like one. `tools(world, api)` makes the tools.
    """

    name: str
    about: str
    instructions: str
    slips: tuple[str, ...]
    scenes: tuple[str, ...]
    case: Callable[[Dice, str], Case]
    tools: Callable[[World, Api], Sequence[WorldTool]]
    policy: Policy
    service: Service


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


def tool(name: str, description: str, function: Function, /, **properties: str) -> WorldTool:
    """A tool whose parameters are all required; `properties` gives "type: description"."""
    schema: dict[str, JsonValue] = {}
    for key, told in properties.items():
        kind, _, words = told.partition(": ")
        schema[key] = {"type": kind, **({"description": words} if words else {})}
    parameters: dict[str, JsonValue] = {
        "type": "object",
        "properties": schema,
        "required": list(properties),
        "additionalProperties": False,
    }
    return WorldTool(Tool(name=name, description=description, parameters=parameters), function)


def offered(kit: Sequence[WorldTool], world: World) -> tuple[Tool, ...]:
    """The tools as the agent is told of them, with what is wrong in their definitions."""
    return tuple(_offered(item.spec, world.tools.rename.get(item.spec.name, {})) for item in kit)


def _offered(spec: Tool, names: Mapping[str, str]) -> Tool:
    if not names:
        return spec
    text = json.loads(json.dumps(spec.parameters))
    text["properties"] = {
        names.get(k, k): v for k, v in text["properties"].items() if names.get(k, k)
    }
    text["required"] = list(text["properties"])
    return spec.model_copy(update={"parameters": text})


class WorldTools:
    """A backend over the tools of a world; what a tool raises is told to the agent as text.

    Where the call has a span that says it is a tool's, the exception is recorded there too, as
    frameworks do it, if the rules of the world say so.
    """

    def __init__(self, kit: Sequence[WorldTool], world: World) -> None:
        self._kit = {item.spec.name: item for item in kit}
        self._world = world

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool's answer, or what the agent is told of its failure."""
        rules = self._world.tools
        function = self._kit[rules.swap.get(name, name)].function
        given = dict(arguments)
        if name in rules.swap:  # the wrong code stands behind the name
            wanted = self._kit[rules.swap[name]].spec.parameters["properties"]
            assert isinstance(wanted, dict)
            given = dict(zip(wanted, given.values(), strict=False))
        span = tool_span()
        self._world.entered(name, span_id(span))
        try:
            said = self._run(span, function, given)
        finally:
            self._world.left()
        self._world.calls[-1].answer = said
        return said

    def _run(self, span: Any, function: Function, given: dict[str, Any]) -> str:
        try:
            value = function(**given)
        except Exception as error:  # noqa: BLE001  whatever a tool raises, the agent is told
            return tell(self._world, span, error)
        if self._world.tools.swap:
            self._world.failed("another tool stands behind this name")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tell(world: World, span: Any, error: Exception) -> str:
    """What the agent is told of a failed tool; its span, if any, is told as well."""
    world.failed(error)
    if world.tools.recorded and span is not None:
        from opentelemetry.trace import Status, StatusCode

        span.record_exception(error, {"exception.stacktrace": stack(error)})
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
    return _told(world.tools.words, error)


def tool_span() -> Any:
    """The span of the tool call under way; None without one."""
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    attributes = getattr(span, "attributes", None) or {}
    return span if attributes.get("openinference.span.kind") == "TOOL" else None


def span_id(span: Any) -> str:
    """The id of a span in hex; "" for None."""
    return "" if span is None else format(span.get_span_context().span_id, "016x")


def stack(error: Exception) -> str:
    """The last frames of a traceback; files by their names, wherever this package lies."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    lines = [f'  File "{Path(f.filename).name}", line {f.lineno}, in {f.name}' for f in frames]
    ends = "".join(traceback.format_exception_only(error)).strip()
    return "\n".join(["Traceback (most recent call last):", *lines, ends])


def _told(words: str, error: Exception) -> str:
    """What a framework tells the agent of an exception."""
    kind = type(error).__name__
    if words == "json":
        return json.dumps({"ok": False, "error": kind, "detail": str(error)})
    return words.format(kind=kind, error=str(error) or kind, trace=stack(error))
