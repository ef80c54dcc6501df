"""What `plan test`, `plan capability` and `plan dissect` would ask with --dry-run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents import System
from agenteval.cli import plan_job
from agenteval.cli.dry import planned_store, uncounted
from agenteval.cli.plan_job import PlanJob
from agenteval.evaluators.planning.capability import goes_on
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dissect import DissectOptions
from agenteval.evaluators.planning.dissections import plan_dissections
from agenteval.evaluators.planning.trials import load_attempts, plan_trials
from agenteval.evaluators.trials import TrialPlan
from agenteval.models.rehearsal import Amount, Bill, Draft, Part
from agenteval.store import Store


def plan_test(job: PlanJob, cases: Sequence[Case]) -> Bill:
    """What `plan test` would ask, from what is stored."""
    system = plan_job.make_system(job)
    with planned_store(job.store) as store:
        plan = plan_trials(
            store, cases, system, job.trials, job.rules, retry_failed=job.retry_failed
        )
        about = _of_cases(system, cases, len(plan.units))
        return _planning("plan test", job, system, store, about, [plan])


def capability(job: PlanJob, suites: Mapping[int, Sequence[Case]], threshold: float) -> Bill:
    """What `plan capability` would ask. It goes on to more actions as long as enough pass: certain
    is the first number of actions that is not stored whole."""
    system = plan_job.make_system(job)
    reached: list[Case] = []
    plans: list[TrialPlan[Any]] = []
    with planned_store(job.store) as store:
        for suite in suites.values():
            plan = plan_trials(store, suite, system, job.trials, job.rules)
            reached += suite
            if plan.units:
                plans.append(plan)
            elif not plans:  # the stored trials decide whether the next number is reached
                keys = [case.sha256 for case in suite]
                stored = load_attempts(store, job.rules.check, cases=keys, systems=[system.sha256])
                judged = [a.verdict for a in stored if a.trial < job.trials and a.verdict]
                rate = sum(v.passed for v in judged) / len(judged) if judged else None
                if rate is None or not goes_on(rate, threshold):
                    break
        trials = [len(plan.units) for plan in plans]
        about = _of_cases(system, reached, sum(trials))
        about.append(f"trials that are certain: {sum(trials[:1])}")
        return _planning("plan capability", job, system, store, about, plans)


def dissect(job: PlanJob, store: Store, failed: Sequence[Case], how: DissectOptions) -> Bill:
    """What `plan dissect` would ask of these failed cases."""
    system = plan_job.make_system(job)
    plan = plan_dissections(store, failed, system, how)
    least, every, most = how.runs
    about = [
        f"agent: {system.name}",
        f"failed cases: {len(failed)}, of them to dissect: {len(plan.units)}",
        f"runs of the agent for each: at least {least}, at most {most}",
    ]
    why = (
        f"{least} runs of each case at least; at most {every}, where no stage before the last "
        f"succeeds, each with up to {how.retries} more without a verdict; a run is up to one "
        "request more than --turns"
    )
    return _planning("plan dissect", job, system, store, about, [plan], (least, most), why)


def _of_cases(system: System, cases: Sequence[Case], trials: int) -> list[str]:
    sizes = Counter(case.n for case in cases)
    return [
        f"agent: {system.name}",
        f"cases: {len(cases)}; trials to run: {trials}",
        "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items())),
    ]


def _planning(
    command: str, job: PlanJob, system: System, store: Store, about: Sequence[str],
    plans: Sequence[TrialPlan[Any]], runs: tuple[int, int] = (1, 1), why: str = "",
) -> Bill:  # fmt: skip
    """The bill of an agent at planning cases; a unit takes `runs` of it, at least and at most. Of
    several plans the first alone is certain."""
    budget = job.limits.budget(plan_job.spent(store, system.sha256))
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
            drafts[0], usual=case.n + 1, most=job.rules.limits.turns + 1,
            certain=runs[0] * (case.sha256 in certain), times=runs[1],
        )  # fmt: skip

    return Bill(command, about, (part.rehearse(plans, count),), budget)


def _case(unit: Case | tuple[Case, int]) -> Case:
    return unit[0] if isinstance(unit, tuple) else unit
