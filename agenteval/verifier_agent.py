"""The verifier as an AutoGen AgentChat agent: criteria in, those that can be kept out.

Imports AutoGen, so nothing else may import this module at import time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, StructuredMessage
from autogen_core import CancellationToken
from pydantic import BaseModel, ConfigDict

from agenteval.errors import InputError, ModelError
from agenteval.evaluators.utility.agents import CriteriaMessage
from agenteval.evaluators.utility.plan import Item
from agenteval.evaluators.utility.quantifier import Quantifier
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.experiment import Experiment
from agenteval.readers import make_view
from agenteval.records import Criterion, Run
from agenteval.records.verification import VerifiedSet
from agenteval.store import Store
from agenteval.verification import (
    DEFAULT_OPERATORS,
    Material,
    make_copies,
    plan_verification,
    verify_stored,
)


class VerifiedMessage(BaseModel):
    """What the verifier says: the criteria to keep, and the verdict on every one with reasons."""

    model_config = ConfigDict(extra="forbid")

    task: str
    kept: list[Criterion]
    result: VerifiedSet


@dataclass(frozen=True)
class VerifierSettings:
    """How runs are perturbed and judged."""

    operators: tuple[str, ...] = DEFAULT_OPERATORS
    share: float = 0.25
    repeats: int = 2
    seed: int = 0
    workers: int = 8
    options: VerifyOptions = field(default_factory=VerifyOptions)


class VerifierAgent(BaseChatAgent):
    """Answers a message with criteria with `StructuredMessage[VerifiedMessage]`.

    Judges `runs` and perturbed copies of them on the criteria that came last, by `quantifier`,
    into `store`; what is stored is not asked again. Raises InputError when no criteria came, and
    ModelError when the judging had to stop before its end.
    """

    def __init__(
        self,
        name: str,
        quantifier: Quantifier,
        runs: Sequence[Run],
        store: Store,
        settings: VerifierSettings | None = None,
    ) -> None:
        super().__init__(name, "Says which criteria can be kept, and whether to trust the judge.")
        self._quantifier = quantifier
        self._items: tuple[Item, ...] = tuple((run, make_view(run)) for run in runs)
        self._store = store
        self._settings = settings or VerifierSettings()

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """StructuredMessage[VerifiedMessage]."""
        return (StructuredMessage[VerifiedMessage],)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """The verdicts on the newest criteria."""
        given = next((c for m in reversed(messages) if (c := _criteria_in(m)) is not None), None)
        if given is None:
            raise InputError(f"{self.name} needs a message with criteria to verify")
        work = asyncio.ensure_future(self.verify(given.criteria))
        cancellation_token.link_future(work)
        result = await work
        keep = {v.criterion_id for v in result.criteria if v.verdict == "keep"}
        content = VerifiedMessage(
            task=given.task, kept=[c for c in given.criteria if c.id in keep], result=result
        )
        message = StructuredMessage[VerifiedMessage](content=content, source=self.name)
        return Response(chat_message=message)

    async def verify(self, criteria: Sequence[Criterion]) -> VerifiedSet:
        """Verdicts on `criteria`; see the class for what it raises."""
        how = self._settings
        copies = make_copies(self._items, how.operators, share=how.share, seed=how.seed)
        material = Material(self._items, tuple(copies), tuple(criteria), how.repeats)
        plan = plan_verification(self._quantifier, material, self._store)
        ended = await Experiment(plan, self._store, workers=how.workers).run()
        if ended.stopped:
            raise ModelError(f"{self.name}: {ended.stopped}")
        return verify_stored(self._store, self._quantifier.source.sha256, material, how.options)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Nothing is remembered but what the store holds."""


def _criteria_in(message: BaseChatMessage) -> CriteriaMessage | None:
    content = message.content if isinstance(message, StructuredMessage) else None
    return content if isinstance(content, CriteriaMessage) else None
