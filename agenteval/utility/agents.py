"""Critic, sub-critic, quantifier and verifier as AutoGen AgentChat agents, for users' own teams.

Thin wrappers of `Critic`, `SubCritic`, `Quantifier` and `verify` that add only the protocol. This
module imports AutoGen, so other modules must import it lazily.
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
    """Criteria passed from one agent to the next; `problems` has one line per problem."""

    model_config = ConfigDict(extra="forbid")

    task: str
    seed: int
    criteria: list[Criterion] = Field(min_length=1)
    problems: list[str] = []


class ScoresMessage(BaseModel):
    """The quantifier's results for one run: a Score or a Failure per criterion."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    scores: list[Score] = []
    failures: list[Failure] = []


class VerdictsMessage(BaseModel):
    """Verdicts on the judge and on each criterion. `retained` has the criteria with the verdict
    "keep"."""

    model_config = ConfigDict(extra="forbid")

    judge: JudgeVerdict
    verdicts: list[Verification]
    retained: list[Criterion] = []

    @property
    def trusted(self) -> bool:
        """Whether the judge is trusted, with or without limits."""
        return self.judge.trusted


class _Agent(BaseChatAgent):
    """Answers with a `StructuredMessage` of one content type.

    It counts its answers and remembers text messages and the latest criteria until it is reset.
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
        """The message type of the answers."""
        return (self._kind,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Answer the messages; cancelling the token cancels the model request."""
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
        """Return the content of the answer to this turn's text messages, and the usage."""
        raise NotImplementedError

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget all messages and restart with the first turn."""
        self._forget()


class CriticAgent(_Agent):
    """Agent that proposes criteria and answers with `StructuredMessage[CriteriaMessage]`.

    All text messages since the last reset are additional instructions. Each turn is a new sample:
    its seed is `seed` plus the number of earlier turns. Raises what `Critic.propose` raises.
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
    """Agent that divides the latest criteria and answers with `StructuredMessage[CriteriaMessage]`.

    Text messages are additional instructions. Raises InputError if it has received no criteria, and
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
        """Score a run on the agent's criteria; failed judgements are in `failures`."""
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

    `judge` (for example a Quantifier) scores every run and its perturbed copies `repeats` times. A
    `CriteriaMessage` sets the criteria; other messages are ignored. Ratings are kept in `store`, or
    by default in a temporary store. Raises InputError if there are no criteria or no runs with an
    answer, and ModelError if judging stops early.
    """

    def __init__(  # noqa: PLR0913  flat, like `verify`
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
    """Return a team of critic and sub-critic with one turn each; the last message has sub-criteria.

    The task passed to the team is optional and serves as additional instructions.
    """
    critic = Critic(client, task, use_examples=use_examples, bank=bank, temperature=temperature)
    subcritic = SubCritic(client, task, temperature=temperature)
    return RoundRobinGroupChat(
        [CriticAgent("critic", critic, seed=seed), SubCriticAgent("subcritic", subcritic)],
        name="critics",
        description="Proposes criteria with sub-criteria.",
        max_turns=2,  # one turn each, so that the sub-critic always speaks
        custom_message_types=[StructuredMessage[CriteriaMessage]],
    )


def quantifier_agent(
    client: Client,
    task: Task,
    criteria: Sequence[Criterion] = (),
    options: QuantifierOptions | None = None,
) -> QuantifierAgent:
    """Return a QuantifierAgent named "quantifier" that uses the client."""
    return QuantifierAgent("quantifier", Quantifier(client, task, options), criteria=criteria)


def _message(task: str, proposal: Proposal, problems: Sequence[str] = ()) -> CriteriaMessage:
    return CriteriaMessage(
        task=task,
        seed=proposal.seed,
        criteria=list(proposal.criteria),
        problems=[*problems, *proposal.problems],
    )
