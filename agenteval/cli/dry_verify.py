"""What `verify --dry-run` says: texts, calls, tokens and cost, the probes' beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agenteval.cli.dry import (
    REPLY_TOKENS_PER_CRITERION,
    Estimate,
    estimate,
    planned_store,
    silent_judge,
)
from agenteval.cli.job import Job
from agenteval.cli.probe_asking import OTHER_WAYS, Asking, attack_plan

if TYPE_CHECKING:
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.models.factory import ModelChoice
    from agenteval.pipeline import Plan
    from agenteval.records import Criterion, Task
    from agenteval.store import Store
    from agenteval.verification import Material


def describe(
    job: Job, task: Task, material: Material, options: ProbeOptions | None, rounds: int = 1
) -> Iterator[str]:
    """Lines for a person; without `options` nothing is probed. Raises InputError for a model that
    cannot be chosen."""
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url, need_key=False)
    job.limits.budget()  # a cap without a price is told before anything else
    texts, originals = material.texts, len(material.items)
    yield f"texts: {originals} originals and {texts - originals} perturbed copies"
    yield (
        f"cells: {texts} texts × {len(material.criteria)} criteria × {job.repeats} repeats = "
        f"{texts * len(material.criteria) * job.repeats}"
    )
    if choice.kind == "embedded":
        yield f"calls: {texts * job.repeats} on this machine at most, no requests, no cost"
        yield from _embedded_probes(material, options)
        return
    with planned_store(job.store) as store:
        yield from _chat(job, choice, task, material, options, store)
    if rounds > 1:
        yield (
            f"rounds: this is the first of {rounds}; each further one asks the critic for new "
            "criteria and judges them on all texts, which is not counted here"
        )


def _embedded_probes(material: Material, options: ProbeOptions | None) -> Iterator[str]:
    from agenteval.evaluators.utility.probes.targets import most_targets

    if options is None:
        return
    runs = most_targets([run for run, _ in material.items], options)
    yield f"probes: {2 * runs * material.repeats} calls more at most, on this machine"
    yield "  scale order and wording do not apply to this judge"
    yield f"  {2 * runs * material.repeats} with text added: {_added(runs, material.repeats)}"


def _added(runs: int, repeats: int) -> str:
    return f"an attack and a control in {runs} runs × {repeats} repeats"


def _chat(
    job: Job,
    choice: ModelChoice,
    task: Task,
    material: Material,
    options: ProbeOptions | None,
    store: Store,
) -> Iterator[str]:
    from agenteval.verification import plan_verification

    judge = silent_judge(job, choice, task)
    plan = plan_verification(judge, material, store, retry_failed=job.retry_failed)
    yield f"stored already: {plan.done} scored, {plan.failed} failed"
    yield f"calls: {len(plan.units)} (a reply out of form costs one more)"
    plain = estimate(judge, plan.units, choice.name)
    yield from plain.lines(job.limits)
    if options is None:
        yield from plain.reserve(job.limits)
        return
    asking = Asking(job, task, store, judge, material)
    ways = _ways(asking, choice)
    attacks, runs, known = _attacks(asking, plan, plain, options, choice.name)
    more, most = ways + attacks, "" if known else " at most"
    originals, repeats = len(material.items), material.repeats
    yield f"probes: {more.calls} calls more{most}"
    yield (
        f"  {ways.calls} in other ways: {originals} originals × {repeats} repeats × "
        f"{len(OTHER_WAYS)} ways, less what is stored"
    )
    yield f"  {attacks.calls} with text added: {_added(runs, repeats)}"
    said = f"estimated{most.replace(' at', ', at')}"
    yield from (f"  {line}" for line in more.lines(job.limits, said))
    yield "all together:"
    yield from (f"  {line}" for line in (plain + more).lines(job.limits, said))
    yield from (plain + more).reserve(job.limits)


def _ways(asking: Asking, choice: ModelChoice) -> Estimate:
    """What is missing of the originals asked in every other way."""
    found = Estimate()
    for change in OTHER_WAYS.values():
        judge = silent_judge(asking.job, choice, asking.task, **change)
        found += estimate(judge, asking.way_plan(judge).units, choice.name)
    return found


def _attacks(
    asking: Asking, plan: Plan, plain: Estimate, options: ProbeOptions, model: str
) -> tuple[Estimate, int, bool]:
    """Calls with an attack or a control, the runs that get one, and whether that is known.

    The plain ratings choose the runs: while some are missing, as many as could be chosen count.
    """
    from agenteval.evaluators.utility.probes.targets import Probing, choose_targets, most_targets

    judge, material = asking.plain, asking.material
    if not plan.units:
        table = asking.table(judge.source.sha256, copies=True)
        targets = choose_targets(material.items, material.criteria, table, options)
        if not targets:
            return Estimate(), 0, True
        missing, _ = attack_plan(asking, Probing(judge), targets, options)
        return estimate(judge, missing.units, model), len(targets), True
    runs = most_targets([run for run, _ in material.items], options)
    batches = judge.batches(material.criteria)
    calls = 2 * runs * material.repeats * len(batches)
    prompt = plain.prompt / plain.calls + _longest_attack(material.criteria)
    reply = 2 * runs * material.repeats * len(material.criteria) * REPLY_TOKENS_PER_CRITERION
    return Estimate(calls, round(calls * prompt), reply, plain.reserved), runs, False


def _longest_attack(criteria: tuple[Criterion, ...]) -> int:
    """Tokens that an attack adds to a prompt, as roughly as `estimate_tokens` counts."""
    from agenteval.evaluators.utility.probes.attacks import KINDS, attack_text

    return max(len(attack_text(kind, criteria).encode()) for kind in KINDS) // 3
