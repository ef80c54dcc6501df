"""Run what the store lacks of an evaluator's trials: several at once, each kept when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.draining import USUAL, Drain
from agenteval.outage import Breaker, run_workers
from agenteval.records import FailureStatus, Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Trial, Trials

_BUDGET = "error:budget"


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial that was done, with what the engine cannot see of it.

    `stored`: it is in the store already. `judge` is the status and message of a judge that failed
    for the infrastructure, beside work that is done.
    """

    trial: Trial
    stored: bool = False
    judge: tuple[FailureStatus, str] | None = None

    @property
    def broken(self) -> tuple[str, str] | None:
        """Status and message of what the infrastructure failed: the work, or its judge."""
        if self.trial.status in INFRASTRUCTURE:
            return self.trial.status, str(self.trial.log.get("message", ""))
        return self.judge

    @property
    def outcome(self) -> str:
        """How it is counted. A failure has a colon, see `Progress.failures`."""
        if self.trial.status != "done":
            return self.trial.status
        return f"judge {self.judge[0]}" if self.judge else self.trial.outcome or "unchecked"


# Does one trial. What fails with status error:budget ends the campaign.
Job = Callable[[], Awaitable[Trial | Finished]]


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
    what: str = "trial",
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] = lambda _: None,
    drain: Drain = USUAL,
) -> Ended:
    """Run the jobs in their order, `concurrency` at once; a trial counts when it is durable.

    `what` names one of them in the reason to stop.

    Stops early, with a reason, at the budget and when trial after trial fails for the
    infrastructure. Raises what a job raises (Unauthorized, InputError, StoreError …); what was
    stored stays.

    When it is cancelled (Ctrl-C), no further job is begun; those under way have the time of `drain`
    to be stored before CancelledError is raised. What does not end in time leaves no trace here.
    """
    engine = _Engine(tables, Progress(len(jobs)), on_progress, Breaker(what))
    pending = iter(jobs)
    work = run_workers(lambda: engine.work(pending), min(concurrency, len(jobs)))
    await drain.over(work, engine.stop, lambda: engine.under_way, what)
    left = len(jobs) - engine.progress.calls_done
    return Ended(engine.progress, engine.breaker.stopped or engine.breaker.nothing_worked(), left)


@dataclass
class _Engine:
    tables: Trials
    progress: Progress
    on_progress: Callable[[Progress], None]
    breaker: Breaker
    under_way: int = 0

    def stop(self) -> None:
        """Begin no further job."""
        self.breaker.stopped = self.breaker.stopped or "interrupted"

    async def work(self, pending: Iterator[Job]) -> None:
        for job in pending:
            if self.breaker.stopped:
                return
            self.under_way += 1
            try:
                done = await self._kept(job)
            finally:
                self.under_way -= 1
            if done.broken is not None and done.broken[0] == _BUDGET:
                self.breaker.stopped = self.breaker.stopped or done.broken[1]
                return
            self._count(done)

    async def _kept(self, job: Job) -> Finished:
        made = await job()
        done = made if isinstance(made, Finished) else Finished(made)
        # Also where the budget broke it off: what it has spent must count.
        if not done.stored:
            await self.tables.write_trial(done.trial)
        return done

    def _count(self, done: Finished) -> None:
        self.progress.calls_done += 1
        self.progress.usage = self.progress.usage + (done.trial.usage or Usage())
        self.progress.outcomes[done.outcome] += 1
        self.breaker.note(done.broken[1] if done.broken else None)
        self.on_progress(self.progress)
