"""The locator as an AutoGen AgentChat agent, for users' own teams.

Thin over `Locator`: the agent adds nothing but the protocol. Imports AutoGen, so nothing else may
import this module at import time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage
from pydantic import BaseModel, ConfigDict

from agenteval.errors import InputError
from agenteval.evaluators.traces.locator import Locator
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.records import Finding, Findings, Run


class TraceMessage(BaseModel):
    """A run whose trace is to be read, and what is known to be wrong with it."""

    model_config = ConfigDict(extra="forbid")

    run: Run
    hints: list[Finding] = []


class TraceLocatorAgent(BaseChatAgent):
    """Finds the errors in the newest trace; answers with `StructuredMessage[Findings]`.

    A `TraceMessage` brings the trace; it is kept until a newer one comes or the agent is reset.
    `condense` makes of it what the judge reads, `detect` adds the findings of exact rules. Raises
    InputError without a trace, Unauthorized for a refused key, and what `condense` and `detect`
    raise; whatever else goes wrong is told in the Findings. In a team, `custom_message_types`
    needs `StructuredMessage[TraceMessage]` and `StructuredMessage[Findings]`.
    """

    def __init__(
        self,
        name: str,
        locator: Locator,
        *,
        condense: Callable[[Run], Condensed],
        detect: Callable[[Run], Sequence[Finding]] | None = None,
    ) -> None:
        super().__init__(name, "Finds and locates errors in the trace of an agent.")
        self._locator = locator
        self._condense = condense
        self._detect = detect
        self._given: TraceMessage | None = None

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """StructuredMessage[Findings]."""
        return (StructuredMessage[Findings],)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """What was found in the newest trace."""
        self._given = _last_trace(messages) or self._given
        if self._given is None:
            raise InputError(f"{self.name} needs a message with a trace to read")
        run, hints = self._given.run, list(self._given.hints)
        if self._detect is not None:
            hints += self._detect(run)
        work = asyncio.ensure_future(self._locator.examine(run, self._condense(run), hints))
        cancellation_token.link_future(work)
        located = await work
        tokens = RequestUsage(
            prompt_tokens=located.usage.prompt_tokens or 0,
            completion_tokens=located.usage.completion_tokens or 0,
        )
        message = StructuredMessage[Findings](
            content=located.findings, source=self.name, models_usage=tokens
        )
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget the trace."""
        self._given = None


def _last_trace(messages: Sequence[BaseChatMessage]) -> TraceMessage | None:
    for message in reversed(messages):
        content = message.content if isinstance(message, StructuredMessage) else None
        if isinstance(content, TraceMessage):
            return content
    return None
