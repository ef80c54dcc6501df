"""Conversations of a trace, the calls made in them, and what each call came back with."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from agenteval.evaluators.traces.detectors.registry import MessageKey, TraceView, canonical
from agenteval.records import Message, Span, ToolCall

_RECENT = 8  # conversations of one agent's name that a request may go on with
_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.call.id", "tool_call_id")
_PENDING = 64  # calls of one tool without an answer that are looked through
_CARRIED = 20  # results that are looked for in a new user message


@dataclass(eq=False)
class Call:
    """One call of a tool. `span` is the request that asked for it, else the tool's own span.

    `epoch` counts the user messages of its conversation so far: calls of different epochs were
    asked for anew. `result` is None where the trace does not tell it.
    """

    span: Span
    name: str
    arguments: JsonValue
    epoch: int
    id: str | None = None
    result: str | None = None
    execution: Span | None = None

    @cached_property
    def same(self) -> tuple[str, str]:
        """Equal for calls of one tool with equal arguments."""
        return self.name, canonical(self.arguments)


@dataclass(eq=False)
class Conversation:
    """Requests to a model that continue one another, with the calls made on the way."""

    requests: list[Span] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    epoch: int = 0
    waiting: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))  # by id
    pending: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))  # by name
    seen: set[MessageKey] = field(default_factory=set)


class Conversations:
    """All conversations of a trace. One pass: a message that was read is not read again."""

    def __init__(self, view: TraceView) -> None:
        self.view = view
        self.all: list[Conversation] = []
        self._by_agent: dict[int | None, Conversation] = {}
        self._by_name: dict[str, list[Conversation]] = defaultdict(list)
        work = sorted([*view.llms, *view.tools], key=lambda s: view.position[s.id])
        for span in work:
            if span.kind == "llm":
                self._request(span)
            else:
                self._execution(span)

    def _request(self, span: Span) -> None:
        conversation, continued = self._find(span)
        if conversation.requests and continued:
            new: Iterable[Message] = span.messages[len(conversation.requests[-1].messages) :]
        else:
            new = [m for m in span.messages if self.view.key(m) not in conversation.seen]
        self._read(conversation, list(new))
        conversation.requests.append(span)
        for message in span.reply:
            for asked in message.tool_calls:
                self._ask(conversation, span, asked)

    def _find(self, span: Span) -> tuple[Conversation, bool]:
        agent = self.view.agent_of(span)
        name = "" if agent is None else _agent_name(self.view.spans[agent])
        for conversation in reversed(self._by_name[name][-_RECENT:]):
            if self._continues(conversation.requests[-1], span):
                self._by_agent[agent] = conversation
                return conversation, True
        found = self._by_agent.get(agent)
        if found is None or (agent is None and span.messages):
            found = Conversation()
            self.all.append(found)
            self._by_agent[agent] = found
        if found not in self._by_name[name][-_RECENT:]:
            self._by_name[name].append(found)
        return found, False

    def _continues(self, before: Span, after: Span) -> bool:
        """Whether a request was sent what another was sent, and more."""
        n, key = len(before.messages), self.view.key
        return (
            0 < n < len(after.messages)
            and key(after.messages[n - 1]) == key(before.messages[-1])
            and key(after.messages[0]) == key(before.messages[0])
        )

    def _read(self, conversation: Conversation, new: list[Message]) -> None:
        results = [c.result for c in conversation.calls[-_CARRIED:] if c.result]
        for message in new:
            conversation.seen.add(self.view.key(message))
            if message.role == "tool":
                self._answer(conversation, message)
                results.append(message.content)
            elif message.role == "user" and not any(r and r in message.content for r in results):
                conversation.epoch += 1

    def _answer(self, conversation: Conversation, message: Message) -> None:
        waiting = conversation.waiting.get(message.tool_call_id or "")
        if waiting and waiting[0].result is None:
            waiting[0].result = message.content
        if waiting:
            waiting.pop(0)

    def _ask(self, conversation: Conversation, span: Span, asked: ToolCall) -> None:
        call = Call(span, asked.name, asked.arguments, conversation.epoch, asked.id)
        conversation.calls.append(call)
        conversation.pending[call.name].append(call)
        if asked.id:
            conversation.waiting[asked.id].append(call)

    def _execution(self, span: Span) -> None:
        conversation = self._by_agent.get(self.view.agent_of(span))
        if conversation is None:
            if self.view.agent_of(span) is None:
                return  # a tool run by no agent: nothing is known of who decided it
            conversation = self._by_agent[self.view.agent_of(span)] = Conversation()
            self.all.append(conversation)
        name = span.tool or span.name
        given = _arguments(span.input)
        call = _matching(conversation.pending[name], span, given)
        if call is None:
            call = Call(span, name, given, conversation.epoch)
            conversation.calls.append(call)
        call.execution = span
        if call.result is None and (span.output or span.status != "unset"):
            call.result = span.output or span.status_message


def _matching(pending: list[Call], span: Span, given: JsonValue) -> Call | None:
    """The call that an execution belongs to, taken out of those pending; by id, by arguments, or
    the only one of the name."""
    ids = {value for key in _IDS if isinstance(value := span.attributes.get(key), str)}
    wanted = canonical(given)
    for i, call in enumerate(pending[:_PENDING]):
        if call.id in ids or call.same[1] == wanted:
            return pending.pop(i)
    return pending.pop() if len(pending) == 1 else None


def _arguments(text: str) -> JsonValue:
    """Input of a tool span as arguments; smolagents writes {"args": [], "kwargs": {...}}."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and isinstance(value.get("kwargs"), dict) and not value.get("args"):
        return value["kwargs"]
    return value


def _agent_name(span: Span) -> str:
    node = span.attributes.get("graph.node.id") or span.attributes.get("gen_ai.agent.name")
    return node if isinstance(node, str) else span.name
