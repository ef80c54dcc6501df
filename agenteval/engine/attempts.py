"""Shared parts of evaluators of agents and traces: attempts at cases, as run by the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from agenteval.agents import AgentFailure
from agenteval.engine import Outcome, Requests, Unit
from agenteval.engine.measures import failed
from agenteval.records import Criterion, Record, Source, Usage
from agenteval.records.trial import Trial, TrialCase, TrialSystem, source_key
from agenteval.store import Store, Trials

C = TypeVar("C")


@dataclass(frozen=True)
class AttemptEvaluator(ABC, Generic[C]):
    """A system at cases, each `trials` times: every case once before any comes twice.

    `cases` are by key. A subclass says how a case is stored (`stored_case`), how an attempt is made
    (`evaluate`) and how many requests it takes (`requests`).
    """

    evaluator: str
    system: TrialSystem
    cases: dict[str, C]
    trials: int

    noun: ClassVar[str] = "trial"
    grace: ClassVar[float | None] = 30.0  # seconds for running attempts after an interrupt
    criteria: ClassVar[tuple[Criterion, ...]] = ()
    measures: ClassVar[tuple[Criterion, ...]] = ()  # what an attempt has results on

    @cached_property
    def source(self) -> Source:
        """The system under this evaluator."""
        return Source(
            evaluator=self.evaluator,
            version=1,
            model=self.system.name,
            parameters=self.system.parameters,
        )

    @cached_property
    def source_key(self) -> str:
        """Key of evaluator and system."""
        return source_key(self.evaluator, self.system.key)

    @property
    def system_key(self) -> str:
        """Key of the system."""
        return self.system.key

    @property
    def lock(self) -> str:
        """The key of the source: one process works with a system at a time."""
        return self.source_key

    @abstractmethod
    def stored_case(self, key: str, case: C) -> TrialCase:
        """Return the case as the store keeps it."""

    @abstractmethod
    def requests(self, unit: Unit[C]) -> Requests:
        """Return how many requests an attempt takes, for the dry run."""

    @abstractmethod
    async def evaluate(self, unit: Unit[C]) -> Outcome:
        """Make one attempt. Failures are outcomes; what is raised ends the experiment."""

    def units(self) -> Iterator[Unit[C]]:
        """Yield every case, `trials` times."""
        for number in range(self.trials):
            for key, case in self.cases.items():
                yield Unit(key, case, repeat=number)

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """An attempt is one piece."""
        return [tuple(criteria)]

    def is_current(self, unit: Unit[C], check_key: str | None) -> bool:
        """Verdicts by other rules are made again when they are read."""
        return True

    def register(self, store: Store) -> list[str]:
        """Store cases, system and measures."""
        tables = Trials(store)
        cases = (self.stored_case(key, case) for key, case in self.cases.items())
        tables.add_cases(self.evaluator, cases)
        tables.add_system(self.evaluator, self.system, self.measures)
        return []

    def failure_log(self, case: C, message: str) -> Record:
        """Return the log of an attempt that the infrastructure failed."""
        return AgentFailure(status="error:infrastructure", message=message)

    def failure(self, unit: Unit[C], message: str, usage: Usage) -> Outcome:
        """Return the outcome of an attempt that the infrastructure failed; it names the case."""
        case = self.stored_case(unit.key, unit.content)
        log = self.failure_log(unit.content, f"{case.id}: {message}")
        trial = Trial(
            evaluator=self.evaluator,
            system_key=self.system.key,
            case_key=unit.key,
            trial=unit.repeat,
            case_id=case.id,
            status="error:infrastructure",
            log=log.model_dump(mode="json"),
            usage=usage,
        )
        return Outcome(failed(trial, self.measures, "error:infrastructure", message), trial)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cases: another process evaluates units and does not list them."""
        return {**self.__dict__, "cases": {}}
