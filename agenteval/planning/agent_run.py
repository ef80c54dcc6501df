"""Runs an agent under test: its system, its experiments in turn, and what a dry run reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from agenteval.agents import AgentLimits, System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.cli.options import ExecutorOptions
from agenteval.cli.running import Stopped, Watch
from agenteval.engine import CostEstimate, Evaluator, Experiment, ExperimentResult
from agenteval.engine.executor import Executor, LocalExecutor, make_executor
from agenteval.models.limits import Limits
from agenteval.planning.case import Case
from agenteval.planning.evaluator import EVALUATOR, Rules
from agenteval.planning.options import AgentOptions, PlanTestOptions
from agenteval.planning.oracle import CheckRules
from agenteval.planning.scripted import SCRIPTED
from agenteval.planning.suite import read_suite
from agenteval.records import Usage
from agenteval.reporting.report import Report
from agenteval.store import Store, Trials

Suite = str | Path | Sequence[Case]
R = TypeVar("R", bound=Report)


@dataclass
class AgentRun:
    """The agent of `options` at planning cases. Messages go to `watch`."""

    options: AgentOptions
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.options.notify, self.options.progress)
        self.limits = self.options.limits or Limits(concurrency=4)
        self.executor: Executor = LocalExecutor()
        if isinstance(self.options, ExecutorOptions):  # dissections run in this process
            self.executor = make_executor(self.options.workers, self.options.ray)

    @property
    def rules(self) -> Rules:
        """Limits of a case and rules of the oracle."""
        options = self.options
        return Rules(
            AgentLimits(options.seconds, options.turns),
            CheckRules(strict=options.strict, log_order=options.log_order),
        )

    @cached_property
    def system(self) -> System:
        """The system, for its name and key. Nothing is opened or sent. Raises InputError for an
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
        """Run the experiments one after another, as far as they complete; return the report.

        Each is taken from the iterator when the one before is done. The usage of earlier trials and
        dissections counts towards the budget. Raises Stopped with the report when cancelled.
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
        """Limits other than the default make it another system: a trial stopped after 3 turns must
        not be taken for one with 50."""
        limits = self.rules.limits
        if limits == AgentLimits():
            return system
        limited: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
        return replace(system, parameters={**system.parameters, "limits": limited})


def read_cases(suite: Suite) -> list[Case]:
    """Return the cases of a file, or the given ones."""
    return list(read_suite(Path(suite)) if isinstance(suite, str | Path) else suite)
