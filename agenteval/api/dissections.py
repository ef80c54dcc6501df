"""Why an agent's plans failed: dissections of stored trials."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from agenteval.api.agent_setup import (
    Agent,
    AgentSetup,
    How,
    StorePath,
    Suite,
    read_cases,
)
from agenteval.api.running import Notify, Progress, Stopped, Watch, how_it_ended, opened, twins
from agenteval.api.suites import words_of
from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dissect import (
    Dissection,
    DissectOptions,
    evaluator_name,
    load_dissections,
    plan_dissections,
)
from agenteval.evaluators.planning.substitute import Choices, base_of
from agenteval.evaluators.planning.tables import dissection_tables
from agenteval.evaluators.planning.trials import EVALUATOR, load_attempts
from agenteval.experiment import Ended, Experiment
from agenteval.report.report import Report
from agenteval.store import Store, Trials


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
        if self.setup.dry_run:  # what is rehearsed runs in a loop of its own
            from agenteval.api.planning_bill import dissect_bill

            bill = await asyncio.to_thread(dissect_bill, self)
            return DissectReport(title="", tables=(), bill=bill)
        self.setup.system()  # an agent that is none is told before anything else
        with opened(self.store, create=False) as store:
            failed = self.failed(store)
            if not failed:
                return self._report(store, failed, (), 0)
            try:
                ended = await self._run(store, failed)
            except asyncio.CancelledError:
                raise Stopped(self._report(store, failed, *how_it_ended(None, ""))) from None
            return self._report(store, failed, *how_it_ended(ended, "dissections not made"))

    async def _run(self, store: Store, failed: Sequence[Case]) -> Ended:
        workers = self.setup.limits.concurrency
        with Trials(store).lock(EVALUATOR, self.setup.system().sha256):
            async with self.setup.opened(store) as system:
                plan = plan_dissections(store, failed, system, self.options, concurrency=workers)
                left = len(plan.units)
                before = f", {len(failed) - left} done before" if left < len(failed) else ""
                self.watch.note(f"{left} failed cases to dissect{before}")
                experiment = Experiment(plan, store, workers=workers, on_interrupt=self.watch.note)
                return await experiment.run(self.watch.progress)

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


def prepare_dissect(
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
) -> Dissect:
    """Find the causes of the failures that `plan_test` has stored for this agent and suite
    (algorithm 2 of arXiv 2404.17833).

    `tries` of a stage; `full` runs all stages, also after a success; `literal` is the algorithm as
    printed. `how` as for `plan_test`. Raises InputError without such trials.
    """
    setup = AgentSetup(agent, **how)
    words, topics = words_of(lexicon)
    options = DissectOptions(
        tries=tries, full=full, paper_literal=literal, seed=seed,
        choices=Choices(topics=topics, lexicon=words),
        limits=setup.rules.limits, rules=setup.rules.check,
    )  # fmt: skip
    return Dissect(setup, read_cases(suite), options, limit, store, Watch(notify, progress))


dissect, adissect = twins("dissect", prepare_dissect)
