"""A campaign of workflows: an assistant in several formats on many cases, run into a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from agenteval.agents import AgentLimits
from agenteval.agents.spec import uncounted
from agenteval.cli.running import Watch
from agenteval.engine import (
    Estimate,
    Experiment,
    ExperimentResult,
    RequestBounds,
    Requests,
    announcement,
)
from agenteval.engine.executor import Executor, LocalExecutor
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, make_client, make_transport
from agenteval.models.limits import Budget, Limits
from agenteval.records.trial import Trial
from agenteval.store import Store
from agenteval.workflows.assistants import Assistants
from agenteval.workflows.cases import SessionCase
from agenteval.workflows.cast import Cast
from agenteval.workflows.evaluator import (
    Act,
    Candidate,
    Case,
    WorkflowEvaluator,
    spent,
    turns,
)
from agenteval.workflows.results import Level
from agenteval.workflows.scenario import Demand
from agenteval.workflows.user_model import UserOnModel
from agenteval.workflows.verdicts import Judges, Verdicts, most_pairs


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Sessions of a `cast` of simulators, or single turns under `turn_limits`.

    `judge` and `simulator` are the models of judges and simulators, None for none. `demand` is what
    success asks of the final state, None for what each role says.
    """

    level: Level
    cases: Sequence[Case]
    assistants: Assistants
    trials: int
    limits: Limits
    retry_failed: bool = False
    judge: ModelChoice | None = None
    cast: Cast | None = None
    simulator: ModelChoice | None = None
    demand: Demand | None = None
    turn_limits: AgentLimits = AgentLimits()  # noqa: RUF009  frozen
    executor: Executor = field(default_factory=LocalExecutor)

    @cached_property
    def conditions(self) -> dict[str, JsonValue]:
        """What besides agent and format can change a trial."""
        if self.cast is None:
            return {"seconds": self.turn_limits.seconds}
        asked = self.simulator if self.cast.asks else None
        # A client to know names of; it opens no connection before it is asked.
        return self.cast.conditions(None if asked is None else Client(make_transport(asked)))

    def candidates(self) -> list[Candidate]:
        """The assistant in each format; nothing is opened."""
        return self.assistants.candidates(self.conditions)

    async def run(
        self, store: Store, watch: Watch, judgements: str | Path | None = None
    ) -> ExperimentResult:
        """Do what the store lacks, one format after the other, until one is stopped. Raises what
        `Experiment.run` raises, and StoreError while another process does the same."""
        budget = self.budget(store, [candidate.sha256 for candidate in self.candidates()])
        async with AsyncExitStack() as stack:
            judges = await stack.enter_async_context(self._opened_judges(store, budget))
            act = await stack.enter_async_context(self._opened_act(store, budget))
            candidates = await stack.enter_async_context(
                self.assistants.opened(self.conditions, budget)
            )
            verdicts = Verdicts(judges)
            experiments = self._experiments(store, watch, candidates, act, verdicts)
            try:
                return await self._run(experiments, watch)
            finally:
                if judgements is not None:
                    _write_judgements(Path(judgements), verdicts, watch)

    async def dry_run(self, store: Store, watch: Watch) -> Estimate:
        """Return what `run` would ask."""
        candidates = self.candidates()
        budget = self.budget(store, [candidate.sha256 for candidate in candidates])
        verdicts = Verdicts(self.judges(self.judge_client(store, budget)))
        act = turns(self.turn_limits)
        if self.cast is not None:
            act = self.cast.act(self.simulator_client(store, budget))
        seen: set[str] = set()
        about, total = list[str](), Estimate(command=f"flow {self.level}", budget=budget)
        for experiment in self._experiments(store, watch, candidates, act, verdicts):
            about.append(announcement(experiment.evaluator, experiment.pending()))
            total += await experiment.dry_run(seen)
        notes = uncounted(candidates[0].assistant.parameters)
        if budget.price is not None and len(total.lines) > 1:
            notes = (*notes, "one price is used for all models")
        return replace(total, about=tuple(about), notes=notes)

    def budget(self, store: Store, keys: Sequence[str]) -> Budget:
        """One for all that asks a model; what earlier runs of these systems took is counted."""
        if self.limits.max_calls is None and self.limits.max_cost is None:
            return self.limits.budget()
        return self.limits.budget(spent(store, self.level, keys))

    def _experiments(
        self,
        store: Store,
        watch: Watch,
        candidates: Sequence[Candidate],
        act: Act,
        verdicts: Verdicts,
    ) -> list[Experiment[Case]]:
        return [
            Experiment(
                WorkflowEvaluator.of(
                    store,
                    self.level,
                    self.cases,
                    candidate,
                    self.trials,
                    act,
                    verdicts,
                    bounds=self._bounds,
                ),
                store,
                concurrency=self.limits.concurrency,
                retry_failed=self.retry_failed,
                notify=watch.note,
                warn=watch.warn,
                executor=self.executor,
            )
            for candidate in candidates
        ]

    async def _run(self, experiments: Sequence[Experiment[Case]], watch: Watch) -> ExperimentResult:
        for experiment in experiments:  # readers of the store see that all are planned
            experiment.begin()
        for number, experiment in enumerate(experiments, 1):
            result = await experiment.run(watch.progress)
            if result.stopped:
                later = sum(len(other.pending().units) for other in experiments[number:])
                return replace(result, left_out=result.left_out + later)
        return result

    def _bounds(self, case: Case, stored: Trial | None) -> Requests:
        """Requests of an attempt at a case, in the order in which they are first sent, and of its
        verdict; of a stored attempt only those of the verdict."""
        bounds: dict[str, RequestBounds] = {}
        calls = 1
        if stored is not None:
            recorded = stored.log.get("calls")
            calls = len(recorded) if isinstance(recorded, list) else 1
        else:
            agent = RequestBounds(1, 1)
            if self.cast is not None and isinstance(case, SessionCase):
                limit, calls = self.cast.settings.turn_limit(case.profile), self.cast.calls
                agent = RequestBounds(1, limit + calls)
                if self.cast.user == "model":
                    # before each reply of the agent, and once after the last
                    most = (limit + 1) * UserOnModel.most_requests
                    bounds["simulated user"] = RequestBounds(2, most)
            if not uncounted(self.assistants.candidates({})[0].assistant.parameters):
                bounds["agent"] = agent
            if self.cast is not None and self.cast.asks_tools and case.of.backend is None:
                bounds["simulated tools"] = RequestBounds(0, calls * MOST_REQUESTS)
        if self.judge is not None:
            # the goals or the reply, and pairs of values that differ in words
            questions = 1 + calls * most_pairs(case)
            bounds["judge"] = RequestBounds(0, MOST_REQUESTS * questions)
        return bounds

    @asynccontextmanager
    async def _opened_judges(self, store: Store, budget: Budget) -> AsyncIterator[Judges]:
        client = self.judge_client(store, budget)
        try:
            yield self.judges(client)
        finally:
            if client is not None:
                await client.close()

    @asynccontextmanager
    async def _opened_act(self, store: Store, budget: Budget) -> AsyncIterator[Act]:
        if self.cast is None:
            yield turns(self.turn_limits)
            return
        async with self.cast.opened(self.simulator_client(store, budget)) as act:
            yield act

    def judges(self, client: Client | None) -> Judges:
        """The judges on a client, or what is decided without one."""
        if client is None:
            return Judges(demand=self.demand)
        return Judges.on(client, demand=self.demand)

    def judge_client(self, store: Store, budget: Budget) -> Client | None:
        """A client for judges, None without one; the store is its cache."""
        return None if self.judge is None else self._client(self.judge, store, budget)

    def simulator_client(self, store: Store, budget: Budget) -> Client | None:
        """The same for simulators, None where no model plays."""
        if self.simulator is None or self.cast is None or not self.cast.asks:
            return None
        return self._client(self.simulator, store, budget)

    def _client(self, choice: ModelChoice, store: Store, budget: Budget) -> Client:
        client = make_client(choice, self.limits, store)
        client.budget = budget
        return client


def _write_judgements(path: Path, verdicts: Verdicts, watch: Watch) -> None:
    rows = [j.model_dump_json() for e in verdicts.equalities for j in e.log]
    write_atomically(path, "".join(f"{row}\n" for row in rows))
    watch.note(f"{len(rows)} decisions on values written to {path}")
