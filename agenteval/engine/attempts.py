"""Base class for evaluators of agents and traces, which make attempts at cases."""

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
    """Runs a system on each case `trials` times; all cases run once before any is repeated.

    `cases` are by key. Subclasses define how a case is stored (`stored_case`), how an attempt is
    made (`evaluate`) and how many requests it takes (`requests`).
    """

    evaluator: str
    system: TrialSystem
    cases: dict[str, C]
    trials: int

    noun: ClassVar[str] = "trial"
    grace: ClassVar[float | None] = 30.0  # seconds for running attempts after an interrupt
    criteria: ClassVar[tuple[Criterion, ...]] = ()
    measures: ClassVar[tuple[Criterion, ...]] = ()  # criteria of an attempt's results

    @cached_property
    def source(self) -> Source:
        """The evaluator and its system."""
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
        """The key of the source, so that only one process uses a system at a time."""
        return self.source_key

    @abstractmethod
    def stored_case(self, key: str, case: C) -> TrialCase:
        """Return the case as it is stored."""

    @abstractmethod
    def requests(self, unit: Unit[C]) -> Requests:
        """Return how many requests an attempt takes, for the dry run."""

    @abstractmethod
    async def evaluate(self, unit: Unit[C]) -> Outcome:
        """Make one attempt. Failures are outcomes; an exception ends the experiment."""

    def units(self) -> Iterator[Unit[C]]:
        """Yield all cases, `trials` times."""
        for number in range(self.trials):
            for key, case in self.cases.items():
                yield Unit(key, case, repeat=number)

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return one batch, because an attempt is not split."""
        return [tuple(criteria)]

    def is_current(self, unit: Unit[C], check_key: str | None) -> bool:
        """Return True: verdicts by other rules are recomputed when they are read."""
        return True

    def register(self, store: Store) -> list[str]:
        """Store cases, system and measures."""
        tables = Trials(store)
        cases = (self.stored_case(key, case) for key, case in self.cases.items())
        tables.add_cases(self.evaluator, cases)
        tables.add_system(self.evaluator, self.system, self.measures)
        return []

    def failure_log(self, case: C, message: str) -> Record:
        """Return the log of an attempt with an infrastructure failure."""
        return AgentFailure(status="error:infrastructure", message=message)

    def failure(self, unit: Unit[C], message: str, usage: Usage) -> Outcome:
        """Return the outcome of an infrastructure failure; the message names the case."""
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
        """Drop the cases: other processes evaluate units but do not list them."""
        return {**self.__dict__, "cases": {}}
