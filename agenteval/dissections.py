"""Dissections in the store: each is kept when it is done, and never made twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agenteval.agents import AgentFailure, System
from agenteval.campaign import EVALUATOR
from agenteval.draining import USUAL, Drain
from agenteval.errors import BudgetExceeded
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.checker import CheckRules
from agenteval.evaluators.planning.dissect import Dissection, DissectOptions, dissect
from agenteval.evaluators.planning.run import check_key
from agenteval.outage import Breaker, run_workers
from agenteval.records import FailureStatus, Usage, content_hash
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem
from agenteval.trialling import Ended, Progress

_PREFIX = f"{EVALUATOR}.dissect"
_BROKEN_OFF: FailureStatus = "error:budget"


def evaluator_name(options: DissectOptions) -> str:
    """Under which name dissections by these options are stored: other options, another name."""
    kind = "literal" if options.paper_literal else "full" if options.full else "each"
    rules = check_key(options.rules or CheckRules())[:8]
    choices = content_hash(repr(options.choices))[:8]
    return (
        f"{_PREFIX}-{kind}-k{options.tries}-o{options.original}-s{options.seed}-{rules}-{choices}"
    )


def open_dissections(
    store: Store, cases: Sequence[Case], system: System, options: DissectOptions
) -> list[Case]:
    """The cases whose dissection by these options the store lacks."""
    by_key = {case.sha256: case for case in cases}
    name = evaluator_name(options)
    missing = Trials(store).missing(name, list(by_key), system.sha256, 1)
    return [by_key[key] for key, _ in missing]


async def run_dissections(  # noqa: PLR0913  each is one side of a campaign
    store: Store,
    system: System,
    cases: Sequence[Case],
    options: DissectOptions,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] = lambda _: None,
    drain: Drain = USUAL,
) -> Ended:
    """Dissect the cases; each counts when it is durable. One that stays undecided is made anew
    the next time.

    Stops early at the budget and at an outage, with the reason. Raises what `dissect` raises; what
    was stored stays. When it is cancelled, dissections under way have the time of `drain` to end
    and be stored before CancelledError is raised.
    """
    tables = Trials(store)
    name = evaluator_name(options)
    tables.add_cases(
        name,
        [
            TrialCase(key=c.sha256, id=c.id, body=c.model_dump(mode="json", exclude_none=True))
            for c in cases
        ],
    )
    known = TrialSystem(key=system.sha256, name=system.name, parameters=system.parameters)
    begun = tables.begin(name, known, [(case.sha256, 0) for case in cases], lock=EVALUATOR)
    tables.add_system(name, known)
    engine = _Engine(tables, name, system, options, Progress(len(cases)), on_progress)
    engine.slots = asyncio.Semaphore(concurrency)
    pending = iter(cases)
    # A dissection runs several tries at once: the slots bound the agents, not the workers.
    work = run_workers(lambda: engine.work(pending), min(concurrency, len(cases)))
    await drain.over(work, engine.stop, lambda: engine.under_way, "dissection")
    left = len(cases) - engine.progress.calls_done
    if not left:
        tables.finish(begun)
    return Ended(engine.progress, engine.breaker.stopped, left)


@dataclass
class _Engine:
    tables: Trials
    name: str
    system: System
    options: DissectOptions
    progress: Progress
    on_progress: Callable[[Progress], None]
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    breaker: Breaker = field(default_factory=lambda: Breaker("dissection"))
    under_way: int = 0

    def stop(self) -> None:
        """Begin no further dissection."""
        self.breaker.stopped = self.breaker.stopped or "interrupted"

    async def work(self, pending: Iterable[Case]) -> None:
        for case in pending:
            if self.breaker.stopped:
                return
            self.under_way += 1
            try:
                await self._one(case)
            finally:
                self.under_way -= 1

    async def _one(self, case: Case) -> None:
        started = time.time()
        try:
            found = await dissect(case, self.system, self.options, slots=self.slots)
        except BudgetExceeded as error:
            self.breaker.stopped = self.breaker.stopped or str(error)
            await self._keep_spent(case, error, started)
            return
        await self.tables.write_trial(self._trial(case, found, started))
        self._count(found)

    async def _keep_spent(self, case: Case, error: BudgetExceeded, started: float) -> None:
        """What a dissection took that the cap broke off; it is no dissection, and made anew."""
        spent = error.spent
        if not isinstance(spent, Usage) or not spent.requests:
            return
        log = AgentFailure(status=_BROKEN_OFF, message=str(error)[:500], usage=spent)
        await self.tables.write_trial(
            Trial(
                evaluator=self.name,
                system_key=self.system.sha256,
                case_key=case.sha256,
                trial=0,
                case_id=case.id,
                status=_BROKEN_OFF,
                log=log.model_dump(mode="json"),
                started=started,
                ended=time.time(),
                usage=spent,
            )
        )

    def _trial(self, case: Case, found: Dissection, started: float) -> Trial:
        undecided = found.label == "undecided"
        return Trial(
            evaluator=self.name,
            system_key=self.system.sha256,
            case_key=case.sha256,
            trial=0,
            case_id=case.id,
            status="error:infrastructure" if undecided else "done",
            log=found.model_dump(mode="json"),
            outcome=None if undecided else found.label.lower(),
            check_key=None if undecided else check_key(self.options.rules or CheckRules()),
            started=started,
            ended=started + found.seconds,
            usage=found.usage,
        )

    def _count(self, found: Dissection) -> None:
        self.progress.calls_done += 1
        undecided = found.label == "undecided"
        self.progress.outcomes["error:infrastructure" if undecided else found.label] += 1
        self.breaker.note(_why(found) if undecided else None)
        self.on_progress(self.progress)


def load_dissections(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> dict[str, list[Dissection]]:
    """Stored dissections (of these case and system keys) by the name of their options."""
    tables = Trials(store)
    names = [n for n in tables.evaluators() if n.startswith(_PREFIX)]
    wanted = None if cases is None else list(cases)
    chosen = None if systems is None else list(systems)
    return {
        name: [
            Dissection.model_validate(t.log)
            for t in tables.trials(name, wanted, chosen)
            if t.status != _BROKEN_OFF
        ]
        for name in names
    }


def _why(found: Dissection) -> str:
    messages = Counter(t.message for s in found.stages for t in s.tries if t.message)
    return messages.most_common(1)[0][0] if messages else "no verdict"
