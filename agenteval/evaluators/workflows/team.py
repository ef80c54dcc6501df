"""The agent under test, a simulated user and simulated tools as AutoGen chat agents, and a team.

Imported lazily: it loads autogen-agentchat. User and agent speak in turn; the agent's calls are
answered within its turn, so that calls asked for at once and agents of any framework work. In a
session of ours (`run_session`) no exception goes through AutoGen, which would keep its words and
lose its type: `trouble` takes it, and the turn ends with a StopMessage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import StopMessageTermination
from autogen_agentchat.messages import BaseChatMessage, StopMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.serving import Serving
from agenteval.evaluators.workflows.session import SimulatorMistake
from agenteval.evaluators.workflows.simulators.nouns import DONE, Heard, UserSimulator
from agenteval.records import Message, Usage

Trouble = Callable[[Exception], None]
_T = TypeVar("_T")
_STOPPED = "The conversation is stopped."


class AssistantAgent(BaseChatAgent):
    """The agent under test: answers every text it hears with its reply to the user.

    `serving` keeps the conversation with all calls. A StopMessage ends it: a limit was passed, or
    the agent was stopped within its turn or said nothing. Raises what `Serving.turn` raises.
    """

    def __init__(self, name: str, serving: Serving, *, trouble: Trouble | None = None) -> None:
        super().__init__(name, "Serves the user by a procedure.")
        self.serving = serving
        self._trouble = trouble

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """TextMessage, and StopMessage at the end."""
        return (TextMessage, StopMessage)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """One turn."""
        heard = "\n".join(_texts(messages))

        async def turn() -> BaseChatMessage:
            reply = await self.serving.turn(heard)
            if self.serving.ended is None:
                return TextMessage(content=reply, source=self.name)
            return StopMessage(content=reply or _STOPPED, source=self.name)

        return await _spoken(turn(), self, self._trouble, cancellation_token)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget the conversation; tools with a state keep it."""
        self.serving.reset()


class UserAgent(BaseChatAgent):
    """A simulated user. It hears what others say to it; StopMessage means that it leaves.

    Raises what the simulator raises.
    """

    def __init__(
        self,
        name: str,
        simulator: UserSimulator,
        heard: Heard,
        *,
        trouble: Trouble | None = None,
    ) -> None:
        super().__init__(name, "A user who wants something.")
        self._simulator = simulator
        self._begun = heard
        self._trouble = trouble
        self.messages: list[Message] = list(heard.messages)
        self.mistakes: list[SimulatorMistake] = []
        self.usage = Usage()
        self.done = False

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """TextMessage, and StopMessage at the end."""
        return (TextMessage, StopMessage)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """What the user says next."""
        replies = [text for text in _texts(messages) if text]  # none where it speaks again
        self.messages += [Message(role="assistant", content=text) for text in replies]
        return await _spoken(self._speak(), self, self._trouble, cancellation_token)

    async def _speak(self) -> BaseChatMessage:
        b = self._begun
        heard = Heard(b.profile, b.now, tuple(self.messages), b.seed, b.repeat)
        try:
            said = await self._simulator.speak(heard)
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            self.mistakes += getattr(error, "mistakes", ())
            raise
        self.usage += said.usage
        self.mistakes += said.mistakes
        self.done = said.done
        if said.text != DONE:
            self.messages.append(Message(role="user", content=said.text))
        kind = StopMessage if said.done else TextMessage
        return kind(content=said.text, source=self.name)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """As at the beginning."""
        self.messages = list(self._begun.messages)
        self.mistakes, self.usage, self.done = [], Usage(), False


def session_team(user: UserAgent, agent: AssistantAgent, turns: int) -> RoundRobinGroupChat:
    """User and agent in turn, until one of them stops, or the agent replied `turns` times and the
    user had its last word."""
    return RoundRobinGroupChat(
        [user, agent],
        name="session",
        description="A user and the agent that serves it.",
        termination_condition=StopMessageTermination(),
        max_turns=2 * turns + 1,
    )


async def _spoken(
    work: Awaitable[BaseChatMessage],
    agent: BaseChatAgent,
    trouble: Trouble | None,
    token: CancellationToken,
) -> Response:
    """The message, or a StopMessage where the exception went to `trouble`."""
    try:
        return Response(chat_message=await _cancellable(work, token))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what is no Exception would stop the runtime, which then hangs
        cancelled = isinstance(error, asyncio.CancelledError)
        if trouble is None or (cancelled and not token.is_cancelled() and _given_up()):
            raise
        if isinstance(error, Exception):
            trouble(error)
        elif not (cancelled and token.is_cancelled()):
            trouble(AgentevalError(f"{agent.name} left with {type(error).__name__}"))
    return Response(chat_message=StopMessage(content=_STOPPED, source=agent.name))


def _given_up() -> bool:
    """Whether the task that runs this is to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _cancellable(work: Awaitable[_T], token: CancellationToken) -> _T:
    """The result of the work, which ends when the token is cancelled."""
    future = asyncio.ensure_future(work)
    token.link_future(future)
    return await future


def _texts(messages: Sequence[BaseChatMessage]) -> list[str]:
    return [m.content for m in messages if isinstance(m, TextMessage | StopMessage)]
