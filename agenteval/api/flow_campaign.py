"""A campaign of workflows: an assistant in several formats on many cases, run into a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from agenteval.agents import AgentLimits
from agenteval.api.running import Watch
from agenteval.evaluators.workflows.assistants import Assistants
from agenteval.evaluators.workflows.cast import Cast
from agenteval.evaluators.workflows.results import Level
from agenteval.evaluators.workflows.scenario import Demand
from agenteval.evaluators.workflows.stored import EVALUATORS
from agenteval.evaluators.workflows.trials import (
    Act,
    Candidate,
    Case,
    Work,
    plan_workflows,
    spent,
    turns,
)
from agenteval.evaluators.workflows.verdicts import Judges, Verdicts
from agenteval.experiment import Ended, Experiment
from agenteval.files import write_atomically
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, make_client, make_transport
from agenteval.models.limits import Budget, Limits
from agenteval.store import Store, Trials


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

    async def run(self, store: Store, watch: Watch, judgements: str | Path | None = None) -> Ended:
        """Do what the store lacks, one format after the other, until one is stopped. Raises what
        `Experiment.run` raises, and StoreError while another process does the same."""
        keys = [one.sha256 for one in self.candidates()]
        budget = self.budget(store, keys)
        with ExitStack() as locks:
            for key in keys:
                locks.enter_context(Trials(store).lock(EVALUATORS[self.level], key))
            async with AsyncExitStack() as stack:
                judges = await stack.enter_async_context(self._opened_judges(store, budget))
                act = await stack.enter_async_context(self._opened_act(store, budget))
                candidates = await stack.enter_async_context(
                    self.assistants.opened(self.conditions, budget)
                )
                verdicts = Verdicts(judges)
                try:
                    return await self._run(store, watch, candidates, act, verdicts)
                finally:
                    if judgements is not None:
                        _write_judgements(Path(judgements), verdicts, watch)

    def budget(self, store: Store, keys: Sequence[str]) -> Budget:
        """One for all that asks a model; what earlier runs of these systems took is counted."""
        if self.limits.max_calls is None and self.limits.max_cost is None:
            return self.limits.budget()
        return self.limits.budget(spent(store, self.level, keys))

    def plan_line(self, name: str, work: Sequence[Work]) -> str:
        """How much of one candidate is to be done, and was."""
        again = sum(one.stored is not None for one in work)
        done = len(self.cases) * self.trials - (len(work) - again)
        return (
            f"{name}: {len(work) - again} {self.level}s to run"
            + (f", {done} done before" if done else "")
            + (f", {again} of them to be judged anew" if again else "")
        )

    async def _run(
        self,
        store: Store,
        watch: Watch,
        candidates: Sequence[Candidate],
        act: Act,
        verdicts: Verdicts,
    ) -> Ended:
        plans = [
            plan_workflows(
                store, self.level, self.cases, one, self.trials, act, verdicts,
                retry_failed=self.retry_failed,
            )
            for one in candidates
        ]  # fmt: skip
        for plan in plans:  # whoever reads the store meanwhile knows that others are to come
            plan.begin(store)
        ended: Ended | None = None
        for i, (one, plan) in enumerate(zip(candidates, plans, strict=True)):
            watch.note(self.plan_line(one.name, plan.units))
            experiment = Experiment(
                plan, store, workers=self.limits.concurrency, on_interrupt=watch.note
            )
            ended = await experiment.run(watch.progress)
            if ended.stopped:
                later = sum(len(other.units) for other in plans[i + 1 :])
                return replace(ended, left_out=ended.left_out + later)
        assert ended is not None  # there is a format at least
        return ended

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
