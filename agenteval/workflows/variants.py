"""The agent under test (`--agent`) in each format of the procedure.

`template` uses the two text templates of arXiv 2406.14884 (listing 1) instead of function calling:
its instructions end with the tools, and every reply of the model is a Thought with a Response or
one call. `recorded:NAME` replays recorded replies instead of an agent: the file
`sessions/NAME.yaml` of a role folder has a list of turns for each user. A turn has the user's
message, the agent's calls, and its reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from agenteval.agents import Dialogue, System, spec
from agenteval.agents.conversation import Exchange, arguments_text, in_words
from agenteval.agents.endpoint import Endpoint, Line
from agenteval.agents.spec import AgentSettings
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.models.client import Client
from agenteval.models.limits import Budget
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.models.wire import Request, WireMessage
from agenteval.records import Message, ToolCall, content_hash
from agenteval.text import plural
from agenteval.workflows.cases import (
    CHART_HEADING,
    OpenRole,
    SessionCase,
    TurnCase,
    instructions_prompt,
)
from agenteval.workflows.folder import read_recorded_turns
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.scenario import Format, RecordedTurn
from agenteval.workflows.session import Prediction

VERSION = 2  # of the templates and of how replies are read
_TRIES = 2  # malformed replies before the text is used unchanged
# A line that looks like a part of a template, or JSON: not meant for a user.
_MEANT = re.compile(
    r"^\W{0,8}(?:thought|response|action(?:[ _]?input)?)\b[^\w\n]{0,4}[:：]|^\W{0,8}\{", re.I | re.M
)


def _prompt(name: str) -> Prompt:
    """Return the addition to the instructions ("template": the tools and the two templates), or the
    answer to a malformed reply ("again")."""
    return load_prompt("agenteval.workflows", f"agent_{name}")


class TemplateAgent:
    """Asks a model with text templates until it replies to the user."""

    def __init__(self, endpoint: Endpoint, client: Client) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the text after `Response:`.

        A reply in neither form is malformed, and the model is asked again; a second one in a row is
        sent to the user unchanged, or as "" if it looks like a part of a form. Only the first of
        several calls in a reply is executed. A refusal in the endpoint's own field is the reply.
        Raises ModelError if the endpoint fails.
        """
        line = Line(self._client, tools)
        shown = [
            {**tool.model_dump(), "parameters": json.dumps(tool.parameters, ensure_ascii=False)}
            for tool in tools.tools
        ]
        instructions = dialogue.instructions or ""
        system = _prompt("template").render(
            instructions=instructions, chart=CHART_HEADING in instructions, tools=shown
        )
        messages: list[WireMessage] = [{"role": "system", "content": system}]
        messages += template_history(dialogue.messages)
        unreadable = 0
        while not tools.exhausted.is_set():
            reply = await line.ask(Request(tuple(messages), parameters=self._parameters))
            prediction = read_reply(reply.text)
            number = f"template_{len(messages)}"
            if reply.refusal:
                tools.say(Message(role="assistant", content=reply.text))
                return reply.text
            if prediction.form == "unreadable":
                unreadable += 1
                tools.malformed(reply.text)
                if unreadable == _TRIES or tools.exhausted.is_set():
                    _say(prediction, number, tools)
                    return "" if _MEANT.search(reply.text) else reply.text.strip()
                answer_text = _prompt("again").render()
            else:
                _say(prediction, number, tools)
                if prediction.form == "reply":
                    return prediction.response
                unreadable = 0
                answer = await tools.call_async(prediction.tool, prediction.arguments)
                answer_text = _result(prediction.tool, answer)
                tools.say(Message(role="tool", content=answer, tool_call_id=number))
            text = reply.text or "(nothing)"  # some endpoints refuse empty messages
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "user", "content": answer_text})
        return ""


def template_agent(endpoint: Endpoint, client: Client) -> System:
    """Return the agent `template:MODEL`; `client` comes from `connect(endpoint)`."""
    return System(
        name=f"template:{endpoint.model}",
        make=lambda: TemplateAgent(endpoint, client),
        parameters={
            "adapter": "template",
            "version": VERSION,
            "prompt": _prompt("template").sha256,
            "again": _prompt("again").sha256,
            **endpoint.parameters(),
        },
    )


def template_history(messages: Sequence[Message]) -> Iterator[WireMessage]:
    """Yield a dialogue in the templates, with simultaneous calls in sequence."""
    for item in in_words(messages):
        if isinstance(item, Exchange):
            yield {"role": "assistant", "content": _as_call(item)}
            yield {"role": "user", "content": _result(item.call.name, item.result)}
        elif item.role == "assistant" and read_reply(item.content).form != "reply":
            yield {"role": "assistant", "content": f"Response: {item.content}"}
        else:
            yield {"role": item.role, "content": item.content}


def _as_call(item: Exchange) -> str:
    read = read_reply(item.thought)
    if read.form == "call" and read.tool == item.call.name:  # it was sent in this form
        return item.thought
    lines = [f"Thought: {item.thought}"] if item.thought.strip() else []
    lines += [f"Action: {item.call.name}", f"Action Input: {arguments_text(item.call)}"]
    return "\n".join(lines)


def _result(tool: str, answer: str) -> str:
    return f"{tool} returned: {answer}"


def _say(prediction: Prediction, number: str, tools: Toolbox) -> None:
    calls: tuple[ToolCall, ...] = ()
    if prediction.form == "call":
        calls = (ToolCall(name=prediction.tool, arguments=prediction.arguments, id=number),)
    tools.say(Message(role="assistant", content=prediction.raw, tool_calls=calls))


PREFIX = "recorded:"


def recorded_name(agent: object) -> str | None:
    """Return NAME of `recorded:NAME`, None for any other agent.

    Raises InputError for the scripted agents of earlier versions.
    """
    if isinstance(agent, str) and agent.startswith("scripted:"):
        raise InputError(
            f"removed: use {PREFIX}perfect or {PREFIX}skips_step, which replay recorded sessions",
            "--agent",
        )
    is_recorded = isinstance(agent, str) and agent.startswith(PREFIX)
    return str(agent).removeprefix(PREFIX) if is_recorded else None


@dataclass(frozen=True)
class RecordedAgents:
    """The recorded sessions of one name: `turns` by role and profile."""

    name: str
    turns: Mapping[str, Mapping[str, tuple[RecordedTurn, ...]]]

    @classmethod
    def read(cls, name: str, roles: Sequence[OpenRole]) -> RecordedAgents:
        """Read `sessions/NAME.yaml` of each role. Raises InputError for a role without one."""
        turns = {of.role.id: read_recorded_turns(of.folder, of.role, name) for of in roles}
        return cls(f"{PREFIX}{name}", turns)

    @cached_property
    def system(self) -> System:
        """The agent's name in reports and the store. It cannot serve users; see `at`."""
        sessions: dict[str, JsonValue] = {
            role: content_hash({u: [t.model_dump() for t in turns] for u, turns in users.items()})
            for role, users in self.turns.items()
        }
        parameters: dict[str, JsonValue] = {
            "adapter": "recorded",
            "version": 1,
            "sessions": sessions,
        }
        return System(self.name, lambda: ReplayAgent(self.name, (), ()), parameters)

    def has(self, case: SessionCase) -> bool:
        """Return whether there is a recorded session with the user."""
        return case.profile.id in self.turns[case.of.role.id]

    def at(self, case: SessionCase) -> System:
        """Return the agent for one user. Raises KeyError if there is no session with that user."""
        turns = self.turns[case.of.role.id][case.profile.id]
        agent = ReplayAgent(f"{self.name}, {case.info.id}", turns, case.profile.asides)
        return replace(self.system, make=lambda: agent)


class ReplayAgent:
    """Makes the calls and sends the reply of the recorded turn.

    It fails if the user's message differs from the recording. Asides, which are random, are not
    compared.
    """

    def __init__(self, where: str, turns: Sequence[RecordedTurn], asides: Sequence[str]) -> None:
        self._where, self._turns = where, turns
        self._asides = {_line(aside) for aside in asides}

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the recorded reply. Raises AgentevalError if the recording does not fit."""
        heard = [m.content for m in dialogue.messages if m.role == "user"]
        number, recorded = len(heard), len(self._turns)
        if number > recorded:
            raise AgentevalError(
                f"{self._where}: the recorded session has only {plural(recorded, 'turn')}, and the "
                f"user goes on with {heard[-1]!r}"
            )
        turn = self._turns[number - 1]
        if self._compared(heard[-1]) != self._compared(turn.user):
            raise AgentevalError(
                f"{self._where}: the recorded session does not fit at turn {number}: the user says "
                f"{heard[-1]!r}, the recording has {turn.user!r}"
            )
        for index, call in enumerate(turn.calls):
            id = f"recorded_{number}_{index}"
            status, answer = await tools.attempt_async(call.tool, call.arguments)
            if status is not None:
                request = ToolCall(name=call.tool, arguments=call.arguments, id=id)
                tools.say(Message(role="assistant", tool_calls=(request,)))
                tools.say(Message(role="tool", content=answer, tool_call_id=id))
            if tools.exhausted.is_set():
                return ""
        return turn.reply

    def _compared(self, text: str) -> list[str]:
        lines = [_line(line) for line in text.splitlines()]
        return [line for line in lines if line and line not in self._asides]


def _line(text: str) -> str:
    return " ".join(text.split())


Agent = str | Callable[..., Any] | System
Case = SessionCase | TurnCase
_ON_MODEL: spec.OnModel = {"template": template_agent}


@dataclass(frozen=True, slots=True)
class AgentVariant:
    """The agent with the procedure in one format, under conditions that are part of its key.

    `conditions` is everything else that can affect a session: limits, simulators, seed. Recorded
    agents have `recorded`, which returns the agent for a case.
    """

    system: System
    format: Format
    conditions: Mapping[str, JsonValue]
    recorded: Callable[[SessionCase], System] | None = None

    def agent_for(self, case: SessionCase) -> System:
        """Return the agent for one user."""
        return self.system if self.recorded is None else self.recorded(case)

    @property
    def name(self) -> str:
        """Agent and format."""
        return f"{self.system.name} · {self.format}"

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Parameters as kept in the store."""
        return {
            "agent": {"name": self.system.name, **self.system.parameters},
            "format": self.format,
            "conditions": {"instructions": instructions_prompt().sha256, **self.conditions},
        }

    @property
    def sha256(self) -> str:
        """Content hash (hex): the key under which trials are stored."""
        return content_hash({"name": self.name, "parameters": self.parameters})


@dataclass(frozen=True)
class AgentUnderTest:
    """One agent in each format.

    `agent` is a specification (see `agents.spec`), a function of (messages, tools), a system, or
    recorded sessions; `settings` apply to agents that run on a model.
    """

    agent: Agent | RecordedAgents
    formats: Sequence[Format]
    settings: AgentSettings

    @property
    def system(self) -> System:
        """The agent with its name and parameters, without opening connections. Raises InputError
        for an unknown agent."""
        if isinstance(self.agent, RecordedAgents):
            return self.agent.system
        if isinstance(self.agent, System):
            return self.agent
        return spec.system(self.agent, self.settings, more=_ON_MODEL, dialogue=True)

    def variants(
        self, conditions: dict[str, JsonValue], system: System | None = None
    ) -> list[AgentVariant]:
        """Return the agent in each format; `system` is the opened one."""
        recorded = self.agent.at if isinstance(self.agent, RecordedAgents) else None
        system = system or self.system
        return [AgentVariant(system, format, conditions, recorded) for format in self.formats]

    @asynccontextmanager
    async def opened(self, budget: Budget) -> AsyncIterator[System]:
        """Yield the agent and close its connections at the end; `budget` counts its requests."""
        if not isinstance(self.agent, str):
            yield self.system
            return
        settings = replace(self.settings, budget=budget)
        async with spec.opened(self.agent, settings, more=_ON_MODEL, dialogue=True) as system:
            yield system
