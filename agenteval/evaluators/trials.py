"""Trials of agents and findings in traces, as the engine runs them: plan and outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from agenteval.records import FailureStatus, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem
from agenteval.store.experiments import Begun
from agenteval.store.writer import Writes

GRACE = 30.0  # seconds that trials under way get to end after an interrupt

_U = TypeVar("_U")


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """A trial that was done, and what cannot be seen of it.

    `stored`: it is in the store already. `failure` is the status and message of what the
    infrastructure failed where the trial's log does not tell: a judge, beside work that is done.
    """

    trial: Trial
    stored: bool = False
    failure: tuple[FailureStatus, str] | None = None

    @property
    def usage(self) -> Usage:
        """What it took."""
        return self.trial.usage or Usage()

    @property
    def broken(self) -> tuple[str, str] | None:
        """Status and message of what the infrastructure failed: the work, or its judge."""
        if self.failure is None and self.trial.status in INFRASTRUCTURE:
            return self.trial.status, str(self.trial.log.get("message", ""))
        return self.failure

    @property
    def statuses(self) -> tuple[str]:
        """How it is counted. A failure has a colon."""
        if self.trial.status != "done":
            return (self.trial.status,)
        if self.failure is not None:
            return (f"judge {self.failure[0]}",)
        return (self.trial.outcome or "unchecked",)

    async def keep(self, store: Store, beside: Writes = ()) -> None:
        """Store it, and in the same transaction what is `beside` it; returns when it is durable."""
        if not self.stored:
            await Trials(store).write_trial(self.trial, beside)
        elif beside:
            await asyncio.wrap_future(store.submit(beside))


@dataclass(frozen=True)
class TrialPlan(Generic[_U]):
    """What the store lacks of one system's trials under one evaluator; see `experiment.Plan`.

    `keys` are the trials of the units, as (case key, number), `new` those of which nothing is
    stored; `act` does one unit; `lock` is the evaluator whose lock is held meanwhile, where it is
    another. `worked`: some of the plan is stored already.
    """

    evaluator: str
    system: TrialSystem
    cases: Iterable[TrialCase]
    units: Sequence[_U]
    new: Sequence[tuple[str, int]]
    keys: Sequence[tuple[str, int]]
    act: Callable[[_U], Awaitable[TrialOutcome]]
    noun: str = "trial"
    grace: float | None = GRACE
    lock: str | None = None
    worked: bool = False

    def begin(self, store: Store) -> Begun:
        """Make cases and system known, and note that the trials are to be run. Of several plans
        all can be begun before the first is run: whoever reads the store meanwhile knows that
        others are to come. Raises StoreError."""
        tables = Trials(store)
        tables.add_cases(self.evaluator, self.cases)
        begun = tables.begin(self.evaluator, self.system, self.new, lock=self.lock)
        tables.add_system(self.evaluator, self.system)
        return begun

    @property
    def name(self) -> str:
        """Of evaluator and system."""
        return content_hash([self.evaluator, self.system.key])

    def keyed(self) -> Iterator[tuple[str, _U]]:
        """Each unit under the key of its case, and its number."""
        for (case, number), unit in zip(self.keys, self.units, strict=True):
            yield f"{case}/{number}", unit

    async def evaluate(self, unit: _U) -> TrialOutcome:
        """The trial of one unit."""
        return await self.act(unit)
