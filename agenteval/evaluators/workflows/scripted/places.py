"""Where a mistake can be planted so that it shows: the gold calls as a walk through the charts.

A place is good when the calls with the mistake are no walk any more, going by the conditions that
held when the user was served right. Who is served then cannot have been served by the procedure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.evaluators.workflows.chart.conditions import holds
from agenteval.evaluators.workflows.chart.nouns import Edge
from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.scripted.walker import Book
from agenteval.evaluators.workflows.simulators.convention import plain

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

    @property
    def cross(self) -> bool:
        """Made of several scenarios: each may begin at any time, and more than once."""
        return len(self.book.charts) > 1

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

    def begun(self, kept: Sequence[int]) -> bool:
        """Whether a scenario with only these of its calls is seen to have begun: which of several
        scenarios begin is the user's will."""
        return bool(kept) or not self.cross

    def alone(self, tool: str) -> bool:
        """Whether this call by itself could be the whole of one of several scenarios."""
        charts = self.book.charts if self.cross else ()
        return any(find(self.book, scenario, [tool]) is not None for scenario in charts)

    def opens(self, tool: str) -> bool:
        """Whether this call could begin one of several scenarios."""
        charts = self.book.charts if self.cross else ()
        return any(find(self.book, id, [tool], whole=False) is not None for id in charts)

    def can_be(self, segment: Segment, kept: Sequence[int], *, whole: bool = True) -> bool:
        """Whether these of its calls (by their index in it, in this order) are a walk too, with
        conditions as they were; to an end, or (not `whole`) to anywhere."""
        tools = [segment.tools[i] for i in kept]
        return self._find(segment, kept, tools, whole=whole)

    def could_call(self, segment: Segment, mine: int, tool: str) -> bool:
        """Whether this tool may be called after the first calls of it, up to `mine`."""
        kept = range(mine + 1)
        tools = [*segment.tools[: mine + 1], tool]
        return self._find(segment, kept, tools, whole=False)

    def _find(
        self, segment: Segment, kept: Sequence[int], tools: Sequence[str], *, whole: bool
    ) -> bool:
        fixed = {n: segment.taken(i + 1) for n, i in enumerate(kept, 1)}

        def allowed(done: int, edge: Edge) -> bool:
            taken = fixed.get(done)
            return edge.condition is None or not taken or edge in taken

        return find(self.book, segment.scenario, tools, allowed, whole=whole) is not None

    def is_walk(self, segment: Segment, tools: Sequence[str]) -> bool:
        """Whether calls of these tools are a walk through its chart, whatever the conditions."""
        return find(self.book, segment.scenario, tools) is not None

    def nearly(self, segment: Segment, tools: Sequence[str]) -> bool:
        """Whether they are a walk as they are or with one more."""
        nodes = self.book.charts[segment.scenario].nodes
        names = {tool for node in nodes for tool in self.book.calls(node)}
        more = [[*tools[:i], name, *tools[i:]] for i in range(len(tools) + 1) for name in names]
        return any(self.is_walk(segment, row) for row in [list(tools), *more])


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
    *,
    whole: bool = True,
) -> Path | None:
    """The way of fewest edges on which exactly these tools are called, to an end or (not `whole`)
    to anywhere; None without one."""
    chart = book.charts[scenario]
    names = {node.id: book.calls(node) for node in chart.nodes}
    queue: deque[tuple[str, int, Path]] = deque([(chart.start.id, 0, ())])
    seen = {(chart.start.id, 0)}
    while queue:
        node, done, path = queue.popleft()
        leaving = chart.leaving(node)
        if done == len(tools) and (not leaving or not whole):
            return path
        for edge in leaving:
            after = done + len(names[edge.target])
            state = (edge.target, after)
            fits = tuple(tools[done:after]) == names[edge.target] and allowed(done, edge)
            if fits and state not in seen:
                seen.add(state)
                queue.append((edge.target, after, (*path, (done, edge))))
    return None
