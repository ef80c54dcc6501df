"""agenteval plan capability: how many actions an agent can plan before it fails (section 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options, plan_job, plan_synth
from agenteval.cli.console import Verbosity, note
from agenteval.cli.plan_job import PlanJob
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.run import Attempt


def capability(
    agent: plan_job.Agent,
    n: Annotated[
        str, typer.Option("--n", help="Actions, FROM-TO; it stops where the agent does.")
    ] = "2-9",
    seed: options.Seed = 0,
    cases: Annotated[
        int | None,
        typer.Option(
            help="Cases at each number of actions. Default: min(300, 20·n(n-1)/2), as published.",
            min=1,
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Success rate below which it ends.", min=0.0, max=1.0)
    ] = 0.2,
    extended: plan_synth.Extended = False,
    topic: plan_synth.Topics = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    max_tokens: plan_job.MaxTokens = None,
    trials: plan_job.Trials = 1,
    seconds: plan_job.Seconds = 180.0,
    turns: plan_job.Turns = 50,
    strict: plan_job.Strict = False,
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
    """Raise the number of actions until success falls below the threshold."""
    from agenteval.cli.plan_run import run_suite, show
    from agenteval.evaluators.planning.capability import cases_for, goes_on

    Verbosity.level = -1 if quiet else Verbosity.level
    job = PlanJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        options.LimitOptions(
            concurrency, max_calls, max_cost, price_in, price_out, seconds
        ).limits(),
        plan_job.make_rules(seconds, turns, strict=strict), store, trials,
        max_tokens=max_tokens, dry=dry_run,
    )  # fmt: skip
    first, last = plan_synth.span(n, "--n")
    if first > last or first < 2:
        raise InputError(f"must be a range of 2 actions or more, not {n!r}", "--n")
    suites = {
        size: _suite(size, cases or cases_for(size), seed, topic or [], extended=extended)
        for size in range(first, last + 1)
    }
    if dry_run:
        from agenteval.cli import bills_plan, dry

        dry.show(bills_plan.capability(job, suites, threshold), as_json=as_json)
        return
    attempts: list[Attempt] = []
    code = 0
    for size, suite in suites.items():
        more, ended = run_suite(job, suite)
        attempts += more
        code = plan_job.ended_code(ended)
        judged = [a.verdict for a in more if a.verdict is not None]
        if code or not judged:
            break
        rate = sum(v.passed for v in judged) / len(judged)
        failed = len(more) - len(judged)
        note(f"{size} actions: {rate:.3f} of {len(judged)} pass, {failed} without verdict")
        if not goes_on(rate, threshold):
            break
    show(attempts, as_json=as_json, threshold=threshold)
    raise typer.Exit(code)


def _suite(n: int, count: int, seed: int, topics: list[str], *, extended: bool) -> list[Case]:
    shape = plan_synth.make_shape(str(n), None, None, "1-2", extended=extended)
    return list(plan_synth.make_generator(shape, seed, topics, None).cases(count))
