"""A scripted assistant with the scripted user and the role's backend, without anything around."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.scenario import Profile, Role
from agenteval.evaluators.workflows.scripted.places import GoldWalk
from agenteval.evaluators.workflows.scripted.plan import Plan
from agenteval.evaluators.workflows.scripted.walker import Book, Do, lead
from agenteval.evaluators.workflows.simulators.nouns import Heard
from agenteval.evaluators.workflows.simulators.tools import ToolSession, ToolSimulator
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
from agenteval.records import Message, canonical_json

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.scripted.behaviours import Machine

_MOST = 60  # calls: one that loops goes on for ever
_MOST_WORDS = 60  # messages of the user


@dataclass(frozen=True, slots=True)
class Made:
    """A call, and what came of it; `result` is None when it was refused."""

    tool: str
    arguments: dict[str, JsonValue]
    result: str | None

    @property
    def key(self) -> str:
        """The same for the same call with the same result."""
        return canonical_json([self.tool, self.arguments, self.result])


@dataclass(frozen=True)
class Rehearsal:
    """Rehearses plans for one user."""

    book: Book
    role: Role
    profile: Profile
    backend: Machine
    seed: int = 0

    def calls(self, plan: Plan) -> tuple[Made, ...]:
        """What an assistant with this plan calls. Raises AgentevalError for a broken backend."""
        tools = ToolSimulator("backend", backend=self.backend).open(self.role, self.profile)
        said = [Message(role="user", content=self.profile.opening)]
        made: list[Made] = []
        walk = lead(self.book, plan)
        step = next(walk)
        while len(made) < _MOST and len(said) < 2 * _MOST_WORDS:
            if isinstance(step, Do):
                made.append(_made(step, tools))
                step = walk.send(made[-1].result or "Not carried out.")
                continue
            said.append(Message(role="assistant", content=step.text))
            heard = Heard(self.profile, self.role.now, tuple(said), self.seed)
            answer = ScriptedUser().say(heard)
            if answer.done:
                break
            said.append(Message(role="user", content=answer.text))
            step = walk.send(answer.text)
        return tuple(made)

    @cached_property
    def right(self) -> tuple[Made, ...]:
        """What the perfect assistant calls."""
        return self.calls(Plan())

    @cached_property
    def returned(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """What the perfect assistant's calls returned, those that were refused nothing."""
        return tuple((m.tool, json.loads(m.result or "{}")) for m in self.right)

    def shows(self, plan: Plan, walk: GoldWalk) -> bool:
        """Whether the planned mistake, and nothing else, is what goes wrong.

        Where the perfect assistant does not make the gold calls nothing shows.
        """
        gold = [(a.tool, a.arguments) for a in plan.gold]
        if plan.at is None or [(m.tool, m.arguments) for m in self.right] != gold:
            return False
        wrong, at = self.calls(plan), plan.at
        keys, due = [m.key for m in wrong], [m.key for m in self.right]
        if plan.kind == "skips_step":
            return keys == due[:at] + due[at + 1 :]
        if plan.kind == "stops_early":
            return keys == due[:at]
        if plan.kind == "swaps_steps":
            return _swapped(wrong, self.right, at)
        if keys[:at] != due[:at] or len(keys) <= at:
            return False
        if plan.kind == "wrong_parameter":
            return wrong[at].result is None
        if keys[at] != due[at] or len(keys) == at + 1 or wrong[at + 1].result is None:
            return False
        if plan.kind == "loops":
            return keys[at + 1] == keys[at]
        return _elsewhere(wrong[at + 1].tool, plan, walk)

    def cut_short(self, plan: Plan, walk: GoldWalk) -> bool:
        """Whether a wrong branch ends the procedure where a step is due."""
        if plan.kind != "wrong_branch" or plan.at is None or walk.cross:
            return False
        due = plan.at + 1
        left = [m.key for m in self.right[:due]]
        ends = due < len(self.right) and [m.key for m in self.calls(plan)] == left
        return ends and not (walk.stale(due) or walk.can_be(walk.segment(due), range(due)))


def _swapped(wrong: Sequence[Made], right: Sequence[Made], at: int) -> bool:
    """The late one of the two may return something else now, all others return the same."""
    late = wrong[at + 1 : at + 2]
    if not late or late[0].result is None:
        return False
    same = (late[0].tool, late[0].arguments) == (right[at].tool, right[at].arguments)
    others = [m.key for m in (*wrong[: at + 1], *wrong[at + 2 :])]
    return same and others == [m.key for m in (*right[:at], *right[at + 1 :])]


def _elsewhere(tool: str, plan: Plan, walk: GoldWalk) -> bool:
    """Whether a call that follows the wrong edge cannot follow the right one."""
    assert plan.at is not None
    segment = walk.segment(plan.at)
    mine = plan.at - segment.first
    expected = tool in segment.tools[mine : mine + 2] or walk.could_call(segment, mine, tool)
    return not (expected or walk.opens(tool))


def _made(step: Do, tools: ToolSession) -> Made:
    backend = tools.backend
    try:
        answer = backend(step.tool, step.arguments)
    except ValueError:
        return Made(step.tool, step.arguments, None)
    if not isinstance(answer, str):
        raise AgentevalError("only a backend that answers at once can be rehearsed with")
    return Made(step.tool, step.arguments, answer)
