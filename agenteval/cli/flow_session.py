"""agenteval flow session: an agent serves simulated users from beginning to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import flow_choice, flow_job, flow_options, options, plan
from agenteval.cli.console import Verbosity
from agenteval.cli.flow_agents import present
from agenteval.cli.flow_job import Campaign, FlowJob
from agenteval.cli.flow_stage import Players, Stage
from agenteval.cli.job import make_limits
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.run_session import SessionSettings

CALLS = 60  # of a session at most


def session(
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
    user: Annotated[
        str, typer.Option(help="Who plays the user: model (with --simulator) or scripted.")
    ] = "model",
    tools: Annotated[
        str,
        typer.Option(help="Who answers calls: auto, backend, recorded or model."),
    ] = "auto",
    simulator: Annotated[
        str | None,
        typer.Option(help="PROVIDER:MODEL of simulated users and tools.", show_default=False),
    ] = None,
    simulator_url: Annotated[str | None, typer.Option(help="Its endpoint.")] = None,
    judge: flow_options.Judge = None,
    judge_url: flow_options.JudgeUrl = None,
    trials: Annotated[int, typer.Option(help="Sessions with each user.", min=1)] = 1,
    turns: Annotated[
        int | None,
        typer.Option(help="Replies of the agent at most.", min=1, show_default="15, cross 20"),
    ] = None,
    calls: Annotated[
        int | None, typer.Option(help="Calls of a session at most.", min=1, show_default="60")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds for one turn of the agent.", min=0.01)
    ] = 180.0,
    flowbench: Annotated[
        bool,
        typer.Option(
            "--flowbench", help="Limits of the published code: 40 messages, 10 calls, 5 in a turn."
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first users.", min=1)] = None,
    least: Annotated[
        float | None, typer.Option("--gate", help="Exit with 1 below this success.", min=0, max=1)
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
    """Let an agent serve every user of the roles. Stop it at any time; the same command goes on.

    The roles' backend.py is run: it is code. What a judge could not be asked is asked next time."""
    from agenteval.cli.flow_show import Gate, ended_code, say_judges, show
    from agenteval.evaluators.workflows.cases import session_cases
    from agenteval.evaluators.workflows.stored import load_sessions
    from agenteval.evaluators.workflows.verdicts import Verdicts
    from agenteval.store import Store, default_path

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(judgements, store=store)
    job = FlowJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        max_tokens, flow_choice.make_formats(formats), judge, judge_url,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, 120.0),
        store, trials, seed, retry_failed, dry_run,
    )  # fmt: skip
    job.check()
    players = Players.of(user, tools, simulator, simulator_url, need_key=not dry_run)
    opened = flow_choice.read_roles(roles, backend=players.backend)
    chosen = session_cases(opened, flow_choice.make_choice(kind, scenarios, profiles))[:limit]
    if not chosen:
        raise InputError("no user is left by these choices", "ROLE")
    Verdicts().prepare(chosen)
    cases = present(job, chosen)
    settings = _settings(turns, calls, seconds, seed, flowbench=flowbench)
    stage = Stage(players, opened, job.limits, settings)
    campaign = Campaign("session", cases, stage.conditions(), stage.opened)
    if dry_run:
        from agenteval.cli import bills_flow, dry

        dry.show(bills_flow.flow(job, campaign, stage), as_json=as_json)
        return
    keys, ended = flow_job.run(job, campaign, judgements)
    with Store(store or default_path()) as found, found.snapshot():
        own = load_sessions(found, cases=[c.key for c in cases], systems=keys)
    own = [r for r in own if r.trial < trials]
    show(own, [], as_json=as_json)
    say_judges(own)
    rates = [None if r.verdict is None or r.verdict.success is None else float(r.verdict.success)
             for r in own]  # fmt: skip
    raise typer.Exit(
        ended_code(ended) or Gate("sessions", least, max_unscored).code(rates, as_json=as_json)
    )


def _settings(
    turns: int | None, calls: int | None, seconds: float, seed: int, *, flowbench: bool
) -> SessionSettings:
    from dataclasses import replace

    from agenteval.evaluators.workflows.run_session import SessionSettings

    if flowbench:
        if turns is not None or calls is not None:
            raise InputError("it sets the limits; --turns and --calls have no place", "--flowbench")
        return replace(SessionSettings.flowbench(seed=seed), seconds=seconds)
    return SessionSettings(turns=turns, calls=calls or CALLS, seconds=seconds, seed=seed)
