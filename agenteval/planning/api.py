"""Planning tests: agents on suites, how much they can plan, and why their plans failed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from agenteval.agents import AgentFailure, System
from agenteval.agents.spec import uncounted
from agenteval.analysis.gates import Gate, least_gate, unscored_gate
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Notify,
    Progress,
    Stopped,
    Watch,
    how_it_ended,
    opened,
    planned,
    synchronous,
)
from agenteval.engine import Estimate, Experiment, ExperimentResult
from agenteval.errors import InputError
from agenteval.planning.agent_setup import (
    Agent,
    AgentSetup,
    How,
    StorePath,
    Suite,
    read_cases,
)
from agenteval.planning.capability import THRESHOLD, cases_for, goes_on
from agenteval.planning.case import Case
from agenteval.planning.dissect import (
    load_dissections,
)
from agenteval.planning.evaluator import (
    EVALUATOR,
    Attempt,
    PlanningEvaluator,
    as_run,
    load_attempts,
)
from agenteval.planning.oracle import CheckRules
from agenteval.planning.suite_api import Range, generator, span, words_of
from agenteval.planning.synthesis import Shape
from agenteval.planning.tables import planning_tables
from agenteval.planning.tallies import CaseLabel
from agenteval.planning.words import Lexicon
from agenteval.records import Run
from agenteval.reporting.report import Report
from agenteval.store import Store
from agenteval.store.experiments import unfinished_trials


@dataclass(frozen=True, kw_only=True)
class PlanReport(Report):
    """Trials of systems at planning cases; `causes` are the labels of dissections."""

    attempts: tuple[Attempt, ...] = ()
    causes: tuple[CaseLabel, ...] = ()
    lexicon: Lexicon | None = None

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """Trials without a verdict: their endpoint or adapter failed."""
        return tuple(a for a in self.attempts if a.verdict is None)

    def runs(self) -> list[Run]:
        """The trials with a verdict as runs, which `quantify` grades."""
        return [as_run(a) for a in self.attempts if a.verdict is not None]

    def records(self) -> list[dict[str, Any]]:
        """A row per trial."""
        return [
            {**_trial_row(a), "success": None if a.verdict is None else a.verdict.passed}
            for a in self.attempts
        ]

    def page(self) -> str:
        """A self-contained HTML page with figures and failures."""
        from agenteval.planning.page import planning_page

        return planning_page(
            self.attempts, self.causes, lexicon=self.lexicon, unfinished=self.unfinished
        )


def _trial_row(attempt: Attempt) -> dict[str, Any]:
    return {
        "case": attempt.case.id,
        "topic": attempt.case.topic,
        "actions": attempt.case.n,
        "system": attempt.system,
        "trial": attempt.trial,
        "outcome": attempt.outcome,
    }


def trial_rows(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Every trial as JSON: case, system, outcome, and the verdict or what failed."""
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
class Test:
    """Trials of one system at suites, by their number of actions or 0. Each is begun when the one
    before it is done and enough of its trials pass."""

    setup: AgentSetup
    suites: Mapping[int, Sequence[Case]]
    trials: int
    retry_failed: bool
    store: StorePath
    watch: Watch
    lexicon: Lexicon | None = None
    threshold: float | None = None  # success rate below which no further suite is begun
    gates: Callable[[PlanReport], Sequence[Gate]] = lambda _: ()
    notes: tuple[str, ...] = ()

    async def run(self) -> PlanReport:
        """Run what is missing. Raises Stopped with what is there when it is cancelled."""
        if self.setup.dry_run:
            return PlanReport(title="", tables=(), estimate=await self._estimate())
        result = None
        reached: list[int] = []
        self.setup.system()  # before a store is made, so that a wrong agent leaves none
        with opened(self.store) as store, self.setup.executor:
            try:
                async with self.setup.opened(store) as system:
                    for size in self.suites:
                        reached.append(size)
                        experiment = self._experiment(store, system, size)
                        result = await experiment.run(self.watch.progress)
                        if result.stopped or not self.goes_on(store, size):
                            break
            except asyncio.CancelledError:
                raise Stopped(self._report(store, reached, None)) from None
            return self._report(store, reached, result)

    def _experiment(self, store: Store, system: System, size: int) -> Experiment[Case]:
        return Experiment(
            PlanningEvaluator.of(system, self.suites[size], self.trials, self.setup.rules),
            store,
            concurrency=self.setup.limits.concurrency,
            retry_failed=self.retry_failed,
            notify=self.watch.note,
            warn=self.watch.warn,
            executor=self.setup.executor,
        )

    async def _estimate(self) -> Estimate:
        """What the missing trials would ask. Of several suites the next is begun as long as enough
        trials pass: certain is the first one that is not stored whole."""
        system, total, certain = self.setup.system(), Estimate(), True
        sizes = Counter[int]()
        with planned(self.store) as store:
            about = [f"agent: {system.name}"]
            for size, cases in self.suites.items():
                experiment = self._experiment(store, system, size)
                left = len(experiment.pending().units)
                sizes.update(case.n for case in cases)
                if not left and certain and not self.goes_on(store, size):
                    break
                if left:
                    estimate = await experiment.dry_run()
                    total += estimate if certain else estimate.uncertain()
                    certain = False
                about.append(
                    f"{len(cases)} cases"
                    + (f" of {size} actions" if size else "")
                    + f"; trials to run: {left}"
                )
            budget = self.setup.limits.budget(self.setup.spent(store))
        about.append(
            "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items()))
        )
        return replace(
            total,
            about=tuple(about),
            notes=uncounted(system.parameters),
            budget=budget,
            command="plan test" if self.threshold is None else "plan capability",
        )

    def goes_on(self, store: Store, size: int) -> bool:
        """Whether enough of the stored trials of this size pass for the next suite."""
        if self.threshold is None:
            return True
        attempts = self._attempts(store, [size])
        judged = [a.verdict.passed for a in attempts if a.verdict is not None]
        if not judged:
            return False
        rate, failed = sum(judged) / len(judged), len(attempts) - len(judged)
        self.watch.note(
            f"{size} actions: {rate:.3f} of {len(judged)} pass, {failed} without verdict"
        )
        return goes_on(rate, self.threshold)

    def _attempts(self, store: Store, sizes: Sequence[int]) -> list[Attempt]:
        keys = [case.sha256 for size in sizes for case in self.suites[size]]
        key = self.setup.system().sha256
        with store.snapshot():
            stored = load_attempts(store, self.setup.rules.check, cases=keys, systems=[key])
        return [a for a in stored if a.trial < self.trials]

    def _report(
        self, store: Store, sizes: Sequence[int], ended: ExperimentResult | None
    ) -> PlanReport:
        attempts = tuple(self._attempts(store, sizes))
        tables = planning_tables(attempts, (), threshold=self.threshold)
        unfinished, code = how_it_ended(ended, "trials not run")
        report = PlanReport(
            title=f"Planning tests of {self.setup.system().name}",
            tables=tables if attempts else (),
            notes=self.notes if attempts else (*self.notes, "no trial has been run"),
            unfinished=unfinished,
            data={"trials": trial_rows(attempts)},
            exit_code=code,
            attempts=attempts,
            lexicon=self.lexicon,
        )
        return report.gated(*self.gates(report))


async def aplan_test(
    suite: Suite,
    agent: Agent,
    *,
    trials: int = 1,
    limit: int | None = None,
    lexicon: str | Path | None = None,
    gate: float | None = None,
    max_unscored: float = 0.1,
    store: StorePath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> PlanReport:
    """Run an agent on every case of a suite (file or cases), `trials` times, and check its plans.

    Only what `store` lacks is run; `retry_failed` runs again what failed for good. `limit`: only
    the first cases. `lexicon`: word lists the suite was made with. `gate` is the share of passes
    that is demanded, `max_unscored` the share without verdict that is allowed. `how`: see
    `AgentSetup`.

    Raises InputError for a suite or agent that cannot be used, Unauthorized, StoreError.
    """
    words = words_of(lexicon)[0]
    cases = read_cases(suite)[:limit]
    different: dict[str, Case] = {}
    for case in cases:
        different.setdefault(case.sha256, case)
    same = len(cases) - len(different)
    told = f"{same} of {len(cases)} cases are another one again but for the id: left out"

    def gates(report: PlanReport) -> list[Gate]:
        total, failed = len(report.attempts), len(report.failures)
        asked = [unscored_gate(total, failed, max_unscored, "trials have no verdict")]
        if gate is not None:
            judged = [a.verdict.passed for a in report.attempts if a.verdict is not None]
            rate = sum(judged) / len(judged) if judged else None
            of = f"of {len(judged)} trials, {failed} without verdict"
            unknown = "no trial has a verdict"
            asked.append(least_gate("success", rate, gate, of, unknown=unknown))
        return asked

    setup = read_options(AgentSetup, {"agent": agent, **how}, aplan_test)
    test = Test(
        setup,
        {0: list(different.values())},
        trials,
        retry_failed,
        store,
        Watch(notify, progress),
        words,
        gates=gates,
        notes=(told,) if same else (),
    )
    return await test.run()


async def aplan_capability(
    agent: Agent,
    *,
    n: Range = "2-9",
    cases: int | None = None,
    threshold: float = THRESHOLD,
    seed: int = 0,
    extended: bool = False,
    topics: Sequence[str] = (),
    trials: int = 1,
    store: StorePath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> PlanReport:
    """Raise the number of actions until an agent's success falls below the threshold.

    `cases` at each number of actions, by default min(300, 20·n(n-1)/2), as published (arXiv
    2404.17833, section 6.2). Raises as `plan_test`.
    """
    first, last = span(n, "--n")
    if first > last or first < 2:
        raise InputError(f"must be a range of 2 actions or more, not {n!r}", "--n")
    suites = {}
    for size in range(first, last + 1):
        shape = Shape(actions=(size, size), extended=extended)
        suites[size] = list(generator(shape, seed, topics).cases(cases or cases_for(size)))
    setup = read_options(AgentSetup, {"agent": agent, **how}, aplan_capability)
    test = Test(
        setup,
        suites,
        trials,
        retry_failed,
        store,
        Watch(notify, progress),
        threshold=threshold,
    )
    return await test.run()


def plan_report(
    store: StorePath = None,
    suite: Suite | None = None,
    *,
    strict: bool = False,
    log_order: bool = False,
    lexicon: str | Path | None = None,
) -> PlanReport:
    """What the stored trials of all systems tell (at the cases of a suite), with the causes of the
    dissections by the options under which most cases were dissected.

    Raises InputError when there is no trial.
    """
    words = words_of(lexicon)[0]
    keys = None if suite is None else [case.sha256 for case in read_cases(suite)]
    with opened(store, create=False) as stored, stored.snapshot():
        unfinished = unfinished_trials(stored, [EVALUATOR], keys)
        rules = CheckRules(strict=strict, log_order=log_order)
        attempts = tuple(load_attempts(stored, rules, cases=keys))
        dissections = load_dissections(stored, cases=keys)
    if not attempts:
        told = "".join(f"; {one.line}" for one in unfinished)
        raise InputError(
            f"no planning trial is stored here yet; run `agenteval plan test` first{told}"
        )
    chosen = max(sorted(dissections), key=lambda name: len(dissections[name]), default="")
    causes = tuple(CaseLabel(d.case, d.system, d.label) for d in dissections.get(chosen, ()))
    left_out = [(len(dissections[name]), name) for name in sorted(dissections) if name != chosen]
    return PlanReport(
        title="Planning tests",
        tables=planning_tables(attempts, causes),
        notes=tuple(
            f"{n} dissections by other options are left out: {name}" for n, name in left_out
        ),
        unfinished=tuple(one.line for one in unfinished),
        data={
            "trials": trial_rows(attempts),
            "unfinished": [one.json() for one in unfinished],
        },
        attempts=attempts,
        causes=causes,
        lexicon=words,
    )


plan_test = synchronous(aplan_test)
plan_capability = synchronous(aplan_capability)
