"""Critic, sub-critic and quantifier as AutoGen AgentChat agents, for users' own teams.

Thin over `Critic`, `SubCritic` and `Quantifier`: the agents add nothing but the protocol. Imports
AutoGen, so nothing else may import this module at import time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage
from pydantic import BaseModel, ConfigDict, Field

from agenteval.engine.judging import JudgeUnit, judge
from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.readers import make_view
from agenteval.records import Criterion, Failure, Run, Score, Task, Usage
from agenteval.utility.critic import Critic, SubCritic
from agenteval.utility.quantifier import Quantifier, QuantifierOptions

_T = TypeVar("_T")


class CriteriaMessage(BaseModel):
    """Criteria as one agent hands them to the next; `problems` has one line each."""

    model_config = ConfigDict(extra="forbid")

    task: str
    seed: int
    criteria: list[Criterion] = Field(min_length=1)
    problems: list[str] = []


class ScoresMessage(BaseModel):
    """What the quantifier says of one run: a Score or a Failure for each criterion."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    scores: list[Score] = []
    failures: list[Failure] = []


class _Agent(BaseChatAgent):
    """An agent that answers with `StructuredMessage` of one kind of content."""

    def __init__(self, name: str, description: str, kind: type[BaseModel]) -> None:
        super().__init__(name, description)
        self._kind: type[Any] = StructuredMessage[kind]  # type: ignore[valid-type]

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The one kind."""
        return (self._kind,)

    def _response(self, content: BaseModel, usage: Usage) -> Response:
        tokens = RequestUsage(
            prompt_tokens=usage.prompt_tokens or 0, completion_tokens=usage.completion_tokens or 0
        )
        message = self._kind(content=content, source=self.name, models_usage=tokens)
        return Response(chat_message=message)


class CriticAgent(_Agent):
    """Answers with `StructuredMessage[CriteriaMessage]`.

    Text messages are additional instructions; all since the last reset count. Each turn is a new
    sample: its seed is `seed` plus the number of turns before it. Raises what `Critic.propose`
    raises.
    """

    def __init__(self, name: str, critic: Critic, *, seed: int = 0) -> None:
        super().__init__(name, "Proposes criteria to evaluate a task by.", CriteriaMessage)
        self._critic = critic
        self._seed = seed
        self._turn = 0
        self._instructions: list[str] = []

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """One proposal."""
        self._instructions += _texts(messages)
        seed = self._seed + self._turn
        proposing = self._critic.propose(seed, instructions="\n".join(self._instructions))
        proposal = await _cancellable(proposing, cancellation_token)
        self._turn += 1
        content = CriteriaMessage(
            task=self._critic.task.name,
            seed=seed,
            criteria=list(proposal.criteria),
            problems=list(proposal.problems),
        )
        return self._response(content, proposal.usage)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Back to the first seed, without instructions."""
        self._turn = 0
        self._instructions = []


class SubCriticAgent(_Agent):
    """Divides the criteria that came last; answers with `StructuredMessage[CriteriaMessage]`.

    Text messages are additional instructions. Raises InputError when no criteria came yet, and
    what `SubCritic.divide` raises.
    """

    def __init__(self, name: str, subcritic: SubCritic) -> None:
        super().__init__(name, "Divides criteria into sub-criteria.", CriteriaMessage)
        self._subcritic = subcritic
        self._instructions: list[str] = []
        self._last: CriteriaMessage | None = None

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """The criteria with their sub-criteria."""
        self._instructions += _texts(messages)
        self._last = _last_criteria(messages) or self._last
        if self._last is None:
            raise InputError(f"{self.name} needs a message with criteria to divide")
        given = self._last
        dividing = self._subcritic.divide(
            given.criteria, given.seed, instructions="\n".join(self._instructions)
        )
        division = await _cancellable(dividing, cancellation_token)
        content = CriteriaMessage(
            task=given.task,
            seed=given.seed,
            criteria=list(division.criteria),
            problems=[*given.problems, *division.problems],
        )
        return self._response(content, division.usage)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget instructions and criteria."""
        self._instructions = []
        self._last = None


class QuantifierAgent(_Agent):
    """Scores what it is given; answers with `StructuredMessage[ScoresMessage]`.

    A `CriteriaMessage` sets the criteria. The newest text message is the work to be judged, as
    the answer to `problem`; for whole runs with their trajectory use `score`. What cannot be
    judged comes back as failures. Raises InputError without criteria or without work.
    """

    def __init__(
        self,
        name: str,
        quantifier: Quantifier,
        *,
        criteria: Sequence[Criterion] = (),
        problem: str = "",
    ) -> None:
        super().__init__(name, "Scores work on given criteria.", ScoresMessage)
        self._quantifier = quantifier
        self._given = tuple(criteria)
        self._criteria = self._given
        self._problem = problem
        self._judged = 0

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Scores and failures of the newest text, in the order of the criteria."""
        given = _last_criteria(messages)
        if given is not None:
            self._criteria = tuple(given.criteria)
        texts = _texts(messages)
        if not texts:
            raise InputError(f"{self.name} needs a text message with the work to judge")
        run = Run(
            id=f"{self.name}-{self._judged}",
            task=self._quantifier.task.name,
            input=self._problem,
            output=texts[-1],
        )
        content, usage = await _cancellable(self._score(run), cancellation_token)
        self._judged += 1
        return self._response(content, usage)

    async def score(self, run: Run, *, repeat: int = 0) -> ScoresMessage:
        """Scores and failures of a run on the agent's criteria."""
        content, _ = await self._score(run, repeat)
        return content

    async def _score(self, run: Run, repeat: int = 0) -> tuple[ScoresMessage, Usage]:
        if not self._criteria:
            raise InputError(f"{self.name} has no criteria to score by")
        content, usage, view = ScoresMessage(run_id=run.id), Usage(), make_view(run)
        for batch in self._quantifier.batches(self._criteria):
            outcome = await judge(self._quantifier, JudgeUnit(run, view, batch, repeat))
            content.scores += [r for r in outcome.results if isinstance(r, Score)]
            content.failures += [r for r in outcome.results if isinstance(r, Failure)]
            usage += outcome.usage
        return content, usage

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Back to the criteria the agent was made with."""
        self._criteria = self._given
        self._judged = 0


def critic_team(
    client: Client,
    task: Task,
    *,
    use_examples: bool = False,
    bank: Sequence[Criterion] = (),
    temperature: float | None = 1.0,
    seed: int = 0,
) -> RoundRobinGroupChat:
    """A team of critic and sub-critic: each speaks once, and the last message has sub-criteria.

    Run it with a text as additional instructions, or with none.
    """
    critic = Critic(client, task, use_examples=use_examples, bank=bank, temperature=temperature)
    members = [
        CriticAgent("critic", critic, seed=seed),
        SubCriticAgent("subcritic", SubCritic(client, task, temperature=temperature)),
    ]
    return RoundRobinGroupChat(
        list(members),
        name="critics",
        description="Proposes criteria with sub-criteria.",
        max_turns=len(members),  # one turn each: the sub-critic is never cut off
        custom_message_types=[StructuredMessage[CriteriaMessage]],
    )


def quantifier_agent(
    client: Client,
    task: Task,
    criteria: Sequence[Criterion] = (),
    options: QuantifierOptions | None = None,
) -> QuantifierAgent:
    """A QuantifierAgent named "quantifier" over a client."""
    return QuantifierAgent("quantifier", Quantifier(client, task, options), criteria=criteria)


async def _cancellable(work: Awaitable[_T], token: CancellationToken) -> _T:
    """The result of the work, which ends when the token is cancelled."""
    future = asyncio.ensure_future(work)
    token.link_future(future)
    return await future


def _texts(messages: Sequence[BaseChatMessage]) -> list[str]:
    return [m.content for m in messages if isinstance(m, TextMessage) and m.content.strip()]


def _last_criteria(messages: Sequence[BaseChatMessage]) -> CriteriaMessage | None:
    for message in reversed(messages):
        content = message.content if isinstance(message, StructuredMessage) else None
        if isinstance(content, CriteriaMessage):
            return content
    return None
