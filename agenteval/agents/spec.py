"""The agent a user means by `--agent`: `openai`, `python:module:function`, `command:CMD`, ..."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agenteval.agents.callable import CallableAgent, ObjectAgent, load_function, source_sha256
from agenteval.agents.command import CommandAgent
from agenteval.agents.process import files_sha256, split, without_secrets
from agenteval.agents.protocol import Agent, System
from agenteval.errors import InputError
from agenteval.text import did_you_mean

if TYPE_CHECKING:
    from agenteval.agents.endpoint import Endpoint
    from agenteval.models.client import Client, ReplyCache
    from agenteval.models.factory import Model
    from agenteval.models.limits import Budget

Scripted = Mapping[str, Callable[[], Agent]]
# Further adapters that run a model, by name; each makes its system for an endpoint.
OnModel = Mapping[str, "Callable[[Endpoint, Client], System]"]
VERSION = 1  # of these adapters; raised when the text sent to an agent changes
_MODEL_MAKERS = {  # module, and the function in it
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
    """Settings of adapters that run a model themselves; other adapters ignore them.

    `model` and `base_url` are read by `choose_model`. `concurrency` is the number of concurrent
    cases. The timeout of a request is that of a case (`seconds`), but at least two minutes.
    `budget` is shared by all cases. Without `need_key` a hosted model may lack its key, because a
    plan sends no requests. Replies are written to `store`.
    """

    model: Model = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    concurrency: int = 64
    seconds: float = 0.0
    budget: Budget | None = None
    need_key: bool = True
    store: ReplyCache | None = None


_UNCOUNTED = {
    "scripted": "the agent is a script and sends no requests",
    "recorded": "recorded sessions are replayed: the agent calls no model",
    **dict.fromkeys(
        ("python", "command", "mcp"),
        "the agent makes its own requests; they are not counted here",
    ),
}


def uncounted(parameters: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return why a dry run cannot estimate this agent's requests; empty if it can."""
    adapter = parameters.get("adapter")
    return (_UNCOUNTED[adapter],) if isinstance(adapter, str) and adapter in _UNCOUNTED else ()


def system(
    spec: str | Callable[..., Any],
    settings: AgentSettings | None = None,
    scripted: Scripted | None = None,
    more: OnModel | None = None,
    *,
    dialogue: bool = False,
) -> System:
    """The system meant by `spec`, or that of a function or class; nothing is started or sent.

    To run it, use `opened`. `scripted` are the factories behind `scripted:NAME`, `more` further
    adapters that run a model. With `dialogue` it is for conversations, else for requests. Raises
    InputError for an unknown adapter, and whatever is missing for a known one: a model, a key, a
    module, a program, a package (ModelUnavailable).
    """
    chooser = _Chooser(settings or AgentSettings(), scripted or {}, more or {}, dialogue)
    return chooser.choose(spec)[0]


@asynccontextmanager
async def opened(
    spec: str | Callable[..., Any],
    settings: AgentSettings | None = None,
    scripted: Scripted | None = None,
    more: OnModel | None = None,
    *,
    dialogue: bool = False,
) -> AsyncIterator[System]:
    """Like `system`; close the connections of its model at the end of the block."""
    chooser = _Chooser(settings or AgentSettings(), scripted or {}, more or {}, dialogue)
    chosen, client = chooser.choose(spec)
    if client is not None:
        # Loading the SDK takes seconds, which must not count against the first cases.
        await asyncio.to_thread(importlib.import_module, "openai.resources.chat")
    try:
        yield chosen
    finally:
        if client is not None:
            await client.close()


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Turns a specification into a System."""

    settings: AgentSettings
    scripted: Scripted
    more: OnModel
    dialogue: bool

    def choose(self, spec: str | Callable[..., Any]) -> tuple[System, Client | None]:
        """The system, and the client it runs on."""
        if not isinstance(spec, str):
            return self._of_object(spec, f"{spec.__module__}:{spec.__qualname__}"), None
        adapter, colon, target = spec.strip().partition(":")
        target = target.strip()
        if adapter in (*MODEL_ADAPTERS, *self.more) and not colon:
            return self._on_model(adapter)
        if adapter == "python" and target:
            return self._of_object(load_function(target), target), None
        if adapter in ("command", "mcp") and target:
            return self._of_command(adapter, target), None
        if adapter == "scripted" and target:
            if target not in self.scripted:
                scripts = f"known: {', '.join(sorted(self.scripted)) or 'none here'}"
                hint = did_you_mean(target, self.scripted) or scripts
                raise InputError(f"no scripted agent is called {target!r}; {hint}", "--agent")
            make = self.scripted[target]
            return _system("scripted", f"scripted:{target}", make, script=target), None
        raise InputError(self._unknown(spec, adapter), "--agent")

    def _unknown(self, spec: str, adapter: str) -> str:
        models = (*MODEL_ADAPTERS, *self.more)
        forms = (*models, *_OTHER_FORMS)
        allowed = f"the agents are: {', '.join(forms)}"
        if self.scripted:
            allowed += f" with NAME one of {', '.join(sorted(self.scripted))}"
        if adapter in models:
            return f"{spec!r}: the model of {adapter} is given with --model; {allowed}"
        names = [form.partition(":")[0] for form in forms]
        hint = did_you_mean(adapter.lower(), names)
        if spec in self.scripted:
            hint = f"did you mean scripted:{spec}?"
        return f"unknown agent {spec!r}; {hint + ' ' if hint else ''}{allowed}"

    def _on_model(self, adapter: str) -> tuple[System, Client]:
        from agenteval.agents.endpoint import connect

        endpoint, settings = _endpoint(adapter, self.settings), self.settings
        kind, store = None, settings.store
        if adapter == "responses":
            from agenteval.agents.openai_responses import ResponsesTransport

            kind, store = ResponsesTransport, None  # such replies cannot be replayed
        client = connect(
            endpoint,
            concurrency=settings.concurrency,
            budget=settings.budget,
            transport=kind,
            store=store,
        )
        if adapter in self.more:
            return self.more[adapter](endpoint, client), client
        name = _MODEL_MAKERS[adapter]
        make = getattr(importlib.import_module(f"agenteval.agents.{name}"), name)
        return make(endpoint, client, dialogue=self.dialogue), client

    def _of_object(self, target: Any, reference: str) -> System:
        """A function or class, under the name by which it can be imported."""
        if isinstance(target, type):
            self._check_class(target, reference)
            make: Callable[[], Agent] = lambda: ObjectAgent(target())  # noqa: E731
        else:
            ready = CallableAgent(target, dialogue=self.dialogue)  # holds no state of a case
            make = lambda: ready  # noqa: E731
        name, source = f"python:{reference}", source_sha256(target)
        return _system("python", name, make, function=reference, source=source)

    def _check_class(self, target: type, reference: str) -> None:
        """The class has the method itself, and is instantiated every time without arguments."""
        problem = None
        if not inspect.iscoroutinefunction(getattr(target, "run", None)):
            takes = "dialogue" if self.dialogue else "request"
            problem = f"it lacks `async def run(self, {takes}, tools)`"
        else:
            try:
                inspect.signature(target).bind()
            except TypeError as error:
                problem = f"it cannot be made without arguments: {error}"
        if problem:
            raise InputError(f"the class {reference} is not an agent: {problem}", "--agent")

    def _of_command(self, adapter: str, command: str) -> System:
        words = split(command)
        if adapter == "mcp":
            from agenteval.agents.mcp import McpAgent, check_placeholders, require_mcp

            if self.dialogue:
                check_placeholders(words)
            require_mcp()
            make: Callable[[], Agent] = lambda: McpAgent(command)  # noqa: E731
        else:
            make = lambda: CommandAgent(command)  # noqa: E731
        shown = without_secrets(words)
        files: dict[str, JsonValue] = dict(files_sha256(words))
        name = f"{adapter}:{shlex.join(shown)}"
        return _system(adapter, name, make, command=list(shown), files=files)


def _system(adapter: str, name: str, make: Callable[[], Agent], **parameters: JsonValue) -> System:
    short = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
    return System(short, make, {"adapter": adapter, "version": VERSION, **parameters})


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
        timeout=max(120.0, settings.seconds),
        recording=choice.path,
        extra=choice.parameters,
        key_header=choice.key_header,
        query=choice.query,
    )
