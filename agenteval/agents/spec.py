"""The agent a user means by `--agent`: `openai`, `python:module:function`, `command:CMD`, ...

The same forms name an agent for single requests (`system`, `opened`) and an assistant for
conversations (`assistant`, `opened_assistant`).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agenteval.agents.dialogue import Assistant, AssistantSystem
from agenteval.agents.protocol import Agent, System
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.agents.endpoint import Endpoint
    from agenteval.models.client import Client
    from agenteval.models.limits import Budget

Scripted = Mapping[str, Callable[[], Agent]]
ScriptedAssistants = Mapping[str, Callable[[], Assistant]]
# Further adapters that run a model, by name; each makes its system for an endpoint.
OnModel = Mapping[str, "Callable[[Endpoint, Client], AssistantSystem]"]
VERSION = 1  # of the adapters here; a change in what an agent is told is a new one
_MODEL_MAKERS = {  # module, and the function in it: `..._assistant` for conversations
    "openai": "openai_chat",
    "responses": "openai_responses",
    "react": "react",
    "autogen": "autogen",
}
MODEL_ADAPTERS = tuple(_MODEL_MAKERS)
_OTHER_FORMS = ("python:MODULE:FUNCTION", "command:CMD", "mcp:CMD", "scripted:NAME")
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the adapters that run a model themselves are given; the others take no notice of it.

    `model` and `base_url` are read as everywhere (`choose_model`). `concurrency` is the number of
    cases run at once. `budget` is shared by all cases. Without `need_key` a hosted model may lack
    its key: what is only planned asks nobody. Every reply is appended to the file `record`.
    """

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    concurrency: int = 64
    budget: Budget | None = None
    need_key: bool = True
    record: Path | None = None


_UNCOUNTED = {
    "scripted": "the agent is a script: it asks nobody",
    **dict.fromkeys(
        ("python", "command", "mcp"),
        "the agent spends whatever it spends itself; none of it is counted here",
    ),
}


def uncounted(parameters: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Why a dry run can say nothing of the agent of these parameters; empty where it can."""
    adapter = parameters.get("adapter")
    return (_UNCOUNTED[adapter],) if isinstance(adapter, str) and adapter in _UNCOUNTED else ()


def system(
    spec: str | Callable[..., Any],
    settings: AgentSettings | None = None,
    scripted: Scripted | None = None,
) -> System:
    """The system meant by `spec`, or that of a function or class; nothing is started or sent.

    To run it, use `opened`. `scripted` are the factories behind `scripted:NAME`. Raises InputError
    for an unknown adapter, and whatever is missing for a known one: a model, a key, a module, a
    program, a package (ModelUnavailable).
    """
    chosen: System = _Agents(settings, scripted).choose(spec)[0]
    return chosen


def assistant(
    spec: str | Callable[..., Any],
    settings: AgentSettings | None = None,
    scripted: ScriptedAssistants | None = None,
    more: OnModel | None = None,
) -> AssistantSystem:
    """As `system`, for conversations; a function of (messages, tools) is one too. `more` are
    further adapters that run a model."""
    chosen: AssistantSystem = _Assistants(settings, scripted, more).choose(spec)[0]
    return chosen


@asynccontextmanager
async def opened(
    spec: str | Callable[..., Any],
    settings: AgentSettings | None = None,
    scripted: Scripted | None = None,
) -> AsyncIterator[System]:
    """As `system`; the connections of its model are closed at the end of the block."""
    async with _opened(_Agents(settings, scripted), spec) as chosen:
        yield chosen


@asynccontextmanager
async def opened_assistant(
    spec: str,
    settings: AgentSettings | None = None,
    scripted: ScriptedAssistants | None = None,
    more: OnModel | None = None,
) -> AsyncIterator[AssistantSystem]:
    """As `assistant`; the connections of its model are closed at the end of the block."""
    async with _opened(_Assistants(settings, scripted, more), spec) as chosen:
        yield chosen


@asynccontextmanager
async def _opened(kind: _Agents, spec: str | Callable[..., Any]) -> AsyncIterator[Any]:
    chosen, client = kind.choose(spec)
    if client is not None:
        # Loading the SDK takes seconds, which must not run on the clocks of the first cases.
        await asyncio.to_thread(importlib.import_module, "openai.resources.chat")
    try:
        yield chosen
    finally:
        if client is not None:
            await client.close()


class _Agents:
    """How a specification becomes a System."""

    word = "agent"
    method = "run"
    takes = "request, tools"
    suffix = ""
    made: type[System] | type[AssistantSystem] = System

    def __init__(
        self,
        settings: AgentSettings | None,
        scripted: Mapping[str, Callable[[], Any]] | None,
        more: OnModel | None = None,
    ) -> None:
        self._settings = settings or AgentSettings()
        self._scripted = scripted or {}
        self._more = more or {}
        self._models = (*MODEL_ADAPTERS, *self._more)

    def choose(self, spec: str | Callable[..., Any]) -> tuple[Any, Client | None]:
        """The system, and the client it runs on."""
        if not isinstance(spec, str):
            self._refuse_record()
            return self._of_object(spec, f"{spec.__module__}:{spec.__qualname__}"), None
        adapter, colon, rest = spec.strip().partition(":")
        if adapter in self._models and not colon:
            return self._on_model(adapter)
        makers: dict[str, Callable[[str], Any]] = {
            "python": self._python,
            "command": self._command,
            "mcp": self._mcp,
            "scripted": self._by_script,
        }
        if adapter in makers and rest.strip():
            self._refuse_record()
            return makers[adapter](rest.strip()), None
        raise InputError(self._unknown(spec, adapter), "--agent")

    def _refuse_record(self) -> None:
        if self._settings.record is not None:
            raise InputError("this agent asks its model itself: no reply passes here", "--record")

    def _unknown(self, spec: str, adapter: str) -> str:
        all_forms = (*self._models, *_OTHER_FORMS)
        allowed = f"the agents are: {', '.join(all_forms)}"
        if self._scripted:
            allowed += f" with NAME one of {', '.join(sorted(self._scripted))}"
        if adapter in self._models:
            return f"{spec!r}: the model of {adapter} is given with --model; {allowed}"
        forms = {form.partition(":")[0]: form for form in all_forms}
        near = get_close_matches(adapter.lower(), forms, 1)
        if spec in self._scripted:
            hint = f"is scripted:{spec} meant? "
        elif near:
            hint = f"is {forms[near[0]]} meant? "
        elif "." in adapter and ":" in spec:
            hint = f"is python:{spec} meant? "
        else:
            hint = ""
        return f"unknown agent {spec!r}; {hint}{allowed}"

    def _on_model(self, adapter: str) -> tuple[Any, Client]:
        from agenteval.agents.endpoint import connect

        endpoint = _endpoint(adapter, self._settings)
        more: dict[str, Any] = {
            "concurrency": self._settings.concurrency,
            "budget": self._settings.budget,
            "record": self._settings.record,
        }
        if adapter == "responses":
            if self._settings.record is not None:
                raise InputError("replies of the Responses API cannot be recorded", "--record")
            from agenteval.agents.openai_responses import ResponsesTransport

            more["transport"] = ResponsesTransport
        make = self._more.get(adapter) or self._maker(adapter)
        client = connect(endpoint, **more)
        return make(endpoint, client), client

    def _maker(self, adapter: str) -> Callable[..., Any]:
        name = _MODEL_MAKERS[adapter]
        module = importlib.import_module(f"agenteval.agents.{name}")
        made: Callable[..., Any] = getattr(module, name + self.suffix)
        return made

    def _python(self, reference: str) -> Any:
        from agenteval.agents.callable import load

        return self._of_object(load(reference), reference)

    def _of_object(self, found: Any, reference: str) -> Any:
        """A function or class, under the name by which it can be imported."""
        from agenteval.agents.callable import source_sha256

        if isinstance(found, type):
            make = self._class(found, reference)
        else:
            ready = self._function(found)  # holds no state of a case
            make = lambda: ready  # noqa: E731
        source = source_sha256(found)
        return self._system(
            "python", f"python:{reference}", make, function=reference, source=source
        )

    def _function(self, found: Callable[..., Any]) -> Any:
        from agenteval.agents.callable import CallableAgent

        return CallableAgent(found)

    def _class(self, found: type, reference: str) -> Callable[[], Any]:
        """A class that has the method itself: made anew every time, without arguments."""
        problem = None
        if not inspect.iscoroutinefunction(getattr(found, self.method, None)):
            problem = f"it has no `async def {self.method}(self, {self.takes})`"
        else:
            try:
                inspect.signature(found).bind()
            except TypeError as error:
                problem = f"it cannot be made without arguments: {error}"
        if problem:
            raise InputError(f"the class {reference} is no {self.word}: {problem}", "--agent")
        return found

    def _command(self, command: str) -> Any:
        from agenteval.agents.command import CommandAgent

        return self._of_command("command", command, lambda: CommandAgent(command))

    def _mcp(self, command: str) -> Any:
        from agenteval.agents.mcp import McpAgent, require_mcp

        require_mcp()
        return self._of_command("mcp", command, lambda: McpAgent(command))

    def _of_command(self, adapter: str, command: str, make: Callable[[], Any]) -> Any:
        from agenteval.agents.process import files_sha256, split, without_secrets

        words = split(command)
        shown = without_secrets(words)
        files: dict[str, JsonValue] = dict(files_sha256(words))
        return self._system(
            adapter, f"{adapter}:{shlex.join(shown)}", make, command=list(shown), files=files
        )

    def _by_script(self, name: str) -> Any:
        if name not in self._scripted:
            near = get_close_matches(name, self._scripted, 1)
            hint = f"; is {near[0]!r} meant?" if near else ""
            known = ", ".join(sorted(self._scripted)) or "none here"
            raise InputError(
                f"there is no scripted agent {name!r}{hint} (known: {known})", "--agent"
            )
        return self._system("scripted", f"scripted:{name}", self._scripted[name], script=name)

    def _system(
        self, adapter: str, name: str, make: Callable[[], Any], **parameters: JsonValue
    ) -> Any:
        short = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
        return self.made(short, make, {"adapter": adapter, "version": VERSION, **parameters})


class _Assistants(_Agents):
    """How a specification becomes an AssistantSystem."""

    word = "assistant"
    method = "proceed"
    takes = "dialogue, tools"
    suffix = "_assistant"
    made = AssistantSystem

    def _function(self, found: Callable[..., Any]) -> Any:
        from agenteval.agents.callable import CallableAssistant

        return CallableAssistant(found)

    def _mcp(self, command: str) -> Any:
        from agenteval.agents.mcp import check_placeholders
        from agenteval.agents.process import split

        check_placeholders(split(command))
        return super()._mcp(command)


def _endpoint(adapter: str, settings: AgentSettings) -> Endpoint:
    from agenteval.agents.endpoint import Endpoint
    from agenteval.models.factory import choose_model

    choice = choose_model(settings.model, settings.base_url, need_key=settings.need_key)
    recorded = choice.provider == "replay" and adapter != "responses"
    if choice.kind != "chat" or (choice.path is not None and not recorded):
        raise InputError(
            f"the agent {adapter} needs a chat model: --model PROVIDER:MODEL or --base-url"
            f" (not {choice.name})",
            "--model",
        )
    return Endpoint(
        model=choice.name,
        base_url=choice.base_url,
        api_key=choice.api_key,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        recording=choice.path,
    )
