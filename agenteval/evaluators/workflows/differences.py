"""How two procedures differ, told by what can be seen: calls, returned values, the user's will."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from agenteval.evaluators.workflows.chart.follow import END, START, Choices, Relation, State
from agenteval.evaluators.workflows.chart.world import World

_MOST = 8  # differences told; the rest is counted
_Way = tuple[str, State, Choices, str]


def differences(
    ours: tuple[str, Relation],
    theirs: tuple[str, Relation],
    world: World,
    groups: Iterable[Choices] | None = None,
) -> list[str]:
    """Sentences on every way that one of the two has and the other has not; [] when none.

    A way is: this call, this returned, this chosen, that call next. Choices are compared only with
    `groups`, the sets of intents of which one is chosen at a time; without, wording does not count.
    Where only one of the two can come, an earlier difference has led, and that one is told.
    """
    told = []
    for (name, mine), (other, yours) in ((ours, theirs), (theirs, ours)):
        missing = [
            way for way in _ways(mine) if way[:2] in yours.follows and not _has(yours, way, groups)
        ]
        told += [f"{line}; {other} does not" for line in _told(name, missing, mine, world)]
    more = len(told) - _MOST
    return [*told[:_MOST], f"and {more} further differences"] if more > 0 else told


def _ways(found: Relation) -> Iterator[_Way]:
    for (last, state), nexts in found.follows.items():
        for choices, to in nexts:
            yield last, state, choices, to


def _has(found: Relation, way: _Way, groups: Iterable[Choices] | None) -> bool:
    last, state, choices, to = way
    return any(
        other == to and (groups is None or not _contradict(choices, made, groups))
        for made, other in found.follows.get((last, state), ())
    )


def _contradict(one: Choices, other: Choices, groups: Iterable[Choices]) -> bool:
    """Whether at some choice the two chose differently. One that was not asked for may be any."""
    return one != other and any(
        one & group and other & group and not one & other & group for group in groups
    )


def _told(name: str, ways: list[_Way], whole: Relation, world: World) -> Iterator[str]:
    """One sentence for each (call, choices, next call), with the values common to its states."""

    def key(way: _Way) -> tuple[str, str, list[str]]:
        return way[0], way[3], sorted(way[2])

    for (last, to, choices), same in groupby(sorted(ways, key=key), key):
        states = [way[1] for way in same]
        values = _common(states, [s for (t, s) in whole.follows if t == last], world)
        when = f" ({values})" if values else ""
        said = f" and the user's {', '.join(map(repr, choices))}" if choices else ""
        after = "from the start" if last == START else f"after {last}"
        on = "to the end" if to == END else f"to {to}"
        yield f"{after}{when}{said}, {name} goes on {on}"


def _common(states: list[State], everywhere: list[State], world: World) -> str:
    """Values of the variables that tell these states from the others after the same call."""
    parts: dict[str, str] = {}
    for i, (tool, field) in enumerate(world.variables):
        here, all_ = {s[i] for s in states}, {s[i] for s in everywhere}
        if here != all_:
            shown = " or ".join(world.name(i, v) for v in sorted(here))
            parts.setdefault(field, f"{tool}.{field} is {shown}" if tool else f"{field} is {shown}")
    return ", ".join(parts.values())
