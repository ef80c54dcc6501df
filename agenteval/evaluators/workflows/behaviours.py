"""Scripted assistants whose behaviour is known: one that makes no mistake, and one that leaves out
a step where the charts say that it shows.

A place shows when the calls without the step are no walk through the charts any more, going by the
conditions that held when the user was served right. Who is served then cannot have been served by
the procedure. Over several scenarios it is the user's will which of them begin; so there only
places count where the mistake cannot be read like that.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from pydantic import JsonValue

from agenteval.agents import System
from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.align import Call, align
from agenteval.evaluators.workflows.backend import StatefulBackend
from agenteval.evaluators.workflows.chart import Edge
from agenteval.evaluators.workflows.conformance import Cause, conform
from agenteval.evaluators.workflows.procedure import Procedure, procedure
from agenteval.evaluators.workflows.scenario import Profile, Role
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import Heard, ScriptedUser
from agenteval.evaluators.workflows.walker import Book, Do, Plan, Walker, lead
from agenteval.records import Message, canonical_json, content_hash

Kind = Literal["perfect", "skips_step"]
CAUSE: Mapping[Kind, Cause | None] = {"perfect": None, "skips_step": "missing_step"}
Machine = Callable[[], StatefulBackend]
_MOST = 60  # calls, and messages of the user: one that is refused may go on for ever


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A scripted assistant for one user, or `why_not` there is none. `planted` is the cause that
    conformance must find in its calls, None for the perfect one. `at` is the gold call concerned.
    """

    name: Kind
    planted: Cause | None = None
    at: int | None = None
    system: System | None = None
    why_not: str = ""


def scripted_assistants(
    role: Role, profile: Profile, *, seed: int = 0, backend: Machine | None = None
) -> Mapping[str, System]:
    """The assistants whose behaviour has a place in what this user wants, by name; none where a
    scenario has no chart, which they walk by."""
    if not role.charted(profile.scenarios):
        return {}
    every = behaviours(role, profile, seed=seed, backend=backend)
    return {name: b.system for name, b in every.items() if b.system is not None}


def behaviours(
    role: Role, profile: Profile, *, seed: int = 0, backend: Machine | None = None
) -> Mapping[str, Behaviour]:
    """Both behaviours, by name.

    A mistake is planted where the charts say that it shows. With the role's `backend` it is
    rehearsed as well: a place does not count where the tools answer in such a way that something
    else goes wrong. Raises InputError for a chart outside the subset.
    """
    book = Book.of(role, profile.scenarios)
    rehearsal = Rehearsal(book, role, profile, backend, seed) if backend else None
    skip = _skipping(book, role, profile, rehearsal, seed)
    plans: dict[Kind, Plan | str] = {"perfect": Plan(), "skips_step": skip}
    by_name: dict[str, Behaviour] = {}
    for kind, plan in plans.items():
        if isinstance(plan, str):
            by_name[kind] = Behaviour(kind, why_not=plan)
            continue
        parameters: dict[str, JsonValue] = {
            "adapter": "scripted",
            "version": 2,
            "role": role.sha256,
            "kind": kind,
            "planted": CAUSE[kind],
            "at": plan.at,
        }
        if kind != "perfect":
            parameters["profile"] = content_hash(profile.model_dump(mode="json"))
        system = System(f"scripted:{kind}", partial(Walker, book, plan), parameters)
        by_name[kind] = Behaviour(kind, CAUSE[kind], plan.at, system)
    return by_name


def _skipping(
    book: Book, role: Role, profile: Profile, rehearsal: Rehearsal | None, seed: int
) -> Plan | str:
    """What leaves out a step of this user's, or why it offers no place for that.

    Tools that write are preferred, so that the final state shows the mistake too; then the last
    step; equals in an order by chance.
    """
    gold = profile.actions
    if not gold:
        return "the user wants no call"
    walk = procedure(role, profile.scenarios)
    calls = [Call(tool=action.tool, arguments=action.arguments) for action in gold]
    if rehearsal and rehearsal.is_gold:
        results = [json.loads(result or "{}") for _, _, result in rehearsal.right]
        calls = [c.model_copy(update={"returned": r}) for c, r in zip(calls, results, strict=True)]
    if walk.shortest is None or (reading := align(walk, calls)).cost:
        return "the gold calls are no walk through the charts"
    edges: dict[int, Edge] = {}  # the first one after each call
    for move in reading.moves:
        if move.edge is not None and move.at:
            edges.setdefault(move.at - 1, move.edge)
    draw = random.Random(  # noqa: S311
        content_hash([seed, role.id, profile.id, "skips_step"])
    )
    places = [at for at in range(len(gold)) if _misses(walk, calls, at)]

    def rank(at: int) -> tuple[bool, bool]:
        return book.tools[gold[at].tool].effect == "write", at == len(gold) - 1

    ranked = sorted(draw.sample(places, len(places)), key=rank, reverse=True)
    plans = [Plan(at, gold, edges) for at in ranked]
    if not plans:
        return "no step is missed when it is left out"
    fitting = (plan for plan in plans if rehearsal is None or rehearsal.shows(plan))
    return next(fitting, "wherever it is planted, the tools make another mistake of it")


def _misses(walk: Procedure, calls: Sequence[Call], at: int) -> bool:
    """Whether a step is missing from the calls without this one, and nothing else is wrong."""
    deviations = conform(walk, [*calls[:at], *calls[at + 1 :]]).deviations
    return [d.cause for d in deviations] == ["missing_step"]


@dataclass(frozen=True)
class Rehearsal:
    """A scripted assistant with the scripted user and the role's backend, and nothing around."""

    book: Book
    role: Role
    profile: Profile
    backend: Machine
    seed: int = 0

    def calls(self, plan: Plan) -> tuple[tuple[str, dict[str, JsonValue], str | None], ...]:
        """(tool, arguments, result) of what an assistant with this plan calls; no result of a call
        that was refused. Raises AgentevalError for a broken backend."""
        tools = ToolSimulator("backend", backend=self.backend).open(self.role, self.profile)
        messages = [Message(role="user", content=self.profile.opening)]
        made: list[tuple[str, dict[str, JsonValue], str | None]] = []
        walk = lead(self.book, plan)
        step = next(walk)
        while len(made) < _MOST and len(messages) < 2 * _MOST:
            if isinstance(step, Do):
                try:
                    result = tools.backend(step.tool, step.arguments)
                except ValueError:
                    result = None
                if not isinstance(result, str | None):
                    raise AgentevalError("only a backend that answers at once can be rehearsed")
                made.append((step.tool, step.arguments, result))
                step = walk.send(result or "Not carried out.")
                continue
            messages.append(Message(role="assistant", content=step.text))
            heard = Heard(self.profile, self.role.now, tuple(messages), self.seed)
            answer = ScriptedUser().say(heard)
            if answer.done:
                break
            messages.append(Message(role="user", content=answer.text))
            step = walk.send(answer.text)
        return tuple(made)

    @cached_property
    def right(self) -> tuple[tuple[str, dict[str, JsonValue], str | None], ...]:
        """What the perfect assistant calls."""
        return self.calls(Plan())

    @cached_property
    def is_gold(self) -> bool:
        """Whether the perfect assistant makes the gold calls, and no other."""
        return [made[:2] for made in self.right] == [
            (action.tool, action.arguments) for action in self.profile.actions
        ]

    def shows(self, plan: Plan) -> bool:
        """Whether the step that is left out, and nothing else, is what goes wrong.

        Where the perfect assistant does not make the gold calls nothing shows.
        """
        if plan.at is None or not self.is_gold:
            return False
        due = [canonical_json(list(made)) for made in self.right]
        made = [canonical_json(list(made)) for made in self.calls(plan)]
        return made == due[: plan.at] + due[plan.at + 1 :]
