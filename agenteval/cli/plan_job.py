"""What the commands that run agents share: the agent, its limits, the store, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.api.running import why_stopped
from agenteval.cli.console import note, warn
from agenteval.cli.ending import say_interrupted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agenteval.agents import AgentLimits, System
    from agenteval.agents.spec import AgentSettings
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.trials import Rules
    from agenteval.experiment import Ended
    from agenteval.models.limits import Limits
    from agenteval.records import Usage
    from agenteval.store import Store

Agent = Annotated[
    str,
    typer.Option(
        help="openai, responses, react or autogen (with --model), python:MODULE:FUNCTION, "
        "command:CMD, mcp:CMD, scripted:NAME."
    ),
]
Trials = Annotated[int, typer.Option(help="Attempts at each case.", min=1)]
Seconds = Annotated[float, typer.Option("--timeout", help="Seconds for one case.", min=0.01)]
Turns = Annotated[int, typer.Option(help="Turns of the agent for one case.", min=1)]
Concurrency = Annotated[
    int, typer.Option("-j", "--concurrency", help="Cases run at once.", min=1, max=512)
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Any call that could not be carried out fails the case, and attempts "
        "before a restart count as well.",
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Tokens of one reply of the agent's model.", min=1)
]
RunsFile = Annotated[
    Path | None, typer.Option("--runs", help="Write the trials as runs, which quantify reads.")
]


@dataclass(frozen=True, slots=True)
class PlanJob:
    """What is run, and with which bounds."""

    agent: str
    model: str | None
    base_url: str | None
    temperature: float | None
    limits: Limits
    rules: Rules
    store: Path | None
    trials: int
    retry_failed: bool = False
    max_tokens: int | None = None
    dry: bool = False  # nothing is sent, so no key is needed

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


def make_rules(seconds: float, turns: int, *, strict: bool) -> Rules:
    """Limits of a case and rules of the oracle."""
    from agenteval.agents import AgentLimits
    from agenteval.evaluators.planning.checker import CheckRules
    from agenteval.evaluators.planning.trials import Rules

    return Rules(AgentLimits(seconds, turns), CheckRules(strict=strict))


async def run_open(job: PlanJob, store: Store, cases: Sequence[Case], title: str) -> Ended:
    """Run what the store lacks of the system's trials at the cases."""
    from agenteval.cli.progress import live
    from agenteval.evaluators.planning.trials import plan_trials
    from agenteval.experiment import Experiment

    async with opened_system(job, store) as system:
        plan = plan_trials(
            store, cases, system, job.trials, job.rules, retry_failed=job.retry_failed
        )
        left = len(plan.units)
        done = len(cases) * job.trials - left
        note(f"{system.name}: {left} trials to run" + (f", {done} done before" if done else ""))
        with live(left, title, "trials") as update:
            experiment = Experiment(plan, store, workers=job.limits.concurrency, on_interrupt=note)
            return await experiment.run(update)


@asynccontextmanager
async def opened_system(job: PlanJob, store: Store) -> AsyncIterator[System]:
    """The system as a context manager; its endpoint's connections end with it.

    What its earlier trials and dissections have spent counts towards the caps on calls and cost.
    """
    from agenteval.agents.spec import opened
    from agenteval.evaluators.planning.scripted import SCRIPTED

    before = spent(store, make_system(job).sha256)
    settings = replace(job.settings, budget=job.limits.budget(before))
    async with opened(job.agent, settings, SCRIPTED) as system:
        yield _within(system, job.rules.limits)


def spent(store: Store, system_key: str) -> Usage:
    """What trials and dissections of a system have taken so far."""
    from agenteval.evaluators.planning.trials import EVALUATOR
    from agenteval.records import Usage
    from agenteval.store import Trials

    tables = Trials(store)
    names = [n for n in tables.evaluators() if n == EVALUATOR or n.startswith(f"{EVALUATOR}.")]
    return sum((tables.usage(name, system_key) for name in names), Usage())


def make_system(job: PlanJob) -> System:
    """The system alone, to know its name and key; nothing is opened."""
    from agenteval.agents.spec import system
    from agenteval.evaluators.planning.scripted import SCRIPTED

    return _within(system(job.agent, job.settings, SCRIPTED), job.rules.limits)


def _within(system: System, limits: AgentLimits) -> System:
    """The system under its limits: others than the default ones make it another system.

    What was stopped after 3 turns must not stand for what 50 would have allowed.
    """
    from agenteval.agents import AgentLimits

    if limits == AgentLimits():
        return system
    kept: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
    return replace(system, parameters={**system.parameters, "limits": kept})


def ended_code(ended: Ended | None) -> int:
    """Exit code of a run that was interrupted (None) or stopped early; 0 otherwise."""
    if ended is None:
        return say_interrupted()
    if ended.stopped:
        warn(why_stopped(ended, "trials not run"))
        return 3
    return 0
