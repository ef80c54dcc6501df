"""agenteval flow session: an agent serves simulated users from beginning to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import flow_job, options, plan_job
from agenteval.cli.console import Verbosity, out
from agenteval.cli.flow_job import Campaign, FlowJob
from agenteval.cli.job import make_limits
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.cases import OpenRole
    from agenteval.evaluators.workflows.run_session import SessionSettings
    from agenteval.evaluators.workflows.scenario import Format
    from agenteval.evaluators.workflows.simulators.nouns import UserSimulator
    from agenteval.evaluators.workflows.simulators.tools import ToolMode, ToolSimulator
    from agenteval.models.client import Client
    from agenteval.store import Store


def session(
    roles: flow_job.Roles = None,
    agent: flow_job.Agent = "template",
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    max_tokens: plan_job.MaxTokens = None,
    formats: flow_job.Formats = None,
    kind: flow_job.Kind = "all",
    scenarios: flow_job.Scenarios = None,
    profiles: flow_job.Profiles = None,
    user: Annotated[
        str, typer.Option(help="Who plays the user: model (with --simulator) or scripted.")
    ] = "model",
    tools: Annotated[
        str,
        typer.Option(help="Who answers calls: auto, backend, recorded, model or generated."),
    ] = "auto",
    simulator: Annotated[
        str | None,
        typer.Option(help="PROVIDER:MODEL of simulated users and tools.", show_default=False),
    ] = None,
    simulator_url: Annotated[str | None, typer.Option(help="Its endpoint.")] = None,
    judge: flow_job.Judge = None,
    judge_url: flow_job.JudgeUrl = None,
    trials: Annotated[int, typer.Option(help="Sessions with each user.", min=1)] = 1,
    turns: Annotated[
        int | None,
        typer.Option(help="Replies of the agent at most.", min=1, show_default="15, cross 20"),
    ] = None,
    calls: Annotated[int, typer.Option(help="Calls of a session at most.", min=1)] = 60,
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
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share without verdict.", min=0, max=1)
    ] = 0.1,
    judgements: flow_job.Judgements = None,
    seed: options.Seed = 0,
    store: options.StorePath = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what failed for good.")
    ] = False,
    concurrency: plan_job.Concurrency = 4,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let an agent serve every user of the roles. Stop it at any time; the same command goes on.

    The roles' backend.py is run: it is code."""
    from agenteval.cli.flow_show import ended_code, gate, show
    from agenteval.evaluators.workflows.cases import session_cases
    from agenteval.flows import load_sessions
    from agenteval.store import Store, default_path

    Verbosity.level = -1 if quiet else Verbosity.level
    job = FlowJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        max_tokens, flow_job.make_formats(formats), judge, judge_url,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, 120.0),
        store, trials, seed, retry_failed,
    )  # fmt: skip
    flow_job.candidate(job, job.formats[0], {})  # an agent that cannot be is said first
    opened = flow_job.read_roles(roles, backend=True)
    cases = session_cases(opened, flow_job.make_choice(kind, scenarios, profiles))[:limit]
    if not cases:
        raise InputError("no user is left by these choices", "ROLE")
    stage = _Stage(job, user, tools, simulator, simulator_url,
                   _settings(turns, calls, seconds, seed, flowbench=flowbench))  # fmt: skip
    campaign = Campaign("session", cases, stage.conditions(), stage.opened)
    if dry_run:
        flow_job.say_dry(job, campaign, stage.tokens)
        stage.say()
        return
    keys, ended = flow_job.run(job, campaign, judgements)
    with Store(store or default_path()) as found:
        own = load_sessions(found, cases=[c.key for c in cases], systems=keys)
    own = [r for r in own if r.trial < trials]
    show(own, [], as_json=as_json)
    rates = [None if r.verdict is None or r.verdict.success is None else float(r.verdict.success)
             for r in own]  # fmt: skip
    raise typer.Exit(ended_code(ended) or gate(rates, least, max_unscored, as_json=as_json))


def _settings(
    turns: int | None, calls: int, seconds: float, seed: int, *, flowbench: bool
) -> SessionSettings:
    from dataclasses import replace

    from agenteval.evaluators.workflows.run_session import SessionSettings

    if flowbench:
        return replace(SessionSettings.flowbench(seed=seed), seconds=seconds)
    return SessionSettings(turns=turns, calls=calls, seconds=seconds, seed=seed)


class _Stage:
    """The simulated user and tools of a campaign."""

    def __init__(
        self,
        job: FlowJob,
        user: str,
        tools: str,
        model: str | None,
        url: str | None,
        settings: SessionSettings,
    ) -> None:
        from typing import get_args

        from agenteval.evaluators.workflows.simulators.tools import ToolMode

        if user not in ("model", "scripted"):
            raise InputError(f"{user!r} is not one of model, scripted", "--user")
        if tools not in get_args(ToolMode):
            raise InputError(f"{tools!r} is not one of {', '.join(get_args(ToolMode))}", "--tools")
        self.asks = user == "model" or tools == "model"
        if self.asks and model is None and url is None:
            raise InputError(
                "a simulated user or tool on a model needs --simulator PROVIDER:MODEL or "
                "--simulator-url; --user scripted needs none", "--simulator",
            )  # fmt: skip
        self._job, self._user, self._settings = job, user, settings
        self._mode: ToolMode = tools  # type: ignore[assignment]
        self._model, self._url = model, url

    def conditions(self) -> dict[str, Any]:
        """What of it can change a session."""
        from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser

        limits = {k: v for k, v in self._settings.parameters.items() if k != "format"}
        found: dict[str, Any] = {"limits": limits, "tools": self._mode}
        if self._user == "scripted":
            return {**found, "user": ScriptedUser().parameters}
        return {**found, "user": "model", "simulator": [self._model, self._url]}

    @asynccontextmanager
    async def opened(self, store: Store, judges: Any) -> AsyncIterator[Any]:
        """The act of a session; the simulators' connections end with it."""
        from agenteval.evaluators.workflows.simulators.user_model import UserOnModel
        from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
        from agenteval.flows import Sessions

        client = None
        if self.asks:
            client = flow_job.chat_client(
                self._model, self._url, self._job.limits, store, "--simulator"
            )
        user: UserSimulator = ScriptedUser()
        if self._user == "model":
            assert client is not None
            user = UserOnModel(client)
        try:
            yield Sessions(user, self._tools(client), self._settings)
        finally:
            if client is not None:
                await client.close()

    def _tools(self, client: Client | None) -> Any:
        """Simulators by role, each made once."""
        from agenteval.evaluators.workflows.simulators.tools import ToolSimulator

        made: dict[str, ToolSimulator] = {}

        def tools(of: OpenRole) -> ToolSimulator:
            key = str(of.folder)
            if key not in made:
                made[key] = ToolSimulator(
                    self._mode, backend=of.backend, backend_sha256=of.backend_sha256,
                    client=client if self._mode in ("auto", "recorded", "model") else None,
                )  # fmt: skip
            return made[key]

        return tools

    def tokens(self, case: Any, format: Format) -> int:
        """Prompt tokens of the agent in one session: instructions and tools at every request,
        and the talk that grows; four characters a token."""
        from agenteval.evaluators.workflows.instructions import instructions, tools_given

        role, profile = case.of.role, case.profile
        first = len(instructions(role, profile.scenarios, format))
        first += sum(len(t.model_dump_json()) for t in tools_given(role, profile.scenarios, format))
        requests = 2 * len(profile.actions) + 3
        return (requests * first + 400 * requests * (requests + 1) // 2) // 4

    def say(self) -> None:
        """What the simulators would ask."""
        if self.asks:
            out().print("simulated users: one request for each reply of the agent, at least")
