"""Scripted assistants with a known behaviour: a perfect one, and one for each planted mistake."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agenteval.agents.dialogue import AssistantSystem
from agenteval.evaluators.workflows.conformance import Cause
from agenteval.evaluators.workflows.folder import StatefulBackend
from agenteval.evaluators.workflows.scenario import Profile, Role
from agenteval.evaluators.workflows.scripted.candidates import NO_PLACE, candidates
from agenteval.evaluators.workflows.scripted.places import gold_walk
from agenteval.evaluators.workflows.scripted.plan import Kind, Plan
from agenteval.evaluators.workflows.scripted.rehearsal import Rehearsal
from agenteval.evaluators.workflows.scripted.walker import Book, Walker
from agenteval.records import content_hash

CAUSE: Mapping[Kind, Cause | None] = {
    "perfect": None,
    "skips_step": "missing_step",
    "swaps_steps": "wrong_order",
    "wrong_parameter": "tool_use",
    "wrong_branch": "wrong_transition",
    "stops_early": "missing_step",
    "loops": "wrong_order",
}
RANDOM = "random"
Machine = Callable[[], StatefulBackend]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A scripted assistant for one user, or `why_not` there is none. `planted` is the cause that
    conformance must find in its calls, None for the perfect one. `at` is the gold call concerned.
    """

    name: str
    kind: Kind
    planted: Cause | None = None
    at: int | None = None
    system: AssistantSystem | None = None
    why_not: str = ""


def scripted_assistants(
    role: Role, profile: Profile, *, seed: int = 0, backend: Machine | None = None
) -> Mapping[str, AssistantSystem]:
    """The assistants whose behaviour has a place in what this user wants, by name."""
    found = behaviours(role, profile, seed=seed, backend=backend)
    return {name: b.system for name, b in found.items() if b.system is not None}


def behaviours(
    role: Role, profile: Profile, *, seed: int = 0, backend: Machine | None = None
) -> Mapping[str, Behaviour]:
    """All behaviours, by name: the seven kinds, and `random`, which is one of them by seed.

    A mistake is planted where the charts say that it shows. With the role's `backend` it is
    rehearsed as well: a place does not count where the tools answer in such a way that something
    else goes wrong (they refuse the second of two steps when it comes first, say). Raises
    InputError for a chart outside the subset.

    The calls cannot tell a wrong branch that leads to none from a step left out: there the cause
    that is planted is a missing step.
    """
    book = Book.of(role, profile.scenarios)
    rehearsal = Rehearsal(book, role, profile, backend, seed) if backend else None
    found: dict[str, Behaviour] = {}
    for kind in CAUSE:
        plan = _planned(kind, book, (role, profile), rehearsal, seed)
        found[kind] = _behaviour(kind, plan, book, (role, profile))
    able = [b for b in found.values() if b.system is not None]
    picked = _draw(seed, role, profile, RANDOM).choice(able)
    assert picked.system is not None  # `able` holds no other
    system = replace(picked.system, name=f"scripted:{RANDOM}")
    found[RANDOM] = replace(picked, name=RANDOM, system=system)
    return found


def _planned(
    kind: Kind,
    book: Book,
    about: tuple[Role, Profile],
    rehearsal: Rehearsal | None,
    seed: int,
) -> Plan | str:
    """The plan, or why this user offers no place for the mistake."""
    role, profile = about
    if kind == "perfect":
        return Plan()
    if not profile.actions:
        return "the user wants no call"
    walk = gold_walk(book, profile, rehearsal.returned if rehearsal else ())
    if not walk.segments:
        return "the gold calls are no walk through the charts"
    plans = candidates(kind, walk, profile, _draw(seed, role, profile, kind))
    if rehearsal is None:
        return next((plan for plan in plans if not plan.rehearsed), NO_PLACE[kind])
    fitting = next((plan for plan in plans if rehearsal.shows(plan, walk)), None)
    if fitting is None:
        short = (plan for plan in plans if rehearsal.cut_short(plan, walk))
        fitting = next((replace(plan, cut_short=True) for plan in short), None)
    if fitting is None and any(not plan.rehearsed for plan in plans):
        return "wherever it is planted, the tools make another mistake of it"
    return fitting or NO_PLACE[kind]


def _draw(seed: int, role: Role, profile: Profile, name: str) -> random.Random:
    return random.Random(content_hash([seed, role.id, profile.id, name]))  # noqa: S311


def _behaviour(kind: Kind, plan: Plan | str, book: Book, about: tuple[Role, Profile]) -> Behaviour:
    if isinstance(plan, str):
        return Behaviour(kind, kind, why_not=plan)
    role, profile = about
    planted: Cause | None = "missing_step" if plan.cut_short else CAUSE[kind]
    parameters: dict[str, JsonValue] = {
        "adapter": "scripted",
        "version": 2,
        "role": role.sha256,
        "kind": kind,
        "planted": planted,
        "at": plan.at,
    }
    if kind != "perfect":
        parameters["profile"] = content_hash(profile.model_dump(mode="json"))
        parameters["spoiled"] = list(plan.spoiled) if plan.spoiled else None
        parameters["edge"] = plan.wrong_edge.label if plan.wrong_edge else None
        parameters["onward"] = [edge.label for edge in plan.onward]
    system = AssistantSystem(f"scripted:{kind}", lambda: Walker(book, plan), parameters)
    return Behaviour(kind, kind, planted, plan.at, system)
