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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.agents import System
from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.chart import Edge
from agenteval.evaluators.workflows.conditions import holds
from agenteval.evaluators.workflows.conformance import Cause
from agenteval.evaluators.workflows.folder import StatefulBackend
from agenteval.evaluators.workflows.scenario import Profile, Role
from agenteval.evaluators.workflows.scripted.walker import Book, Do, Plan, Walker, lead
from agenteval.evaluators.workflows.simulators.nouns import Heard
from agenteval.evaluators.workflows.simulators.tools import ToolSimulator
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser, plain
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
    """The assistants whose behaviour has a place in what this user wants, by name."""
    found = behaviours(role, profile, seed=seed, backend=backend)
    return {name: b.system for name, b in found.items() if b.system is not None}


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
    found: dict[str, Behaviour] = {}
    for kind, plan in plans.items():
        if isinstance(plan, str):
            found[kind] = Behaviour(kind, why_not=plan)
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
        found[kind] = Behaviour(kind, CAUSE[kind], plan.at, system)
    return found


def _skipping(
    book: Book, role: Role, profile: Profile, rehearsal: Rehearsal | None, seed: int
) -> Plan | str:
    """What leaves out a step of this user's, or why it offers no place for that.

    Tools that write are preferred, so that the final state shows the mistake too; then the last
    step; equals in an order by chance.
    """
    if not profile.actions:
        return "the user wants no call"
    walk = gold_walk(book, profile, rehearsal.returned if rehearsal else ())
    if not walk.segments:
        return "the gold calls are no walk through the charts"
    gold = profile.actions
    places = [at for at in range(len(gold)) if walk.misses(at)]
    draw = random.Random(  # noqa: S311
        content_hash([seed, role.id, profile.id, "skips_step"])
    )

    def rank(at: int) -> tuple[bool, bool]:
        return book.tools[gold[at].tool].effect == "write", at == len(gold) - 1

    ranked = sorted(draw.sample(places, len(places)), key=rank, reverse=True)
    plans = [Plan(at, gold, walk.edges()) for at in ranked]
    if not plans:
        return "no step is missed when it is left out"
    fitting = (plan for plan in plans if rehearsal is None or rehearsal.shows(plan))
    return next(fitting, "wherever it is planted, the tools make another mistake of it")


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
        said = [Message(role="user", content=self.profile.opening)]
        made: list[tuple[str, dict[str, JsonValue], str | None]] = []
        walk = lead(self.book, plan)
        step = next(walk)
        while len(made) < _MOST and len(said) < 2 * _MOST:
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
            said.append(Message(role="assistant", content=step.text))
            heard = Heard(self.profile, self.role.now, tuple(said), self.seed)
            answer = ScriptedUser().say(heard)
            if answer.done:
                break
            said.append(Message(role="user", content=answer.text))
            step = walk.send(answer.text)
        return tuple(made)

    @cached_property
    def right(self) -> tuple[tuple[str, dict[str, JsonValue], str | None], ...]:
        """What the perfect assistant calls."""
        return self.calls(Plan())

    @cached_property
    def returned(self) -> Returned:
        """What the perfect assistant's calls returned, those that were refused nothing."""
        return tuple((tool, json.loads(result or "{}")) for tool, _, result in self.right)

    def shows(self, plan: Plan) -> bool:
        """Whether the step that is left out, and nothing else, is what goes wrong.

        Where the perfect assistant does not make the gold calls nothing shows.
        """
        gold = [(a.tool, a.arguments) for a in plan.gold]
        if plan.at is None or [made[:2] for made in self.right] != gold:
            return False
        due = [canonical_json(list(made)) for made in self.right]
        made = [canonical_json(list(made)) for made in self.calls(plan)]
        return made == due[: plan.at] + due[plan.at + 1 :]


Path = tuple[tuple[int, Edge], ...]  # edges with the number of calls made before them
Allowed = Callable[[int, Edge], bool]  # may this edge be taken after so many calls?
Returned = Sequence[tuple[str, Mapping[str, Any]]]  # what each call returned, in their order


@dataclass(frozen=True)
class Segment:
    """The gold calls of one scenario: from `first` on, as many as `tools`, by this way."""

    scenario: str
    first: int
    tools: tuple[str, ...]
    path: Path

    def taken(self, count: int) -> frozenset[Edge]:
        """Edges with a condition that were taken when `count` calls of it were made."""
        return frozenset(e for n, e in self.path if n == count and e.condition is not None)

    def out_of(self, count: int) -> Edge | None:
        """The first edge that was taken when `count` calls of it were made."""
        return next((e for n, e in self.path if n == count), None)


@dataclass(frozen=True)
class GoldWalk:
    """The gold calls of a profile as walks, one after the other; none when they are no walk."""

    book: Book
    segments: tuple[Segment, ...] = field(default=())

    def segment(self, at: int) -> Segment:
        """The one that holds the call of this index."""
        return next(s for s in reversed(self.segments) if s.first <= at and s.tools)

    def edges(self) -> dict[int, Edge]:
        """The edge out of the node of each call, by the index of the call."""
        found = {}
        for segment in self.segments:
            for count in range(1, len(segment.tools) + 1):
                edge = segment.out_of(count)
                if edge is not None:
                    found[segment.first + count - 1] = edge
        return found

    def misses(self, at: int) -> bool:
        """Whether the calls without this one are seen to lack it."""
        segment = self.segment(at)
        mine, count = at - segment.first, len(segment.tools)
        left = [i for i in range(count) if i != mine]
        if not left and len(self.book.charts) > 1:
            return False  # of several scenarios one is not seen to have begun
        calls = sum(len(s.tools) for s in self.segments)
        ends_it = mine == count - 1 and at < calls - 1  # the next scenario follows
        return not (ends_it or self.stale(at) or self.can_be(segment, left))

    def stale(self, at: int) -> bool:
        """Whether values of earlier calls could stand for those by which this one's node goes on:
        without the call they decide."""
        segment = self.segment(at)
        out = segment.out_of(at - segment.first + 1)
        if out is None:
            return False
        asked = {
            comparison.field
            for edge in self.book.charts[segment.scenario].leaving(out.source)
            if edge.condition is not None
            for alternative in edge.condition.alternatives
            for comparison in alternative
        }
        before = [tool for s in self.segments for tool in s.tools][:at]
        return any(asked & set(self.book.tools[tool].fields) for tool in before)

    def can_be(self, segment: Segment, kept: Sequence[int]) -> bool:
        """Whether these of its calls (by their index in it, in this order) are a walk too, with
        conditions as they were."""
        fixed = {n: segment.taken(i + 1) for n, i in enumerate(kept, 1)}

        def allowed(done: int, edge: Edge) -> bool:
            taken = fixed.get(done)
            return edge.condition is None or not taken or edge in taken

        tools = [segment.tools[i] for i in kept]
        return find(self.book, segment.scenario, tools, allowed) is not None


def gold_walk(book: Book, profile: Profile, returned: Returned = ()) -> GoldWalk:
    """The gold calls of a profile on the charts of its scenarios.

    The order of the scenarios is that of the user's choices among what can be begun, else that of
    the profile. With what the calls returned, conditions that are false then are not walked;
    without, the shortest way is taken.
    """
    tools = [action.tool for action in profile.actions]
    by_label = {label.casefold(): id for label, id, _ in reversed(book.starts())}
    order = [by_label[c] for c in (plain(x).casefold() for x in profile.choices) if c in by_label]
    order = order or list(dict.fromkeys(profile.scenarios))
    return GoldWalk(book, tuple(_split(book, order, tools, returned, 0) or ()))


def _split(
    book: Book, order: Sequence[str], tools: Sequence[str], returned: Returned, first: int
) -> list[Segment] | None:
    if not order:
        return [] if first == len(tools) else None

    def allowed(done: int, edge: Edge) -> bool:
        known = returned[first : first + done]
        return edge.condition is None or holds(edge.condition, known) is not False

    for end in range(len(tools), first - 1, -1):
        mine = tuple(tools[first:end])
        path = find(book, order[0], mine, allowed)
        if path is not None:
            rest = _split(book, order[1:], tools, returned, end)
            if rest is not None:
                return [Segment(order[0], first, mine, path), *rest]
    return None


def find(
    book: Book,
    scenario: str,
    tools: Sequence[str],
    allowed: Allowed = lambda done, edge: True,
) -> Path | None:
    """The way of fewest edges to an end on which exactly these tools are called; None without
    one."""
    chart = book.charts[scenario]
    names = {node.id: book.calls(node) for node in chart.nodes}
    queue: deque[tuple[str, int, Path]] = deque([(chart.start.id, 0, ())])
    seen = {(chart.start.id, 0)}
    while queue:
        node, done, path = queue.popleft()
        leaving = chart.leaving(node)
        if done == len(tools) and not leaving:
            return path
        for edge in leaving:
            after = done + len(names[edge.target])
            state = (edge.target, after)
            fits = tuple(tools[done:after]) == names[edge.target] and allowed(done, edge)
            if fits and state not in seen:
                seen.add(state)
                queue.append((edge.target, after, (*path, (done, edge))))
    return None
