"""From what the user asked for to a client and a judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agenteval.errors import InputError, ModelUnavailable
from agenteval.evaluators.base import Evaluator
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, make_transport
from agenteval.models.limits import Budget, Limiter, Price
from agenteval.models.replay import FileRecorder
from agenteval.records import Task, Usage
from agenteval.store import Store

NO_MODEL = (
    "no model: install the local one with `pip install 'agenteval[local]'` and "
    "`agenteval models pull`, or name an endpoint with --model PROVIDER:MODEL (or --base-url)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be spent, and how fast."""

    concurrency: int = 8
    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    timeout: float = 120.0

    def budget(self, spent: Usage | None = None) -> Budget:
        """A budget with these caps. Raises InputError for a cap on cost without a price."""
        if self.max_cost is not None and self.price is None:
            raise InputError(
                "a cap on cost needs prices: give --price-in and --price-out per million tokens",
                "--max-cost",
            )
        return Budget(
            max_calls=self.max_calls, max_cost=self.max_cost, price=self.price, spent=spent
        )


def make_client(
    choice: ModelChoice, limits: Limits, store: Store | None, *, record: Path | None = None
) -> Client:
    """A client for a chat model, with the store as its cache."""
    return Client(
        make_transport(choice),
        cache=store,
        budget=limits.budget(),
        limiter=Limiter(limits.concurrency),
        timeout=limits.timeout,
        secret=store.secret if store else b"",
        recorder=FileRecorder(record) if record else None,
    )


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How a judge is asked; see QuantifierOptions."""

    one_per_call: bool = False
    temperature: float | None = 1.0
    max_tokens: int | None = 2048
    seed: int = 0
    reversed_scale: bool = False
    wording: Literal["a", "b"] = "a"
    datamark: bool = False


def chat_judge(client: Client, task: Task, options: JudgeOptions) -> Evaluator:
    """The quantifier over a chat model, behind the rule for degenerate answers."""
    from agenteval.evaluators.utility.guard import Guarded
    from agenteval.evaluators.utility.quantifier import Quantifier, QuantifierOptions

    settings = QuantifierOptions(
        one_per_call=options.one_per_call,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        seed=options.seed,
        reversed_scale=options.reversed_scale,
        wording=options.wording,
        datamark=options.datamark,
    )
    return Guarded(Quantifier(client, task, settings))


def embedded_judge(seed: int) -> Evaluator:
    """The judge that needs no model, behind the same rule."""
    from agenteval.evaluators.utility.embedded import EmbeddedJudge
    from agenteval.evaluators.utility.guard import Guarded

    return Guarded(EmbeddedJudge(seed=seed))


def no_model(error: Exception) -> ModelUnavailable:
    """A missing local part, said with both ways out in one line."""
    return ModelUnavailable(f"{NO_MODEL} ({error})")
