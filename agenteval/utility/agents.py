"""Critic, sub-critic, quantifier and verifier as AutoGen AgentChat agents, for users' own teams.

Thin wrappers of `Critic`, `SubCritic`, `Quantifier` and `verify`: the agents add only the protocol.
This module imports AutoGen, so no other module may import it at import time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage
from pydantic import BaseModel, ConfigDict, Field

from agenteval.engine import Experiment
from agenteval.engine.judging import JudgeUnit, RunJudge, judge
from agenteval.errors import InputError, ModelError
from agenteval.models.client import Client
from agenteval.readers import make_view
from agenteval.records import Criterion, Failure, Run, Score, Task, Usage
from agenteval.records.verification import JudgeVerdict, Verification
from agenteval.store import Store
from agenteval.utility.critic import Critic, Proposal, SubCritic
from agenteval.utility.perturbed_runs import DEFAULT_OPERATORS, VerificationData, make_copies
from agenteval.utility.quantifier import Quantifier, QuantifierOptions
from agenteval.utility.verify import VerifyOptions, verify_table


class CriteriaMessage(BaseModel):
    """Criteria as one agent hands them to the next; `problems` has one line each."""

    model_config = ConfigDict(extra="forbid")

    task: str
    seed: int
    criteria: list[Criterion] = Field(min_length=1)
    problems: list[str] = []


class ScoresMessage(BaseModel):
    """The quantifier's results on one run: a Score or a Failure for each criterion."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    scores: list[Score] = []
    failures: list[Failure] = []


class VerdictsMessage(BaseModel):
    """Verdicts on the judge and on every criterion. `retained` has the criteria with the verdict
    "keep"."""

    model_config = ConfigDict(extra="forbid")

    judge: JudgeVerdict
    verdicts: list[Verification]
    retained: list[Criterion] = []

    @property
    def trusted(self) -> bool:
        """Whether the judge is trustworthy, with limits or without."""
        return self.judge.trusted


class _Agent(BaseChatAgent):
    """Answers with `StructuredMessage` of one kind of content.

    It counts its answers and remembers text messages and the last criteria until the next reset.
    """

    def __init__(self, name: str, description: str, kind: type[BaseModel]) -> None:
        super().__init__(name, description)
        self._kind: type[Any] = StructuredMessage[kind]  # type: ignore[valid-type]
        self._forget()

    def _forget(self) -> None:
        self._turn = 0
        self._texts: list[str] = []
        self._received: CriteriaMessage | None = None

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The one kind of message."""
        return (self._kind,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Answer the messages; cancelling the token cancels the request to the model."""
        texts = [m.content for m in messages if isinstance(m, TextMessage) and m.content.strip()]
        self._texts += texts
        for message in messages:
            content = message.content if isinstance(message, StructuredMessage) else None
            if isinstance(content, CriteriaMessage):
                self._received = content
        answer = asyncio.ensure_future(self._answer(texts))
        cancellation_token.link_future(answer)
        content, usage = await answer
        self._turn += 1
        tokens = RequestUsage(usage.prompt_tokens or 0, usage.completion_tokens or 0)
        message = self._kind(content=content, source=self.name, models_usage=tokens)
        return Response(chat_message=message)

    async def _answer(self, texts: Sequence[str]) -> tuple[BaseModel, Usage]:
        """The content of the answer to the text messages of this turn."""
        raise NotImplementedError

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget all messages and start again with the first turn."""
        self._forget()


class CriticAgent(_Agent):
    """Agent that proposes criteria and answers with `StructuredMessage[CriteriaMessage]`.

    Text messages are additional instructions; all since the last reset are used. Each turn is a new
    sample, with the seed `seed` plus the number of turns before it. Raises what `Critic.propose`
    raises.
    """

    def __init__(self, name: str, critic: Critic, *, seed: int = 0) -> None:
        super().__init__(name, "Proposes criteria for evaluating a task.", CriteriaMessage)
        self._critic = critic
        self._seed = seed

    async def _answer(self, texts: Sequence[str]) -> tuple[CriteriaMessage, Usage]:
        seed, instructions = self._seed + self._turn, "\n".join(self._texts)
        proposal = await self._critic.propose(seed, instructions=instructions)
        return _message(self._critic.task.name, proposal), proposal.usage


class SubCriticAgent(_Agent):
    """Divides the last criteria that it received; answers as `CriticAgent`.

    Text messages are additional instructions. Raises InputError when it received no criteria, and
    what `SubCritic.divide` raises.
    """

    def __init__(self, name: str, subcritic: SubCritic) -> None:
        super().__init__(name, "Divides criteria into sub-criteria.", CriteriaMessage)
        self._subcritic = subcritic

    async def _answer(self, texts: Sequence[str]) -> tuple[CriteriaMessage, Usage]:
        received = self._received
        if received is None:
            raise InputError(f"{self.name} needs a message with criteria to divide")
        division = await self._subcritic.divide(
            received.criteria, received.seed, instructions="\n".join(self._texts)
        )
        return _message(received.task, division, received.problems), division.usage


class QuantifierAgent(_Agent):
    """Agent that scores the work in the newest text message and answers with
    `StructuredMessage[ScoresMessage]`.

    A `CriteriaMessage` sets the criteria. The work is judged as the answer to `problem`; use
    `score` for complete runs with their trajectory. Failed judgements are returned as failures.
    Raises InputError without criteria or without work.
    """

    def __init__(
        self,
        name: str,
        quantifier: Quantifier,
        *,
        criteria: Sequence[Criterion] = (),
        problem: str = "",
    ) -> None:
        super().__init__(name, "Scores work on a set of criteria.", ScoresMessage)
        self._quantifier = quantifier
        self._criteria = tuple(criteria)
        self._problem = problem

    async def _answer(self, texts: Sequence[str]) -> tuple[ScoresMessage, Usage]:
        if not texts:
            raise InputError(f"{self.name} needs a text message with the work to judge")
        task, name = self._quantifier.task.name, f"{self.name}-{self._turn}"
        return await self._score(Run(id=name, task=task, input=self._problem, output=texts[-1]))

    async def score(self, run: Run, *, repeat: int = 0) -> ScoresMessage:
        """Return scores and failures of a run on the agent's criteria."""
        content, _ = await self._score(run, repeat)
        return content

    async def _score(self, run: Run, repeat: int = 0) -> tuple[ScoresMessage, Usage]:
        criteria = self._received.criteria if self._received else self._criteria
        if not criteria:
            raise InputError(f"{self.name} has no criteria to score by")
        content, usage, view = ScoresMessage(run_id=run.id), Usage(), make_view(run)
        for batch in self._quantifier.batches(criteria):
            outcome = await judge(self._quantifier, JudgeUnit(run, view, batch, repeat))
            content.scores += [r for r in outcome.results if isinstance(r, Score)]
            content.failures += [r for r in outcome.results if isinstance(r, Failure)]
            usage += outcome.usage
        return content, usage


class VerifierAgent(_Agent):
    """Agent that verifies criteria and judge on some runs and answers with
    `StructuredMessage[VerdictsMessage]`.

    `judge` (a Quantifier, for example) scores every run and perturbed copies of it `repeats` times.
    A `CriteriaMessage` sets the criteria; other messages are ignored. Ratings are kept in `store`,
    or without one in a temporary store. Raises InputError without criteria or without a run that
    has an answer, and ModelError when judging stops early.
    """

    def __init__(  # noqa: PLR0913  flat, as `verify`
        self,
        name: str,
        judge: RunJudge,
        runs: Sequence[Run],
        *,
        criteria: Sequence[Criterion] = (),
        perturbations: Sequence[str] = DEFAULT_OPERATORS,
        share: float = 0.25,
        repeats: int = 2,
        options: VerifyOptions | None = None,
        store: Store | None = None,
    ) -> None:
        description = "Says which criteria can be kept and whether the judge is trusted."
        super().__init__(name, description, VerdictsMessage)
        items = tuple((run, make_view(run)) for run in runs if run.failure is None)
        if not items:
            raise InputError(f"{name} needs runs with an answer to judge")
        copies = make_copies(items, perturbations, share=share, seed=judge.source.seed)
        self._data = VerificationData(items, tuple(copies), tuple(criteria), repeats)
        self._judge = judge
        self._options = options
        self._store = store

    async def _answer(self, texts: Sequence[str]) -> tuple[VerdictsMessage, Usage]:
        data = self._data
        if self._received is not None:
            data = replace(data, criteria=tuple(self._received.criteria))
        if not data.criteria:
            raise InputError(f"{self.name} needs a message with criteria to verify")
        with TemporaryDirectory() as folder:
            store = self._store or Store(Path(folder) / "verifier.db")
            try:
                ended = await Experiment(data.rated_by(self._judge), store).run()
                if ended.stopped:
                    raise ModelError(f"the judging stopped: {ended.stopped}")
                table = data.ratings(store, self._judge.source.sha256)
            finally:
                if store is not self._store:
                    store.close()
        result = verify_table(table, data.criteria, self._options, copies=data.facts)
        retained = {v.criterion_id for v in result.criteria if v.verdict == "keep"}
        message = VerdictsMessage(
            judge=result.judge,
            verdicts=list(result.criteria),
            retained=[c for c in data.criteria if c.id in retained],
        )
        return message, ended.progress.usage


def critic_team(
    client: Client,
    task: Task,
    *,
    use_examples: bool = False,
    bank: Sequence[Criterion] = (),
    temperature: float | None = 1.0,
    seed: int = 0,
) -> RoundRobinGroupChat:
    """Return a team of critic and sub-critic: each speaks once, the last message has sub-criteria.

    Run it with a text as additional instructions, or with none.
    """
    critic = Critic(client, task, use_examples=use_examples, bank=bank, temperature=temperature)
    subcritic = SubCritic(client, task, temperature=temperature)
    return RoundRobinGroupChat(
        [CriticAgent("critic", critic, seed=seed), SubCriticAgent("subcritic", subcritic)],
        name="critics",
        description="Proposes criteria with sub-criteria.",
        max_turns=2,  # one turn each: the sub-critic is never cut off
        custom_message_types=[StructuredMessage[CriteriaMessage]],
    )


def quantifier_agent(
    client: Client,
    task: Task,
    criteria: Sequence[Criterion] = (),
    options: QuantifierOptions | None = None,
) -> QuantifierAgent:
    """Return a QuantifierAgent named "quantifier" over a client."""
    return QuantifierAgent("quantifier", Quantifier(client, task, options), criteria=criteria)


def _message(task: str, proposal: Proposal, problems: Sequence[str] = ()) -> CriteriaMessage:
    return CriteriaMessage(
        task=task,
        seed=proposal.seed,
        criteria=list(proposal.criteria),
        problems=[*problems, *proposal.problems],
    )
