"""The agent a user means by `--agent`: `openai`, `python:module:function`, `command:CMD`, ..."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agenteval.agents.protocol import Agent, System
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.models.client import Client
    from agenteval.models.limits import Budget

Scripted = Mapping[str, Callable[[], Agent]]
VERSION = 1  # of the adapters here; a change in what an agent is told is a new one
MODEL_ADAPTERS = ("openai", "responses", "react", "autogen")
FORMS = (*MODEL_ADAPTERS, "python:MODULE:FUNCTION", "command:CMD", "mcp:CMD", "scripted:NAME")
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the adapters that run a model themselves are given; the others take no notice of it.

    `model` and `base_url` are read as everywhere (`choose_model`). `concurrency` is the number of
    cases run at once. `budget` is shared by all cases.
    """

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    concurrency: int = 64
    budget: Budget | None = None


def system(
    spec: str, settings: AgentSettings | None = None, scripted: Scripted | None = None
) -> System:
    """The system meant by `spec`; nothing is started or sent. To run it, use `opened`.

    `scripted` are the factories behind `scripted:NAME`. Raises InputError for an unknown adapter,
    and whatever is missing for a known one: a model, a key, a module, a program, a package
    (ModelUnavailable).
    """
    return _choose(spec, settings, scripted)[0]


@asynccontextmanager
async def opened(
    spec: str, settings: AgentSettings | None = None, scripted: Scripted | None = None
) -> AsyncIterator[System]:
    """As `system`; the connections of its model are closed at the end of the block."""
    chosen, client = _choose(spec, settings, scripted)
    if client is not None:
        # Loading the SDK takes seconds, which must not run on the clocks of the first cases.
        await asyncio.to_thread(importlib.import_module, "openai.resources.chat")
    try:
        yield chosen
    finally:
        if client is not None:
            await client.close()


def _choose(
    spec: str, settings: AgentSettings | None, scripted: Scripted | None
) -> tuple[System, Client | None]:
    adapter, colon, rest = spec.strip().partition(":")
    scripted = scripted or {}
    if adapter in MODEL_ADAPTERS and not colon:
        return _on_model(adapter, settings or AgentSettings())
    makers: dict[str, Callable[[str], System]] = {
        "python": _python,
        "command": _command,
        "mcp": _mcp,
        "scripted": lambda name: _scripted(name, scripted),
    }
    if adapter in makers and rest.strip():
        return makers[adapter](rest.strip()), None
    raise InputError(_unknown(spec, adapter, scripted), "--agent")


def _unknown(spec: str, adapter: str, scripted: Scripted) -> str:
    allowed = f"the agents are: {', '.join(FORMS)}"
    if scripted:
        allowed += f" with NAME one of {', '.join(sorted(scripted))}"
    if adapter in MODEL_ADAPTERS:
        return f"{spec!r}: the model of {adapter} is given with --model; {allowed}"
    forms = {form.partition(":")[0]: form for form in FORMS}
    near = get_close_matches(adapter.lower(), forms, 1)
    if spec in scripted:
        hint = f"is scripted:{spec} meant? "
    elif near:
        hint = f"is {forms[near[0]]} meant? "
    elif "." in adapter and ":" in spec:
        hint = f"is python:{spec} meant? "
    else:
        hint = ""
    return f"unknown agent {spec!r}; {hint}{allowed}"


def _on_model(adapter: str, settings: AgentSettings) -> tuple[System, Client]:
    from agenteval.agents.endpoint import Endpoint, connect
    from agenteval.models.factory import choose_model

    choice = choose_model(settings.model, settings.base_url)
    if choice.kind != "chat" or choice.path is not None:
        raise InputError(
            f"the agent {adapter} needs a chat model: --model PROVIDER:MODEL or --base-url"
            f" (not {choice.name})",
            "--model",
        )
    endpoint = Endpoint(
        model=choice.name,
        base_url=choice.base_url,
        api_key=choice.api_key,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )
    more: dict[str, Any] = {"concurrency": settings.concurrency, "budget": settings.budget}
    make: Callable[..., System]
    if adapter == "responses":
        from agenteval.agents.openai_responses import ResponsesTransport
        from agenteval.agents.openai_responses import openai_responses as make

        more["transport"] = ResponsesTransport
    elif adapter == "react":
        from agenteval.agents.react import react as make
    elif adapter == "autogen":
        from agenteval.agents.autogen import autogen as make
    else:
        from agenteval.agents.openai_chat import openai_chat as make
    client = connect(endpoint, **more)
    return make(endpoint, client), client


def _python(reference: str) -> System:
    from agenteval.agents.callable import CallableAgent, load, source_sha256

    found = load(reference)
    make: Callable[[], Agent]
    if isinstance(found, type):
        make = _agent_class(found, reference)
    else:
        ready = CallableAgent(found)  # holds no state of a case
        make = lambda: ready  # noqa: E731
    return _system(
        "python", f"python:{reference}", make, function=reference, source=source_sha256(found)
    )


def _agent_class(found: type, reference: str) -> Callable[[], Agent]:
    """A class that is an Agent itself: made anew for every case, without arguments."""
    problem = None
    if not inspect.iscoroutinefunction(getattr(found, "run", None)):
        problem = "it has no `async def run(self, request, tools)`"
    else:
        try:
            inspect.signature(found).bind()
        except TypeError as error:
            problem = f"it cannot be made without arguments: {error}"
    if problem:
        raise InputError(f"the class {reference} is no agent: {problem}", "--agent")
    return found


def _command(command: str) -> System:
    from agenteval.agents.command import CommandAgent

    return _of_command("command", command, lambda: CommandAgent(command))


def _mcp(command: str) -> System:
    from agenteval.agents.mcp import McpAgent, require_mcp

    require_mcp()
    return _of_command("mcp", command, lambda: McpAgent(command))


def _of_command(adapter: str, command: str, make: Callable[[], Agent]) -> System:
    from agenteval.agents.process import files_sha256, split, without_secrets

    words = split(command)
    shown = without_secrets(words)
    files: dict[str, JsonValue] = dict(files_sha256(words))
    return _system(
        adapter, f"{adapter}:{shlex.join(shown)}", make, command=list(shown), files=files
    )


def _scripted(name: str, scripted: Scripted) -> System:
    if name not in scripted:
        near = get_close_matches(name, scripted, 1)
        hint = f"; is {near[0]!r} meant?" if near else ""
        known = ", ".join(sorted(scripted)) or "none here"
        raise InputError(f"there is no scripted agent {name!r}{hint} (known: {known})", "--agent")
    return _system("scripted", f"scripted:{name}", scripted[name], script=name)


def _system(adapter: str, name: str, make: Callable[[], Agent], **parameters: JsonValue) -> System:
    short = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
    return System(short, make, {"adapter": adapter, "version": VERSION, **parameters})
