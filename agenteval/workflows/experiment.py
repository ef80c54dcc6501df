"""Evaluate an agent on many cases, in several formats of the procedure, with simulated users and
tools, and store the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, get_args

from pydantic import JsonValue

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.agents.spec import uncounted
from agenteval.cli.running import Watch
from agenteval.engine import CostEstimate, Experiment, ExperimentResult, RequestBounds, Requests
from agenteval.engine.dry_run import estimate
from agenteval.engine.executor import Executor, LocalExecutor
from agenteval.engine.experiment import announcement
from agenteval.errors import InputError
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, make_client, make_transport
from agenteval.models.limits import Budget, Limits
from agenteval.records.trial import Trial
from agenteval.store import Store, Trials
from agenteval.workflows.cases import OpenRole, SessionCase, TurnCase
from agenteval.workflows.evaluator import Attempt, WorkflowEvaluator, spent
from agenteval.workflows.options import TurnOptions, one_of
from agenteval.workflows.reply_text import predict_next
from agenteval.workflows.results import Level
from agenteval.workflows.run_session import VERSION, SessionSettings, run_session
from agenteval.workflows.scenario import Demand
from agenteval.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.workflows.simulated_tools import ToolMode, ToolModel, ToolSimulator
from agenteval.workflows.simulated_user import ScriptedUser, UserSimulator
from agenteval.workflows.user_model import UserOnModel
from agenteval.workflows.variants import AgentUnderTest, AgentVariant, Case
from agenteval.workflows.verdicts import Judges, Verdicts


def check_simulators(user: str, tools: str, choice: ModelChoice | None) -> ToolMode:
    """Return how tools are answered.

    Raises InputError for an unknown name, or if a model is needed and missing.
    """
    one_of(user, ("model", "scripted"), "--user")
    mode: ToolMode = one_of(tools, get_args(ToolMode), "--tools")
    if choice is None and (user == "model" or tools == "model"):
        raise InputError(
            "model-based users and tools need --simulator PROVIDER:MODEL or --simulator-url; "
            "--user scripted does not",
            "--simulator",
        )
    return mode


@dataclass(frozen=True)
class Simulators:
    """The simulators for sessions of these roles, with all settings that can affect a session.

    `user` is model or scripted, `tools` is how calls are answered, and `on_model` is whether there
    is a model. Raises InputError for a role without the backend required by `tools`.
    """

    user: str
    tools: ToolMode
    on_model: bool
    roles: Sequence[OpenRole]
    settings: SessionSettings

    def __post_init__(self) -> None:
        without = [of for of in self.roles if of.backend is None]
        if self.tools == "backend" and without:
            folder = str(without[0].folder)
            raise InputError("a role needs a backend.py for --tools backend", folder)

    @property
    def asks_tools(self) -> bool:
        """Whether the model may answer calls."""
        without = any(of.backend is None for of in self.roles)
        return self.on_model and self.tools != "backend" and without

    @property
    def asks(self) -> bool:
        """Whether a simulator uses the model."""
        return self.user == "model" or self.asks_tools

    @property
    def most_calls(self) -> int:
        """The most calls of a session. Published limits are checked only between turns."""
        settings = self.settings
        return settings.calls + (settings.calls_per_turn - 1 if settings.published else 0)

    def conditions(self, client: Client | None) -> dict[str, JsonValue]:
        """Return their settings that can affect a session; `client` connects to the model."""
        conditions: dict[str, JsonValue] = {
            "loop": VERSION,
            "limits": {k: v for k, v in self.settings.parameters.items() if k != "format"},
            "tools": self.tools,
            "user": self._user(client).parameters,
        }
        if client is not None and self.asks_tools:
            conditions["tool_model"] = {
                "model": client.model,
                "endpoint": client.address,
                "prompts": ToolModel.prompts_sha256(),
            }
        return conditions

    async def session(
        self, case: SessionCase, variant: AgentVariant, number: int, *, client: Client | None
    ) -> SessionLog | SessionFailure:
        """Run one session; repeats differ in the trial number."""
        tools = ToolSimulator(
            self.tools, backend=case.of.backend, client=client if self.asks_tools else None
        )
        settings = replace(self.settings, format=variant.format, repeat=number)
        agent, user = variant.agent_for(case), self._user(client)
        return await run_session(case.of.role, case.profile, agent, user, tools, settings)

    def _user(self, client: Client | None) -> UserSimulator:
        if self.user == "scripted":
            return ScriptedUser()
        assert client is not None
        return UserOnModel(client)


class _Opened(NamedTuple):
    """One experiment for each format, with a shared budget and shared verdicts."""

    experiments: list[Experiment[Case]]
    verdicts: Verdicts
    budget: Budget


@dataclass(frozen=True, kw_only=True)
class WorkflowExperiment:
    """Sessions with `simulators`, or without any single turns.

    `judge` and `simulator` are the models of judges and simulators, or None. `demand` is what
    success requires of the final state, None for the setting of each role.
    """

    cases: Sequence[Case]
    agent: AgentUnderTest
    how: TurnOptions
    limits: Limits
    judge: ModelChoice | None
    simulators: Simulators | None = None
    simulator: ModelChoice | None = None
    demand: Demand | None = None
    executor: Executor = field(default_factory=LocalExecutor)

    @property
    def level(self) -> Level:
        """Kind of a trial: a turn or a session."""
        return "turn" if self.simulators is None else "session"

    @cached_property
    def conditions(self) -> dict[str, JsonValue]:
        """Everything besides agent and format that can affect a trial."""
        if self.simulators is None:
            return {"seconds": self.how.seconds}
        choice = self.simulator if self.simulators.asks else None
        # This client only provides names; it opens no connection before the first request.
        client = None if choice is None else Client(make_transport(choice))
        return self.simulators.conditions(client)

    def variants(self) -> list[AgentVariant]:
        """Return the agent in each format, without opening connections."""
        return self.agent.variants(self.conditions)

    async def run(self, store: Store, watch: Watch) -> ExperimentResult:
        """Evaluate what the store lacks, one format after another, until one is stopped.

        Raises as `Experiment.run`, including StoreLocked while another process runs the same.
        """
        async with self._opened(store, watch) as (experiments, verdicts, _):
            try:
                if len(experiments) > 1:  # shows readers of the store that all are planned
                    for experiment in experiments:
                        experiment.begin()
                for number, experiment in enumerate(experiments, 1):
                    result = await experiment.run(watch.progress)
                    if result.stopped:
                        later = sum(len(other.pending().units) for other in experiments[number:])
                        return replace(result, left_out=result.left_out + later)
                return result
            finally:
                if (path := self.how.judgements) is not None:
                    rows = "".join(f"{row.model_dump_json()}\n" for row in verdicts.log)
                    write_atomically(Path(path), rows)
                    watch.note(f"{len(verdicts.log)} decisions on values written to {path}")

    async def dry_run(self, store: Store, watch: Watch) -> CostEstimate:
        """Return the requests that `run` would send."""
        seen: set[str] = set()
        async with self._opened(store, watch, dry=True) as (experiments, _, budget):
            about, total = list[str](), CostEstimate(command=f"flow {self.level}", budget=budget)
            for experiment in experiments:
                work = experiment.pending()
                about.append(announcement(experiment.evaluator, work))
                total += await estimate(experiment.evaluator, work, seen)
        notes = uncounted(self.agent.system.parameters)
        if budget.price is not None and len(total.lines) > 1:
            notes = (*notes, "all models are counted at one price")
        return replace(total, about=tuple(about), notes=notes)

    @asynccontextmanager
    async def _opened(
        self, store: Store, watch: Watch, *, dry: bool = False
    ) -> AsyncIterator[_Opened]:
        """Open agent, simulators and judges; for a dry run the agent is only named."""
        budget = self.limits.budget()
        if self.limits.max_calls is not None or self.limits.max_cost is not None:
            keys = [variant.sha256 for variant in self.variants()]
            budget = self.limits.budget(spent(store, self.level, keys))
        async with AsyncExitStack() as stack:

            def client(choice: ModelChoice | None) -> Client | None:
                if choice is None:
                    return None
                opened = make_client(choice, self.limits, store)
                opened.budget = budget
                stack.push_async_callback(opened.close)
                return opened

            judges = Judges(demand=self.demand)
            if (judge := client(self.judge)) is not None:
                judges = Judges.on(judge, demand=self.demand)
            verdicts = Verdicts(judges)
            attempt: Attempt = partial(_turn, seconds=self.how.seconds)
            if self.simulators is not None:
                simulator = client(self.simulator if self.simulators.asks else None)
                attempt = partial(self.simulators.session, client=simulator)
            system: System | None = None
            if not dry:
                system = await stack.enter_async_context(self.agent.opened(budget))
            experiments = [
                Experiment(
                    WorkflowEvaluator.of(
                        self.level,
                        variant,
                        self.cases,
                        self.how.trials,
                        tables=Trials(store),
                        attempt=attempt,
                        verdicts=verdicts,
                        bounds=self._bounds,
                    ),
                    store,
                    concurrency=self.limits.concurrency,
                    retry_failed=self.how.retry_failed,
                    notify=watch.note,
                    warn=watch.warn,
                    executor=self.executor,
                )
                for variant in self.agent.variants(self.conditions, system)
            ]
            yield _Opened(experiments, verdicts, budget)

    def _bounds(self, case: Case, stored: Trial | None) -> Requests:
        """Return the requests of an attempt, in the order in which they are first sent, and of its
        verdict; of a stored attempt only those of the verdict."""
        bounds: dict[str, RequestBounds] = {}
        simulators, calls = self.simulators, 1
        if stored is not None:
            recorded = stored.log.get("calls")
            calls = len(recorded) if isinstance(recorded, list) else 1
        else:
            agent = RequestBounds(1, 1)
            if simulators is not None and isinstance(case, SessionCase):
                limit, calls = simulators.settings.turn_limit(case.profile), simulators.most_calls
                agent = RequestBounds(1, limit + calls)
                if simulators.user == "model":
                    # Before each reply of the agent, and once after the last.
                    most = (limit + 1) * UserOnModel.most_requests
                    bounds["simulated user"] = RequestBounds(2, most)
            if not uncounted(self.agent.system.parameters):
                bounds["agent"] = agent
            if simulators is not None and simulators.asks_tools and case.of.backend is None:
                bounds["simulated tools"] = RequestBounds(0, calls * MOST_REQUESTS)
        if self.judge is not None:
            # The goals or the reply, and pairs of values that differ in words.
            questions = 1 + calls * _most_pairs(case)
            bounds["judge"] = RequestBounds(0, MOST_REQUESTS * questions)
        return bounds


async def _turn(
    case: TurnCase, variant: AgentVariant, number: int, *, seconds: float
) -> Prediction | AgentFailure:
    dialogue, tools = case.asked(variant.format)
    limits, agent = AgentLimits(seconds=seconds), variant.system
    return await predict_next(agent, dialogue, tools, limits, in_words=case.own_prompt is not None)


def _most_pairs(case: Case) -> int:
    """Return the most pairs of texts that one call of the agent can make the judge of values
    compare: those of the due calls of one tool."""
    if isinstance(case, TurnCase):
        return len(_texts(case.gold.action.arguments)) if case.gold.action else 0
    by_tool: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for action in case.profile.actions:
        by_tool[action.tool.strip()] |= _texts(action.arguments)
    return max(map(len, by_tool.values()), default=0)


def _texts(value: JsonValue, path: str = "") -> set[tuple[str, str]]:
    """Return (path, text) of every text in arguments."""
    if isinstance(value, str):
        return {(path, value)} if value.strip() else set()
    items = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        items = {str(number): item for number, item in enumerate(value)}
    return {text for key, item in items.items() for text in _texts(item, f"{path}.{key}")}
