"""Where each kind of mistake can be planted, the most telling places first.

Tools that write are preferred where the final state shall show the mistake too. Over several
scenarios it is the user's will which of them begin, and one may be left for good when another
begins; so there only places count where the mistake cannot be read like that.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.chart.nouns import Edge
from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.scripted.places import GoldWalk, Segment
from agenteval.evaluators.workflows.scripted.plan import Kind, Plan
from agenteval.evaluators.workflows.simulators.schema import complaint

NO_PLACE: Mapping[Kind, str] = {
    "skips_step": "no step is missed when it is left out",
    "swaps_steps": "no two steps that follow each other have a fixed order",
    "wrong_parameter": "no call has a parameter that can be wrong",
    "wrong_branch": "no wrong branch leads to another call",
    "stops_early": "it may stop at any time",
    "loops": "no call only reads and may not be repeated",
}

Way = tuple[Edge, ...]


def candidates(kind: Kind, walk: GoldWalk, profile: Profile, draw: random.Random) -> list[Plan]:
    """Plans of this kind, best first, equals in an order by chance; none when there is no place."""
    plan = Plan(kind, gold=profile.actions, edges=walk.edges())
    return _FINDERS[kind](plan, walk, profile, draw)


def _ranked(places: Sequence[int], rank: Callable[[int], Any], draw: random.Random) -> list[int]:
    """The places of the greatest rank first."""
    mixed = draw.sample(places, len(places))
    return sorted(mixed, key=rank, reverse=True)


def _within(segment: Segment, at: int) -> tuple[int, list[int]]:
    """The index within the segment, and all indices of it."""
    return at - segment.first, list(range(len(segment.tools)))


def _writes(walk: GoldWalk, plan: Plan, at: int) -> bool:
    return walk.book.tools[plan.gold[at].tool].effect == "write"


def _skip(plan: Plan, walk: GoldWalk, _: Profile, draw: random.Random) -> list[Plan]:
    places = []
    for at in range(len(plan.gold)):
        segment = walk.segment(at)
        mine, all_of_it = _within(segment, at)
        left = [i for i in all_of_it if i != mine]
        ends_it = mine == all_of_it[-1] and at < len(plan.gold) - 1  # the next scenario follows
        unclear = ends_it or walk.stale(at) or walk.can_be(segment, left)
        if walk.begun(left) and not unclear:
            places.append(at)

    def rank(at: int) -> tuple[bool, bool]:
        return _writes(walk, plan, at), at == len(plan.gold) - 1

    return [replace(plan, at=at) for at in _ranked(places, rank, draw)]


def _swap(plan: Plan, walk: GoldWalk, _: Profile, draw: random.Random) -> list[Plan]:
    places = []
    for at in range(len(plan.gold) - 1):
        segment = walk.segment(at)
        mine, _all = _within(segment, at)
        first, second = segment.tools[mine], segment.tools[mine + 1 : mine + 2]
        if second and second[0] != first and not _may_swap(walk, segment, mine):
            places.append(at)
    ranked = _ranked(places, lambda at: not _writes(walk, plan, at), draw)
    return [replace(plan, at=at) for at in ranked]


def _may_swap(walk: GoldWalk, segment: Segment, mine: int) -> bool:
    """Whether a call and the next one in the other order are, or look like, something else: a walk
    with one call more, without the late one, or with the pair made twice."""
    tools = segment.tools
    late, early = tools[mine], tools[mine + 1]
    before, after = tools[:mine], tools[mine + 2 :]
    return (
        walk.alone(late)
        or walk.nearly(segment, (*before, early, late, *after))
        or walk.is_walk(segment, (*before, early, *after))
        or walk.is_walk(segment, (*before, late, early, late, early, *after))
    )


def _stop(plan: Plan, walk: GoldWalk, _: Profile, draw: random.Random) -> list[Plan]:
    places = []
    for at in range(len(plan.gold)):
        segment = walk.segment(at)
        mine, all_of_it = _within(segment, at)
        left = all_of_it[:mine]
        unclear = walk.stale(at) or walk.can_be(segment, left)
        if walk.begun(left) and not unclear:
            places.append(at)

    def rank(at: int) -> tuple[bool, bool]:
        left = range(at, len(plan.gold))
        return any(_writes(walk, plan, i) for i in left), at > 0

    return [replace(plan, at=at) for at in _ranked(places, rank, draw)]


def _parameter(plan: Plan, walk: GoldWalk, _: Profile, draw: random.Random) -> list[Plan]:
    found = []
    for at in _ranked(range(len(plan.gold)), lambda at: _writes(walk, plan, at), draw):
        action, schema = plan.gold[at], walk.book.tools[plan.gold[at].tool].parameters
        spoils: list[tuple[str, JsonValue]] = []
        for name, value in action.arguments.items():
            other: JsonValue = 12345 if isinstance(value, str) else "a few"
            spoils += [(name, None), (name, other)]
        for spoiled in draw.sample(spoils, len(spoils)):
            spoiling = replace(plan, at=at, spoiled=spoiled)
            if complaint(schema, spoiling.spoil(dict(action.arguments))):
                found.append(spoiling)
    return found


def _branch(plan: Plan, walk: GoldWalk, profile: Profile, draw: random.Random) -> list[Plan]:
    """Branches that lead straight to another call come first, then those that lead there when the
    user's will is passed over; of the others only a rehearsal can say what comes of them."""
    straight: list[Plan] = []
    over: list[Plan] = []
    maybe: list[Plan] = []
    for at in _ranked(range(len(plan.gold)), lambda _: 0, draw):
        segment = walk.segment(at)
        mine, _all = _within(segment, at)
        right = segment.out_of(mine + 1)
        if right is None or right.condition is None:
            continue
        for edge in walk.book.charts[segment.scenario].leaving(right.source):
            if edge.condition in (None, right.condition):
                continue
            wrong = replace(plan, at=at, wrong_edge=edge)
            ways = _ways(walk, segment, edge, profile)
            asked = [way for way in ways if _asks(walk, segment, way)]
            if len(asked) == len(ways):
                maybe.append(replace(wrong, rehearsed=True))
            for way, call in ways.items():
                following = segment.tools[mine : mine + 2]
                if call in following or walk.could_call(segment, mine, call):
                    continue
                (over if way in asked else straight).append(replace(wrong, onward=way[1:]))
    return straight + over + maybe


def _ways(walk: GoldWalk, segment: Segment, edge: Edge, profile: Profile) -> dict[Way, str]:
    """Ways that begin with this edge, the shortest for each call that they lead to, and the call.

    No returned value decides on them, and the user knows the facts that the call needs.
    """
    book, chart = walk.book, walk.book.charts[segment.scenario]
    known = {f for tool in segment.tools for f in book.tools[tool].fields} | set(profile.facts)
    found: dict[str, Way] = {}
    queue, seen = deque[Way]([(edge,)]), {edge.target}
    while queue:
        way = queue.popleft()
        tools = book.calls(chart.node(way[-1].target))
        if tools and known >= set(book.tools[tools[0]].required):
            found.setdefault(tools[0], way)
        if tools:
            continue
        for onward in chart.leaving(way[-1].target):
            if onward.condition is None and onward.target not in seen:
                seen.add(onward.target)
                queue.append((*way, onward))
    return {way: call for call, way in found.items()}


def _asks(walk: GoldWalk, segment: Segment, way: Way) -> bool:
    """Whether an assistant that went this way would ask the user where to go, or may not go so."""
    chart = walk.book.charts[segment.scenario]
    return any(len(chart.leaving(edge.source)) > 1 for edge in way[1:])


def _loop(plan: Plan, walk: GoldWalk, _: Profile, draw: random.Random) -> list[Plan]:
    places = []
    for at in range(len(plan.gold)):
        segment = walk.segment(at)
        mine, all_of_it = _within(segment, at)
        again = [*all_of_it[: mine + 1], mine]
        ways = walk.can_be(segment, again, whole=False)
        anew = walk.cross and walk.can_be(segment, all_of_it[: mine + 1])  # the scenario, again
        if not (ways or anew or _writes(walk, plan, at)):
            places.append(at)
    return [replace(plan, at=at) for at in _ranked(places, lambda _: 0, draw)]


_FINDERS: Mapping[Kind, Callable[[Plan, GoldWalk, Profile, random.Random], list[Plan]]] = {
    "skips_step": _skip,
    "swaps_steps": _swap,
    "wrong_parameter": _parameter,
    "wrong_branch": _branch,
    "stops_early": _stop,
    "loops": _loop,
}
