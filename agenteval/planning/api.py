"""Run agents on planning suites, find their capability bound, and report stored results."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from pydantic import JsonValue

from agenteval.agents import AgentFailure, AgentLimits, System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.cli.options import ExecutorOptions, read_options
from agenteval.cli.running import Stopped, Watch, how_it_ended, opened, planned, synchronous
from agenteval.engine import CostEstimate, Evaluator, Experiment, ExperimentResult
from agenteval.engine.executor import Executor, LocalExecutor, make_executor
from agenteval.errors import InputError
from agenteval.models.limits import Limits
from agenteval.planning.capability import cases_for, reaches
from agenteval.planning.case import Case
from agenteval.planning.dissect import load_dissections
from agenteval.planning.evaluator import (
    EVALUATOR,
    Attempt,
    PlanningEvaluator,
    Rules,
    as_run,
    load_attempts,
)
from agenteval.planning.options import (
    Agent,
    AgentOptions,
    CapabilityKeywords,
    CapabilityOptions,
    PlanTestKeywords,
    PlanTestOptions,
)
from agenteval.planning.oracle import CheckRules
from agenteval.planning.rates import CaseLabel
from agenteval.planning.scripted import SCRIPTED
from agenteval.planning.suite import read_suite
from agenteval.planning.suite_api import generator, span
from agenteval.planning.synthesis import Shape
from agenteval.planning.tables import planning_tables
from agenteval.records import Run, Usage
from agenteval.reporting.report import Report
from agenteval.store import Store, Trials
from agenteval.store.experiments import unfinished_trials
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.cli.options import StorePath

Suite = str | Path | Sequence[Case]
R = TypeVar("R", bound=Report)


@dataclass
class AgentRun:
    """Runs the agent of `options` on planning cases. Messages go to `watch`."""

    options: AgentOptions
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.options.notify, self.options.progress)
        self.limits = self.options.limits or Limits(concurrency=4)
        self.executor: Executor = LocalExecutor()
        if isinstance(self.options, ExecutorOptions):  # dissections have no executor
            self.executor = make_executor(self.options.workers, self.options.ray)

    @property
    def rules(self) -> Rules:
        """The limits of a case and the rules of the oracle."""
        options = self.options
        return Rules(
            AgentLimits(options.seconds, options.turns),
            CheckRules(strict=options.strict, log_order=options.log_order),
        )

    @cached_property
    def system(self) -> System:
        """The system, with its name and key; opens and sends nothing. Raises InputError for an
        invalid agent."""
        return self._limited(spec.system(self.options.agent, self._settings(), SCRIPTED))

    def spent(self, store: Store) -> Usage:
        """Return the usage of all trials and dissections of the system so far."""
        trials = Trials(store)
        names = [n for n in trials.evaluators() if n == EVALUATOR or n.startswith(f"{EVALUATOR}.")]
        return sum((trials.usage(name, self.system.sha256) for name in names), Usage())

    def experiment(
        self, store: Store, evaluator: Evaluator[Case], *, retry_failed: bool = False
    ) -> Experiment[Case]:
        """Return the experiment of an evaluator."""
        return Experiment(
            evaluator,
            store,
            concurrency=self.limits.concurrency,
            retry_failed=retry_failed,
            notify=self.watch.note,
            warn=self.watch.warn,
            executor=self.executor,
            minutes=self.options.minutes if isinstance(self.options, PlanTestOptions) else None,
        )

    async def run(
        self,
        store: Store,
        experiments: Callable[[System], Iterator[Experiment[Case]]],
        report: Callable[[ExperimentResult | None], R],
    ) -> R:
        """Run experiments in turn until one does not complete; return the report.

        The next one is taken from the iterator only when the previous one is done. Earlier usage
        counts towards the budget. Raises Stopped with the report when cancelled.
        """
        settings = self._settings(self.spent(store), store)
        result = None
        try:
            with self.executor:
                async with spec.opened(self.options.agent, settings, SCRIPTED) as system:
                    for experiment in experiments(self._limited(system)):
                        result = await experiment.run(self.watch.progress)
                        if result.stopped:
                            break
        except asyncio.CancelledError:
            raise Stopped(report(None)) from None
        return report(result)

    def estimate(
        self, store: Store, total: CostEstimate, command: str, about: Sequence[str]
    ) -> CostEstimate:
        """Complete the estimate of a command; `about` describes the work line by line."""
        return replace(
            total,
            about=(f"agent: {self.system.name}", *about),
            notes=spec.uncounted(self.system.parameters),
            budget=self.limits.budget(self.spent(store)),
            command=command,
        )

    def _settings(self, spent: Usage | None = None, store: Store | None = None) -> AgentSettings:
        options = self.options
        return AgentSettings(
            model=options.model,
            base_url=options.base_url,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            concurrency=self.limits.concurrency,
            seconds=options.seconds,
            budget=None if spent is None else self.limits.budget(spent),
            need_key=not options.dry_run,
            store=store,
        )

    def _limited(self, system: System) -> System:
        """Make non-default limits part of the system, so that a trial stopped after 3 turns is not
        used for one with 50."""
        limits = self.rules.limits
        if limits == AgentLimits():
            return system
        limited: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
        return replace(system, parameters={**system.parameters, "limits": limited})


def read_cases(suite: Suite) -> list[Case]:
    """Read cases from a file, or return those passed."""
    return list(read_suite(Path(suite)) if isinstance(suite, str | Path) else suite)


@dataclass(frozen=True, kw_only=True)
class PlanReport(Report):
    """Trials of systems on planning cases; `causes` are the labels of dissections."""

    attempts: tuple[Attempt, ...] = ()
    causes: tuple[CaseLabel, ...] = ()

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """Trials without a verdict: their endpoint or adapter failed."""
        return tuple(a for a in self.attempts if a.verdict is None)

    def runs(self) -> list[Run]:
        """Return the trials with a verdict as runs, which `quantify` grades."""
        return [as_run(a) for a in self.attempts if a.verdict is not None]

    def records(self) -> list[dict[str, Any]]:
        """Return one row per trial."""
        return [
            {**_trial_row(a), "success": None if a.verdict is None else a.verdict.passed}
            for a in self.attempts
        ]

    def page(self) -> str:
        """Return a self-contained HTML page with charts and failures."""
        from agenteval.planning.page import planning_page

        return planning_page(self.attempts, self.causes, unfinished=self.unfinished)


def _trial_row(attempt: Attempt) -> dict[str, Any]:
    return {
        "case": attempt.case.id,
        "topic": attempt.case.topic,
        "actions": attempt.case.n,
        "system": attempt.system,
        "trial": attempt.trial,
        "outcome": attempt.outcome,
    }


def _trial_rows(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Return every trial as JSON: case, system, outcome, and the verdict or the failure."""
    rows = []
    for a in attempts:
        row = _trial_row(a)
        if a.verdict is not None:
            row["verdict"] = a.verdict.model_dump(mode="json")
        if isinstance(a.log, AgentFailure):
            row["failure"] = a.log.message
        rows.append(row)
    return rows


@dataclass
class PlanningCampaign:
    """Trials of one agent on suites, by their number of actions (0: any).

    With a `threshold`, the next suite starts only if enough trials of the previous one pass.
    """

    options: PlanTestOptions | CapabilityOptions
    suites: Mapping[int, Sequence[Case]]
    threshold: float | None = None
    finish: Callable[[PlanReport], PlanReport] = lambda report: report

    def __post_init__(self) -> None:
        self.agent = AgentRun(self.options)

    async def run(self) -> PlanReport:
        """Run the missing trials. Raises Stopped with a report when cancelled."""
        system = self.agent.system  # before the store, so that an invalid agent creates none
        if self.options.dry_run:
            with planned(self.options.store) as store:
                return PlanReport(title="", tables=(), estimate=await self._estimate(store, system))
        begun: list[int] = []

        def experiments(opened_system: System) -> Iterator[Experiment[Case]]:
            for size in self.suites:
                begun.append(size)
                yield self._experiment(store, opened_system, size)
                if not self._goes_on(store, size):
                    break

        with opened(self.options.store) as store:
            return await self.agent.run(
                store, experiments, lambda result: self._report(store, begun, result)
            )

    def _experiment(self, store: Store, system: System, size: int) -> Experiment[Case]:
        evaluator = PlanningEvaluator.of(
            system, self.suites[size], self.options.trials, self.agent.rules
        )
        return self.agent.experiment(store, evaluator, retry_failed=self.options.retry_failed)

    async def _estimate(self, store: Store, system: System) -> CostEstimate:
        """Estimate the requests of missing trials. Only those of the first suite with missing
        trials are certain, because the next one depends on their outcomes."""
        total, certain = CostEstimate(), True
        sizes = Counter[int]()
        about = []
        for size, cases in self.suites.items():
            experiment = self._experiment(store, system, size)
            missing = len(experiment.pending().units)
            sizes.update(case.n for case in cases)
            if not missing and certain and not self._goes_on(store, size):
                break
            if missing:
                estimate = await experiment.dry_run()
                total += estimate if certain else estimate.uncertain()
                certain = False
            of = f" of {size} actions" if size else ""
            about.append(f"{plural(len(cases), 'case')}{of}; trials to run: {missing}")
        by_actions = ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items()))
        about.append(f"cases by actions: {by_actions}")
        command = "plan test" if self.threshold is None else "plan capability"
        return self.agent.estimate(store, total, command, about)

    def _goes_on(self, store: Store, size: int) -> bool:
        """Return whether enough stored trials of this size pass to run the next suite."""
        if self.threshold is None:
            return True
        attempts = self._attempts(store, [size])
        passed = [a.verdict.passed for a in attempts if a.verdict is not None]
        if not passed:
            return False
        rate, failed = sum(passed) / len(passed), len(attempts) - len(passed)
        self.agent.watch.note(
            f"{size} actions: {rate:.3f} of {len(passed)} pass, {failed} without verdict"
        )
        return reaches(rate, self.threshold)

    def _attempts(self, store: Store, sizes: Sequence[int]) -> list[Attempt]:
        keys = [case.sha256 for size in sizes for case in self.suites[size]]
        systems = [self.agent.system.sha256]
        with store.snapshot():
            stored = load_attempts(store, self.agent.rules.check, cases=keys, systems=systems)
        return [a for a in stored if a.trial < self.options.trials]

    def _report(
        self, store: Store, sizes: Sequence[int], result: ExperimentResult | None
    ) -> PlanReport:
        attempts = tuple(self._attempts(store, sizes))
        tables = planning_tables(attempts, threshold=self.threshold)
        unfinished, code = how_it_ended(result, "trials not run")
        report = PlanReport(
            title=f"Planning tests of {self.agent.system.name}",
            tables=tables if attempts else (),
            notes=() if attempts else ("no trials have been run",),
            unfinished=unfinished,
            data={"trials": _trial_rows(attempts)},
            exit_code=code,
            attempts=attempts,
        )
        return self.finish(report)


async def aplan_test(suite: Suite, agent: Agent, **options: Unpack[PlanTestKeywords]) -> PlanReport:
    """Run an agent on every case of a suite (a file or cases), `trials` times, and check its plans.

    Only trials missing from `store` are run; `retry_failed` also retries permanent failures.
    `limit` selects the first cases. No trial starts after `minutes`, and the exit code is 3 if any
    was not run. `gate` is the minimum pass rate, and `max_unscored` the maximum share without a
    verdict. The other options are those of `AgentOptions`.

    Returns pass rates and all trials. Raises InputError for an invalid suite or agent, Unauthorized
    when a key is refused, and StoreError.
    """
    settings = read_options(PlanTestOptions, {"agent": agent, **options}, aplan_test)
    cases = read_cases(suite)[: settings.limit]
    different: dict[str, Case] = {}
    for case in cases:
        different.setdefault(case.sha256, case)
    same = len(cases) - len(different)
    note = f"{same} of {len(cases)} cases duplicate another case except for the id: skipped"

    def finish(report: PlanReport) -> PlanReport:
        total, failed = len(report.attempts), len(report.failures)
        gates = [unscored_gate(total, failed, settings.max_unscored, "trials have no verdict")]
        if settings.gate is not None:
            passed = [a.verdict.passed for a in report.attempts if a.verdict is not None]
            share = sum(passed) / len(passed) if passed else None
            of = f"of {len(passed)} trials, {failed} without verdict"
            unknown = "no trial has a verdict"
            gates.append(least_gate("success", share, settings.gate, of, unknown=unknown))
        notes = (note, *report.notes) if same else report.notes
        return replace(report, notes=notes).gated(*gates)

    return await PlanningCampaign(settings, {0: list(different.values())}, finish=finish).run()


async def aplan_capability(agent: Agent, **options: Unpack[CapabilityKeywords]) -> PlanReport:
    """Raise the number of actions until an agent's success falls below the threshold.

    `cases` at each number of actions, by default min(300, 20·n(n-1)/2), as published (arXiv
    2404.17833, section 6.2). Other options and errors are those of `plan_test`.
    """
    settings = read_options(CapabilityOptions, {"agent": agent, **options}, aplan_capability)
    first, last = span(settings.n, "--n")
    if first > last or first < 2:
        raise InputError(f"must be a range of 2 actions or more, not {settings.n!r}", "--n")
    suites = {}
    for size in range(first, last + 1):
        shape = Shape(actions=(size, size), extended=settings.extended)
        generated = generator(shape, settings.seed, settings.topics)
        suites[size] = list(generated.cases(settings.cases or cases_for(size)))
    return await PlanningCampaign(settings, suites, settings.threshold).run()


def plan_report(
    store: StorePath = None,
    suite: Suite | None = None,
    *,
    strict: bool = False,
    log_order: bool = False,
) -> PlanReport:
    """Return the stored trials of all systems (on the cases of a suite) with the causes.

    Causes come from the dissection options with the most dissected cases. Raises InputError if
    there are no trials.
    """
    keys = None if suite is None else [case.sha256 for case in read_cases(suite)]
    with opened(store, create=False) as stored, stored.snapshot():
        unfinished = unfinished_trials(stored, [EVALUATOR], keys)
        rules = CheckRules(strict=strict, log_order=log_order)
        attempts = tuple(load_attempts(stored, rules, cases=keys))
        dissections = load_dissections(stored, cases=keys)
    if not attempts:
        lines = "".join(f"; {experiment.line}" for experiment in unfinished)
        raise InputError(
            f"no planning trials are stored here yet; run `agenteval plan test` first{lines}"
        )
    chosen = max(sorted(dissections), key=lambda name: len(dissections[name]), default="")
    causes = tuple(CaseLabel(d.case, d.system, d.label) for d in dissections.pop(chosen, ()))
    return PlanReport(
        title="Planning tests",
        tables=planning_tables(attempts, causes),
        notes=tuple(
            f"{len(dissections[name])} dissections with other options are omitted: {name}"
            for name in sorted(dissections)
        ),
        unfinished=tuple(experiment.line for experiment in unfinished),
        data={
            "trials": _trial_rows(attempts),
            "unfinished": [experiment.json() for experiment in unfinished],
        },
        attempts=attempts,
        causes=causes,
    )


plan_test = synchronous(aplan_test)
plan_capability = synchronous(aplan_capability)
