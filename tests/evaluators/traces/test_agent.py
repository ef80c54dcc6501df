"""The locator as an AutoGen agent: alone, and in a team of the user's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from agenteval.errors import InputError
from agenteval.evaluators.traces.agent import TraceLocatorAgent, TraceMessage
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.models.wire import Reply, Request
from agenteval.records import Finding, Findings, Run, Usage
from tests.evaluators.traces.locator_world import honest, locator, made, pairs, user_text

RUN, CONDENSED = made(["HTTP 429", "PLANT(Invention) nine birds"])
RULE = Finding(span="span-1", category="Rate Limiting", evidence="HTTP 429", source="detector:429")


def condense(run: Run) -> Condensed:
    assert run == RUN
    return CONDENSED


def trace(hints: Sequence[Finding] = ()) -> StructuredMessage[TraceMessage]:
    content = TraceMessage(run=RUN, hints=list(hints))
    return StructuredMessage[TraceMessage](content=content, source="user")


def counted(request: Request) -> Reply:
    return Reply(
        text=honest(request), usage=Usage(requests=1, prompt_tokens=70, completion_tokens=9)
    )


async def test_it_answers_a_trace_with_findings() -> None:
    judge, transport = locator(counted)
    agent = TraceLocatorAgent("locator", judge, condense=condense, detect=lambda run: (RULE,))
    response = await agent.on_messages([trace()], CancellationToken())
    message = response.chat_message
    assert isinstance(message, StructuredMessage)
    assert isinstance(message.content, Findings)
    assert pairs(message.content.findings) == [
        ("span-1", "Rate Limiting"),
        ("span-2", "Invention"),
    ]
    assert message.models_usage is not None
    assert (message.models_usage.prompt_tokens, message.models_usage.completion_tokens) == (70, 9)
    assert "Rate Limiting: HTTP 429" in user_text(transport.requests[0])


async def test_without_a_trace_it_says_so_and_a_reset_forgets() -> None:
    judge, _ = locator(honest)
    agent = TraceLocatorAgent("locator", judge, condense=condense)
    text = TextMessage(content="{}", source="user")
    with pytest.raises(InputError, match="trace"):
        await agent.on_messages([text], CancellationToken())
    await agent.on_messages([trace()], CancellationToken())
    await agent.on_messages([text], CancellationToken())  # the trace is still known
    await agent.on_reset(CancellationToken())
    with pytest.raises(InputError):
        await agent.on_messages([text], CancellationToken())


class Reporter(BaseChatAgent):
    """Somebody else's agent: says in words what the locator found."""

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        found = [m.content for m in messages if isinstance(m, StructuredMessage)]
        findings = next(c for c in found if isinstance(c, Findings))
        words = json.dumps([f.category for f in findings.findings])
        return Response(chat_message=TextMessage(content=words, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Nothing to forget."""


async def test_in_a_team_of_the_users() -> None:
    judge, _ = locator(honest)
    team = RoundRobinGroupChat(
        [TraceLocatorAgent("locator", judge, condense=condense), Reporter("reporter", "Reports.")],
        max_turns=2,
        custom_message_types=[StructuredMessage[TraceMessage], StructuredMessage[Findings]],
    )
    result = await team.run(task=trace([RULE]))
    last = result.messages[-1]
    assert isinstance(last, TextMessage)
    assert json.loads(last.content) == ["Rate Limiting", "Invention"]


async def test_cancelling_ends_it() -> None:
    judge, transport = locator(honest)
    started = asyncio.Event()

    async def never(request: Request) -> Reply:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    transport.send = never  # type: ignore[method-assign]
    token = CancellationToken()
    agent = TraceLocatorAgent("locator", judge, condense=condense)
    work = asyncio.ensure_future(agent.on_messages([trace()], token))
    await started.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
