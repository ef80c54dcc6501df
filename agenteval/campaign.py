"""Trials of agents under test: what is missing is run, what was done is kept and never run again.

A trial is one attempt of one system at one planning case. Its log is stored with the verdict; a
verdict by other rules, or by an older checker, is made anew from the log when it is read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.agents import AgentFailure, AgentLimits, AgentLog, System
from agenteval.errors import BudgetExceeded
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.checker import check
from agenteval.evaluators.planning.run import Attempt, check_key, run_case
from agenteval.evaluators.planning.verdict import CheckRules, Verdict
from agenteval.outage import Breaker, run_workers
from agenteval.records import Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem

EVALUATOR = "planning"


@dataclass(frozen=True, slots=True)
class Rules:
    """How every trial of a campaign is run and checked."""

    limits: AgentLimits = field(default_factory=AgentLimits)
    check: CheckRules = field(default_factory=CheckRules)


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


def open_trials(
    store: Store, cases: Sequence[Case], system: System, trials: int, *, retry_failed: bool = False
) -> list[tuple[Case, int]]:
    """What the store lacks, every case once before any comes twice."""
    by_key = {case.sha256: case for case in cases}
    missing = Trials(store).missing(
        EVALUATOR, list(by_key), system.sha256, trials, retry_failed=retry_failed
    )
    return [(by_key[key], number) for key, number in missing]


async def run_trials(
    store: Store,
    system: System,
    work: Sequence[tuple[Case, int]],
    rules: Rules,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Ended:
    """Run the trials, a fresh agent each; a trial counts when it is durable.

    Stops early, with a reason, at the budget and when trial after trial fails for the
    infrastructure. Raises Unauthorized, InputError and StoreError; what was stored stays.
    """
    tables = Trials(store)
    tables.add_cases(EVALUATOR, [_stored_case(c) for c in {c.sha256: c for c, _ in work}.values()])
    tables.add_system(
        TrialSystem(key=system.sha256, name=system.name, parameters=system.parameters)
    )
    engine = _Engine(tables, system, rules, Progress(len(work)), on_progress)
    pending = iter(work)
    await run_workers(lambda: engine.work(pending), min(concurrency, len(work)))
    left = len(work) - engine.progress.calls_done
    return Ended(engine.progress, engine.breaker.stopped or engine.breaker.nothing_worked(), left)


@dataclass
class _Engine:
    tables: Trials
    system: System
    rules: Rules
    progress: Progress
    on_progress: Callable[[Progress], None]
    breaker: Breaker = field(default_factory=lambda: Breaker("trial"))

    async def work(self, pending: Iterator[tuple[Case, int]]) -> None:
        for case, number in pending:
            if self.breaker.stopped:
                return
            started = time.time()
            try:
                log, verdict = await run_case(
                    case, self.system.make(), self.rules.limits, self.rules.check
                )
            except BudgetExceeded as error:
                self.breaker.stopped = self.breaker.stopped or str(error)
                await self._keep_spent(case, number, error, started)
                return
            trial = _trial(self.system, case, number, log, verdict, self.rules.check, started)
            await self.tables.write_trial(trial)
            self._count(log, verdict)

    async def _keep_spent(
        self, case: Case, number: int, error: BudgetExceeded, started: float
    ) -> None:
        """What a trial took that the cap broke off: it counts when the campaign goes on."""
        spent = error.spent
        if not isinstance(spent, Usage) or not spent.requests:
            return
        log = AgentFailure(
            status="error:budget", message=str(error)[:500], seconds=time.time() - started,
            usage=spent,
        )  # fmt: skip
        await self.tables.write_trial(
            _trial(self.system, case, number, log, None, self.rules.check, started)
        )

    def _count(self, log: AgentLog | AgentFailure, verdict: Verdict | None) -> None:
        self.progress.calls_done += 1
        self.progress.usage = self.progress.usage + log.usage
        failure = log if isinstance(log, AgentFailure) else None
        outcome = failure.status if failure else verdict.outcome if verdict else "unchecked"
        self.progress.outcomes[outcome] += 1
        broken = failure is not None and failure.status in INFRASTRUCTURE
        self.breaker.note(failure.message if failure and broken else None)
        self.on_progress(self.progress)


def load_attempts(
    store: Store,
    rules: CheckRules | None = None,
    *,
    cases: Iterable[str] | None = None,
    systems: Iterable[str] | None = None,
) -> list[Attempt]:
    """Stored trials (of these case and system keys), by system, case and number.

    Different cases of one id, as of a suite that was changed, get a piece of their key behind it.
    A verdict that other rules or an older checker made is made anew, and not written back.
    """
    rules = rules or CheckRules()
    tables = Trials(store)
    chosen = None if cases is None else frozenset(cases)
    known = {
        c.key: Case.model_validate(c.body)
        for c in tables.cases(EVALUATOR)
        if chosen is None or c.key in chosen
    }
    ids = _distinct({key: case.id for key, case in known.items()})
    known = {
        key: case if case.id == ids[key] else case.model_copy(update={"id": ids[key]})
        for key, case in known.items()
    }
    names = _distinct({s.key: s.name for s in tables.systems(EVALUATOR)})
    return [
        _attempt(trial, known[trial.case_key], names[trial.system_key], rules)
        for trial in tables.trials(EVALUATOR, chosen, systems)
    ]


def _attempt(trial: Trial, case: Case, name: str, rules: CheckRules) -> Attempt:
    if trial.status != "done":
        failure = AgentFailure.model_validate(trial.log)
        return Attempt(case, name, trial.trial, failure, None)
    log = AgentLog.model_validate(trial.log)
    if trial.check_key == check_key(rules) and trial.verdict is not None:
        verdict = Verdict.model_validate(trial.verdict)
    else:
        verdict = check(case, log, rules)
    return Attempt(case, name, trial.trial, log, verdict)


def _distinct(names: dict[str, str]) -> dict[str, str]:
    """Names by key; a name that belongs to several keys gets a piece of the key behind it."""
    often = Counter(names.values())
    return {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in names.items()}


def _stored_case(case: Case) -> TrialCase:
    body = case.model_dump(mode="json", exclude_none=True)
    return TrialCase(key=case.sha256, id=case.id, body=body)


def _trial(  # noqa: PLR0913  each is one side of a trial
    system: System,
    case: Case,
    number: int,
    log: AgentLog | AgentFailure,
    verdict: Verdict | None,
    rules: CheckRules,
    started: float,
) -> Trial:
    return Trial(
        evaluator=EVALUATOR,
        system_key=system.sha256,
        case_key=case.sha256,
        trial=number,
        case_id=case.id,
        status=log.status if isinstance(log, AgentFailure) else "done",
        log=log.model_dump(mode="json"),
        outcome=verdict.outcome if verdict else None,
        check_key=check_key(rules) if verdict else None,
        verdict=verdict.model_dump(mode="json") if verdict else None,
        started=started,
        ended=started + log.seconds,
        usage=log.usage,
    )
