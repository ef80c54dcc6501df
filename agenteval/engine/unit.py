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
    """Requests at least and at most, and the tokens of the prompts of the least, if known."""

    least: int
    most: int
    prompt: int | None = None


Requests = Mapping[str, RequestBounds]  # by who is asked, such as the judge or a simulated user


@dataclass(frozen=True, slots=True)
class Unit(Generic[T]):
    """One thing to evaluate: an item in one variant, for one repeat.

    `key` is the content hash of the item, `content` the item itself. `criteria` are rated together
    in one call; an attempt of an agent has none, since it is checked as a whole. `attempt` counts
    earlier tries whose content could not be used, so that a new try is not answered from the cache.
    `stored` says that the attempt is stored and lacks only a verdict by the present judges.
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

    An attempt has one result for each measure of its evaluator. `verdict_only` means that the
    attempt is stored already and only its verdict is written. `failure` is the status and message
    of an infrastructure failure that the record does not show, such as that of a judge after a
    successful attempt.
    """

    results: tuple[Result, ...]
    call: CallRecord | Trial
    attempt: int = 0
    verdict_only: bool = False
    failure: tuple[FailureStatus, str] | None = None

    @property
    def usage(self) -> Usage:
        """Requests, tokens and money."""
        return self.call.usage or Usage()

    @property
    def broken(self) -> tuple[str, str] | None:
        """Status and message where the infrastructure failed, else None."""
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
        """How it is counted: `scored` or the status of a Failure for each result of a judge; the
        verdict's outcome or the failure's status for an attempt. Only failures have a colon."""
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
    """Counts while an experiment runs: units, and what came of them by status (see `Outcome`)."""

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
        """Number of cells or attempts that brought a result."""
        return self.outcomes.total() - self.failures.total()


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """End of an experiment. `stopped` is the reason for omitted units, or for the failure
    of all."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


class Evaluator(Protocol[T]):
    """Turns units into results: a judge, an agent under test, a finder of errors.

    `source_key` is the key of its results in the store and `lock` the lock held while they are
    made. `system_key` is the key of an agent or finder, "" for a judge. `noun` is what one unit is
    called in messages. `grace` bounds the seconds that running units get after an interrupt.
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
        """The criteria that every unit is rated on; none for attempts, which are checked."""
        ...

    def units(self) -> Iterable[Unit[T]]:
        """Return all units, stored or not, in the order in which they are evaluated."""
        ...

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return how the criteria of a unit are spread over calls."""
        ...

    def is_current(self, unit: Unit[T], check_key: str | None) -> bool:
        """Return whether a stored verdict, made by the checker `check_key`, still holds."""
        ...

    def register(self, store: Store) -> list[str]:
        """Store what is evaluated and by whom; returns lines to report. Durable on return."""
        ...

    def requests(self, unit: Unit[T]) -> Requests:
        """Return how many requests a unit takes, for the dry run."""
        ...

    @property
    def sends_by_client(self) -> bool:
        """Whether all its requests go through a client of this package, so that a dry run may
        evaluate a unit: nothing is sent and no code of users runs."""
        ...

    def failure(self, unit: Unit[T], message: str, usage: Usage) -> Outcome:
        """Return the outcome of a unit that the infrastructure failed (`error:infrastructure`)."""
        ...

    async def evaluate(self, unit: Unit[T]) -> Outcome:
        """Evaluate one unit. Failures are outcomes; what is raised ends the experiment."""
        ...
