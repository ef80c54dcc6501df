"""agenteval flow turn: what an agent does next at every turn of recorded sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import flow_choice, flow_job, flow_options, options, plan
from agenteval.cli.console import Verbosity
from agenteval.cli.flow_job import Campaign, FlowJob
from agenteval.cli.job import make_limits
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from agenteval.agents import AgentLimits
    from agenteval.evaluators.workflows.trials import Turns
    from agenteval.models.limits import Budget
    from agenteval.store import Store


def turn(
    roles: flow_options.Roles = None,
    agent: flow_options.Agent = "template",
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    max_tokens: plan.MaxTokens = None,
    formats: flow_options.Formats = None,
    kind: flow_options.Kind = "all",
    scenarios: flow_options.Scenarios = None,
    profiles: flow_options.Profiles = None,
    judge: flow_options.Judge = None,
    judge_url: flow_options.JudgeUrl = None,
    trials: Annotated[int, typer.Option(help="Predictions of each turn.", min=1)] = 1,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds for one turn.", min=0.01)
    ] = 180.0,
    limit: Annotated[int | None, typer.Option(help="Only the first turns.", min=1)] = None,
    least: Annotated[
        float | None,
        typer.Option("--gate", help="Exit with 1 when fewer due calls are right.", min=0, max=1),
    ] = None,
    max_unscored: flow_options.MaxUnscored = 0.1,
    judgements: flow_options.Judgements = None,
    seed: options.Seed = 0,
    store: options.StorePath = None,
    retry_failed: flow_options.RetryFailed = False,
    concurrency: plan.AtOnce = 4,
    max_calls: flow_options.MaxCalls = None,
    max_cost: flow_options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict every turn from the recorded talk before it, and compare with what was done."""
    from agenteval.agents import AgentLimits
    from agenteval.cli.flow_show import Gate, ended_code, say_judges, show
    from agenteval.evaluators.workflows.cases import turn_cases
    from agenteval.evaluators.workflows.stored import load_turns
    from agenteval.store import Store, default_path

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(judgements, store=store)
    job = FlowJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        max_tokens, flow_choice.make_formats(formats), judge, judge_url,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, 120.0),
        store, trials, seed, retry_failed, dry_run,
    )  # fmt: skip
    if agent.startswith("scripted:"):
        raise InputError("scripted assistants lead whole sessions (flow session); they cannot take "
                         "up a recorded one", "--agent")  # fmt: skip
    job.check()
    opened = flow_choice.read_roles(roles, backend=False)
    cases = turn_cases(opened, flow_choice.make_choice(kind, scenarios, profiles))[:limit]
    if not cases:
        raise InputError("no recorded turn is left by these choices", "ROLE")
    campaign = Campaign("turn", cases, {"seconds": seconds}, _act(AgentLimits(seconds=seconds)))
    if dry_run:
        from agenteval.cli import bills_flow, dry

        dry.show(bills_flow.flow(job, campaign), as_json=as_json)
        return
    keys, ended = flow_job.run(job, campaign, judgements)
    with Store(store or default_path()) as found, found.snapshot():
        own = load_turns(found, cases=[c.key for c in cases], systems=keys)
    own = [r for r in own if r.trial < trials]
    show([], own, as_json=as_json)
    say_judges(own)
    due = {c.info.id for c in cases if c.turn.kind == "call"}  # a lost reply is no lost call
    rates = [_right(r) for r in own if r.case.id in due]
    raise typer.Exit(
        ended_code(ended) or Gate("due calls", least, max_unscored).code(rates, as_json=as_json)
    )


def _right(result: Any) -> float | None:
    if result.verdict is None or result.verdict.call == "undecided":
        return None
    return float(result.verdict.call == "right")


def _act(limits: AgentLimits) -> Callable[[Store, Budget], AbstractAsyncContextManager[Turns]]:
    @asynccontextmanager
    async def opened(store: Store, budget: Budget) -> AsyncIterator[Turns]:
        from agenteval.evaluators.workflows.trials import Turns

        yield Turns(limits)

    return opened
