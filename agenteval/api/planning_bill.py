"""What planning tests, capability and dissections would ask, rehearsed: nobody is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval.agents import System
from agenteval.agents.spec import uncounted
from agenteval.api.agent_setup import AgentSetup
from agenteval.api.running import opened, planned
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dissect import plan_dissections
from agenteval.evaluators.planning.trials import plan_trials
from agenteval.evaluators.trials import TrialPlan
from agenteval.models.rehearsal import Amount, Bill, Draft, Part
from agenteval.store import Store

if TYPE_CHECKING:
    from agenteval.api.dissections import Dissect
    from agenteval.api.planning import Test


def test_bill(asked: Test) -> Bill:
    """What the trials that are missing would ask. Of several suites the next is begun as long as
    enough trials pass: certain is the first one that is not stored whole."""
    system, reached = asked.setup.system(), list[Case]()
    plans: list[TrialPlan[Any]] = []
    with planned(asked.store) as store:
        for size, cases in asked.suites.items():
            plan = plan_trials(
                store, cases, system, asked.trials, asked.setup.rules,
                retry_failed=asked.retry_failed,
            )  # fmt: skip
            reached += cases
            if plan.units:
                plans.append(plan)
            elif not plans and not asked.goes_on(store, size):
                break
        trials = [len(plan.units) for plan in plans]
        sizes = Counter(case.n for case in reached)
        about = [
            f"agent: {system.name}",
            f"cases: {len(reached)}; trials to run: {sum(trials)}",
            "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items())),
        ]
        if asked.threshold is not None:
            about.append(f"trials that are certain: {sum(trials[:1])}")
        command = "plan test" if asked.threshold is None else "plan capability"
        return _planning(command, asked.setup, system, store, about, plans)


def dissect_bill(asked: Dissect) -> Bill:
    """What the dissections that are missing would ask."""
    system, options = asked.setup.system(), asked.options
    with opened(asked.store, create=False) as store:
        failed = asked.failed(store)
        plan = plan_dissections(store, failed, system, options)
        least, every, most = options.runs
        about = [
            f"agent: {system.name}",
            f"failed cases: {len(failed)}, of them to dissect: {len(plan.units)}",
            f"runs of the agent for each: at least {least}, at most {most}",
        ]
        why = (
            f"{least} runs of each case at least; at most {every}, where no stage before the last "
            f"succeeds, each with up to {options.retries} more without a verdict; a run is up to "
            "one request more than --turns"
        )
        return _planning(
            "plan dissect", asked.setup, system, store, about, [plan], (least, most), why
        )


def _planning(
    command: str, setup: AgentSetup, system: System, store: Store, about: Sequence[str],
    plans: Sequence[TrialPlan[Any]], runs: tuple[int, int] = (1, 1), why: str = "",
) -> Bill:  # fmt: skip
    """The bill of an agent at planning cases; a unit takes `runs` of it, at least and at most. Of
    several plans the first alone is certain."""
    budget = setup.limits.budget(setup.spent(store))
    if notes := uncounted(system.parameters):
        return Bill(command, about, (), budget, notes)
    why = why or (
        "a trial is one request at least, usually one for each call and one for the last words, at "
        "most one more than --turns"
    )
    part = Part("agent", why, likely=Amount())
    certain = {_case(unit).sha256 for plan in plans[:1] for unit in plan.units}

    def count(unit: Any, drafts: Sequence[Draft]) -> None:
        case = _case(unit)
        part.talk(
            drafts[0], usual=case.n + 1, most=setup.turns + 1,
            certain=runs[0] * (case.sha256 in certain), times=runs[1],
        )  # fmt: skip

    return Bill(command, about, (part.rehearse(plans, count),), budget)


def _case(unit: Case | tuple[Case, int]) -> Case:
    return unit[0] if isinstance(unit, tuple) else unit
