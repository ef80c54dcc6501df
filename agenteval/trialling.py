"""Run what the store lacks of an evaluator's trials: several at once, each kept when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.outage import Breaker, run_workers
from agenteval.records import Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Trial, Trials

# Does one trial. One of status error:budget ends the campaign.
Job = Callable[[], Awaitable[Trial]]


@dataclass(slots=True)
class Progress:
    """Counts while trials run: by outcome, failures by their status."""

    total: int
    calls_done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    @property
    def failures(self) -> Counter[str]:
        """What brought no verdict, by status."""
        return Counter({k: n for k, n in self.outcomes.items() if ":" in k})


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. `stopped` says why when trials were left out."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


async def run_jobs(
    tables: Trials,
    jobs: Sequence[Job],
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Ended:
    """Run the jobs in their order, `concurrency` at once; a trial counts when it is durable.

    Stops early, with a reason, at the budget and when trial after trial fails for the
    infrastructure. Raises what a job raises (Unauthorized, InputError, StoreError …); what was
    stored stays.
    """
    engine = _Engine(tables, Progress(len(jobs)), on_progress)
    pending = iter(jobs)
    await run_workers(lambda: engine.work(pending), min(concurrency, len(jobs)))
    left = len(jobs) - engine.progress.calls_done
    return Ended(engine.progress, engine.breaker.stopped or engine.breaker.nothing_worked(), left)


@dataclass
class _Engine:
    tables: Trials
    progress: Progress
    on_progress: Callable[[Progress], None]
    breaker: Breaker = field(default_factory=lambda: Breaker("trial"))

    async def work(self, pending: Iterator[Job]) -> None:
        for job in pending:
            if self.breaker.stopped:
                return
            trial = await job()
            # Also where the budget broke it off: what it has spent must count.
            await self.tables.write_trial(trial)
            if trial.status == "error:budget":
                self.breaker.stopped = self.breaker.stopped or str(trial.log.get("message", ""))
                return
            self._count(trial)

    def _count(self, trial: Trial) -> None:
        self.progress.calls_done += 1
        self.progress.usage = self.progress.usage + (trial.usage or Usage())
        self.progress.outcomes[
            trial.status if trial.status != "done" else trial.outcome or "unchecked"
        ] += 1
        broken = trial.status in INFRASTRUCTURE
        self.breaker.note(str(trial.log.get("message", "")) if broken else None)
        self.on_progress(self.progress)
