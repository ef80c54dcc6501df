"""agenteval plan dissect: why an agent's plans failed (algorithm 2 of arXiv 2404.17833)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options, plan_job
from agenteval.cli.console import (
    Verbosity,
    note,
    print_json,
    warn_list,
)
from agenteval.cli.plan_job import PlanJob
from agenteval.cli.plan_run import Lexicon, Suite
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.experiment import Ended
    from agenteval.store import Store


def dissect(
    suite: Suite,
    agent: plan_job.Agent,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    max_tokens: plan_job.MaxTokens = None,
    tries: Annotated[int, typer.Option("-k", "--tries", help="Tries of a stage.", min=1)] = 3,
    full: Annotated[
        bool, typer.Option("--full", help="Run all stages, also after a success.")
    ] = False,
    literal: Annotated[
        bool, typer.Option("--paper-literal", help="The algorithm as printed.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Only so many of the failed cases.", min=1)
    ] = 100,
    seed: options.Seed = 0,
    seconds: plan_job.Seconds = 180.0,
    turns: plan_job.Turns = 50,
    strict: plan_job.Strict = False,
    lexicon: Lexicon = None,
    store: options.StorePath = None,
    concurrency: plan_job.Concurrency = 4,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the causes of the failures that `plan test` has stored for this agent and suite."""
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.evaluators.planning.substitute import Choices

    Verbosity.level = -1 if quiet else Verbosity.level
    rules = plan_job.make_rules(seconds, turns, strict=strict)
    job = PlanJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        options.LimitOptions(
            concurrency, max_calls, max_cost, price_in, price_out, seconds
        ).limits(),
        rules, store, 1, max_tokens=max_tokens, dry=dry_run,
    )  # fmt: skip
    from agenteval.cli.plan_synth import read_lexicon

    words, topics = read_lexicon(lexicon)
    how = DissectOptions(
        tries=tries, full=full, paper_literal=literal, seed=seed,
        choices=Choices(topics=topics, lexicon=words), limits=rules.limits, rules=rules.check,
    )  # fmt: skip
    code = _run(job, how, suite, limit, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(code)


def _run(
    job: PlanJob,
    how: DissectOptions,
    suite: Path,
    limit: int | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    import asyncio

    from agenteval.cli.plan_table import print_dissections
    from agenteval.evaluators.planning.dissections import evaluator_name, load_dissections
    from agenteval.evaluators.planning.suite import read_suite
    from agenteval.evaluators.planning.trials import EVALUATOR
    from agenteval.store import Store, Trials, default_path

    cases = list(read_suite(suite, how.choices.lexicon))
    system = plan_job.make_system(job)
    with Store(job.store or default_path(), create=False) as store:
        failed = _readable(_failed(store, cases, system.sha256, job), how)[:limit]
        if dry_run:
            from agenteval.cli import bills_plan, dry

            dry.show(bills_plan.dissect(job, store, failed, how), as_json=as_json)
            return 0
        if not failed:
            note("no failed case of this agent and suite is stored; nothing to dissect")
            if as_json:
                print_json([])
            return 0
        with Trials(store).lock(EVALUATOR, system.sha256):
            try:
                ended: Ended | None = asyncio.run(_dissect(job, store, failed, how))
            except KeyboardInterrupt:
                ended = None
            keys = [case.sha256 for case in failed]
            with store.snapshot():
                everything = load_dissections(store, cases=keys, systems=[system.sha256])
            found = everything.get(evaluator_name(how), [])
            if as_json:
                print_json([d.model_dump(mode="json") for d in found])
            else:
                print_dissections(found)
            return plan_job.ended_code(ended)


def _failed(store: Store, cases: Sequence[Case], system_key: str, job: PlanJob) -> list[Case]:
    """Cases with a trial that did not pass, in the suite's order."""
    from agenteval.evaluators.planning.trials import load_attempts

    keys = [case.sha256 for case in cases]
    with store.snapshot():
        attempts = load_attempts(store, job.rules.check, cases=keys, systems=[system_key])
    if not attempts:
        raise InputError(
            "no trial of this agent and suite is stored (--timeout, --turns and what the agent "
            "is given must be the same); run `agenteval plan test` first"
        )
    bad = {a.case.sha256 for a in attempts if a.verdict is not None and not a.verdict.passed}
    return [case for case in cases if case.sha256 in bad]


def _readable(cases: Sequence[Case], how: DissectOptions) -> list[Case]:
    """The cases that can be dissected; InputError when there are cases, but none of this kind.

    A case written by hand without a text in the language must not hold up the others.
    """
    from agenteval.evaluators.planning.substitute import base_of

    found: list[Case] = []
    refused: list[InputError] = []
    for case in cases:
        try:
            found.append(base_of(case, how.choices.lexicon).case)
        except InputError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    warn_list(f"{len(refused)} failed cases are left out", map(str, refused))
    return found


async def _dissect(job: PlanJob, store: Store, cases: Sequence[Case], how: DissectOptions) -> Ended:
    from agenteval.cli.progress import live
    from agenteval.evaluators.planning.dissections import plan_dissections
    from agenteval.experiment import Experiment

    at_once = job.limits.concurrency
    async with plan_job.opened_system(job, store) as system:
        plan = plan_dissections(store, cases, system, how, concurrency=at_once)
        left = len(plan.units)
        done = len(cases) - left
        note(f"{left} failed cases to dissect" + (f", {done} done before" if done else ""))
        with live(left, "dissecting", "cases") as update:
            return await Experiment(plan, store, workers=at_once, on_interrupt=note).run(update)
