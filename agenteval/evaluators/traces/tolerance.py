"""Which spans lie close enough to a marked one to count as a hit, where that is asked for.

People mark the LLM or tool span in which an error shows; judges often name the tool call instead,
or the step around both. Two relations can be tolerated:

ancestor   one of the two lies within the other, and both belong to the same step
neighbour  the two have the same parent and one follows the other in the order of the trace

A step is a chain span below an agent span (any chain span that has a parent, in a trace without
agent spans). A span belongs to the nearest step around it, itself included, that is not beyond
the agent it runs in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agenteval.records import Span
from agenteval.records.run import SpanKind

Relation = Literal["ancestor", "neighbour"]
RELATIONS: tuple[Relation, ...] = ("ancestor", "neighbour")


class Nearness:
    """Close spans of one trace.

    `spans` stand in the order of the trace. Of spans with one id the first counts. A span whose
    parent does not exist has none, and of spans that are parents of each other in a circle one
    has none. Time is linear in the spans here, and in the spans of the step in `near`.
    Raises ValueError for no relation or an unknown one.
    """

    def __init__(self, spans: Sequence[Span], relations: Sequence[Relation] = RELATIONS) -> None:
        if not relations or not set(relations) <= set(RELATIONS):
            raise ValueError(f"relations {tuple(relations)}: one or more of {RELATIONS}")
        self._relations = frozenset(relations)
        self._kinds: dict[str, SpanKind] = {}
        self._parents: dict[str, str | None] = {}
        for span in spans:
            self._kinds.setdefault(span.id, span.kind)
            self._parents.setdefault(span.id, span.parent_id)
        order = self._in_order()
        self._children: dict[str | None, list[str]] = {}
        self._place: dict[str, int] = {}
        for name, parent in self._parents.items():
            row = self._children.setdefault(parent, [])
            self._place[name] = len(row)
            row.append(name)
        self._steps = self._find_steps(order)

    def __contains__(self, span: str) -> bool:
        return span in self._kinds

    def near(self, span: str) -> frozenset[str]:
        """Ids that count as a hit of `span`: itself and what is close; only itself if unknown."""
        if span not in self._kinds:
            return frozenset({span})
        found = {span}
        if "neighbour" in self._relations:
            row, place = self._children[self._parents[span]], self._place[span]
            found |= {row[i] for i in (place - 1, place + 1) if 0 <= i < len(row)}
        if "ancestor" in self._relations and self._steps[span] is not None:
            found |= self._within_step(span)
        return frozenset(found)

    def _in_order(self) -> list[str]:
        """All spans, parents before children; parents that are none are cut off on the way."""
        done: set[str] = set()
        order: list[str] = []
        for name in self._parents:
            branch: dict[str, None] = {}
            here: str | None = name
            while here in self._kinds and here not in done and here not in branch:
                branch[here] = None
                here = self._parents[here]
            if here is not None and here in branch:
                self._parents[here] = None
                branch = dict.fromkeys(self._upwards(name))
            elif here not in self._kinds and branch:
                self._parents[next(reversed(branch))] = None
            order += reversed(branch)
            done |= set(branch)
        return order

    def _upwards(self, span: str) -> list[str]:
        """The span, its parent and so on to a root."""
        found = [span]
        while (parent := self._parents[found[-1]]) is not None:
            found.append(parent)
        return found

    def _find_steps(self, order: Sequence[str]) -> dict[str, str | None]:
        agents = "agent" in self._kinds.values()
        steps: dict[str, str | None] = {}
        below: set[str] = set()  # spans below an agent, or below any span where there is none
        for name in order:
            parent = self._parents[name]
            outer = None
            if parent is not None:
                is_agent = self._kinds[parent] == "agent"
                outer = None if is_agent else steps[parent]
                if is_agent or parent in below or not agents:
                    below.add(name)
            steps[name] = name if self._kinds[name] == "chain" and name in below else outer
        return steps

    def _within_step(self, span: str) -> set[str]:
        step = self._steps[span]
        found = set()
        above = self._parents[span]
        while above is not None and self._steps[above] == step:
            found.add(above)
            above = self._parents[above]
        waiting = [span]
        while waiting:
            for child in self._children.get(waiting.pop(), []):
                if self._steps[child] == step:  # else all below it is of other steps too
                    found.add(child)
                    waiting.append(child)
        return found


def skeleton(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans without what they say: all that scoring needs of them, for a fraction of memory."""
    return tuple(Span(id=one.id, parent_id=one.parent_id, kind=one.kind) for one in spans)
