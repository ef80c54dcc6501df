"""What `flow turn` and `flow session` share: the job, its judges, and running what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.console import note
from agenteval.cli.flow_agents import candidate, opened_candidates
from agenteval.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pydantic import JsonValue

    from agenteval.agents.dialogue import AssistantSystem
    from agenteval.agents.spec import AgentSettings
    from agenteval.evaluators.workflows.results import Level
    from agenteval.evaluators.workflows.scenario import Format
    from agenteval.evaluators.workflows.trials import Act, Candidate, Case, Work
    from agenteval.evaluators.workflows.verdicts import Judges, Verdicts
    from agenteval.experiment import Ended
    from agenteval.models.client import Client
    from agenteval.models.factory import ModelChoice
    from agenteval.models.limits import Budget, Limits
    from agenteval.store import Store


@dataclass(frozen=True, slots=True)
class FlowJob:
    """What is run, by whom, and with which bounds."""

    agent: str
    model: str | None
    base_url: str | None
    temperature: float | None
    max_tokens: int | None
    formats: tuple[Format, ...]
    judge: str | None
    judge_url: str | None
    limits: Limits
    store: Path | None
    trials: int
    seed: int
    retry_failed: bool
    dry: bool = False  # nothing is sent, so no key is needed
    # Scripted assistants by the key of their case: to make them they are rehearsed.
    made: dict[str, AssistantSystem | None] = field(default_factory=dict, compare=False)

    @property
    def settings(self) -> AgentSettings:
        """What adapters that run a model are given."""
        from agenteval.agents.spec import AgentSettings

        return AgentSettings(
            model=self.model,
            base_url=self.base_url,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            concurrency=self.limits.concurrency,
            need_key=not self.dry,
        )

    def check(self) -> None:
        """Raises InputError for an agent, a judge or a cap that cannot be, before any file is."""
        candidate(self, self.formats[0], {})
        self.limits.budget()
        self.judging()

    def judging(self) -> ModelChoice | None:
        """The judge's model; None without a judge. Raises InputError."""
        if self.judge is None and self.judge_url is None:
            return None
        return chat_choice(self.judge, self.judge_url, "--judge", need_key=not self.dry)


@dataclass(frozen=True, slots=True)
class Campaign:
    """One call of the command: at which level, for which cases, and what is done.

    `act` opens what does a case, within the budget of the whole.
    """

    level: Level
    cases: Sequence[Case]
    conditions: dict[str, JsonValue]
    act: Callable[[Store, Budget], AbstractAsyncContextManager[Act]]


def chat_choice(
    model: str | None, base_url: str | None, option: str, *, need_key: bool = True
) -> ModelChoice:
    """The model of a judge or a simulator. Raises InputError for the embedded one, which cannot be
    asked, and as `choose_model`."""
    from agenteval.models.factory import choose_model

    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError("this needs a chat model: PROVIDER:MODEL, or an endpoint's URL", option)
    return choice


def chat_client(
    choice: ModelChoice, limits: Limits, store: Store, budget: Budget | None = None
) -> Client:
    """A client for a judge or a simulator; the store is its cache."""
    from agenteval.models.factory import make_client

    client = make_client(choice, limits, store)
    client.budget = budget or client.budget
    return client


@asynccontextmanager
async def opened_judges(
    job: FlowJob, store: Store, budget: Budget | None = None
) -> AsyncIterator[Judges]:
    """The judges on the model of --judge; none without it."""
    from agenteval.evaluators.workflows.verdicts import Judges

    choice = job.judging()
    if choice is None:
        yield Judges()
        return
    client = chat_client(choice, job.limits, store, budget)
    try:
        yield Judges.on(client)
    finally:
        await client.close()


def run(
    job: FlowJob, campaign: Campaign, judgements: Path | None
) -> tuple[list[str], Ended | None]:
    """Keys of the systems, and how the last of them ended; None: interrupted."""
    import asyncio

    from agenteval.evaluators.workflows.stored import EVALUATORS
    from agenteval.store import Store, Trials, default_path

    keys = [candidate(job, f, campaign.conditions).sha256 for f in job.formats]
    with Store(job.store or default_path()) as store, ExitStack() as stack:
        for key in keys:
            stack.enter_context(Trials(store).lock(EVALUATORS[campaign.level], key))
        try:
            return keys, asyncio.run(_run(job, campaign, store, judgements))
        except KeyboardInterrupt:
            return keys, None


async def _run(
    job: FlowJob, campaign: Campaign, store: Store, judgements: Path | None
) -> Ended | None:
    from agenteval.evaluators.workflows.verdicts import Verdicts

    budget = _budget(job, campaign, store)
    async with (
        opened_judges(job, store, budget) as judges,
        campaign.act(store, budget) as act,
        opened_candidates(job, campaign.conditions, budget) as candidates,
    ):
        verdicts = Verdicts(judges)
        try:
            return await _each(job, campaign, store, candidates, act, verdicts)
        finally:
            if judgements is not None:
                _write(judgements, verdicts)


def _budget(job: FlowJob, campaign: Campaign, store: Store) -> Budget:
    """One for all that asks a model; what earlier runs of these systems took is counted."""
    from agenteval.evaluators.workflows.trials import spent

    if job.limits.max_calls is None and job.limits.max_cost is None:
        return job.limits.budget()
    keys = [candidate(job, f, campaign.conditions).sha256 for f in job.formats]
    return job.limits.budget(spent(store, campaign.level, keys))


async def _each(
    job: FlowJob,
    campaign: Campaign,
    store: Store,
    candidates: Sequence[Candidate],
    act: Act,
    verdicts: Verdicts,
) -> Ended | None:
    """One format after the other, until one is stopped."""
    from agenteval.cli.progress import live
    from agenteval.evaluators.workflows.trials import plan_workflows
    from agenteval.experiment import Experiment

    level = campaign.level
    plans = [
        plan_workflows(
            store, level, campaign.cases, one, job.trials, act, verdicts,
            retry_failed=job.retry_failed,
        )
        for one in candidates
    ]  # fmt: skip
    for plan in plans:
        plan.begin(store)
    ended: Ended | None = None
    for i, plan in enumerate(plans):
        note(f"{plan.system.name}: {plan_of(job, campaign, plan.units)}")
        with live(len(plan.units), level, f"{level}s") as update:
            experiment = Experiment(plan, store, workers=job.limits.concurrency, on_interrupt=note)
            ended = await experiment.run(update)
        if ended.stopped:
            later = sum(len(plan.units) for plan in plans[i + 1 :])
            return replace(ended, left_out=ended.left_out + later)
    return ended


def plan_of(job: FlowJob, campaign: Campaign, work: Sequence[Work]) -> str:
    """How much is to be done, and was."""
    anew = sum(w.stored is not None for w in work)
    done = len(campaign.cases) * job.trials - (len(work) - anew)
    return (
        f"{len(work) - anew} {campaign.level}s to run"
        + (f", {done} done before" if done else "")
        + (f", {anew} of them to be judged anew" if anew else "")
    )


def _write(path: Path, verdicts: Verdicts) -> None:
    from agenteval.files import write_atomically

    rows = [j.model_dump_json() for e in verdicts.equalities for j in e.log]
    write_atomically(path, "".join(f"{row}\n" for row in rows))
    note(f"{len(rows)} decisions on values written to {path}")
