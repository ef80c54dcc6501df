"""Find out why an agent's plans failed, by dissecting stored trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

from agenteval.agents import System
from agenteval.cli.options import read_options
from agenteval.cli.running import how_it_ended, opened, synchronous
from agenteval.engine import Experiment, ExperimentResult
from agenteval.errors import InputError
from agenteval.planning.api import AgentRun, Suite, read_cases
from agenteval.planning.case import Case
from agenteval.planning.dissect import (
    Dissection,
    DissectionEvaluator,
    DissectOptions,
    evaluator_name,
    load_dissections,
)
from agenteval.planning.evaluator import load_attempts
from agenteval.planning.options import Agent, DissectionKeywords, DissectionOptions
from agenteval.planning.substitute import base_of
from agenteval.planning.tables import dissection_tables
from agenteval.planning.words import read_topics
from agenteval.reporting.report import Report
from agenteval.store import Store


@dataclass(frozen=True, kw_only=True)
class DissectReport(Report):
    """The causes of an agent's failed plans, case by case."""

    dissections: tuple[Dissection, ...] = ()

    @property
    def failures(self) -> tuple[Dissection, ...]:
        """Cases with an undecided cause, because too many tries had no verdict."""
        return tuple(d for d in self.dissections if d.label == "undecided")


async def adissect(
    suite: Suite, agent: Agent, **options: Unpack[DissectionKeywords]
) -> DissectReport:
    """Find the causes of failed cases that `plan_test` stored for this agent and suite (algorithm 2
    of arXiv 2404.17833).

    Each stage has `tries` attempts. `full` runs all stages even after a success, `literal` runs the
    algorithm exactly as printed, and `limit` caps the number of cases. The other options are those
    of `plan_test` and must be the same as there.

    Returns the causes by system and the dissected cases. Raises InputError if no matching trials
    are stored, and Stopped with a report when cancelled.
    """
    settings = read_options(DissectionOptions, {"agent": agent, **options}, adissect)
    run = AgentRun(settings)
    topics = None if settings.lexicon is None else read_topics(settings.lexicon)
    how = DissectOptions(
        tries=settings.tries,
        full=settings.full,
        paper_literal=settings.literal,
        seed=settings.seed,
        topics=topics,
        limits=run.rules.limits,
        rules=run.rules.check,
    )
    cases = read_cases(suite)
    run.system  # noqa: B018  raises for an invalid agent before the store is opened
    with opened(settings.store, create=False) as store:
        failed = failed_cases(run, store, cases, how)[: settings.limit]

        def experiments(system: System) -> Iterator[Experiment[Case]]:
            evaluator = DissectionEvaluator.of(
                system, failed, how, concurrency=run.limits.concurrency, turns=settings.turns
            )
            yield run.experiment(store, evaluator)

        def report(result: ExperimentResult | None) -> DissectReport:
            return _report(run, store, failed, how, *how_it_ended(result, "dissections not made"))

        if settings.dry_run:
            (experiment,) = experiments(run.system)
            least, most = how.runs
            about = (
                f"failed cases: {len(failed)}, to dissect: {len(experiment.pending().units)}",
                f"agent runs per case: at least {least}, at most {most}",
            )
            estimate = run.estimate(store, await experiment.dry_run(), "plan dissect", about)
            return DissectReport(title="", tables=(), estimate=estimate)
        if not failed:
            return _report(run, store, failed, how, (), 0)
        return await run.run(store, experiments, report)


dissect = synchronous(adissect)


def failed_cases(
    run: AgentRun, store: Store, cases: Sequence[Case], options: DissectOptions
) -> list[Case]:
    """Return the cases that can be dissected and have a stored trial that did not pass.

    Raises InputError if no trial is stored or no failed case can be dissected.
    """
    keys, systems = [case.sha256 for case in cases], [run.system.sha256]
    with store.snapshot():
        attempts = load_attempts(store, run.rules.check, cases=keys, systems=systems)
    if not attempts:
        raise InputError(
            "no trials of this agent and suite are stored with the same --timeout, --turns and "
            "instructions; run `agenteval plan test` first"
        )
    wrong = {a.case.sha256 for a in attempts if a.verdict is not None and not a.verdict.passed}
    failed: list[Case] = []
    refused: list[InputError] = []
    for case in cases:
        if case.sha256 in wrong:
            try:
                failed.append(base_of(case).case)
            except InputError as error:  # one of the user's own cases must not block the others
                refused.append(error)
    if refused and not failed:
        raise refused[0]
    run.watch.warn_list(f"{len(refused)} failed cases are skipped", map(str, refused))
    return failed


def _report(
    run: AgentRun,
    store: Store,
    failed: Sequence[Case],
    options: DissectOptions,
    unfinished: tuple[str, ...],
    code: int,
) -> DissectReport:
    keys, systems = [case.sha256 for case in failed], [run.system.sha256]
    with store.snapshot():
        stored = load_dissections(store, cases=keys, systems=systems)
    dissections = tuple(stored.get(evaluator_name(options), ()))
    none = "no failed cases of this agent and suite are stored; nothing to dissect"
    notes = [*run.watch.notes, *(() if failed else (none,))]
    if run.system.parameters.get("temperature") == 0:
        notes.append(
            "The model runs at temperature 0, as in the paper, so its repeats hardly vary and the "
            "cause Probability is rare. To see chance, test and dissect with --temperature 1."
        )
    return DissectReport(
        title=f"Causes of failed plans of {run.system.name}",
        tables=dissection_tables(dissections),
        notes=tuple(notes),
        unfinished=unfinished,
        data={"dissections": [d.model_dump(mode="json") for d in dissections]},
        exit_code=code,
        dissections=dissections,
    )
