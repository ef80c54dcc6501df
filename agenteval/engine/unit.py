"""Units of an experiment, their outcomes, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from agenteval.records import CallRecord, Criterion, Failure, FailureStatus, Result, Source, Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial

if TYPE_CHECKING:
    from agenteval.store import Store

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """Minimum and maximum number of requests, and the prompt tokens of the minimum, if known."""

    least: int
    most: int
    prompt: int | None = None


Requests = Mapping[str, RequestBounds]  # by party, such as the judge or a simulated user


@dataclass(frozen=True, slots=True)
class Unit(Generic[T]):
    """One thing to evaluate: an item in one variant, for one repeat.

    `key` is the content hash of the item, `content` the item itself. `criteria` are rated together
    in one call; an agent's attempt has none, because it is checked as a whole. `attempt` counts
    earlier tries with unusable content, so that a new try is not answered from the cache. `stored`
    means that the attempt is stored and only lacks a verdict by the current judges.
    """

    key: str
    content: T
    criteria: tuple[Criterion, ...] = ()
    repeat: int = 0
    variant: str = "original"
    attempt: int = 0
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one unit: its results, and the record of a judge's call or a Trial.

    An attempt has one result per measure of its evaluator. `verdict_only` means that the attempt is
    already stored and only its verdict is written. `failure` is the status and message of an
    infrastructure failure outside the record, such as a judge's after a successful attempt.
    """

    results: tuple[Result, ...]
    call: CallRecord | Trial
    attempt: int = 0
    verdict_only: bool = False
    failure: tuple[FailureStatus, str] | None = None

    @property
    def usage(self) -> Usage:
        """Requests, tokens and cost of the unit."""
        return self.call.usage or Usage()

    @property
    def broken(self) -> tuple[str, str] | None:
        """Status and message of an infrastructure failure, else None."""
        if self.failure is not None:
            return self.failure
        if isinstance(self.call, Trial):
            if self.call.status in INFRASTRUCTURE:
                return self.call.status, str(self.call.log.get("message", ""))
            return None
        first = next((r for r in self.results if isinstance(r, Failure)), None)
        if first is None or not first.retry_on_resume:
            return None
        return first.status, first.message

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses for counting: for a judge, `scored` or the Failure's status for each result; for
        an attempt, the verdict or the failure's status. Only failures contain a colon."""
        if not isinstance(self.call, Trial):
            return tuple(r.status if isinstance(r, Failure) else "scored" for r in self.results)
        if self.call.status != "done":
            return (self.call.status,)
        if self.failure is not None:
            return (f"judge {self.failure[0]}",)
        return (self.call.outcome or "unchecked",)


Evaluate = Callable[[Unit[Any]], Awaitable[Outcome]]


@dataclass(slots=True)
class Progress:
    """Progress of a running experiment: units, and results by status (see `Outcome`)."""

    total: int
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    @property
    def failures(self) -> Counter[str]:
        """Failures by status."""
        return Counter({status: n for status, n in self.outcomes.items() if ":" in status})

    @property
    def scored(self) -> int:
        """Number of cells or attempts with a result."""
        return self.outcomes.total() - self.failures.total()


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """Result of `Experiment.run`. `stopped` is the reason why units were left out or all
    failed."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


class Evaluator(Protocol[T]):
    """Turns units into results: a judge, an agent under test, or an error finder.

    `source_key` is the key of its results in the store, `lock` the lock held while it runs.
    `system_key` is the key of an agent or finder, "" for a judge. `noun` is the name of a unit in
    messages. `grace` is the maximum time for running units after an interrupt, in seconds.
    """

    @property
    def source(self) -> Source:
        """Everything that can change an answer."""
        ...

    @property
    def source_key(self) -> str: ...
    @property
    def system_key(self) -> str: ...
    @property
    def lock(self) -> str: ...
    @property
    def noun(self) -> str: ...
    @property
    def grace(self) -> float | None: ...
    @property
    def criteria(self) -> Sequence[Criterion]:
        """The criteria of all units; none for attempts, which are checked instead."""
        ...

    def units(self) -> Iterable[Unit[T]]:
        """Return all units, stored or not, in evaluation order."""
        ...

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the criteria of each call."""
        ...

    def is_current(self, unit: Unit[T], check_key: str | None) -> bool:
        """Return whether a stored verdict by the checker `check_key` is still valid."""
        ...

    def register(self, store: Store) -> list[str]:
        """Store items, criteria and source durably; returns lines to report."""
        ...

    def requests(self, unit: Unit[T]) -> Requests:
        """Return how many requests a unit takes, for the dry run."""
        ...

    @property
    def sends_by_client(self) -> bool:
        """Whether all requests go through our client, so that a dry run can evaluate units without
        sending anything or running user code."""
        ...

    def failure(self, unit: Unit[T], message: str, usage: Usage) -> Outcome:
        """Return the outcome of an infrastructure failure (`error:infrastructure`)."""
        ...

    async def evaluate(self, unit: Unit[T]) -> Outcome:
        """Evaluate one unit. Failures are outcomes; an exception ends the experiment."""
        ...
