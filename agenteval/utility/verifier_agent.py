"""The verifier as an AutoGen AgentChat agent, for teams with critic and quantifier.

Thin over `verify`: it judges runs and perturbed copies and adds nothing but the protocol. Imports
AutoGen, so nothing else may import this module at import time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage
from pydantic import BaseModel, ConfigDict

from agenteval.engine import Experiment
from agenteval.engine.judging import RunJudge
from agenteval.errors import InputError, ModelError
from agenteval.readers import make_view
from agenteval.records import Criterion, Run, Usage
from agenteval.records.verification import JudgeVerdict, Verification
from agenteval.store import Store
from agenteval.utility.agents import CriteriaMessage
from agenteval.utility.perturbed_runs import DEFAULT_OPERATORS, VerificationData, make_copies
from agenteval.utility.verify import VerifyOptions, verify_table


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


class VerifierAgent(BaseChatAgent):
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
        super().__init__(name, "Says which criteria can be kept and whether the judge is trusted.")
        self._judge = judge
        items = tuple((run, make_view(run)) for run in runs if run.failure is None)
        if not items:
            raise InputError(f"{name} needs runs with an answer to judge")
        copies = make_copies(items, perturbations, share=share, seed=judge.source.seed)
        self._initial = self._material = VerificationData(
            items, tuple(copies), tuple(criteria), repeats
        )
        self._options = options
        self._store = store

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Types of messages that this agent sends."""
        return (StructuredMessage[VerdictsMessage],)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Return the verdicts on the newest criteria."""
        for message in messages:
            content = message.content if isinstance(message, StructuredMessage) else None
            if isinstance(content, CriteriaMessage):
                self._material = replace(self._material, criteria=tuple(content.criteria))
        if not self._material.criteria:
            raise InputError(f"{self.name} needs a message with criteria to verify")
        work = asyncio.ensure_future(self._verdicts())
        cancellation_token.link_future(work)
        verdicts, usage = await work
        tokens = RequestUsage(
            prompt_tokens=usage.prompt_tokens or 0, completion_tokens=usage.completion_tokens or 0
        )
        answer = StructuredMessage[VerdictsMessage](
            content=verdicts, source=self.name, models_usage=tokens
        )
        return Response(chat_message=answer)

    async def _verdicts(self) -> tuple[VerdictsMessage, Usage]:
        material, key = self._material, self._judge.source.sha256
        with TemporaryDirectory() as folder:
            store = self._store or Store(Path(folder) / "verifier.db")
            try:
                ended = await Experiment(material.rated_by(self._judge), store).run()
                if ended.stopped:
                    raise ModelError(f"the judging stopped: {ended.stopped}")
                table = material.ratings(store, key)
            finally:
                if store is not self._store:
                    store.close()
        result = verify_table(table, material.criteria, self._options, copies=material.facts)
        retained = {v.criterion_id for v in result.criteria if v.verdict == "keep"}
        message = VerdictsMessage(
            judge=result.judge,
            verdicts=list(result.criteria),
            retained=[c for c in material.criteria if c.id in retained],
        )
        return message, ended.progress.usage

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Return to the criteria that the agent was created with."""
        self._material = self._initial
