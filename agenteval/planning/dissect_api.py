"""Why an agent's plans failed: dissections of stored trials."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from agenteval.agents import System
from agenteval.agents.spec import uncounted
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Notify,
    Progress,
    Stopped,
    Watch,
    how_it_ended,
    opened,
    synchronous,
)
from agenteval.engine import Estimate, Experiment
from agenteval.errors import InputError
from agenteval.planning.agent_setup import (
    Agent,
    AgentSetup,
    How,
    StorePath,
    Suite,
    read_cases,
)
from agenteval.planning.case import Case
from agenteval.planning.dissect import (
    Dissection,
    DissectionEvaluator,
    DissectOptions,
    evaluator_name,
    load_dissections,
)
from agenteval.planning.evaluator import load_attempts
from agenteval.planning.substitute import Choices, base_of
from agenteval.planning.suite_api import words_of
from agenteval.planning.tables import dissection_tables
from agenteval.reporting.report import Report
from agenteval.store import Store


@dataclass(frozen=True, kw_only=True)
class DissectReport(Report):
    """Why an agent's plans failed, case by case."""

    dissections: tuple[Dissection, ...] = ()

    @property
    def failures(self) -> tuple[Dissection, ...]:
        """Those whose cause is undecided: too many tries had no verdict."""
        return tuple(d for d in self.dissections if d.label == "undecided")


@dataclass
class Dissect:
    """Dissections of the cases that a system failed."""

    setup: AgentSetup
    cases: Sequence[Case]
    options: DissectOptions
    limit: int | None
    store: StorePath
    watch: Watch

    def failed(self, store: Store) -> list[Case]:
        """Cases with a stored trial that did not pass, in the suite's order, as far as they can be
        dissected. Raises InputError when no trial is stored, or none of them can be."""
        keys, key = [case.sha256 for case in self.cases], self.setup.system().sha256
        with store.snapshot():
            attempts = load_attempts(store, self.setup.rules.check, cases=keys, systems=[key])
        if not attempts:
            raise InputError(
                "no trial of this agent and suite is stored (--timeout, --turns and what the agent "
                "is given must be the same); run `agenteval plan test` first"
            )
        wrong = {a.case.sha256 for a in attempts if a.verdict is not None and not a.verdict.passed}
        cases: list[Case] = []
        refused: list[InputError] = []
        for case in self.cases:
            if case.sha256 in wrong:
                try:
                    cases.append(base_of(case, self.options.choices.lexicon).case)
                except InputError as error:  # written by hand: it must not hold up the others
                    refused.append(error)
        if refused and not cases:
            raise refused[0]
        self.watch.warn_list(f"{len(refused)} failed cases are left out", map(str, refused))
        return cases[: self.limit]

    async def run(self) -> DissectReport:
        """Make those that are missing. Raises Stopped with what is there when it is cancelled."""
        self.setup.system()  # raises for an agent that cannot be used, before anything else
        with opened(self.store, create=False) as store:
            failed = self.failed(store)
            if self.setup.dry_run:
                return DissectReport(
                    title="", tables=(), estimate=await self._estimate(store, failed)
                )
            if not failed:
                return self._report(store, failed, (), 0)
            try:
                async with self.setup.opened(store) as system:
                    experiment = self._experiment(store, system, failed)
                    result = await experiment.run(self.watch.progress)
            except asyncio.CancelledError:
                raise Stopped(self._report(store, failed, *how_it_ended(None, ""))) from None
            return self._report(store, failed, *how_it_ended(result, "dissections not made"))

    def _experiment(self, store: Store, system: System, failed: Sequence[Case]) -> Experiment[Case]:
        concurrency = self.setup.limits.concurrency
        evaluator = DissectionEvaluator.of(
            system, failed, self.options, concurrency=concurrency, turns=self.setup.turns
        )
        return Experiment(
            evaluator, store, concurrency=concurrency, notify=self.watch.note, warn=self.watch.warn
        )

    async def _estimate(self, store: Store, failed: Sequence[Case]) -> Estimate:
        system, (least, _, most) = self.setup.system(), self.options.runs
        experiment = self._experiment(store, system, failed)
        about = (
            f"agent: {system.name}",
            f"failed cases: {len(failed)}, of them to dissect: {len(experiment.pending().units)}",
            f"runs of the agent for each: at least {least}, at most {most}",
        )
        return replace(
            await experiment.dry_run(),
            command="plan dissect",
            about=about,
            notes=uncounted(system.parameters),
            budget=self.setup.limits.budget(self.setup.spent(store)),
        )

    def _report(
        self, store: Store, failed: Sequence[Case], unfinished: tuple[str, ...], code: int
    ) -> DissectReport:
        keys, system = [case.sha256 for case in failed], self.setup.system()
        with store.snapshot():
            everything = load_dissections(store, cases=keys, systems=[system.sha256])
        stored = tuple(everything.get(evaluator_name(self.options), ()))
        none = "no failed case of this agent and suite is stored; nothing to dissect"
        return DissectReport(
            title=f"Causes of failed plans of {system.name}",
            tables=dissection_tables(stored),
            notes=(*self.watch.notes, *(() if failed else (none,))),
            unfinished=unfinished,
            data={"dissections": [d.model_dump(mode="json") for d in stored]},
            exit_code=code,
            dissections=stored,
        )


async def adissect(
    suite: Suite,
    agent: Agent,
    *,
    tries: int = 3,
    full: bool = False,
    literal: bool = False,
    limit: int | None = 100,
    seed: int = 0,
    lexicon: str | Path | None = None,
    store: StorePath = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> DissectReport:
    """Find the causes of the failures that `plan_test` has stored for this agent and suite
    (algorithm 2 of arXiv 2404.17833).

    `tries` of a stage; `full` runs all stages, also after a success; `literal` is the algorithm as
    printed. `how` as for `plan_test`. Raises InputError without such trials.
    """
    setup = read_options(AgentSetup, {"agent": agent, **how}, adissect)
    if setup.executor.distributed:
        raise InputError("dissections run in one process", "--workers")
    words, topics = words_of(lexicon)
    options = DissectOptions(
        tries=tries,
        full=full,
        paper_literal=literal,
        seed=seed,
        choices=Choices(topics=topics, lexicon=words),
        limits=setup.rules.limits,
        rules=setup.rules.check,
    )
    cases = read_cases(suite)
    return await Dissect(setup, cases, options, limit, store, Watch(notify, progress)).run()


dissect = synchronous(adissect)
